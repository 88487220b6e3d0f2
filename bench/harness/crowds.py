"""Processes of the load generator that keep many clients, and what they say: modes hold and storm."""

import json
import os
import subprocess

from .errors import CannotMeasure

FOR_EVER = "86400"  # seconds: they end with their standard input


class Crowd:
    """One process of the generator. It prints a line of JSON when something has happened and whenever it is
    asked, and ends when its standard input does."""

    def __init__(self, mode, flags, options, *, clients, first=0, lease_ms=10_000, seconds=FOR_EVER, nice=0):
        command = [options.folder / "load", *flags, "--seconds", str(seconds), mode, "--clients", str(clients)]
        command += ["--first", str(first), "--lease-ms", str(lease_ms)]
        self.clients = clients
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A group of its own: a terminal's interrupt is for whoever measures.
            preexec_fn=lambda: (os.setpgrp(), os.nice(nice)),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def next(self):
        """Waits for the next thing that happens."""
        line = self.process.stdout.readline()
        if not line:
            raise CannotMeasure(f"load: {self.process.stderr.read().strip() or 'ended early'}")
        return json.loads(line)

    def ask(self):
        """What happened since it was asked last."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.next()


def total(lines, *keys):
    """The sum of a count over several lines."""
    return sum(value_at(line, keys) for line in lines)


def worst(lines, *keys):
    return max(value_at(line, keys) for line in lines)


def value_at(line, keys):
    for key in keys:
        line = line[key]
    return sum(line.values()) if isinstance(line, dict) else line


def shares(total_count, parts):
    """Splits a number into so many that differ by 1 at most."""
    return [total_count // parts + (part < total_count % parts) for part in range(parts)]
