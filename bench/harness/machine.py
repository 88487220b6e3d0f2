"""What a report must say of the machine and the programs it measured."""

import os
import pathlib
import platform
import re
import subprocess

from .options import ROOT

NO_ANSWER = "unknown"


def first_line(command):
    """Of what a program prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        return done.stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return NO_ANSWER


def load_average():
    return round(os.getloadavg()[0], 2)


def machine_facts(options):
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": model[1] if model else platform.machine(),
        "kernel": platform.release(),
        "compiler": first_line([options.folder / "load", "--version"]),
        "commit": first_line(["git", "describe", "--always", "--dirty"]),
        "load average before": load_average(),
    }
