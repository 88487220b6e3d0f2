"""Each of our scripts says what it does when it is asked, refuses a word that it does not know, and begins nothing before."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The benchmarks, the soak and what else is run by hand; what only has other files beside it is no script of ours.
SCRIPTS = sorted(
    str(path.relative_to(ROOT))
    for folder in ("scripts", "tests", "bench")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:2] == b"#!" and "corpus" not in path.parts
)
WRONG = {  # besides an option that nobody has
    "scripts/test": ["dve"],
    "scripts/fuzz": ["utf8"],
    "scripts/lint": ["forma"],
    "scripts/setup": ["builds"],
    "scripts/deb": ["now"],
    "scripts/docs": ["now"],
    "tests/bugs/show": ["nobodys"],
    "tests/failover/run": ["cut"],
    "tests/faults/run": ["beside"],
    "tests/fuzz/planted": ["nope"],
    "tests/matrix/run": ["dev"],
    "tests/page/run": ["nope.mjs"],
    "tests/simulation/planted/run": ["nobodys"],
}


def ran(script, *words):
    """Without the programs that a test's environment may name."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_BIN")}
    return subprocess.run([ROOT / script, *words], env=environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)  # fmt: skip


def test_there_are_scripts():
    assert set(WRONG) <= set(SCRIPTS) and len(SCRIPTS) > 20


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_is_given(script):
    done = ran(script, "--help")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 10 and done.stderr == ""


@pytest.mark.parametrize("script, words", [(script, [words]) for script in SCRIPTS for words in ["--nobodys", *WRONG.get(script, [])]])
def test_a_word_that_it_does_not_know_is_refused(script, words):
    done = ran(script, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr and "Traceback" not in done.stderr and done.stdout == ""
