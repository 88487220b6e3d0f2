"""Measures, judges, reports."""

import signal
import sys

from .cases import ROWS
from .errors import CannotMeasure
from .judging import summarise
from .machine import load_average, machine_facts
from .options import parse_options
from .peers import accounting, versions
from .plots import draw_all
from .preparing import prepared
from .report import as_json, markdown, save, save_histograms
from .running import measure_all

def measure_and_report(options):
    rows = [row for row in ROWS if options.only in row.title]
    with prepared(options):
        facts, skipped = machine_facts(options) | versions(options), {}
        facts["CPU of a peer"] = accounting()
        measured = measure_all(rows, options, skipped)
    facts["load average after"] = load_average()
    summaries = [summarise(row, measured[row.measurement.title]) for row in rows]
    pictures = draw_all(summaries, measured, options.folder)
    text = markdown(summaries, facts, skipped, options, pictures)
    save_histograms(summaries, measured, options.folder)
    save(text, as_json(summaries, measured, facts, skipped, options), options)
    print(text)


def main():
    # So that servers and folders do not outlive a bench that is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench/run: told to end"))
    try:
        measure_and_report(parse_options())
    except CannotMeasure as error:
        sys.exit(f"bench/run: {error}")
