"""The files of deploy/, held against the tools that will read them and the server that they start."""

import pathlib
import re
import shutil
import stat
import subprocess
import threading
import time

import pytest

from support import audit
from support.http import fetch
from support.server import binary
from support.tls_files import TlsFiles
from support.waiting import wait_until

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
SERVICE = DEPLOY / "systemd" / "monolock.service"
EXPOSURE_MAX = 20  # in tenths, as systemd-analyze counts from 0 to 100


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program} here")


def run(*words):
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout + result.stderr


def systemd_version():
    return int(re.match(r"systemd (\d+)", run("systemd-analyze", "--version")[1])[1])


@pytest.fixture
def units(tmp_path):
    """Copies that start the server under test, where no drop-in of this machine counts."""
    for unit in (DEPLOY / "systemd").glob("monolock*.s*"):
        text = unit.read_text().replace("ExecStart=monolock", f"ExecStart={binary()}")
        (tmp_path / unit.name).write_text(text)
    return tmp_path


# --- systemd


@needs("systemd-analyze")
def test_units_are_understood(units):
    names = sorted(str(unit) for unit in units.glob("monolock*.s*") if unit.suffix != ".sysusers")
    assert len(names) == 4
    assert run("systemd-analyze", "verify", "--man=no", *names) == (0, "")


@needs("systemd-analyze")
def test_the_drop_in_is_understood_where_it_is_for(units):
    if systemd_version() < 253:
        pytest.skip("notify-reload came with systemd 253")
    (units / "monolock.service.d").mkdir()
    shutil.copy(DEPLOY / "systemd" / "reload.conf", units / "monolock.service.d")
    assert run("systemd-analyze", "verify", "--man=no", str(units / "monolock.service")) == (0, "")


@needs("systemd-analyze")
def test_little_is_exposed(units):
    unit = str(units / "monolock.service")
    code, said = run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", unit)
    assert code == 0, said


@needs("systemd-sysusers")
def test_the_user_is_understood():
    code, said = run("systemd-sysusers", "--dry-run", str(DEPLOY / "systemd" / "monolock.sysusers"))
    assert code == 0 and "monolock.sysusers" not in said, said


def calls_allowed():
    """What the unit's SystemCallFilter= lines leave, sets resolved."""

    def members(name):
        if not name.startswith("@"):
            return {name}
        lines = run("systemd-analyze", "syscall-filter", name)[1].splitlines()[1:]
        words = [line.split("#")[0].strip() for line in lines]
        return set().union(*(members(word) for word in words if word))

    allowed = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", SERVICE.read_text(), re.M):
        named = set().union(*(members(name) for name in value.lstrip("~").split()))
        allowed = allowed - named if value.startswith("~") else allowed | named
    return allowed


@needs("systemd-analyze")
@needs("strace")
def test_no_system_call_is_needed_that_the_unit_forbids(start_server, tmp_path, authority):
    """A life with everything in it: TLS, audit log, HTTP, a Unix socket, reload, shutdown."""
    if b"__sanitizer" in pathlib.Path(binary()).read_bytes():
        pytest.skip("a sanitizer makes system calls of its own")
    files = TlsFiles(tmp_path, authority, rules=[("client", ["*"])])
    trace = tmp_path / "trace"
    server = start_server(
        "-threads", "2", "-audit-log", str(tmp_path / "audit"),
        "-ops-listen", "127.0.0.1:0", "-admin-listen", f"unix:{tmp_path}/admin",
        tls=files, prefix=("strace", "-D", "-f", "-q", "-o", str(trace)),
    )  # fmt: skip
    owner, waiter = server.owner("lock"), server.waiter("lock")
    owner.heartbeat().expect_acquired()
    owner.close()
    waiter.expect_acquired()
    assert "monolock_acquires_total" in server.metrics()
    assert fetch(f"{tmp_path}/admin", "/api/locks").status == 200
    server.reload_well()
    waiter.close()
    server.stop()

    def whole_trace():
        text = trace.read_text(errors="replace")
        return text if re.search(rf"^{server.pid} +\+\+\+ exited with 0 ", text, re.M) else None

    used = set(re.findall(r"^\d+ +(\w+)\(", wait_until(whole_trace, "the trace is complete"), re.M))
    assert {"accept4", "epoll_wait", "recvfrom"} <= used
    assert used - calls_allowed() == set()


def test_the_page_sets_variables_that_exist():
    page = (DEPLOY.parent / "docs" / "systemd.md").read_text()
    named = set(re.findall(r"^(MONOLOCK_\w+)=", page, re.M))
    assert named and named <= set(re.findall(r"MONOLOCK_\w+", run(binary(), "-h")[1]))


# --- logrotate


@needs("logrotate")
def test_logrotate_loses_no_event(start_server, threads, tmp_path):
    """Case H8, with the tool itself: its file as it is, but for the paths, the user and who sends the signal."""
    path = tmp_path / "audit.log"
    server = start_server("-threads", threads, "-audit-log", str(path))
    text = (DEPLOY / "logrotate" / "monolock").read_text()
    assert not re.search(r"^\s*copytruncate", text, re.M)
    text = text.replace("/var/log/monolock/audit.log {", f"{path} {{").replace("    su monolock monolock\n", "")
    text = text.replace("systemctl --quiet is-active monolock.service", f"kill -0 {server.pid}")
    text = text.replace("systemctl reload monolock.service", f"kill -HUP {server.pid}")
    assert "systemctl" not in re.sub(r"#.*", "", text) and f"kill -HUP {server.pid}" in text
    config = tmp_path / "logrotate.conf"
    config.write_text(text)
    config.chmod(0o600)

    done, tokens = threading.Event(), []

    def load():
        while not done.is_set():
            with server.connect() as client:
                client.acquire("lock")
                tokens.append(client.wait_acquired())

    worker = threading.Thread(target=load)
    worker.start()
    try:
        for turn in range(1, 4):
            # More than once a day, when the disk is full: names have the second in them.
            # (The clock that logrotate reads may be behind by a tick.)
            taken = [int(each.name.removesuffix(".gz").rsplit("-", 1)[1]) for each in tmp_path.glob("audit.log-*")]
            wait_until(lambda: time.time() > max(taken, default=0) + 1.1, "another second")
            wait_until(lambda: path.exists() and path.stat().st_size > 0, "something to rotate")
            code, said = run("logrotate", "--force", "--state", str(tmp_path / "state"), str(config))
            assert code == 0, said
            wait_until(path.exists, "the file is made anew")
            assert stat.S_IMODE(path.stat().st_mode) & ~0o640 == 0
            assert len(list(tmp_path.glob("audit.log-*"))) == turn
            assert len(list(tmp_path.glob("audit.log-*.gz"))) == turn - 1
    finally:
        done.set()
        worker.join()
    server.stop()
    run("gunzip", *(str(each) for each in tmp_path.glob("*.gz")))
    seen = audit.check(audit.read(*sorted(tmp_path.glob("audit.log-*")), path))
    assert seen.grants.keys() == seen.ends.keys() == set(tokens)
