"""What people use for locks today: Redis, PostgreSQL and etcd, started by the bench itself.

Each listens on a free port of the loopback, keeps its data in the scratch folder and is ended by the
signal that it takes for a request to end. What it spends is counted over all of its processes: by a
control group of its own where the bench may make one, else by the process tree (see accounting()).
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

from . import postgres
from .errors import CannotMeasure
from .machine import first_line
from .measurements import program_is_missing
from .servers import END_SECONDS, Running, end, free_port

START_SECONDS = 30
MAX_CLIENTS = 4000


# --- accounting ----------------------------------------------------------------------------------


def own_cgroup():
    """The folder of the control group (version 2) that this process is in, or None."""
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    folders = [fields[1] for fields in mounts if fields[2] == "cgroup2"]
    inside = [
        line.removeprefix("0::")
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
        if line.startswith("0::")
    ]
    return pathlib.Path(folders[0] + inside[0]) if folders and inside else None


@contextlib.contextmanager
def cgroup_of(process):
    """Moves the process, which has no children yet, into a control group of its own. Yields its folder, or
    None where that is not allowed."""
    try:
        folder = own_cgroup() / f"monolock-bench-{process.pid}"
        folder.mkdir()
    except (OSError, TypeError):
        yield None
        return
    try:
        try:
            (folder / "cgroup.procs").write_text(str(process.pid))
            inside = True
        except OSError:
            inside = False
        yield folder if inside else None
    finally:
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            try:
                folder.rmdir()
                break
            except OSError:  # its last processes are on their way out
                time.sleep(0.02)


def accounting():
    """How the peers' CPU is counted on this machine, for the report."""
    probe = subprocess.Popen(["sleep", "60"])
    with cgroup_of(probe) as folder:
        counted = folder is not None and "usage_usec" in (folder / "cpu.stat").read_text()
        probe.kill()
        probe.wait()
    if counted:
        return "a control group of its own (cpu.stat, microseconds)"
    return "its processes and those they waited for (/proc/PID/stat, clock ticks)"


# --- peers ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    client: str  # its driver
    optional = True  # a peer that fails is left out
    end_signal = signal.SIGTERM

    def program(self):
        """The path of the server's program, or None."""
        raise NotImplementedError

    def command(self, port, options):
        raise NotImplementedError

    def ready(self, port):
        """Whether it answers; OSError counts as no."""
        raise NotImplementedError

    def user(self):
        """Whom it runs as: None for whoever runs the bench."""
        return None

    def prepare(self, options):
        """What has to be there before the first start."""

    def version(self):
        line = first_line([self.program(), "--version"])
        found = re.search(r"\d+(\.\d+)+", line)
        return found[0] if found else line

    def absent(self, options):
        if self.program() is None:
            return "is not installed"
        return program_is_missing(self.client)(options)

    @contextlib.contextmanager
    def started(self, options):
        self.prepare(options)
        port = free_port()
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(
                self.command(port, options),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=options.scratch,
                user=self.user(),
            )
            with cgroup_of(process) as cgroup:
                try:
                    self.wait_until_ready(process, port, log)
                    flags = ["--server", f"127.0.0.1:{port}", "--pid", str(process.pid)]
                    flags += ["--cgroup", str(cgroup)] if cgroup else []
                    yield Running(f"127.0.0.1:{port}", process.pid, tuple(flags))
                finally:
                    end(process, self.end_signal)

    def wait_until_ready(self, process, port, log):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError):
                if self.ready(port):
                    return
            time.sleep(0.02)
        lines = os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace").splitlines()
        raise CannotMeasure(f"{self.name} did not start: {' / '.join(lines[-3:])}")


def answer_of(port, question):
    with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
        client.sendall(question)
        return client.recv(64)


class Redis(Peer):
    """In memory only: nothing is saved."""

    def program(self):
        return shutil.which("redis-server")

    def command(self, port, options):
        command = [self.program(), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(options.scratch)]
        return [*command, "--save", "", "--appendonly", "no", "--maxclients", str(2 * MAX_CLIENTS)]

    def ready(self, port):
        return answer_of(port, b"PING\r\n").startswith(b"+PONG")


class Postgres(Peer):
    """As it is installed, but for the port and the number of connections. Advisory locks are in memory."""

    end_signal = postgres.END_SIGNAL

    def program(self):
        return postgres.binary("postgres")

    def user(self):
        return postgres.user()

    def prepare(self, options):
        if not (options.scratch / "postgres").exists():
            postgres.make_data(options.scratch / "postgres", "bench")

    def command(self, port, options):
        where = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        return postgres.command(options.scratch / "postgres", **where, max_connections=500)

    def ready(self, port):
        ssl_request = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
        return answer_of(port, ssl_request) in (b"N", b"S") and self.lets_in(port)

    def lets_in(self, port):
        """While it recovers it answers, with an error."""
        user = b"user\0bench\0database\0postgres\0\0"
        start = (8 + len(user)).to_bytes(4, "big") + b"\x00\x03\x00\x00" + user
        return answer_of(port, start).startswith(b"R")


class Etcd(Peer):
    """One member with its defaults: it writes each change to disk before it answers."""

    def program(self):
        return shutil.which("etcd")

    def command(self, port, options):
        clients, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
        data = tempfile.mkdtemp(prefix="etcd-", dir=options.scratch)
        command = [self.program(), "--data-dir", data, "--name", "bench", "--logger", "zap"]
        command += ["--listen-client-urls", clients, "--advertise-client-urls", clients]
        command += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
        return [*command, "--initial-cluster", f"bench={peers}"]

    def ready(self, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as answer:
            return b'"true"' in answer.read()


REDIS = Redis("Redis", "redis_load")
POSTGRES = Postgres("PostgreSQL", "postgres_load")
ETCD = Etcd("etcd", "etcd_load")
PEERS = (REDIS, POSTGRES, ETCD)


def versions(options):
    """Of those that are here, for the report."""
    return {peer.name: peer.version() for peer in PEERS if peer.absent(options) is None}
