"""The manual pages: they say of every flag and variable what the tables of the programs say, and of no other; and
no reader of manual pages has anything to complain of.

MANUAL_DIR has the pages, COMPLETIONS_BIN is the program that knows the options.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "man"
PAGES = sorted(pathlib.Path(os.environ["MANUAL_DIR"]).glob("*.[1-8]"))
SECTIONS_OF_CTL = {
    "RUN": ["run"],
    "LOCKS, SHOW, RELEASE, KICK, INFO": ["locks", "show", "release", "kick", "info"],
    "HEALTH": ["health"],
    "AUDIT": ["audit verify", "audit stats", "audit report", "audit tail"],
    "CHECK-ACL": ["check-acl"],
}


def options(program):
    """Of each command its flags, each with (variable, default)."""
    listed = subprocess.run([os.environ["COMPLETIONS_BIN"], "list", program], check=True, capture_output=True, text=True)
    found = {}
    for line in listed.stdout.splitlines():
        command, flag, variable, default, _ = line.split("\t")
        found.setdefault(command, {})[flag] = (variable, default)
    return found


def sections(page):
    """Of each section its text."""
    parts = re.split(r"^# (.+)$", (SOURCES / page).read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def entries(text):
    """Of each flag that has an entry, the text of it."""
    found = {}
    for head, body in re.findall(r"^(\*-[^\n]*)\n((?:\t[^\n]*\n)+)", text + "\n", re.M):
        for flag in re.findall(r"\*(--?[\w-]+)\*", head):
            found[flag] = " ".join(body.split())
    return found


def mentioned(text, dashes):
    return {("-" if len(name) == 1 else dashes) + name for name in re.findall(r"\*--?([a-z][\w-]*)[ *]", text)}


def check(written, known, where):
    # -h and -help are said in one entry.
    unsaid = {flag for flag in known if flag.lstrip("-") not in ("h", "help")} - set(written)
    assert unsaid == set(), f"{where}: not in the page"
    assert set(written) - set(known) == set(), f"{where}: in the page, and not in the program"
    for flag, text in written.items():
        variable, default = known[flag]
        assert set(re.findall(r"MONOLOCK_\w+", text)) == ({variable} if variable else set()), f"{where} {flag}"
        if re.match(r"[\d/:]", default) and " " not in default or default in ("info", "text"):
            assert f"efault: {default}" in text, f"{where} {flag}: {text}"


def test_server():
    known = options("monolock")[""]
    check(entries(sections("monolock.8.scd")["OPTIONS"]), known, "monolock(8)")
    assert mentioned((SOURCES / "monolock.8.scd").read_text(), "-") - set(known) == {"-flag"}


def test_ctl():
    known = options("monolockctl")
    text = sections("monolockctl.1.scd")
    assert sorted(sum(SECTIONS_OF_CTL.values(), [""])) == sorted(known), "a command has no section"
    for section, commands in SECTIONS_OF_CTL.items():
        of_section = {flag: said for command in commands for flag, said in known[command].items()}
        check(entries(text[section]), of_section, f"monolockctl(1), {section}")
    everything = {flag for flags in known.values() for flag in flags}
    assert mentioned((SOURCES / "monolockctl.1.scd").read_text(), "--") - everything - {"--admin-listen", "--ops-listen"} == set()
    for command in known:
        assert not command or f"*monolockctl {command}*" in text["SYNOPSIS"], f"{command} is not in the synopsis"


def test_pages_are_those_that_have_sources():
    assert [page.name for page in PAGES] == sorted(source.stem for source in SOURCES.glob("*.scd"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.skipif(shutil.which("mandoc") is None, reason="there is no mandoc here")
def test_mandoc_has_no_complaint(page):
    said = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
    assert said.stdout == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.skipif(shutil.which("man") is None or shutil.which("groff") is None, reason="there is no man, or no groff here")
def test_groff_has_no_complaint(page):
    said = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, text=True,
                          env=os.environ | {"LC_ALL": "C.UTF-8", "MANROFFSEQ": ""}, check=True)
    assert said.stderr == ""


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="there is no mandoc here")
def test_a_page_refers_only_to_pages_that_there_are():
    ours = {page.name for page in PAGES}
    for page in PAGES:
        shown = subprocess.run(["mandoc", "-T", "utf8", page], capture_output=True, text=True, check=True).stdout
        plain = re.sub(".\b", "", shown)
        named = {f"{name}.{section}" for name, section in re.findall(r"\b(monolock[\w-]*)\((\d)\)", plain)}
        assert named - ours == set(), page.name


def test_the_example_of_access_rules_is_one(tmp_path):
    block = re.search(r"```\n(\{.*?)```", (SOURCES / "monolock-acl.5.scd").read_text(), re.S)[1]
    (tmp_path / "acl.json").write_text(block)
    asked = [os.environ["MONOLOCKCTL_BIN"], "check-acl", tmp_path / "acl.json",
             "--identity", "spiffe://prod/import-7", "--lock", "nightly"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_the_protocols_codes_are_those_of_the_vectors():
    vectors = json.loads((SOURCES.parents[1] / "tests" / "vectors" / "error_codes.json").read_text())
    page = (SOURCES / "monolock-protocol.7.scd").read_text()
    rows = dict(re.findall(r"^\|  (0x\w\w)\n:  (.+)$", page, re.M))
    assert rows == {each["code"]: each["reason"] for each in vectors["codes"] if "reason" in each}
