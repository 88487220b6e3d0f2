"""A history of what many clients saw, and the checks that every history must pass.

All clients of a history live in one thread, so its steps have one order, the order of `step`.
"""

from dataclasses import dataclass, field
from typing import Optional

from .waiting import NeverAllowed


@dataclass
class Claim:
    """One connection's story, each step the moment at which the client did or saw it."""

    lock: object
    asked: int
    waiting_seen: Optional[int] = None
    granted_seen: Optional[int] = None
    token: Optional[int] = None
    left: Optional[int] = None  # before the close was called, or when the end was seen
    grants: int = field(default=0)


class History:
    def __init__(self):
        self.claims = []
        self._step = 0

    def step(self):
        self._step += 1
        return self._step

    def asks(self, lock):
        claim = Claim(lock, self.step())
        self.claims.append(claim)
        return claim

    def waiting(self, claim):
        if claim.waiting_seen is None:
            claim.waiting_seen = self.step()
        if claim.granted_seen is not None:
            raise NeverAllowed(f"WAITING after ACQUIRED: {claim}")

    def granted(self, claim, token):
        if claim.token not in (None, token):
            raise NeverAllowed(f"the token changed to {token}: {claim}")
        if claim.granted_seen is None:
            claim.granted_seen = self.step()
            claim.token = token

    def leaves(self, claim):
        if claim.left is None:
            claim.left = self.step()

    def check(self):
        check_tokens(self.claims)
        by_lock = {}
        for claim in self.claims:
            by_lock.setdefault(claim.lock, []).append(claim)
        for claims in by_lock.values():
            check_exclusion(claims)
            check_order(claims)


def check_tokens(claims):
    """No token twice, none zero, and a grant that was seen before another was asked for is smaller."""
    granted = [claim for claim in claims if claim.token is not None]
    tokens = [claim.token for claim in granted]
    if len(set(tokens)) != len(tokens) or 0 in tokens:
        raise NeverAllowed("a token of zero or one given twice")
    seen = sorted(granted, key=lambda claim: claim.granted_seen)
    largest, at = 0, 0
    for claim in sorted(granted, key=lambda claim: claim.asked):
        while at < len(seen) and seen[at].granted_seen < claim.asked:
            largest = max(largest, seen[at].token)
            at += 1
        if claim.token <= largest:
            raise NeverAllowed(f"token {claim.token} after token {largest} was seen: {claim}")


def check_exclusion(claims):
    """Of one lock: nobody is told ACQUIRED before the owner before it has left."""
    granted = sorted((c for c in claims if c.token is not None), key=lambda claim: claim.token)
    for earlier, later in zip(granted, granted[1:]):
        if earlier.left is None or earlier.left > later.granted_seen:
            raise NeverAllowed(f"two owners: {earlier} and {later}")


def check_order(claims):
    """Of one lock: who saw WAITING before another asked is granted first, unless it left before."""
    granted = [claim for claim in claims if claim.token is not None]
    for early in claims:
        if early.waiting_seen is None:
            continue
        for late in granted:
            if early.waiting_seen >= late.asked:
                continue
            if early.token is not None:
                overtaken = late.token < early.token
            else:
                overtaken = early.left is None or early.left > late.granted_seen
            if overtaken:
                raise NeverAllowed(f"overtaken in the queue: {early} by {late}")
