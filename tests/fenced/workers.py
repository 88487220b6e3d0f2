"""Workers that add elements to a set, as processes that can be struck: the page's C++ program, which lives on from
element to element, and its shell script under `monolockctl run`, started for each."""

import contextlib
import os
import pathlib
import signal
import subprocess

LEASE = "200ms"


class Worker:
    """Adds one element at a time: ask().

    Says what it does, by lines: `read ELEMENT TOKEN` when it knows the set and waits for go(), then `added ELEMENT`
    or `not added ELEMENT`. `place` is where it runs: a network namespace, and the server's address seen from there.
    """

    def __init__(self, name, place):
        self.name, self.place = name, place
        self.ground = None  # what it stands on, for those who strike it
        self.process = None
        self.element = None  # which it adds at present
        self.paused = []  # processes that stand still
        self._numbers = 0
        self._unread = b""

    def next_element(self):
        self._numbers += 1
        self.element = f"{self.name}.{self._numbers}"
        return self.element

    def fileno(self):
        return self.process.stdout.fileno()

    def lines(self):
        """What it said since it was asked last; None when it has ended."""
        data = os.read(self.fileno(), 65536)
        if not data:
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        return [line.decode() for line in lines]

    def start(self, command, **options):
        self._unread = b""
        self.process = subprocess.Popen(
            [*self.place.prefix, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **options
        )

    def processes(self):
        """All that make up this worker."""
        return [self.process.pid]

    def pause(self):
        self.paused = self.processes()
        for pid in self.paused:
            send(pid, signal.SIGSTOP)

    def resume_work(self):
        """That which writes; for what else stands still see resume()."""
        self.resume()

    def resume(self):
        for pid in self.paused:
            send(pid, signal.SIGCONT)
        self.paused = []

    def kill(self):
        for pid in self.processes():
            send(pid, signal.SIGKILL)

    def reap(self):
        """Returns its exit status."""
        self.process.stdout.close()
        self.process.stdin.close()
        return self.process.wait()


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Program(Worker):
    """The C++ program: one process for all elements."""

    deaf = True  # nobody ends its work when the lock is lost

    def __init__(self, name, place, program, conninfo, report):
        super().__init__(name, place)
        self.command = [program, place.address, conninfo, report]
        self._go = None

    def ask(self):
        """Gives it the next element, and starts it if it is not there."""
        if self.process is None:
            theirs, self._go = os.pipe()
            environment = os.environ | {"THINK_FD": str(theirs)}
            self.start(self.command, pass_fds=(theirs,), env=environment, stderr=subprocess.DEVNULL)
            os.close(theirs)
        line = self.next_element().encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # killed after its last answer: its end will be heard of
            self.process.stdin.write(line)

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, b"g")

    def reap(self):
        os.close(self._go)
        status = super().reap()
        self.process = None
        return status


class Job(Worker):
    """The shell script under monolockctl: a process tree for each element, and its end is its last word."""

    deaf = False

    def __init__(self, name, place, script, conninfo, report):
        super().__init__(name, place)
        self.script, self.conninfo, self.report = script, conninfo, report

    def ask(self):
        run = [os.environ["MONOLOCKCTL_BIN"], "run", "--server", self.place.address, "--lease", LEASE, "--retry"]
        words = [f"report/{self.report}", "--", self.script, self.report, self.next_element()]
        # libpq's own variables, as whoever writes a crontab sets them.
        names = {"host": "PGHOST", "user": "PGUSER", "dbname": "PGDATABASE"}
        pairs = (word.split("=") for word in self.conninfo.split())
        environment = os.environ | {names[key]: value for key, value in pairs}
        self.start([*run, *words], env=environment, stderr=subprocess.DEVNULL)

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"go\n")

    def processes(self):
        """monolockctl, its guardian, the job and what that started, in this order."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                found += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return found

    def resume_work(self):
        """The job wakes up before monolockctl and the guardian do, which would end it."""
        for pid in self.paused[2:]:
            send(pid, signal.SIGCONT)

    def reap(self):
        status = super().reap()
        self.process = None
        return status
