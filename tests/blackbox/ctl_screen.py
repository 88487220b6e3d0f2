"""A terminal for monolockctl, or for the shell that it is started from."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from ctl import clean_environment


class Screen:
    """A terminal with a program on it that leads the session, and a person's keys and eyes."""

    def __init__(self, *words, env=None, size=None, **streams):
        self.keys, inside = pty.openpty()
        self.seen = ""
        if size:
            self.resize(*size)

        def take_terminal():
            fcntl.ioctl(inside, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            words,
            **({"stdin": inside, "stdout": inside, "stderr": inside} | streams),
            env=clean_environment({"PS1": "", "TERM": "dumb"} | (env or {})),
            start_new_session=True,
            preexec_fn=take_terminal,
        )  # fmt: skip
        os.close(inside)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.keys)

    def resize(self, lines, columns):
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def echoes(self):
        """Whether keys that are typed show."""
        return bool(termios.tcgetattr(self.keys)[3] & termios.ECHO)

    def end(self, within=10):
        """The exit status, and all that shows until the end."""
        status = self.process.wait(within)
        while select.select([self.keys], [], [], 0)[0]:
            try:
                self.seen += os.read(self.keys, 4096).decode()
            except OSError:  # nobody has it open any more
                break
        return status, self.seen

    def type(self, text):
        os.write(self.keys, text.encode())

    def read_until(self, pattern, within=10):
        """Waits until the pattern shows after what was read before; the match."""
        deadline = time.monotonic() + within
        while not (match := re.search(pattern, self.seen, re.S)):
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} does not show in {self.seen!r}"
            if select.select([self.keys], [], [], left)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.keys, 4096).decode()
        self.seen = self.seen[match.end() :]
        return match
