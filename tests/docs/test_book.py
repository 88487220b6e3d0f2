"""Every block of code in our documents is run, compiled or parsed, or there is a reason why not; and what the reference
says of flags, exit status and calls is what the programs say."""

import json
import os
import pathlib
import re
import shlex
import subprocess

import book
import pytest
import yaml

EXCEPTIONS = book.Exceptions()
BLOCKS = book.blocks()
OURS = EXCEPTIONS.ours(BLOCKS)
IN_STORIES = ("sh", "console")  # test_page_stories.py runs them


def ours(*languages):
    return [pytest.param(block, id=block.where) for block in OURS if block.language in languages]


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout


# --- the exceptions


def test_every_exception_speaks_of_a_block_and_no_more():
    for entry in EXCEPTIONS.entries:
        count = sum(book.Exceptions.speaks_of(entry, block) for block in BLOCKS)
        assert count == 1 or (count > 1 and entry["in"].startswith("every ")), f"exceptions:{entry.number}: {count} blocks"


def test_every_block_that_somebody_else_tries_is_known_there():
    for entry in EXCEPTIONS.entries:
        if entry["by"] == "nobody":
            continue
        judge = book.ROOT / entry["by"]
        sources = " ".join(path.read_text() for path in (judge, *judge.parent.glob("page.py")))
        name = pathlib.Path(entry.file).name
        made_up = re.match(r"a dialogue|goes on|three machines|the same with", entry["why"])  # not of the page, but of what it tells
        assert made_up or name in sources, f"exceptions:{entry.number}: {entry['by']} knows nothing of {name}"


def test_every_block_has_somebody():
    nobody = [block.where for block in OURS if block.language not in (*IN_STORIES, *JUDGES, "cpp", "cmake", "text")]
    assert nobody == []


def test_every_target_of_make_is_there():
    """Also where nobody runs it."""
    targets = set(re.findall(r"^([\w-]+):", (book.ROOT / "Makefile").read_text(), re.M))
    for block in BLOCKS:
        if block.language in IN_STORIES:
            for target in re.findall(r"^(?:\$ )?make ([\w-]+)", block.text, re.M):
                assert target in targets, f"{block.where}: make {target}"


def test_servers_that_are_not_started_have_good_flags():
    for block in BLOCKS:
        entry = EXCEPTIONS.of(block)
        if entry is not None and entry["by"] != "nobody" and block.text.startswith("monolock -etcd"):
            said(os.environ["MONOLOCK_BIN"], "-check", *shlex.split(block.text, comments=True)[1:])


# --- what is only parsed


def as_json(text):
    try:
        json.loads(text)
    except json.JSONDecodeError:
        for line in text.splitlines():
            json.loads(line)


def as_yaml(text):
    assert all(document is not None for document in yaml.safe_load_all(text))


def as_python(text):
    compile(text, "block", "exec")


def as_ini(text):
    """A file of variables for the service."""
    variables = set(re.findall(r"\bMONOLOCK_\w+", said(os.environ["MONOLOCK_BIN"], "-h")))
    for line in text.splitlines():
        name, equals, _ = line.partition("=")
        assert equals and name in variables, line


JUDGES = {"json": as_json, "yaml": as_yaml, "python": as_python, "ini": as_ini}


@pytest.mark.parametrize("block", ours(*JUDGES))
def test_it_parses(block):
    JUDGES[block.language](block.text)


def commands_of_cmake(text):
    """One a line, without what each project has of its own: names, versions, components, places."""
    for pattern, common in [(r"\s*#.*", ""), (r" 0\.1\b", ""), (r" COMPONENTS [^)]+", ""), (r"\b(mine|consumer\w*)\b", "NAME"),
                            (r"(GIT_REPOSITORY|GIT_TAG) [^\s)]+", r"\1 PLACE")]:
        text = re.sub(pattern, common, text)
    return {line.strip() for line in text.splitlines() if line.strip()}


@pytest.mark.parametrize("block", ours("cmake"))
def test_a_project_outside_says_the_same(block):
    """Those of tests/consume are built against an installed library, and with its sources as a part of them."""
    projects = [(book.ROOT / "tests/consume" / kind / "CMakeLists.txt").read_text() for kind in ("installed", "part")]
    assert any(commands_of_cmake(block.text) <= commands_of_cmake(project) for project in projects)


@pytest.mark.parametrize("block", ours("text"))
def test_no_command_hides_as_a_text(block):
    assert not re.search(r"^\$ ", block.text, re.M), "a dialogue: that is console"


# --- the reference


def rows(page, title):
    """The cells of the tables below that title, without their heads."""
    text = (book.ROOT / page).read_text(encoding="utf-8")
    below = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.S | re.M)[1]
    tables = re.findall(r"^\|.*\n\|[-|: ]+\|\n((?:\|.*\n)+)", below, re.M)
    return [[cell.strip() for cell in line.strip("|").split("|")] for table in tables for line in table.splitlines()]


def plain(cell):
    return cell.replace("`", "")


SAME_DEFAULT = {"none": "", "off": "", "number of cores": "cores", "the system's": "", "host name and port": "host:port"}


def test_the_flags_are_those_of_the_server():
    """The table of -h has a column for the defaults, which may be empty."""
    table = said(os.environ["MONOLOCK_BIN"], "-h")
    (first,) = re.findall(r"^(.*)0\.0\.0\.0:7070 ", table, re.M)
    there = {
        tuple(line.split()[:2]): line[len(first) :].partition("  ")[0] if line[len(first)] != " " else ""
        for line in re.findall(r"^  -\S+ +MONOLOCK_.*$", table, re.M)
    }
    told = {
        (plain(flag), plain(variable)): plain(default)
        for flag, variable, default, _ in rows("docs/reference.md", "Flags and variables of the server")
    }
    assert {key: SAME_DEFAULT.get(default, default) for key, default in told.items()} == {
        key: SAME_DEFAULT.get(default, default) for key, default in there.items()
    }


def test_the_options_are_those_of_the_command():
    there = set(re.findall(r"^  (--[\w-]+)", said(os.environ["MONOLOCKCTL_BIN"], "help", "run"), re.M)) - {"--help"}
    told = {re.match(r"`(--[\w-]+)", row[0])[1] for row in rows("docs/monolockctl.md", "Options")}
    assert told == there


def test_the_calls_are_those_of_the_admin_api():
    paths = yaml.safe_load((book.ROOT / "docs/openapi.yaml").read_text())["paths"]
    there = {f"{method.upper()} {path}" for path, calls in paths.items() for method in calls if method != "parameters"}
    assert {plain(row[0]) for row in rows("docs/reference.md", "Admin API")} == there


def test_the_exit_status_is_the_servers():
    told = {int(row[0]) for row in rows("docs/reference.md", "Exit status")}
    server = os.environ["MONOLOCK_BIN"]
    tried = [["-version"], ["-listen", "127.0.0.1:0", "-audit-log", "/nowhere/audit.log"], ["-no-such-flag"]]
    assert {subprocess.run([server, *flags], capture_output=True, timeout=30).returncode for flags in tried} == told == {0, 1, 2}
