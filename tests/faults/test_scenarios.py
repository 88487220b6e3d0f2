"""The short set: some scenarios for a moment. `make faults` runs all of them for longer."""

import os
import random

import pytest

from faults.judged import run_scenario
from faults.scenarios import SCENARIOS
from support.waiting import tried_again

SECONDS = 1.0


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.short], ids=lambda one: one.name)
@tried_again
def test_scenario(scenario):
    seed = int(os.environ.get("FAULT_SEED") or random.randrange(1_000_000))
    print(f"FAULT_SEED={seed}")
    verdict = run_scenario(scenario, seed, SECONDS)
    print(verdict.text, verdict.injected)
    assert not verdict.is_late, verdict.text
    assert verdict.grants > 20, verdict.text
    for fault in scenario.faults:
        assert verdict.injected.get(fault.name) or fault.every[1] >= SECONDS, f"never injected: {fault.name}"
