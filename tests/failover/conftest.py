"""The harness is tests/failover, what it shares with other tests is tests/faults and tests/support."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


def pytest_configure(config):
    config.addinivalue_line("markers", "deadline: judges milliseconds")
