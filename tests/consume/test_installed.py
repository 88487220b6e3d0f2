"""The installed library, found by CMake and by pkg-config, as shared and as static library.

CONSUME_BUILD is the build that is installed, CONSUME_LIBDIR where it puts libraries below its prefix.
"""

import os
import shutil
import subprocess

import pytest

from conftest import HERE

CXX = os.environ.get("CONSUME_CXX", "c++")
CXX_FLAGS = os.environ.get("CONSUME_CXX_FLAGS", "")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Installed, and then moved: nothing in it may name where it was."""
    where = tmp_path_factory.mktemp("installed")
    subprocess.run(
        ["cmake", "--install", os.environ["CONSUME_BUILD"], "--prefix", where / "first", "--component", "client"],
        check=True, stdout=subprocess.DEVNULL)
    return (where / "first").rename(where / "prefix")


@pytest.fixture
def libraries(prefix):
    return prefix / os.environ["CONSUME_LIBDIR"]


def loads_it(run, program, env=None):
    return "libmonolock.so.1" in run("ldd", program, env=env)


@pytest.mark.parametrize("kind", ["", "shared", "static"])
def test_find_package(run, takes_a_lock, prefix, tmp_path, kind):
    run("cmake", "-S", HERE / "installed", "-B", tmp_path, f"-DKIND={kind}", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={CXX}", f"-DCMAKE_CXX_FLAGS={CXX_FLAGS}")
    run("cmake", "--build", tmp_path)
    takes_a_lock(tmp_path / "consumer")
    assert loads_it(run, tmp_path / "consumer") == (kind != "static")


def test_find_package_with_asio(run, takes_a_lock, prefix, tmp_path):
    run("cmake", "-S", HERE / "installed", "-B", tmp_path, "-DKIND=asio", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={CXX}", f"-DCMAKE_CXX_FLAGS={CXX_FLAGS}")
    run("cmake", "--build", tmp_path)
    takes_a_lock(tmp_path / "consumer_asio")


@pytest.mark.parametrize("wanted, why", [("shared;static", "one at a time"), ("header-only", "header-only")])
def test_find_package_says_what_there_is(run, prefix, tmp_path, wanted, why):
    said = run("cmake", "-S", HERE / "installed", "-B", tmp_path, f"-DKIND={wanted}", f"-DCMAKE_PREFIX_PATH={prefix}",
               f"-DCMAKE_CXX_COMPILER={CXX}", fails=True)
    assert "shared and static" in said and why in " ".join(said.split())


@pytest.mark.skipif(shutil.which("pkg-config") is None or shutil.which("make") is None, reason="no pkg-config, or no make")
@pytest.mark.parametrize("program", ["consumer", "consumer-static"])
def test_pkg_config_and_make(run, takes_a_lock, libraries, tmp_path, program):
    env = {"PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "LD_LIBRARY_PATH": str(libraries)}
    shutil.copy(HERE / "consumer.cpp", tmp_path)
    shutil.copytree(HERE / "plain", tmp_path / "plain")
    run("make", program, f"CXX={CXX}", f"CXXFLAGS={CXX_FLAGS} -O0", cwd=tmp_path / "plain", env=env)
    takes_a_lock(tmp_path / "plain" / program, env=env)
    assert loads_it(run, tmp_path / "plain" / program, env=env) == (program == "consumer")
