"""Failovers in a row, under load: three servers, three members of etcd. make failover has ten of them."""

import math
import random

from failover.cases import TEN_IN_A_ROW
from failover.load import BUSY
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
    # Each grant but the first of its lock was held against the owner before, also across servers; and against all
    # tokens that had been seen when it became possible, of which the first grants of a run had none.
    assert told.checked["one_token"] == told.grants, told
    for name in ("exclusion", "tokens_per_lock"):
        assert told.checked[name] >= told.grants - BUSY["locks"] and not told.passed_over[name], (name, told)
    assert told.checked["tokens_over_all"] > told.grants / 2 and not told.passed_over["tokens_over_all"], told
