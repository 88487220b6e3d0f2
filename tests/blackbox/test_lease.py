"""Leases: a window of silence, never ended early, late by at most 5 ms, judged on the monotonic clock.

Every check of "never early" starts from a reading taken before the last message was handed to the
kernel, so nothing but the server can break it. Every check of "late" starts from when its answer was
here, and may be tried again on a busy machine.
"""

import random
import select
import time

import pytest

from support.protocol import Acquired, Eof, Reset, Waiting
from support.waiting import NeverAllowed, scaled, tried_again, wait_until

LATE_AT_MOST = 0.005


def seconds(lease_ms):
    return lease_ms / 1000


def check_not_early(ended_at, last_sent_at, lease_ms):
    if ended_at - last_sent_at <= seconds(lease_ms):
        raise NeverAllowed(f"expired after {ended_at - last_sent_at:.6f} s of a lease of {lease_ms} ms")


def watch_expiry(connection, lease_ms, answered_at):
    """Waits for the silent end of a session whose last message was answered: how late it was."""
    connection.expect_eof(within=seconds(lease_ms) + 5)
    check_not_early(connection.received_at, connection.sent_at, lease_ms)
    return connection.received_at - answered_at - seconds(lease_ms)


@tried_again
@pytest.mark.parametrize("lease_ms", [1, 2, 3, 7, 20, 50, 99, 250, 1000])
def test_silent_owner_expires_at_its_lease(server, lease_ms):
    """Case S9 among them: a silent lease of 1 ms ends between 1 and 6 ms. No ERROR comes first."""
    for _ in range(5 if lease_ms < 100 else 2):
        with server.connect() as client:
            client.own("silent", lease_ms)
            late = watch_expiry(client, lease_ms, client.received_at)
            assert late <= LATE_AT_MOST, f"{late * 1000:.2f} ms late"


@tried_again
@pytest.mark.parametrize("lease_ms", [1, 20, 150])
def test_next_owner_is_granted_when_the_lease_is_over(server, lease_ms):
    with server.connect() as owner, server.connect() as waiter:
        token = owner.own("handover", lease_ms)
        answered_at = owner.received_at
        waiter.acquire("handover")
        while (frame := waiter.next_frame()) == Waiting():  # unless the lease was over before it asked
            pass
        assert isinstance(frame, Acquired) and frame.token > token
        check_not_early(waiter.received_at, owner.sent_at, lease_ms)
        late = waiter.received_at - max(answered_at + seconds(lease_ms), waiter.sent_at)
        assert late <= LATE_AT_MOST, f"{late * 1000:.2f} ms late"
        owner.expect_eof()


@tried_again
def test_heartbeat_starts_the_whole_lease_again(server):
    lease_ms = 300
    with server.connect() as client:
        token = client.own("renewed", lease_ms)
        for _ in range(5):
            time.sleep(0.2)
            client.heartbeat().expect_acquired(token)
        late = watch_expiry(client, lease_ms, client.received_at)
        assert late <= LATE_AT_MOST, f"{late * 1000:.2f} ms late"


@tried_again
def test_waiter_expires_by_its_own_lease_and_the_rest_keep_their_order(server):
    with server.connect() as owner:
        owner.own("waiters-expire")
        first = server.waiter("waiters-expire")
        silent = server.waiter("waiters-expire", 150)
        answered_at = silent.received_at
        third = server.waiter("waiters-expire")
        late = watch_expiry(silent, 150, answered_at)
        assert late <= LATE_AT_MOST, f"{late * 1000:.2f} ms late"
        owner.heartbeat().expect_acquired()
        owner.close()
        first.expect_acquired()
        third.expect_silence(0.05)
        first.close()
        third.expect_acquired()
        third.close()
        silent.close()


@tried_again
def test_promotion_does_not_start_the_lease_again(server):
    """Only ACQUIRE and HEARTBEAT set lastSeen: a silent waiter promoted late is an owner for the rest only."""
    lease_ms = 400
    owner = server.owner("no-gift")
    with server.connect() as waiter:
        waiter.queue("no-gift", lease_ms)
        answered_at = waiter.received_at
        time.sleep(0.3)
        owner.close()
        waiter.expect_acquired()
        late = watch_expiry(waiter, lease_ms, answered_at)
        assert late <= LATE_AT_MOST, f"{late * 1000:.2f} ms late"


def test_heartbeats_of_a_waiter_keep_its_place(server):
    lease_ms = 300
    with server.connect() as owner, server.connect() as waiter, server.connect() as behind:
        owner.own("patience")
        waiter.queue("patience", lease_ms)
        behind.queue("patience")
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            time.sleep(0.05)
            waiter.heartbeat().expect_waiting()
        owner.close()
        waiter.expect_acquired()
        behind.expect_silence(0.05)


def test_every_session_has_its_own_lease(server):
    """Many leases at once, asked for in a shuffled order: each ends by its own, none early, none clamped."""
    leases = [5, 10, 25, 60, 61, 62, 100, 150, 200, 350, 500, 700, 900] * 4
    random.Random(3).shuffle(leases)
    sessions = {}
    for index, lease_ms in enumerate(leases):
        session = server.connect()
        session.acquire(f"own-lease-{index}", lease_ms)
        sessions[session] = lease_ms
    for session in sessions:
        session.expect_acquired()
    open_sessions = dict(sessions)
    deadline = time.monotonic() + 5
    while open_sessions:
        assert time.monotonic() < deadline, f"never expired: {sorted(open_sessions.values())}"
        for session in select.select(list(open_sessions), [], [], 0.5)[0]:
            session.expect_eof()
            check_not_early(session.received_at, session.sent_at, open_sessions.pop(session))
            session.close()


def test_longest_lease_is_not_clamped(server):
    """Its deadline is 49 days ahead; a silent second beside shorter ones must not reach it."""
    for lease_ms in (2**31 - 1, 2**31, 2**32 - 1):
        with server.connect() as client, server.connect() as short:
            client.own("longest", lease_ms)
            short.own("short", 30)
            short.expect_eof()
            client.expect_silence(0.5)
            client.heartbeat().expect_acquired()


@tried_again
def test_an_early_heartbeat_never_shortens_and_a_late_one_does_not_help(server):
    lease_ms = 100
    with server.connect() as client:
        client.own("late-heartbeat", lease_ms)
        client.heartbeat().expect_acquired()
        watch_expiry(client, lease_ms, client.received_at)
        client.heartbeat()
        client.expect_end()
    with server.connect() as client:
        client.own("late-heartbeat", lease_ms)


# --- the server's own pause is not the clients' silence


def check_alive(session):
    frame = session.next_frame()
    if isinstance(frame, (Eof, Reset)):
        raise NeverAllowed("ended although its heartbeats lay in the server's socket")
    assert isinstance(frame, (Acquired, Waiting)), frame


@tried_again
def test_paused_server_finds_the_heartbeats_before_it_judges(server):
    """Stopped for more than two leases while owners and waiters go on sending: nobody may be lost. They
    are more than an event loop takes from the kernel at a time, and its timer is due before them all."""
    lease_ms = 300
    pairs = 200
    sessions = []
    try:
        sessions += [server.owner(f"paused-{index}", lease_ms) for index in range(pairs)]
        sessions += [server.waiter(f"paused-{index}", lease_ms) for index in range(pairs)]
        pause_and_look(server, sessions)
    finally:
        for session in sessions:
            session.close()


def pause_and_look(server, sessions):
    for _ in range(scaled(3)):
        for session in sessions:
            session.heartbeat()
        for session in sessions:
            frame = session.next_frame()
            assert isinstance(frame, (Acquired, Waiting)), "it took longer than a lease to come so far"
        server.pause()
        try:
            time.sleep(0.8)
            for session in sessions:
                session.heartbeat()  # later than a lease after the last one, on the paused server's clock
        finally:
            server.resume()
        for session in sessions:
            check_alive(session)


def test_last_seen_is_read_after_the_receive(server):
    """Heartbeats that a paused server finds count from when it found them, not from when they were sent."""
    lease_ms = 800  # 24 claims, over TLS too, must be there within it on a busy machine
    sessions = [server.owner(f"found-late-{index}", lease_ms) for index in range(12)]
    sessions += [server.waiter(f"found-late-{index}", lease_ms) for index in range(12)]
    server.pause()
    try:
        for session in sessions:
            session.heartbeat()
        time.sleep(1.2)
        resumed_at = time.monotonic()
    finally:
        server.resume()
    for session in sessions[:12]:
        check_alive(session)
    for session in sessions[:12]:
        session.expect_eof()
        if session.received_at - resumed_at <= seconds(lease_ms):
            raise NeverAllowed(f"expired {session.received_at - resumed_at:.4f} s after its heartbeat was found")
    for session in sessions:
        session.close()


def test_acquires_that_a_paused_server_finds_have_a_whole_lease(server):
    lease_ms = 150
    server.pause()
    try:
        clients = [server.connect() for _ in range(10)]
        for index, client in enumerate(clients):
            client.acquire(f"asked-in-pause-{index}", lease_ms)
        time.sleep(0.4)
        resumed_at = time.monotonic()
    finally:
        server.resume()
    for client in clients:
        client.expect_acquired()
    for client in clients:
        client.expect_eof()
        if client.received_at - resumed_at <= seconds(lease_ms):
            raise NeverAllowed("the server counted its own pause")
        client.close()


def test_silent_sessions_are_over_after_a_pause(server):
    """A pause delays an expiry; it does not forgive one."""
    lease_ms = 200
    silent = [server.owner(f"pause-silent-{index}", lease_ms) for index in range(6)]
    waiters = [server.waiter(f"pause-silent-{index}") for index in range(6)]
    server.pause()
    try:
        time.sleep(0.5)
        resumed_at = time.monotonic()
    finally:
        server.resume()
    for waiter in waiters:
        waiter.expect_acquired(within=2)
        assert waiter.received_at - resumed_at < seconds(lease_ms), "the pause was taken as a sign of life"
    for session in silent:
        session.expect_eof()
        session.close()
    for waiter in waiters:
        waiter.close()


def test_many_short_pauses_lose_nobody(server):
    """Stopped and continued at random moments, often just around a deadline."""
    lease_ms = 300
    random_numbers = random.Random(11)
    sessions = [server.owner(f"stutter-{index}", lease_ms) for index in range(10)]
    sessions += [server.waiter(f"stutter-{index}", lease_ms) for index in range(10)]
    for _ in range(scaled(12, at_least=4)):
        for session in sessions:
            session.heartbeat()
        for session in sessions:
            check_alive(session)
        server.pause()
        try:
            time.sleep(seconds(lease_ms) + random_numbers.uniform(-0.02, 0.05))
            for session in sessions:
                session.heartbeat()
        finally:
            server.resume()
        for session in sessions:
            check_alive(session)
    for session in sessions:
        session.close()


def test_expiry_of_many_leaves_nothing_behind(server):
    idle = server.settled_descriptors()
    for _ in range(3):
        for index in range(100):
            server.connect().acquire(f"mass-{index % 10}", 20 + index)
        wait_until(lambda: server.descriptors() <= idle, "every expired session's descriptor is closed")
    with server.connect() as client:
        client.own("mass-0")
