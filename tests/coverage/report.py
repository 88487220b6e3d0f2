"""The coverage as tables, and every gap with its reason (gaps.txt)."""

import json
import pathlib

from support import explained

BAR = 95.0


def percent(hit, of):
    return 100.0 * hit / of if of else 100.0


def total(files, share):
    shares = [share(each) for each in files]
    return sum(hit for hit, _ in shares), sum(of for _, of in shares)


def figures(files):
    lines = total(files, lambda each: each.share_of_lines())
    branches = total(files, lambda each: each.share_of_branches())
    return [f"{lines[0]} of {lines[1]}", f"{percent(*lines):.1f}", f"{branches[0]} of {branches[1]}",
            f"{percent(*branches):.1f}"]


def table(first, groups):
    rows = [[first, "lines", "%", "branches", "%"], *([name, *figures(files)] for name, files in groups)]
    widths = [max(len(row[at]) for row in rows) for at in range(5)]
    text = ["| " + " | ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                              for at, (cell, width) in enumerate(zip(row, widths))) + " |" for row in rows]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return text


def folder_of(name):
    return "the claim" if name.startswith("src/client/") else str(pathlib.PurePath(name).parent)


def by_folder(files):
    folders = {}
    for name, each in files.items():
        folders.setdefault(folder_of(name), []).append(each)
    return list(folders.items())


class Gap:
    def __init__(self, file, line, text, what):
        self.file, self.line, self.text, self.what = file, line, text, what
        self.why = ""

    def __str__(self):
        return f"`{self.file}:{self.line}` `{self.text}` {self.what}"


def gaps_of(files, root):
    found = []
    for name, each in sorted(files.items()):
        text = (root / name).read_bytes().splitlines()
        lines = [line.decode() for line in text]
        for line in each.missed_lines():
            found.append(Gap(name, line, explained.quotation(lines, line), "never executed"))
        for (line, column, last, until), never in each.missed_branches():
            condition = text[line - 1][column - 1:until - 1 if last == line else None].decode()
            found.append(Gap(name, line, explained.quotation(lines, line), f"`{condition}` never {never}"))
    return found


def explain(gaps, entries):
    """Writes the reasons into the gaps; returns the entries that fit none."""
    stale = []
    for entry in entries:
        fitting = [each for each in gaps if each.file == entry.file and each.text == entry["in"]]
        for each in fitting:
            each.why = entry["why"]
        if not fitting:
            stale.append(f"line {entry.number}: {entry.file}: {entry['in']}: no gap there")
    return stale


def below_the_bar(files):
    low = []
    for name, members in by_folder(files):
        for what, share in (("lines", lambda each: each.share_of_lines()),
                            ("branches", lambda each: each.share_of_branches())):
            reached = percent(*total(members, share))
            if reached < BAR:
                low.append(f"{name}: {reached:.1f} % of {what}")
    return low


def write(area, files, gaps):
    everything = ("all", list(files.values()))
    lines = ["# What the tests of the pure parts execute", "",
             "Unit tests, vectors and simulator. Conditions of assertions are not counted.", "",
             *table("folder", [*by_folder(files), everything]), "",
             *table("file", [(name, [each]) for name, each in sorted(files.items())]), "", "## Gaps", ""]
    lines += [f"- {each}: {each.why or '**no reason given**'}" for each in gaps] or ["None."]
    (area / "report.md").write_text("\n".join(lines) + "\n")
    (area / "report.json").write_text(json.dumps(
        {name: {"lines": each.share_of_lines(), "branches": each.share_of_branches()} for name, each in files.items()},
        indent=1) + "\n")


def summary(files):
    return "\n".join(table("folder", [*by_folder(files), ("all", list(files.values()))]))
