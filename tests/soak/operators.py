"""Operators of one server, in one process: they scrape, list, end claims, and reload it each minute with something
new to load."""

import collections
import itertools
import json
import os
import select
import signal
import ssl
import time

from support import http
from support.protocol import NOT_AUTHORIZED, UNKNOWN_TYPE, acquire_frame
from support.waiting import wait_until

LEASE_MS = 86_400_000  # longer than any soak: nobody beats for these
CLOSED_BY_ADMIN = 0x02
GUESTS = 5  # waiters whom the rules permit every other minute
PATIENCE = 30.0
COUNTER_ENDS = ("_total", "_count", "_sum")


class Operators:
    """sessions: how many locks a listing has at the least. every: seconds between two reloads."""

    def __init__(self, subject, sessions, every):
        self.subject, self.server, self.sessions = subject, subject.server, sessions
        self.ops, self.admin = self.server.ops_address, self.server.admin_address
        self.counts = collections.Counter()
        self.unexpected = []
        self._slowest = collections.defaultdict(float)
        self._last_counters = {}
        self._numbers = itertools.count()
        self._guests = []
        self._events = http.HttpConnection(self.admin).ask("GET", "/api/events")
        self._chores = []  # [when next, seconds between, what to do]
        now = time.monotonic()
        for seconds, chore in (
            (1.0, self._scrape), (2.0, self._list), (2.0, self._page), (3.0, self._force), (3.0, self._kick),
            (5.0, self._violate), (1.0, self._read_events), (every, self._reload),
        ):  # fmt: skip
            self._chores.append([now + seconds, seconds, chore])
        if subject.files:
            self._host = self.server.owner("soak/guests", LEASE_MS)
            self.counts["grants"] += 1

    # --- what a helper does

    def turn(self):
        now = time.monotonic()
        due = min(self._chores, key=lambda chore: chore[0])
        if due[0] > now:
            time.sleep(min(due[0] - now, 0.05))
            return
        due[0] = max(due[0] + due[1], now)  # what was missed is not made up for
        try:
            due[2]()
        except (AssertionError, OSError) as failure:
            self.counts["unexpected"] += 1
            self.unexpected.append(f"{due[2].__name__.strip('_')}: {failure!r}"[:500])
        self._slowest[due[2].__name__] = max(self._slowest[due[2].__name__], time.monotonic() - now)

    def drain(self):
        for guest in self._guests:
            guest.close()
        if self.subject.files:
            # So that none of them is granted on its way out, unseen.
            wait_until(lambda: self._waiters_of("soak/guests") == 0, "the guests have left", PATIENCE)
            self._host.close()
        self._events.close()
        return True

    def report(self):
        said = {"counts": dict(self.counts), "unexpected": list(self.unexpected), "slowest": dict(self._slowest)}
        self._slowest.clear()
        return said

    def _waiters_of(self, name):
        answer = http.fetch(self.admin, f"/api/lock?name={name}")
        return 0 if answer.status == 404 else json.loads(answer.body)["waiters_total"]

    # --- who looks

    def _scrape(self):
        families = self.server.metrics()
        counters = {
            key: value
            for family in families.values()
            for key, value in family.samples.items()
            if key[0].endswith(COUNTER_ENDS)
        }
        fell = [key for key, value in counters.items() if value < self._last_counters.get(key, 0)]
        assert not fell, f"counters fell: {fell}"
        self._last_counters = counters
        assert http.fetch(self.ops, "/healthz", within=PATIENCE).status == 200
        self.counts["scrapes"] += 1

    def _list(self):
        answer = http.fetch(self.admin, "/api/locks", within=PATIENCE)
        assert answer.status == 200 and answer.body.rstrip().endswith(b"}"), answer.status
        assert answer.body.count(b'"name":') >= self.sessions, "a listing that lacks some"
        self.counts["listings"] += 1

    def _page(self):
        for target in ("/api/locks?limit=100", "/api/info", "/api/lock/history?name=churn%2Fring%2F0"):
            assert http.fetch(self.admin, target, within=PATIENCE).status == 200, target

    def _read_events(self):
        while select.select([self._events.sock], [], [], 0)[0]:
            assert self._events.sock.recv(1 << 20), "the stream of events ended"

    # --- who ends claims

    def _pair(self):
        """An owner and a waiter of a lock of their own."""
        lock = f"soak/pair-{next(self._numbers)}"
        owner = self.server.owner(lock, LEASE_MS)
        waiter = self.server.waiter(lock, LEASE_MS)
        self.counts["grants"] += 1
        return lock.replace("/", "%2F"), owner, waiter

    def _force(self):
        lock, owner, waiter = self._pair()
        with owner, waiter:
            token = owner.heartbeat().expect_acquired()
            answer = http.fetch(self.admin, f"/api/locks/{lock}/release?token={token}", "POST", within=PATIENCE)
            assert answer.status == 200, answer
            owner.expect_refused(CLOSED_BY_ADMIN)
            waiter.expect_acquired()
            self.counts["grants"] += 1
            self.counts["forced"] += 1

    def _kick(self):
        lock, owner, waiter = self._pair()
        with owner, waiter:
            target = f"/api/locks/{lock}/waiters/127.0.0.1:{waiter.local_port}"
            answer = http.fetch(self.admin, target, "DELETE", within=PATIENCE)
            assert answer.status == 200, answer
            waiter.expect_refused(CLOSED_BY_ADMIN)
            self.counts["kicked"] += 1

    def _violate(self):
        with self.server.connect() as client:
            client.own(f"soak/violator-{next(self._numbers)}", LEASE_MS)
            self.counts["grants"] += 1
            client.send(b"\x7f")
            client.expect_refused(UNKNOWN_TYPE)

    # --- who reloads

    def _reload(self):
        """All that a reload reads has changed: the audit log was moved away, the certificate is another one, and
        the guests are permitted or not."""
        files = self.subject.files
        number = self.counts["reloads"] + 1
        self.subject.rotate_audit(number)
        if files:
            files.serve(files.authority.issue_server())
            permitted = number % 2 == 0
            self.subject.permit_guests(permitted)
        told = len(self.server.lines())
        os.kill(self.server.pid, signal.SIGHUP)
        wait_until(self.subject.audit_log.exists, "a new audit log", PATIENCE)
        if files:
            wait_until(lambda: {"tls", "acl"} <= self._parts_told(told), "all parts told how it went", PATIENCE)
            self._look_at_the_certificate()
            self._be_guests(permitted)
        self.counts["reloads"] += 1

    def _parts_told(self, since):
        told = [record for record in self.server.records()[since:] if record.get("part")]
        assert all(record["level"] == "info" for record in told), told
        return {record["part"] for record in told}

    def _look_at_the_certificate(self):
        with self.server.connect() as client:
            served = client.tls.getpeercert(True)
        wanted = ssl.PEM_cert_to_DER_cert(self.subject.files.certificate.read_text())
        assert served == wanted, "the old certificate is served"

    def _be_guests(self, permitted):
        if permitted:
            for _ in range(GUESTS):
                self._guests.append(self.server.connect(who="guest").queue("soak/guests", LEASE_MS))
            return
        for guest in self._guests:
            guest.expect_refused(NOT_AUTHORIZED)
            guest.close()
            self.counts["denied"] += 1
        self._guests.clear()
        with self.server.connect(who="guest") as late:
            late.send(acquire_frame("soak/guests"))
            late.expect_refused(NOT_AUTHORIZED)
            self.counts["denied"] += 1
