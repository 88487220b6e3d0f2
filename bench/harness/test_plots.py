"""What the pictures show, of made-up figures; and that they can be drawn, where there is matplotlib."""

import pytest

from .judging import AtMost, Row, Times, summarise
from .measurements import Contestant, Measurement
from .plots import draw_all, pyplot, ratios_to_floor, rows_about_memory, rows_with_peers, short, slug

HISTOGRAM = [[10_000, 90], [20_000, 9], [900_000, 1]]


def measurement(title, *names):
    return Measurement(
        title, tuple(Contestant(name, lambda _options: {}, optional=name == "Redis") for name in names)
    )


def made_up():
    beat = measurement("beat", "floor", "1 thread", "2 threads", "Redis")
    memory = measurement("memory", "1 thread", "Redis")
    rows = [
        Row("CPU per beat", beat, bars=(Times(1.15),), percentiles="a beat"),
        Row("unbarred", beat),
        Row("memory", memory, "slope", "B", (AtMost(640),), reference=None),
    ]
    measured = {
        of.title: {
            contestant.name: [
                {"cpu_us": base * (i + 1), "slope": 500.0, "histogram": HISTOGRAM} for base in (10.0, 12.0)
            ]
            for i, contestant in enumerate(of.contestants)
        }
        for of in (beat, memory)
    }
    return [summarise(row, measured[row.measurement.title]) for row in rows], measured


def test_ratios_are_those_of_rows_with_a_bar_against_the_floor():
    [ratio] = ratios_to_floor(*made_up())
    assert (ratio.title, ratio.limit) == ("CPU per beat", 1.15)
    assert ratio.by_name == {"1 thread": (2.0, 2.0, 2.0), "2 threads": (3.0, 3.0, 3.0)}


def test_peers_are_shown_where_they_took_part_in_a_row_about_time():
    summaries, _ = made_up()
    assert [summary.row.title for summary in rows_with_peers(summaries)] == ["CPU per beat", "unbarred"]
    assert [summary.row.title for summary in rows_about_memory(summaries)] == ["memory"]


@pytest.mark.parametrize(
    "value, unit, text",
    [(336, "B", "336 B"), (1.19e6, "B", "1.19 MB"), (32.4, "µs", "32.4 µs"), (1290, "µs", "1.29 ms")],
)
def test_figures_beside_marks_are_short(value, unit, text):
    assert short(value, unit) == text


def test_files_have_plain_names():
    assert slug("a heartbeat, 10,000 a second") == "a-heartbeat-10-000-a-second"


@pytest.mark.skipif(pyplot() is None, reason="matplotlib is not installed")
def test_pictures_are_drawn(tmp_path):
    pictures = draw_all(*made_up(), tmp_path)
    assert [name for _, name in pictures] == ["ratios.svg", "peers.svg", "memory.svg", "latency-a-beat.svg"]
    for _, name in pictures:
        assert "</svg>" in (tmp_path / name).read_text()
    assert "CPU per beat" in (tmp_path / "ratios.svg").read_text()
