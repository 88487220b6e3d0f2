"""What the tests of the pure parts execute, from clang's own counters: lines, and both ways of every condition.

Clang counts in the source as it was written, not in what the optimiser or exceptions made of it, which is why it and
not gcov: there every call that might throw is a branch nobody can take.
"""

import dataclasses
import json
import os
import re
import subprocess

COV, PROFDATA = "llvm-cov-14", "llvm-profdata-14"
ASSERTION = "src/core/assert.hpp"


@dataclasses.dataclass
class File:
    lines: dict = dataclasses.field(default_factory=dict)     # number: times executed
    branches: dict = dataclasses.field(default_factory=dict)  # (line, column, line, column): [times true, times false]

    def missed_lines(self):
        return [line for line, count in sorted(self.lines.items()) if count == 0]

    def missed_branches(self):
        """(place, what it never was)"""
        return [(place, never) for place, counts in sorted(self.branches.items())
                for never, count in zip(("true", "false"), counts) if count == 0]

    def share_of_lines(self):
        return len(self.lines) - len(self.missed_lines()), len(self.lines)

    def share_of_branches(self):
        return 2 * len(self.branches) - len(self.missed_branches()), 2 * len(self.branches)


NOT_CODE = re.compile(r"^\s*(\}[;,]?\s*)*(//.*)?$")  # a brace that closes: what it is reached by counts already
DEFAULTED = re.compile(r"= default;")                 # the compiler wrote it
SWITCH = re.compile(r"\bswitch \($")


def run_all(build, commands, area, say):
    """Runs the programs; returns the counters of each."""
    profiles = []
    for number, (program, arguments) in enumerate(commands):
        profile = area / f"{number}.profraw"
        say(f"running {program} {' '.join(arguments)}")
        ran = subprocess.run([build / program, *arguments], env=dict(os.environ, LLVM_PROFILE_FILE=str(profile)),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode != 0:
            raise SystemExit(f"{program} fails:\n{ran.stdout[-4000:]}")
        profiles.append(merged([profile], profile.with_suffix(".profdata")))
    return profiles


def merged(profiles, into):
    subprocess.run([PROFDATA, "merge", "-sparse", "-o", into, *profiles], check=True)
    return into


def export(program, profile, what, root):
    ran = subprocess.run([COV, "export", f"-format={what}", f"-instr-profile={profile}", program], cwd=root, check=True,
                         capture_output=True, text=True)
    if "mismatched" in ran.stderr:
        raise SystemExit(f"{program}: {ran.stderr}")
    return ran.stdout


def read_lines(lcov, root, wanted, files):
    current = None
    for line in lcov.splitlines():
        if line.startswith("SF:"):
            name = relative(line[3:], root)
            current = files[name] if name in wanted else None
        elif line.startswith("DA:") and current is not None:
            number, count = line[3:].split(",")[:2]
            current.lines[int(number)] = current.lines.get(int(number), 0) + int(count)


def read_branches(exported, root, wanted, files):
    """Those of assertions are left out: that one fails is what must never happen."""
    for function in json.loads(exported)["data"][0]["functions"]:
        names = [relative(each, root) for each in function["filenames"]]
        assertions = [(names[region[5]], tuple(region[:4])) for region in function["regions"]
                      if region[7] == 1 and names[region[6]] == ASSERTION]
        for branch in function["branches"]:
            name, place = names[branch[6]], tuple(branch[:4])
            if name in wanted and name != ASSERTION and not any(
                    file == name and within(place, span) for file, span in assertions):
                counts = files[name].branches.setdefault(place, [0, 0])
                counts[0] += branch[4]
                counts[1] += branch[5]


def leave_out(files, root):
    """Lines and branches that are none: closing braces, what the compiler wrote, and the way past all labels of a
    switch that nobody takes. (Ours name every enumerator and have no default; what a peer sent can go past them, and
    then that way is taken and counts.)"""
    for name, each in files.items():
        text = (root / name).read_text(encoding="latin-1").splitlines()
        each.lines = {line: count for line, count in each.lines.items() if not NOT_CODE.match(text[line - 1])}
        each.branches = {place: counts for place, counts in each.branches.items()
                         if not DEFAULTED.search(text[place[0] - 1])
                         and not (counts[0] == 0 and SWITCH.search(text[place[0] - 1][:place[1] - 1]))}


def within(place, span):
    return span[:2] <= place[:2] and place[2:] <= span[2:]


def relative(path, root):
    return os.path.relpath(path, root) if os.path.isabs(path) else os.path.normpath(path)


def collect(programs, profiles, root, wanted):
    """Each program is read with its own counters: what several compile in, they may compile differently."""
    files = {name: File() for name in wanted}
    for program, profile in zip(programs, profiles):
        read_lines(export(program, profile, "lcov", root), root, wanted, files)
        read_branches(export(program, profile, "text", root), root, wanted, files)
    leave_out(files, root)
    return files
