"""The server's diagnostic log, read the strict way: a line that does not parse is a failure."""

import json
import re

_TEXT_FIELD = re.compile(r'([a-z][a-z0-9_]*)=("(?:[^"\\\x00-\x1f\x7f]|\\.)*"|[^\s"=\\\x00-\x1f\x7f]*)( |$)')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ESCAPE = re.compile(r'\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))')
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
LEVELS = ("debug", "info", "warn", "error")


def _unescape(text):
    def one(match):
        digits = match[1] or match[2] or match[3]
        return chr(int(digits, 16)) if digits else _SHORT.get(match[4], match[4])

    return _ESCAPE.sub(one, text)


def _check_head(record, line):
    head = list(record)[:3]
    assert head == ["time", "level", "msg"], f"a line must begin with time, level and msg: {line!r}"
    assert _TIME.fullmatch(record["time"]), f"not RFC 3339 in UTC: {line!r}"
    assert record["level"] in LEVELS, f"unknown level: {line!r}"


def parse_text(line):
    """One logfmt line as a dict in the order of its keys."""
    record = {}
    at = 0
    while at < len(line):
        match = _TEXT_FIELD.match(line, at)
        assert match, f"not logfmt from column {at}: {line!r}"
        key, value, _ = match.groups()
        assert key not in record, f"{key} twice: {line!r}"
        record[key] = _unescape(value[1:-1]) if value.startswith('"') else value
        at = match.end()
    _check_head(record, line)
    return record


def parse_json(line):
    def no_duplicates(pairs):
        assert len(dict(pairs)) == len(pairs), f"a key twice: {line!r}"
        return dict(pairs)

    record = json.loads(line, object_pairs_hook=no_duplicates)
    assert isinstance(record, dict), f"not an object: {line!r}"
    _check_head(record, line)
    return record


def parse(line):
    return parse_json(line) if line.startswith("{") else parse_text(line)
