"""The tools that build copies of the sources copy all that a configuration needs."""

import ast
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def copied_by(tool, name):
    """The value that the tool gives the name."""
    for each in ast.parse((ROOT / tool).read_text(encoding="utf-8")).body:
        if isinstance(each, ast.Assign) and getattr(each.targets[0], "id", None) == name:
            return ast.literal_eval(each.value)
    raise AssertionError(f"{tool} has no {name}")


@pytest.mark.parametrize("tool, name, flags", [
    ("tests/simulation/planted/run", "copied", ["-DMONOLOCK_BUILD_TESTS=OFF"]),
    ("tests/mutation/building.py", "COPIED", ["-DMONOLOCK_BUILD_TESTS=ON"]),
])
def test_a_copy_can_be_configured(tool, name, flags, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for each in copied_by(tool, name):
        (tree / each).symlink_to(ROOT / each)
    done = subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", tmp_path / "build", *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
