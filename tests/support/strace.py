"""System calls of single threads of a running server, made to fail or to take long, with strace."""

import contextlib
import os
import subprocess

from .waiting import wait_until


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
    words = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{what}"]
    tracer = subprocess.Popen([*words, "-p", thread])
    try:
        with open(f"/proc/{thread}/status") as status:
            wait_until(lambda: status.seek(0) or "TracerPid:\t0\n" not in status.read(), "traced")
        yield
    finally:
        tracer.terminate()
        tracer.wait()
