"""The report, for people (Markdown) and for programs (JSON)."""

import json

from .judging import JUDGED, number


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


def markdown(summaries, facts, skipped, options):
    text = ["# The server against the floor", ""]
    text += [f"- {name}: {value}" for name, value in facts.items()]
    text += [f"- runs: {options.runs} of {options.seconds} s each, in turn"]
    sizes = options.quantities()
    text += [f"- memory: between {sizes['sizes']} sessions; over TLS between {sizes['tls_sizes']}"]
    text += [f"- left out: {name}: {reason}" for name, reason in skipped.items()]
    if options.quick:
        text += ["- quick mode: these figures show that the programs work and nothing else"]
    text += ["", f"Bars, for the server with {JUDGED}:", "", *bars_table(summaries)]
    text += ["", "All figures. A ratio is that of the medians / the median of those of neighbouring runs.", ""]
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


def save(text, content, options):
    (options.folder / "report.md").write_text(text)
    (options.folder / "report.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
