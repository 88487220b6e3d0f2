"""The command line of the soak."""

import argparse
import json
import os
import pathlib
import signal
import sys

from harness.errors import CannotMeasure
from harness.machine import load_average, machine_facts
from harness.options import ROOT, Options

from .helpers import Broken
from .judging import MINUTES_MIN, Verdict
from .names import use_names
from .report import write
from .running import check_programs, judge_series, soak

NAMES = 1_000_000


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="tests/soak/run", description="Everything at once, for an hour.")
    parser.add_argument("--minutes", type=float, default=60, help=f"at least {MINUTES_MIN} (default %(default)s)")
    parser.add_argument("--sessions", type=int, default=10_000, help="that beat, a tenth over TLS (default %(default)s)")
    parser.add_argument("--reload-seconds", type=float, default=60, help="between two SIGHUPs (default %(default)s)")
    parser.add_argument("--names", type=int, default=NAMES, help="used once each, before the hour (default %(default)s)")
    parser.add_argument("--only", choices=("names", "hour"), help="one part of it")
    parser.add_argument("--plant", choices=("leak",), help="servers that leak: the judgement must find it")
    parser.add_argument("--judge", type=pathlib.Path, metavar="SAMPLES", help="only judge the series of that file again")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build")
    flags = parser.parse_args(arguments)
    if not flags.minutes >= MINUTES_MIN and flags.only != "names" and not flags.judge:
        parser.error(
            f"--minutes {flags.minutes:g}: growth cannot be judged within less than {MINUTES_MIN} minutes, "
            "for what a start fills is still filling, of an honest server as of one that leaks"
        )
    return flags


def say(text):
    print(text, flush=True)


def judge_again(path):
    samples = {}
    try:
        for line in path.read_text().splitlines():
            sample = json.loads(line)
            samples.setdefault(sample.pop("server"), []).append(sample)
        verdicts = [(server, verdict) for server, series in samples.items() for verdict in judge_series(series)]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CannotMeasure(f"{path} is no file of samples: {error!r}") from None
    if not verdicts:
        raise CannotMeasure(f"{path} has no sample, so nothing was judged")
    return samples, verdicts


def run(flags):
    options = Options(quick=False, runs=1, seconds=1.0, only="", build_dir=flags.build_dir, server=flags.build_dir / "monolock")
    check_programs(options)
    os.environ["MONOLOCK_BIN"] = str(options.server)
    folder = flags.build_dir / "soak"
    folder.mkdir(exist_ok=True)
    facts = machine_facts(options)
    del facts["compiler"]
    facts |= {"seed": flags.seed, "planted": flags.plant or "nothing"}
    samples, verdicts = {}, []
    if flags.only != "hour" and not flags.plant:
        verdicts += [("names", verdict) for verdict in use_names(flags.names, options, say)]
    if flags.only != "names":
        facts |= {"minutes": flags.minutes, "sessions": flags.sessions}
        samples, of_hour = soak(flags, options, say)
        verdicts += of_hour
    facts["load average after"] = load_average()
    say(write(folder, facts, samples, verdicts))
    return verdicts


def stop(*_):
    raise KeyboardInterrupt


def main():
    flags = parse()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)  # what was sampled is judged
    try:
        verdicts = judge_again(flags.judge)[1] if flags.judge else run(flags)
    except (CannotMeasure, Broken) as error:
        sys.exit(f"soak: {error}")
    except KeyboardInterrupt:  # outside of the sampling
        sys.exit("soak: interrupted before anything was judged")
    broken: list[Verdict] = [verdict for _, verdict in verdicts if not verdict.held]
    for server, verdict in verdicts if flags.judge else []:
        say(f"{server}: {verdict}")
    sys.exit("\n".join(f"soak: {verdict}" for verdict in broken) if broken else 0)
