"""The catalogue of past bugs names commits and tests that are there, so that each can be shown again."""

import pathlib
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
