"""One frame for each message, with the state at the moment it was handled, and one pushed ACQUIRED."""

import random
import socket
import time

import pytest

from support.protocol import (
    HEARTBEAT_FRAME,
    UNKNOWN_TYPE,
    Acquired,
    Eof,
    Error,
    Waiting,
    acquire_frame,
)
from support.waiting import scaled, tried_again


def test_free_lock_is_granted_without_waiting(server):
    with server.connect() as client:
        client.acquire("free").expect_acquired()
        client.expect_silence(0.1)


def test_each_heartbeat_is_answered_with_the_state(server):
    with server.connect() as owner, server.connect() as waiter:
        token = owner.own("states")
        waiter.queue("states")
        for _ in range(5):
            owner.heartbeat().expect_acquired(token)
            waiter.heartbeat().expect_waiting()
        owner.close()
        promoted = waiter.expect_acquired()
        assert promoted > token
        for _ in range(5):
            waiter.heartbeat().expect_acquired(promoted)
        waiter.expect_silence(0.1)


@pytest.mark.parametrize("heartbeats", [1, 2, 7, 500])
def test_heartbeats_in_the_segment_of_the_acquire_are_each_answered(server, heartbeats):
    with server.connect() as owner, server.connect() as waiter:
        owner.send(acquire_frame("joined") + HEARTBEAT_FRAME * heartbeats)
        token = owner.expect_acquired()
        for _ in range(heartbeats):
            owner.expect_acquired(token)
        owner.expect_silence(0.05)
        waiter.send(acquire_frame("joined") + HEARTBEAT_FRAME * heartbeats)
        for _ in range(heartbeats + 1):
            waiter.expect_waiting()
        waiter.expect_silence(0.05)
        owner.close()
        waiter.expect_acquired()
        waiter.expect_silence(0.05)


def test_ten_thousand_heartbeats_at_once(server):
    """Pipelining is not limited, and no reply is merged with another or lost."""
    with server.connect() as client:
        token = client.own("pipelined")
        client.heartbeat(10_000)
        for _ in range(10_000):
            client.expect_acquired(token)
        client.expect_silence(0.1)


@tried_again
def test_promotion_is_pushed_at_once_without_any_heartbeat(server):
    with server.connect() as owner, server.connect() as waiter:
        owner.own("push")
        waiter.queue("push")
        left_at = time.monotonic()
        owner.close()
        waiter.expect_acquired()
        assert waiter.received_at - left_at < 0.05
        waiter.expect_silence(0.1)


def test_promotion_races_with_heartbeats_in_flight(server):
    """However they meet: WAITING for each heartbeat handled before, ACQUIRED for each after, one push."""
    random_numbers = random.Random(7)
    for _ in range(scaled(200)):
        with server.connect() as owner, server.connect() as waiter:
            owner.own("race")
            waiter.queue("race")
            heartbeats = random_numbers.randrange(1, 6)
            close_after = random_numbers.randrange(0, heartbeats + 1)
            for index in range(heartbeats):
                if index == close_after:
                    owner.close()
                waiter.heartbeat()
            owner.close()
            frames = [waiter.next_frame() for _ in range(heartbeats + 1)]
            waiting = [frame for frame in frames if frame == Waiting()]
            acquired = frames[len(waiting) :]
            assert frames[: len(waiting)] == waiting, f"WAITING after ACQUIRED: {frames}"
            assert acquired and all(isinstance(frame, Acquired) for frame in acquired), frames
            assert len(set(acquired)) == 1, f"the token changed: {frames}"
            token = acquired[0].token
            waiter.heartbeat().expect_acquired(token)  # and so nothing more was on its way
            assert waiter.poll() is None


def test_promotion_of_one_who_left_a_heartbeat_behind(server):
    """The old owner's close and the waiter's heartbeat lie in the server's sockets together."""
    with server.connect() as owner, server.connect() as waiter:
        owner.own("together")
        waiter.queue("together")
        server.pause()
        try:
            waiter.heartbeat(3)
            owner.close()
        finally:
            server.resume()
        frames = [waiter.next_frame() for _ in range(4)]
        waits = frames.count(Waiting())
        assert frames[:waits] == [Waiting()] * waits
        assert len(set(frames[waits:])) == 1 and isinstance(frames[-1], Acquired)
        waiter.expect_silence(0.1)


def test_waiters_are_not_told_of_others(server):
    """A promotion is pushed to the promoted one only."""
    with server.connect() as owner, server.connect() as head, server.connect() as tail:
        owner.own("quiet")
        head.queue("quiet")
        tail.queue("quiet")
        owner.close()
        head.expect_acquired()
        tail.expect_silence(0.1)
        tail.heartbeat().expect_waiting()


def test_messages_before_a_fin_are_answered_in_order(server):
    with server.connect() as client:
        client.send(acquire_frame("farewell") + HEARTBEAT_FRAME * 3)
        client.half_close()
        frames = client.all_frames()
        assert [type(frame) for frame in frames] == [Acquired] * 4 + [Eof]
        assert len(set(frames[:4])) == 1
    with server.connect() as client:
        client.own("farewell")


def test_messages_of_a_waiter_before_a_fin(server):
    with server.connect() as owner, server.connect() as waiter, server.connect() as last:
        owner.own("farewell")
        waiter.send(acquire_frame("farewell") + HEARTBEAT_FRAME * 2)
        waiter.half_close()
        assert waiter.all_frames() == [Waiting(), Waiting(), Waiting(), Eof()]
        last.queue("farewell")
        owner.close()
        last.expect_acquired()


def test_error_before_a_fin(server):
    with server.connect() as client:
        client.send(acquire_frame("bad-farewell") + HEARTBEAT_FRAME + b"\x7f" + HEARTBEAT_FRAME)
        client.half_close()
        frames = client.all_frames()
        assert [type(frame) for frame in frames] == [Acquired, Acquired, Error, Eof]
        assert frames[2] == Error(UNKNOWN_TYPE, "unknown message type: 0x7f")


def test_farewell_in_one_turn_after_a_pause(server):
    """Everything, the FIN included, is in the socket before the server looks for the first time."""
    with server.connect() as client:
        server.pause()
        try:
            client.send(acquire_frame("late-look") + HEARTBEAT_FRAME)
            client.half_close()
        finally:
            server.resume()
        assert [type(frame) for frame in client.all_frames()] == [Acquired, Acquired, Eof]


def test_farewell_of_an_admitted_session_after_a_pause(server):
    with server.connect() as owner, server.connect() as waiter:
        token = owner.own("late-farewell")
        waiter.queue("late-farewell")
        server.pause()
        try:
            owner.heartbeat(2)
            owner.half_close()
        finally:
            server.resume()
        assert owner.all_frames() == [Acquired(token), Acquired(token), Eof()]
        waiter.expect_acquired()


def send_with_urgent_byte(client):
    """The kernel ends a receive before the urgent byte, which is no part of the stream."""
    client.sock.send(HEARTBEAT_FRAME)
    client.sock.send(b"!", socket.MSG_OOB)


def send_with_descriptor(client):
    """And behind the bytes that a descriptor came with."""
    socket.send_fds(client.sock, [HEARTBEAT_FRAME], [client.fileno()])


@pytest.mark.parametrize(
    ("transport", "send_first"),
    [("tcp", send_with_urgent_byte), ("unix", send_with_descriptor)],
    ids=["urgent data", "a descriptor"],
)
def test_what_lies_behind_a_receive_that_broke_off_is_answered(start_server, tmp_path, transport, send_first):
    server = start_server(listen=f"unix:{tmp_path}/m.sock") if transport == "unix" else start_server()
    with server.connect() as client:
        client.own("behind")
        for _ in range(10):
            server.pause()  # so that all of it is there when the server looks
            send_first(client)
            client.send(HEARTBEAT_FRAME * 3)
            server.resume()
            for _ in range(4):
                client.expect_acquired()
        client.expect_silence(0.1)
