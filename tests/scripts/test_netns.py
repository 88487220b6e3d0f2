"""What a run that was killed leaves behind is put away by the next one, and nothing of a run that lives. Who may make no
namespaces is told so."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from support import netns  # noqa: E402

MAKES_ONE = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from support.netns import Namespace
made = Namespace(hosts="127.0.0.1 here")
inside = subprocess.Popen([*made.prefix, "sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(made.name, inside.pid, flush=True)
sys.stdin.read()
"""


def can_make_them():
    done = subprocess.run([sys.executable, "-c", MAKES_ONE, TESTS], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    netns.remove_left_behind.__wrapped__()
    return done.returncode == 0


makes_some = pytest.mark.skipif(not can_make_them(), reason="network namespaces cannot be made here")


class Run:
    """A process with a namespace, /etc for it, and a process in it."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", MAKES_ONE, TESTS], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.name, inside = self.process.stdout.readline().split()
        self.inside = int(inside)

    def end(self):
        self.process.kill()
        self.process.wait()

    def traces(self):
        paths = (pathlib.Path("/run/netns", self.name), pathlib.Path("/etc/netns", self.name), pathlib.Path(f"/proc/{self.inside}"))
        return [str(path) for path in paths if path.exists() and not is_over(path)]


def is_over(path):
    """Of a process, which may still wait for whoever adopted it."""
    status = path / "stat"
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


@makes_some
def test_what_a_killed_run_left_is_gone_once_the_next_begins():
    killed, alive = Run(), Run()
    try:
        killed.end()
        assert len(killed.traces()) == 3
        next_one = netns.Namespace()  # may have been done by this process before
        netns.remove_left_behind.__wrapped__()
        try:
            for _ in range(100):
                if not killed.traces():
                    break
                signal.sigtimedwait([], 0.05)
            assert killed.traces() == []
            assert len(alive.traces()) == 3
            assert pathlib.Path("/run/netns", next_one.name).exists()
        finally:
            next_one.remove()
    finally:
        alive.end()
        netns.remove_left_behind.__wrapped__()


@makes_some
def test_nothing_is_taken_away_that_has_another_name(monkeypatch):
    gone = Run()
    gone.end()
    netns.remove_left_behind.__wrapped__()
    names = [f"monolock-{gone.process.pid}-0", f"other-1-{gone.process.pid}-0", f"monolock-1-{gone.process.pid}-0",
             f"{netns._names_of(gone.process.pid)}0x", f"{netns._names_of(os.getpid())}0"]
    folder = pathlib.Path("/nowhere")
    monkeypatch.setattr(netns, "_NAMED", FakeFolder([*names, f"{netns._names_of(gone.process.pid)}0"]))
    monkeypatch.setattr(netns, "_ETC", folder)
    assert netns._left_behind() == [f"{netns._names_of(gone.process.pid)}0"]


def test_where_none_can_be_made_it_is_said_and_nothing_begins():
    program = "import sys; sys.path.insert(0, sys.argv[1]); from support import netns; netns.require(); print('went on')"
    done = subprocess.run([sys.executable, "-c", program, TESTS], env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == ("network namespaces cannot be made: run this as root (CAP_SYS_ADMIN and CAP_NET_ADMIN), "
                           "with iproute2 and nftables: ip is missing\n")


class FakeFolder:
    def __init__(self, names):
        self._names = names

    def is_dir(self):
        return True

    def iterdir(self):
        return map(pathlib.Path, self._names)
