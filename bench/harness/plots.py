"""Pictures of the figures, as SVG that reads on a light page and on a dark one."""

import dataclasses
import math

from .histograms import at_percentiles, merged
from .judging import FLOOR, JUDGED, AtMost, Times

INK = "#808080"  # legible on white and on black alike
FAINT = "#80808055"
LIMIT = "#d97706"
COLOURS = {
    FLOOR: "#8f8f8f",
    JUDGED: "#2f81d6",
    "2 threads": "#7fb2e5",
    "Redis": "#d1495b",
    "PostgreSQL": "#8a63d2",
    "etcd": "#2a9d8f",
}
SPARE = ["#b08900", "#c2569b", "#5b8c3a", "#b5651d"]  # for those not named above
NAMES = {JUDGED: "monolock", "2 threads": "monolock, 2 threads"}
WIDTH = 8.2  # inches


# --- what is shown -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Ratio:
    """A row with a bar on its ratio to the floor."""

    title: str
    limit: float
    by_name: dict  # of the contestants: (median of pairs, lowest pair, highest pair)


def ratios_to_floor(summaries, measured):
    found = []
    for summary in summaries:
        limits = [bar.limit for bar in summary.row.bars if isinstance(bar, Times) and bar.than == FLOOR]
        runs = measured[summary.row.measurement.title]
        if limits and FLOOR in runs:
            floor = [run[summary.row.figure] for run in runs[FLOOR]]
            by_name = {}
            for line in summary.lines:
                if line.name in (JUDGED, "2 threads"):
                    own = [run[summary.row.figure] for run in runs[line.name]]
                    pairs = [mine / other for mine, other in zip(own, floor)]
                    by_name[line.name] = (line.to_reference.of_pairs, min(pairs), max(pairs))
            found.append(Ratio(summary.row.title, limits[0], by_name))
    return found


def optional_names(row):
    return {contestant.name for contestant in row.measurement.contestants if contestant.optional}


def rows_with_peers(summaries):
    """Those that a peer took part in and that are about time."""
    return [
        summary
        for summary in summaries
        if summary.row.unit == "µs" and optional_names(summary.row) & {line.name for line in summary.lines}
    ]


def rows_about_memory(summaries):
    return [summary for summary in summaries if summary.row.unit == "B"]


def name_of(contestant):
    return NAMES.get(contestant, contestant)


def colour_of(name, names):
    others = [each for each in names if each not in COLOURS]
    return COLOURS.get(name) or SPARE[others.index(name) % len(SPARE)]


def short(value, unit):
    """A figure beside a mark: three digits, and the unit that fits."""
    for factor, bigger in {"B": [(1e6, "MB"), (1e3, "KB")], "µs": [(1e6, "s"), (1e3, "ms")]}.get(unit, []):
        if value >= factor * 0.9995:
            return f"{value / factor:.3g} {bigger}"
    return f"{value:.3g} {unit}"


# --- drawing -------------------------------------------------------------------------------------


def pyplot():
    """matplotlib with our style, or None where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    import matplotlib.pyplot

    matplotlib.rcParams.update(
        {
            "font.family": "sans-serif",
            "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
            "font.size": 9,
            "svg.fonttype": "none",  # text stays text
            "svg.hashsalt": "monolock",
            "text.color": INK,
            "axes.edgecolor": FAINT,
            "axes.labelcolor": INK,
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.spines.left": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": INK,
            "grid.alpha": 0.3,
            "grid.linewidth": 0.6,
            "xtick.color": INK,
            "ytick.color": INK,
            "ytick.left": False,
            "legend.frameon": False,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.transparent": True,
        }
    )
    return matplotlib.pyplot


def save(plt, figure, path):
    figure.savefig(path, format="svg", bbox_inches="tight", pad_inches=0.15, metadata={"Date": None})
    plt.close(figure)


def draw_ratios(plt, ratios, path):
    figure, axes = plt.subplots(figsize=(WIDTH, 0.42 * len(ratios) + 1.3))
    axes.axvline(1, color=INK, linewidth=1.2)
    for place, ratio in enumerate(reversed(ratios)):
        axes.plot([ratio.limit] * 2, [place - 0.32, place + 0.32], color=LIMIT, linewidth=2.5, zorder=2)
        for name, shift in ((JUDGED, 0.0), ("2 threads", -0.22)):
            if name in ratio.by_name:
                middle, low, high = ratio.by_name[name]
                colour = COLOURS[name]
                axes.plot([low, high], [place + shift] * 2, color=colour, linewidth=1.4, alpha=0.6, zorder=3)
                size = 6.5 if name == JUDGED else 4
                axes.plot([middle], [place + shift], "o", color=colour, markersize=size, zorder=4)
    axes.set_yticks(range(len(ratios)), [ratio.title for ratio in reversed(ratios)])
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("times the floor (1 = the bare loop)")
    axes.set_title("What monolock costs above the floor", pad=24)
    marks = [
        plt.Line2D([], [], color=COLOURS[JUDGED], marker="o", markersize=6.5, linewidth=1.4),
        plt.Line2D([], [], color=COLOURS["2 threads"], marker="o", markersize=4, linewidth=1.4),
        plt.Line2D([], [], color=LIMIT, marker="|", markersize=11, markeredgewidth=2.5, linewidth=0),
    ]
    labels = ["one thread: median and range of runs", "two threads", "bar: at most"]
    axes.legend(marks, labels, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncol=3, borderaxespad=0.2)
    save(plt, figure, path)


def draw_amounts(plt, summaries, title, axis_title, path):
    """A dot for each contestant of each row, on a logarithmic axis; the rows have one unit. Bars on the figure
    itself are marked."""
    unit = summaries[0].row.unit
    names = list(dict.fromkeys(line.name for summary in summaries for line in summary.lines))
    rows = [(summary, line) for summary in summaries for line in summary.lines]
    places, place = [], 0.0
    for index, (summary, _) in enumerate(rows):
        place += 1.9 if index and rows[index - 1][0] is not summary else 1.0
        places.append(place)
    figure, axes = plt.subplots(figsize=(WIDTH, 0.235 * place + 1.0))
    axes.set_xscale("log")
    lowest = min(line.low for _, line in rows)
    start = 10 ** math.floor(math.log10(lowest))
    for (summary, line), where in zip(rows, places):
        colour = colour_of(line.name, names)
        axes.plot([start, line.median], [where] * 2, color=colour, linewidth=1.2, alpha=0.45)
        axes.plot([line.low, line.high], [where] * 2, color=colour, linewidth=3.2, alpha=0.5)
        axes.plot([line.median], [where], "o", color=colour, markersize=6)
        for bar in summary.row.bars:
            if is_about(bar, line):
                ends = [where - 0.4, where + 0.4]
                axes.plot([bar.limit] * 2, ends, color=LIMIT, linewidth=2.5, label="bar: at most")
        axes.annotate(
            short(line.median, unit),
            (max([line.high, *(bar.limit for bar in summary.row.bars if is_about(bar, line))]), where),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    for summary in summaries:
        first = next(where for (of, _), where in zip(rows, places) if of is summary)
        axes.annotate(
            summary.row.title,
            (start, first - 0.85),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            fontweight="bold",
        )
    axes.set_yticks(places, [name_of(line.name) for _, line in rows])
    axes.set_ylim(places[-1] + 0.7, places[0] - 1.5)
    axes.set_xlim(start, max(line.high for _, line in rows) * 3)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_formatter(lambda value, _: short(value, unit))
    axes.set_xlabel(axis_title)
    marks, labels = axes.get_legend_handles_labels()
    if marks:
        axes.legend(marks[:1], labels[:1], loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    axes.set_title(title, pad=10)
    save(plt, figure, path)


def is_about(bar, line):
    return isinstance(bar, AtMost) and bar.of == line.name


def draw_latencies(plt, title, by_name, path):
    """Latency by percentile, the axis stretched towards the slowest as is usual for HDR histograms."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.9))
    axes.set_xscale("log")
    axes.set_yscale("log")
    furthest = 1.0
    for name, histogram in by_name.items():
        points = at_percentiles(histogram)
        # The largest value stands where the last but one does not reach: at one in all of them.
        rarity = [1 / (1 - share) if share < 1 else float(seen) for _, share, seen in points]
        furthest = max(furthest, *rarity)
        axes.plot(
            rarity,
            [value / 1000 for value, _, _ in points],
            color=colour_of(name, by_name),
            linewidth=2.2 if name == JUDGED else 1.5,
            linestyle="--" if name == FLOOR else "-",
            label=name_of(name),
            zorder=4 if name == JUDGED else 3,
        )
    ticks = [(10**n, percent) for n, percent in enumerate(PERCENTS) if 10**n <= furthest * 1.5]
    ticks.insert(1, (2, "50"))
    axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: short(value, "µs"))
    axes.set_xlabel("percent of the operations that were as fast or faster")
    axes.set_ylabel("latency")
    axes.set_title(f"Latency: {title}", pad=24)
    place = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "borderaxespad": 0.2}
    axes.legend(**place, ncol=6, columnspacing=1.4)
    save(plt, figure, path)


PERCENTS = ["0", "90", "99", "99.9", "99.99", "99.999", "99.9999"]


def histograms_of(summary, measured):
    """Of each contestant, all its runs together."""
    runs = measured[summary.row.measurement.title]
    return {name: merged(run["histogram"] for run in of_one) for name, of_one in runs.items()}


def slug(title):
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def draw_all(summaries, measured, folder):
    """Draws what there is to draw. Returns (title, file name) of the pictures; nothing without
    matplotlib."""
    plt = pyplot()
    if plt is None:
        return []
    pictures = []

    def picture(title, name):
        pictures.append((title, name))
        return folder / name

    if ratios := ratios_to_floor(summaries, measured):
        draw_ratios(plt, ratios, picture("Ratios to the floor", "ratios.svg"))
    if rows := rows_with_peers(summaries):
        path = picture("The peers", "peers.svg")
        draw_amounts(plt, rows, "The same job, done by others", "server CPU time or latency (logarithmic)", path)
    if rows := rows_about_memory(summaries):
        path = picture("Memory", "memory.svg")
        draw_amounts(plt, rows, "Resident memory for each session", "memory (logarithmic)", path)
    for summary in summaries:
        if summary.row.percentiles:
            title = summary.row.percentiles
            path = picture(f"Latency: {title}", f"latency-{slug(title)}.svg")
            draw_latencies(plt, title, histograms_of(summary, measured), path)
    return pictures
