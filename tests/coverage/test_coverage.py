"""What the coverage report makes of clang's counters, with made-up counters."""

import json
import pathlib

import measure
import pytest
import report
from support import explained

ROOT = pathlib.Path("/sources")
FILE, ASSERTION = "src/core/a.cpp", "src/core/assert.hpp"
WANTED = {FILE, ASSERTION}
CODE, EXPANSION, BRANCH = 0, 1, 4


def function(branches, regions=()):
    return {"filenames": [f"{ROOT}/{FILE}", f"{ROOT}/{ASSERTION}"], "branches": branches, "regions": list(regions)}


def branches_of(*functions):
    files = {name: measure.File() for name in WANTED}
    measure.read_branches(json.dumps({"data": [{"functions": functions}]}), ROOT, WANTED, files)
    return files


def test_counters_of_all_programs_and_instances_add_up():
    files = branches_of(function([[4, 9, 4, 20, 3, 0, 0, 0, BRANCH]]), function([[4, 9, 4, 20, 0, 2, 0, 0, BRANCH]]))
    assert files[FILE].branches == {(4, 9, 4, 20): [3, 2]}
    assert files[FILE].share_of_branches() == (2, 2)


def test_one_way_never_taken_is_half_a_branch():
    files = branches_of(function([[4, 9, 4, 20, 3, 0, 0, 0, BRANCH]]))
    assert files[FILE].share_of_branches() == (1, 2)
    assert files[FILE].missed_branches() == [((4, 9, 4, 20), "false")]


def test_conditions_of_assertions_are_not_counted():
    in_macro = [7, 5, 7, 30, 1, 0, 1, 0, BRANCH]
    in_argument = [5, 25, 5, 30, 1, 0, 0, 0, BRANCH]
    expansion = [5, 5, 5, 40, 9, 0, 1, EXPANSION]
    beside = [6, 9, 6, 20, 1, 1, 0, 0, BRANCH]
    files = branches_of(function([in_macro, in_argument, beside], [expansion]))
    assert list(files[FILE].branches) == [(6, 9, 6, 20)]
    assert not files[ASSERTION].branches


def test_lines_are_those_of_the_wanted_files():
    files = {name: measure.File() for name in WANTED}
    lcov = f"SF:{ROOT}/{FILE}\nDA:3,7\nDA:4,0\nend_of_record\nSF:/usr/include/vector\nDA:3,0\nend_of_record\n"
    measure.read_lines(lcov, ROOT, WANTED, files)
    assert files[FILE].lines == {3: 7, 4: 0}
    assert files[FILE].share_of_lines() == (1, 2)


SOURCE = """int f(kind what) {
    switch (what) {
        case kind::a:
            return one(what == kind::a);
    }
    return 0;
}  // end
friend bool operator==(const f&, const f&) = default;
"""


def test_braces_what_the_compiler_wrote_and_ways_past_every_label_are_left_out(tmp_path):
    (tmp_path / "a.cpp").write_text(SOURCE)
    past, case, inside, written = (2, 13, 2, 17), (3, 9, 3, 21), (4, 24, 4, 39), (8, 52, 8, 53)
    branches = {past: [0, 4], case: [4, 0], inside: [0, 4], written: [1, 0]}
    files = {"a.cpp": measure.File(lines={1: 4, 2: 4, 4: 4, 5: 0, 6: 0, 7: 0, 8: 1}, branches=dict(branches))}
    measure.leave_out(files, tmp_path)
    assert list(files["a.cpp"].lines) == [1, 2, 4, 6, 8]
    assert list(files["a.cpp"].branches) == [case, inside]
    files["a.cpp"].branches = {past: [1, 4]}  # a peer sent something else
    measure.leave_out(files, tmp_path)
    assert list(files["a.cpp"].branches) == [past]


def test_a_gap_needs_a_reason_and_a_reason_a_gap(tmp_path):
    (tmp_path / "src/core").mkdir(parents=True)
    (tmp_path / FILE).write_text("one\n  two(x)\nthree\n")
    files = {FILE: measure.File(lines={1: 5, 2: 0}, branches={(2, 3, 2, 9): [1, 0]})}
    gaps = report.gaps_of(files, tmp_path)
    assert [(each.line, each.text, each.what) for each in gaps] == [
        (2, "two(x)", "never executed"), (2, "two(x)", "`two(x)` never false")]
    (tmp_path / "gaps.txt").write_text(f"{FILE}\n  in:  two(x)\n  why: because\n\n{FILE}\n  in:  three\n  why: once\n")
    stale = report.explain(gaps, explained.read(tmp_path / "gaps.txt", ("in", "why")))
    assert all(each.why == "because" for each in gaps)
    assert len(stale) == 1 and "three" in stale[0]


def test_the_bar_is_held_by_each_folder():
    good = measure.File(lines={line: 1 for line in range(100)})
    bad = measure.File(lines={line: int(line > 5) for line in range(100)})
    assert report.below_the_bar({FILE: good}) == []
    assert report.below_the_bar({FILE: good, "src/client/claim.cpp": bad}) == ["the claim: 94.0 % of lines"]
    assert report.percent(1, 3) == pytest.approx(33.3, abs=0.1)
