"""What a measurement is: contestants that take turns, each run of which yields figures by their names."""

import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Callable

from .errors import CannotMeasure
from .operators import asking
from .options import Options

RUN_SECONDS = 120  # a load generator that has not ended by then never will


def always_there(_options):
    return None


@dataclasses.dataclass(frozen=True)
class Contestant:
    """One of those that take turns."""

    name: str
    run: Callable[[Options], dict]  # one run; raises CannotMeasure
    absent: Callable[[Options], str | None] = always_there  # why it cannot run on this machine
    optional: bool = False  # its failure is a line in the report, not the end
    runs_max: int | None = None  # of one that takes long


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Rows of the report may share one: each shows another figure of the same runs."""

    title: str  # unique; shown while it runs
    contestants: tuple[Contestant, ...]


def run_program(program, arguments, options, seconds_max=RUN_SECONDS):
    """The JSON object that a program of build/bench prints."""
    command = [options.folder / program, *options.fill_in(arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max)
    except OSError as error:
        raise CannotMeasure(f"{program}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise CannotMeasure(f"{program} {' '.join(arguments)}: no end after {seconds_max} s") from error
    if done.returncode != 0:
        raise CannotMeasure(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if "samples" in result:
        result.update(memory_figures(result["samples"]))
    return result


def command(name, program, *arguments, seconds_max=RUN_SECONDS, runs_max=None):
    """A contestant that is a program of its own and needs no server: it prints a JSON object whose numbers
    are the figures."""

    def run(options):
        return run_program(program, arguments, options, seconds_max)

    return Contestant(name, run, runs_max=runs_max)


def served(server, *words, seconds_max=RUN_SECONDS, runs_max=None):
    """A contestant that is a server, fresh for each run, and measured by its client program in the mode
    that the words say."""

    def run(options):
        with server.started(options) as running:
            return run_client(server, running, words, options, seconds_max)

    optional = getattr(server, "optional", False)
    return Contestant(server.name, run, server.absent, optional, runs_max)


def served_while_asked(server, *words):
    """The same while operators ask for listings in a loop; a run without one that came whole is an error."""

    def run(options):
        with server.started(options) as running:
            with asking(running.admin, options.quantities()["crowd"]) as listings:
                result = run_client(server, running, words, options)
        if not listings.value:
            raise CannotMeasure("not one listing was whole")
        return {**result, "listings": listings.value}

    return Contestant(server.name, run)


def run_client(server, running, words, options, seconds_max=RUN_SECONDS):
    timing = ("--seconds", str(options.seconds), "--warm-up", str(options.seconds / 4))
    return run_program(server.client, (*running.flags, *timing, *words), options, seconds_max)


def memory_figures(samples):
    """Bytes a session: the slope between the two sizes, and all that was added since the start."""
    idle, small, large = samples
    return {
        "slope": (large["resident_bytes"] - small["resident_bytes"])
        / (large["sessions"] - small["sessions"]),
        "from_idle": (large["resident_bytes"] - idle["resident_bytes"]) / large["sessions"],
    }


def program_is_missing(program):
    """For `absent`: a program of build/bench that the build left out."""

    def absent(options):
        path = pathlib.Path(options.folder / program)
        return None if path.exists() else f"{program} was not built"

    return absent
