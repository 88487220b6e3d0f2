"""Lists of exceptions, each with its reason and with the line of code that it is about:

    src/core/lock_index.cpp
      in:  if (one.bucket_count() <= room_kept) {
      why: a reason, which may go on
           in further lines

An entry quotes the code, so that it goes stale when the code changes; whoever reads the list says so then. A line that
stands more than once in its file is quoted with as many lines before it as tell it from the others.
"""

import dataclasses
import re


@dataclasses.dataclass
class Entry:
    file: str
    number: int  # of its line in the list
    fields: dict = dataclasses.field(default_factory=dict)

    def __getitem__(self, field):
        return self.fields[field]


def read(path, names):
    """The entries of a list, each of which must have the fields of these names."""
    entries, last = [], ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        field = re.match(r"^  (\w+): +(.*)$", line)
        if not line.strip() or line.startswith("#"):
            last = ""
        elif field and entries and field[1] in names:
            last = field[1]
            entries[-1].fields[last] = squeeze(field[2])
        elif line.startswith("   ") and last == "why":
            entries[-1].fields[last] += " " + squeeze(line)
        elif re.match(r"^\S+$", line):
            entries.append(Entry(line, number))
        else:
            raise ValueError(f"{path}:{number}: neither a file nor a field of it: {line}")
    for each in entries:
        missing = set(names) - set(each.fields)
        if missing:
            raise ValueError(f"{path}:{each.number}: without {', '.join(sorted(missing))}")
    return entries


def quotation(lines, number):
    """Line `number`, counted from 1, as an entry quotes it."""
    squeezed = [squeeze(line) for line in lines]
    first = number - 1
    while first > 0 and sum(squeezed[at:at + number - first] == squeezed[first:number]
                            for at in range(len(lines))) > 1:
        first -= 1
    return squeeze(" ".join(squeezed[first:number]))


def squeeze(text):
    return " ".join(text.split())
