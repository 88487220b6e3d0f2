"""A history of what many clients of one thread saw, checked by check_history (tests/history)."""

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Optional

from .waiting import NeverAllowed

CHECKED_WITHIN = 60


def _now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass
class Claim:
    """One connection, as its history names it."""

    number: int
    lock: str
    waiting_seen: bool = False
    token: Optional[int] = None
    left: bool = False


class History:
    """All clients are one worker, each claim a connection of it. Their leases are long enough for none to be
    lost, so a client believes until it leaves, which it does before 0.8 of its lease have passed."""

    def __init__(self, lease_ms):
        self._lease_ns = lease_ms * 1_000_000
        self._file = tempfile.NamedTemporaryFile("w", suffix=".jsonl")  # noqa: SIM115 - lives as long as this
        self.claims = []
        limits = {"handover_ms": 0, "slack_ms": 0, "served_ms": 0, "causes_noted": False, "faults_noted": False}
        self._write({"kind": "setup", "scenario": "one thread", "seed": 0, **limits})

    def _note(self, kind, claim, **fields):
        self._write({"t": _now(), "kind": kind, "worker": 1, "claim": claim.number, **fields})

    def _write(self, record):
        self._file.write(json.dumps(record) + "\n")

    def asks(self, lock):
        claim = Claim(len(self.claims), lock)
        self.claims.append(claim)
        self._note("ask", claim, lock=lock, lease_ns=self._lease_ns)
        return claim

    def waiting(self, claim):
        """Told WAITING, maybe again."""
        if not claim.waiting_seen or claim.token is not None:
            self._note("waiting", claim)
        claim.waiting_seen = True

    def granted(self, claim, token):
        """Told ACQUIRED, maybe again; it must be the same token."""
        self._note("grant", claim, token=token, until=_now() + self._lease_ns * 4 // 5)
        claim.token = token

    def leaves(self, claim):
        """It is about to close."""
        if not claim.left:
            self._note("end", claim)
        claim.left = True

    def check(self):
        checker = os.environ.get("CHECK_HISTORY_BIN")
        assert checker, "CHECK_HISTORY_BIN must name check_history"
        self._file.flush()
        done = subprocess.run([checker, self._file.name], capture_output=True, text=True, timeout=CHECKED_WITHIN)
        print(done.stdout)
        assert done.returncode in (0, 1, 3), done.stderr
        if done.returncode == 1:
            raise NeverAllowed(done.stdout)
