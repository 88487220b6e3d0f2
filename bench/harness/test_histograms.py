"""HDR histograms, of made-up values."""

import re

import pytest

from .histograms import as_text, at_percentiles, mean_and_deviation, merged

UNIFORM = [(value, 1) for value in range(1, 1001)]


def test_runs_are_added():
    assert merged([[(1, 2), (5, 1)], [(3, 1), (5, 4)]]) == [(1, 2), (3, 1), (5, 5)]


def test_percentiles_are_values_below_which_the_share_lies():
    points = at_percentiles(UNIFORM)
    for value, share, seen in points:
        assert seen == value, "of so many values the last is this one"
        assert seen / 1000 >= share
    assert points[0] == (1, 0.0, 1)
    assert points[-1] == (1000, 1.0, 1000)
    assert (500, 0.5, 500) in points
    assert (750, 0.75, 750) in points


def test_percentiles_grow_ever_closer_to_the_whole():
    shares = [share for _, share, _ in at_percentiles(UNIFORM)]
    assert shares == sorted(shares)
    assert [round(share, 6) for share in shares[:8]] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6]
    assert shares[-2] > 0.998


def test_one_value_is_every_percentile():
    assert at_percentiles([(7, 3)]) == [(7, 1.0, 3)]


def test_mean_and_deviation():
    mean, deviation = mean_and_deviation([(2, 1), (4, 2), (6, 1)])
    assert (mean, deviation) == (pytest.approx(4), pytest.approx(2**0.5))


def test_the_text_is_what_the_tools_read():
    text = as_text([(1000, 90), (2000, 9), (9000, 1)], scale=1000)
    lines = text.splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert lines[1] == ""
    figures = [line.split() for line in lines[2:] if not line.startswith("#")]
    assert figures[0] == ["1.000", "0.000000000000", "90", "1.00"]
    assert figures[-1] == ["9.000", "1.000000000000", "100"]
    assert ["2.000", "0.950000000000", "99", "20.00"] in figures
    assert re.fullmatch(r"#\[Max +=        9\.000, Total count +=          100\]", lines[-2])
    assert re.fullmatch(r"#\[Buckets =            4, SubBuckets     =         2048\]", lines[-1])
