"""The first message of a connection: what is checked, in which order, and that answers come at once."""

import pytest

from support.protocol import (
    CANONICAL_REASONS,
    DUPLICATE_ACQUIRE,
    EMPTY_NAME,
    FIRST_NOT_ACQUIRE,
    HEARTBEAT_FRAME,
    LEASE_MAX_MS,
    LEASE_NOT_POSITIVE,
    NAME_NOT_UTF8,
    NAME_TOO_LONG,
    UNKNOWN_TYPE,
    UNSUPPORTED_VERSION,
    acquire_frame,
)

BAD_UTF8 = {
    "lone continuation": b"\x80",
    "lone continuation after text": b"ab\xbf",
    "overlong slash of two": b"\xc0\xaf",
    "overlong NUL": b"\xc0\x80",
    "overlong DEL": b"\xc1\xbf",
    "overlong of three": b"\xe0\x9f\xbf",
    "overlong NUL of three": b"\xe0\x80\x80",
    "overlong of four": b"\xf0\x8f\xbf\xbf",
    "first surrogate": b"\xed\xa0\x80",
    "last surrogate": b"\xed\xbf\xbf",
    "surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "above U+10FFFF": b"\xf4\x90\x80\x80",
    "f5": b"\xf5\x80\x80\x80",
    "five bytes": b"\xf8\x88\x80\x80\x80",
    "fe": b"\xfe",
    "ff": b"\xff",
    "cut after one of two": b"\xc3",
    "cut after two of three": b"\xe2\x82",
    "cut after three of four": b"\xf0\x9f\x98",
    "cut in the middle": b"\xe2\x82a",
    "second byte no continuation": b"\xc3(",
    "Latin-1": "ü".encode("latin-1"),
    "cut at the length limit": b"a" * 254 + b"\xc3",
}

GOOD_NAMES = {
    "one byte": b"a",
    "255 bytes": b"x" * 255,
    "255 bytes that end in a character": b"y" * 253 + "ü".encode(),
    "NUL": b"\x00",
    "NUL inside": b"a\x00b",
    "controls": bytes(range(1, 32)) + b"\x7f",
    "last of two": "\u07ff".encode(),
    "first of three": "\u0800".encode(),
    "before surrogates": "\ud7ff".encode(),
    "after surrogates": "\ue000".encode(),
    "noncharacter": "\uffff".encode(),
    "first of four": "\U00010000".encode(),
    "last of all": "\U0010ffff".encode(),
    "byte order mark": "\ufeff".encode(),
    "right to left": "\u202e\u2066".encode(),
}


def test_heartbeat_first_is_refused(server):
    with server.connect() as client:
        client.send(HEARTBEAT_FRAME)
        client.expect_refused(FIRST_NOT_ACQUIRE, CANONICAL_REASONS[FIRST_NOT_ACQUIRE])


def test_any_other_first_byte_is_refused_by_name(server):
    for byte in set(range(256)) - {0x01, 0x02}:
        with server.connect() as client:
            client.send(bytes([byte]))
            client.expect_refused(UNKNOWN_TYPE, f"unknown message type: {byte:#04x}")


@pytest.mark.parametrize("version", [0, 2, 17, 255])
def test_version_is_refused_as_soon_as_it_is_read(server, version):
    with server.connect() as client:
        client.send(bytes([0x01, version]))
        client.expect_refused(UNSUPPORTED_VERSION, CANONICAL_REASONS[UNSUPPORTED_VERSION], within=1)


def test_version_is_refused_when_it_arrives_alone(server):
    with server.connect() as client:
        client.send(b"\x01")
        client.expect_silence(0.2)
        client.send(b"\x02")
        client.expect_refused(UNSUPPORTED_VERSION, within=1)


@pytest.mark.parametrize("name_len", [1, 255, 256, 65535], ids="name_len={}".format)
def test_lease_of_zero_is_refused_without_the_name(server, name_len):
    with server.connect() as client:
        client.send(acquire_frame(b"", 0, name_len=name_len))
        client.expect_refused(LEASE_NOT_POSITIVE, CANONICAL_REASONS[LEASE_NOT_POSITIVE], within=1)


def test_empty_name_is_refused(server):
    with server.connect() as client:
        client.send(acquire_frame(b"", 1000))
        client.expect_refused(EMPTY_NAME, CANONICAL_REASONS[EMPTY_NAME], within=1)


@pytest.mark.parametrize("name_len", [256, 257, 512, 32768, 65535])
def test_long_name_is_refused_without_waiting_for_it(server, name_len):
    with server.connect() as client:
        client.send(acquire_frame(b"", 1000, name_len=name_len))
        client.expect_refused(NAME_TOO_LONG, CANONICAL_REASONS[NAME_TOO_LONG], within=1)


@pytest.mark.parametrize("name_len", [256, 65535])
def test_long_name_is_refused_with_the_name_there(server, name_len):
    with server.connect() as client:
        client.send(acquire_frame(b"n" * name_len, 1000))
        client.expect_refused(NAME_TOO_LONG)


@pytest.mark.parametrize("name", BAD_UTF8.values(), ids=BAD_UTF8.keys())
def test_name_that_is_not_utf8_is_refused(one_server, name):
    with one_server.connect() as client:
        client.acquire(name)
        client.expect_refused(NAME_NOT_UTF8, CANONICAL_REASONS[NAME_NOT_UTF8])


@pytest.mark.parametrize("name", GOOD_NAMES.values(), ids=GOOD_NAMES.keys())
def test_name_that_is_legal_is_accepted_and_kept_whole(one_server, name):
    with one_server.connect() as first, one_server.connect() as second:
        first.own(name)
        second.queue(name)
        first.close()
        second.expect_acquired()


ORDER = {
    "version before lease, name": (acquire_frame(b"", 0, version=9), UNSUPPORTED_VERSION),
    "version before UTF-8": (acquire_frame(b"\xff", 1000, version=0), UNSUPPORTED_VERSION),
    "lease before empty name": (acquire_frame(b"", 0), LEASE_NOT_POSITIVE),
    "lease before long name": (acquire_frame(b"n" * 300, 0), LEASE_NOT_POSITIVE),
    "lease before UTF-8": (acquire_frame(b"\xff", 0), LEASE_NOT_POSITIVE),
    "length before UTF-8": (acquire_frame(b"\xff" * 256, 1000), NAME_TOO_LONG),
}


@pytest.mark.parametrize("frame, code", ORDER.values(), ids=ORDER.keys())
def test_order_of_checks(server, frame, code):
    with server.connect() as client:
        client.send(frame)
        client.expect_refused(code)


def test_what_follows_a_refusal_is_not_answered(server):
    """Exactly one ERROR, even if the bytes after it would deserve another, or would be a good claim."""
    with server.connect() as client:
        client.send(HEARTBEAT_FRAME + acquire_frame("after-refusal") + HEARTBEAT_FRAME * 3 + b"\x7f")
        client.expect_refused(FIRST_NOT_ACQUIRE)
    with server.connect() as client:
        client.own("after-refusal")


@pytest.mark.parametrize("where", ["owner", "waiter"])
def test_second_acquire_is_refused_at_its_first_byte(server, where):
    with server.connect() as owner, server.connect() as waiter, server.connect() as last:
        owner.own("double")
        waiter.queue("double")
        last.queue("double")
        culprit = owner if where == "owner" else waiter
        culprit.send(b"\x01")
        culprit.expect_refused(DUPLICATE_ACQUIRE, CANONICAL_REASONS[DUPLICATE_ACQUIRE], within=1)
        if where == "owner":
            waiter.expect_acquired(within=1)
            waiter.close()
        else:
            owner.heartbeat().expect_acquired()
            owner.close()
        last.expect_acquired(within=1)


def test_second_acquire_in_the_same_segment(server):
    with server.connect() as client:
        client.send(acquire_frame("same-segment") * 2)
        client.expect_acquired()
        client.expect_refused(DUPLICATE_ACQUIRE)
    with server.connect() as client:
        client.own("same-segment")


def test_any_unknown_byte_ends_a_session_and_its_lock_moves_on(server):
    for byte in set(range(256)) - {0x01, 0x02}:
        with server.connect() as owner, server.connect() as waiter:
            owner.own("unknown-bytes")
            waiter.queue("unknown-bytes")
            owner.send(bytes([byte]))
            owner.expect_refused(UNKNOWN_TYPE, f"unknown message type: {byte:#04x}")
            waiter.expect_acquired()


@pytest.mark.parametrize("byte", [0x00, 0x11, 0x13, 0xFF], ids="{:#04x}".format)
def test_unknown_byte_of_a_waiter_ends_only_the_waiter(server, byte):
    with server.connect() as owner, server.connect() as waiter, server.connect() as last:
        token = owner.own("waiter-noise")
        waiter.queue("waiter-noise")
        last.queue("waiter-noise")
        waiter.send(bytes([byte]))
        waiter.expect_refused(UNKNOWN_TYPE, f"unknown message type: {byte:#04x}")
        owner.heartbeat().expect_acquired(token)
        owner.close()
        last.expect_acquired()


def test_refused_claims_leave_no_trace(server):
    """A refused ACQUIRE neither owns the lock it names nor stands in its queue."""
    with server.connect() as client:
        client.send(acquire_frame("untouched", 0))
        client.expect_error(LEASE_NOT_POSITIVE)
        with server.connect() as other:
            other.acquire("untouched").expect_acquired()


def test_acquire_a_byte_at_a_time(server):
    name = "piecemeal/ü"
    with server.connect() as client:
        for byte in acquire_frame(name):
            client.send(bytes([byte]))
            client.wait_delivered()
        client.expect_acquired()
    with server.connect() as client:
        client.own(name)


def test_acquire_cut_at_every_byte(server):
    for at in range(1, len(acquire_frame("cut-00"))):
        frame = acquire_frame(f"cut-{at:02}")
        with server.connect() as client:
            client.send(frame[:at])
            client.wait_delivered()
            client.send(frame[at:] + HEARTBEAT_FRAME)
            token = client.expect_acquired()
            client.expect_acquired(token)


@pytest.mark.parametrize("lease_ms", [1000, LEASE_MAX_MS])
def test_leases_within_bounds_are_accepted(server, lease_ms):
    with server.connect() as client:
        token = client.own("bounds", lease_ms)
        client.expect_silence(0.3)
        client.heartbeat().expect_acquired(token)
