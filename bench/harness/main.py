"""Measures, judges, reports."""

import os
import pathlib
import sys
import tempfile

from .cases import ROWS
from .certificates import make_certificates
from .errors import CannotMeasure
from .judging import summarise
from .machine import load_average, machine_facts
from .options import parse_options
from .report import as_json, markdown, save
from .running import measure_all

OWN_PROGRAMS = ("load", "floor_server", "tls_floor_server")


def check_programs(options):
    for program in [options.folder / name for name in OWN_PROGRAMS] + [options.server]:
        if not os.access(program, os.X_OK):
            raise CannotMeasure(f"{program} is not there: `make build` builds it")


def measure_and_report(options):
    check_programs(options)
    rows = [row for row in ROWS if options.only in row.title]
    facts, skipped = machine_facts(options), {}
    with tempfile.TemporaryDirectory(prefix="monolock-bench-") as folder:
        options.scratch = pathlib.Path(folder)
        make_certificates(options.scratch)
        measured = measure_all(rows, options, skipped)
    facts["load average after"] = load_average()
    summaries = [summarise(row, measured[row.measurement.title]) for row in rows]
    text = markdown(summaries, facts, skipped, options)
    save(text, as_json(summaries, measured, facts, skipped, options), options)
    print(text)


def main():
    try:
        measure_and_report(parse_options())
    except CannotMeasure as error:
        sys.exit(f"bench/run: {error}")
