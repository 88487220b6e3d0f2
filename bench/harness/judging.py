"""What the runs say: rows of the report, how figures compare, and whether bars hold."""

import dataclasses
import statistics

from .measurements import Measurement

FLOOR = "floor"
JUDGED = "1 thread"  # the server that bars are about unless they say otherwise


@dataclasses.dataclass(frozen=True)
class Row:
    """A line group of the report: one figure of a measurement, for each contestant."""

    title: str
    measurement: Measurement
    figure: str = "cpu_us"
    unit: str = "µs"
    bars: tuple = ()
    reference: str | None = FLOOR  # the contestant that the others are compared with
    percentiles: str = ""  # what a plot of the latencies is called; the runs must carry histograms


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Of the runs of one with those of another: as ratios or as differences.

    Neither alone survives noise: drift spoils the comparison of medians, a single disturbed neighbour
    that of pairs.
    """

    of_medians: float
    of_pairs: float  # the median over neighbouring runs

    @property
    def worse(self):
        return max(self.of_medians, self.of_pairs)


def ratio(ours, theirs):
    """None if theirs are nothing."""
    if not all(theirs):
        return None
    pairs = [mine / other for mine, other in zip(ours, theirs)]
    return Comparison(statistics.median(ours) / statistics.median(theirs), statistics.median(pairs))


def difference(ours, theirs):
    pairs = [mine - other for mine, other in zip(ours, theirs)]
    return Comparison(statistics.median(ours) - statistics.median(theirs), statistics.median(pairs))


# --- bars ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Verdict:
    bar: str
    measured: str
    held: bool


@dataclasses.dataclass(frozen=True)
class AtMost:
    """The median itself."""

    limit: float
    of: str = JUDGED

    def judge(self, figures, unit):
        median = statistics.median(figures[self.of])
        return Verdict(f"≤ {number(self.limit, unit)}", number(median, unit), median <= self.limit)

    def names(self):
        return {self.of}


@dataclasses.dataclass(frozen=True)
class Times:
    """A multiple of another contestant's figure, by both ratios."""

    limit: float
    of: str = JUDGED
    than: str = FLOOR

    def judge(self, figures, unit):
        worse = ratio(figures[self.of], figures[self.than]).worse
        bar = f"≤ {self.limit:.2f} × {self.than}"
        return Verdict(bar, f"{worse:.2f} × {self.than}", worse <= self.limit)

    def names(self):
        return {self.of, self.than}


@dataclasses.dataclass(frozen=True)
class More:
    """What it is more than another contestant's figure, by both differences."""

    limit: float
    of: str
    than: str

    def judge(self, figures, unit):
        worse = difference(figures[self.of], figures[self.than]).worse
        bar = f"≤ {number(self.limit, unit)} more than {self.than}"
        return Verdict(bar, f"{number(worse, unit)} more", worse <= self.limit)

    def names(self):
        return {self.of, self.than}


# --- rows ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Line:
    """One contestant in a row."""

    name: str
    median: float
    low: float
    high: float
    to_reference: Comparison | None
    to_judged: Comparison | None


@dataclasses.dataclass(frozen=True)
class Summary:
    row: Row
    lines: list[Line]
    verdicts: list[Verdict]


def summarise(row, runs):
    """`runs` are those of the row's measurement; contestants that were left out have none."""
    figures = {name: [run[row.figure] for run in of_one] for name, of_one in runs.items()}
    lines = [line_of(name, figures, row.reference) for name in figures]
    verdicts = [bar.judge(figures, row.unit) for bar in row.bars if bar.names() <= figures.keys()]
    return Summary(row, lines, verdicts)


def line_of(name, figures, reference):
    own = figures[name]

    def compared_with(other):
        return ratio(own, figures[other]) if other in figures and other != name else None

    return Line(
        name, statistics.median(own), min(own), max(own), compared_with(reference), compared_with(JUDGED)
    )


def number(value, unit):
    if unit == "":
        return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"
    return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.2f} {unit}"
