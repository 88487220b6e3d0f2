"""The real server as a process of its own."""

import os
import shlex
import signal
import subprocess
import tempfile
import time

from . import http, logs, metrics, procfs
from .connection import Connection
from .waiting import NeverAllowed, wait_until

START_WITHIN = 20.0
STOP_WITHIN = 20.0
SANITIZER_REPORTS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:")


def binary():
    path = os.environ.get("MONOLOCK_BIN")
    assert path, "MONOLOCK_BIN must name the server's binary"
    return path


def command():
    """What starts the server: its binary, under MONOLOCK_WRAPPER if that is set, a command that runs it in its
    last arguments and in its own process, as valgrind does."""
    return [*shlex.split(os.environ.get("MONOLOCK_WRAPPER", "")), binary()]


def default_threads():
    """Environment of a server whose test does not say how many shards it has: MONOLOCK_TEST_THREADS, if that is set."""
    threads = os.environ.get("MONOLOCK_TEST_THREADS")
    return {"MONOLOCK_THREADS": threads} if threads else {}


def clean_environment(extra=None):
    """This process's environment without the server's variables and those of a service manager, and with
    those given."""
    not_ours = ("MONOLOCK_", "NOTIFY_", "WATCHDOG_", "LISTEN_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(not_ours)}
    return env | (extra or {})


def frees_at_once():
    """Environment of a server whose memory a test watches: AddressSanitizer keeps what was freed otherwise."""
    keep_nothing = "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    return {"ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), keep_nothing]))}


def run_to_end(*arguments, env=None, within=STOP_WITHIN, prefix=(), pass_fds=()):
    """Runs the server where it should end by itself: CompletedProcess with text output."""
    return subprocess.run(
        [*prefix, *command(), *arguments],
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within,
        pass_fds=pass_fds,
    )


def parse_bound(text):
    """An address as the server prints it, as Connection takes it."""
    if text.startswith("unix:"):
        return text.removeprefix("unix:")
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


class Server:
    """A server started on a free port of 127.0.0.1 unless told otherwise.

    stdout and stderr go to files without names, so no pipe can fill up and stall the server.
    prefix is a command that runs the server in its last arguments, and must exec it.
    tls, a TlsFiles, makes it a server over TLS and all its connections those of the files' client.
    """

    def __init__(
        self, *flags, listen="127.0.0.1:0", tls=None, env=None, prefix=(), before_exec=None, pass_fds=(), wait=True
    ):
        self._stderr = tempfile.TemporaryFile()
        self._stdout = tempfile.TemporaryFile()
        listen_flags = () if listen is None else ("-listen", listen)
        self.process = subprocess.Popen(
            [*prefix, *command(), *listen_flags, *(tls.flags() if tls else ()), *flags],
            env=clean_environment(default_threads() | (env or {})),
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            preexec_fn=before_exec,
            pass_fds=pass_fds,
        )
        self.pid = self.process.pid
        self.tls = tls
        self._addresses = []
        if wait:
            try:
                self.wait_listening()
            except BaseException:  # nobody else knows of it
                self._end_at_once()
                raise

    # --- where it listens

    def wait_listening(self, within=START_WITHIN, count=1):
        """Until the log names so many addresses: each has a line of its own."""

        def listening():
            self._addresses = [
                parse_bound(record["address"]) for record in self.records() if record["msg"] == "listening"
            ]
            return len(self._addresses) >= count or self.exit_code() is not None

        wait_until(listening, "the server says that it listens", within, interval=0.002)
        assert len(self._addresses) >= count, f"the server ended with {self.exit_code()} at start: {self.stderr()}"
        return self

    @property
    def addresses(self):
        return self._addresses

    @property
    def address(self):
        return self._addresses[0]

    @property
    def port(self):
        return self.address[1]

    @property
    def ops_address(self):
        """Where -ops-listen serves."""
        return self._bound("ops listening")

    @property
    def admin_address(self):
        """Where -admin-listen serves."""
        return self._bound("admin listening")

    def _bound(self, message):
        (record,) = [record for record in self.records() if record["msg"] == message]
        return parse_bound(record["address"].split(",")[0])

    def metrics(self):
        """The families of /metrics by name."""
        answer = http.fetch(self.ops_address, "/metrics")
        assert answer.status == 200, answer
        return metrics.parse(answer.text)

    def connect(self, **options):
        """As the usual client of the TLS files, if there are any; `who`, `credentials` (None: no
        certificate) or a whole `context` make it another one."""
        if self.tls is None:
            return Connection(self.address, **options)
        return self.tls.connect(self.address, **options)

    def connect_plain(self, **options):
        return Connection(self.address, **options)

    def owner(self, name, lease_ms=60_000, **options):
        connection = self.connect(**options)
        connection.own(name, lease_ms)
        return connection

    def waiter(self, name, lease_ms=60_000, **options):
        return self.connect(**options).queue(name, lease_ms)

    # --- what it says

    def stderr(self):
        return os.pread(self._stderr.fileno(), os.fstat(self._stderr.fileno()).st_size, 0).decode(
            "utf-8", "surrogateescape"
        )

    def stdout(self):
        return os.pread(self._stdout.fileno(), os.fstat(self._stdout.fileno()).st_size, 0).decode()

    def lines(self):
        """Whole lines only: the last one may still be on its way."""
        text = self.stderr()
        return text[: text.rfind("\n") + 1].split("\n")[:-1]

    def records(self):
        """Every log line, parsed. A line that does not parse is a failure."""
        return [logs.parse(line) for line in self.lines()]

    def wait_record(self, wanted, within=5.0, skip=0):
        """The first log record after so many that is wanted(record)."""
        return wait_until(
            lambda: next((record for record in self.records()[skip:] if wanted(record)), None),
            "a line of that kind in the log",
            within,
        )

    def loud_lines(self):
        return [line for line in self.records() if line["level"] in ("warn", "error")]

    def reloads(self, part):
        """How often the part was told to be reloaded."""
        return sum(record["msg"] == "reloaded" and record["part"] == part for record in self.records())

    def reload(self, within=5.0):
        """SIGHUP, and waits until every part that is configured has said how it went: those records."""
        parts = {"tls"} | ({"acl"} if self.tls.acl else set())
        before = len(self.lines())
        self.signal(signal.SIGHUP)

        def told():
            found = [record for record in self.records()[before:] if record.get("part") in parts]
            return found if {record["part"] for record in found} == parts else None

        return wait_until(told, "every part has said how its reload went", within)

    def reload_well(self):
        for record in self.reload():
            assert record["level"] == "info", record

    def reload_badly(self, part):
        """One part must keep what it has and say so in one error line; that record."""
        records = self.reload()
        failed = [record for record in records if record["level"] != "info"]
        assert [record["part"] for record in failed] == [part], records
        assert failed[0]["level"] == "error", failed
        return failed[0]

    # --- its life

    def signal(self, number):
        os.kill(self.pid, number)

    def pause(self):
        self.signal(signal.SIGSTOP)
        wait_until(lambda: procfs.state(self.pid) == "T", "the server stands still", interval=0.0005)

    def resume(self):
        self.signal(signal.SIGCONT)

    def exit_code(self):
        return self.process.poll()

    def wait_exit(self, within=STOP_WITHIN):
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server still runs after {within} s: {self.stderr()}") from None

    def kill(self):
        """As a crash: SIGKILL, and reaped. One that has crashed by itself before is found."""
        self._end_at_once()
        if self.exit_code() not in (0, -signal.SIGKILL):
            raise NeverAllowed(f"the server had ended by itself with {self.exit_code()}:\n{self.stderr()}")

    def _end_at_once(self):
        if self.exit_code() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def stop(self, within=STOP_WITHIN):
        """SIGTERM, and it must end in good order."""
        if self.exit_code() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        code = self.wait_exit(within)
        if code < 0:
            raise NeverAllowed(f"the server ended by signal {-code} after SIGTERM:\n{self.stderr()}")
        assert code == 0, f"the server ended with {code} after SIGTERM:\n{self.stderr()}"

    def dispose(self):
        """Ends it in any way; what a fixture does last. More than once is once."""
        self._end_at_once()
        if self._stderr.closed:
            return
        report = self.stderr()
        self._stderr.close()
        self._stdout.close()
        for mark in SANITIZER_REPORTS:
            assert mark not in report, f"a sanitizer's report:\n{report}"

    # --- what it costs

    def descriptors(self):
        return procfs.descriptors(self.pid)

    def settled_descriptors(self, still_for=0.2):
        """The number of descriptors once it has not changed for a while."""
        last, since = self.descriptors(), time.monotonic()

        def settled():
            nonlocal last, since
            now = self.descriptors()
            if now != last:
                last, since = now, time.monotonic()
            return time.monotonic() - since >= still_for

        wait_until(settled, "the number of descriptors settles")
        return last

    def wait_descriptors(self, count, within=5.0):
        wait_until(
            lambda: self.descriptors() <= count, f"no more than {count} descriptors (now {self.descriptors()})", within
        )
