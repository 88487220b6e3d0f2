"""A server that is soaked: its process, its files, its crowd of sessions, its churn and its operators."""

import contextlib
import math
import os
import pathlib
import re
import subprocess
import time

from harness.crowds import Crowd
from support import procfs
from support.server import Server
from support.tls_files import TlsFiles
from support.waiting import wait_until

from .churn import Churn
from .helpers import Broken, Helper
from .operators import Operators

LEASE_MS = 10_000
CHURN = {"handovers": 40, "brief": 30, "reset": 5, "leaver": 5, "silent": 2}  # a second
CHURN_TLS = {"handovers": 8, "brief": 6, "reset": 1, "leaver": 1, "silent": 1}
EVERYBODY, GUESTS = ("client", ["*"]), ("guest", ["soak/guests"])
END_SECONDS = 60
PLAIN_FIGURES = {
    "acquires": "monolock_acquires",
    "denials": "monolock_acl_denials",
    "accept_errors": "monolock_accept_errors",
    "handshake_errors": "monolock_tls_handshake_errors",
    "audit_lost": "monolock_audit_lost_events",
    "heartbeats": "monolock_heartbeats",
}


class Subject:
    """Started, and filled by open_all(). files: with TLS, client certificates and rules."""

    def __init__(self, name, folder, options, sessions, authority=None, env=None):
        self.name, self.options, self.sessions = name, options, sessions
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.audit_log = self.folder / "audit.log"
        self.files = TlsFiles(self.folder, authority, rules=[EVERYBODY]) if authority else None
        self.crowd = self.churn = self.operators = None
        self._last_cpu = None
        flags = ["-ops-listen", "127.0.0.1:0", "-admin-listen", "127.0.0.1:0", "-audit-log", str(self.audit_log)]
        # In a process group of its own, so that a terminal's interrupt is the soak's alone.
        self.server = Server(*flags, tls=self.files, env=env, before_exec=os.setpgrp)
        self.descriptors_at_start = self.server.settled_descriptors()

    @property
    def transport(self):
        return "mutual TLS" if self.files else "plain"

    def permit_guests(self, permitted):
        self.files.permit([EVERYBODY, GUESTS] if permitted else [EVERYBODY])

    def rotate_audit(self, number):
        self.audit_log.rename(self.folder / f"audit.log.{number:04}")

    def audit_files(self):
        """The oldest first."""
        return [*sorted(self.folder.glob("audit.log.*")), self.audit_log]

    # --- who comes and goes

    def open_all(self, seed, reload_seconds):
        host, port = self.server.address
        flags = ["--server", f"{host}:{port}", "--pid", str(self.server.pid)]
        if self.files:
            flags += ["--tls", "--tls-cert", str(self.files.client.certificate), "--tls-key", str(self.files.client.key)]
        self.crowd = Crowd("hold", flags, self.options, clients=self.sessions, lease_ms=LEASE_MS)
        opened = self.crowd.next()
        if opened["owning"] != self.sessions:
            raise Broken(f"{self.name}: {opened['owning']} of {self.sessions} sessions opened")
        rates = CHURN_TLS if self.files else CHURN
        self.churn = Helper(f"churn of {self.name}", Churn, self.server.connect, rates, seed)
        self.operators = Helper(f"operators of {self.name}", Operators, self, self.sessions, reload_seconds)

    def leave_all(self):
        """Everybody leaves in good order, so that every grant was seen. What the helpers saw at last, by name, and
        how many descriptors there are more than at the start."""
        last = {"operators": self.operators.end(), "churn": self.churn.end(), "crowd": self.crowd.ask()}
        self.crowd.process.kill()
        self.crowd.process.wait()
        wait_until(lambda: self.counters()["active"] == 0, "all sessions ended", END_SECONDS, interval=0.05)
        more = self.server.settled_descriptors() - self.descriptors_at_start
        return last, max(more, 0)

    def dispose(self):
        for helper in (self.operators, self.churn):
            if helper is not None:
                helper.dispose()
        if self.crowd is not None:
            self.crowd.__exit__()
        self.server.dispose()

    # --- what it looks like

    def sample(self):
        """Figures of now and of the time since the last sample."""
        if self.server.exit_code() is not None:
            raise Broken(f"{self.name} ended with {self.server.exit_code()}: {self.server.stderr()[-2000:]}")
        churn, operators, crowd = self.churn.ask(), self.operators.ask(), self.crowd.ask()
        handovers, slowest = sorted(churn["handovers"]), operators["slowest"]
        return {
            **self.process_figures(),
            "owning": crowd["owning"],
            "lost": sum(crowd["lost"].values()),
            "beats": crowd["heartbeats"]["count"],
            "beat_p99_ms": crowd["heartbeats"]["p99_us"] / 1000,
            "beat_max_ms": crowd["heartbeats"]["max_us"] / 1000,
            "beat_sent_late_max_ms": crowd["generator_late"]["max_us"] / 1000,
            "handovers": len(handovers),
            "handover_p50_ms": 1000 * at(handovers, 0.5),
            "handover_p99_ms": 1000 * at(handovers, 0.99),
            "handover_max_ms": 1000 * at(handovers, 1),
            "expiry_max_ms": 1000 * max(churn["expiries"], default=0),
            "churn_late_ms": 1000 * churn["late"],
            "scrape_max_ms": 1000 * slowest.get("_scrape", 0),
            "listing_max_ms": 1000 * slowest.get("_list", 0),
            "counts": add(churn["counts"], operators["counts"]),
            "unexpected": churn["unexpected"] + operators["unexpected"],
        }

    def process_figures(self):
        pid, now = self.server.pid, time.monotonic()
        cpu = sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
        then, before = self._last_cpu or (now - 1, cpu)
        self._last_cpu = (now, cpu)
        return {
            "descriptors": procfs.descriptors(pid),
            "resident": resident(pid),
            "threads": len(procfs.threads(pid)),
            "cpu": (cpu - before) / (now - then),
        }

    def counters(self):
        families = self.server.metrics()
        made = {name: int(families[f"{family}_total"].value()) for name, family in PLAIN_FIGURES.items()}
        made |= {
            "active": int(families["monolock_connections_active"].value()),
            "held": int(families["monolock_locks_held"].value()),
            "waiters": int(families["monolock_waiters"].value()),
            "reload_failures": int(sum(families["monolock_reload_failures_total"].samples.values())),
        }
        for (_, labels), value in families["monolock_releases_total"].samples.items():
            made["releases", dict(labels)["reason"]] = int(value)
        return made

    def verify_audit(self, program):
        """What `monolockctl audit verify` proves of all its files. The server has ended."""
        done = subprocess.run([program, "audit", "verify", *self.audit_files()], capture_output=True, text=True)
        said = (done.stdout + done.stderr).strip()
        found = re.match(r"proven: \d+ records in \d+ files?, (\d+) grants?, (\d+) ends?, (\d+) still held", said)
        if done.returncode != 0 or not found:
            return {"grants": -1, "ends": -1, "held": 0, "lost": 0, "said": said}
        gaps = re.findall(r"what (\d+) lost record", said)
        grants, ends, held = map(int, found.groups())
        return {"grants": grants, "ends": ends, "held": held, "lost": sum(map(int, gaps)), "said": said}


def resident(pid):
    """Bytes; exact, unlike the kernel's quick count."""
    with contextlib.suppress(FileNotFoundError):
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(re.search(r"^Rss:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024
    return procfs.resident_bytes(pid)


def at(ordered, share):
    """The value at that share of an ascending list; 0 of an empty one."""
    return ordered[min(math.ceil(share * len(ordered)), len(ordered)) - 1] if ordered else 0.0


def add(*counts):
    """Of several helpers."""
    total = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
