"""Latencies as HDR histograms: sums of the runs, percentiles, and the text form that HdrHistogram's own
tools print and read (https://github.com/HdrHistogram/HdrHistogram).

A histogram here is a list of (value, count), ascending, where a value stands for those that do not differ
in three digits; the load generator makes it so (bench/load/latencies.hpp). No package of Debian has the
library for C++ or Python, and the text is all that is needed of it.
"""

import collections
import itertools
import math

SUB_BUCKETS = 2048  # values below this are exact, each doubling above has half as many buckets
TICKS_PER_HALF_DISTANCE = 5  # lines of the text for each halving of what is left to the whole


def merged(histograms):
    """The sum of several runs'."""
    counts = collections.Counter()
    for histogram in histograms:
        for value, count in histogram:
            counts[value] += count
    return sorted(counts.items())


def total(histogram):
    return sum(count for _, count in histogram)


def shares():
    """0, 0.1 … 0.4, 0.5, 0.55 … 0.7, 0.75, 0.775 …: each a single division, so that none drifts."""
    for halvings in itertools.count():
        steps = 2 * TICKS_PER_HALF_DISTANCE * 2**halvings
        for left in range(2 * TICKS_PER_HALF_DISTANCE, TICKS_PER_HALF_DISTANCE, -1):
            yield (steps - left) / steps


def at_percentiles(histogram):
    """(value, share, count of the values up to it), at shares that grow ever closer to 1. The last is 1."""
    count_all = total(histogram)
    points, seen = [], 0
    wanted = shares()
    share = next(wanted)
    for value, count in histogram[:-1]:
        seen += count
        while seen / count_all >= share:
            points.append((value, share, seen))
            share = next(wanted)
    if histogram:
        points.append((histogram[-1][0], 1.0, count_all))
    return points


def mean_and_deviation(histogram):
    count_all = total(histogram)
    mean = sum(value * count for value, count in histogram) / count_all
    variance = sum(count * (value - mean) ** 2 for value, count in histogram) / count_all
    return mean, math.sqrt(variance)


def as_text(histogram, scale):
    """The percentile distribution, with each value divided by `scale`."""
    lines = ["%12s %14s %10s %14s" % ("Value", "Percentile", "TotalCount", "1/(1-Percentile)"), ""]
    for value, share, seen in at_percentiles(histogram):
        line = "%12.3f %2.12f %10d" % (value / scale, share, seen)
        lines.append(line + (" %14.2f" % (1 / (1 - share)) if share < 1 else ""))
    mean, deviation = mean_and_deviation(histogram)
    largest = histogram[-1][0]
    buckets = max(largest.bit_length() - SUB_BUCKETS.bit_length() + 1, 0) + 1
    lines.append("#[Mean    = %12.3f, StdDeviation   = %12.3f]" % (mean / scale, deviation / scale))
    lines.append("#[Max     = %12.3f, Total count    = %12d]" % (largest / scale, total(histogram)))
    lines.append("#[Buckets = %12d, SubBuckets     = %12d]" % (buckets, SUB_BUCKETS))
    return "\n".join(lines) + "\n"
