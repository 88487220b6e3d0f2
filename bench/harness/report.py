"""The report, for people (Markdown) and for programs (JSON)."""

import json

from .histograms import as_text
from .judging import FLOOR, JUDGED, number
from .plots import histograms_of, name_of, slug


def table(heads, rows):
    cells = [heads, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return lines


def bars_table(summaries):
    rows = []
    for summary in summaries:
        for verdict in summary.verdicts:
            held = "held" if verdict.held else "missed"
            rows.append([summary.row.title, verdict.bar, verdict.measured, held])
    return table(["what", "bar", "measured", "verdict"], rows)


def both(comparison):
    """Of the medians, and the median of the pairs."""
    return "" if comparison is None else f"{comparison.of_medians:.2f} / {comparison.of_pairs:.2f}"


def figures_table(summaries):
    rows = []
    for summary in summaries:
        row = summary.row
        for line in summary.lines:
            rows.append(
                [
                    row.title,
                    line.name,
                    number(line.median, row.unit),
                    f"{number(line.low, row.unit)} – {number(line.high, row.unit)}",
                    both(line.to_reference),
                    row.reference if line.to_reference else "",
                    both(line.to_judged),
                ]
            )
    return table(["what", "server", "median", "range", "×", "of", "× monolock"], rows)


def peers_table(summaries):
    """A line for each row in which a peer took part: what each needs, as a multiple of the floor's and of
    monolock's."""
    fullest_first = sorted(map(names_of_peers, summaries), key=len, reverse=True)
    peers = list(dict.fromkeys(name for names in fullest_first for name in names))
    rows = []
    for summary in summaries:
        if not names_of_peers(summary):
            continue
        lines = {line.name: line for line in summary.lines}
        cells = [beside_peers(lines.get(name), summary.row) for name in (FLOOR, JUDGED, *peers)]
        rows.append([summary.row.title, *cells])
    return table(["what", FLOOR, "monolock", *peers], rows) if rows else []


def names_of_peers(summary):
    measured = {line.name for line in summary.lines}
    peers = [each.name for each in summary.row.measurement.contestants if each.optional]
    return [name for name in peers if name in measured]


def beside_peers(line, row):
    if line is None:
        return ""
    ratios = []
    if row.reference == FLOOR and line.to_reference:
        ratios.append(f"{three_digits(line.to_reference.of_medians)} × floor")
    if line.name not in (FLOOR, JUDGED) and line.to_judged:
        ratios.append(f"{three_digits(line.to_judged.of_medians)} × monolock")
    return number(line.median, row.unit) + (f" ({', '.join(ratios)})" if ratios else "")


def three_digits(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(summaries, facts, skipped, options, pictures=()):
    text = ["# monolock against the floor and its peers", ""]
    text += [f"- {name}: {value}" for name, value in facts.items()]
    text += [f"- runs: {options.runs} of {options.seconds} s each, in turn"]
    sizes = options.quantities()
    text += [f"- memory: between {sizes['sizes']} sessions; over TLS between {sizes['tls_sizes']}"]
    text += [f"- many sessions, and a long queue: {sizes['many']:,}"]
    few, many, most = (f"{sizes[f'in_memory_{name}']:,}" for name in ("few", "many", "most"))
    text += [f"- in memory: few sessions are {few}, many {many}, the most {most}"]
    text += [f"- left out: {name}: {reason}" for name, reason in skipped.items()]
    if options.quick:
        text += ["- quick mode: these figures show that the programs work and nothing else"]
    if not pictures:
        text += ["- no pictures: python3-matplotlib is not installed"]
    text += ["", f"Bars, for the server with {JUDGED}:", "", *bars_table(summaries), ""]
    if peers := peers_table(summaries):
        text += ["Beside the peers, ratios of medians:", "", *peers, ""]
    text += [line for title, name in pictures for line in (f"![{title}]({name})", "")]
    text += ["All figures. A ratio is that of the medians / the median of those of neighbouring runs.", ""]
    text += [*figures_table(summaries), ""]
    return "\n".join(text)


def as_json(summaries, measured, facts, skipped, options):
    return {
        "facts": facts,
        "quick": options.quick,
        "skipped": skipped,
        "summary": [json_of(summary) for summary in summaries],
        "runs": measured,
    }


def json_of(summary):
    row = summary.row
    return {
        "title": row.title,
        "measurement": row.measurement.title,
        "figure": row.figure,
        "unit": row.unit,
        "reference": row.reference,
        "lines": [
            {
                "server": line.name,
                "median": line.median,
                "min": line.low,
                "max": line.high,
                "to_reference": json_of_comparison(line.to_reference),
                "to_monolock": json_of_comparison(line.to_judged),
            }
            for line in summary.lines
        ],
        "bars": [vars(verdict) for verdict in summary.verdicts],
    }


def json_of_comparison(comparison):
    return comparison and {"of_medians": comparison.of_medians, "of_pairs": comparison.of_pairs}


def save_histograms(summaries, measured, folder):
    """The latencies of each contestant as text, in microseconds, for HdrHistogram's tools."""
    for summary in summaries:
        if summary.row.percentiles:
            for name, histogram in histograms_of(summary, measured).items():
                path = folder / f"{slug(f'{summary.row.percentiles} {name_of(name)}')}.hgrm"
                path.write_text(as_text(histogram, scale=1000))


def save(text, content, options):
    (options.folder / "report.md").write_text(text)
    (options.folder / "report.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
