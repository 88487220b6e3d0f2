"""The report, of made-up figures."""

import json

from .judging import AtMost, Row, Times, summarise
from .measurements import Contestant, Measurement
from .options import parse_options
from .report import as_json, markdown, save


def made_up():
    names = ("floor", "1 thread", "2 threads", "Redis")
    contestants = tuple(Contestant(name, lambda _options: {}, optional=name == "Redis") for name in names)
    measurement = Measurement("beat", contestants)
    row = Row("CPU per beat", measurement, "cost", "µs", (Times(1.15), AtMost(5)))
    runs = {name: [{"cost": 10.0 * (i + 1)}, {"cost": 12.0 * (i + 1)}] for i, name in enumerate(names)}
    return [summarise(row, runs)], {"beat": runs}


FACTS = {"cores": 2, "commit": "abc"}


def test_markdown_says_what_was_measured_and_judged():
    summaries, _ = made_up()
    text = markdown(summaries, FACTS, {"etcd": "is not installed"}, parse_options([]))
    assert "- commit: abc" in text
    assert "- left out: etcd: is not installed" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert ["CPU per beat", "≤ 1.15 × floor", "2.00 × floor", "missed"] in rows
    assert ["CPU per beat", "≤ 5.00 µs", "22.00 µs", "missed"] in rows
    ratios = ["4.00 / 4.00", "floor", "2.00 / 2.00"]
    assert ["CPU per beat", "Redis", "44.00 µs", "40.00 µs – 48.00 µs", *ratios] in rows
    beside = ["CPU per beat", "11.00 µs", "22.00 µs (2 × floor)", "44.00 µs (4 × floor, 2 × monolock)"]
    assert beside in rows


def test_quick_figures_say_that_they_mean_nothing():
    summaries, _ = made_up()
    assert "quick mode" in markdown(summaries, FACTS, {}, parse_options(["--quick"]))


def test_json_holds_the_summary_and_every_run(tmp_path):
    (tmp_path / "bench").mkdir()
    options = parse_options(["--build-dir", str(tmp_path)])
    summaries, measured = made_up()
    save("text", as_json(summaries, measured, FACTS, {}, options), options)
    content = json.loads((tmp_path / "bench" / "report.json").read_text())
    assert content["runs"] == measured
    [row] = content["summary"]
    assert row["bars"][0] == {"bar": "≤ 1.15 × floor", "measured": "2.00 × floor", "held": False}
    assert row["lines"][3]["to_monolock"] == {"of_medians": 2.0, "of_pairs": 2.0}
