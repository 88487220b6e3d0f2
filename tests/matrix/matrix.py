"""The suite in every way that the server is built and run: `make matrix`.

    run [--fresh] [--list] [CELL…]      all cells, or those named

Each cell leaves its verdict in build/matrix/CELL.json. One that passed with the sources as they are now is not run
again, so a run that was cut off goes on where it stopped. Fails if any cell does.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time
import xml.etree.ElementTree

here = pathlib.Path(__file__).resolve().parent
root = here.parents[1]
area = root / "build" / "matrix"
BLACK_BOX = "-R ^blackbox"
VALGRIND = ("valgrind --quiet --tool=memcheck --error-exitcode=99 --leak-check=full --show-leak-kinds=definite "
            "--errors-for-leak-kinds=definite --num-callers=30 --fair-sched=try --vgdb=no "
            f"--suppressions={here / 'valgrind.supp'} --log-file={area / 'valgrind'}/%p.log")


@dataclasses.dataclass
class Cell:
    name: str
    preset: str
    about: str
    arguments: str = ""
    environment: dict = dataclasses.field(default_factory=dict)
    complaints: pathlib.Path | None = None  # a folder that must stay without a word


CELLS = [
    Cell("gcc", "dev", "g++ with -D_GLIBCXX_ASSERTIONS, whole suite"),
    Cell("clang", "tidy", "clang++-14, whole suite"),
    Cell("asan", "asan", "AddressSanitizer with UBSan, whole suite"),
    Cell("tsan", "tsan", "ThreadSanitizer, whole suite"),
    Cell("threads-1", "dev", "black box, one shard", BLACK_BOX, {"MONOLOCK_TEST_THREADS": "1"}),
    Cell("threads-4", "dev", "black box, four shards", BLACK_BOX, {"MONOLOCK_TEST_THREADS": "4"}),
    Cell("valgrind", "dev", "black box, the server under memcheck", f"{BLACK_BOX} --timeout 1500",
         {"MONOLOCK_WRAPPER": VALGRIND, "MONOLOCK_TEST_SKIPS": str(here / "valgrind_skips.txt"),
          "MONOLOCK_TEST_SLOWNESS": "5", "MONOLOCK_TEST_SCALE": "0.1"}, area / "valgrind"),
]


def digest():
    """Of all sources: git's list, the files as they are now."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, check=True,
                            stdout=subprocess.PIPE).stdout
    total = hashlib.sha256()
    for name in sorted(filter(None, listed.split(b"\0"))):
        path = root / os.fsdecode(name)
        if path.is_file():
            total.update(name + b"\0" + path.read_bytes())
    return total.hexdigest()


def verdict_of(cell):
    path = area / f"{cell.name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def run(cell, sources):
    junit = area / f"{cell.name}.xml"
    junit.unlink(missing_ok=True)
    if cell.complaints:
        cell.complaints.mkdir(parents=True, exist_ok=True)
        for old in cell.complaints.iterdir():
            old.unlink()
    environment = dict(os.environ, TEST_ARGS=f"{cell.arguments} --output-junit {junit}", **cell.environment)
    started = time.monotonic()
    with open(area / f"{cell.name}.log", "w") as log:
        status = subprocess.run([root / "scripts" / "test", cell.preset], cwd=root, env=environment, stdout=log,
                                stderr=subprocess.STDOUT).returncode
    verdict = {"cell": cell.name, "sources": sources, "status": status, "seconds": round(time.monotonic() - started),
               **counted(junit)}
    if cell.complaints:
        verdict["complaints"] = sorted(str(each) for each in cell.complaints.iterdir() if each.stat().st_size)
    verdict["good"] = (status == 0 and verdict["passed"] > 0 and not verdict["failures"]
                       and not verdict.get("complaints"))
    (area / f"{cell.name}.json").write_text(json.dumps(verdict, indent=1) + "\n")
    return verdict


def counted(junit):
    """A black-box program counts as the tests that its pytest ran."""
    total = {"passed": 0, "failed": 0, "skipped": 0, "failures": []}
    if not junit.exists():
        return total
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        summary = re.findall(r"^.*\b\d+ (?:passed|failed|skipped)\b.* in [\d.]+s.*$", output, re.MULTILINE)
        was_skipped = case.find("skipped")
        if was_skipped is not None and was_skipped.get("message", "").startswith("SKIP_"):  # by itself
            total["skipped"] += 1
            continue
        if case.get("status") != "run":
            total["failures"].append(case.get("name"))
        if summary:
            for number, what in re.findall(r"(\d+) (passed|failed|skipped)", summary[-1]):
                total[what] += int(number)
        else:
            total["passed" if case.get("status") == "run" else "failed"] += 1
    return total


def table(rows):
    heads = ["cell", "what", "passed", "failed", "skipped", "minutes", ""]
    cells = [heads, *rows]
    widths = [max(len(str(row[at])) for row in cells) for at in range(len(heads))]
    lines = ["| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def row(cell, verdict):
    if verdict is None:
        return [cell.name, cell.about, "", "", "", "", "not run"]
    return [cell.name, cell.about, verdict["passed"], verdict["failed"], verdict["skipped"],
            f"{verdict['seconds'] / 60:.1f}", "good" if verdict["good"] else "FAILED"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="run what passed already, too")
    parser.add_argument("--list", action="store_true", help="the cells, and how each went last")
    parser.add_argument("cells", nargs="*", metavar="CELL", help=", ".join(each.name for each in CELLS))
    arguments = parser.parse_args()
    unknown = set(arguments.cells) - {each.name for each in CELLS}
    if unknown:
        parser.error(f"no cell is called {', '.join(sorted(unknown))}")
    area.mkdir(parents=True, exist_ok=True)
    wanted = [each for each in CELLS if not arguments.cells or each.name in arguments.cells]
    sources = digest()
    if not arguments.list:
        for cell in wanted:
            known = verdict_of(cell)
            if not arguments.fresh and known and known["good"] and known["sources"] == sources:
                print(f"{cell.name}: passed already with these sources", flush=True)
                continue
            print(f"{cell.name}: {cell.about}", flush=True)
            verdict = run(cell, sources)
            for each in verdict["failures"]:
                print(f"  failed: {each}", flush=True)
            for each in verdict.get("complaints", []):
                print(f"  complaints: {each}", flush=True)
            if not verdict["good"]:
                print(f"  see {area / cell.name}.log", flush=True)
    verdicts = [(each, verdict_of(each)) for each in wanted]
    text = table([row(cell, verdict) for cell, verdict in verdicts])
    (area / "report.md").write_text(f"# The suite in every way\n\n{text}\n")
    print(text)
    return 0 if all(verdict and verdict["good"] for _, verdict in verdicts) else 1
