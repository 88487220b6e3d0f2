"""What `make` hands on, and what `make help` says of it."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def make(*words):
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}  # a make may have begun this
    command = ["make", "--no-print-directory", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words, command", [
    (["planted"], "tests/simulation/planted/run"),
    (["planted", "PLANTED=lifo early_expiry", "SEEDS=7"], "tests/simulation/planted/run --seeds 7 lifo early_expiry"),
    (["matrix"], "tests/matrix/run"),
    (["matrix", "MATRIX_CELLS=gcc asan"], "tests/matrix/run gcc asan"),
])
def test_what_is_chosen_is_handed_on(words, command):
    assert command.split() == make("-n", *words).splitlines()[-1].split()


def test_help_names_all_that_can_be_chosen():
    """Each variable that a recipe uses and that is not the Makefile's own."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    used = set(re.findall(r"\$\(([A-Z_]+)\)", text)) - {"MAKE", "MAKEFILE_LIST", "JOBS"}
    assert {"PLANTED", "SEEDS", "MATRIX_CELLS", "SOAK_MINUTES"} <= used
    said = make("help")
    assert {name for name in used if name not in said} == set()


def test_the_matrix_has_a_page_with_all_of_its_cells():
    page = (ROOT / "tests/matrix/README.md").read_text(encoding="utf-8")
    listed = subprocess.run([ROOT / "tests/matrix/run", "--help"], capture_output=True, text=True, check=True).stdout
    cells = re.search(r"CELL\s+((?:[\w-]+,\s+)+[\w-]+)", listed)[1]
    assert {cell for cell in re.split(r",\s+", cells) if f"`{cell}`" not in page} == set()
