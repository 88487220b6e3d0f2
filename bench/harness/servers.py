"""The floor and monolock as processes: how each is started, found and ended.

A server is an object with a `name`, the `client` program that measures it, `absent(options)`, which says
why it cannot be measured here (or None), and `started(options)`, a context that yields a Running.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time

from .errors import CannotMeasure

START_SECONDS = 10  # a server that does not listen by then never will
END_SECONDS = 15


@dataclasses.dataclass(frozen=True)
class Running:
    """A server that listens."""

    address: str  # of its clients, IPv4:PORT
    pid: int
    flags: tuple[str, ...]  # tell the client program where it is and whose CPU and memory to read
    admin: str | None = None  # the operators' address


@dataclasses.dataclass(frozen=True)
class LoggingServer:
    """A server that logs its addresses once it listens, in monolock's words."""

    name: str
    transport: str = "plain"  # or tls, or mtls
    client: str = "load"

    def absent(self, options):
        return None

    def command(self, options):
        raise NotImplementedError

    @contextlib.contextmanager
    def started(self, options):
        with listening(self.command(options)) as (process, address, admin):
            flags = ["--server", address, "--pid", str(process.pid), *self.transport_flags(options)]
            yield Running(address, process.pid, tuple(flags), admin)

    def transport_flags(self, options):
        """What makes the load generator speak TLS."""
        show = ["--tls-cert", str(options.scratch / "client.pem")]
        show += ["--tls-key", str(options.scratch / "client.key")]
        return {"plain": [], "tls": ["--tls"], "mtls": ["--tls", *show]}[self.transport]


@dataclasses.dataclass(frozen=True)
class Floor(LoggingServer):
    program: str = "floor_server"
    arguments: tuple[str, ...] = ()

    def command(self, options):
        own = [options.scratch / "server.pem", options.scratch / "server.key"]
        authority = [options.scratch / "authority.pem"]
        files = {"plain": [], "tls": own, "mtls": own + authority}[self.transport]
        return [options.folder / self.program, *self.arguments, *files]


@dataclasses.dataclass(frozen=True)
class Monolock(LoggingServer):
    threads: int = 1
    operators: bool = False  # listens for them, too
    arguments: tuple[str, ...] = ()

    def command(self, options, listen="127.0.0.1:0"):
        command = [options.server, "-listen", listen, "-threads", str(self.threads), *self.arguments]
        if self.operators:
            command += ["-admin-listen", "127.0.0.1:0"]
        if self.transport != "plain":
            command += ["-tls-cert", options.scratch / "server.pem"]
            command += ["-tls-key", options.scratch / "server.key"]
        if self.transport == "mtls":
            command += ["-tls-client-ca", options.scratch / "authority.pem"]
        return command


@contextlib.contextmanager
def listening(command):
    """The process of such a server from when it listens, its clients' address, and its operators' or None."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield process, *wait_for_addresses(process, log)
        finally:
            process.kill()
            process.wait()


def wait_for_addresses(process, log):
    name = pathlib.Path(process.args[0]).name
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        # Read at an offset of its own: the position of the file is shared with the process that writes.
        text = os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")
        found = re.search(r'msg="?listening"?.* address="?([0-9.]+:[0-9]+)', text)
        if found:
            admin = re.search(r'msg="admin listening" address="?([0-9.]+:[0-9]+)', text)
            return found[1], admin and admin[1]
        if process.poll() is not None:
            raise CannotMeasure(f"{name} did not start: {text.strip()}")
        time.sleep(0.005)
    raise CannotMeasure(f"{name} does not listen: {text.strip()}")


def end(process, how):
    """By a signal that it takes for a request to end, or else by force."""
    process.send_signal(how)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port():
    """For a server that cannot say which one it chose: free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
