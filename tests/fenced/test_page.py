"""The programs of docs/fencing.md as they stand."""

import os
import pathlib
import re
import subprocess

import page
import pytest
from campaign import absent, ground


def run(command, given="", cwd=None, **environment):
    return subprocess.run(
        command, input=given, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=30
    )


def libpq(here):
    """The cluster in the words of the environment."""
    host, user, database = (word.partition("=")[2] for word in here.cluster.conninfo.split())
    return {"PGHOST": host, "PGUSER": user, "PGDATABASE": database}


@pytest.fixture(scope="module")
def here():
    if absent() is not None:
        pytest.skip(absent())
    with ground(rays=0) as made:
        made.cluster.ask("INSERT INTO report (id) VALUES ('daily');")
        yield made


def test_the_program_and_the_script_add(here):
    program = pathlib.Path(os.environ["FENCED_PROGRAMS"], "fenced_example")
    done = run([*here.star.prefix, program, here.star.address, here.cluster.conninfo, "daily"], "one\ntwo\n")
    assert (done.returncode, done.stdout) == (0, "added one\nadded two\n"), done.stderr
    ctl = [*here.star.prefix, os.environ["MONOLOCKCTL_BIN"], "run", "--server", here.star.address]
    done = run([*ctl, "report/daily", "--", here.scripts["add"], "daily", "three"], **libpq(here))
    assert (done.returncode, done.stdout) == (0, "added three\n"), done.stderr
    assert here.elements("daily") == ["one", "two", "three"]
    # An owner of long ago.
    done = run([here.scripts["add"], "daily", "four"], MONOLOCK_TOKEN="7", **libpq(here))
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert here.elements("daily") == ["one", "two", "three"]


def test_a_job_of_one_transaction_is_done_wholly_or_not_at_all(here, tmp_path):
    """As docs/monolockctl.md has it."""
    start = page.block("sh", "import.sql", "docs/monolockctl.md")
    job = re.search(r"-- sh -c '(psql .*)'$", start, re.M)[1]
    fence = page.block("sql", "UPDATE fence", "docs/monolockctl.md")
    (tmp_path / "import.sql").write_text(fence + "INSERT INTO report (id, token) VALUES (:token, 0);\n")
    here.cluster.ask("INSERT INTO fence (name) VALUES ('nightly');")
    for token, status in ((9, 0), (11, 0), (10, 3), (11, 3), (12, 0)):  # the second 11 would insert a key twice
        done = run(["sh", "-c", job], MONOLOCK_TOKEN=str(token), cwd=tmp_path, **libpq(here))
        assert done.returncode == status, (token, done.stderr)
    assert here.cluster.ask("SELECT token FROM fence WHERE name = 'nightly';") == "12\n"
    assert here.cluster.ask("SELECT id FROM report WHERE id <> 'daily' ORDER BY length(id), id;").split() == ["9", "11", "12"]


def test_the_readme_says_the_same_as_the_page():
    program = page.block("cpp", "take_over")
    said = re.findall(r"^UPDATE .*?(?=;)", page.block("sql", "UPDATE report", "README.md"), re.M)
    names = {":id": "$1", ":token": "$2", ":body": "$3"}
    statements = [re.sub(r":\w+", lambda hit: names[hit[0]], re.sub(r"\s+", " ", text)) for text in said]
    assert statements == re.findall(r'"(UPDATE .*?)"', program)


def test_the_file_is_replaced_unless_a_later_owner_was_there(tmp_path):
    script, file = tmp_path / "put", tmp_path / "report"
    script.write_text(page.put_script())
    for token, text, status, holds in ((9, "a", 0, "a"), (10, "b", 0, "b"), (9, "c", 1, "b"), (10, "d", 0, "d")):
        done = run(["sh", script, file], text, MONOLOCK_TOKEN=str(token))
        assert (done.returncode, file.read_text()) == (status, holds), done.stderr
        assert (done.stderr.endswith("a later owner was here\n")) == (status == 1)
