"""One connection to the server, spoken by hand, with a deadline on everything."""

import array
import fcntl
import math
import select
import socket
import struct
import termios
import time

from .protocol import (
    ENDS,
    HEARTBEAT_FRAME,
    Acquired,
    Eof,
    Error,
    Reset,
    Violation,
    Waiting,
    acquire_frame,
    take_frame,
)
from .waiting import PATIENCE, wait_until

CONNECT_TIMEOUT = 5.0


def is_ready(sock, event, timeout):
    """Whether that happens within so many seconds. Any descriptor will do, where select() takes the first 1,024."""
    poller = select.poll()
    poller.register(sock, event)
    return bool(poller.poll(math.ceil(timeout * 1000)))


def open_socket(address, *, receive_buffer=None, source=None):
    """A connected stream socket. The address is (host, port) or the path of a Unix socket."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        target = address
    else:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        target = address
    try:
        if receive_buffer is not None:  # before connect, or the window is already agreed
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            sock.bind(source)
        sock.settimeout(CONNECT_TIMEOUT)
        sock.connect(target)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


class Connection:
    """Sends what it is told and reports what came back, one frame at a time.

    `sent_at` is a clock reading taken before the last send, `received_at` one taken after the receive
    that brought the frame last returned: together they bracket what the server can have seen.
    """

    def __init__(self, address, **options):
        self.sock = open_socket(address, **options)
        self.sent_at = None
        self.received_at = None
        self._buffer = bytearray()
        self._ended = None  # one of ENDS once seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self):
        return self.sock.fileno()

    @property
    def local_port(self):
        return self.sock.getsockname()[1]

    # --- what a client does

    def send(self, data, within=PATIENCE):
        """Sends all of it; returns False if the peer is gone."""
        self.sent_at = time.monotonic()
        deadline = self.sent_at + within
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view, socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                left = deadline - time.monotonic()
                assert left > 0, f"{len(view)} bytes not taken within {within} s"
                is_ready(self.sock, select.POLLOUT, left)
            except (ConnectionResetError, BrokenPipeError):
                return False
        return True

    def send_available(self, data):
        """Sends what the socket takes now; the number of bytes, 0 if none, None if the peer is gone."""
        try:
            return self.sock.send(data, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0
        except (ConnectionResetError, BrokenPipeError):
            return None

    def acquire(self, name, lease_ms=60_000):
        self.send(acquire_frame(name, lease_ms))
        return self

    def heartbeat(self, count=1):
        self.send(HEARTBEAT_FRAME * count)
        return self

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def wait_delivered(self, within=PATIENCE):
        """Until the peer's kernel has acknowledged every byte, so that the next send is a new segment."""

        def unsent():
            size = array.array("i", [0])
            fcntl.ioctl(self.sock, termios.TIOCOUTQ, size)
            return size[0]

        wait_until(lambda: unsent() == 0, "sent bytes acknowledged", within, interval=0.0005)

    # --- what came back

    def _receive(self, timeout):
        """Reads once if something comes in time; whether anything new is known."""
        if self._ended or not is_ready(self.sock, select.POLLIN, max(0.0, timeout)):
            return False
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data = None
        self.received_at = time.monotonic()
        if data:
            self._buffer += data
        else:
            self._ended = Reset() if data is None else Eof()
        return True

    def poll(self):
        """The next frame or end if it is already here, else None; never waits."""
        while True:
            frame = self._take()
            if frame is not None or not self._receive(0):
                return frame

    def _take(self):
        frame = take_frame(self._buffer)
        if frame is None and self._ended:
            if self._buffer:
                frame = Violation(f"the stream ended inside a frame: {bytes(self._buffer).hex()}")
                self._buffer.clear()
            else:
                frame = self._ended
        return frame

    def next_frame(self, within=PATIENCE):
        """The next frame or end; fails if none comes in time."""
        deadline = time.monotonic() + within
        while True:
            frame = self._take()
            if frame is not None:
                return frame
            left = deadline - time.monotonic()
            if not self._receive(left) and time.monotonic() >= deadline:
                raise AssertionError(
                    f"no frame within {within} s (in the buffer: {bytes(self._buffer).hex() or 'nothing'})"
                )

    def expect(self, expected, within=PATIENCE):
        got = self.next_frame(within)
        assert got == expected, f"expected {expected}, got {got}"

    def expect_waiting(self, within=PATIENCE):
        self.expect(Waiting(), within)

    def expect_acquired(self, token=None, within=PATIENCE):
        """The token; the one named, if one is."""
        got = self.next_frame(within)
        assert isinstance(got, Acquired), f"expected ACQUIRED, got {got}"
        assert got.token != 0, "zero is never a token"
        assert token is None or got.token == token, f"expected token {token}, got {got.token}"
        return got.token

    def wait_acquired(self, each_within=PATIENCE):
        """The token, in or behind the queue."""
        frame = self.next_frame(each_within)
        while frame == Waiting():
            frame = self.next_frame(each_within)
        assert isinstance(frame, Acquired), f"expected ACQUIRED, got {frame}"
        return frame.token

    def expect_error(self, code, reason=None, within=PATIENCE):
        """The reason; exactly the one named, if one is."""
        got = self.next_frame(within)
        assert isinstance(got, Error), f"expected ERROR {code:#04x}, got {got}"
        assert got.code == code, f"expected ERROR {code:#04x}, got {got}"
        assert reason is None or got.reason == reason, f"expected reason {reason!r}, got {got}"
        return got.reason

    def expect_eof(self, within=PATIENCE):
        self.expect(Eof(), within)

    def expect_refused(self, code, reason=None, within=PATIENCE):
        """ERROR, then the end of the stream in good order, and nothing else."""
        got = self.expect_error(code, reason, within)
        self.expect_eof(within)
        return got

    def expect_end(self, within=PATIENCE):
        """The end of the stream in either way, and no frame before it."""
        got = self.next_frame(within)
        assert isinstance(got, ENDS), f"expected the end of the stream, got {got}"

    def expect_silence(self, for_seconds):
        """Nothing at all comes for so long."""
        if self._receive(for_seconds) or self._buffer or self._ended:
            raise AssertionError(f"expected silence, got {self._take() or bytes(self._buffer).hex()}")

    def all_frames(self, within=PATIENCE):
        """Every frame up to the end of the stream, the end included."""
        frames = []
        deadline = time.monotonic() + within
        while not frames or not isinstance(frames[-1], (*ENDS, Violation)):
            frames.append(self.next_frame(deadline - time.monotonic()))
        return frames

    # --- what most tests begin with

    def own(self, name, lease_ms=60_000):
        """Becomes owner of a lock that nobody else claims; the token. A predecessor on another connection
        may have closed only just now, and nothing orders its FIN before this ACQUIRE."""
        self.acquire(name, lease_ms)
        first = self.next_frame()
        if first == Waiting():
            return self.expect_acquired()
        assert isinstance(first, Acquired), f"expected ACQUIRED, got {first}"
        assert first.token != 0, "zero is never a token"
        return first.token

    def queue(self, name, lease_ms=60_000):
        """Joins the queue of a lock that must be owned."""
        self.acquire(name, lease_ms).expect_waiting()
        return self
