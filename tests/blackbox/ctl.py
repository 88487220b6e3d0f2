"""monolockctl as a process of its own, and a lock server whose answers a test decides."""

import contextlib
import os
import selectors
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

from support.protocol import ACQUIRE, HEARTBEAT
from support.waiting import wait_until

WAITING_FRAME = b"\x11"


def binary():
    path = os.environ.get("MONOLOCKCTL_BIN")
    assert path, "MONOLOCKCTL_BIN must name monolockctl"
    return path


def address_text(address):
    if isinstance(address, str):
        return f"unix:{address}"
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# In the environment of all that this test process starts, so that it is told from what another one
# started at the same time.
OURS = ("STARTED_BY_TEST", str(os.getpid()))


def clean_environment(extra=None):
    env = {key: value for key, value in os.environ.items() if not key.startswith("MONOLOCK_")}
    return env | dict([OURS]) | (extra or {})


def ctl(*words, env=None, within=20, **popen):
    """Runs monolockctl to its end: CompletedProcess with text output."""
    popen.setdefault("stdin", subprocess.DEVNULL)
    if "stdout" not in popen:
        popen["capture_output"] = True
    return subprocess.run(
        [binary(), *words], env=clean_environment(env), text=True, timeout=within, **popen
    )


def run_words(server, name, *command, options=()):
    return ["run", "--server", address_text(server.address), *options, name, "--", *command]


def all_processes():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def processes_of(name):
    """Every living process that a run of ours of this lock name started, found by its environment, so
    that it does not matter where in the tree it went. Zombies have no environment and do not count."""
    marks = {b"MONOLOCK_NAME=" + name.encode(), "=".join(OURS).encode()}
    found = []
    for pid in all_processes():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environment:
            if marks <= set(environment.read().split(b"\0")):
                found.append(pid)
    return found


def stat_fields(pid):
    """The fields of /proc/PID/stat from the state on; [] once the process is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()
    except OSError:
        return []


def state(pid):
    fields = stat_fields(pid)
    return fields[0] if fields else None


def children(pid):
    return [child for child in all_processes() if stat_fields(child)[1:2] == [str(pid)]]


class Run:
    """`monolockctl run` in the background. Killed at the end of the block it is used in, and with it, by
    the guardian, its job; after a failed test that is not relied upon."""

    def __init__(self, server, name, *command, options=(), env=None, prefix=(), **popen):
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        self.name = name
        self.process = subprocess.Popen(
            [*prefix, binary(), *run_words(server, name, *command, options=options)],
            env=clean_environment(env),
            text=True,
            **popen,
        )
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        guardian = children(self.pid) if failure else []
        if self.process.poll() is None:
            self.process.kill()
        if failure:
            for process in guardian + processes_of(self.name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ValueError):  # streams that the test has closed
            self.process.communicate(timeout=20)

    @property
    def guardian(self):
        return wait_until(lambda: children(self.pid), "a guardian")[0]

    def commands(self):
        """The processes of the job, once there is one."""
        return wait_until(lambda: processes_of(self.name), f"a job under {self.name}")

    def line(self):
        """The next line that the command writes."""
        return self.process.stdout.readline().rstrip("\n")

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self, within=10):
        """(exit status, rest of stdout, stderr)."""
        out, err = self.process.communicate(timeout=within)
        return self.process.returncode, out, err


class Claim:
    """One connection of a ScriptedServer and what became of it, by the monotonic clock."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = bytearray()
        self.name = None
        self.lease = None
        self.token = None
        self.granted_at = None
        self.answered_at = None  # when the last message that got an answer arrived
        self.ended_at = None


class ScriptedServer:
    """A lock server in a few lines that a test can make silent or unjust. One thread; knows no lease.

    on_end is called with a claim whose connection ended, before its successor is granted. With a
    context it speaks TLS; connections whose handshake fails are in `failures`, in Python's words.
    """

    def __init__(self, family=socket.AF_INET, where=("127.0.0.1", 0), context=None):
        self.listener = socket.socket(family)
        self.listener.bind(where)
        self.listener.listen(128)
        self.address = self.listener.getsockname()
        self.context = context
        self.claims = []
        self.failures = []
        self.silent = False  # reads on and answers nothing
        self.on_end = lambda claim: None
        self._queues = {}
        self._token = 0
        self._wake, self._woken = socket.socketpair()
        self._lock = threading.RLock()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.listener, selectors.EVENT_READ, None)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stopping = True
        self._wake.send(b"x")
        self._thread.join(10)
        for claim in self.claims:
            claim.sock.close()
        self.listener.close()

    def owner(self, name):
        """Takes the lock for the test itself; call .release() of what is returned."""
        claim = Claim(None)
        claim.name, claim.granted_at = name, time.monotonic()
        with self._lock:
            for earlier in [each for each in self._queues.get(name, []) if each.sock is None]:
                self._end(earlier)  # the test's own, of an attempt that failed
            self._queues.setdefault(name, []).append(claim)
            assert self._queues[name] == [claim], "the lock is taken"
        return claim

    def release(self, claim):
        with self._lock:
            self._end(claim)

    def claim(self, name, within=10):
        """The first claim on the name."""
        return wait_until(
            lambda: next((each for each in self.claims if each.name == name), None), f"a claim on {name}", within
        )

    def granted(self, name, within=10):
        claim = self.claim(name, within)
        wait_until(lambda: claim.granted_at, f"{name} granted", within)
        return claim

    def send_error(self, claim, code, reason=b""):
        with self._lock:
            claim.sock.send(struct.pack(">BBB", 0x13, code, len(reason)) + reason)
            self.say_goodbye(claim)

    def say_goodbye(self, claim, close_notify=True):
        """Ends what the client reads, over TLS with close_notify unless told otherwise."""
        with self._lock:
            if self.context and close_notify:
                claim.sock.settimeout(0)
                with contextlib.suppress(ssl.SSLWantReadError):  # the client's own comes later
                    claim.sock.unwrap()
                claim.sock.settimeout(5)
            with contextlib.suppress(OSError):  # the client has closed on what it read
                socket.socket.shutdown(claim.sock, socket.SHUT_WR)

    def reset(self, claim):
        with self._lock:
            self._selector.unregister(claim.sock)
            claim.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            claim.sock.close()
            self._end(claim)

    # --- the server's thread

    def _serve(self):
        while not self._stopping:
            for key, _ in self._selector.select():
                with self._lock:
                    if key.fileobj is self.listener:
                        self._accept()
                    elif key.fileobj is not self._woken:
                        self._read(key.data)

    def wait_attempts(self):
        """How many connections it has had, once there was one: what the program that made it has seen of that may
        be over before this thread has noted it."""
        wait_until(lambda: self.claims or self.failures, "the server has seen the attempt")
        return len(self.claims) + len(self.failures)

    def _accept(self):
        sock, _ = self.listener.accept()
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context:
            sock = self._secure(sock)
            if sock is None:
                return
        claim = Claim(sock)
        self.claims.append(claim)
        self._selector.register(sock, selectors.EVENT_READ, claim)

    def _secure(self, sock):
        sock.settimeout(5)
        try:
            return self.context.wrap_socket(sock, server_side=True)
        except OSError as error:
            self.failures.append(str(error))
            # So that the alert arrives: what the client has sent meanwhile is read.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(4096):
                    pass
            sock.close()
            return None

    def _read(self, claim):
        if claim.sock.fileno() < 0:
            return
        try:
            data = claim.sock.recv(4096)
            while self.context and data and claim.sock.pending():
                data += claim.sock.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(claim.sock)
            claim.sock.close()
            self._end(claim)
            return
        claim.buffer += data
        while self._take_message(claim):
            pass

    def _take_message(self, claim):
        buffer = claim.buffer
        if not buffer or self.silent:
            return False
        if buffer[0] == HEARTBEAT:
            del buffer[:1]
            claim.answered_at = time.monotonic()
            self._answer(claim)
            return True
        assert buffer[0] == ACQUIRE and claim.name is None, bytes(buffer)
        if len(buffer) < 8 or len(buffer) < 8 + struct.unpack(">H", buffer[6:8])[0]:
            return False
        claim.lease = struct.unpack(">I", buffer[2:6])[0] / 1000
        claim.name = bytes(buffer[8:]).decode()
        buffer.clear()
        queue = self._queues.setdefault(claim.name, [])
        queue.append(claim)
        claim.answered_at = time.monotonic()
        if queue[0] is claim:
            self._grant(claim)
        else:
            self._answer(claim)
        return True

    def _answer(self, claim):
        frame = struct.pack(">BQ", 0x12, claim.token) if claim.token else WAITING_FRAME
        with contextlib.suppress(OSError):
            claim.sock.send(frame)

    def _grant(self, claim):
        self._token += 1
        claim.token = self._token
        claim.granted_at = time.monotonic()
        self._answer(claim)

    def _end(self, claim):
        if claim.ended_at is not None:
            return
        claim.ended_at = time.monotonic()
        self.on_end(claim)
        queue = self._queues.get(claim.name, [])
        if claim in queue:
            was_owner = queue[0] is claim
            queue.remove(claim)
            if was_owner and queue and queue[0].sock:
                self._grant(queue[0])
