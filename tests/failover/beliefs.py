"""Owners that still believe when the next server opens: with -grant-delay auto nobody is granted beside them. Without it
somebody is, and the checkers must say so: else they would not notice a delay that is none."""

import json
from dataclasses import dataclass

from failover.load import BUSY

LOCKS = 8


def programs(ttl):
    """Owners whose leases are three to four times the TTL and who hold on for longer; who wants their locks finds a new
    server soon."""
    common = {"clients": 1, "slots": LOCKS, "locks": LOCKS}
    holding = {"lease-min": 3000 * ttl, "lease-max": 4000 * ttl, "hold-min": 1000 * ttl, "hold-max": 6000 * ttl}
    return ({**BUSY, **common, **holding, "impatient": 0}, {**BUSY, **common})


@dataclass
class Claim:
    """As its client tells it, in nanoseconds."""

    lock: str
    asked: int
    lease: int
    answered: int = None  # WAITING, or else ACQUIRED
    granted: int = None
    confirmed_until: int = 0
    stopped: int = None

    @property
    def believed_until(self):
        return self.confirmed_until if self.stopped is None else min(self.confirmed_until, self.stopped)

    @property
    def lease_until(self):
        """A client stops at 0.8 of it, so that clocks may be wrong."""
        return self.confirmed_until + self.lease // 5


def read_claims(paths):
    """Of all workers."""
    claims = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if '"act"' not in line:
                    add(claims, json.loads(line))
    return list(claims.values())


def add(claims, record):
    kind, at = record["kind"], record["t"]
    who = (record.get("worker"), record.get("claim"))
    if kind == "ask":
        claims[who] = Claim(record["lock"], at, record["lease_ns"])
        return
    claim = claims.get(who)
    if claim is None:
        return
    if kind in ("waiting", "grant"):
        claim.answered = claim.answered or at
    if kind == "grant":
        claim.granted = at
    if kind in ("grant", "confirmed"):
        claim.confirmed_until = max(claim.confirmed_until, record["until"])
    if kind in ("loss", "end"):
        claim.stopped = claim.stopped or at


def outlived(claims, struck, opened):
    """Pairs: who was an owner when a server was struck, and who was the first to be answered by the next one, on the same
    lock, while that owner still believed. `opened` may be late: who asked before is not looked at."""
    firsts = {}
    for claim in claims:
        if claim.asked > opened and claim.answered:
            first = firsts.setdefault(claim.lock, claim)
            if claim.answered < first.answered:
                firsts[claim.lock] = claim
    return [
        (claim, firsts[claim.lock])
        for claim in claims
        if claim.granted is not None
        and claim.granted < struck
        and claim.lock in firsts
        and claim.believed_until > firsts[claim.lock].answered
    ]


def granted_early(pairs):
    """Of those, the ones in which the second was granted within the first one's lease."""
    return [(owner, first) for owner, first in pairs if first.granted is not None and first.granted < owner.lease_until]
