"""No two believers over a failover, with -grant-delay auto and leases that outlast it. make failover has more."""

import math
import random

from failover.beliefs import programs
from failover.cases import UNTOLD
from failover.story import Setting, tell
from support.waiting import tried_again

TTL = 1
STOPPED, UNHEARD, CUT_OFF = UNTOLD[:3]


def story(*cases, delayed):
    told = tell(cases, random.randrange(10_000), Setting(ttl=TTL, programs=programs(TTL), delayed=delayed), math.inf)
    print(told)
    assert all(told.outlived.values()), f"nobody believed any more when the next server opened: {told.outlived}"
    return told


@tried_again
def test_with_the_delay_nobody_believes_beside_another():
    told = story(STOPPED, UNHEARD, delayed=True)
    assert not told.late, told.outages


@tried_again
def test_without_it_somebody_does():
    """Else the test above could not fail."""
    told = story(STOPPED, CUT_OFF, delayed=False)
    assert "exclusion" in told.violations, told
