"""What befalls an owner between its read and its write, so that it and the next one overlap.

The owner that is struck is the victim; the next one to read the set is the heir. A strike ends when both have
written, or have been refused.
"""

import dataclasses
import random
import time
from typing import ClassVar

GIVE_UP_SECONDS = 30  # a strike that has not ended by then never will: a defect of the test


@dataclasses.dataclass
class Strike:
    """Begun at the moment at which the victim has read and thinks.

    `after` is what the heir has done when the victim goes on: "read", and then it does not write before the victim
    has; or "write".
    """

    kind: ClassVar[str]
    victim: object
    after: str
    heir: object = None
    heir_waits: bool = False
    released: bool = False
    over: bool = False
    began: float = dataclasses.field(default_factory=time.monotonic)

    def begin(self):
        raise NotImplementedError

    def release(self):
        """The victim goes on."""
        raise NotImplementedError

    def clear_away(self):
        """All is as it was before."""

    def let_go(self):
        if not self.released:
            self.released = True
            self.release()

    def told(self, worker, event):
        """A worker of the set has read, or answered (its element is written or not, or it has ended). Whether this
        strike takes care of the worker that has read."""
        if worker is self.victim:
            if event != "read":
                self.end()
            return event == "read"
        if event == "read" and self.heir is None:
            self.heir = worker
            self.heir_waits = self.after == "read"
            if self.heir_waits:
                self.let_go()
            return self.heir_waits
        if worker is self.heir and event != "read":
            self.heir_waits = False  # it ended by another blow before it was let go on
            if self.after == "write":
                self.let_go()
        return False

    def end(self):
        if not self.over:
            self.over = True
            self.clear_away()
            if self.heir_waits:
                self.heir_waits = False
                self.heir.go()

    def check_time(self):
        assert time.monotonic() - self.began < GIVE_UP_SECONDS, f"no end of a strike: {self}"


class Paused(Strike):
    """All of its processes stand still, and wake up when the lease is long over."""

    kind = "paused"

    def begin(self):
        self.victim.pause()

    def release(self):
        self.victim.go()
        self.victim.resume_work()

    def clear_away(self):
        self.victim.resume()


class PausedWhileWriting(Paused):
    """The same a moment after it went on. It may have written by then: the strike ends at once if it said so."""

    kind = "paused while writing"

    def begin(self):
        self.victim.go()
        time.sleep(random.uniform(0, 0.0015))
        self.victim.pause()

    def release(self):
        self.victim.resume_work()


class Partitioned(Strike):
    """It does not reach the lock server any more, but the database it does; and it does not look up from its
    thoughts."""

    kind = "partitioned"

    def begin(self):
        self.victim.place.cut()

    def release(self):
        self.victim.go()

    def clear_away(self):
        self.victim.place.mend()


class Killed(Strike):
    """It ends, and its kernel says so: the lock moves at once. What it was writing may arrive or not."""

    kind = "killed"

    def begin(self):
        self.victim.go()
        time.sleep(random.uniform(0, 0.003))
        self.victim.kill()

    def release(self):
        """There is nothing left of it."""


class Orphaned(Strike):
    """The lock server is killed, and started again: it has forgotten the victim, which does not look up."""

    kind = "orphaned by a new server"

    def begin(self):
        self.victim.ground.restart_server()

    def release(self):
        self.victim.go()


WAYS = [(kind, after) for kind in (Paused, PausedWhileWriting, Partitioned) for after in ("read", "write")]
WAYS += [(Killed, "write"), (Orphaned, "read")]


def ways_for(worker):
    """Only one with a network of its own can be cut off. When the server is killed everybody feels it, and only work
    that nobody ends outlives that."""
    impossible = set()
    if not hasattr(worker.place, "cut"):
        impossible.add(Partitioned)
    if not worker.deaf or not worker.ground.may_restart_server():
        impossible.add(Orphaned)
    return [way for way in WAYS if way[0] not in impossible]


@dataclasses.dataclass
class Fate:
    """Decides who is struck when and how: the way that was seldom taken goes first."""

    random: random.Random
    reads_between: int  # on average
    reads_left: int = 0
    struck: dict = dataclasses.field(default_factory=lambda: dict.fromkeys(WAYS, 0))

    def strike(self, victim):
        """The one that has begun, or None."""
        self.reads_left -= 1
        if self.reads_left >= 0:
            return None
        self.reads_left = self.random.randint(0, 2 * self.reads_between)
        kind, after = min(ways_for(victim), key=lambda way: (self.struck[way], self.random.random()))
        self.struck[kind, after] += 1
        begun = kind(victim, after)
        begun.begin()
        return begun
