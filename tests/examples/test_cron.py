"""examples/cron: one machine of many runs the job, and each tells cron how it went."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from programs import EXAMPLES, address
from support.waiting import wait_until

CRON = EXAMPLES / "cron"


@pytest.fixture
def path(tmp_path):
    """A PATH with what the crontab calls."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("once", "import"):
        (tools / name).symlink_to(CRON / name)
    (tools / "monolockctl").symlink_to(os.environ["MONOLOCKCTL_BIN"])
    return f"{tools}:{os.environ['PATH']}"


@pytest.fixture
def machine(start, path, tmp_path):
    """machine(server, command) is a machine whose cron starts the command."""

    def begin(server, *command, **environment):
        return start("sh", "-c", '"$@"', "cron", *command, PATH=path, MONOLOCK_SERVER=address(server), **environment)

    return begin


def crontab():
    """Its variables, and the words of its one line."""
    lines = [line for line in (CRON / "crontab").read_text().splitlines() if line and not line.startswith("#")]
    *settings, job = lines
    assert all(re.fullmatch(r"[A-Z_]+=\S+", line) for line in settings)
    return dict(line.split("=", 1) for line in settings), job.split()


def test_one_machine_of_several_runs_the_job(server, machine, tmp_path):
    job = ("once", "import", "import", str(tmp_path))
    first = machine(server, *job, IMPORT_SECONDS="1.5")
    first.wait_line("running under token")
    others = [machine(server, *job) for _ in range(2)]
    assert [each.wait() for each in others] == [0, 0]
    assert all("somebody else has it" in each.stderr() for each in others)
    assert first.wait() == 0
    late = machine(server, *job)
    assert late.wait() == 0
    assert late.lines()[0].startswith("import: done already, under token ")
    assert len([each for each in (first, late, *others) if "running" in "".join(each.lines())]) == 1


def test_the_crontabs_line_runs_the_job(server, machine, tmp_path):
    variables, words = crontab()
    assert variables.keys() >= {"MONOLOCK_SERVER", "PATH"}
    assert all(re.fullmatch(r"[\d*/,-]+", field) for field in words[:5])
    user, quietly, *job = words[5:]
    assert (user, quietly) == ("import", "chronic")
    assert job[-1] == "/srv/import"
    one = machine(server, *job[:-1], str(tmp_path), IMPORT_SECONDS="0")
    assert one.wait() == 0
    (stamp,) = tmp_path.glob("import.*")
    assert int(stamp.read_text()) > 0


def test_the_jobs_own_status_and_that_of_a_server_that_is_away(server, machine):
    assert machine(server, "once", "import", "sh", "-c", "exit 3").wait() == 3
    server.stop()
    away = machine(server, "once", "import", "true")
    assert away.wait() == 69
    assert "the lock server is away, so import was not run" in away.stderr()


def test_a_job_that_lost_its_lock_is_stopped_and_leaves_no_stamp(server, machine, tmp_path):
    one = machine(server, "once", "import", "import", str(tmp_path), IMPORT_SECONDS="600")
    one.wait_line("running under token")
    server.kill()
    assert one.wait() == 76
    assert "lost its lock and was stopped" in one.stderr()
    assert not list(tmp_path.glob("import.*"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_understands_the_units(server, tmp_path, path):
    for name in ("import.service", "import.timer"):
        text = (CRON / name).read_text()
        text = text.replace("/usr/local/bin/monolockctl", os.environ["MONOLOCKCTL_BIN"])
        (tmp_path / name).write_text(text.replace("User=import\n", ""))
    units = [str(unit) for unit in sorted(tmp_path.glob("import.*"))]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    calendar = re.search("OnCalendar=(.*)", (CRON / "import.timer").read_text())[1]
    assert subprocess.run(["systemd-analyze", "calendar", calendar], capture_output=True, timeout=60).returncode == 0


def test_the_units_command_runs_the_job(server, start, path, tmp_path):
    words = re.search("ExecStart=(.*)", (CRON / "import.service").read_text())[1].split()
    assert words[-1] == "/srv/import"
    names = [pathlib.Path(word).name if word.startswith("/usr/local/bin/") else word for word in words[:-1]]
    one = start("sh", "-c", '"$@"', "systemd", *names, str(tmp_path), PATH=path,
                MONOLOCK_SERVER=address(server), IMPORT_SECONDS="0")
    assert one.wait() == 0
    wait_until(lambda: list(tmp_path.glob("import.*")), "the stamp is there")
