"""examples/leader: one leads, whatever becomes of the others and of it."""

import signal

from programs import LEASE_MS, address, binary
from support.waiting import wait_until


def candidate(start, server, name):
    made = start(binary("example_leader"), address(server), name, str(LEASE_MS))
    made.wait_line("stands")
    return made


def the_leader(among):
    """The one that does the duty, and its token."""

    def found():
        for each in among:
            lines = each.lines()
            if lines and " leads " in lines[-1]:
                return each, int(lines[-1].split()[-1])
        return None

    return wait_until(found, "somebody leads")


def test_a_leader_that_crashes_freezes_or_retires_is_followed(server, start):
    all_of_them = [candidate(start, server, name) for name in ("a", "b", "c")]
    crashed, first = the_leader(all_of_them)
    crashed.signal(signal.SIGKILL)
    crashed.wait()
    left = [each for each in all_of_them if each is not crashed]
    frozen, second = the_leader(left)
    frozen.signal(signal.SIGSTOP)
    (other,) = [each for each in left if each is not frozen]
    third = int(other.wait_line(r"elected (\d+)")[1])
    heard = len(frozen.lines())
    frozen.signal(signal.SIGCONT)
    frozen.wait_line("steps down", after=heard)
    assert first < second < third
    # Between waking up and stepping down it did nothing under a token that had passed.
    assert not any(" leads " in line for line in frozen.lines()[heard:])
    frozen.wait_line("stands", after=heard)
    assert other.stop() == 0
    assert other.lines()[-1].endswith("steps down: asked to")
    assert int(frozen.wait_line(r"elected (\d+)", after=heard)[1]) > third
    assert frozen.stop() == 0


def test_one_that_stands_in_line_may_go(server, start):
    leader = candidate(start, server, "a")
    leader.wait_line("leads")
    waiting = candidate(start, server, "b")
    assert waiting.stop() == 0
    assert not any("elected" in line for line in waiting.lines())
    assert leader.stop() == 0


def test_a_wrong_call_is_said(start):
    for lease in ("abc", "-1", "10s", "4294967296"):
        wrong = start(binary("example_leader"), "127.0.0.1:1", "a", lease)
        assert wrong.wait() == 2 and "usage:" in wrong.stderr()
    wrong = start(binary("example_leader"), "nonsense", "a")
    assert wrong.wait() == 1
    assert "invalid address" in wrong.stderr()
