"""monolockctl locks --watch: a screen on a terminal, lines for everything else."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

from ctl import address_text, binary, clean_environment
from ctl_screen import Screen
from support.http import fetch
from support.waiting import wait_until

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def managed(start_server):
    return start_server("-threads", "2", "-admin-listen", "127.0.0.1:0")


def words_of(server, *options):
    return [binary(), "locks", "--watch", "--admin", address_text(server.admin_address), *options]


# --- lines


@contextlib.contextmanager
def lines(server, *options, **popen):
    """A watch whose standard output is a pipe; ended at the end of the block."""
    popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | popen
    process = subprocess.Popen(words_of(server, *options), env=clean_environment(), text=True, **popen)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_line_for_what_is_held_and_each_change(managed):
    held = managed.owner("before")
    other = managed.owner("other")
    with lines(managed, "--match", "be*") as watch:
        assert re.fullmatch(
            rf"\S+Z  held      before  token=\d+ held=\S+  127\.0\.0\.1:{held.local_port}\n", watch.stdout.readline()
        )
        other.close()
        with managed.owner("better") as owner:
            assert re.fullmatch(
                rf"\S+Z  granted   better  token=\d+ waited=\S+  127\.0\.0\.1:{owner.local_port}\n",
                watch.stdout.readline(),
            )
        held.close()
        ends = sorted(watch.stdout.readline().split()[1:3] for _ in range(2))
        assert ends == [["released", "before"], ["released", "better"]]


def test_lines_for_programs(managed):
    name = "a\nb\x1b"
    with managed.owner(name) as owner, lines(managed, "--json") as watch:
        first = json.loads(watch.stdout.readline())
        assert first["event"] == "held" and first["name"] == name and first["token"]
        assert first["remote_addr"] == f"127.0.0.1:{owner.local_port}"
        owner.close()
        last = json.loads(watch.stdout.readline())
        assert (last["event"], last["name"], last["token"]) == ("released", name, first["token"])
        # The same shape, but for what only an end has.
        assert set(first) <= set(last) and set(last) - set(first) == {"reason"}
        managed.stop()
        assert set(json.loads(watch.stdout.readline())) == {"error"}
        assert watch.wait(10) == 69 and watch.stderr.read().count("\n") == 1


def test_a_reader_that_goes_away_ends_it(managed):
    """At once, though nothing changes that could be written, and without a word."""
    with managed.owner("n"), lines(managed) as watch:
        assert " held " in watch.stdout.readline()
        watch.stdout.close()
        assert watch.wait(5) == 0
        assert watch.stderr.read() == ""
        watch.stdout = None


@pytest.mark.parametrize("words", [["locks"], ["locks", "--watch"], ["locks", "--watch", "--json"]], ids=" ".join)
@pytest.mark.parametrize("ignored", [False, True])
def test_a_reader_that_was_gone_before_it_started(managed, words, ignored):
    """Ends it as any program: by the signal, or where that is ignored with an error."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [binary(), *words, "--admin", address_text(managed.admin_address)],
        env=clean_environment(), stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=20,
        restore_signals=not ignored,  # Python ignores SIGPIPE
    )  # fmt: skip
    os.close(theirs)
    assert done.returncode == (74 if ignored else -signal.SIGPIPE)
    assert done.stderr.count("\n") == int(ignored)


def test_signals_end_it_by_themselves(managed):
    with managed.owner("n"):
        for number in (signal.SIGINT, signal.SIGTERM):
            with lines(managed) as watch:
                assert " held " in watch.stdout.readline()
                watch.send_signal(number)
                assert watch.wait(5) == -number and watch.stderr.read() == ""


def test_a_server_that_is_not_there(tmp_path):
    watch = [binary(), "locks", "--watch", "--admin", f"unix:{tmp_path}/none"]
    done = subprocess.run(watch, env=clean_environment(), capture_output=True, text=True, timeout=20)
    assert done.returncode == 69 and not done.stdout and done.stderr.count("\n") == 1
    with Screen(*watch, env={"TERM": "xterm"}) as screen:
        status, seen = screen.end()
        assert status == 69 and "\x1b" not in seen


# --- a terminal


@pytest.fixture
def screen(managed):
    with Screen(*words_of(managed), env={"TERM": "xterm"}, size=(12, 80)) as screen:
        yield screen


def test_the_screen_is_drawn_and_given_back(managed, screen):
    with managed.owner("nightly"), managed.waiter("nightly"):
        screen.read_until(re.escape(ENTER))
        wait_until(lambda: not screen.echoes(), "keys do not show")
        screen.read_until(r"1 lock, 2 sessions.*nightly +127", within=10)
        # Drawn over what was there, not on an empty screen.
        assert "\x1b[2J" not in screen.seen
        screen.type("\x03")
        status, seen = screen.end()
        assert status == -signal.SIGINT and seen.endswith(LEAVE)
        assert screen.echoes() and "\x1b[?25h" in seen and "\x1b[?7h" in seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_other_signals_give_it_back_too(screen, number):
    screen.read_until(re.escape(ENTER))
    os.kill(screen.process.pid, number)
    status, seen = screen.end()
    assert status == -number and seen.endswith(LEAVE) and screen.echoes()


def test_it_shows_what_fits_and_follows_the_window(managed, screen):
    owners = [managed.owner(f"lock-{index:02}") for index in range(30)]
    frame = screen.read_until(r"30 locks(.*?)\x1b\[J").group()
    names = re.findall(r"lock-\d\d", frame)
    assert names == [f"lock-{index:02}" for index in range(8)] and "... and more" in frame
    assert frame.count("\n") == 11  # twelve lines: no more, or it would scroll
    began = time.monotonic()
    screen.resize(20, 80)
    os.kill(screen.process.pid, signal.SIGWINCH)
    screen.read_until(r"lock-15(.*?)\x1b\[J")
    assert time.monotonic() - began < 1.5, "drawn at once, not when its time comes"
    for owner in owners:
        owner.close()


def test_a_server_that_is_away_for_a_while(start_server, tmp_path):
    admin = f"unix:{tmp_path}/admin.sock"
    server = start_server("-admin-listen", admin)
    owner = server.owner("kept in sight")
    with Screen(*words_of(server), env={"TERM": "xterm"}, size=(12, 80)) as screen:
        screen.read_until("kept in sight")
        server.kill()
        screen.read_until(r"trying again(.*?)kept in sight")
        again = start_server("-admin-listen", admin)
        screen.read_until(r"0 locks, 0 sessions(.*?)no lock is held")
        assert fetch(again.admin_address, "/api/info").status == 200
    owner.close()


def test_it_can_be_stopped_from_the_keyboard(managed):
    with Screen("bash", "--norc", "--noprofile", "-i", env={"TERM": "xterm"}, size=(12, 80)) as shell:
        shell.type("stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null; echo be''gin\n")
        shell.read_until("begin")
        shell.type(" ".join(words_of(managed)) + "\n")
        shell.read_until(re.escape(ENTER) + "(.*?)no lock is held")
        shell.type("\x1a")
        shell.read_until(re.escape(LEAVE) + "(.*?)Stopped")
        shell.type("fg\n")
        shell.read_until(re.escape(ENTER) + "(.*?)no lock is held")
        shell.type("\x03")
        shell.read_until(re.escape(LEAVE))
        shell.type("echo status-$?\n")
        shell.read_until("status-130")


def test_a_dumb_terminal_gets_lines(managed):
    with managed.owner("n"), Screen(*words_of(managed), env={"TERM": "dumb"}) as screen:
        screen.read_until(r"Z  held      n  token=\d+")
        assert "\x1b" not in screen.seen
