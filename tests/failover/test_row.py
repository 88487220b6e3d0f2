"""Failovers in a row, under load: three servers, three members of etcd. make failover has ten of them."""

import math
import random

from failover.cases import TEN_IN_A_ROW
from failover.story import Setting, tell
from support.waiting import tried_again

SHORT = TEN_IN_A_ROW[:5]


@tried_again(times=1)
def test_failovers_in_a_row():
    """Never two servers that answer, nobody believes beside another, tokens rise whatever the clocks say, and everybody is
    served again in time, after each of them."""
    told = tell(SHORT, random.randrange(10_000), Setting(servers=3, ttl=1), math.inf)
    assert not told.late, told.outages
    assert told.grants > 20 * len(SHORT), told
    # Each but that of etcd's majority has another server as the next one.
    assert told.handovers >= len(SHORT) - 1, told
    assert all(told.checked[name] > told.grants / 2 for name in ("exclusion", "one_token", "tokens_over_all")), told
