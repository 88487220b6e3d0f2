"""The Prometheus text format, read the strict way: what a scraper could stumble over is a failure."""

import math
import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_NAME}) (\S.*)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|summary|histogram)")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
_SUFFIXES = {"counter": [""], "gauge": [""], "summary": ["", "_sum", "_count"], "histogram": ["_bucket", "_sum", "_count"]}


@dataclass
class Family:
    name: str
    help: str
    type: str = ""
    samples: dict = field(default_factory=dict)  # (name, ((label, value), …)) -> number

    def value(self, suffix="", **labels):
        return self.samples[self.name + suffix, tuple(sorted(labels.items()))]


def _labels(text, line):
    labels, at = [], 0
    while at < len(text):
        match = _LABEL.match(text, at)
        assert match, f"not labels: {line!r}"
        labels.append((match[1], re.sub(r"\\(.)", lambda hit: "\n" if hit[1] == "n" else hit[1], match[2])))
        at = match.end()
    assert len(dict(labels)) == len(labels), f"a label twice: {line!r}"
    return tuple(sorted(labels))


def parse(text):
    """The families by name, in their order."""
    assert text.endswith("\n") and "\r" not in text
    families, current = {}, None
    for line in text.split("\n")[:-1]:
        if match := _HELP.fullmatch(line):
            assert match[1] not in families, f"HELP twice: {line!r}"
            current = families[match[1]] = Family(match[1], match[2])
        elif match := _TYPE.fullmatch(line):
            assert current and match[1] == current.name and not current.type, f"TYPE out of place: {line!r}"
            assert not current.samples, f"TYPE behind samples: {line!r}"
            current.type = match[2]
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, f"neither comment nor sample: {line!r}"
            assert current and current.type, f"a sample without HELP and TYPE: {line!r}"
            assert match[1] in [current.name + suffix for suffix in _SUFFIXES[current.type]], f"foreign: {line!r}"
            key = match[1], _labels(match[2] or "", line)
            assert key not in current.samples, f"twice: {line!r}"
            current.samples[key] = float(match[3])
    for family in families.values():
        _check(family)
    return families


def _check(family):
    assert family.samples, f"{family.name} has no sample"
    if family.type == "counter":
        assert family.name.endswith("_total"), family.name
        assert all(value >= 0 and math.isfinite(value) for value in family.samples.values()), family
    if family.type == "histogram":
        buckets = [(dict(labels)["le"], value) for (name, labels), value in family.samples.items() if "_bucket" in name]
        bounds = [float(bound) for bound, _ in buckets]
        counts = [count for _, count in buckets]
        assert bounds == sorted(set(bounds)) and bounds[-1] == math.inf, family
        assert counts == sorted(counts) and counts[-1] == family.value("_count"), family


def counters_of(families):
    """All that must never fall, by sample."""
    found = {}
    for family in families.values():
        if family.type != "gauge":
            found |= family.samples
    return found
