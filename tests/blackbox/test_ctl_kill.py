"""No way of dying leaves a job without its lock or a lock without its job: case L3."""

import concurrent.futures
import os
import random
import select
import signal
import subprocess
import time

import pytest

from ctl import Run, ScriptedServer, binary, children, clean_environment, processes_of, run_words, stat_fields, state
from ctl_exec import HeldProgram
from support.waiting import scaled, stays_true, wait_until

PIPELINE = ("sh", "-c", "sleep 60 | sleep 60")


@pytest.fixture
def scripted():
    with ScriptedServer() as server:
        yield server


class Lifeline:
    """A pipe that wrapper, guardian and every process of the job inherit: it ends with the last of them,
    wherever it went."""

    def __enter__(self):
        self._reader, self.writer = os.pipe()
        return self

    def __exit__(self, *_):
        os.close(self._reader)

    def run(self, *args, **popen):
        try:
            return Run(*args, pass_fds=[self.writer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **popen)
        finally:
            os.close(self.writer)

    def wait_all_gone(self, within=10):
        assert select.select([self._reader], [], [], within)[0], "somebody is left"
        assert os.read(self._reader, 1) == b""


class Witness:
    """Looks, at the moment a server hears that a claim ended, whether its job still lives."""

    def __init__(self, server):
        self.too_early = []
        server.on_end = self._look

    def _look(self, claim):
        if claim.name and (alive := processes_of(claim.name)):
            self.too_early.append((claim.name, alive))


def test_sigkill_of_the_wrapper_a_thousand_times():
    """At any moment, right after the fork too; with a pipeline as the command."""
    rounds = scaled(1000)
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    with ScriptedServer() as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        witness = Witness(server)
        started = list(
            pool.map(lambda number: start_and_kill(server, number, random.Random(seed + number)), range(rounds))
        )
        wait_until(lambda: all(claim.ended_at for claim in server.claims), "every claim ended")
    assert not witness.too_early
    # Or the test would not see what it is for: many were killed with the job alive.
    assert sum(started) > rounds / 5


def start_and_kill(server, number, dice):
    name = f"kill-{number}"
    with Lifeline() as life, life.run(server, name, *PIPELINE) as run:
        if number % 2:
            time.sleep(dice.uniform(0, 0.02))  # somewhere between fork and a running job
        elif number % 4:
            wait_until(lambda: processes_of(name), "the job")  # however busy the machine is
            time.sleep(dice.uniform(0, 0.005))
        else:
            server.granted(name)
            time.sleep(dice.uniform(0, 0.005))
        alive = bool(processes_of(name))
        run.signal(signal.SIGKILL)
        run.process.wait()
        life.wait_all_gone()
        return alive


def test_the_next_in_line_finds_nothing_of_the_job(start_server):
    """The same against the real server, as a contender sees it."""
    server = start_server("-threads", "2")
    for number in range(scaled(100)):
        name = f"next-{number}"
        with Run(server, name, *PIPELINE) as run:
            run.commands()
            with server.waiter(name) as contender:
                run.signal(signal.SIGKILL)
                contender.expect_acquired()
                assert not processes_of(name)


def test_a_job_that_hides_and_resists_dies_too(scripted):
    """Traps, a second group and even a new session do not help: all descend from the guardian."""
    witness = Witness(scripted)
    script = "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep 60 & sleep 60; :') & sleep 60; :"
    with Lifeline() as life, life.run(scripted, "n", "sh", "-c", script) as run:
        wait_until(lambda: len(processes_of("n")) >= 5, "the whole job")
        run.signal(signal.SIGKILL)
        life.wait_all_gone()
        wait_until(lambda: scripted.claim("n").ended_at, "the claim ended")
    assert not witness.too_early


def test_sigkill_of_the_guardian(scripted):
    """The wrapper holds a duplicate of the claim, so the order is the same."""
    witness = Witness(scripted)
    for number in range(scaled(50)):
        name = f"guardian-{number}"
        with Run(scripted, name, *PIPELINE) as run:
            wait_until(lambda: len(processes_of(name)) == 3, "the pipeline")
            os.kill(run.guardian, signal.SIGKILL)
            status, _, err = run.end()
            assert status == 76 and "guardian" in err
            wait_until(lambda: scripted.claim(name).ended_at, "the claim ended")
            assert not processes_of(name)
    assert not witness.too_early


@pytest.mark.parametrize("who", ["wrapper", "guardian"])
def test_sigkill_while_the_command_is_executed(scripted, tmp_path, who):
    """It has not begun, and never does."""
    with HeldProgram(tmp_path) as program, Lifeline() as life:
        with life.run(scripted, "n", str(program.path), options=["--lease", "30s"]) as run:
            wait_until(program.is_asked_for, "somebody executes it")
            os.kill(run.pid if who == "wrapper" else run.guardian, signal.SIGKILL)
            life.wait_all_gone()
            wait_until(lambda: scripted.claim("n").ended_at, "the claim ended")
        program.let_go()
        time.sleep(0.2)
        assert not program.ran()


def test_sigkill_of_the_wrapper_while_queued(scripted):
    scripted.owner("n")
    with Lifeline() as life, life.run(scripted, "n", "sleep", "60") as run:
        claim = scripted.claim("n")
        run.signal(signal.SIGKILL)
        wait_until(lambda: claim.ended_at, "the place in the queue given up", within=1)
        life.wait_all_gone()


# Mounts over /proc so that it shows nobody, or nobody of another user.
NO_PROC = "mount -t tmpfs none /proc"
OWN_PROC = "mount -t proc -o hidepid=2 proc /proc"

# A user who may become another one.
SOMEBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+setuid", "--ambient-caps=+setuid")

# Takes the rights of another user, and notes when it was alive until it is told to end.
UNTOUCHABLE = """
import os, sys, time
os.setresuid(0, 0, 0)
with open(sys.argv[1], "w") as diary:
    print("ready", flush=True)
    while not os.path.exists(sys.argv[2]):
        print(time.monotonic(), file=diary, flush=True)
        time.sleep(0.002)
"""


def where_proc_shows_less(mount, *user):
    """Words to put before a command. Skips the test where that cannot be had."""
    prefix = ("unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", *user)
    tried = subprocess.run([*prefix, binary(), "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"no such /proc can be had here: {tried.stderr.strip()}")
    return prefix


@pytest.mark.parametrize("mount", [NO_PROC, OWN_PROC])
@pytest.mark.parametrize("who", ["wrapper", "guardian"])
def test_a_job_that_neither_dies_nor_shows_is_waited_for(scripted, tmp_path, mount, who):
    diary, stop = tmp_path / "diary", tmp_path / "stop"
    prefix = where_proc_shows_less(mount, *SOMEBODY)
    with Run(scripted, "n", "python3", "-c", UNTOUCHABLE, str(diary), str(stop), prefix=prefix) as run:
        try:
            assert run.line() == "ready"
            claim = scripted.claim("n")
            os.kill(run.pid if who == "wrapper" else run.guardian, signal.SIGKILL)
            stays_true(lambda: claim.ended_at is None, "the lock is held", 0.5)
        finally:
            stop.touch()
        wait_until(lambda: claim.ended_at, "the claim ended")
        assert float(diary.read_text().split()[-1]) < claim.ended_at


def test_a_child_from_before_the_run_is_not_waited_for_where_proc_is_missing(scripted):
    prefix = where_proc_shows_less(NO_PROC)
    script = f"sleep 60 >&- 2>&- & exec {binary()} " + " ".join(run_words(scripted, "n", "sleep", "60"))
    run = subprocess.Popen([*prefix, "sh", "-c", script], env=clean_environment(), stderr=subprocess.DEVNULL)
    try:
        command = wait_until(lambda: processes_of("n"), "the command")[0]
        guardian = int(stat_fields(command)[1])
        helper = next(child for child in children(run.pid) if child != guardian)
        os.kill(guardian, signal.SIGKILL)
        assert run.wait(10) == 76
        assert state(command) is None and state(helper) == "S"
    finally:
        run.kill()
        os.kill(helper, signal.SIGKILL)


# The first process of a namespace. Its run's command ends at the loss and leaves a child behind that does not. When
# the command's number is free a stranger gets it, with a group of its own; then the run, or its guardian, is killed.
STRANGER = """
import os, signal, subprocess, sys, time

def wait(condition):
    while not condition():
        time.sleep(0.002)

def is_gone(process):
    return not os.path.exists(f"/proc/{process}")

def parent_of(process):
    with open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])

run = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True)
command, left = map(int, run.stdout.readline().split())
guardian = parent_of(command)
print("ready", flush=True)
wait(lambda: is_gone(command))
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(command - 1))
stranger = os.fork()
if stranger == 0:
    os.setsid()
    time.sleep(600)
wait(lambda: os.getpgid(stranger) == stranger)
assert stranger == command and not is_gone(left), (stranger, command)
os.kill(guardian if sys.argv[1] == "guardian" else run.pid, signal.SIGKILL)
wait(lambda: is_gone(left))
ended, status = os.waitpid(stranger, os.WNOHANG)
print(f"killed by {os.WTERMSIG(status)}" if ended else "lives", flush=True)
"""

LEAVING = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setsid()
    print(os.getppid(), os.getpid(), flush=True)
while True:
    time.sleep(600)
"""


@pytest.mark.parametrize("who", ["wrapper", "guardian"])
def test_a_stranger_who_got_the_number_of_the_group_is_not_killed(scripted, who):
    """The command has ended in its grace, and its number is free while the rest of the job is still to be killed."""
    namespace = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    tried = subprocess.run([*namespace, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"no namespace can be had here: {tried.stderr.strip()}")
    options = ["--lease", "60s", "--grace", "17s"]
    words = [binary(), *run_words(scripted, "n", "python3", "-c", LEAVING, options=options)]
    first = subprocess.Popen(
        [*namespace, "python3", "-c", STRANGER, who, *words], env=clean_environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "ready\n"
        scripted.reset(scripted.claim("n"))
        assert first.communicate(timeout=20)[0] == "lives\n"
    finally:
        first.kill()
        first.wait()


def test_sigkill_of_both_kills_the_command(scripted):
    """Nobody is left to keep the order; the kernel's parent-death signal still ends the command."""
    with Lifeline() as life, life.run(scripted, "n", "sleep", "60") as run:
        run.commands()
        guardian = run.guardian
        for pid in (run.pid, guardian):
            os.kill(pid, signal.SIGKILL)
        life.wait_all_gone()


def test_a_command_that_ends_by_itself_may_leave_something_behind(scripted):
    with Run(scripted, "n", "sh", "-c", "sleep 5 >&- 2>&- & exit 5") as run:
        assert run.end() == (5, "", "")
        wait_until(lambda: scripted.claim("n").ended_at, "the lock released")
        assert len(processes_of("n")) == 1
