"""A program whose execution takes as long as a test wants, as on a network folder that hangs."""

import fcntl
import os
import signal

import pytest


class HeldProgram:
    """A script that writes down that it ran. In the block, until let_go(), whoever executes it blocks in the kernel and
    can be killed there: this process has a lease of the file, and does not answer that it should give it back. (The
    kernel takes it back after /proc/sys/fs/lease-break-time, 45 seconds.)"""

    def __init__(self, folder, then=""):
        self.path = folder / "program"
        self._log = folder / "program-ran"
        self.path.write_text(f"#!/bin/sh\necho ran > {self._log}\n{then}\n")
        self.path.chmod(0o755)

    def ran(self):
        return self._log.exists()

    def __enter__(self):
        self._before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self._file = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.fcntl(self._file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as failure:
            self.__exit__()
            pytest.skip(f"no lease of a file can be had here: {failure}")
        return self

    def is_asked_for(self):
        """Whether somebody is in the middle of executing it."""
        return fcntl.fcntl(self._file, fcntl.F_GETLEASE) != fcntl.F_WRLCK

    def let_go(self):
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __exit__(self, *_):
        self.let_go()
        signal.signal(signal.SIGIO, self._before)
