"""What is planted to prove that a method works can still be planted: the code that it changes is as it was."""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests" / "fuzz"
PATCHES = sorted((ROOT / "tests" / "simulation").glob("**/planted/*.patch"))


def script(path):
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    loader.exec_module(module)
    return module


BUGS = script(FUZZ / "planted").BUGS


def test_every_fuzz_target_has_a_bug_that_it_must_find():
    assert set(BUGS) == set(re.findall(r"^monolock_fuzzer\((\w+)", (FUZZ / "CMakeLists.txt").read_text(), re.MULTILINE))


@pytest.mark.parametrize("target", sorted(BUGS))
def test_the_bug_of_a_fuzz_target_can_be_planted(target):
    file, right, wrong = BUGS[target]
    assert (ROOT / file).read_text(encoding="utf-8").count(right) == 1
    assert wrong != right


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_the_bug_of_a_simulator_can_be_planted(patch):
    command = ["patch", "-p1", "--fuzz=0", "--dry-run", "--force", "-d", str(ROOT), "-i", str(patch)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def test_there_are_patches():
    assert len(PATCHES) > 100


def test_a_bug_that_nobody_has_planted_is_no_bug_that_was_caught():
    command = [ROOT / "tests" / "simulation" / "planted" / "run", "lifo", "lfio", "nobodys"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith("run: error: no bug is named lfio, nobodys\n")
