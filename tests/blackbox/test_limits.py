"""Case S5: the server at its descriptor limit neither spins nor exits, and loses no owner."""

import resource
import time

import pytest

from support import procfs
from support.connection import Connection
from support.strace import injected, shard_threads
from support.waiting import stays_true, wait_until

LIMIT = 64
OWNERS = 30
CONNECTS = 100
LEASE_MS = 2000


def limit_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))


@pytest.fixture
def exhausted(start_server, threads):
    """A server with 64 descriptors, 30 owners and 100 more connections knocking."""
    server = start_server("-threads", threads, "-io-timeout", "1m", before_exec=limit_descriptors)
    owners = [server.owner(f"kept-{index}", LEASE_MS) for index in range(OWNERS)]
    knocking = [server.connect() for _ in range(CONNECTS)]
    wait_until(lambda: server.descriptors() > OWNERS + 5, "the server accepts what it can")
    server.settled_descriptors()
    yield server, owners, knocking
    for connection in owners + knocking:
        connection.close()


def beat(owners):
    for owner in owners:
        owner.heartbeat()
    for owner in owners:
        owner.expect_acquired()


def test_exhausted_server_neither_spins_nor_floods_its_log(exhausted):
    server, owners, _ = exhausted
    cpu, lines, started_at = procfs.cpu_seconds(server.pid), len(server.lines()), time.monotonic()
    while time.monotonic() - started_at < 5:
        beat(owners)
        time.sleep(0.5)
    share = (procfs.cpu_seconds(server.pid) - cpu) / (time.monotonic() - started_at)
    assert share < 0.05, f"{share:.1%} of a CPU"
    assert len(server.lines()) - lines <= 1, server.lines()[lines:]
    assert any("descriptor" in line or "open files" in line for line in server.lines()), "the log says nothing"


def test_exhausted_server_keeps_descriptors_in_reserve(exhausted):
    server, _, _ = exhausted
    stays_true(lambda: server.descriptors() < LIMIT, "some descriptors are kept", for_seconds=0.5)


def test_exhausted_server_loses_no_owner_and_recovers(exhausted):
    server, owners, knocking = exhausted
    beat(owners)
    for connection in knocking:
        connection.close()
    freed_at = time.monotonic()
    with Connection(server.address) as fresh:
        fresh.acquire("after-exhaustion").expect_acquired(within=2)
        assert fresh.received_at - freed_at < 1
    beat(owners)


def test_claims_in_the_backlog_are_served_when_owners_leave(exhausted):
    """Nothing but descriptors is missing: those who wait in the backlog get theirs in turn."""
    server, owners, knocking = exhausted
    late = [server.connect() for _ in range(5)]
    for index, client in enumerate(late):
        client.acquire(f"late-{index}")
    for connection in knocking:
        connection.reset()
    knocking.clear()
    freed_at = time.monotonic()
    for client in late:
        client.expect_acquired(within=2)
        assert client.received_at - freed_at < 1
        client.close()
    beat(owners)


def test_a_backlog_of_clients_that_gave_up_keeps_nobody_waiting(start_server, threads):
    """One descriptor comes free, and all who stand before the newcomer have left again: none of them takes longer
    than it takes to see that."""
    server = start_server("-threads", threads, before_exec=limit_descriptors)
    listening = next(record for record in server.records() if record["msg"] == "listening")
    owners = [server.owner(f"owner-{index}", 60_000) for index in range(int(listening["connections_max"]))]
    for index in range(300):
        with server.connect() as impatient:
            impatient.acquire(f"gave-up-{index}", LEASE_MS)
    with server.connect() as patient:
        patient.acquire("patient")
        freed_at = time.monotonic()
        owners.pop().close()
        patient.expect_acquired(within=10)
        assert patient.received_at - freed_at < 1
    for owner in owners:
        owner.heartbeat().expect_acquired()
        owner.close()


def test_exhaustion_comes_and_goes(start_server):
    server = start_server("-io-timeout", "1m", before_exec=limit_descriptors)
    owner = server.owner("constant")
    for _ in range(10):
        crowd = [server.connect() for _ in range(CONNECTS)]
        owner.heartbeat().expect_acquired()
        for client in crowd:
            client.reset()
        owner.heartbeat().expect_acquired()
    with server.connect() as client:
        client.acquire("at the end").expect_acquired(within=5)
    owner.close()


def test_exhausted_server_shuts_down_in_order(start_server):
    server = start_server("-io-timeout", "1s", before_exec=limit_descriptors)
    owner = server.owner("told")
    crowd = [server.connect() for _ in range(CONNECTS)]
    wait_until(lambda: server.descriptors() > 40, "the server accepts what it can")
    server.signal(15)
    owner.expect_error(0x01)
    owner.close()
    assert server.wait_exit(within=5) == 0
    for client in crowd:
        client.close()


def test_a_backlog_that_no_descriptor_was_left_for_hears_of_the_shutdown(exhausted):
    """Spec, section 5: every connection not yet admitted gets 0x01, those in the backlog too."""
    server, owners, knocking = exhausted
    server.signal(15)
    for connection in owners + knocking:
        connection.expect_error(0x01)
        connection.close()
    assert server.wait_exit() == 0


def test_a_connection_that_the_system_refuses_to_watch_is_closed_and_no_other(start_server):
    """epoll has a limit of its own (fs.epoll.max_user_watches): its refusal is one connection's end."""
    server = start_server("-threads", "1")
    with injected(shard_threads(server.pid)[0], "epoll_ctl", "error=ENOSPC:when=1"):
        with server.connect() as refused:
            refused.expect_end()
        with server.owner("later") as owner:
            owner.heartbeat().expect_acquired()
