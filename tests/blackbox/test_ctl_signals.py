"""Signals to the wrapper alone: cases L1 and L5."""

import concurrent.futures
import os
import random
import signal
import time

import pytest

from ctl import Run, ScriptedServer, processes_of, state
from ctl_exec import HeldProgram
from support.waiting import scaled, tried_again, wait_until

PASSED_ON = ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"]


def number_of(name):
    return signal.Signals[f"SIG{name}"]


@pytest.fixture
def scripted():
    with ScriptedServer() as server:
        yield server


def loop(before=""):
    return f"{before} echo ready; while :; do sleep 0.02; done"


# --- L1


@pytest.mark.parametrize("name", PASSED_ON)
def test_a_signal_that_the_command_catches(scripted, name):
    with Run(scripted, "n", "sh", "-c", loop(f"trap 'exit 42' {name};")) as run:
        assert run.line() == "ready"
        run.signal(number_of(name))
        assert run.end() == (42, "", "")


@pytest.mark.parametrize("name", PASSED_ON)
def test_a_signal_that_the_command_dies_of(scripted, name):
    with Run(scripted, "n", "sh", "-c", loop("ulimit -c 0;")) as run:
        assert run.line() == "ready"
        run.signal(number_of(name))
        assert run.end()[0] == 128 + number_of(name)


def test_only_the_command_gets_the_signal_not_its_group(scripted):
    child_script = "trap 'echo told; exit' USR1; sh -c 'echo $PPID'; while :; do sleep 0.02; done"
    with Run(scripted, "n", "sh", "-c", f"trap 'exit 7' USR1; ({child_script}) & wait") as run:
        child = int(run.line())
        run.signal(signal.SIGUSR1)
        assert run.process.wait(10) == 7
        os.kill(child, signal.SIGUSR1)  # it is still there, and hears the first one now
        assert run.line() == "told"


@pytest.mark.deadline  # of a lease of half a second
def test_the_lock_is_kept_until_the_command_is_gone(start_server):
    """The command takes five leases to end after TERM; the next in line gets the lock after it."""
    server = start_server("-threads", "2")
    script = "trap 'sleep 2.5; exit 42' TERM; echo $$; while :; do sleep 0.02; done"
    with Run(server, "n", "sh", "-c", script, options=["--lease", "500ms"]) as run:
        command = int(run.line())
        with server.waiter("n") as contender:
            run.signal(signal.SIGTERM)
            began = time.monotonic()
            contender.expect_acquired()
            assert state(command) in (None, "Z"), "the next owner came while the command lived"
            assert time.monotonic() - began >= 2.5
        assert run.end()[0] == 42


def test_several_signals_one_after_the_other(scripted):
    script = "trap 'echo one' USR1; trap 'echo two' USR2; trap 'exit 3' TERM;"
    with Run(scripted, "n", "sh", "-c", loop(script)) as run:
        assert run.line() == "ready"
        for name, line in [("USR1", "one"), ("USR2", "two"), ("USR1", "one")]:
            run.signal(number_of(name))
            assert run.line() == line
        run.signal(signal.SIGTERM)
        assert run.end()[0] == 3


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT"])
def test_what_was_ignored_at_the_start_stays_ignored(scripted, name):
    number = number_of(name)
    with Run(
        scripted, "n", "python3", "-uc",
        "import signal, time\n"
        f"print(signal.getsignal({number}) == signal.SIG_IGN)\n"
        "time.sleep(60)",
        preexec_fn=lambda: signal.signal(number, signal.SIG_IGN),
    ) as run:  # fmt: skip
        assert run.line() == "True"
        run.signal(number)
        time.sleep(0.2)
        assert run.process.poll() is None and processes_of("n")
        run.signal(signal.SIGTERM)
        assert run.end()[0] == 143


def test_the_command_starts_with_our_signal_state(scripted):
    show = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    with Run(scripted, "n", "sh", "-c", show) as run:
        _, inside, _ = run.end()
    fields = dict(line.split(":\t") for line in inside.splitlines())
    assert int(fields["SigBlk"], 16) == 0
    assert int(fields["SigIgn"], 16) & (1 << (signal.SIGCHLD - 1) | 1 << (signal.SIGTTOU - 1)) == 0


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_a_signal_while_the_command_is_executed(scripted, tmp_path, name):
    """It has not begun, and never does."""
    with HeldProgram(tmp_path) as program, Run(scripted, "n", str(program.path)) as run:
        wait_until(program.is_asked_for, "somebody executes it")
        run.signal(number_of(name))
        assert run.end() == (128 + number_of(name), "", "")
        wait_until(lambda: scripted.claim("n").ended_at, "the lock released")
        program.let_go()
        time.sleep(0.2)
        assert not program.ran()


# --- L5


@tried_again
@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT"])
def test_a_signal_while_queued(scripted, name):
    scripted.owner("n")
    with Run(scripted, "n", "true") as run:
        claim = scripted.claim("n")
        time.sleep(0.05)
        began = time.monotonic()
        run.signal(number_of(name))
        status, out, err = run.end()
        assert time.monotonic() - began < 0.2
        assert (status, out, err) == (128 + number_of(name), "", "")
        wait_until(lambda: claim.ended_at, "the place in the queue given up")
        assert claim.ended_at - began < 0.1


@tried_again
def test_term_while_it_is_still_trying(scripted):
    port = scripted.address[1]
    scripted.listener.close()  # nobody listens there any more
    scripted.address = ("127.0.0.1", port)
    with Run(scripted, "n", "true", options=["--retry"]) as run:
        time.sleep(0.3)
        began = time.monotonic()
        run.signal(signal.SIGTERM)
        assert run.end()[0] == 143
        assert time.monotonic() - began < 0.2


def test_term_at_the_moment_of_the_grant():
    """A thousand times. The signal is never lost, and no command is left behind."""
    rounds = scaled(1000)
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    with ScriptedServer() as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: grant_and_term(server, number, random.Random(seed + number)), range(rounds)))
        wait_until(lambda: all(claim.ended_at for claim in server.claims), "every claim given up")


def grant_and_term(server, number, dice):
    name = f"grant-{number}"
    owner = server.owner(name)
    with Run(server, name, "sleep", "60") as run:
        server.claim(name)
        offset = dice.uniform(-0.001, 0.004)
        if offset < 0:
            run.signal(signal.SIGTERM)
            time.sleep(-offset)
            server.release(owner)
        else:
            server.release(owner)
            time.sleep(offset)
            run.signal(signal.SIGTERM)
        status, out, err = run.end()
        assert (status, out, err) == (143, "", ""), f"round {number}"
        assert not processes_of(name), f"round {number}: a command was left running"
