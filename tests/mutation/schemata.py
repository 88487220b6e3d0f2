"""All mutants of a file in one text, each asleep until it is chosen at run time (mutant.hpp).

An expression becomes `(active(1) ? (mutant) : (as written))`, a statement `{ if (!active(2)) { as written } }`. Within
a mutant stands the text as written, since only one is ever active; so the text grows with the number of mutants and
no faster. Every line knows whose it is: what the compiler says about a line tells which mutant does not compile.
"""

from collections import defaultdict

from operators import CONDITION, CONSTANT, EXPRESSION, REMOVAL, STATEMENT, SWITCH


class Region:
    """A part of the text with mutants of one form; regions nest, and never overlap otherwise."""

    def __init__(self, begin, end, group):
        self.begin, self.end, self.group = begin, end, group
        self.mutants = []
        self.inner = []


def group_of(mutant):
    return "statement" if mutant.form in (REMOVAL, STATEMENT) else mutant.form


def regions_of(mutants):
    """The regions at the top, with those within them."""
    by_place = {}
    for each in mutants:
        key = (each.begin, each.end, group_of(each))
        by_place.setdefault(key, Region(*key)).mutants.append(each)
    order = {"statement": 0, CONDITION: 1, SWITCH: 2, EXPRESSION: 3}
    ordered = sorted(by_place.values(), key=lambda each: (each.begin, -each.end, order[each.group]))
    top, open_ones = [], []
    for region in ordered:
        while open_ones and open_ones[-1].end <= region.begin:
            open_ones.pop()
        if open_ones and region.end > open_ones[-1].end:
            raise AssertionError(f"mutants overlap at {region.begin}")
        (open_ones[-1].inner if open_ones else top).append(region)
        open_ones.append(region)
    return top


class Writer:
    """Text with the owner of each line: the ids of the mutants that are to blame if it does not compile."""

    def __init__(self):
        self.pieces = []
        self.owners = defaultdict(list)
        self.line = 1

    def write(self, text, owners):
        for number in range(self.line, self.line + text.count("\n") + 1):
            if owners:
                self.owners[number].extend(owners)
        self.line += text.count("\n")
        self.pieces.append(text)

    def text(self):
        return "".join(self.pieces)


class Schemata:
    def __init__(self, source, mutants):
        self.source = source
        self.writer = Writer()
        mutants = [each for each in mutants if each.form != CONSTANT]
        self.write_span(0, len(source), regions_of(mutants), [])

    def text(self):
        return self.writer.text()

    def owners(self, line):
        return self.writer.owners.get(line, [])

    def write_span(self, begin, end, regions, owners):
        at = begin
        for region in regions:
            self.writer.write(self.source[at:region.begin], owners)
            self.write_region(region)
            at = region.end
        self.writer.write(self.source[at:end], owners)

    def write_region(self, region):
        getattr(self, "write_" + region.group)(region, [each.id for each in region.mutants])

    def as_written(self, region, owners):
        self.write_span(region.begin, region.end, region.inner, owners)

    def write_expression(self, region, owners):
        write = self.writer.write
        write("(", owners)
        for each in region.mutants:
            text = f"static_cast<{each.cast}>({each.text})" if each.cast else each.text
            write(f"\n::mutation::active({each.id}) ? ({text}) :", [each.id])
        cast = next((each.cast for each in region.mutants if each.cast), "")
        write(f"\nstatic_cast<{cast}>(" if cast else "\n(", owners)
        self.as_written(region, owners)
        write("))", owners)

    def write_condition(self, region, owners):
        name = region.mutants[0].name
        self.as_written(region, owners)
        if not self.source[region.begin:region.end].rstrip().endswith(";"):
            self.writer.write(";", owners)
        self.writer.write(f"\n::mutation::active({owners[0]}) ? !{name} : static_cast<bool>({name})", owners)

    def write_switch(self, region, owners):
        write = self.writer.write
        for each in region.mutants:
            write(f"\n::mutation::swapped({each.id}, ", [each.id])
        self.as_written(region, owners)
        for each in reversed(region.mutants):
            write(f",\n{each.labels[0]}, {each.labels[1]})", [each.id])

    def write_statement(self, region, owners):
        write = self.writer.write
        write("{", owners)
        removed = None
        for each in region.mutants:
            if each.form == REMOVAL:
                removed = each
            else:
                write(f"\nif (::mutation::active({each.id})) {{ {each.text} }}", [each.id])
        write(f"\nif (!::mutation::active({removed.id}))" if removed else "\n", owners)
        write("{ ", owners)
        self.as_written(region, owners)
        write("}}", owners)


def plain(source, mutant):
    """The text with this mutant alone, as somebody would have written it."""
    for begin, end, text in sorted(mutant.edits, reverse=True):
        source = source[:begin] + text + "\n" * source.count("\n", begin, end) + source[end:]
    return source
