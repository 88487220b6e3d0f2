"""Judging, with made-up figures."""

import pytest

from .judging import AtMost, More, Row, Times, difference, number, ratio, summarise
from .measurements import Contestant, Measurement


def row_of(figures, **settings):
    """A row and its runs; `figures` are lists by contestant."""
    contestants = tuple(Contestant(name, run=lambda _options: {}) for name in figures)
    row = Row("made up", Measurement("made up", contestants), "cost", "µs", **settings)
    return row, {name: [{"cost": value} for value in values] for name, values in figures.items()}


def only_verdict(figures, bar):
    row, runs = row_of(figures, bars=(bar,))
    [verdict] = summarise(row, runs).verdicts
    return verdict


def test_a_line_is_the_median_with_its_range():
    row, runs = row_of({"floor": [3.0, 1.0, 2.0]})
    [line] = summarise(row, runs).lines
    assert (line.median, line.low, line.high) == (2.0, 1.0, 3.0)
    assert line.to_reference is None, "the reference is not compared with itself"


def test_ratios_are_of_medians_and_of_neighbours():
    compared = ratio([2.0, 30.0, 4.0], [1.0, 10.0, 4.0])
    assert compared.of_medians == pytest.approx(4.0 / 4.0)
    assert compared.of_pairs == pytest.approx(2.0)
    assert compared.worse == pytest.approx(2.0)


def test_a_ratio_to_nothing_is_none():
    assert ratio([1.0, 2.0], [0.0, 1.0]) is None


def test_differences_are_of_medians_and_of_neighbours():
    compared = difference([10.0, 20.0, 30.0], [5.0, 25.0, 15.0])
    assert (compared.of_medians, compared.of_pairs) == (5.0, 5.0)


@pytest.mark.parametrize("limit, held", [(1.2, True), (1.19, False)])
def test_a_multiple_of_the_floor(limit, held):
    verdict = only_verdict({"floor": [10.0], "1 thread": [12.0]}, Times(limit))
    assert verdict.held is held
    assert verdict.measured == "1.20 × floor"


def test_a_multiple_holds_only_by_both_ratios():
    floor, ours = [10.0, 20.0, 30.0], [30.0, 10.0, 20.0]  # equal medians, median of pairs 0.67
    assert only_verdict({"floor": floor, "1 thread": ours}, Times(1.0)).held
    assert not only_verdict({"floor": ours, "1 thread": floor}, Times(1.0)).held


@pytest.mark.parametrize("limit, held", [(640, True), (639, False)])
def test_a_figure_at_most(limit, held):
    assert only_verdict({"1 thread": [700.0, 640.0, 600.0]}, AtMost(limit)).held is held


def test_a_bar_may_be_about_another_contestant():
    figures = {"queue of 10": [10.0], "queue of 19,000": [16.0]}
    verdict = only_verdict(figures, Times(1.5, of="queue of 19,000", than="queue of 10"))
    assert (verdict.held, verdict.measured) == (False, "1.60 × queue of 10")


def test_what_something_may_add():
    figures = {"quiet": [100.0, 100.0], "asked": [150.0, 170.0]}
    assert only_verdict(figures, More(60, of="asked", than="quiet")).held
    assert not only_verdict(figures, More(59, of="asked", than="quiet")).held


def test_a_bar_about_a_contestant_that_was_left_out_is_not_judged():
    row, runs = row_of({"floor": [1.0]}, bars=(Times(1.0),))
    assert summarise(row, runs).verdicts == []


def test_a_peer_is_compared_with_the_floor_and_with_monolock():
    row, runs = row_of({"floor": [10.0], "1 thread": [20.0], "peer": [40.0]})
    line = summarise(row, runs).lines[2]
    assert line.to_reference.of_medians == pytest.approx(4.0)
    assert line.to_judged.of_medians == pytest.approx(2.0)


@pytest.mark.parametrize(
    "value, unit, text", [(1234.5, "B", "1,234 B"), (5.678, "µs", "5.68 µs"), (0, "", "0"), (0.5, "", "0.5")]
)
def test_numbers_are_short(value, unit, text):
    assert number(value, unit) == text
