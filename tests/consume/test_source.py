"""The library built by somebody else, from its sources: as a part of their build, and by itself for a package.
`make consume` runs these; they compile the library five times over."""

import os
import shutil
import subprocess

import pytest

from conftest import HERE

ROOT = HERE.parents[1]
ONLY_THE_LIBRARY = ["-DMONOLOCK_BUILD_PROGRAMS=OFF", "-DMONOLOCK_BUILD_SIMULATOR=OFF", "-DMONOLOCK_BUILD_TESTS=OFF"]
# What only the server and the tests need.
NOT_THERE = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON"
             for name in ("Boost", "nlohmann_json", "spdlog", "prometheus-cpp", "CURL", "CLI11", "GTest")]
# All of them compile the same files, in folders whose names do not matter.
CACHED = {"CCACHE_BASEDIR": "/", "CCACHE_NOHASHDIR": "1"}
JOBS = os.environ.get("JOBS", str(os.cpu_count()))

pytestmark = pytest.mark.skipif(not os.environ.get("CONSUME_SOURCES"), reason="only make consume builds from sources")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The sources as they are now, as a repository of their own, and its one commit."""
    where = tmp_path_factory.mktemp("repository") / "monolock"
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, where / name)

    def git(*words):
        named = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main"]
        return subprocess.run(["git", *named, *words], cwd=where, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "all")
    return where, git("rev-parse", "HEAD").strip()


def compile_in(run, build):
    run("cmake", "--build", build, "-j", JOBS, env=CACHED)


def configure(run, source, build, *flags):
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, *launcher, *flags, *NOT_THERE)


def as_a_part(run, repository, build, *flags):
    source, commit = repository
    configure(run, HERE / "part", build, f"-DMONOLOCK_SOURCE={source}", f"-DMONOLOCK_COMMIT={commit}", *flags)
    compile_in(run, build)
    assert (build / "compile-options").read_text() == ""  # nothing is imposed on who links it


def loads_it(run, program):
    return "libmonolock.so" in run("ldd", program)


def test_add_subdirectory(run, takes_a_lock, repository, tmp_path):
    as_a_part(run, repository, tmp_path)
    takes_a_lock(tmp_path / "consumer")
    assert not loads_it(run, tmp_path / "consumer")
    # Nor does it take part in the installation of its host.
    run("cmake", "--install", tmp_path, "--prefix", tmp_path / "prefix")
    assert list((tmp_path / "prefix").rglob("*monolock*")) == []


def test_add_subdirectory_of_a_build_with_shared_libraries(run, takes_a_lock, repository, tmp_path):
    as_a_part(run, repository, tmp_path, "-DBUILD_SHARED_LIBS=ON")
    takes_a_lock(tmp_path / "consumer")
    assert loads_it(run, tmp_path / "consumer")


def test_fetch_content(run, takes_a_lock, repository, tmp_path):
    as_a_part(run, repository, tmp_path, "-DFETCH=ON")
    takes_a_lock(tmp_path / "consumer")


@pytest.mark.parametrize("kind, other, shared", [("static", "shared", "OFF"), ("shared", "static", "ON")])
def test_one_kind_alone(run, takes_a_lock, repository, tmp_path, kind, other, shared):
    """As package managers build it."""
    prefix = tmp_path / "prefix"
    configure(run, repository[0], tmp_path / "build", f"-DBUILD_SHARED_LIBS={shared}", *ONLY_THE_LIBRARY)
    compile_in(run, tmp_path / "build")
    run("cmake", "--install", tmp_path / "build", "--prefix", prefix)
    assert bool(list(prefix.rglob("*.a"))) == (kind == "static")
    assert bool(list(prefix.rglob("*.so*"))) == (kind == "shared")

    find = ["cmake", "-S", HERE / "installed", f"-DCMAKE_PREFIX_PATH={prefix}"]
    run(*find, "-B", tmp_path / "consumer")
    run("cmake", "--build", tmp_path / "consumer")
    takes_a_lock(tmp_path / "consumer" / "consumer")
    said = run(*find, "-B", tmp_path / "other", f"-DKIND={other}", fails=True)
    assert f"the {other} library of monolock is not installed" in " ".join(said.split())
