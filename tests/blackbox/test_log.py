"""The diagnostic log: every line parses, none can be forged, and traffic from outside is no alarm."""

import contextlib
import json
import os
import select
import socket
import subprocess

import pytest

from support import procfs
from support.server import binary, clean_environment
from support.waiting import wait_until

HOSTILE_NAMES = [
    "plain",
    "two words",
    'quote " inside',
    "back\\slash",
    "x\ntime=2026-01-01T00:00:00Z level=error msg=forged",
    'x"} \n{"time":"2026-01-01T00:00:00Z","level":"error","msg":"forged"}',
    "\r\n\t\v\f",
    "".join(map(chr, range(0x20))),
    "\x7f\x80\x9b31m",
    "\x1b[2J\x1b]0;title\x07",
    "line\u2028separator\u2029paragraph",
    "\u202egnitirw",
    "key=value",
    "ü€😀",
    "\x00",
]

FOREIGN = {
    "HTTP": [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /api HTTP/1.1\r\n\r\n", b"HEAD / HTTP/1.0\r\n\r\n"],
    "TLS": [bytes.fromhex("16030100c8010000c40303") + bytes(200), bytes.fromhex("160301") + bytes(1)],
}


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("level", ["debug", "info"])
def test_every_line_parses_whatever_the_names(start_server, log_format, level):
    server = start_server("-log-format", log_format, "-log-level", level)
    for name in HOSTILE_NAMES:
        owner, waiter = server.owner(name), server.waiter(name)
        owner.send(b"\x7f")
        owner.expect_error(0x13)
        waiter.expect_acquired()
        waiter.close()
        owner.close()
        with server.connect() as client:
            client.own(name, 10)
            client.expect_eof()
    server.stop()
    text = server.stderr()
    assert text.endswith("\n")
    assert not any(ord(char) < 0x20 and char != "\n" or char in "\x7f\x80\x9b\u2028\u2029\u202e" for char in text)
    assert not any(record["msg"] == "forged" for record in server.records())
    assert all(line.startswith("{") == (log_format == "json") for line in server.lines())
    assert len(text.splitlines()) == text.count("\n")
    if level == "debug":
        locks = {record["lock"] for record in server.records() if "lock" in record}
        assert not locks or locks >= set(HOSTILE_NAMES), f"not given back unchanged: {set(HOSTILE_NAMES) - locks}"


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_listening_is_logged_with_the_port_taken(start_server, log_format):
    server = start_server("-log-format", log_format)
    (record,) = [record for record in server.records() if record["msg"] == "listening"]
    assert record["level"] == "info"
    assert record["address"] == f"127.0.0.1:{server.port}"
    with socket.create_connection(("127.0.0.1", server.port)):
        pass


def test_json_lines_are_objects_of_plain_values(start_server):
    server = start_server("-log-format", "json", "-log-level", "debug")
    server.owner("plain").close()
    server.stop()
    for line in server.lines():
        assert all(not isinstance(value, (dict, list)) for value in json.loads(line).values()), line


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_protocol_gets_a_code_and_the_log_a_hint(start_server, kind):
    """Case S7. Somebody has the wrong port or the wrong scheme; the operator should read that."""
    server = start_server()
    for greeting in FOREIGN[kind]:
        with server.connect() as client:
            client.send(greeting)
            client.expect_refused(0x13, f"unknown message type: {greeting[0]:#04x}")
    wait_until(lambda: any(kind in line for line in server.lines()), f"a line that mentions {kind}", within=2)


@pytest.mark.parametrize(
    "header", [b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", b"\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c" + bytes(12)], ids=["v1", "v2"]
)
def test_proxy_header_gets_a_code(one_server, header):
    with one_server.connect() as client:
        client.send(header + b"\x01\x01")
        client.expect_refused(0x13, f"unknown message type: {header[0]:#04x}")


def test_traffic_from_outside_is_no_alarm(start_server):
    """Whatever peers do wrong, they raise no warn or error line: nobody may fill the log or page a person."""
    server = start_server("-io-timeout", "200ms")
    for greeting in [b"", b"\x02", b"\x00", b"\x01\x02", b"\x01\x01\0\0\0\0\0\1a"]:
        for leave in ("wait", "close", "reset"):
            client = server.connect()
            client.send(greeting)
            if leave == "wait":
                while client.next_frame().__class__.__name__ == "Error":
                    pass
                client.close()
            elif leave == "close":
                client.close()
            else:
                client.reset()
    with server.connect() as client:
        client.own("expires", 10)
        client.expect_eof()
    server.stop()
    loud = [record for record in server.records() if record["level"] in ("warn", "error")]
    assert not loud, loud


def test_a_standard_error_that_takes_nothing_keeps_nobody(start_server):
    """The end of the process waits for no reader of its log."""
    reader, writer = os.pipe()
    server = subprocess.Popen(
        [binary(), "-listen", "127.0.0.1:0", "-log-level", "debug"],
        stderr=writer,
        # A sanitizer's own report of leaks would wait for the reader.
        env=clean_environment({"ASAN_OPTIONS": "detect_leaks=0"}),
    )
    try:
        wait_until(lambda: select.select([reader], [], [], 0)[0], "the first line")
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        server.send_signal(15)
        assert server.wait(timeout=10) == 0
    finally:
        server.kill()
        server.wait()
        os.close(reader)
        os.close(writer)


def is_idle(process):
    with contextlib.suppress(FileNotFoundError):  # a thread ended meanwhile
        return all(procfs.state(f"{process.pid}/task/{tid}") in "SZ" for tid in procfs.threads(process.pid))
    return False


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_that_does_not_block_is_waited_for(tmp_path, stream):
    """Whoever started the server may have made it so; a reader that comes late gets all."""
    path = tmp_path / "socket"
    words = ["-help"] if stream == "stdout" else ["-listen", f"unix:{path}"]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    server = subprocess.Popen([binary(), *words], env=clean_environment(), **{stream: writer})
    os.close(writer)
    try:
        wait_until(lambda: (stream == "stdout" or path.exists()) and is_idle(server), "it has said something")
        if stream == "stderr":
            server.send_signal(15)
        with open(reader, "rb") as late:
            text = late.read().lstrip(b"x")
        assert server.wait(timeout=10) == 0
    finally:
        server.kill()
        server.wait()
    for word in [b"-listen"] if stream == "stdout" else [b"listening", b"stopped"]:
        assert word in text
