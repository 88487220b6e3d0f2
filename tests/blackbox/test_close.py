"""How sessions end: the peer's word ends them at once, and an ERROR always arrives."""

import socket
import time

import pytest

from support import procfs
from support.protocol import (
    DUPLICATE_ACQUIRE,
    HEARTBEAT_FRAME,
    UNKNOWN_TYPE,
    Eof,
    Error,
    acquire_frame,
)
from support.waiting import scaled, tried_again, wait_until

AT_ONCE = 0.05
MEBIBYTE = 1 << 20
LINGER_BOUND = 4 * MEBIBYTE

ENDINGS = {
    "close": lambda owner: owner.close(),
    "half close": lambda owner: owner.half_close(),
    "reset": lambda owner: owner.reset(),
    "error": lambda owner: owner.send(b"\x7f"),
    "duplicate": lambda owner: owner.send(b"\x01"),
}


@tried_again
@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS.keys())
def test_lock_moves_on_at_once(server, end):
    owner = server.owner("moves-on")
    with server.connect() as waiter:
        waiter.queue("moves-on")
        ended_at = time.monotonic()
        end(owner)
        waiter.expect_acquired()
        assert waiter.received_at - ended_at < AT_ONCE
    owner.close()


@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS.keys())
def test_place_in_the_queue_is_given_up_at_once(server, end):
    with server.connect() as owner, server.connect() as last:
        owner.own("gives-up")
        leaver = server.waiter("gives-up")
        last.queue("gives-up")
        end(leaver)
        owner.heartbeat().expect_acquired()
        owner.close()
        last.expect_acquired(within=2)
        leaver.close()


def test_half_close_is_answered_with_the_end(server):
    """The client could still read; the server says nothing more than what was due, and closes."""
    with server.connect() as client:
        client.own("half")
        client.half_close()
        client.expect_eof(within=1)


def test_connection_that_never_spoke_may_half_close(server):
    with server.connect() as client:
        client.half_close()
        client.expect_eof(within=1)


@pytest.mark.parametrize("sent", range(1, 12))
def test_connection_that_leaves_inside_its_acquire(server, sent):
    """No answer is due to half a message, and no claim comes of it."""
    with server.connect() as client:
        client.send(acquire_frame("half-said")[:sent])
        client.half_close()
        client.expect_eof(within=1)
    with server.connect() as client:
        client.own("half-said")


# --- an ERROR must reach the client

CULPRITS = {
    "first message": (b"", UNKNOWN_TYPE),
    "session": (acquire_frame("culprit"), UNKNOWN_TYPE),
}


@pytest.mark.parametrize("size", [1, 1000, 100_000, LINGER_BOUND - 64 * 1024], ids="{} bytes".format)
@pytest.mark.parametrize("before, code", CULPRITS.values(), ids=CULPRITS.keys())
def test_error_arrives_despite_unread_input(server, before, code, size):
    """A socket closed with unread input makes the kernel send RST, which can destroy the ERROR."""
    with server.connect() as client:
        if before:
            client.send(before)
            client.expect_acquired()
        assert client.send(b"\x7f" * size), "the server did not take what came after the ERROR"
        client.half_close()
        client.expect_error(code)
        client.expect_eof()


def test_error_arrives_when_the_rest_comes_later(server):
    """The client goes on sending after the ERROR was sent, and reads only then."""
    with server.connect() as client:
        client.send(b"\x7f")
        for _ in range(20):
            time.sleep(0.01)
            assert client.send(b"more"), "reset while it still spoke"
        client.half_close()
        client.expect_refused(UNKNOWN_TYPE)


def test_error_arrives_in_a_thousand_noisy_ends(server):
    """Each with input behind the culprit, some of it still on its way while the server answers."""
    for index in range(scaled(500)):
        with server.connect() as client:
            client.send(acquire_frame("noisy", 5000) + b"\x01" + b"\x02" * (index * 37 % 5000))
            client.send(b"\x02" * 100)
            frames = []
            while not frames or not isinstance(frames[-1], Error):
                frames.append(client.next_frame())
            assert frames[-1].code == DUPLICATE_ACQUIRE
            assert client.next_frame() == Eof()


def test_end_of_stream_follows_the_error_at_once(start_server):
    """The sending side is shut down before the linger, not after it."""
    server = start_server("-io-timeout", "30s")
    with server.connect() as client:
        client.send(b"\x7f")
        client.expect_refused(UNKNOWN_TYPE, within=1)


def test_linger_is_over_when_the_peer_has_closed(start_server):
    server = start_server("-io-timeout", "30s")
    idle = server.settled_descriptors()
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.send(b"\x7f")
        client.expect_refused(UNKNOWN_TYPE)
    wait_until(lambda: server.descriptors() == idle + len(clients), "the closes linger")
    for index, client in enumerate(clients):
        client.close() if index % 2 else client.reset()
    server.wait_descriptors(idle, within=2)


def test_linger_ends_at_the_io_timeout(start_server, threads):
    """However little the peer goes on sending: a byte at a time does not extend it."""
    server = start_server("-io-timeout", "600ms", "-threads", threads)
    idle = server.settled_descriptors()
    with server.connect() as silent, server.connect() as trickling:
        started_at = time.monotonic()
        for client in (silent, trickling):
            client.send(b"\x7f")
            client.expect_refused(UNKNOWN_TYPE)
        assert server.descriptors() == idle + 2, "no lingering close"

        def closed():
            trickling.send_available(b"x")
            return server.descriptors() <= idle

        wait_until(closed, "the linger ends", within=3, interval=0.02)
        assert 0.5 <= time.monotonic() - started_at < 2


def test_linger_reads_no_more_than_its_bound(start_server):
    server = start_server("-io-timeout", "60s")
    with server.connect() as client:
        client.send(b"\x7f")
        client.expect_refused(UNKNOWN_TYPE)
        sent = 0
        chunk = bytes(64 * 1024)
        deadline = time.monotonic() + 10
        while (taken := client.send_available(chunk)) is not None:
            sent += taken
            assert sent < 64 * MEBIBYTE, "the server discards without a bound"
            assert time.monotonic() < deadline, f"neither read nor closed after {sent} bytes"
        assert sent >= LINGER_BOUND - len(chunk)


def test_linger_delays_nobody(start_server, threads):
    """The lock moves on in the turn of the ERROR, though its old owner stays and sends."""
    server = start_server("-io-timeout", "30s", "-threads", threads)
    with server.connect() as culprit, server.connect() as waiter:
        culprit.own("lingering")
        waiter.queue("lingering")
        culprit.send(b"\x7f" + bytes(100_000))
        waiter.expect_acquired(within=1)
        culprit.send(bytes(100_000))
        waiter.heartbeat().expect_acquired(within=1)


# --- sockets


def test_server_sets_no_keepalive(server):
    """A keepalive would let the kernel judge a session; only its lease may."""
    with server.connect() as client:
        client.own("no-keepalive")
        lines = procfs.sockets_of_port(server.port, "-o", "state", "established")
        assert lines, "ss shows the connection"
        assert not any("keepalive" in line for line in lines), lines


@tried_again
def test_frames_are_not_held_back(server):
    """TCP_NODELAY: a small frame does not wait until the one before it is acknowledged, which the client's
    kernel may delay by 40 ms."""
    slowest = 0.0
    with server.connect() as client:
        client.own("no-delay")
        for _ in range(30):
            client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            client.heartbeat()
            client.expect_acquired()
            sent_at = time.monotonic()
            client.heartbeat()  # no data of ours carries an acknowledgement of the answer to this one
            client.expect_acquired()
            client.heartbeat()
            client.expect_acquired()
            slowest = max(slowest, client.received_at - sent_at)
            owner, waiter = server.owner("no-delay-push"), server.connect()
            waiter.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            waiter.queue("no-delay-push")
            left_at = time.monotonic()
            owner.close()
            waiter.expect_acquired()
            slowest = max(slowest, waiter.received_at - left_at)
            waiter.close()
    assert slowest < 0.03, f"{slowest * 1000:.1f} ms"


@pytest.mark.parametrize("how", ["close", "reset"])
def test_probes_leave_nothing_behind(server, how):
    """Case S15, plain: a thousand probes; no descriptor left and not a warning in the log."""
    idle = server.settled_descriptors()
    for _ in range(scaled(1000)):
        probe = server.connect()
        probe.close() if how == "close" else probe.reset()
    server.wait_descriptors(idle)
    loud = [line for line in server.records() if line["level"] in ("warn", "error")]
    assert not loud, loud[:5]
    with server.connect() as client:
        client.own("after-the-probes")


def test_ends_leave_nothing_behind(server):
    """Each kind of end of each kind of session, many times over: the same number of descriptors."""
    idle = server.settled_descriptors()
    for _ in range(scaled(100)):
        for end in ENDINGS.values():
            owner = server.owner("leaks")
            waiter = server.waiter("leaks")
            end(waiter)
            end(owner)
            owner.close()
            waiter.close()
    server.wait_descriptors(idle)


def test_acquire_and_leave_in_one_breath(server):
    """A claim whose peer is gone before the server looks leaves neither owner nor waiter."""
    for index in range(scaled(200)):
        name = f"breath-{index % 3}"
        client = server.connect()
        client.send(acquire_frame(name) + HEARTBEAT_FRAME * (index % 4))
        client.close() if index % 2 else client.reset()
    for index in range(3):
        with server.connect() as client:
            client.acquire(f"breath-{index}")
            frame = client.next_frame()
            if frame.__class__.__name__ == "Waiting":
                client.expect_acquired(within=2)
