"""Fixtures: a lock server, and the examples' programs as processes that are always ended."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from programs import Program  # noqa: E402
from support.server import Server  # noqa: E402


@pytest.fixture
def server():
    """Ends in good order after the test, unless the test ended it."""
    made = Server("-threads", "2")
    try:
        yield made
        if made.exit_code() is None:
            made.stop()
    finally:
        made.dispose()


@pytest.fixture
def start():
    """start(command, **environment) gives a Program."""
    made = []

    def begin(*command, **environment):
        made.append(Program(command, environment))
        return made[-1]

    yield begin
    for each in made:
        each.dispose()


def pytest_runtest_makereport(item, call):
    """What the programs said stands in the report of a test that failed."""
    if call.excinfo is not None:
        for each in Program.living:
            item.add_report_section(call.when, each.name, "\n".join(each.lines()) + each.stderr())
