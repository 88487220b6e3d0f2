"""What grows is judged as growing, and what only wavers is not: series with leaks planted in them."""

import random

import pytest

from .judging import FLAT, Tolerance, growth, judge_books, judge_flat, judge_none, judge_returned, judge_some, slope
from .running import judge_series

HOUR = [10.0 * sample for sample in range(360)]
MIB = 1 << 20
RESIDENT = next(each for each in FLAT if each.figure == "resident")
DESCRIPTORS = next(each for each in FLAT if each.figure == "descriptors")
THREADS = next(each for each in FLAT if each.figure == "threads")


def wavering(level, noise, seed=1):
    drawn = random.Random(seed)
    return [level + drawn.gauss(0, noise) for _ in HOUR]


def leaking(level, noise, a_second, since=0.0, steps=1.0):
    """Grows by so much a second from then on, in steps of so many seconds."""
    return [
        value + a_second * (max(0.0, time - since) // steps) * steps
        for time, value in zip(HOUR, wavering(level, noise))
    ]


def test_the_slope_is_that_of_the_line_whatever_a_quarter_of_the_values_do():
    values = [3 * time + 7 for time in HOUR]
    assert slope(HOUR, values) == pytest.approx(3)
    for index in random.Random(1).sample(range(360), 90):
        values[index] = 1e9
    assert slope(HOUR, values) == pytest.approx(3)


@pytest.mark.parametrize("seed", range(5))
def test_what_wavers_is_flat(seed):
    assert judge_flat(RESIDENT, HOUR, wavering(30 * MIB, 0.2 * MIB, seed)).held
    assert judge_flat(DESCRIPTORS, HOUR, wavering(10_000, 5, seed)).held
    assert judge_flat(THREADS, HOUR, [5] * 360).held


def test_spikes_and_a_fall_are_flat():
    values = wavering(30 * MIB, 0.1 * MIB)
    for index in range(7, 360, 30):
        values[index] += 20 * MIB
    assert judge_flat(RESIDENT, HOUR, values).held
    assert judge_flat(RESIDENT, HOUR, leaking(30 * MIB, 0, -1000)).held


def test_what_fills_up_in_the_first_half_is_flat():
    assert judge_flat(RESIDENT, HOUR, [min(30.0, 10 + time / 60) * MIB for time in HOUR]).held


@pytest.mark.parametrize(
    "leak",
    [
        {"a_second": 1 * MIB / 1000},  # a thousand bytes a second
        {"a_second": 1 * MIB / 1000, "steps": 300},  # a page now and then
        {"a_second": 20 * MIB / 1000, "since": 3000},  # begins late
    ],
    ids=["a line", "a staircase", "late"],
)
def test_memory_that_leaks_grows(leak):
    assert not judge_flat(RESIDENT, HOUR, leaking(30 * MIB, 0.1 * MIB, **leak)).held


def test_descriptors_that_leak_grow():
    """One in a minute, among ten thousand that come and go."""
    assert not judge_flat(DESCRIPTORS, HOUR, leaking(10_000, 3, 1 / 60, steps=60)).held


def test_a_leak_hidden_in_a_saw_grows():
    """Memory that is taken and given back each two minutes, and of which a little stays."""
    saw = [value + (time % 120) / 120 * 3 * MIB for time, value in zip(HOUR, leaking(30 * MIB, 0.1 * MIB, 1500))]
    assert not judge_flat(RESIDENT, HOUR, saw).held
    assert judge_flat(RESIDENT, HOUR, [30 * MIB + (time % 120) / 120 * 3 * MIB for time in HOUR]).held


def test_one_more_thread_is_one_too_many():
    assert not judge_flat(THREADS, HOUR, [5] * 300 + [6] * 60).held


def test_few_samples_are_no_proof():
    assert not judge_flat(RESIDENT, HOUR[:10], [1.0] * 10).held


def filling(seconds, every=2.5):
    """The samples of servers that are filling up for a minute, and leak nothing."""
    times = [every * number for number in range(1, round(seconds / every) + 1)]
    flat = {"descriptors": 100, "threads": 3, "cpu": 0.1, "lost": 0}
    return [{"t": time, "resident": min(time, 60) * MIB, **flat} for time in times]


def test_what_is_still_filling_is_not_called_a_leak():
    """A run that was cut off so early has judged nothing, and says so."""
    verdict, lost = judge_series(filling(60))
    assert (verdict.name, verdict.held) == ("growth can be judged", False)
    assert verdict.said.startswith("only 1.0 minutes were sampled, 2 are needed")
    assert lost.held


def test_two_minutes_are_judged():
    assert all(verdict.held for verdict in judge_series(filling(120)))
    assert any(verdict.name == "resident does not grow" for verdict in judge_series(filling(120)))


def test_the_judgement_itself_can_be_tried_with_less():
    assert [verdict.name for verdict in judge_series(filling(60), minutes_min=0) if not verdict.held] == ["resident does not grow"]


def test_growth_is_the_larger_of_two_views():
    late = [0.0] * 300 + [100.0] * 60
    assert slope(HOUR, late) == 0
    assert growth(HOUR, late) == 100


def test_the_tolerance_is_the_larger_of_two():
    both = Tolerance("x", "", absolute=10, share=0.1)
    assert both.allowed([1000]) == 100
    assert both.allowed([10]) == 10


def test_memory_that_came_back():
    assert judge_returned("memory", 10 * MIB, 11 * MIB, 0.10).held
    assert not judge_returned("memory", 10 * MIB, 11.1 * MIB, 0.10).held


def test_lists_say_what_is_in_them():
    assert judge_none("x", []).held
    found = judge_none("x", ["a", "b", "c", "d"])
    assert not found.held and found.said == "4: a; b; c"


def test_what_should_have_happened():
    assert judge_some("x", 3).held
    assert not judge_some("x", 0).held


# --- the books

EXPECTED = {"grants": 100, "expired": 7, "forced": 3, "denied": 2}
AUDIT = {"grants": 100, "ends": 100, "held": 0, "lost": 0}


def counters(**changed):
    made = dict.fromkeys(
        ["held", "waiters", "active", "accept_errors", "reload_failures", "handshake_errors", "audit_lost"], 0
    ) | {"acquires": 100, "denials": 2}
    for reason, count in {"graceful": 90, "expired": 7, "io_timeout": 0, "force": 3}.items():
        made["releases", reason] = count
    return made | changed


def broken(*books):
    return [verdict.name for verdict in judge_books(*books) if not verdict.held]


def test_books_that_balance():
    assert broken(counters(), EXPECTED, AUDIT) == []


def test_each_entry_that_is_wrong_is_found():
    for name in [key for key in counters() if isinstance(key, str)]:
        assert broken(counters() | {name: counters()[name] + 1}, EXPECTED, AUDIT), name
    for reason in ("graceful", "expired", "io_timeout", "force"):
        wrong = counters() | {("releases", reason): counters()["releases", reason] + 1}
        assert "grants are releases and held" in broken(wrong, EXPECTED, AUDIT), reason
    for name in EXPECTED:
        assert broken(counters(), EXPECTED | {name: EXPECTED[name] + 1}, AUDIT), name
    for name in AUDIT:
        assert broken(counters(), EXPECTED, AUDIT | {name: AUDIT[name] + 1}), name


def test_a_session_lost_without_a_cause_is_found_though_the_sums_are_right():
    lost = counters() | {("releases", "graceful"): 89, ("releases", "expired"): 8}
    assert broken(lost, EXPECTED, AUDIT) == ["nobody expired but the silent"]
