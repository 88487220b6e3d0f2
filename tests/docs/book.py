"""The blocks of code in our documents, and what stands in the list of exceptions about them."""

import dataclasses
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support import explained  # noqa: E402

HERE = pathlib.Path(__file__).parent
FOLDERS = ("*.md", "docs/**/*.md", "deploy/**/*.md", "examples/**/*.md", "bench/*.md", "tests/**/README.md")


@dataclasses.dataclass(frozen=True)
class Block:
    page: str  # from the top folder
    line: int  # of its first line of code
    language: str
    text: str

    @property
    def where(self):
        return f"{self.page}:{self.line}"

    @property
    def is_program(self):
        return self.language == "cpp" and re.search(r"^int main\(", self.text, re.M) is not None

    @property
    def name(self):
        """Of what is made of it: cpp_30 of docs/cpp.md."""
        return re.sub(r"\W+", "_", self.page.removesuffix(".md")).lower().removeprefix("docs_") + f"_{self.line}"


def pages():
    return sorted({str(path.relative_to(ROOT)) for folder in FOLDERS for path in ROOT.glob(folder)})


def blocks_of(page):
    """In order. Those within a list stand as far to the left as their fence does."""
    found, fence, code = [], None, []
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"\s*```(.*)$", line)
        if mark and fence is None:
            fence, code = (number + 1, mark[1]), []
        elif mark:
            found.append(Block(page, *fence, textwrap.dedent("".join(f"{each}\n" for each in code))))
            fence = None
        elif fence is not None:
            code.append(line)
    assert fence is None, f"{page}: the last block does not end"
    return found


def blocks():
    return [block for page in pages() for block in blocks_of(page)]


class Exceptions:
    """tests/docs/exceptions: blocks that another test takes care of (`by` names it), or nobody does."""

    def __init__(self, path=HERE / "exceptions"):
        self.entries = explained.read(path, ("in", "by", "why"))

    @staticmethod
    def speaks_of(entry, block):
        if block.page != entry.file:
            return False
        every = re.fullmatch(r"every (\w+)", entry["in"])
        return block.language == every[1] if every else entry["in"] in explained.squeeze(block.text)

    def of(self, block):
        return next((entry for entry in self.entries if self.speaks_of(entry, block)), None)

    def ours(self, every=None):
        """The blocks that nobody else takes care of."""
        return [block for block in (blocks() if every is None else every) if self.of(block) is None]
