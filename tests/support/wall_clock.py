"""A wall clock of the server's own that a test can set while the server runs.

libfaketime shifts CLOCK_REALTIME by what a file says and leaves the monotonic clock alone.
"""

import glob
import os
import pathlib


def _library():
    found = sorted(glob.glob("/usr/lib/*/faketime/libfaketime.so.1") + glob.glob("/usr/lib/faketime/libfaketime.so.1"))
    assert found, "libfaketime is missing: scripts/setup installs it"
    return found[0]


class WallClock:
    def __init__(self, folder):
        self._file = pathlib.Path(folder, "wall-clock")
        self.shift(0)

    def shift(self, seconds):
        """From now on the server's wall clock is that far from the real one."""
        self._replace(f"{seconds:+d}\n")

    def restart_at(self, text):
        """From the server's start on it counts from this local time, '1970-01-01 00:00:00'."""
        self._replace(f"@{text}\n")

    def _replace(self, text):
        new = self._file.with_suffix(".new")
        new.write_text(text)
        os.replace(new, self._file)

    def environment(self):
        return {
            "LD_PRELOAD": _library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "TZ": "UTC",
            # The sanitizer's library need not be the first one loaded.
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }
