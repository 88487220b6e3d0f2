"""Waiting for conditions with a deadline, and repeating what a busy machine may spoil."""

import functools
import os
import sys
import time

import pytest

PATIENCE = 10.0  # seconds, where the contract names no deadline

SCALE = float(os.environ.get("MONOLOCK_TEST_SCALE") or 1)
SLOWNESS = float(os.environ.get("MONOLOCK_TEST_SLOWNESS") or 1)  # of programs under a wrapper such as valgrind


def scaled(count, at_least=1):
    """A number of rounds; sanitizer builds run fewer of them."""
    return max(at_least, round(count * SCALE))


def wait_until(condition, what, within=PATIENCE, interval=0.005):
    """Returns the first true value of condition(), and fails when there was none in time."""
    within *= SLOWNESS
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within} s: {what}")
        time.sleep(interval)


def stays_true(condition, what, for_seconds, interval=0.01):
    """Fails as soon as condition() is false in the next so many seconds."""
    deadline = time.monotonic() + for_seconds
    while time.monotonic() < deadline:
        assert condition(), f"no longer true: {what}"
        time.sleep(interval)


class NeverAllowed(AssertionError):
    """What no load on the machine excuses (an early expiry, a second owner): never tried again."""


def tried_again(test=None, *, times=2):
    """For tests of a deadline the contract names: a busy machine may miss it, so a failure counts only
    if it happens in every attempt. NeverAllowed fails at once. They carry the mark `deadline`."""
    if test is None:
        return functools.partial(tried_again, times=times)

    @functools.wraps(test)
    def attempt(*args, **kwargs):
        for left in range(times, -1, -1):
            try:
                return test(*args, **kwargs)
            except NeverAllowed:
                raise
            except AssertionError as failure:
                if not left:
                    raise
                print(f"tried again, {left} left: {failure}", file=sys.stderr)

    attempt.pytestmark = [*getattr(test, "pytestmark", []), pytest.mark.deadline]
    return attempt
