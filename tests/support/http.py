"""HTTP spoken by hand: what is sent is exactly what a test says, and every wait has a deadline."""

import socket
from dataclasses import dataclass

from .connection import open_socket
from .waiting import PATIENCE


@dataclass(frozen=True)
class Response:
    status: int
    fields: tuple  # (name, value), names in lower case
    body: bytes

    def values(self, name):
        return [value for key, value in self.fields if key == name.lower()]

    def value(self, name):
        (value,) = self.values(name)
        return value

    @property
    def text(self):
        return self.body.decode("utf-8")


class HttpConnection:
    """One connection; responses are read in the order in which they were asked for."""

    def __init__(self, address, within=PATIENCE, **options):
        self.sock = open_socket(address, **options)
        self.sock.settimeout(within)
        self._input = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._input.close()
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def ask(self, method, target, fields=(), body=b"", version="1.1"):
        """Sends a request; a Host field is added unless the test gives one, or None for none."""
        lines = [f"{method} {target} HTTP/{version}"]
        given = [(name, value) for name, value in fields if value is not None]
        if not any(name.lower() == "host" for name, _ in fields):
            given.insert(0, ("Host", "localhost"))
        if body:
            given.append(("Content-Length", str(len(body))))
        lines += [f"{name}: {value}" for name, value in given]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return self

    def _line(self):
        line = self._input.readline(65536)
        assert line.endswith(b"\r\n"), f"a line without its end: {line!r}"
        return line[:-2].decode("latin-1")

    def _exactly(self, count):
        data = self._input.read(count)
        assert len(data) == count, f"{len(data)} bytes of {count}"
        return data

    def head(self):
        """The status and the fields of the next response."""
        version, status, _ = self._line().split(" ", 2)
        assert version in ("HTTP/1.1", "HTTP/1.0"), version
        fields = []
        while line := self._line():
            name, colon, value = line.partition(":")
            assert colon and name == name.strip(), line
            fields.append((name.lower(), value.strip()))
        return Response(int(status), tuple(fields), b"")

    def chunk(self):
        """The next chunk of a chunked body; empty: it was the last."""
        data = self._exactly(int(self._line(), 16))
        assert self._line() == ""
        return data

    def response(self, method="GET"):
        head = self.head()
        if method == "HEAD":
            return head
        if head.values("Transfer-Encoding"):
            assert head.value("Transfer-Encoding") == "chunked" and not head.values("Content-Length")
            body = b"".join(iter(self.chunk, b""))
        elif head.values("Content-Length"):
            body = self._exactly(int(head.value("Content-Length")))
        else:
            body = self._input.read()
        return Response(head.status, head.fields, body)

    def expect_end(self):
        """The server has closed, in good order and without another byte."""
        assert self._input.read(1) == b""


def fetch(address, target, method="GET", **options):
    """One request on a connection of its own."""
    within = options.pop("within", PATIENCE)
    with HttpConnection(address, within) as connection:
        fields = [*options.pop("fields", ()), ("Connection", "close")]
        return connection.ask(method, target, fields=fields, **options).response(method)


def refuses(address):
    """Whether nobody listens there."""
    try:
        open_socket(address).close()
    except (ConnectionRefusedError, FileNotFoundError, socket.timeout):
        return True
    return False
