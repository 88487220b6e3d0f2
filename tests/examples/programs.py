"""A program of the examples as a process: what it said so far, and how it ended."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from support.server import SANITIZER_REPORTS
from support.waiting import wait_until

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LEASE_MS = 1000


def binary(name):
    """The path of one of the C++ programs, or None if it was not built."""
    path = pathlib.Path(os.environ["EXAMPLES_BIN"], name)
    return str(path) if path.exists() else None


def address(server):
    return f"127.0.0.1:{server.port}"


class Program:
    """Its output goes to files without names, so no pipe can fill up."""

    living = []

    def __init__(self, command, environment):
        self.name = " ".join(str(word) for word in command)
        self._stdout, self._stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
        )
        Program.living.append(self)

    def lines(self):
        """Whole lines of standard output."""
        text = _text(self._stdout)
        return text[: text.rfind("\n") + 1].splitlines()

    def stderr(self):
        return _text(self._stderr)

    def wait_line(self, pattern, after=0, **options):
        """The match of the first line that has the pattern, after so many lines."""

        def found():
            return next(filter(None, (re.search(pattern, line) for line in self.lines()[after:])), None)

        return wait_until(found, f"{self.name} says {pattern}", **options)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Its exit status."""
        return wait_until(lambda: (self.process.poll() is not None) and (self.process.returncode,), "it ends")[0]

    def stop(self):
        """The exit status after SIGTERM."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def dispose(self):
        Program.living.remove(self)
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait()
        said = self.stderr()
        self._stdout.close()
        self._stderr.close()
        assert not any(report in said for report in SANITIZER_REPORTS), said


def _text(file):
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()
