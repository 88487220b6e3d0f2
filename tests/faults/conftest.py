"""The harness is tests/faults, what it shares with the black-box tests is tests/support."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
