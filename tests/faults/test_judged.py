"""What check_history says is carried on as it is, and what cannot be judged is no verdict."""

import json
import os
import subprocess

import pytest

from faults.judged import check_history

SETUP = {
    "kind": "setup", "scenario": "made up", "seed": 1,
    "handover_ms": 50, "slack_ms": 50, "served_ms": 8000, "causes_noted": True, "faults_noted": False,
}  # fmt: skip


def of_claim(at, kind, worker, **fields):
    return {"t": at * 1_000_000, "kind": kind, "worker": worker, "claim": 1, **fields}


# The first is ended by an operator and still believes when the second is granted.
FORCED = [
    of_claim(0, "ask", 1, lock="a", lease_ns=10**9),
    of_claim(10, "grant", 1, token=100, until=810 * 10**6),
    of_claim(20, "ask", 2, lock="a", lease_ns=10**9),
    of_claim(25, "waiting", 2),
    {"t": 30 * 10**6, "kind": "forcing", "lock": "a"},
    of_claim(40, "grant", 2, token=101, until=840 * 10**6),
    {"t": 45 * 10**6, "kind": "forced_over", "lock": "a"},
    of_claim(46, "loss", 1, why="administrator"),
    of_claim(90, "end", 2),
]


def written(folder, records, setup=SETUP):
    path = folder / "history.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in ([setup] if setup else []) + records))
    return str(path)


def test_what_was_checked_and_what_was_passed_over_are_told_apart(tmp_path):
    verdict = check_history([written(tmp_path, FORCED)])
    assert verdict.code == 0 and verdict.grants == 2 and verdict.losses == 1, verdict.text
    assert (verdict.checked["exclusion"], verdict.passed_over["exclusion"]) == (0, 1)
    assert (verdict.checked["one_token"], verdict.passed_over["one_token"]) == (2, 0)
    assert verdict.checked.keys() == verdict.passed_over.keys()


def test_a_silent_owner_is_followed_so_long_after_its_lease_and_never_before(tmp_path):
    """The lease counts from the last moment at which the server can have heard it; its last heartbeat may be older."""

    def followed(at):
        told = [
            {"t": 1, "kind": "near", "worker": 2},
            of_claim(5, "ask", 1, lock="a", lease_ns=10**9),
            of_claim(10, "grant", 1, token=100, until=805 * 10**6),
            of_claim(20, "ask", 2, lock="a", lease_ns=10**9),
            of_claim(25, "waiting", 2),
            {"t": 200 * 10**6, "kind": "silent", "worker": 1},
            of_claim(at, "grant", 2, token=101, until=(at + 800) * 10**6),
            of_claim(at + 1, "end", 2),
        ]
        return check_history([written(tmp_path, told)])

    assert followed(1190).past_lease_ms == 0  # heard at 185 or so
    assert followed(1207).past_lease_ms == 7
    assert followed(1251).late == {"silence_bounded": 1}


@pytest.mark.parametrize(
    "text",
    ["", "".join(json.dumps(record) + "\n" for record in FORCED), '{"kind":"setup","scen'],
    ids=("empty", "without", "torn"),
)
def test_a_history_without_its_setup_is_refused_in_words(tmp_path, text):
    """It says to what it is held: without it nothing would be checked, and nothing found."""
    path = tmp_path / "history.jsonl"
    path.write_text(text)
    done = subprocess.run([os.environ["CHECK_HISTORY_BIN"], path], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert done.stderr == "check_history: no setup in what was read\n"


@pytest.mark.parametrize("why, word", [("closed", "violation"), ("shutdown", "violation"), ("silence", "late")])
def test_of_what_is_lost_in_calm_only_silence_is_tried_again(tmp_path, why, word):
    told = [
        {"t": 1, "kind": "calm"},
        of_claim(1, "ask", 1, lock="a", lease_ns=10**9),
        of_claim(10, "grant", 1, token=100, until=810 * 10**6),
        {"t": 11 * 10**6, "kind": "server_down"},
        of_claim(820, "loss", 1, why=why),
        {"t": 10**9, "kind": "finish"},
    ]
    verdict = check_history([written(tmp_path, told)])
    assert f"{word} nothing_lost_in_calm: lost by {why}\n" in verdict.text, verdict.text
    assert (verdict.is_late, verdict.is_unsafe) == (word == "late", word == "violation")
    assert verdict.broken == {"nothing_lost_in_calm": 1}


def test_who_is_never_served_is_not_tried_again(tmp_path):
    told = [{"t": 1, "kind": "calm"}, of_claim(1, "ask", 1, lock="a", lease_ns=10**9), {"t": 9 * 10**9, "kind": "finish"}]
    verdict = check_history([written(tmp_path, told)])
    assert verdict.is_unsafe and verdict.violations == {"everyone_served": 2}, verdict.text
