"""What became of the elements that were to be added to a set, and what the set must hold at the end."""

import collections
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """Four invariants; each list holds the elements that break it."""

    lost: list  # no_acknowledged_update_is_lost: it was acknowledged and is not there
    applied: list  # no_refused_update_is_applied: its writer was told that it is not, and it is
    unasked: list  # nothing_comes_from_nowhere
    twice: list  # nothing_is_there_twice

    @property
    def clean(self):
        return not (self.lost or self.applied or self.unasked or self.twice)


@dataclass
class Ledger:
    """An element that was given and neither acknowledged nor refused is in doubt: its writer was killed."""

    given: set = field(default_factory=set)
    acknowledged: set = field(default_factory=set)
    refused: set = field(default_factory=set)

    @property
    def in_doubt(self):
        return self.given - self.acknowledged - self.refused

    def judge(self, elements):
        """Of the elements that the set holds at the end, in any order."""
        times = collections.Counter(elements)
        return Verdict(
            lost=sorted(self.acknowledged - times.keys()),
            applied=sorted(self.refused & times.keys()),
            unasked=sorted(times.keys() - self.given),
            twice=sorted(element for element, count in times.items() if count > 1),
        )
