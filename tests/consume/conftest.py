"""Fixtures of the tests of the client library from outside: a server, and a runner that shows what failed."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.server import Server  # noqa: E402


@pytest.fixture(scope="session")
def server():
    started = Server("-threads", "1")
    try:
        yield started
        started.stop()
    finally:
        started.dispose()


@pytest.fixture
def run():
    def run(*words, cwd=None, env=None, fails=False, within=400):
        done = subprocess.run(
            [str(word) for word in words], cwd=cwd, env=os.environ | (env or {}), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=within, check=False)
        assert (done.returncode != 0) == fails, f"{words}\n{done.stdout}"
        return done.stdout

    return run


@pytest.fixture
def takes_a_lock(server, run):
    """Runs a built consumer against the server."""

    def takes_a_lock(program, env=None):
        said = run(program, f"127.0.0.1:{server.port}", env=env, within=30)
        word, first, second = said.split()
        assert word == "tokens" and 0 < int(first) < int(second)

    return takes_a_lock
