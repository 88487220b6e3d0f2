"""What the matrix makes of a run, with made-up runs."""

import matrix

JUNIT = """<?xml version="1.0"?>
<testsuite tests="6">
 <testcase name="lock_table.grants" status="run"><system-out>[  PASSED  ] 1 test.</system-out></testcase>
 <testcase name="lock_table.ends" status="fail"><failure/><system-out>boom</system-out></testcase>
 <testcase name="fork.under_tsan" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
 <testcase name="lock_table.missing" status="notrun"><skipped message="Unable to find executable"/></testcase>
 <testcase name="blackbox.test_queue" status="run"><system-out>....s
7 passed, 2 skipped in 3.20s
</system-out></testcase>
 <testcase name="blackbox.test_lease" status="fail"><failure/><system-out>F..
1 failed, 5 passed in 61.02s (0:01:01)
</system-out></testcase>
</testsuite>
"""


def test_a_black_box_program_counts_as_its_tests(tmp_path):
    junit = tmp_path / "cell.xml"
    junit.write_text(JUNIT)
    assert matrix.counted(junit) == {"passed": 13, "failed": 3, "skipped": 3,
                                     "failures": ["lock_table.ends", "lock_table.missing", "blackbox.test_lease"]}


def test_a_cell_without_results_is_none_that_passed(tmp_path):
    assert matrix.counted(tmp_path / "none.xml")["passed"] == 0
    cell = matrix.CELLS[0]
    assert matrix.row(cell, None)[-1] == "not run"


def test_every_cell_has_a_name_of_its_own():
    names = [each.name for each in matrix.CELLS]
    assert len(names) == len(set(names))
