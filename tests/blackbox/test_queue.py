"""The queue of a lock: first in, first out; and names that are told apart byte for byte."""

import time

import pytest

from support.waiting import scaled, tried_again


def close_all(connections):
    for connection in connections:
        connection.close()


def test_waiters_are_served_in_order(server):
    with server.connect() as owner:
        last_token = owner.own("order")
        waiters = [server.waiter("order") for _ in range(50)]
        owner.close()
        for index, waiter in enumerate(waiters):
            token = waiter.expect_acquired()
            assert token > last_token
            last_token = token
            assert all(other.poll() is None for other in waiters[index + 1 :])
            waiter.close()


def test_those_who_leave_the_queue_do_not_disturb_it(server):
    """From its head, its middle and its tail, by each way of leaving."""
    with server.connect() as owner:
        owner.own("leavers")
        waiters = [server.waiter("leavers") for _ in range(12)]
        waiters[0].close()
        waiters[4].reset()
        waiters[5].half_close()
        waiters[7].send(b"\x00")
        waiters[11].close()
        waiters[5].expect_eof()
        waiters[7].expect_error(0x13)
        stayed = [waiter for index, waiter in enumerate(waiters) if index not in (0, 4, 5, 7, 11)]
        for waiter in stayed:
            waiter.heartbeat().expect_waiting()
        late = server.waiter("leavers")
        owner.close()
        for waiter in [*stayed, late]:
            waiter.expect_acquired()
            waiter.close()
        close_all(waiters)


def test_a_new_claim_goes_to_the_tail(server):
    with server.connect() as owner, server.connect() as waiter:
        owner.own("tail")
        waiter.queue("tail")
        owner.close()
        again = server.waiter("tail")
        waiter.expect_acquired()
        waiter.close()
        again.expect_acquired()
        again.close()


def test_two_connections_of_one_process_are_two_claims(server):
    """Case S16: nothing about the peer makes two claims one."""
    with server.connect() as first, server.connect() as second:
        token = first.own("same-peer")
        second.queue("same-peer")
        first.heartbeat().expect_acquired(token)
        second.expect_silence(0.1)
        first.close()
        assert second.expect_acquired() > token


DIFFERENT_NAMES = [
    "a", "a/", "a/b", "ab", "A", "a ", " a", "a\x00", "\x00a", "a\n", "a\r\n", "ä", "a\u0308", "Ä", "ﬁ", "fi",
    "a" * 255, "a" * 254, "a" * 254 + "b", "b" + "a" * 254, "0", "00", "\x00", "\x00\x00", ".", "..", "*", "?",
]  # fmt: skip


def test_names_are_compared_byte_for_byte(server):
    """Case S8: nothing is trimmed, folded, normalised or cut."""
    owners = [server.owner(name) for name in DIFFERENT_NAMES]
    waiters = [server.waiter(name) for name in DIFFERENT_NAMES]
    for index, owner in enumerate(owners):
        owner.close()
        waiters[index].expect_acquired()
        assert all(waiter.poll() is None for waiter in waiters[index + 1 :])
    close_all(waiters)


def test_locks_do_not_wait_for_each_other(server):
    with server.connect() as owner, server.connect() as waiter:
        owner.own("busy")
        waiter.queue("busy")
        for index in range(200):
            with server.connect() as other:
                other.own(f"other-{index}")


def test_a_lock_without_claims_is_forgotten(server):
    for _ in range(50):
        with server.connect() as client:
            client.own("again")
            client.half_close()
            client.expect_eof()


@tried_again
def test_dead_waiter_costs_nothing(server):
    """Case S1: owner and three waiters; the middle one dies, then the owner leaves."""
    owner = server.owner("dead-waiter")
    first, dead, third = (server.waiter("dead-waiter") for _ in range(3))
    before = server.descriptors()
    dead.close()
    deadline = time.monotonic() + 0.1
    while server.descriptors() >= before:
        assert time.monotonic() < deadline, "a dead waiter still there after 100 ms"
        time.sleep(0.001)
    owner.close()
    first.expect_acquired()
    left_at = time.monotonic()
    first.close()
    third.expect_acquired()
    assert third.received_at - left_at < 0.05
    third.close()


@tried_again
@pytest.mark.parametrize("lease_ms", [400])
def test_silent_waiters_expire_in_parallel(server, lease_ms):
    """Case S1: five waiters that fell silent cost one lease together, not five."""
    owner = server.owner("five-silent")
    silent = [server.waiter("five-silent", lease_ms) for _ in range(5)]
    alive = server.waiter("five-silent")
    owner.close()
    left_at = time.monotonic()
    alive.expect_acquired()
    assert alive.received_at - left_at < lease_ms / 1000 + 0.1
    close_all([*silent, alive])


def test_a_long_queue_moves_from_end_to_end(server):
    """A thousand waiters, each leaving as soon as it is granted, and every other one before that."""
    count = scaled(1000, at_least=50)
    with server.connect() as owner:
        owner.own("long")
        waiters = [server.waiter("long") for _ in range(count)]
        for waiter in waiters[1::2]:
            waiter.close()
        owner.close()
        for waiter in waiters[0::2]:
            waiter.expect_acquired()
            waiter.close()
    with server.connect() as client:
        client.own("long")


@pytest.mark.parametrize("leave", ["close", "reset", "half_close"])
def test_owner_and_the_whole_front_of_the_queue_leave_together(server, leave):
    """They left while the server stood still, so it may promote one after the other that is gone."""
    owner = server.owner("front")
    front = [server.waiter("front") for _ in range(60)]
    alive, behind = server.waiter("front"), server.waiter("front")
    server.pause()
    try:
        for connection in [owner, *reversed(front)]:
            getattr(connection, leave)()
    finally:
        server.resume()
    token = alive.expect_acquired(within=2)
    alive.heartbeat().expect_acquired(token)
    assert behind.poll() is None
    alive.close()
    assert behind.expect_acquired(within=1) > token
    behind.close()
    close_all(front)
