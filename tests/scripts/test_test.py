"""What scripts/test says at its end, with a cmake and a ctest that are made up."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "test"

CMAKE = """#!/bin/sh
case "$*" in *"$CMAKE_FAILS"*) exit 1 ;; esac
"""
CTEST = """#!/bin/sh
case "$*" in *"$CTEST_FAILS"*) echo '90% tests passed, 1 tests failed out of 10'; exit 8 ;; esac
echo '100% tests passed, 0 tests failed out of 10'
"""
NOTHING = "nothing of the kind"


@pytest.fixture
def run(tmp_path):
    """Runs a copy of the script, so that its logs go to a folder of the test's own."""
    for name, text in (("cmake", CMAKE), ("ctest", CTEST)):
        stub = tmp_path / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(text)
        stub.chmod(0o755)
    script = tmp_path / "scripts" / "test"
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)

    def run(*arguments, cmake_fails=NOTHING, ctest_fails=NOTHING):
        return subprocess.run(
            [script, *arguments], capture_output=True, text=True, check=False, timeout=30,
            env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "JOBS": "1",
                 "CMAKE_FAILS": cmake_fails, "CTEST_FAILS": ctest_fails})

    return run


@pytest.mark.parametrize("presets", [["dev"], ["dev", "asan"], ["--beside", "fuzz", "dev", "asan"]])
def test_it_succeeds_when_all_pass(run, presets):
    done = run(*presets)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("100% tests passed, 0 tests failed out of 10 (built in") == len(
        [each for each in presets if each != "--beside"])


@pytest.mark.parametrize("where", ["dev", "asan", "fuzz"])
def test_one_that_fails_is_told_by_the_exit_code_wherever_it_ran(run, where):
    done = run("--beside", "fuzz", "dev", "asan", ctest_fails=f"build/{where}")
    assert done.returncode == 1
    assert f"{where:<6} 90% tests passed" in done.stdout


@pytest.mark.parametrize("fails, verdict", [("--preset asan", "cannot be configured"),
                                            ("--build --preset asan", "does not build")])
def test_what_cannot_be_built_fails(run, fails, verdict):
    done = run("dev", "asan", cmake_fails=fails)
    assert done.returncode == 1
    assert f"asan   {verdict}" in done.stdout


def test_without_a_preset_it_says_how_it_is_used(run):
    done = run()
    assert done.returncode == 2
    assert "usage: scripts/test" in done.stderr


def test_the_run_under_a_sanitizer_leaves_one_shard_to_the_dev_run_if_there_is_one(run, tmp_path):
    ctest = tmp_path / "bin" / "ctest"
    ctest.write_text(CTEST + 'echo "shards ${MONOLOCK_TEST_THREADS-all} scale $MONOLOCK_TEST_SCALE"\n')
    assert re.findall("shards.*", run("dev", "asan").stdout) == ["shards all scale 1", "shards 2 scale 0.25"]
    assert re.findall("shards.*", run("asan").stdout) == ["shards all scale 0.25"]
