"""With the check no acknowledged update is lost; without it some are, so this test can fail."""

import collections
import os

import pytest
from campaign import FENCED, VARIANTS, Campaign, absent, ground, judge, say
from strikes import WAYS
from support.waiting import scaled

WRITES = 2000  # acknowledged ones of the page's program, at the least
STRUCK, STRIKES_EACH_WAY = ("program", "late", "unfenced"), 1  # at the least
STRIKES_OF_JOBS = 5  # all ways together
SECONDS_MAX = 120
REPORTS = [*[("program", 40)] * 4, ("script", 1), ("late", 4), ("unfenced", 4), ("unfenced script", 1)]
RAYS = 6  # one for each report of a program

pytestmark = pytest.mark.skipif(absent() is not None, reason=str(absent()))


def enough(campaign):
    """Whether all of that has happened."""
    struck = {variant: collections.Counter() for variant in VARIANTS}
    for report in campaign.reports:
        struck[report.variant].update(report.fate.struck)
    return (
        sum(len(report.ledger.acknowledged) for report in campaign.of("program")) >= scaled(WRITES)
        and all(struck[variant][way] >= STRIKES_EACH_WAY for variant in STRUCK for way in WAYS)
        and all(struck[variant].total() >= STRIKES_OF_JOBS for variant in ("script", "unfenced script"))
    )


@pytest.fixture(scope="module")
def outcomes():
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    with ground(RAYS) as here, Campaign(here, REPORTS, seed) as campaign:
        assert campaign.run_until(lambda: enough(campaign), SECONDS_MAX), "not enough happened in time"
        found = judge(campaign)
    say(found)
    return found


@pytest.mark.parametrize("variant", FENCED)
def test_no_acknowledged_update_is_lost_with_the_check(outcomes, variant):
    one = outcomes[variant]
    assert one.lost == []
    assert one.others == []
    assert one.refused > 0, "no owner came too late, so nothing was shown"


@pytest.mark.parametrize("variant", ["unfenced", "unfenced script"])
def test_some_are_lost_without_it(outcomes, variant):
    assert outcomes[variant].lost


def test_some_are_lost_if_only_the_write_is_checked(outcomes):
    """The old owner writes between the new one's read and write: nobody with a larger token has written yet."""
    one = outcomes["late"]
    assert one.lost
    assert one.refused > 0, "the check did nothing at all"
