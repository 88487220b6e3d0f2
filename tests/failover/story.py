"""One long story: servers under load, one case after the other, and then the verdict on all of it."""

import contextlib
import datetime
import time
from dataclasses import dataclass, field

from failover.beliefs import granted_early, outlived, read_claims
from failover.cases import SERVED_WITHIN
from failover.group import Group
from failover.load import BUSY, LATE, Load, now
from failover.probes import Probes
from support.campaigns import undisturbed
from support.waiting import NeverAllowed, wait_until
from support.wall_clock import WallClock

SLACK = 2.0  # seconds beyond a TTL, by the contract
SETTLED_WITHIN = 20.0
ELECTION = 1.0  # at most, of etcd's: twice its timeout
# What two believers break. That tokens rise over all locks is concluded from who believed when.
BELIEF = {"exclusion", "no_early_grant", "tokens_over_all"}


@dataclass(frozen=True)
class Setting:
    servers: int = 2
    ttl: int = 2
    programs: tuple = (BUSY, BUSY)
    # Whether -grant-delay auto is on. Without it two may believe, and that is told rather than raised.
    delayed: bool = True

    @property
    def lease_max(self):
        """In seconds."""
        return max(wishes["lease-max"] for wishes in self.programs) / 1000


@dataclass
class Told:
    """Of a story: seconds without a grant by case, and the verdict on the histories."""

    outages: dict = field(default_factory=dict)
    # By case: owners who still believed when the next server had answered somebody who wanted their lock.
    outlived: dict = field(default_factory=dict)
    violations: dict = field(default_factory=dict)  # of BELIEF, without the delay
    grants: int = 0
    failovers: int = 0
    handovers: int = 0  # from one server to another, as the probes saw them
    checked: dict = field(default_factory=dict)
    passed_over: dict = field(default_factory=dict)
    late: list = field(default_factory=list)


class Stage:
    def __init__(self, seed, setting):
        self.ttl = setting.ttl
        self._setting = setting
        self._seed = seed
        flags = ("-grant-delay", "auto") if setting.delayed else ()
        self.group = Group(*flags, servers=setting.servers, members=3, ttl=f"{self.ttl}s", timing=(50, 500))
        self._clocks = {}
        self.active = None
        self.failovers = []  # of each: the case, when it was struck, and when the next server was seen open

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            with undisturbed():
                undo.enter_context(self.group)
                self.group.etcd.start()
                for peer in self.group.peers:
                    folder = self.group.folder / f"{peer.name}.clock"
                    folder.mkdir()
                    self._clocks[peer.name] = WallClock(folder)
                    peer.start(env=self.clock_of(peer).environment()).wait_up()
                self.settle()
                self.load = undo.enter_context(Load(self.group, self._seed, self._setting.programs, 20_000))
                self.probes = Probes(self.group.peers)
                undo.enter_context(self.probes)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        with undisturbed():
            self._undo.close()

    def clock_of(self, peer):
        return self._clocks[peer.name]

    def leader(self):
        return wait_until(self.group.etcd.leader, "etcd has a leader")

    @staticmethod
    def rest(seconds):
        time.sleep(seconds)

    def start_again(self):
        """The server that was active when the case began."""
        self.active.start(env=self.clock_of(self.active).environment()).wait_up()

    def settle(self):
        """Until one is active and the others know it."""

        def settled():
            for peer in self.group.peers:
                assert peer.is_running(), f"{peer.name} ended with {peer.server.exit_code()}: {peer.server.stderr()}"
            ready = [peer for peer in self.group.peers if peer.is_ready()]
            if len(ready) != 1:
                return False
            (self.active,) = ready
            roles = [peer.role() for peer in self.group.peers]
            return all(role and role["active_server"] == self.active.name for role in roles)

        wait_until(settled, "one is active and the others know it", SETTLED_WITHIN, interval=0.05)

    def play(self, case):
        """How long some client was without a grant, in seconds."""
        self.settle()
        self.load.wait_served(now(), SERVED_WITHIN)
        term = self.active.info()["term"]
        with self.load.unsettled():
            struck = now()
            steps = case.strike(self)
            since = next(steps) or struck
            if case.new_term:
                # One that is silent may keep who asks it waiting, too, and is not the next one.
                peers = [peer for peer in self.group.peers if not (case.silent and peer is self.active)]
                wait_until(
                    lambda: self._serves_in_a_later_term_than(term, peers), "a new term", SERVED_WITHIN, interval=0.02
                )
                self.failovers.append((case, struck, now()))
            self.load.wait_served(now(), SERVED_WITHIN)
            outage = self.load.outage(since, now())
            for _ in steps:
                raise AssertionError("a case yields once")
            self.settle()
        return outage.seconds

    def log_since(self, moment):
        """What the servers have said since that time.time(), in its order."""
        since = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        lines = [
            f"{line.split(' ')[0]} {peer.name} {line.partition(' ')[2]}"
            for peer in self.group.peers
            for line in peer.server.lines()
        ]
        return sorted(line for line in lines if line >= f"time={since}")

    @staticmethod
    def _serves_in_a_later_term_than(term, peers):
        """Some of them. (The key alone says only who will.)"""
        roles = [peer.role() for peer in peers]
        return any(role and role["role"] == "active" and role["term"] > term for role in roles)

    def limit(self, case):
        """What the contract allows, in seconds."""
        lease = self._setting.lease_max
        usual = self.ttl + SLACK + (lease if self._setting.delayed else 0) + (0.8 * lease if case.silent else 0)
        return usual + (ELECTION + self.ttl if case.elects else 0)

    def outlived(self):
        """See Told. With the delay nobody is granted within a lease of the server before."""
        claims = read_claims(self.load.histories())
        found = {}
        for case, struck, opened in self.failovers:
            pairs = outlived(claims, struck, opened)
            if self._setting.delayed and (early := granted_early(pairs)):
                raise NeverAllowed(f"{case.name}: granted within the lease of an owner: {early}")
            found[case.name] = found.get(case.name, 0) + len(pairs)
        return found


def tell(cases, seed, setting, until, say=print):
    """The cases in their order, as long as there is time. Raises NeverAllowed."""
    told = Told()
    with Stage(seed, setting) as stage:
        for case in cases:
            if time.monotonic() >= until:
                break
            began, elections = time.time(), stage.group.etcd.raft_term()
            try:
                seconds = stage.play(case)
            except AssertionError as failure:
                log = "\n".join(stage.log_since(began))
                raise AssertionError(f"{case.name}: {failure}\n{log}") from None
            told.outages.setdefault(case.name, []).append(seconds)
            late = seconds > stage.limit(case)
            if late:
                told.late.append(case.name)
            elected = stage.group.etcd.raft_term() != elections
            say(
                f"  {case.name:<42}{seconds:6.2f} s{'  LATE' if late else ''}"
                f"{'  (etcd elected a leader)' if elected else ''}"
            )
            if late:
                say("\n".join(stage.log_since(began)))
        told.failovers = sum(
            int(peer.info()["failovers"]) for peer in stage.group.peers if peer.is_running()
        )
        stage.probes.stop()
        reigns = stage.probes.judge()
        verdict = stage.load.judge(set() if setting.delayed else BELIEF)
        told.grants, told.checked, told.passed_over = verdict.grants, verdict.checked, verdict.passed_over
        told.violations = verdict.violations
        told.outlived = stage.outlived()
        told.handovers = sum(one.server != next_one.server for one, next_one in zip(reigns, reigns[1:]))
        if LATE & set(verdict.violations):
            raise AssertionError(f"{verdict.violations}\n{verdict.text}")
        if any(told.outlived.values()) and not setting.delayed and "exclusion" not in verdict.violations:
            raise NeverAllowed(f"some believed beside the next owner, and no checker noticed: {told.outlived}")
        if told.outages and not reigns:
            raise NeverAllowed("no probe was ever answered")
    return told
