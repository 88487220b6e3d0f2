"""What the tests of containers share: the tools, and an image that is built once."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ["CONTAINERS_FOLDER"])
TOOLS = FOLDER / "tools"
STORE = ("--root", str(FOLDER / "store"), "--runroot", str(FOLDER / "run"))
BASE, IMAGE = "localhost/monolock-base:local", "localhost/monolock:test"
BUILD_WITHIN = 3000


def run(*words, within=300, **options):
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=within, **options)


def good(*words, **options):
    """What the command printed; it must have succeeded."""
    done = run(*words, **options)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


def python_tool(module, *words):
    """A tool of the linters' folder, with the modules beside it."""
    return run(sys.executable, "-m", module, *words, env=os.environ | {"PYTHONPATH": str(TOOLS / "python")})


@pytest.fixture(scope="session")
def helm():
    if not (TOOLS / "helm").exists():
        pytest.skip("helm is not installed")
    return TOOLS / "helm"


@pytest.fixture(scope="session")
def image():
    """Built from this source as the README says, but for the base."""
    good(ROOT / "tests/containers/base", FOLDER, BASE, within=BUILD_WITHIN)
    good(
        "buildah", *STORE, "bud", "--layers", "--isolation", "chroot", "--format", "docker", "--pull-never",
        "--build-arg", f"BASE={BASE}", "--build-arg", "VERSION=1.2.3", "--build-arg", "REVISION=abc",
        "-f", "deploy/container/Containerfile", "-t", IMAGE, ".", cwd=ROOT, within=BUILD_WITHIN,
    )  # fmt: skip
    return IMAGE
