"""What a helper that fails says at the end is told, and samples or a run that would say nothing are no verdict."""

import os
import time

import pytest
from harness.errors import CannotMeasure

from .helpers import Broken, Helper
from .main import judge_again, parse


class Failing:
    def __init__(self, fail):
        self._fail = fail

    def turn(self):
        self._fail()


def raise_an_error():
    raise ValueError("its own words")


@pytest.mark.parametrize("fail, said", [(raise_an_error, "its own words"), (lambda: os._exit(3), "ended by itself")])
def test_the_last_words_of_a_helper_are_heard(fail, said):
    helper = Helper("a helper", Failing, fail)
    try:
        time.sleep(0.1)  # it has ended by now, or will while it is asked
        with pytest.raises(Broken, match=said):
            helper.ask()
    finally:
        helper.dispose()


@pytest.mark.parametrize("text", ["", "{bad", "[]\n", '{"t": 1}\n', '{"server": "plain", "t": 1}\n'])
def test_no_samples_are_no_verdict(tmp_path, text):
    path = tmp_path / "samples.jsonl"
    path.write_text(text)
    with pytest.raises(CannotMeasure):
        judge_again(path)


@pytest.mark.parametrize("words", [["--minutes", "1"], ["--minutes", "1.9", "--plant", "leak"], ["--minutes", "nan", "--only", "hour"]])
def test_a_run_that_is_too_short_to_say_anything_is_refused(capsys, words):
    with pytest.raises(SystemExit) as refused:
        parse(words)
    assert refused.value.code == 2
    assert "growth cannot be judged within less than 2 minutes" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--minutes", "2"], ["--minutes", "1", "--only", "names"], ["--minutes", "1", "--judge", "x"]])
def test_a_run_that_can_be_judged_is_not(words):
    parse(words)
