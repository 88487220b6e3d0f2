"""System calls of single threads of a running server: counted, made to fail or to take long, with strace."""

import collections
import contextlib
import os
import subprocess
import time

import pytest

from . import procfs
from .waiting import wait_until

STANDS_SECONDS = 0.2


def shard_threads(pid):
    """Thread ids of the shards, in their order."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm") as name:
            comm = name.read().strip()
        if comm.startswith("shard-"):
            found[comm] = thread
    assert found, "no thread of that name"
    return [found[name] for name in sorted(found)]


@contextlib.contextmanager
def injected(thread, call, what):
    """In the block the thread's calls of that name get what strace's inject= says: "error=ENOSPC:when=1",
    "delay_exit=2000" (microseconds)."""
    with all_injected(thread, {call: what}):
        yield


@contextlib.contextmanager
def all_injected(thread, calls):
    """The same for several calls: a dict by their names."""
    words = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={','.join(calls)}"]
    for call, what in calls.items():
        words += ["-e", f"inject={call}:{what}"]
    with _traced([*words, "-p", thread], [thread]):
        yield


@contextlib.contextmanager
def standing_still(thread, seconds, more=""):
    """In the block the thread is kept from its next epoll_wait for so long, or from each. Begins when it stands there:
    what it was sent before is done."""

    with injected(thread, "epoll_wait", f"delay_enter={seconds}s{more}"):
        wait_standing(thread)
        yield


def wait_standing(thread):
    """Until a traced thread stands in a call that is delayed for it."""

    def stands():
        for _ in range(int(STANDS_SECONDS * 100)):
            if procfs.state(thread) != "t":
                return False
            time.sleep(0.01)
        return True

    wait_until(stands, f"thread {thread} stands still")


@contextlib.contextmanager
def counted(threads, folder):
    """Yields a Counter, filled after the block: how often these threads made each call, by its name. A call that
    was under way at the start or the end counts too. Skips the test where nobody may be traced."""
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
        pytest.skip("processes cannot be traced here")
    summary = folder / "calls"
    calls = collections.Counter()
    names = [word for thread in threads for word in ("-p", thread)]
    with _traced(["strace", "-qq", "-c", "-U", "name,calls", "-o", str(summary), *names], threads):
        yield calls
    for line in summary.read_text().splitlines():
        name, _, count = line.partition(" ")
        if count.strip().isdigit() and name != "total":
            calls[name] += int(count)


@contextlib.contextmanager
def _traced(command, threads):
    tracer = subprocess.Popen(command)
    try:
        for thread in threads:
            with open(f"/proc/{thread}/status") as status:
                wait_until(lambda: status.seek(0) or "TracerPid:\t0\n" not in status.read(), "traced")
        yield
    finally:
        tracer.terminate()
        tracer.wait()
