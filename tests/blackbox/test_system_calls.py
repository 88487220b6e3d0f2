"""What a heartbeat asks of the kernel: one receive, one send, and its share of a wait. Counted, not timed."""

import signal

import pytest

from support import procfs, strace
from support.waiting import SCALE, wait_until

# Sanitizers ask the kernel for memory, and whether memory is there, in the middle of everything.
pytestmark = pytest.mark.skipif(SCALE < 1, reason="a sanitizer makes system calls of its own")

SESSIONS = 100
ROUNDS = 10
HEARTBEATS = SESSIONS * ROUNDS

RECEIVES = ("recvfrom", "recvmsg", "read")
SENDS = ("sendto", "sendmsg", "write")
# A wait that the tracer or a stop interrupts is made again.
ATTACHING = 10
WAITS = ("restart_syscall", "epoll_wait", "epoll_pwait", "epoll_pwait2")


def take(calls, names):
    """Their sum; they are gone from the calls."""
    return sum(calls.pop(name, 0) for name in names)


@pytest.fixture(params=["plain", "mtls"])
def beating(start_server, request, threads):
    """A server, and sessions of all kinds: every other one is a waiter."""
    tls = request.getfixturevalue("mtls_files") if request.param == "mtls" else None
    server = start_server("-threads", threads, tls=tls)
    sessions = []
    for index in range(0, SESSIONS, 2):
        sessions += [server.owner(f"lock-{index}"), server.waiter(f"lock-{index}")]
    yield server, sessions
    for session in sessions:
        session.close()


def answered(sessions):
    for index, session in enumerate(sessions):
        session.expect_waiting() if index % 2 else session.expect_acquired()


def test_a_heartbeat_is_one_receive_and_one_send(beating, tmp_path):
    """Each comes alone, so each wakes the server: one wait, and no timer is set, nothing registered anew."""
    server, sessions = beating
    with strace.counted(strace.shard_threads(server.pid), tmp_path) as calls:
        for _ in range(ROUNDS):
            for index, session in enumerate(sessions):
                session.heartbeat()
                session.expect_waiting() if index % 2 else session.expect_acquired()
    assert take(calls, RECEIVES) == HEARTBEATS, calls
    assert take(calls, SENDS) == HEARTBEATS, calls
    assert take(calls, WAITS) <= HEARTBEATS + ATTACHING, calls
    assert not calls


def test_what_arrives_together_shares_its_wait(beating, tmp_path):
    """The server stands still while the heartbeats come in, so it finds all of them at once."""
    server, sessions = beating
    with strace.counted(strace.shard_threads(server.pid), tmp_path) as calls:
        for _ in range(ROUNDS):
            server.signal(signal.SIGSTOP)
            wait_until(lambda: procfs.state(server.pid) in "Tt", "the server stands still")
            for session in sessions:
                session.heartbeat()
            server.signal(signal.SIGCONT)
            answered(sessions)
    assert take(calls, RECEIVES) == HEARTBEATS, calls
    assert take(calls, SENDS) == HEARTBEATS, calls
    assert take(calls, WAITS) <= HEARTBEATS / 10, calls
    assert not calls
