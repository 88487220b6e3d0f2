"""The report, for people (Markdown), for programs (JSON), and as a picture (SVG)."""

import json
import statistics

from harness.judging import JUDGED
from harness.plots import COLOURS, INK, LIMIT, WIDTH, pyplot, save
from harness.report import table

MIB = 1 << 20
SLOWEST = (
    ("heartbeat, from when it was due", "beat_max_ms"),
    ("… of which the generator sent it late by", "beat_sent_late_max_ms"),
    ("handover", "handover_max_ms"),
    ("silence to the heir's grant, beyond the lease", "expiry_max_ms"),
    ("… the churn's own longest turn", "churn_late_ms"),
    ("scrape of /metrics and /healthz", "scrape_max_ms"),
    ("listing of all locks", "listing_max_ms"),
)
PANELS = (
    ("resident memory, MiB", "resident", 1 / MIB),
    ("descriptors", "descriptors", 1),
    ("CPU, cores", "cpu", 1),
    ("slowest heartbeat, ms", "beat_max_ms", 1),
    ("slowest handover, ms", "handover_max_ms", 1),
)


def markdown(facts, samples, verdicts, picture):
    text = ["# Soak", "", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    broken = [verdict for _, verdict in verdicts if not verdict.held]
    text += [f"{len(verdicts) - len(broken)} of {len(verdicts)} judgements held.", ""]
    rows = [[server, each.name, each.said.replace("|", "/"), "held" if each.held else "**BROKEN**"] for server, each in verdicts]
    text += [*table(["server", "what", "found", "verdict"], rows), ""]
    if samples:
        text += ["The slowest of all, and the median of the slowest of each sample:", ""]
    for server, series in samples.items():
        rows = [slowest_row(title, key, series) for title, key in SLOWEST]
        text += [*table([f"{server}, ms", "slowest", "at", "median"], rows), ""]
    for server, series in samples.items():
        text += [f"{server}: {work_done(series)}", ""]
    if picture:
        text += [f"![all of it over time]({picture})", ""]
    return "\n".join(text)


def slowest_row(title, key, series):
    worst = max(series, key=lambda sample: sample[key])
    typical = statistics.median(sample[key] for sample in series)
    return [title, f"{worst[key]:,.2f}", f"{worst['t']:,.0f} s", f"{typical:,.2f}"]


def work_done(series):
    counts = series[-1]["counts"]
    beats, handovers = (sum(sample[key] for sample in series) for key in ("beats", "handovers"))
    named = ("claims", "grants", "expired", "forced", "kicked", "denied", "reloads", "scrapes", "listings")
    parts = [f"{beats:,} heartbeats", f"{handovers:,} timed handovers", *(f"{counts.get(name, 0):,} {name}" for name in named)]
    return ", ".join(parts) + f"; median handover {statistics.median(sample['handover_p50_ms'] for sample in series):.2f} ms."


def draw(samples, path):
    """Returns whether it could be drawn."""
    plt = pyplot()
    if plt is None:
        return False
    figure, panels = plt.subplots(len(PANELS), 1, figsize=(WIDTH, 1.6 * len(PANELS)), sharex=True)
    colours = dict(zip(samples, (COLOURS[JUDGED], LIMIT)))
    for axes, (title, key, scale) in zip(panels, PANELS):
        axes.set_title(title)
        for server, series in samples.items():
            times = [sample["t"] / 60 for sample in series]
            axes.plot(times, [sample[key] * scale for sample in series], color=colours[server], linewidth=1.2, label=server)
        axes.set_ylim(bottom=0)
    panels[0].legend(loc="lower right")
    panels[-1].set_xlabel("minutes", color=INK)
    figure.tight_layout()
    save(plt, figure, path)
    return True


def write(folder, facts, samples, verdicts):
    """Returns the text."""
    picture = "soak.svg" if samples and draw(samples, folder / "soak.svg") else None
    text = markdown(facts, samples, verdicts, picture)
    (folder / "report.md").write_text(text)
    content = {
        "facts": facts,
        "verdicts": [{"server": server, **vars(verdict)} for server, verdict in verdicts],
        "samples": samples,
    }
    (folder / "report.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return text
