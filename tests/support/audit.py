"""The audit log, read the strict way and held against its promises, by rules of this file's own."""

import json
import re
from dataclasses import dataclass

HEAD = ["time", "event", "lock", "identity", "remote_addr"]
EXTRA = {
    "granted": ["token", "wait_ms"],
    "released": ["token", "held_ms", "reason"],
    "denied": [],
    "force_release": ["token"],
    "kick_waiter": [],
}
REASONS = ("graceful", "expired", "io_timeout", "force")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def parse(line):
    """One line as a dict, or an AssertionError: the exact keys in their order, of their types."""

    def no_duplicates(pairs):
        assert len(dict(pairs)) == len(pairs), f"a key twice: {line!r}"
        return dict(pairs)

    record = json.loads(line, object_pairs_hook=no_duplicates)
    event = record["event"]
    expected = ["time", "event", "lost"] if event == "audit_gap" else HEAD + EXTRA[event]
    assert list(record) == expected, f"keys or their order: {line!r}"
    assert _TIME.fullmatch(record["time"]), f"not RFC 3339 in UTC with milliseconds: {line!r}"
    for key in ("token", "wait_ms", "held_ms", "lost"):
        assert key not in record or (type(record[key]) is int and record[key] >= 0), f"{key}: {line!r}"
    assert record.get("reason", "force") in REASONS, f"unknown reason: {line!r}"
    assert not any(ord(char) < 0x20 or ord(char) == 0x7F for char in line), f"not escaped: {line!r}"
    return record


def parse_text(text):
    """All records of a whole log; it must end with a whole line, and hold no empty one."""
    assert text == "" or text.endswith("\n"), f"ends within a line: {text[-200:]!r}"
    return [parse(line) for line in text.split("\n")[:-1]]


def read(*paths):
    """All records of the files, in order."""
    return [record for path in paths for record in parse_text(path.read_text(encoding="utf-8"))]


@dataclass
class Summary:
    grants: dict  # token -> record
    ends: dict  # token -> record
    lost: int


def check(records):
    """Released before the next granted, one end for each grant, tokens rising for each lock and never
    given twice. Not for logs with gaps."""
    owner, last, grants, ends, lost = {}, {}, {}, {}, 0
    for record in records:
        event, lock, token = record["event"], record.get("lock"), record.get("token")
        if event == "granted":
            assert owner.get(lock) is None, f"granted while {owner[lock]} has it: {record}"
            assert token > last.get(lock, 0) and token not in grants, f"the token does not rise: {record}"
            owner[lock] = last[lock] = token
            grants[token] = record
        elif event == "released":
            assert owner.pop(lock, None) == token, f"released by one that was not the owner: {record}"
            same = ("lock", "identity", "remote_addr")
            assert all(record[key] == grants[token][key] for key in same), f"another's: {record}"
            ends[token] = record
        elif event == "audit_gap":
            lost += record["lost"]
    return Summary(grants, ends, lost)


def totals(records):
    """What /metrics must say of a whole log without gaps, by the names of its samples."""
    of = {event: [record for record in records if record["event"] == event] for event in EXTRA}
    released = {reason: sum(record["reason"] == reason for record in of["released"]) for reason in REASONS}
    ended = len(of["force_release"]) + len(of["kick_waiter"])
    return {
        ("monolock_acquires_total", ()): len(of["granted"]),
        **{("monolock_releases_total", (("reason", reason),)): count for reason, count in released.items()},
        ("monolock_locks_held", ()): len(of["granted"]) - len(of["released"]),
        ("monolock_acl_denials_total", ()): len(of["denied"]),
        ("monolock_protocol_errors_total", (("code", "0x02"),)): ended,
        ("monolock_protocol_errors_total", (("code", "0x18"),)): len(of["denied"]),
        ("monolock_wait_seconds_count", ()): len(of["granted"]),
        ("monolock_hold_seconds_count", ()): len(of["released"]),
        ("monolock_audit_lost_events_total", ()): sum(record.get("lost", 0) for record in records),
    }


def seconds(records, key):
    """The least and the most that the times under this key add up to: a record has whole milliseconds."""
    times = [record[key] for record in records if key in record]
    return sum(times) / 1000, (sum(times) + len(times)) / 1000
