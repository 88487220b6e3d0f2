"""Whether a series is flat, and whether the books balance. Pure: figures go in, verdicts come out."""

import itertools
import statistics
from dataclasses import dataclass

QUARTER = 4
SAMPLES_MIN = 8  # in the second half; fewer say nothing
# Before that even an honest server's memory and CPU are still filling, and a leak looks no different. (Rings and buffers
# take longer, but little by then; what a longer run shows in addition is in README.md.)
MINUTES_MIN = 2


@dataclass(frozen=True)
class Verdict:
    name: str
    held: bool
    said: str  # what was found, in words

    def __str__(self):
        return f"{'held' if self.held else 'BROKEN'}: {self.name}: {self.said}"


@dataclass(frozen=True)
class Tolerance:
    """How much a figure may grow from the middle to the end: so much, or that share of its median, whichever is more."""

    figure: str
    unit: str
    scale: float = 1  # of the unit, in that of the samples
    absolute: float = 0
    share: float = 0

    def allowed(self, values):
        return max(self.absolute * self.scale, self.share * statistics.median(values))

    def text(self, value):
        return f"{value / self.scale:,.2f} {self.unit}".rstrip()


FLAT = (
    Tolerance("descriptors", "", absolute=10),
    Tolerance("resident", "MiB", scale=1 << 20, absolute=1, share=0.02),
    Tolerance("threads", "", absolute=0),
    Tolerance("cpu", "of a core", absolute=0.02, share=0.25),
)


def slope(times, values):
    """Theil and Sen's: the median of the slopes between all pairs, which up to 29 % of wild values do not move."""
    pairs = itertools.combinations(zip(times, values), 2)
    return statistics.median((late[1] - early[1]) / (late[0] - early[0]) for early, late in pairs)


def second_half(times, values):
    middle = (times[0] + times[-1]) / 2
    kept = [(time, value) for time, value in zip(times, values) if time >= middle]
    return [time for time, _ in kept], [value for _, value in kept]


def growth(times, values):
    """By how much the values rise over their time, the larger of two views: along the robust slope, and from the
    median of the first quarter to that of the last, which sees a rise that began late."""
    part = max(len(values) // QUARTER, 1)
    along = slope(times, values) * (times[-1] - times[0])
    between = statistics.median(values[-part:]) - statistics.median(values[:part])
    return max(along, between)


def judge_flat(tolerance, times, values):
    """Over the second half: what a start fills (buffers, rings, the allocator's pools) is full by then."""
    times, values = second_half(times, values)
    name = f"{tolerance.figure} do not grow" if tolerance.figure.endswith("s") else f"{tolerance.figure} does not grow"
    if len(values) < SAMPLES_MIN:
        return Verdict(name, False, f"only {len(values)} samples in the second half, {SAMPLES_MIN} are needed")
    grown, allowed = growth(times, values), tolerance.allowed(values)
    said = (
        f"{tolerance.text(grown)} in {(times[-1] - times[0]) / 60:.1f} minutes ({tolerance.text(allowed)} allowed), "
        f"median {tolerance.text(statistics.median(values))}, {tolerance.text(min(values))} to {tolerance.text(max(values))}"
    )
    return Verdict(name, grown <= allowed, said)


def judge_equal(name, left, right):
    """Each a pair of words and a number."""
    held = left[1] == right[1]
    return Verdict(name, held, f"{left[0]}: {left[1]:,}; {right[0]}: {right[1]:,}")


def judge_none(name, found):
    """A count, or a list of words."""
    count = found if isinstance(found, int) else len(found)
    words = "" if isinstance(found, int) or not found else f": {'; '.join(found[:3])}"
    return Verdict(name, count == 0, f"{count:,}{words}")


def judge_some(name, count):
    return Verdict(name, count > 0, f"{count:,}")


def judge_returned(name, before, after, share, unit_scale=1 << 20):
    grown = (after - before) / before
    said = f"{before / unit_scale:.2f} MiB before, {after / unit_scale:.2f} MiB after, {grown:+.1%} (up to {share:.0%} allowed)"
    return Verdict(name, grown <= share, said)


def judge_books(counters, expected, audit):
    """The server's counters against what its clients know they did, and against its own audit log.

    counters: of /metrics when all sessions had left; expected: grants, expired, forced, denied and refused as the
    clients counted; audit: grants, ends, held and lost, as `monolockctl audit verify` said.
    """
    ends = {reason: counters["releases", reason] for reason in ("graceful", "expired", "io_timeout", "force")}
    total = sum(ends.values())
    yield judge_equal(
        "grants are releases and held",
        ("grants", counters["acquires"]),
        ("releases and held", total + counters["held"]),
    )
    yield judge_equal("every grant was seen", ("grants", counters["acquires"]), ("seen by clients", expected["grants"]))
    yield judge_equal("nobody expired but the silent", ("expired", ends["expired"]), ("fell silent", expected["expired"]))
    yield judge_equal("nobody was forced out but by us", ("force", ends["force"]), ("asked for", expected["forced"]))
    yield judge_none("no reply was not taken", ends["io_timeout"])
    yield judge_equal("denials are those asked for", ("denied", counters["denials"]), ("expected", expected["denied"]))
    for name in ("accept_errors", "reload_failures", "handshake_errors", "audit_lost"):
        yield judge_none(f"no {name.replace('_', ' ')}", counters[name])
    yield judge_none("nobody is left", counters["active"] + counters["held"] + counters["waiters"])
    yield judge_equal("the audit log has every grant", ("proven", audit["grants"]), ("grants", counters["acquires"]))
    yield judge_equal("the audit log has every end", ("proven", audit["ends"]), ("releases", total))
    yield judge_none("the audit log has no gap and no open grant", audit["held"] + audit["lost"])
