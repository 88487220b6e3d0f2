"""Taking turns, with contestants that do nothing."""

import pytest

from .errors import CannotMeasure
from .measurements import Contestant, Measurement, memory_figures
from .options import parse_options
from .running import run_in_turn


def options(*words):
    return parse_options(["--runs", "3", *words])


def written_down(names, log, **settings):
    def contestant(name):
        def run(_options):
            log.append(name)
            return {"cost": len(log)}

        return Contestant(name, run, **settings)

    return Measurement("made up", tuple(contestant(name) for name in names))


def test_contestants_take_turns():
    log = []
    runs = run_in_turn(written_down("ab", log), options(), {})
    assert log == ["a", "b", "a", "b", "a", "b"]
    assert runs == {"a": [{"cost": 1}, {"cost": 3}, {"cost": 5}], "b": [{"cost": 2}, {"cost": 4}, {"cost": 6}]}


def test_what_takes_long_runs_less_often():
    log = []
    [short] = written_down("a", log).contestants
    [long] = written_down("b", log, runs_max=1).contestants
    run_in_turn(Measurement("made up", (short, long)), options(), {})
    assert log == ["a", "b", "a", "a"]


def test_who_is_absent_is_left_out_with_the_reason():
    log, skipped = [], {}
    measurement = written_down("a", log, absent=lambda _options: "is not installed")
    assert run_in_turn(measurement, options(), skipped) == {}
    assert (log, skipped) == ([], {"a": "is not installed"})


def failing(optional):
    attempts = []

    def run(_options):
        attempts.append(1)
        if len(attempts) > 1:
            raise CannotMeasure("it broke")
        return {"cost": 1}

    return Measurement("made up", (Contestant("peer", run, optional=optional),))


def test_a_failure_of_ours_is_the_end():
    with pytest.raises(CannotMeasure, match="it broke"):
        run_in_turn(failing(optional=False), options(), {})


def test_a_failure_of_a_peer_takes_all_its_runs_out_of_the_row():
    skipped = {}
    assert run_in_turn(failing(optional=True), options(), skipped) == {}
    assert skipped == {"peer, made up": "it broke"}


def test_different_tls_is_not_compared():
    contestants = tuple(Contestant(name, lambda _options, name=name: {"tls": name}) for name in "ab")
    with pytest.raises(CannotMeasure, match="not the same TLS everywhere: a, b"):
        run_in_turn(Measurement("made up", contestants), options(), {})


def test_memory_is_the_slope():
    samples = [
        {"sessions": 0, "resident_bytes": 1000},
        {"sessions": 10, "resident_bytes": 9000},
        {"sessions": 110, "resident_bytes": 59000},
    ]
    assert memory_figures(samples) == {"slope": 500, "from_idle": 58000 / 110}
