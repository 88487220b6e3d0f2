"""The checkers find what they are for, in real processes: workers that cheat, and proxies that lie."""

import json
import pathlib
import shutil
import signal
import tempfile

import pytest

from faults import liars
from faults.injected import Cut, PauseWorker
from faults.judged import check_history, run_scenario
from faults.networks import Relayed
from faults.scenarios import Scenario, Workers
from faults.stage import Stage
from support import procfs
from support.waiting import NeverAllowed, tried_again, wait_until

SECONDS = 0.6
LOAD = {"locks": 4, "lease-min": 1000, "lease-max": 1000, "hold-max": 40, "impatient": 0}


def lied_to(liar, faults=(), **load):
    return Scenario(
        liar.__name__, (Workers(2, liar=liar),), faults,
        load={**LOAD, **load}, served_ms=1200, settle_seconds=0.05,
    )  # fmt: skip


PLANTED = {
    "fifo_as_seen": lied_to(liars.Swapper),
    "exclusion": lied_to(liars.Hasty),
    "tokens_per_lock": lied_to(liars.Falling),
    "tokens_over_all": lied_to(liars.Falling),
    "one_token": lied_to(liars.Doubling),
    "handover_bounded": lied_to(liars.Slow),
    "no_early_grant": lied_to(liars.Traitor, **{"hold-max": 200}),
    "everyone_served": lied_to(liars.Forgetful),
    "protocol_kept": lied_to(liars.Babbling),
    "silence_bounded": lied_to(
        liars.Keeper, (PauseWorker(every=(0.3, 0.3), lasts=(1.5, 1.5)),),
        **{"lease-min": 400, "lease-max": 400, "hold-max": 1500},
    ),
    "nothing_lost_in_calm": lied_to(liars.Breaking),
    "lost_for_cause": lied_to(liars.Breaking),
    "told_for_cause": lied_to(liars.Denouncing),
    "possible_story": Scenario("eager", (Workers(1), Workers(1, load={"eager": 1})), load=LOAD, served_ms=1200),
    "acts_within_belief": Scenario(
        "cheat", (Workers(1), Workers(1, Relayed, {"delay_us": 1000}, {"cheat": 1, "hold-max": 3000})),
        (Cut(every=(0.4, 0.4), lasts=(0.9, 0.9)),),
        load={**LOAD, "lease-min": 300, "lease-max": 300}, served_ms=1200,
    ),
}  # fmt: skip
LATENESS = {"handover_bounded", "silence_bounded"}
LONGER = {"silence_bounded": 1.9, "acts_within_belief": 1.4}


@pytest.mark.parametrize("invariant", PLANTED)
@tried_again
def test_planted(invariant):
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, Stage(PLANTED[invariant], 1, folder) as stage:
        stage.harm(LONGER.get(invariant, SECONDS))
        stage.calm_down()
        verdict = check_history(stage.histories())
        stage.server.stop()
    print(verdict.text)
    assert (verdict.late if invariant in LATENESS else verdict.violations).get(invariant), verdict.text
    word = "late" if invariant in LATENESS else "violation"
    assert f"{word} {invariant}: " in verdict.text, "named, with its two events"


@tried_again
def test_what_was_late_is_kept():
    verdict = run_scenario(PLANTED["handover_bounded"], 1, SECONDS)
    assert verdict.is_late and "handover_bounded" in verdict.late, verdict.text
    again = check_history(sorted(str(path) for path in pathlib.Path(verdict.folder).glob("*.jsonl")))
    assert again.late.keys() >= verdict.late.keys(), "who was not done has written on"
    shutil.rmtree(verdict.folder)


def test_each_invariant_is_planted(tmp_path):
    history = tmp_path / "history.jsonl"
    history.write_text(json.dumps({"kind": "setup", "scenario": "none", "seed": 1, **Scenario("none", ()).limits()}) + "\n")
    assert PLANTED.keys() == check_history([str(history)]).checked.keys()


@tried_again
def test_an_honest_proxy_breaks_nothing():
    """So that it is the lie that is found, not the proxy."""
    honest = lied_to(liars.Proxy)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, Stage(honest, 1, folder) as stage:
        stage.harm(SECONDS)
        stage.calm_down()
        verdict = check_history(stage.histories())
        stage.server.stop()
    assert verdict.code == 0, verdict.text
    assert verdict.checked["fifo_as_seen"] > 20 and verdict.checked["handover_bounded"] > 20, verdict.text


def test_a_server_that_crashed_before_it_was_killed_is_found():
    """Or a fault that ends servers would hide it."""
    quiet = Scenario("quiet", (Workers(1),))
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, Stage(quiet, 1, folder) as stage:
        stage.server.signal(signal.SIGABRT)  # as a failed assertion
        wait_until(lambda: procfs.state(stage.server.pid) == "Z", "it has ended, and nobody has asked yet")
        with pytest.raises(NeverAllowed, match="by itself with -6"):
            stage.kill_server()


def test_a_worker_that_does_not_end_is_found():
    """All its claims are served and released: only the process is still there."""
    staying = Scenario("staying", (Workers(1, load={"stay": 1}),), load=LOAD, served_ms=1200, settle_seconds=0.05)
    with pytest.raises(AssertionError, match="do not end"):
        run_scenario(staying, 1, 0.2)
