"""The table of cases makes sense."""

from .cases import ROWS
from .options import parse_options


def test_titles_are_unique():
    titles = [row.title for row in ROWS]
    assert len(titles) == len(set(titles))


def test_measurements_with_one_title_are_one():
    by_title = {}
    for row in ROWS:
        assert by_title.setdefault(row.measurement.title, row.measurement) is row.measurement


def test_contestants_of_a_measurement_have_names_of_their_own():
    for row in ROWS:
        names = [contestant.name for contestant in row.measurement.contestants]
        assert len(names) == len(set(names)), row.title


def test_bars_and_references_name_contestants():
    for row in ROWS:
        names = {contestant.name for contestant in row.measurement.contestants}
        assert row.reference is None or row.reference in names, row.title
        for bar in row.bars:
            assert bar.names() <= names, row.title


def test_words_in_braces_are_quantities_and_quick_ones_are_smaller():
    usual, quick = parse_options([]), parse_options(["--quick"])
    assert usual.fill_in(["--rounds", "{rounds}"]) == ["--rounds", "5000"]
    assert quick.fill_in(["--rounds", "{rounds}"]) == ["--rounds", "100"]
    assert quick.runs == 1


def test_no_quantity_is_larger_when_quick():
    usual, quick = parse_options([]).quantities(), parse_options(["--quick"]).quantities()
    assert usual.keys() == quick.keys()
    for name, value in usual.items():
        if isinstance(value, int):
            assert quick[name] <= value, name
