"""PromQL as far as the tests must understand it: which series an expression asks for, and by which labels."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""\s+
    | (?P<string> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
    | (?P<range> \[[^\]]*\])
    | (?P<number> [0-9.][0-9.eEsmhdwy]*)
    | (?P<word> [a-zA-Z_:][a-zA-Z0-9_:]*)
    | (?P<sign> =~ | !~ | != | == | >= | <= | [-+*/%^<>=(){},@])
    """,
    re.VERBOSE,
)
_LISTS_LABELS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_OPERATORS = {"and", "or", "unless", "offset", "bool", "atan2"}
_AGGREGATIONS = {"sum", "min", "max", "avg", "count", "topk", "bottomk", "quantile", "group", "stddev", "stdvar"}


@dataclass(frozen=True)
class Matcher:
    label: str
    operator: str
    value: str

    def takes(self, value):
        equal = re.fullmatch(self.value, value) is not None if "~" in self.operator else value == self.value
        return equal != self.operator.startswith("!")


@dataclass(frozen=True)
class Selector:
    name: str
    matchers: tuple


def _tokens(text):
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match, f"not PromQL from {text[at:]!r}"
        at = match.end()
        if match.lastgroup:
            yield match.lastgroup, match[0]
    yield "end", ""


def _text_of(string):
    return re.sub(r"\\(.)", r"\1", string[1:-1])


def parse(text):
    """The selectors of an expression, and the labels by which it groups or joins."""
    tokens = list(_tokens(text))
    selectors, labels = [], set()
    at = 0
    while tokens[at][0] != "end":
        kind, word = tokens[at]
        at += 1
        if kind != "word" or word in _OPERATORS or word in _AGGREGATIONS:
            assert word != "{", f"a selector without a name: {text!r}"
        elif word in _LISTS_LABELS:
            if tokens[at][1] == "(":
                end = tokens.index(("sign", ")"), at)
                labels |= {label for kind, label in tokens[at:end] if kind == "word"}
                at = end + 1
        elif tokens[at][1] != "(":  # else it is a function
            matchers = []
            if tokens[at][1] == "{":
                end = tokens.index(("sign", "}"), at)
                inner = [token for token in tokens[at + 1 : end] if token != ("sign", ",")]
                for label, operator, value in zip(inner[::3], inner[1::3], inner[2::3], strict=True):
                    matchers.append(Matcher(label[1], operator[1], _text_of(value[1])))
                at = end + 1
            selectors.append(Selector(word, tuple(matchers)))
    return selectors, labels
