"""Fencing tokens: rising over all locks, close to the wall clock, and never back with it."""

import time

import pytest

from support.protocol import Acquired, Eof, Waiting
from support.waiting import NeverAllowed, scaled, tried_again
from support.wall_clock import WallClock

HOUR = 3600


def milliseconds():
    return time.time() * 1000


def grant(server, name="token"):
    """The token of one grant that is over again."""
    with server.connect() as client:
        return client.own(name)


@pytest.fixture
def clock(tmp_path):
    return WallClock(tmp_path)




def test_tokens_rise_over_all_locks(server):
    previous = 0
    for index in range(scaled(500)):
        token = grant(server, f"lock-{index % 7}")
        assert token > previous
        previous = token


def test_tokens_rise_over_promotions_and_grants_together(server):
    tokens = []
    for name in ("left", "right"):
        owner, waiter = server.owner(name), server.waiter(name)
        owner.close()
        tokens.append(waiter.expect_acquired())
        tokens.append(grant(server, f"{name}-other"))
        waiter.close()
    assert tokens == sorted(set(tokens))


def test_token_is_the_time_of_the_grant_in_milliseconds(server):
    for _ in range(20):
        before = milliseconds()
        token = grant(server)
        after = milliseconds()
        assert int(before) << 10 <= token < (int(after) + 1) << 10
        assert token < 2**53
        time.sleep(0.002)  # so that the next grant falls into another millisecond


def test_first_grant_of_a_millisecond_ends_in_zeros(server):
    """token = max(previous + 1, ms << 10): with a millisecond between grants the second term wins."""
    for _ in range(20):
        assert grant(server) % 1024 == 0
        time.sleep(0.003)


def test_token_of_a_promotion_is_of_its_own_grant(server):
    owner, waiter = server.owner("moment"), server.waiter("moment")
    time.sleep(0.05)
    before = milliseconds()
    owner.close()
    assert waiter.expect_acquired() >= int(before) << 10
    waiter.close()


def test_wall_clock_back_an_hour(start_server, clock, threads):
    """The sequence goes on by one from where it was, and not a grant is late."""
    server = start_server("-threads", threads, env=clock.environment())
    previous = grant(server)
    assert abs((previous >> 10) - milliseconds()) < 5000, "the server does not see the test's clock"
    clock.shift(-HOUR)
    for index in range(scaled(300)):
        token = grant(server, f"lock-{index % 5}")
        if token != previous + 1:
            raise NeverAllowed(f"after {previous} the wall clock went back an hour, then came {token}")
        previous = token


def test_wall_clock_forward_an_hour_and_back(start_server, clock):
    server = start_server(env=clock.environment())
    first = grant(server)
    clock.shift(HOUR)
    ahead = grant(server)
    assert abs((ahead >> 10) - milliseconds() - HOUR * 1000) < 5000
    assert ahead > first
    clock.shift(0)
    for step in range(1, 50):
        assert grant(server) == ahead + step


def test_zero_is_never_a_token(start_server, clock):
    """A machine without a clock battery starts in 1970."""
    clock.set_to_epoch()
    server = start_server(env=clock.environment())
    assert 0 < grant(server) < 3_600_000 << 10


@tried_again
def test_wall_clock_steps_touch_no_session(start_server, clock, threads):
    """Case S14: an hour either way; no expiry, no stall, and leases run on as before."""
    server = start_server("-threads", threads, env=clock.environment())
    lease_ms = 600
    sessions = [server.owner(f"stepped-{index}", lease_ms) for index in range(4)]
    sessions += [server.waiter(f"stepped-{index}", lease_ms) for index in range(4)]
    for shift in (HOUR, -HOUR, 24 * HOUR, 0):
        clock.shift(shift)
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            for session in sessions:
                sent_at = time.monotonic()
                session.heartbeat()
                frame = session.next_frame()
                assert isinstance(frame, (Acquired, Waiting)), frame
                assert time.monotonic() - sent_at < 0.3, "a stall"
            time.sleep(0.05)
    clock.shift(-HOUR)
    silent_since = time.monotonic()
    owner = sessions[0]
    owner.heartbeat().expect_acquired()
    clock.shift(HOUR)
    owner.expect_eof()
    silent_for = owner.received_at - silent_since
    assert lease_ms / 1000 <= silent_for < lease_ms / 1000 + 0.25, silent_for
    for session in sessions:
        assert session.all_frames()[-1] == Eof()


def test_restart_right_away_gives_larger_tokens(start_server):
    previous = 0
    for _ in range(5):
        server = start_server()
        token = grant(server)
        assert token > previous
        previous = token
        server.kill()
