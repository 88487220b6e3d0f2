"""The judge finds what is planted for it, each kind by its name."""

from ledger import Ledger


def ledger():
    return Ledger(given={"a", "b", "c", "d"}, acknowledged={"a", "b"}, refused={"c"})


def test_what_was_in_doubt_may_be_there_or_not():
    assert ledger().in_doubt == {"d"}
    assert ledger().judge(["a", "b"]).clean
    assert ledger().judge(["d", "b", "a"]).clean


def test_each_invariant_that_is_broken_is_named():
    assert ledger().judge(["a"]).lost == ["b"]
    assert ledger().judge(["a", "b", "c"]).applied == ["c"]
    assert ledger().judge(["a", "b", "x"]).unasked == ["x"]
    assert ledger().judge(["a", "b", "b"]).twice == ["b"]
    for broken in (["a"], ["a", "b", "c"], ["a", "b", "x"], ["a", "b", "b"]):
        assert not ledger().judge(broken).clean
