"""A list of addresses, with real servers behind it: monolockctl run, and the library in a program of its own. The servers
are started one after the other, so that at most one serves at a time, as an active one and its standby would."""

import contextlib
import os
import signal
import socket
import subprocess

import pytest

from ctl import address_text, binary, clean_environment, ctl
from support.waiting import wait_until

WARNING = "warning: unless these servers share one etcd"


def reading(server, gauge):
    return server.metrics()[gauge].value()


def run_listed(*addresses, options=("--coordinated",), command=("echo", "ran"), env=None):
    server = ",".join(map(address_text, addresses))
    return ctl("run", "--server", server, *options, "n", "--", *command, env=env)


def listed_run(*addresses, options, command=("echo", "ran")):
    """In the background."""
    text = ",".join(map(address_text, addresses))
    return subprocess.Popen(
        [binary(), "run", "--server", text, "--coordinated", *options, "n", "--", *command],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def black_hole():
    """An address where connects hang: its queue of connections is full."""
    with contextlib.ExitStack() as held:
        full = held.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            filler = held.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        yield full.getsockname()


@pytest.fixture
def closed():
    """A port that is taken and refuses connections; a server of ours can still take it over."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()


def test_one_try_finds_the_server_wherever_it_stands(one_server, closed, tmp_path):
    nobody = str(tmp_path / "nobody")
    for addresses in ([one_server.address, closed], [closed, one_server.address], [nobody, closed, one_server.address]):
        for options in (["--coordinated"], ["--coordinated", "--no-wait"]):
            done = run_listed(*addresses, options=options)
            assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_a_silent_machine_does_not_use_up_one_try(one_server):
    with black_hole() as silent:
        done = run_listed(silent, one_server.address, options=["--coordinated", "--no-wait"])
        assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_a_list_is_warned_of_once_and_can_be_silenced(one_server, closed):
    done = run_listed(one_server.address, closed, options=())
    assert (done.returncode, done.stdout) == (0, "ran\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"monolockctl: {WARNING}") and "--coordinated" in line
    assert run_listed(one_server.address, closed, options=(), env={"MONOLOCK_COORDINATED": "1"}).stderr == ""
    assert run_listed(one_server.address, options=()).stderr == "", "one address is no list"


def test_a_warning_that_nobody_reads_delays_nothing(one_server, closed):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    words = ["run", "--server", f"{address_text(one_server.address)},{address_text(closed)}", "n", "echo", "ran"]
    done = subprocess.run([binary(), *words], env=clean_environment(), stdout=subprocess.PIPE, stderr=writer, timeout=20)
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("text", ["127.0.0.1:1,", "127.0.0.1:1, 127.0.0.1:2", "127.0.0.1:1,127.0.0.1:1", "a:1,b:0", "a:1,b"])
def test_bad_lists(text):
    done = ctl("run", "--server", text, "n", "true")
    assert done.returncode == 2
    assert f'--server "{text}"' in done.stderr and len(done.stderr.splitlines()) == 1


def test_when_nobody_serves_all_are_named(closed, tmp_path):
    nobody = str(tmp_path / "nobody")
    done = run_listed(closed, nobody)
    assert done.returncode == 69
    assert done.stderr == (
        f'monolockctl: lock "n": unix:{nobody}: No such file or directory; {address_text(closed)}: Connection refused\n'
    )


def test_a_wait_over_silent_machines_runs_out(closed):
    with black_hole() as silent:
        done = run_listed(silent, closed, options=["--coordinated", "--wait", "300ms"])
        assert done.returncode == 75 and "not acquired within 300ms" in done.stderr


def test_a_queued_run_rides_through_a_failover(start_server, closed):
    active = start_server("-ops-listen", "127.0.0.1:0")
    owner = active.owner("n")
    with listed_run(active.address, closed, options=["--retry"]) as run:
        wait_until(lambda: reading(active, "monolock_waiters") == 1, "the run is queued")
        active.kill()
        owner.close()
        start_server(listen=address_text(closed))
        assert run.communicate(timeout=20) == ("ran\n", "")
        assert run.returncode == 0


def test_a_run_waits_for_the_first_server_to_open(start_server, closed, tmp_path):
    nobody = str(tmp_path / "socket")
    with listed_run(closed, nobody, options=["--retry", "--wait", "20s"]) as run:
        start_server(listen=f"unix:{nobody}")
        assert run.communicate(timeout=20) == ("ran\n", "")
        assert run.returncode == 0


def test_a_job_whose_server_dies_is_stopped_and_not_run_again(start_server, closed):
    active = start_server()
    with listed_run(active.address, closed, options=["--retry"], command=["sh", "-c", "echo up; exec sleep 60"]) as run:
        assert run.stdout.readline() == "up\n"
        active.kill()
        start_server(listen=address_text(closed))
        out, err = run.communicate(timeout=20)
        assert (out, run.returncode) == ("", 76) and "lost" in err


def test_a_server_that_hangs_is_left_for_the_next(start_server):
    hung = start_server()
    hung.pause()
    other = start_server()
    done = run_listed(hung.address, other.address, options=["--coordinated", "--lease", "400ms", "--retry"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    once = run_listed(hung.address, other.address, options=["--coordinated", "--lease", "400ms"])
    assert once.returncode == 69, "the claim is in doubt, and this is the only attempt"
    assert once.stderr.startswith(f'monolockctl: lock "n": {address_text(hung.address)}: ')
    hung.signal(signal.SIGCONT)


def test_claims_of_one_client_ride_through_failovers(start_server, closed, tmp_path):
    """The library: threads that claim, work and claim again. Each must be served at the last server."""
    active, other = start_server("-ops-listen", "127.0.0.1:0"), closed
    words = ["--server", f"{address_text(active.address)},{address_text(closed)}", "--history", str(tmp_path / "history")]
    with subprocess.Popen(
        [os.environ["FAULT_WORKER_BIN"], *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        for _ in range(3):
            wait_until(lambda on=active: reading(on, "monolock_acquires_total") > 20, "they are served there")
            was = active.address
            active.kill()
            active, other = start_server("-ops-listen", "127.0.0.1:0", listen=address_text(other)), was
        assert worker.communicate("calm\n", timeout=30)[1] == ""
        assert worker.returncode == 0
