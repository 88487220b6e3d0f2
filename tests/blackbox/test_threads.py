"""Shards: a connection moves once to the thread of its name, and nothing shows from outside."""

import itertools
import time

import pytest

from support import procfs
from support.protocol import HEARTBEAT_FRAME, Acquired, Eof, Error, Waiting, acquire_frame
from support.waiting import NeverAllowed, scaled, wait_until


@pytest.fixture(params=["1", "2", "4"], ids="threads{}".format)
def sharded(start_server, request):
    return start_server("-threads", request.param)


def test_names_are_spread_over_the_threads(start_server):
    """Four threads and heartbeats for a thousand names: each shard has its part of the work."""
    server = start_server("-threads", "4")
    sessions = [server.owner(f"spread-{index}") for index in range(200)]
    before = {tid: procfs.thread_switches(server.pid, tid) for tid in procfs.threads(server.pid)}
    for _ in range(10):
        for session in sessions:
            session.heartbeat()
            session.expect_acquired()
    turns = [procfs.thread_switches(server.pid, tid) - count for tid, count in before.items()]
    assert sum(count >= 50 for count in turns) == 4, turns
    for session in sessions:
        session.close()


def test_everything_of_one_name_meets_in_one_place(sharded):
    """Claims that arrive on different threads at the same time: one owner, all others told WAITING."""
    for round_number in range(scaled(30)):
        clients = [sharded.connect() for _ in range(16)]
        frame = acquire_frame(f"meet-{round_number}")
        for client in clients:
            client.send(frame)
        frames = [client.next_frame() for client in clients]
        owners = [client for client, got in zip(clients, frames) if isinstance(got, Acquired)]
        if len(owners) != 1:
            raise NeverAllowed(f"{len(owners)} owners: {frames}")
        served = 0
        left = {client: got for client, got in zip(clients, frames)}
        current = owners[0]
        while True:
            served += 1
            current.close()
            del left[current]
            if not left:
                break
            granted = []

            def promoted():
                granted.extend(client for client in left if isinstance(client.poll(), Acquired))
                return granted

            wait_until(promoted, "the next owner", interval=0.0002)
            if len(granted) != 1:
                raise NeverAllowed(f"{len(granted)} promoted at once")
            current = granted[0]
        assert served == len(clients)


def test_heartbeats_travel_with_a_connection_that_moves(sharded):
    """In the segment of the ACQUIRE, right behind it, and while the connection is on its way."""
    for index in range(scaled(200)):
        with sharded.connect() as client:
            together, behind = index % 4, index % 3
            client.send(acquire_frame(f"moving-{index}") + HEARTBEAT_FRAME * together)
            for _ in range(behind):
                client.send(HEARTBEAT_FRAME)
            token = client.expect_acquired()
            for _ in range(together + behind):
                client.expect_acquired(token)
            assert client.poll() is None


def test_end_travels_with_a_connection_that_moves(sharded):
    """Whatever the end is: the messages before it are answered, and the lock is free again."""
    for index in range(scaled(200)):
        name = f"moving-end-{index % 10}"
        client = sharded.connect()
        client.send(acquire_frame(name) + HEARTBEAT_FRAME)
        if index % 4 == 0:
            client.half_close()
            frames = client.all_frames()
            assert frames[-1] == Eof() and len(frames) >= 3, frames
        elif index % 4 == 1:
            client.send(b"\x7f")
            frames = client.all_frames()
            assert isinstance(frames[-2], Error) and frames[-1] == Eof(), frames
        elif index % 4 == 2:
            client.reset()
        client.close()
    for index in range(10):
        with sharded.connect() as client:
            client.acquire(f"moving-end-{index}")
            while client.next_frame(within=2) == Waiting():
                pass


def test_expiry_on_every_thread(sharded):
    sessions = [sharded.owner(f"expire-{index}", 150) for index in range(40)]
    waiters = [sharded.waiter(f"expire-{index}") for index in range(40)]
    for session in sessions:
        session.expect_eof(within=2)
        if session.received_at - session.sent_at <= 0.15:
            raise NeverAllowed("an early expiry")
        session.close()
    for waiter in waiters:
        waiter.expect_acquired(within=1)
        waiter.close()


def test_tokens_rise_over_threads(sharded):
    """Grants one after the other on different shards; and those asked for together are all different."""
    previous = 0
    for index in range(scaled(200)):
        with sharded.connect() as client:
            token = client.own(f"shard-token-{index}")
            if token <= previous:
                raise NeverAllowed(f"token {token} after {previous}")
            previous = token
    clients = [sharded.connect() for _ in range(100)]
    for index, client in enumerate(clients):
        client.send(acquire_frame(f"together-{index}"))
    tokens = [client.expect_acquired() for client in clients]
    if len(set(tokens)) != len(tokens) or min(tokens) <= previous:
        raise NeverAllowed(f"tokens that are not new: {sorted(tokens)}")
    for client in clients:
        client.close()


def test_handover_on_every_thread(sharded):
    pairs = [(sharded.owner(f"handover-{index}"), sharded.waiter(f"handover-{index}")) for index in range(40)]
    for owner, _ in pairs:
        owner.close()
    for _, waiter in pairs:
        waiter.expect_acquired(within=1)
        waiter.close()


def test_idle_server_is_idle(sharded):
    """No polling: with sessions of long leases that say nothing, the server does nothing."""
    sessions = [sharded.owner(f"idle-{index}") for index in range(50)]
    before = procfs.cpu_seconds(sharded.pid)
    turns = sum(procfs.thread_switches(sharded.pid, tid) for tid in procfs.threads(sharded.pid))
    time.sleep(2)
    assert procfs.cpu_seconds(sharded.pid) - before <= 0.03
    turned = sum(procfs.thread_switches(sharded.pid, tid) for tid in procfs.threads(sharded.pid)) - turns
    assert turned < 40 * len(procfs.threads(sharded.pid)), f"{turned} turns in two idle seconds"
    for session in sessions:
        session.close()


def test_more_threads_than_cores(start_server):
    server = start_server("-threads", "16")
    for index in itertools.islice(itertools.count(), 100):
        server.owner(f"sixteen-{index}").close()
