"""What the harness does to a run, in the format of tests/history: the frame around the clients' own stories."""

import json
import threading
import time


def now():
    """The clock of all histories."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Chronicle:
    """Notes of any thread; each names a moment that errs on the side that accuses nobody."""

    def __init__(self, path, scenario, seed, limits):
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by close()
        self._lock = threading.Lock()
        self._write({"kind": "setup", "scenario": scenario, "seed": seed, **limits})

    def note(self, kind, **fields):
        self._write({"t": now(), "kind": kind, **fields})

    def _write(self, record):
        with self._lock:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def close(self):
        self._file.close()
