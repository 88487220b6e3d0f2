"""What came of the mutants, for people (Markdown) and for programs (JSON)."""

import json
from collections import Counter, defaultdict

BAR = 95.0
UNIT, VECTORS, OTHERS, SIMULATOR, TIME = "unit tests", "vectors", "tests of other folders", "simulator", "time limit"


class Figures:
    def __init__(self, results):
        verdicts = Counter(each["verdict"] for each in results)
        self.by = Counter(each["by"] for each in results if each["verdict"] == "killed")
        self.not_compiled = verdicts["does not compile"]
        self.same_code = verdicts["same code"]
        self.killed = verdicts["killed"]
        self.explained = sum(1 for each in results if each["verdict"] == "survived" and each.get("reason"))
        self.unexplained = verdicts["survived"] - self.explained
        self.counted = self.killed + self.explained + self.unexplained

    def plain(self):
        """Of all mutants that change the program: those that equivalent.txt explains count as not killed."""
        return 100.0 * self.killed / self.counted if self.counted else 100.0

    def score(self):
        counted = self.counted - self.explained
        return 100.0 * self.killed / counted if counted else 100.0


HEADS = ("", "mutants", "killed", UNIT, VECTORS, OTHERS, SIMULATOR, TIME, "survived", "of them explained", "killed %",
         "without the explained %")


def row(name, figures):
    return [name, figures.counted, figures.killed, *(figures.by[by] for by in (UNIT, VECTORS, OTHERS, SIMULATOR, TIME)),
            figures.explained + figures.unexplained, figures.explained, f"{figures.plain():.1f}",
            f"{figures.score():.1f}"]


def table(rows):
    cells = [list(map(str, each)) for each in (HEADS, *rows)]
    widths = [max(len(each[at]) for each in cells) for at in range(len(HEADS))]
    lines = ["| " + " | ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                               for at, (cell, width) in enumerate(zip(each, widths))) + " |" for each in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


def grouped(results, key):
    groups = defaultdict(list)
    for each in results:
        groups[each[key]].append(each)
    return {name: Figures(each) for name, each in sorted(groups.items())}


def survivors(results, explained):
    lines = []
    for each in results:
        if each["verdict"] != "survived" or bool(each.get("reason")) != explained:
            continue
        lines.append(f"- `{each['file']}:{each['line']}` {each['operator']}: `{each['was']}` → `{each['now']}`"
                     + ("" if each["reached"] else " (no test comes by)"))
        if explained:
            lines.append(f"  {each['reason']}")
    return lines or ["None."]


def markdown(results, seeds):
    folders, files = grouped(results, "folder"), grouped(results, "file")
    all_of_them = Figures(results)
    lines = ["# Mutants", "",
             f"{len(results)} planted: {all_of_them.not_compiled} do not compile, {all_of_them.same_code} compile to "
             f"the same code as the original; the others are counted. The simulator had {seeds} seeds for each that "
             "the unit tests had let live.", "", "## Folders", "",
             *table([row(name, each) for name, each in folders.items()] + [row("all", all_of_them)]), "",
             "## Files", "", *table([row(name, each) for name, each in files.items()]), "",
             "## Survivors without a reason", "", *survivors(results, False), "",
             "## Survivors that equivalent.txt explains", "", *survivors(results, True), "",
             "## Those that compile to the same code", ""]
    lines += [f"- `{each['file']}:{each['line']}` `{each['was']}` → `{each['now']}`"
              for each in results if each["verdict"] == "same code"] or ["None."]
    return "\n".join(lines) + "\n"


def summary(results):
    folders = grouped(results, "folder")
    return "\n".join(table([row(name, each) for name, each in folders.items()] + [row("all", Figures(results))]))


def write(area, results, seeds, suffix):
    (area / f"report{suffix}.md").write_text(markdown(results, seeds))
    (area / f"report{suffix}.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def below_the_bar(results):
    return [f"{name}: {each.score():.1f} %" for name, each in grouped(results, "folder").items() if each.score() < BAR]
