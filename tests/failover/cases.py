"""What befalls the servers and etcd, one case after the other in one long story.

A case is a generator. It strikes; it yields when clients are to be served again, with the moment from which that
counts (None: from the strike); then it undoes what is left to undo.
"""

import time
from dataclasses import dataclass
from typing import Callable

from faults.chronicle import now
from support.waiting import stays_true, wait_until


SERVED_WITHIN = 30.0  # seconds, whatever it was: else the story is over


@dataclass(frozen=True)
class Case:
    name: str
    strike: Callable
    # Clients are not told that the old server is gone; they find out by its silence.
    silent: bool = False
    # Whether a new term begins, of another server or of the same one. Else clients may go on as if nothing had
    # happened, once what lies between them and the server is well.
    new_term: bool = True
    # etcd elects a leader meanwhile, which begins all leases anew: that of who is gone, too.
    elects: bool = False


# --- the active server


def kill(stage):
    stage.active.server.kill()
    yield
    stage.start_again()


def stop(stage):
    stage.active.server.signal(15)
    yield
    assert stage.active.server.wait_exit() == 0
    stage.start_again()


def stand_still(stage):
    stage.active.server.pause()
    yield
    stage.rest(stage.ttl)
    stage.active.server.resume()


# --- its network


def cut_from_etcd(stage):
    stage.active.machine.cut(*stage.group.etcd_machines)
    yield
    stage.active.machine.mend()


def deaf_to_etcd(stage):
    stage.active.machine.hear_not(*stage.group.etcd_machines)
    yield
    stage.active.machine.mend()


def mute_to_etcd(stage):
    stage.active.machine.reach_not(*stage.group.etcd_machines)
    yield
    stage.active.machine.mend()


def cut_from_one_member(stage):
    """The first in its list."""
    stage.active.machine.cut(stage.group.etcd_machines[0])
    stage.rest(stage.ttl)
    yield
    stage.active.machine.mend()


def cut_from_everybody(stage):
    stage.active.machine.cut(stage.group.clients, *stage.group.etcd_machines)
    yield
    stage.active.machine.mend()


def of_clients_only(how):
    """etcd sees no reason to make another one active: service is back when the network is."""

    def strike(stage):
        getattr(stage.active.machine, how)(stage.group.clients)
        stage.rest(stage.ttl)
        stage.active.machine.mend()
        yield now()
        assert stage.active.is_ready(), "it has been active all the time"

    return strike


def unheard(strike):
    """The same, and no client hears of it: the server is cut off from them first."""

    def struck(stage):
        machine = stage.active.machine
        machine.cut(stage.group.clients)
        yield from strike(stage)
        machine.mend()

    return struck


# --- etcd


def lose_a_follower(stage):
    leader = stage.group.etcd.leader()
    victim = next(member for member in stage.group.etcd.members if member is not leader)
    victim.kill()
    stage.rest(stage.ttl)
    yield
    stage.group.etcd.start(victim)


def lose_the_leader(stage):
    victim = stage.leader()
    victim.kill()
    stage.rest(stage.ttl)
    yield
    stage.group.etcd.start(victim)


def lose_the_majority(stage):
    """No lock service rather than two."""
    victims = stage.group.etcd.members[:2]
    for member in victims:
        member.kill()
    wait_until(lambda: not stage.active.is_ready(), "it steps down", within=stage.ttl + 1)
    stays_true(lambda: not any(peer.is_ready() for peer in stage.group.peers), "nobody is active", stage.ttl)
    assert all(peer.refuses() for peer in stage.group.peers)
    stage.group.etcd.start(*victims)
    yield now()


def during_an_election(strike):
    """The same, and before the lease of who was struck has ended etcd's leader dies."""

    def struck(stage):
        leader = stage.leader()
        steps = strike(stage)
        moment = next(steps)
        stage.rest(0.7 * stage.ttl)
        leader.kill()
        yield moment
        stage.group.etcd.start(leader)
        yield from steps

    return struck


def leader_stands_still(stage):
    victim = stage.leader()
    victim.pause()
    try:
        stage.rest(stage.ttl)
    finally:
        victim.resume()
    yield


def slow_etcd(stage):
    """All members stand still for a while, again and again; each call is late and none is lost."""
    over = time.monotonic() + 2 * stage.ttl
    while time.monotonic() < over:
        for member in stage.group.etcd.members:
            member.pause()
        stage.rest(stage.ttl / 20)
        for member in stage.group.etcd.members:
            member.resume()
        stage.rest(stage.ttl / 20)
    yield


def revoke_the_lease(stage):
    stage.group.revoke_lease()
    yield


def delete_the_key(stage):
    stage.group.delete_active()
    yield


# --- clocks


def clock_steps(hours):
    """The wall clock of the active jumps; then it dies, and its successor's clock is far behind, or ahead."""

    def strike(stage):
        stage.clock_of(stage.active).shift(3600 * hours)
        term = stage.active.info()["term"]
        stage.load.wait_served(now(), SERVED_WITHIN)
        stage.rest(stage.ttl)
        assert stage.active.info()["term"] == term, "a wall clock says nothing about who is active"
        struck = now()
        stage.active.server.kill()
        yield struck
        stage.clock_of(stage.active).shift(0)
        stage.start_again()

    return strike


CASES = (
    Case("kill -9 of the active", kill),
    Case("SIGTERM of the active", stop),
    Case("SIGSTOP of the active", stand_still, silent=True),
    Case("SIGSTOP, and etcd's leader dies", during_an_election(stand_still), silent=True, elects=True),
    Case("active cut from etcd", cut_from_etcd),
    Case("active does not hear etcd", deaf_to_etcd),
    Case("active does not reach etcd", mute_to_etcd),
    Case("active cut from one member", cut_from_one_member, new_term=False),
    Case("active cut from etcd and clients", cut_from_everybody, silent=True),
    Case("active cut from clients, mended", of_clients_only("cut"), silent=True, new_term=False),
    Case("active does not hear clients, mended", of_clients_only("hear_not"), silent=True, new_term=False),
    Case("active does not reach clients, mended", of_clients_only("reach_not"), silent=True, new_term=False),
    Case("a follower of etcd dies", lose_a_follower, new_term=False),
    Case("the leader of etcd dies", lose_the_leader, new_term=False),
    Case("two of three members die, restarted", lose_the_majority),
    Case("the leader of etcd stands still", leader_stands_still, new_term=False),
    Case("slow etcd", slow_etcd, new_term=False),
    Case("lease revoked by hand", revoke_the_lease),
    Case("key deleted by hand", delete_the_key),
    Case("clock an hour ahead, then kill -9", clock_steps(+1)),
    Case("clock an hour behind, then kill -9", clock_steps(-1)),
)

_BY_NAME = {case.name: case for case in CASES}

# Ten failovers in a row, of every kind, each of which clients notice.
TEN_IN_A_ROW = tuple(
    _BY_NAME[name]
    for name in (
        "kill -9 of the active",
        "SIGSTOP of the active",
        "SIGTERM of the active",
        "two of three members die, restarted",
        "clock an hour ahead, then kill -9",
        "lease revoked by hand",
        "active cut from etcd",
        "active cut from etcd and clients",
        "clock an hour behind, then kill -9",
        "key deleted by hand",
    )
)

# Owners go on believing after each of these.
UNTOLD = (
    Case("SIGSTOP of the active", stand_still, silent=True),
    Case("SIGTERM, unheard by clients", unheard(stop), silent=True),
    Case("active cut from etcd and clients", cut_from_everybody, silent=True),
    Case("kill -9, unheard by clients", unheard(kill), silent=True),
)
