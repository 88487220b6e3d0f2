"""Who has it? Case L10: a run that did not get its lock says who did, if it knows whom to ask."""

import re
import signal
import socket
import tempfile
import time

import pytest

from ctl import Run, address_text, ctl, run_words
from support.waiting import tried_again

RFC3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def managed(start_server):
    return start_server("-threads", "2", "-admin-listen", "127.0.0.1:0")


def run(server, *options, env=None):
    """A run that must not get its lock; its one line on standard error."""
    done = ctl(*run_words(server, "n", "echo", "ran", options=options), env=env)
    assert (done.returncode, done.stdout) == (75, "") and done.stderr.count("\n") == 1, done
    return done.stderr


@tried_again
def test_a_wait_that_runs_out_names_owner_time_and_place(managed):
    admin = address_text(managed.admin_address)
    with managed.connect() as owner, managed.connect() as waiter:
        token = owner.own("n")
        waiter.queue("n")
        held = rf"held by 127\.0\.0\.1:{owner.local_port} since {RFC3339} \(\S+\), token {token}"
        for options, env in [(["--admin", admin], {}), ([], {"MONOLOCK_ADMIN": admin})]:
            text = run(managed, "--wait", "300ms", *options, env=env)
            assert re.fullmatch(
                rf'monolockctl: lock "n": not acquired within 300ms; {held}; number 2 of 2 in the queue\n', text
            ), text
        began = time.monotonic()
        text = run(managed, "--no-wait", "--admin", admin)
        assert time.monotonic() - began < 0.2
        assert re.fullmatch(rf'monolockctl: lock "n": somebody else has it; {held}; 1 waits\n', text), text


@tried_again
def test_during_a_grant_delay_nobody_has_it(start_server):
    server = start_server("-admin-listen", "127.0.0.1:0", "-grant-delay", "1m")
    admin = address_text(server.admin_address)
    with server.connect() as waiter:
        waiter.queue("n")
        assert run(server, "--no-wait", "--admin", admin) == (
            'monolockctl: lock "n": nothing is granted now; nobody holds it; 1 waits\n'
        )
        shown = ctl("show", "n", "--admin", admin)
        assert "not held: the server shuts down, or its grant delay is not over\n1 waits\n" in shown.stdout


@tried_again
def test_the_place_over_a_unix_socket(start_server, tmp_path):
    folder = tempfile.mkdtemp(dir=tmp_path)  # of this try
    admin = f"unix:{folder}/admin.sock"
    server = start_server("-admin-listen", admin, listen=f"unix:{folder}/m.sock")
    with server.owner("n"), server.waiter("n"):
        assert "; number 2 of 2 in the queue\n" in run(server, "--wait", "300ms", "--admin", admin)


@tried_again
def test_who_does_not_answer_is_not_waited_for(managed, tmp_path):
    """Nobody there; somebody who says nothing; a server that is something else."""
    with managed.owner("n"), socket.create_server(("127.0.0.1", 0)) as silent:
        others = [f"unix:{tmp_path}/none", address_text(silent.getsockname()), address_text(managed.address)]
        for admin in others:
            began = time.monotonic()
            text = run(managed, "--wait", "300ms", "--admin", admin)
            assert text == 'monolockctl: lock "n": not acquired within 300ms\n'
            assert 0.3 <= time.monotonic() - began < 0.6
            began = time.monotonic()
            assert run(managed, "--no-wait", "--admin", admin) == 'monolockctl: lock "n": somebody else has it\n'
            assert time.monotonic() - began < 0.45  # asking may take 150 ms


@tried_again
def test_a_signal_is_not_held_up_by_the_question(managed):
    with managed.owner("n"), socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(10)
        options = ["--wait", "200ms", "--admin", address_text(silent.getsockname())]
        with Run(managed, "n", "true", options=options) as waiting:
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(4096).startswith(b"GET /api/lock?name=n ")
                waiting.signal(signal.SIGTERM)
                began = time.monotonic()
                status, out, _ = waiting.end()
                # Either the signal came in time to be the end of it, or the wait was over.
                assert status in (143, 75) and not out and time.monotonic() - began < 0.45  # asking may take 150 ms


def test_a_lock_that_is_acquired_asks_nobody(managed):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0)
        admin = address_text(silent.getsockname())
        done = ctl(*run_words(managed, "n", "echo", "ran", options=["--wait", "5s", "--admin", admin]))
        assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_a_wrong_address_is_wrong_usage(managed):
    done = ctl(*run_words(managed, "n", "true", options=["--admin", "nowhere"]))
    assert done.returncode == 2 and '--admin "nowhere"' in done.stderr
