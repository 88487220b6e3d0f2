"""Protocol version 1 as bytes: a second implementation that shares nothing with the server's."""

import struct
from dataclasses import dataclass

ACQUIRE = 0x01
HEARTBEAT = 0x02
WAITING = 0x11
ACQUIRED = 0x12
ERROR = 0x13

SHUTTING_DOWN = 0x01
UNSUPPORTED_VERSION = 0x10
FIRST_NOT_ACQUIRE = 0x11
DUPLICATE_ACQUIRE = 0x12
UNKNOWN_TYPE = 0x13
EMPTY_NAME = 0x14
NAME_TOO_LONG = 0x15
NAME_NOT_UTF8 = 0x16
LEASE_NOT_POSITIVE = 0x17
NOT_AUTHORIZED = 0x18

CANONICAL_REASONS = {
    SHUTTING_DOWN: "server shutting down",
    UNSUPPORTED_VERSION: "unsupported protocol version",
    FIRST_NOT_ACQUIRE: "first message must be ACQUIRE",
    DUPLICATE_ACQUIRE: "duplicate ACQUIRE",
    EMPTY_NAME: "empty lock name",
    NAME_TOO_LONG: "lock name too long",
    NAME_NOT_UTF8: "lock name is not valid UTF-8",
    LEASE_NOT_POSITIVE: "lease must be positive",
    NOT_AUTHORIZED: "not authorized for lock",
}

LEASE_MAX_MS = 2**32 - 1
HEARTBEAT_FRAME = bytes([HEARTBEAT])


def as_bytes(name):
    return name.encode() if isinstance(name, str) else bytes(name)


def acquire_frame(name, lease_ms=60_000, *, version=1, name_len=None):
    """An ACQUIRE, right or deliberately wrong: version and name_len may lie."""
    raw = as_bytes(name)
    length = len(raw) if name_len is None else name_len
    return struct.pack(">BBIH", ACQUIRE, version, lease_ms, length) + raw


@dataclass(frozen=True)
class Waiting:
    pass


@dataclass(frozen=True)
class Acquired:
    token: int


@dataclass(frozen=True)
class Error:
    code: int
    reason: str


@dataclass(frozen=True)
class Eof:
    """The server ended the stream in good order (FIN; over TLS close_notify)."""


@dataclass(frozen=True)
class Reset:
    """The stream was torn down (RST), so that bytes may have been lost."""


@dataclass(frozen=True)
class Truncated:
    """TLS only: the server ended the stream with FIN and without close_notify."""


@dataclass(frozen=True)
class Alert:
    """TLS only: a fatal alert ended the stream. Its name is that of RFC 8446, in capitals."""

    name: str


@dataclass(frozen=True)
class Violation:
    """Bytes that no server may send."""

    what: str


ENDS = (Eof, Reset, Truncated, Alert)


def take_frame(buffer):
    """Removes the first whole frame from a bytearray; None if it is not all there yet."""
    if not buffer:
        return None
    kind = buffer[0]
    if kind == WAITING:
        del buffer[:1]
        return Waiting()
    if kind == ACQUIRED:
        if len(buffer) < 9:
            return None
        token = int.from_bytes(buffer[1:9], "big")
        del buffer[:9]
        return Acquired(token)
    if kind == ERROR:
        if len(buffer) < 3 or len(buffer) < 3 + buffer[2]:
            return None
        code, length = buffer[1], buffer[2]
        reason = bytes(buffer[3 : 3 + length])
        del buffer[: 3 + length]
        try:
            return Error(code, reason.decode("utf-8", "strict"))
        except UnicodeDecodeError:
            return Violation(f"ERROR {code:#04x} whose reason is not UTF-8: {reason!r}")
    return Violation(f"unknown frame type {kind:#04x} in {bytes(buffer[:32]).hex()}")
