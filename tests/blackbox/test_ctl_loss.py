"""The lock is lost while the command runs: case L2, and who enforces the deadline."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

from ctl import (
    Run,
    ScriptedServer,
    binary,
    children,
    clean_environment,
    processes_of,
    run_words,
    stat_fields,
    state,
)
from ctl_exec import HeldProgram
from support.strace import all_injected, injected
from support.waiting import tried_again, wait_until

LEASE = 2.0
CONFIRMED = 0.8 * LEASE
GRACE = 0.15 * LEASE  # the default

# Traps TERM, has a grandchild that does too, and writes down when each was alive and when it was told.
STUBBORN = """
import os, signal, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(word):
    os.write(log, f"{word} {os.getpid()} {time.monotonic()}\\n".encode())
signal.signal(signal.SIGTERM, lambda *_: note("term"))
if os.fork() == 0 and os.fork() > 0:
    os._exit(0)
while True:
    note("alive")
    time.sleep(0.004)
"""


class Diary:
    def __init__(self, path):
        self.path = path

    def entries(self):
        with contextlib.suppress(OSError):
            lines = self.path.read_text().splitlines()
            return [(word, int(pid), float(when)) for word, pid, when in map(str.split, lines)]
        return []

    def wait_complete(self):
        wait_until(lambda: len({pid for _, pid, _ in self.entries()}) >= 2, "command and grandchild")

    def terms(self):
        return sorted(when for word, _, when in self.entries() if word == "term")

    def last_sign_of_life(self):
        return max(when for _, _, when in self.entries())


@pytest.fixture
def scripted():
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def stubborn(scripted, tmp_path):
    """Starts the stubborn job and gives (run, claim, diary) once it is complete."""
    with contextlib.ExitStack() as cleanup:
        runs = []

        def start(*options):
            number = len(runs)
            diary = Diary(tmp_path / f"diary-{number}")
            name = f"n{number}"
            words = ("python3", "-c", STUBBORN, str(diary.path))
            run = Run(scripted, name, *words, options=["--lease", f"{LEASE}s", *options])
            runs.append(cleanup.enter_context(run))
            diary.wait_complete()
            return run, scripted.granted(name), diary

        yield start


def wait_heartbeat(claim):
    seen = claim.answered_at
    wait_until(lambda: claim.answered_at != seen, "a heartbeat answered", interval=0.001)


def check_silence(run, claim, diary, grace):
    """The last answer counts from the sending of its heartbeat, which is when it arrived here."""
    status, out, err = run.end()
    last = claim.answered_at
    assert status == 76 and out == "" and '"n' in err
    killed_after = diary.last_sign_of_life() - last
    assert CONFIRMED - 0.08 < killed_after < CONFIRMED + 0.05
    if grace:
        assert len(diary.terms()) == 2, "the whole group is told, once"
        assert diary.terms()[0] - last == pytest.approx(CONFIRMED - grace, abs=0.05)
    else:
        assert not diary.terms()
    assert not processes_of(run.name)


@tried_again
@pytest.mark.parametrize("grace", [None, 0, 0.5])
def test_silence(scripted, stubborn, grace):
    scripted.silent = False
    run, claim, diary = stubborn(*([] if grace is None else ["--grace", f"{int(grace * 1000)}ms"]))
    wait_heartbeat(claim)
    scripted.silent = True
    check_silence(run, claim, diary, GRACE if grace is None else grace)


@tried_again
@pytest.mark.parametrize("how", ["error", "reset", "end"])
@pytest.mark.parametrize("grace", [0.3, 0])
def test_an_announced_loss(scripted, stubborn, how, grace):
    run, claim, diary = stubborn("--grace", f"{int(grace * 1000)}ms")
    if how == "error":
        scripted.send_error(claim, 0x02, b"closed by administrator")
    elif how == "reset":
        scripted.reset(claim)
    else:
        claim.sock.shutdown(1)
    told = time.monotonic()
    status, out, err = run.end()
    assert status == 76 and out == "" and "lost" in err
    if grace:
        assert len(diary.terms()) == 2
        assert diary.terms()[0] - told < 0.05
    assert grace - 0.02 < diary.last_sign_of_life() - told < grace + 0.05


def full_pipe():
    """Both ends of a pipe that takes no byte more."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    return reader, writer


@tried_again
@pytest.mark.parametrize("grace", [300, 0])
def test_a_standard_error_that_takes_nothing_delays_no_stop(scripted, grace):
    reader, writer = full_pipe()
    script = "exec 2>/dev/null; trap 'echo told' TERM; echo ready; while :; do sleep 0.02; done"
    options = ["--lease", "8s", "--grace", f"{grace}ms"]
    try:
        with Run(scripted, "n", "sh", "-c", script, options=options, stderr=writer) as run:
            assert run.line() == "ready"
            job = run.commands()
            scripted.reset(scripted.claim("n"))
            lost_at = time.monotonic()
            if grace:
                assert run.line() == "told"
                assert time.monotonic() - lost_at < 0.1
            wait_until(lambda: not set(job) & set(processes_of("n")), "the end of the job")
            assert time.monotonic() - lost_at < grace / 1000 + 0.2
            assert run.process.wait(timeout=5) == 76
    finally:
        os.close(reader)
        os.close(writer)


def test_a_child_from_before_the_run_is_nobodys_job(scripted):
    """A script may have started a helper before it execs monolockctl; only the job is killed."""
    wrapped = " ".join([binary(), *run_words(scripted, "n", "sleep", "100")])
    script = subprocess.Popen(
        ["sh", "-c", f"sleep 100 & echo $!; exec {wrapped}"],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    helper = int(script.stdout.readline())
    try:
        wait_until(lambda: processes_of("n"), "the command")
        guardian = next(child for child in children(script.pid) if child != helper)
        os.kill(guardian, signal.SIGKILL)
        assert script.wait(timeout=10) == 76
        assert processes_of("n") == []
        assert state(helper) != "Z"
    finally:
        os.kill(helper, signal.SIGKILL)


def test_a_loss_wins_over_the_commands_own_status(scripted):
    for status in (0, 7):
        name = f"n{status}"
        script = f"trap 'exit {status}' TERM; echo ready; while :; do sleep 0.02; done"
        with Run(scripted, name, "sh", "-c", script) as run:
            assert run.line() == "ready"
            scripted.send_error(scripted.claim(name), 0x01)
            assert run.end()[0] == 76


def tampered(calls, how):
    """Arguments of Run that have single system calls of it delayed or refused."""
    words = ("strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}")
    return {
        "prefix": (*words, "-e", f"inject={calls}:{how}"),
        "env": {"ASAN_OPTIONS": "detect_leaks=0"},  # it cannot work under a tracer
    }


def test_a_loss_that_is_noticed_only_at_the_release_is_one(scripted):
    """The connection breaks, and the command ends before the library's thread has a turn."""
    slow = tampered("?epoll_wait,?epoll_pwait", "delay_exit=100000")
    with Run(scripted, "n", "cat", stdin=subprocess.PIPE, **slow) as run:
        run.commands()
        scripted.reset(scripted.claim("n"))
        status, out, err = run.end()  # closes the command's standard input
        assert status == 76 and out == "" and "lost" in err


def test_a_failure_of_the_guardians_own_ends_the_job_before_the_claim(scripted):
    """Its second timer, the one of the deadline, is refused when the command runs already."""
    alive_at_end = []
    scripted.on_end = lambda claim: alive_at_end.extend(processes_of("n"))
    refused = tampered("timerfd_create", "error=ENFILE:when=2")
    with Run(scripted, "n", "sh", "-c", "setsid sleep 60 & exec sleep 60", **refused) as run:
        status, out, err = run.end()
        assert status == 71 and out == "" and "timerfd_create" in err
        wait_until(lambda: scripted.claim("n").ended_at, "the claim ended")
        assert not alive_at_end


def test_a_grandchild_that_outlives_the_command_is_killed_in_the_end(scripted):
    script = "(trap '' TERM; exec sleep 60) & trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    with Run(scripted, "n", "sh", "-c", script, options=["--lease", "2s"]) as run:
        assert run.line() == "ready"
        scripted.reset(scripted.claim("n"))
        assert run.end()[0] == 76
        assert not processes_of("n")


def test_a_stopped_job_is_told_and_killed_too(scripted):
    with Run(scripted, "n", "sleep", "60", options=["--lease", "1s"]) as run:
        command = run.commands()[0]
        os.kill(command, signal.SIGSTOP)
        time.sleep(0.1)
        scripted.silent = True
        assert run.end()[0] == 76
        assert not processes_of("n")


# --- who enforces it


@tried_again
def test_silence_while_the_wrapper_is_stopped(scripted, stubborn):
    scripted.silent = False
    run, claim, diary = stubborn()
    run.signal(signal.SIGSTOP)
    wait_heartbeat(claim)  # the lock is kept: the guardian does not stop
    wait_heartbeat(claim)
    scripted.silent = True
    wait_until(lambda: not processes_of(run.name), "the job killed")
    run.signal(signal.SIGCONT)
    check_silence(run, claim, diary, GRACE)


@tried_again
@pytest.mark.parametrize("grace", [None, 0])
def test_the_wrapper_acts_when_the_guardian_cannot(scripted, stubborn, grace):
    """A stopped guardian sends no heartbeats; the job is dead before the lease ends, the claim after."""
    alive_at_end = []
    scripted.on_end = lambda claim: alive_at_end.extend(processes_of(claim.name))
    run, claim, diary = stubborn(*([] if grace is None else ["--grace", "0"]))
    wait_heartbeat(claim)
    os.kill(run.guardian, signal.SIGSTOP)
    status, _, err = run.end()
    assert status == 76 and err
    assert len(diary.terms()) == (0 if grace == 0 else 2)
    assert CONFIRMED - 0.25 * LEASE < diary.last_sign_of_life() - claim.answered_at < CONFIRMED + 0.15
    wait_until(lambda: claim.ended_at, "the claim ended")
    assert not alive_at_end


def test_a_guardian_that_stops_between_fork_and_report_leaves_no_command_unwatched(scripted):
    """It stands still before it has told the wrapper of the command, which runs already."""
    alive_at_end = []
    scripted.on_end = lambda claim: alive_at_end.extend(processes_of(claim.name))
    # Its second one, after that for itself.
    late = tampered("setpgid", "delay_enter=3s:when=2")
    with Run(scripted, "n", "sleep", "60", options=["--lease", "2s"], **late) as run:
        command = run.commands()[0]
        os.kill(int(stat_fields(command)[1]), signal.SIGSTOP)
        status, _, err = run.end()
        assert status == 76 and "did not act at the deadline" in err
        wait_until(lambda: scripted.claim("n").ended_at, "the claim ended")
        assert not alive_at_end


def test_a_guardian_that_stood_still_since_the_go_starts_no_command(scripted, tmp_path):
    """It has the grant and the order to start, and goes on when the claim is lost."""
    ran = tmp_path / "ran"
    owner = scripted.owner("n")
    with Run(scripted, "n", "sh", "-c", f"echo ran > {ran}", options=["--lease", "1s"]) as run:
        scripted.claim("n")
        # And again after a fork, long enough for a command that was started to be seen.
        late = {"recvmsg": "delay_exit=2s:when=1", "setpgid": "delay_enter=1s:when=1"}
        with all_injected(str(run.guardian), late):
            scripted.release(owner)
            scripted.granted("n")
            scripted.silent = True
            assert run.end()[0] == 76
        assert not ran.exists()


@tried_again
def test_a_command_that_the_wrapper_told_to_stop_did_not_end_by_itself(scripted):
    """The guardian's own thread stands still until the wrapper has sent TERM, while the library's goes on with the
    heartbeats: the claim is never lost. It is released when nothing of the job is left all the same, and the exit status
    says that the command was stopped."""
    alive_at_end = []
    scripted.on_end = lambda claim: alive_at_end.extend(processes_of(claim.name))
    script = "(trap '' TERM; exec sleep 60) & trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    with Run(scripted, "n", "sh", "-c", script, options=["--lease", "4s", "--grace", "1190ms"]) as run:
        assert run.line() == "ready"
        # From the grant on, longer than to the wrapper's TERM and shorter than to its KILL.
        with injected(str(run.guardian), "poll", "delay_exit=1600000:when=1"):
            status, _, err = run.end()
        assert status == 76 and "stopped" in err, (status, err)
        wait_until(lambda: scripted.claim("n").ended_at, "the claim ended")
        assert not alive_at_end and not processes_of("n")


@pytest.mark.deadline
def test_a_command_that_takes_long_to_execute_keeps_its_lock(scripted, tmp_path):
    """What was confirmed at the grant is over long before it begins."""
    with HeldProgram(tmp_path, "sleep 0.6") as program:
        with Run(scripted, "n", str(program.path), options=["--lease", "2s"]) as run:
            wait_until(program.is_asked_for, "somebody executes it")
            time.sleep(2.5)
            assert scripted.claim("n").ended_at is None
            program.let_go()
            assert run.end() == (0, "", "") and program.ran()


def ignore_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@pytest.mark.parametrize("how", ["error", "reset", "silence", "stopped guardian"])
def test_a_command_that_has_not_begun_at_the_loss_never_begins(scripted, tmp_path, how):
    """It is killed at once: one that ignores TERM would begin in the grace, with the lock lost."""
    announced = how in ("error", "reset")
    options = ["--lease", "60s", "--grace", "17s"] if announced else ["--lease", "2s"]
    with HeldProgram(tmp_path) as program:
        with Run(scripted, "n", str(program.path), options=options, preexec_fn=ignore_term) as run:
            wait_until(program.is_asked_for, "somebody executes it")
            if how == "error":
                scripted.send_error(scripted.claim("n"), 0x02)
            elif how == "reset":
                scripted.reset(scripted.claim("n"))
            elif how == "silence":
                scripted.silent = True
            else:
                os.kill(run.guardian, signal.SIGSTOP)
            status, out, err = run.end()
            why = {"silence": "silent", "stopped guardian": "guardian"}.get(how, "lost")
            assert status == 76 and out == "" and why in err
            program.let_go()
            time.sleep(0.2)
            assert not program.ran()
