"""A wall clock of the server's own that a test can set while the server runs.

wall_clock_shim.c does it inside the server's process; the monotonic clock stays the kernel's.
"""

import os
import pathlib
import shutil
import struct
import subprocess
import time

_SHIM_SOURCE = pathlib.Path(__file__).with_name("wall_clock_shim.c")


class WallClock:
    """Starts out right. The folder is the test's own."""

    def __init__(self, folder):
        self._shim = pathlib.Path(folder, "wall_clock_shim.so")
        self._file = pathlib.Path(folder, "wall-clock-shift")
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("c++")
        assert compiler, "no C compiler: scripts/setup installs one"
        command = [compiler, "-x", "c", "-O1", "-shared", "-fPIC", "-o", self._shim, _SHIM_SOURCE]
        subprocess.run(command, check=True, timeout=60)
        self._file.write_bytes(bytes(8))

    def shift(self, seconds):
        """From now on the server's wall clock is that far from the real one."""
        with open(self._file, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", int(seconds * 1_000_000_000)))

    def set_to_epoch(self):
        """From now on it counts from the start of 1970."""
        self.shift(-time.time())

    def environment(self):
        return {
            "LD_PRELOAD": str(self._shim),
            "WALL_CLOCK_SHIFT_FILE": str(self._file),
            # A sanitizer's library need not be the first one loaded.
            "ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"])),
        }
