"""What the long run of failovers says of what it had no time for, with stories that are made up and a clock of its own."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def run(monkeypatch, capsys):
    """main(), for so many seconds of which each case takes five. Returns its status and what it said."""
    loader = importlib.machinery.SourceFileLoader("failover_run", str(ROOT / "tests/failover/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("failover_run", loader))
    monkeypatch.setitem(sys.modules, "failover_run", module)
    loader.exec_module(module)
    clock = [0.0]

    def tell(cases, seed, setting, until, say):
        told = module.Chapter(setting)
        told.outages, told.outlived, told.violations, told.handovers = {}, {}, {"exclusion": 1}, 1
        for case in cases:
            if clock[0] >= until:
                break
            clock[0] += 5
            told.outages[case.name], told.outlived[case.name] = [1.0], 1
        return told

    monkeypatch.setattr(module, "tell", tell)
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(module, "no_words", lambda *_: None)
    monkeypatch.setattr(module.netns, "require", lambda: None)
    monkeypatch.setattr(module.shutil, "which", lambda _: "/bin/true")

    def run(seconds, case=""):
        monkeypatch.setenv("FAILOVER_SECONDS", str(seconds))
        monkeypatch.setenv("FAILOVER_CASE", case)
        return module.main(), capsys.readouterr().out

    return run


def not_run(text):
    lines = [line.removeprefix("not run, so nothing was shown: ") for line in text.splitlines() if line.startswith("not run")]
    return dict(line.split(": ", 1) for line in lines)


def test_a_run_with_time_for_all_is_well(run):
    status, said = run(600)
    assert status == 0 and not not_run(said), said
    assert "late: how often" in said and "outlived: owners who still believed" in said


def test_a_run_that_has_no_time_for_the_control_is_not(run):
    status, said = run(60)
    assert status == 1
    missing = not_run(said)
    assert list(missing) == ["leases that outlast a failover", "the same without a grant delay", "every case"]
    assert "kill -9, unheard by clients" in missing["leases that outlast a failover"]
    assert "SIGSTOP of the active" not in missing["leases that outlast a failover"]
    assert "slow etcd" in missing["every case"]
    assert "it takes more than FAILOVER_SECONDS=60" in said


def test_who_chooses_less_is_shown_less(run):
    status, said = run(20, "without a grant delay")
    assert status == 0 and not not_run(said), said
    status, said = run(5, "cut from etcd")
    assert status == 1 and "active cut from etcd" in not_run(said)["every case"]
