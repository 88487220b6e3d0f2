"""Takes the measurements: contestants in turn, so that a change in the machine meets all of them alike."""

import sys
import time

from .errors import CannotMeasure


def run_in_turn(measurement, options, skipped):
    """The runs of each contestant, A B C A B C …; `skipped` learns why one was left out."""
    here = []
    for contestant in measurement.contestants:
        reason = contestant.absent(options)
        if reason is None:
            here.append(contestant)
        else:
            skipped[contestant.name] = reason
    runs = {contestant.name: [] for contestant in here}
    for turn in range(options.runs):
        for contestant in here:
            if contestant.name not in runs or turn >= (contestant.runs_max or options.runs):
                continue
            try:
                runs[contestant.name].append(contestant.run(options))
            except CannotMeasure as error:
                if not contestant.optional:
                    raise
                del runs[contestant.name]  # half a row would look like a whole one
                skipped[f"{contestant.name}, {measurement.title}"] = str(error)
    check_tls(runs)
    return runs


def check_tls(runs):
    """What did not negotiate the same cannot be compared."""
    negotiated = {run.get("tls", "") for of_one in runs.values() for run in of_one}
    if len(negotiated) > 1:
        raise CannotMeasure(f"not the same TLS everywhere: {', '.join(sorted(negotiated))}")


def measure_all(rows, options, skipped):
    """The runs of all measurements that the rows need, by title; each is taken once."""
    measured = {}
    for row in rows:
        title = row.measurement.title
        if title not in measured:
            print(f"  {title} …", end="", file=sys.stderr, flush=True)
            started = time.monotonic()
            measured[title] = run_in_turn(row.measurement, options, skipped)
            print(f" {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return measured
