"""The syntax tree of a source file, as clang sees it: nodes with their places in the text.

Only what stands in a namespace of ours is dumped, which is small. Places are byte offsets.
"""

import json
import subprocess

CLANG = "clang++-14"


class Node:
    """A node of clang's tree. `place` is (file, begin, end) or None where nothing of it stands in a file,
    or where a macro wrote it."""

    __slots__ = ("kind", "place", "macro", "data", "inner")

    def __init__(self, data):
        self.kind = data.get("kind", "")
        self.data = data
        self.inner = [Node(each) for each in data.get("inner", ()) if each.get("kind")]
        ends = data.get("range", {})
        begin, end = ends.get("begin", {}), ends.get("end", {})
        self.macro = "expansionLoc" in begin or "expansionLoc" in end
        self.place = None
        if not self.macro and "offset" in begin and "offset" in end and begin["in"] == end["in"]:
            self.place = (begin["in"], begin["offset"], end["offset"] + end["tokLen"])

    def opcode(self):
        return self.data.get("opcode", "")

    def type(self):
        spelled = self.data.get("type", {})
        return spelled.get("desugaredQualType", spelled.get("qualType", ""))

    def all(self):
        yield self
        for each in self.inner:
            yield from each.all()


def dump(root, source, flags):
    command = [CLANG, *flags, "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-Xclang",
               "-ast-dump-filter=monolock", source]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"{source} does not compile:\n{ran.stderr[:4000]}")
    return ran.stdout


def parse(text):
    """The top-level declarations in clang's dump."""
    decoder = json.JSONDecoder()
    at, nodes = 0, []
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return nodes
        data, at = decoder.raw_decode(text, at)
        name_files(data)
        nodes.append(Node(data))


def name_files(data):
    """Clang names a file only where it differs from the one named before: this writes it into every place."""
    current = ""
    pending = [data]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending.extend(reversed(one))
        elif isinstance(one, dict):
            if "offset" in one:
                current = one.get("file", current)
                one["in"] = current
            else:
                pending.extend(value for value in reversed(one.values())
                               if isinstance(value, (dict, list)))
