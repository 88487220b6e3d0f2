"""What the long runs (make faults, failover, fenced) share: how they are asked, and how they are ended."""

import argparse
import contextlib
import math
import os
import signal
import sys

INTERRUPTED = 130
_held = 0  # sections that are not disturbed
_is_due = False  # an interruption that came meanwhile


def no_words(about, *programs):
    """Takes --help, which shows that text, and refuses every other word. The environment must name the programs; ends
    the program with 2 where it does not."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for variable in programs:
        if not os.access(os.environ.get(variable) or "", os.X_OK):
            parser.error(f"{variable} names no program; make builds them and names them all")


def number_from(variable, default, kind=float, at_least=0):
    """The number that the environment names, or the default. Ends the program with 2 where it is none."""
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not at_least <= value < math.inf:
        name = "whole number" if kind is int else "number"
        print(f"{variable}={text}: it must be a {name} from {at_least} up", file=sys.stderr)
        sys.exit(2)
    return value


@contextlib.contextmanager
def undisturbed():
    """An interruption waits until the block is over: of what was half made nobody knows how to put it away."""
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1
    if _is_due and not _held:
        raise KeyboardInterrupt


def end(main):
    """Runs main and ends with its status. SIGTERM and SIGINT end it too, by a KeyboardInterrupt, so that servers,
    workers, namespaces and folders are put away; further ones do not disturb that."""

    def interrupt(number, frame):
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        if not _held:
            raise KeyboardInterrupt
        global _is_due
        _is_due = True

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
