"""Two copies of the sources with builds of their own: one with all mutants asleep in it, one to change at will."""

import os
import pathlib
import re
import shutil
import subprocess

import schemata

COPIED = ("CMakeLists.txt", "CMakePresets.json", "CHANGELOG.md", "README.md", "SECURITY.md", "LICENSE", "cmake",
          "deploy", "examples", "include", "src", "tests", "bench", "scripts", "docs")
# Debug checks of the library are on: what runs off its end or dereferences nothing is caught.
FLAGS = "-g0 -w -D_GLIBCXX_ASSERTIONS -ferror-limit=0"
ROUNDS = 12
AT = re.compile(r"^(?:In file included from )?([^\s:]+):(\d+)(?::\d+)?:(?: (error|note|warning):)?")


def read(path):
    """A byte is a character: clang counts bytes."""
    return pathlib.Path(path).read_text(encoding="latin-1")


def write_if_changed(path, text):
    if not path.exists() or read(path) != text:
        path.write_text(text, encoding="latin-1")


class Tree:
    def __init__(self, root, place, flags):
        self.root, self.place, self.build = root, place, place / "build"
        self.flags = f"{FLAGS} {flags}".strip()
        self.place.mkdir(parents=True, exist_ok=True)

    def synchronise(self, changed=None):
        """A copy of the sources, but for those in `changed` ({path: text}). What is the same keeps its time."""
        changed = changed or {}
        wanted = set()
        for name in COPIED:
            top = self.root / name
            files = [top] if top.is_file() else [each for each in top.rglob("*") if each.is_file()]
            for each in files:
                path = each.relative_to(self.root)
                wanted.add(path)
                copy = self.place / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                if str(path) in changed:
                    write_if_changed(copy, changed[str(path)])
                elif not copy.exists() or copy.read_bytes() != each.read_bytes():
                    shutil.copyfile(each, copy)
                    shutil.copymode(each, copy)
        for each in self.place.rglob("*"):
            if each.is_file() and self.build not in each.parents and each.relative_to(self.place) not in wanted:
                each.unlink()

    def configure(self):
        subprocess.run(["cmake", "-G", "Ninja", "-S", self.place, "-B", self.build, "-DCMAKE_BUILD_TYPE=Debug",
                        "-DCMAKE_CXX_COMPILER=clang++-14", f"-DCMAKE_CXX_FLAGS_DEBUG={self.flags}"],
                       check=True, stdout=subprocess.DEVNULL)

    def make(self, targets):
        """(whether it built, what the compiler said)"""
        command = ["ninja", "-C", self.build, "-j", os.environ.get("JOBS", "1"), "-k", "0", *targets]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ran.returncode == 0, ran.stdout


def plant_all(tree, sources, mutants, targets, say, known=frozenset()):
    """Builds `tree` with all mutants in it. Returns those that cannot be planted this way: they go one by one. The ids
    in `known` are of some that an earlier build could not."""
    left_out = dict.fromkeys(known)
    for _ in range(ROUNDS):
        texts = {}
        for file, source in sources.items():
            texts[file] = schemata.Schemata(source, [each for each in mutants
                                                     if each.file == file and each.id not in left_out])
        tree.synchronise({file: text.text() for file, text in texts.items()})
        if not (tree.build / "build.ninja").exists():
            tree.configure()
        built, output = tree.make(targets)
        if built:
            return [each for each in mutants if each.id in left_out]
        blamed = blame(output, texts)
        if not blamed:
            raise SystemExit(f"the sources with mutants in them do not build:\n{output[-6000:]}")
        say(f"{len(blamed)} mutants do not compile beside the others, and are planted one by one")
        left_out.update(dict.fromkeys(blamed))
    raise SystemExit("the sources with mutants in them do not build: too many rounds")


def blame(output, texts):
    """The ids of the mutants that the compiler's errors come from: of each error the first place that has any."""
    blamed, found = set(), True
    for line in output.splitlines():
        match = AT.match(line)
        if not match:
            continue
        if match[3] == "error":
            found = False
        if found or match[3] is None:
            continue
        path = next((each for each in texts if f"/{match[1]}".endswith(f"/{each}")), None)
        owners = texts[path].owners(int(match[2])) if path else []
        if owners:
            blamed.update(owners[:1] if len(owners) > 1 else owners)
            found = True
    return blamed


def same_code(tree, sources, mutant, flags, cache):
    """Whether g++ makes the same objects of the sources with the mutant as without it."""
    units = [each for each in cache["units"] if mutant.file in dependencies(tree, each, flags, cache)]
    target = tree.place / mutant.file
    for unit in units:
        if unit not in cache:
            target.write_text(sources[mutant.file], encoding="latin-1")
            cache[unit] = compiled(tree, unit, flags)
        target.write_text(schemata.plain(sources[mutant.file], mutant), encoding="latin-1")
        try:
            changed = compiled(tree, unit, flags)
        finally:
            target.write_text(sources[mutant.file], encoding="latin-1")
        if changed != cache[unit] or changed is None:
            return False
    return True


def dependencies(tree, unit, flags, cache):
    """The files that go into an object."""
    known = cache.setdefault("dependencies", {})
    if unit not in known:
        ran = subprocess.run(["g++", *flags, "-MM", unit], cwd=tree.place, capture_output=True, text=True, check=True)
        known[unit] = set(ran.stdout.replace("\\\n", " ").split())
    return known[unit]


def compiled(tree, unit, flags):
    out = tree.place / "one.o"
    ran = subprocess.run(["g++", *flags, "-w", "-O2", "-g0", "-c", unit, "-o", out.name], cwd=tree.place,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out.read_bytes() if ran.returncode == 0 else None
