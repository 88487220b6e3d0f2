"""Case S7: lengths, truncations and noise. A code where a reply is possible, a clean end, flat memory."""

import random

import pytest

from support import procfs
from support.protocol import (
    EMPTY_NAME,
    NAME_TOO_LONG,
    Acquired,
    Eof,
    Error,
    Waiting,
    acquire_frame,
)
from support.server import frees_at_once
from support.waiting import scaled

MEBIBYTE = 1 << 20


@pytest.mark.parametrize("name_len, code", [(0, EMPTY_NAME), (1, None), (255, None), (256, NAME_TOO_LONG), (65535, NAME_TOO_LONG)])
def test_name_lengths(server, name_len, code):
    with server.connect() as client:
        client.send(acquire_frame(b"n" * name_len))
        if code is None:
            client.expect_acquired()
        else:
            client.expect_refused(code)


def test_truncated_frames_end_cleanly(server):
    frame = acquire_frame("truncated")
    for length in range(len(frame)):
        with server.connect() as client:
            client.send(frame[:length])
            client.half_close()
            assert client.all_frames() == [Eof()]
    with server.connect() as client:
        client.own("truncated")


def check_well_formed(frames):
    """At most one ERROR, and nothing behind it; WAITING never after ACQUIRED; then a clean end."""
    assert frames[-1] == Eof(), frames
    body = frames[:-1]
    if body and isinstance(body[-1], Error):
        body.pop()
    states = [type(frame) for frame in body]
    assert all(state in (Waiting, Acquired) for state in states), frames
    assert states == sorted(states, key=lambda state: state is Acquired), frames


def noise(random_numbers):
    kind = random_numbers.randrange(4)
    if kind == 0:
        return random_numbers.randbytes(random_numbers.randrange(1, 400))
    if kind == 1:
        return bytes([1, 1]) + random_numbers.randbytes(random_numbers.randrange(0, 40))
    frame = bytearray(acquire_frame(random_numbers.randbytes(4).hex(), random_numbers.randrange(1, 2**32)))
    if kind == 2:
        frame[random_numbers.randrange(len(frame))] = random_numbers.randrange(256)
        return bytes(frame)
    return bytes(frame) + bytes(random_numbers.choice([2, 2, 2, 2, 1, 0x11]) for _ in range(20))


def test_noise(server):
    seed = 20260301
    random_numbers = random.Random(seed)
    for number in range(scaled(600)):
        with server.connect() as client:
            data = noise(random_numbers)
            at = random_numbers.randrange(len(data) + 1)
            client.send(data[:at])
            client.send(data[at:])
            client.half_close()
            try:
                check_well_formed(client.all_frames())
            except AssertionError as failure:
                raise AssertionError(f"seed {seed}, connection {number}, {data.hex()}: {failure}") from None
    with server.connect() as client:
        client.own("after the noise")


def test_memory_is_flat(start_server, threads):
    """Names that come and go, refused connections and noise leave no memory behind."""
    server = start_server("-threads", threads, env=frees_at_once())

    def traffic(rounds, salt):
        for index in range(rounds):
            with server.connect() as client:
                client.own(f"{salt}-{index}-" + "x" * 200)
                client.half_close()
                client.expect_eof()
            with server.connect() as client:
                client.send(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 2000)
                client.expect_error(0x13)

    rounds = scaled(3000, at_least=300)
    traffic(rounds // 2, "warm")
    before = procfs.resident_bytes(server.pid)
    traffic(rounds, "measured")
    grown = procfs.resident_bytes(server.pid) - before
    assert grown < 2 * MEBIBYTE, f"{grown / 1024:.0f} KiB more after {rounds} locks that are gone"
