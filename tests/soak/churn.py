"""Clients of every kind that come and go all the time, in one process.

In rings of owners that take turns a handover is timed; others claim and leave, reset, leave a queue, or fall silent
and are expired, before an heir that is waiting. What nobody asked for is written down in words.
"""

import collections
import heapq
import itertools
import random
import selectors
import time

from support.protocol import Acquired, Eof, Reset, Waiting

A_LONG_LEASE_MS = 2**32 - 1  # of those that need no heartbeats: 49 days
SILENT_LEASE_MS = 1000
RINGS = 20
MEMBERS = 4  # of a ring: an owner and those who wait
TURN_SECONDS = 0.02
UNEXPECTED_MAX = 20  # kept in words


class Client:
    def __init__(self, connection, role, lock, partner=None):
        self.connection, self.role, self.lock, self.partner = connection, role, lock, partner
        self.owns = False
        self.turns_left = None


class Churn:
    """rates: arrivals a second by role, and handovers a second of all rings together. connect() opens a connection."""

    def __init__(self, connect, rates, seed):
        self.connect, self.rates = connect, rates
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.unexpected = []
        self.handovers, self.expiries = [], []
        self._selector = selectors.DefaultSelector()
        self._alarms = []  # heap of (when, number, what to do)
        self._numbers = itertools.count()
        self._clients = set()
        self._left_at = {}  # ring: when its owner began to close
        self._draining = False
        self._late = 0.0
        self._host = self._come("host", "queue", A_LONG_LEASE_MS)
        for ring in range(RINGS):
            for _ in range(MEMBERS):
                self._come("member", f"ring/{ring}", A_LONG_LEASE_MS)
        for role in ("brief", "reset", "leaver", "silent"):
            self._arrive_at_rate(role)

    # --- what a helper does

    def turn(self):
        ready = self._selector.select(self._nap())
        begun = time.monotonic()
        for key, _ in ready:
            if key.data in self._clients:
                self._hear(key.data)
        if self._alarms and self._alarms[0][0] <= time.monotonic():
            heapq.heappop(self._alarms)[2]()  # one, so that no answer waits for a row of handshakes
        self._late = max(self._late, time.monotonic() - begun)

    def drain(self):
        """Rings run empty: who leaves does not come back, so that every grant is seen."""
        self._draining = True
        if self._host in self._clients and len(self._clients) == 1:
            self._leave(self._host)
        return not self._clients

    def report(self):
        said = {
            "counts": dict(self.counts),
            "unexpected": list(self.unexpected),
            "handovers": self.handovers,
            "expiries": self.expiries,
            "late": self._late,
        }
        self.handovers, self.expiries, self._late = [], [], 0.0
        return said

    # --- when

    def _nap(self):
        left = self._alarms[0][0] - time.monotonic() if self._alarms else TURN_SECONDS
        return min(max(left, 0), TURN_SECONDS)

    def _at(self, when, what):
        heapq.heappush(self._alarms, (when, next(self._numbers), what))

    def _arrive_at_rate(self, role):
        if self._draining:
            return
        if self.rates[role]:
            self._at(time.monotonic() + self.random.expovariate(self.rates[role]), lambda: self._arrive_at_rate(role))
            if role == "leaver":
                self._come(role, "queue", A_LONG_LEASE_MS)
            else:
                lease_ms = SILENT_LEASE_MS if role == "silent" else A_LONG_LEASE_MS
                self._come(role, f"{role}/{next(self._numbers)}", lease_ms)

    # --- who

    def _come(self, role, lock, lease_ms, partner=None):
        client = Client(self.connect(), role, lock, partner)
        client.connection.acquire(f"churn/{lock}", lease_ms)
        self.counts["claims"] += 1
        self._clients.add(client)
        self._selector.register(client.connection, selectors.EVENT_READ, client)
        return client

    def _forget(self, client):
        self._selector.unregister(client.connection)
        self._clients.discard(client)

    def _leave(self, client, how="close"):
        if client in self._clients:
            self._forget(client)
            getattr(client.connection, how)()

    # --- what comes back

    def _hear(self, client):
        while client in self._clients and (frame := client.connection.poll()) is not None:
            if isinstance(frame, Acquired) and not client.owns:
                client.owns = True
                self.counts["grants"] += 1
                getattr(self, f"_granted_{client.role}")(client)
            elif isinstance(frame, Waiting) and not client.owns and client.role in ("member", "leaver", "heir"):
                if client.role == "leaver":
                    self._leave(client)
            elif isinstance(frame, (Eof, Reset)) and client.role == "silent":
                self.counts["expired"] += 1
                self._forget(client)
                client.connection.close()
            else:
                self._note(f"a {client.role} of {client.lock} got {frame}")
                self._forget(client)
                client.connection.close()
                return

    def _note(self, text):
        self.counts["unexpected"] += 1
        if len(self.unexpected) < UNEXPECTED_MAX:
            self.unexpected.append(text)

    def _granted_host(self, client):
        pass

    def _granted_brief(self, client):
        self._leave(client)

    def _granted_reset(self, client):
        self._leave(client, "reset")

    def _granted_leaver(self, client):
        self._note("a lock was granted that has an owner")
        self._leave(client)

    def _granted_member(self, client):
        """Keeps the lock for a moment, and joins the end of the line again."""
        if (left_at := self._left_at.pop(client.lock, None)) is not None:
            self.handovers.append(client.connection.received_at - left_at)
        hold = RINGS / self.rates["handovers"] * self.random.uniform(0.5, 1.5)
        self._at(time.monotonic() + hold, lambda: self._pass_on(client))

    def _pass_on(self, client):
        if client not in self._clients:
            return
        if not self._draining:
            self._come("member", client.lock, A_LONG_LEASE_MS)
        self._left_at[client.lock] = time.monotonic()
        self._leave(client)

    def _granted_silent(self, client):
        """Sends nothing more. Its heir knows when it fell silent."""
        client.partner = self._come("heir", client.lock, A_LONG_LEASE_MS, partner=client)

    def _granted_heir(self, client):
        """Sent before the server can have heard it, and seen after the server can have judged: never negative."""
        late = client.connection.received_at - client.partner.connection.sent_at - SILENT_LEASE_MS / 1000
        if late < 0:
            self._note(f"a lease of {SILENT_LEASE_MS} ms ended {-late * 1000:.3f} ms early")
        self.expiries.append(late)
        self._leave(client)
