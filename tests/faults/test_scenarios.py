"""The short set: some scenarios for a moment. `make faults` runs all of them for longer."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys

import pytest

from faults.judged import run_scenario
from faults.scenarios import SCENARIOS
from support import netns, procfs
from support.waiting import tried_again, wait_until

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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_run_that_is_interrupted_leaves_nothing(number):
    """To the run alone, as a supervisor sends it: servers, stopped workers, relays and namespaces are put away."""
    command = [sys.executable, str(pathlib.Path(__file__).with_name("run"))]
    environment = os.environ | {"FAULT_SECONDS": "600", "FAULT_SCENARIO": "wild", "FAULT_SEED": "1"}
    run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: len(procfs.of_session(run.pid)) >= 7, "a server, two relays and four workers")
    run.send_signal(number)
    assert run.wait(30) == 130
    assert f"-{run.pid}-" not in netns.run("ip", "netns", "list")
    assert not procfs.of_session(run.pid)


def test_a_worker_that_crashes_ends_the_run_at_once(tmp_path):
    command = [sys.executable, str(pathlib.Path(__file__).with_name("run"))]
    wishes = {"FAULT_SECONDS": "1", "FAULT_SCENARIO": "beside", "FAULT_SEED": "1", "FAULT_WORKER_BIN": "/bin/false"}
    environment = os.environ | wishes | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout.count("FAULT_SEED=") == 1, done.stdout
    kept = re.search(r"worker 1 ended with 1; .*\nthe history is kept in (.*)\n", done.stdout)
    assert kept and {"environment.jsonl", "audit.log"} <= set(os.listdir(kept[1])), done.stdout


@pytest.mark.parametrize("variable, value", [("FAULT_SECONDS", "abc"), ("FAULT_SECONDS", "nan"), ("FAULT_SEED", "-1")])
def test_what_is_no_number_is_refused_in_words(variable, value):
    command = [sys.executable, str(pathlib.Path(__file__).with_name("run"))]
    done = subprocess.run(command, env=os.environ | {variable: value}, capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and done.stderr.startswith(f"{variable}={value}: it must be")
