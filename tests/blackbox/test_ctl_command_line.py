"""monolockctl's command line, exit codes and environment: cases L4, L6 (words), L7, L8, L9, L11."""

import os
import signal
import socket
import subprocess
import time

import pytest

from ctl import Run, ScriptedServer, address_text, binary, ctl, run_words
from support.waiting import tried_again, wait_until


@pytest.fixture
def scripted():
    with ScriptedServer() as server:
        yield server


def closed_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


# --- L4


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_commands_status_is_ours(scripted, status):
    done = ctl(*run_words(scripted, "n", "sh", "-c", f"exit {status}"))
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_command_that_dies_of_a_signal(scripted, number):
    done = ctl(*run_words(scripted, "n", "sh", "-c", f"ulimit -c 0; kill -{number.value} $$"))
    assert done.returncode == 128 + number


def test_command_not_found_and_not_executable(scripted, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    no_format = tmp_path / "no-format"
    no_format.write_text("echo a shell ran this\n")
    no_format.chmod(0o755)
    for command, status in [
        ("no-such-command-anywhere", 127),
        ("/no/such/path", 127),
        ("", 127),
        (str(plain), 126),
        (str(tmp_path), 126),
        (str(no_format), 126),
    ]:
        done = ctl(*run_words(scripted, "n", command))
        assert (done.returncode, done.stdout) == (status, ""), command
        assert len(done.stderr.splitlines()) == 1, done.stderr
    wait_until(lambda: all(claim.ended_at for claim in scripted.claims), "each claim has ended")


def traced(*words):
    """Arguments of Run that have it watched by strace. (Not as tampered() of the losses, where it is the run's child.)"""
    return {"prefix": ("strace", "-f", "-qq", *words), "env": {"ASAN_OPTIONS": "detect_leaks=0"}}


@pytest.mark.parametrize("error", ["ESTALE", "ENODEV", "ETIMEDOUT"])
@pytest.mark.parametrize("found", [True, False])
def test_a_dead_network_folder_in_path_does_not_hide_those_after_it(scripted, tmp_path, error, found):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    refused = traced("-o", "/dev/null", "-e", "trace=execve", "-P", "/dead/program", "-e", f"inject=execve:error={error}")
    refused["env"]["PATH"] = f"/dead:{tmp_path if found else '/none'}:{os.environ['PATH']}"
    with Run(scripted, "n", "program", **refused) as run:
        status, out, err = run.end()
    if found:
        assert (status, out, err) == (0, "found\n", "")
    else:
        assert status == 126 and "No such file" not in err and len(err.splitlines()) == 1


def test_a_run_without_earlier_children_looks_at_no_other_process(scripted, tmp_path):
    """On a machine with many of them that takes long, for nothing."""
    log = tmp_path / "calls"
    with Run(scripted, "n", "true", **traced("-o", str(log), "-e", "trace=open,openat")) as run:
        assert run.end() == (0, "", "")
    assert "/dev/tty" in log.read_text() and '"/proc",' not in log.read_text()


def test_unreachable(tmp_path):
    for address in [f"127.0.0.1:{closed_port()}", f"unix:{tmp_path}/none", "no-such-host.invalid:7070"]:
        done = ctl("run", "--server", address, "n", "true")
        assert done.returncode == 69, address
        assert address in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("code", "status"), [(0x01, 69), (0x02, 76), (0x0F, 69), (0x10, 70), (0x18, 77), (0xFF, 70)]
)
def test_errors_while_queued(scripted, code, status):
    scripted.owner("n")
    with Run(scripted, "n", "true") as run:
        claim = scripted.claim("n")
        time.sleep(0.05)
        scripted.send_error(claim, code, b"because\nof")
        got, out, err = run.end()
        assert (got, out) == (status, "")
        assert "because\\nof" in err and len(err.splitlines()) == 1


def test_dropped_while_queued(scripted):
    scripted.owner("n")
    with Run(scripted, "n", "true") as run:
        claim = scripted.claim("n")
        time.sleep(0.05)
        scripted.reset(claim)
        assert run.end()[0] == 69


@pytest.mark.parametrize("code", [0x01, 0x02])
def test_retry_queues_again(scripted, code):
    owner = scripted.owner("n")
    with Run(scripted, "n", "echo", "ran", options=["--retry"]) as run:
        claim = scripted.claim("n")
        time.sleep(0.05)
        scripted.send_error(claim, code)
        scripted.release(owner)
        assert run.end() == (0, "ran\n", "")


def test_retry_outlasts_a_server_that_is_not_there_yet():
    port = closed_port()
    words = ["run", "--server", f"127.0.0.1:{port}", "--retry", "n", "echo", "ran"]
    with subprocess.Popen([binary(), *words], stdout=subprocess.PIPE, text=True) as process:
        time.sleep(0.3)
        with ScriptedServer(where=("127.0.0.1", port)):
            assert process.communicate(timeout=10)[0] == "ran\n"
    assert process.returncode == 0


# --- L6


def test_words_arrive_unchanged(scripted):
    words = ["printf", "%s\\n", "a b", "-v", "$HOME", ""]
    for separator in (["--"], []):
        done = ctl("run", "--server", address_text(scripted.address), "n", *separator, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "a b\n-v\n$HOME\n\n", "")


def test_the_commands_streams_are_its_own(scripted):
    script = "cat; echo to-stderr >&2"
    done = ctl(*run_words(scripted, "n", "sh", "-c", script), stdin=None, input="from-stdin\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "from-stdin\n", "to-stderr\n")


def test_a_pipe_ends_when_the_command_closes_it(scripted):
    with Run(scripted, "n", "sh", "-c", "echo last; exec >&-; sleep 60") as run:
        assert run.line() == "last"
        assert run.process.stdout.read() == ""


def test_no_descriptor_of_ours_reaches_the_command(scripted):
    listing = "ls -l /proc/self/fd"
    inside = ctl(*run_words(scripted, "n", "sh", "-c", listing)).stdout
    assert "socket" not in inside and "anon_inode" not in inside and "/dev/tty" not in inside, inside
    assert sum(" -> " in line for line in inside.splitlines()) == 4, inside  # 0, 1, 2 and ls's folder


def test_descriptors_that_were_closed_stay_closed(scripted):
    script = f"{binary()} {' '.join(run_words(scripted, 'n', 'ls', '/proc/self/fd'))} <&- 2>&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0
    assert done.stdout.split() == ["0", "1"]  # ls's own folder takes number 0


def test_the_command_leads_a_group_in_our_session(scripted):
    program = "import os; print(os.getpid() == os.getpgrp(), os.getsid(0))"
    done = ctl(*run_words(scripted, "n", "python3", "-c", program))
    assert done.stdout == f"True {os.getsid(0)}\n"


# --- L7


@tried_again
@pytest.mark.parametrize("option", [["--no-wait"], ["--wait", "0"], ["--wait=0s"]])
def test_one_try(scripted, option):
    owner = scripted.owner("n")
    began = time.monotonic()
    done = ctl(*run_words(scripted, "n", "echo", "ran", options=option))
    assert time.monotonic() - began < 0.2
    assert (done.returncode, done.stdout) == (75, "")
    assert '"n"' in done.stderr and len(done.stderr.splitlines()) == 1
    scripted.release(owner)
    assert ctl(*run_words(scripted, "n", "echo", "ran", options=option)).stdout == "ran\n"


@tried_again
@pytest.mark.parametrize("retry", [[], ["--retry"]])
def test_a_wait_runs_out(scripted, retry):
    scripted.owner("n")
    began = time.monotonic()
    done = ctl(*run_words(scripted, "n", "true", options=["--wait", "500ms", *retry]))
    assert 0.5 <= time.monotonic() - began < 0.7
    assert done.returncode == 75 and "500ms" in done.stderr


@tried_again
def test_a_wait_counts_connecting_too():
    with socket.socket() as full:  # a backlog that takes nobody more: connects hang
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        others = [socket.socket() for _ in range(4)]
        for other in others:
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        began = time.monotonic()
        done = ctl("run", "--server", address_text(full.getsockname()), "--wait", "400ms", "n", "true")
        assert 0.4 <= time.monotonic() - began < 0.6
        assert done.returncode == 75
        for other in others:
            other.close()


def test_a_wait_that_is_long_enough(scripted):
    owner = scripted.owner("n")
    with Run(scripted, "n", "echo", "ran", options=["--wait", "20s"]) as run:
        scripted.claim("n")
        time.sleep(0.1)
        scripted.release(owner)
        assert run.end() == (0, "ran\n", "")


def test_conflict_exit_code(scripted):
    scripted.owner("n")
    options = ["--no-wait", "--conflict-exit-code", "9"]
    assert ctl(*run_words(scripted, "n", "true", options=options)).returncode == 9


# --- L8


def test_addresses(tmp_path):
    path = str(tmp_path / "socket")
    for family, where in [
        (socket.AF_INET, ("127.0.0.1", 0)),
        (socket.AF_INET6, ("::1", 0)),
        (socket.AF_UNIX, path),
    ]:
        with ScriptedServer(family, where) as server:
            texts = [address_text(server.address)]
            if family == socket.AF_INET:
                texts += [f"localhost:{server.address[1]}", f":{server.address[1]}"]
            for text in texts:
                assert ctl("run", "--server", text, "n", "echo", "x").stdout == "x\n", text


@pytest.mark.parametrize("text", ["::1:7070", "host", "host:", "host:70707", "host:http", "host:0", "unix:", "[::1]"])
def test_bad_addresses(text):
    done = ctl("run", "--server", text, "n", "true")
    assert done.returncode == 2
    assert f'--server "{text}"' in done.stderr and len(done.stderr.splitlines()) == 1
    if text == "::1:7070":
        assert "[::1]:7070" in done.stderr


# --- L9


def test_flag_beats_variable_beats_default(scripted):
    address = address_text(scripted.address)
    nowhere = f"127.0.0.1:{closed_port()}"
    assert ctl("run", "n", "echo", "x", env={"MONOLOCK_SERVER": address}).stdout == "x\n"
    flag = ["--server", address]
    assert ctl("run", *flag, "n", "echo", "x", env={"MONOLOCK_SERVER": nowhere}).stdout == "x\n"
    assert ctl("run", *flag, "n", "echo", "x", env={"MONOLOCK_SERVER": "garbage"}).stdout == "x\n"
    done = ctl("run", "n", "echo", "x", env={"MONOLOCK_SERVER": "garbage"})
    assert done.returncode == 2 and 'MONOLOCK_SERVER "garbage"' in done.stderr
    # Set but empty is unset, so the default: this machine's port 7070, whatever is there.
    done = ctl("run", "--no-wait", "--lease", "nonsense", "n", "true", env={"MONOLOCK_SERVER": ""})
    assert done.returncode == 2 and "--lease" in done.stderr


def test_name_and_token_in_the_environment(scripted):
    script = 'printf "%s %s %s" "$MONOLOCK_NAME" "$MONOLOCK_TOKEN" "$KEPT"'
    env = {"MONOLOCK_TOKEN": "stale", "MONOLOCK_NAME": "stale", "KEPT": "kept"}
    for token in (1, 2):
        done = ctl(*run_words(scripted, "ü\n'x", "sh", "-c", script), env=env)
        assert done.stdout == f"ü\n'x {token} kept"


# --- L11


def test_help_goes_to_stdout():
    texts = set()
    for words in (["run", "-h"], ["run", "--help"], ["help", "run"]):
        done = ctl(*words)
        assert (done.returncode, done.stderr) == (0, "")
        texts.add(done.stdout)
    assert len(texts) == 1 and "--conflict-exit-code" in texts.pop()
    for words in (["-h"], ["--help"], ["help"], ["--version"]):
        done = ctl(*words)
        assert done.returncode == 0 and done.stdout and not done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "run"),
        (["walk"], "walk"),
        (["run"], "NAME"),
        (["run", "n"], "command"),
        (["run", "--bogus", "n", "true"], "--bogus"),
        (["run", "--wait", "3", "n", "true"], "--wait"),
        (["run", "--lease", "0s", "n", "true"], "--lease"),
        (["run", "--grace", "3s", "n", "true"], "0.3 of the lease"),
        (["run", "--conflict-exit-code", "0", "n", "true"], "--conflict-exit-code"),
        (["run", "", "true"], "empty lock name"),
        (["run", "x" * 256, "true"], "too long"),
        (["run", b"\xff", "true"], "UTF-8"),
    ],
)
def test_mistakes_get_one_line(words, named):
    done = ctl(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr and len(done.stderr.splitlines()) == 1


def test_help_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        done = ctl("help", "run", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 74 and done.stderr
