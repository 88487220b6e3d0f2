"""The catalogue of past bugs names commits and tests that are there, so that each can be shown again."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUGS = tomllib.loads((ROOT / "tests/bugs/catalogue.toml").read_text(encoding="utf-8"))["bug"]


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.mark.skipif(git("rev-parse", "--is-shallow-repository").stdout.strip() != "false", reason="the history is not here")
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["name"])
def test_the_fix_is_a_commit_of_this_history(bug):
    assert git("merge-base", "--is-ancestor", bug["fix"], "HEAD").returncode == 0


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["name"])
def test_the_test_that_keeps_it_away_is_there(bug):
    if "::" in bug["test"]:
        file, name = bug["test"].split("::")
        path = ROOT / "tests" / (file if "/" in file else f"blackbox/{file}")
        assert f"def {name}(" in path.read_text(encoding="utf-8")
    else:
        suite, name = bug["test"].split("/")[-1].split(".")
        assert git("grep", "-qE", f"{suite}, {name}\\)", "--", "*.cpp").returncode == 0


def test_the_table_of_the_book_is_made_from_it():
    table = subprocess.run([ROOT / "tests/bugs/show", "--table"], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert table.strip() in (ROOT / "docs/reliability.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def show():
    loader = importlib.machinery.SourceFileLoader("show", str(ROOT / "tests/bugs/show"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("show", loader))
    loader.exec_module(module)
    return module


OF_GOOGLETEST = """\
[ RUN      ] shard.stops
/tree/src/a_test.cpp:12: Failure
Expected equality of these values:
  told
    Which is: 2

  3
[  FAILED  ] shard.stops (0 ms)
/tree/src/a_test.cpp:20: Failure
Value of: other
"""


def test_of_googletest_it_shows_what_was_expected_and_found(show):
    assert show.findings(OF_GOOGLETEST, "/tree") == [
        "src/a_test.cpp:12: Failure", "Expected equality of these values:", "  told", "    Which is: 2", "  3"]


def test_of_pytest_it_shows_the_assertion(show):
    said = "F\n    assert 1 == 2\nE   assert 1 == 2\nE    +  where 1 = f()\n"
    assert show.findings(said, "/tree") == ["E   assert 1 == 2", "E    +  where 1 = f()"]


@pytest.mark.parametrize("jobs, words", [("7", "7"), ("", None)])
def test_it_builds_with_so_many_jobs(show, monkeypatch, tmp_path, jobs, words):
    commands = []
    monkeypatch.setenv("JOBS", jobs)
    monkeypatch.setattr(show.subprocess, "run", lambda command, **_: commands.append(command) or subprocess.CompletedProcess(command, 0))
    show.built(tmp_path, {"target": "monolock"})
    assert commands[1][commands[1].index("-j") + 1] == (words or str(show.os.cpu_count()))


@pytest.mark.skipif(git("rev-parse", "HEAD").returncode != 0, reason="this is no clone")
def test_a_history_that_is_not_there_is_missed_in_words(tmp_path):
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", tmp_path / "shallow"], check=True)
    shutil.copy(ROOT / "tests/bugs/show", tmp_path / "shallow/tests/bugs/show")
    done = subprocess.run([tmp_path / "shallow/tests/bugs/show", BUGS[0]["name"]], capture_output=True, text=True)
    assert done.returncode == 1
    assert "this clone is shallow, and has not the commit" in done.stdout and "git fetch --unshallow" in done.stdout
