"""docs/reliability.md names every invariant, none that does not exist, and marks those that no bug of the code breaks."""

import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[2]
page = (root / "docs" / "reliability.md").read_text()
promises = page[page.index("\n| promise |") : page.index("\n## What is not\n")]
simulators = {
    "tests/simulation/rule.hpp": "tests/simulation/planted",
    "tests/simulation/failover/rule.hpp": "tests/simulation/failover/planted",
}


def rules_of(header):
    return set(re.findall(r'invariant\{\s*rule::\w+,\s*"(\w+)"', (root / header).read_text()))


def of_histories():
    text = (root / "tests/history/check.hpp").read_text()
    body = re.search(r"enum class invariant[^{]*\{(.*?)\};", text, re.DOTALL)[1]
    return set(re.findall(r"^    (\w+),", body, re.MULTILINE))


def broken_by_code(folder):
    """The invariants for which a patch of what runs is planted."""
    names = set()
    for patch in (root / folder).glob("*.patch"):
        text = patch.read_text()
        if re.search(r"^\+\+\+ b/(src|include)/", text, re.MULTILINE):
            names.update(re.search(r"^Caught by: (.+)$", text, re.MULTILINE)[1].split())
    return names


def test_every_invariant_of_the_simulators_has_its_promise():
    known = set().union(*map(rules_of, simulators))
    assert len(known) > 50
    assert set(re.findall(r"`(\w+)`†?", promises)) == known


def test_every_invariant_of_the_histories_has_its_promise():
    known = of_histories()
    assert len(known) >= 14
    assert set(re.findall(r"(?<!\*)\*(\w+)\*(?!\*)", promises)) == known


def test_those_that_only_bugs_of_the_model_break_are_marked():
    lacking = set().union(*(rules_of(header) - broken_by_code(folder) for header, folder in simulators.items()))
    assert set(re.findall(r"`(\w+)`†", promises)) == lacking
