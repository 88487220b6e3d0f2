"""The terminal and job control: case L6."""

import os
import signal
import subprocess
import time

import pytest

from ctl import Run, ScriptedServer, binary, processes_of, run_words, state, stat_fields
from ctl_screen import Screen
from support.strace import injected, wait_standing
from support.waiting import wait_until


@pytest.fixture
def scripted():
    with ScriptedServer() as server:
        yield server


def foreground_of(pid):
    return int(stat_fields(pid)[5])


def shell_line(scripted, *words, options=()):
    return " ".join([binary(), *run_words(scripted, "n", *words, options=options)])


def read_command(screen):
    """The number that the command shows of itself.

    Commands that are stopped here start no others meanwhile: a shell whose child is stopped between
    vfork and exec cannot stop itself, with or without monolockctl.
    """
    return int(screen.read_until(r"ready-(\d+)\r\n").group(1))


def wrapper_of(command):
    guardian = stat_fields(command)[1]
    return int(stat_fields(guardian)[1])


def is_pending(process, number):
    with open(f"/proc/{process}/status") as status:
        fields = dict(line.rstrip("\n").split(":\t") for line in status)
    return any(int(fields[each], 16) & (1 << (number - 1)) for each in ("SigPnd", "ShdPnd"))


@pytest.fixture
def shell():
    """An interactive shell with job control."""
    with Screen("bash", "--norc", "--noprofile", "-i") as screen:
        screen.type("stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null; echo be''gin\n")
        screen.read_until("begin")
        yield screen


def test_the_terminal_is_handed_over_and_taken_back(scripted, shell):
    script = "\"read line; echo got-\\$line; kill -0 \\$\\$\""
    shell.type(shell_line(scripted, "sh", "-c", script) + "; echo status-$?\n")
    command = wait_until(lambda: processes_of("n"), "the command")[0]
    wait_until(lambda: foreground_of(command) == os.getpgid(command), "the command has the terminal")
    shell.type("words\n")
    shell.read_until("got-words")
    shell.read_until("status-0")
    shell.type("read line; echo shell-$line\n")  # the shell can read again
    shell.type("more\n")
    shell.read_until("shell-more")


def test_it_is_taken_back_without_a_job_control_shell(scripted):
    """A script that goes on reading after the run: nobody but the wrapper returns the terminal."""
    script = shell_line(scripted, "true") + "; read line; echo script-$line; sleep 60"
    with Screen("sh", "-c", script) as screen:
        wait_until(lambda: [claim.ended_at for claim in scripted.claims] not in ([], [None]), "the run ended")
        wait_until(lambda: foreground_of(screen.process.pid) == screen.process.pid, "the script has it back")
        screen.type("again\n")
        screen.read_until("script-again")


def test_a_run_in_the_background_leaves_the_terminal_alone(scripted, shell):
    shell.type(shell_line(scripted, "sleep", "60") + " & echo st''arted\n")
    shell.read_until("started")
    command = wait_until(lambda: processes_of("n"), "the command")[0]
    time.sleep(0.1)
    assert foreground_of(command) == shell.process.pid
    shell.type("kill %1; wait %1; echo status-$?\n")
    shell.read_until("status-143")


def test_a_run_in_the_background_of_a_script_leaves_it_the_terminal(scripted):
    """A script has no job control: both are in the group that the terminal talks to."""
    script = shell_line(scripted, "sleep", "60") + " & read line; echo script-$line; kill $!; wait $!; echo status-$?"
    with Screen("sh", "-c", script) as screen:
        command = wait_until(lambda: processes_of("n"), "the command")[0]
        assert foreground_of(command) == screen.process.pid
        screen.type("words\n")
        screen.read_until("script-words.*status-143")


def test_a_run_that_hears_no_keys_and_reads_the_terminal_gets_it(scripted):
    script = "trap '' INT QUIT; " + shell_line(scripted, "sh", "-c", "'read line; echo got-$line'") + "; echo status-$?"
    with Screen("sh", "-c", script) as screen:
        command = wait_until(lambda: processes_of("n"), "the command")[0]
        assert foreground_of(command) == os.getpgid(command)
        screen.type("words\n")
        screen.read_until("got-words.*status-0")


def test_control_c_reaches_the_command(scripted, shell):
    script = "\"trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done\""
    shell.type(shell_line(scripted, "sh", "-c", script) + "\n")
    shell.read_until("ready")
    shell.type("\x03")
    shell.read_until("caught")
    shell.type("echo status-$?\n")
    shell.read_until("status-9")


@pytest.mark.deadline
def test_a_stopped_command_keeps_its_lock(scripted, shell):
    """Control-Z gives the prompt back; heartbeats go on for many leases; fg goes on with it all."""
    script = "\"echo ready-\\$\\$; read line; echo got-\\$line\""
    shell.type(shell_line(scripted, "sh", "-c", script, options=["--lease", "1s"]) + "\n")
    command = read_command(shell)
    shell.type("\x1a")
    shell.read_until("Stopped")
    assert state(command) == "T"
    claim = scripted.claim("n")
    time.sleep(2.5)
    assert time.monotonic() - claim.answered_at < 0.6 and claim.ended_at is None
    shell.type("echo prompt-works\n")
    shell.read_until("prompt-works")
    shell.type("fg\n")
    wait_until(lambda: foreground_of(command) == os.getpgid(command), "the command has the terminal")
    shell.type("words\n")
    shell.read_until("got-words")
    shell.type("echo status-$?\n")
    shell.read_until("status-0")


def test_control_z_and_bg(scripted, shell):
    script = "\"echo ready-\\$\\$; exec sleep 60\""
    shell.type(shell_line(scripted, "sh", "-c", script) + "\n")
    command = read_command(shell)
    shell.type("\x1a")
    shell.read_until("Stopped")
    shell.type("bg\n")
    wait_until(lambda: state(command) != "T", "the command runs again")
    assert foreground_of(command) == shell.process.pid
    shell.type("kill %1; wait %1; echo status-$?\n")
    shell.read_until("status-143")


def test_control_z_where_no_shell_could_continue_it(scripted):
    """The run leads the session: the key is ignored, as the kernel does, and nothing hangs."""
    script = "echo ready-$$; exec sleep 60"
    with Screen(binary(), *run_words(scripted, "n", "sh", "-c", script)) as screen:
        command = read_command(screen)
        screen.type("\x1a")
        time.sleep(0.2)
        wait_until(lambda: state(command) in ("S", "R"), "the command runs on")
        screen.type("\x03")
        assert screen.process.wait(10) == 130


@pytest.mark.deadline
def test_stopped_from_outside_without_a_terminal(scripted):
    with Run(scripted, "n", "sh", "-c", "echo ready; read line", options=["--lease", "1s"],
             stdin=subprocess.PIPE, start_new_session=True) as run:  # fmt: skip
        assert run.line() == "ready"
        command = run.commands()[0]
        os.kill(command, signal.SIGSTOP)
        claim = scripted.claim("n")
        time.sleep(2.5)
        assert state(command) == "T", "nobody continues what somebody stopped"
        assert time.monotonic() - claim.answered_at < 0.6 and claim.ended_at is None
        os.kill(command, signal.SIGCONT)
        run.process.stdin.write("x\n")
        run.process.stdin.flush()
        assert run.process.wait(10) == 0


@pytest.mark.parametrize("around", ["script", "pipeline"])
@pytest.mark.parametrize("by", ["SIGSTOP", "the terminal"])
def test_what_stops_along_with_the_command_goes_on_along_with_it(scripted, shell, tmp_path, around, by):
    """A script or a pipeline, when somebody continues the command and not the shell's job. A SIGSTOP does not stop it."""
    way = tmp_path / "way"
    os.mkfifo(way)
    run = shell_line(scripted, "sh", "-c", f"'echo ready-$$; exec cat {way}'")
    if around == "pipeline":
        shell.type(f"{run} | (cat; echo status-$?)\n")
    else:
        script = tmp_path / "script"
        script.write_text(f"{run}\necho status-$?\n")
        shell.type(f"sh {script}\n")
    command = read_command(shell)
    wrapper = wrapper_of(command)
    if by == "SIGSTOP":
        os.kill(command, signal.SIGSTOP)
    else:
        shell.type("\x1a")
        shell.read_until("Stopped")
    wait_until(lambda: state(command) == "T" and state(wrapper) == "T", "both stopped")
    os.kill(command, signal.SIGCONT)
    wait_until(lambda: state(command) != "T" and state(wrapper) != "T", "both go on")
    way.write_text("ended-well\n")
    shell.read_until("ended-well.*status-0")


def test_a_command_that_is_killed_when_stopped_leaves_no_run_behind(scripted, shell, tmp_path):
    """The script around it, which nobody stopped, hears of it."""
    script = tmp_path / "script"
    script.write_text(shell_line(scripted, "sh", "-c", "'echo ready-$$; exec sleep 60'") + "\necho status-$?\n")
    shell.type(f"sh {script}\n")
    command = read_command(shell)
    wrapper = wrapper_of(command)
    os.kill(command, signal.SIGSTOP)
    wait_until(lambda: state(wrapper) == "T", "the run is stopped")
    os.kill(command, signal.SIGKILL)
    shell.read_until("status-137")


@pytest.mark.parametrize("by", ["SIGSTOP", "SIGTSTP"])
@pytest.mark.parametrize("call", ["recvmsg", "kill"])
def test_a_run_that_hears_late_of_a_stop_does_not_stop_for_a_command_that_runs(scripted, shell, tmp_path, by, call):
    """It stands still before it reads of the stop, or before it stops itself, until the command was continued."""
    way = tmp_path / "way"
    os.mkfifo(way)
    shell.type(shell_line(scripted, "sh", "-c", f"'echo ready-$$; exec cat {way}'") + "; echo status-$?\n")
    command = read_command(shell)
    wrapper = wrapper_of(command)
    with injected(str(wrapper), call, "delay_enter=30s:when=1"):
        os.kill(command, getattr(signal, by))
        wait_standing(wrapper)
        os.kill(command, signal.SIGCONT)
        wait_until(lambda: is_pending(wrapper, signal.SIGCONT), "the run is continued")
    way.write_text("ended-well\n")
    shell.read_until("ended-well.*status-0")


# Lasts so long that whoever still went by the deadline of the grant would have ended it.
LASTING = "echo be''gin; sleep 0.6; echo e''nd"


@pytest.mark.deadline
def test_control_z_while_queued(scripted, shell):
    """The place in the queue is kept, and the command does not start while the run is stopped."""
    owner = scripted.owner("n")
    shell.type(shell_line(scripted, "sh", "-c", f'"{LASTING}"', options=["--lease", "1s"]) + "\n")
    claim = scripted.claim("n")
    time.sleep(0.1)
    shell.type("\x1a")
    shell.read_until("Stopped")
    scripted.release(owner)
    time.sleep(2.5)
    assert claim.ended_at is None and not processes_of("n")
    assert time.monotonic() - claim.answered_at < 0.6
    shell.type("fg\n")
    shell.read_until("begin.*end")
    shell.type("echo status-$?\n")
    shell.read_until("status-0")


@pytest.mark.deadline
def test_stopped_while_queued_without_a_terminal(scripted):
    owner = scripted.owner("n")
    # A group of its own, so that it can be stopped wherever the tests are started from.
    with Run(scripted, "n", "sh", "-c", LASTING, options=["--lease", "2s"], process_group=0) as run:
        claim = scripted.claim("n")
        time.sleep(0.1)
        run.signal(signal.SIGTSTP)
        wait_until(lambda: state(run.pid) == "T", "the run is stopped")
        scripted.release(owner)
        time.sleep(2.5)
        assert claim.ended_at is None and not processes_of("n")
        run.signal(signal.SIGCONT)
        assert run.end() == (0, "begin\nend\n", "")
