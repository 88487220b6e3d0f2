"""Reports in PostgreSQL, each with workers that add to it all the time and a fate that strikes them."""

import contextlib
import os
import pathlib
import random
import re
import selectors
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field

import page
from harness import postgres
from ledger import Ledger
from star import PORT, Star
from strikes import WAYS, Fate
from support.server import Server
from workers import Job, Program

SERVER_LIFE_SECONDS, STARTS_PER_LIFE = 1.5, 5  # at the least, between two crashes; more where it starts slowly
END_SECONDS = 30  # in which all workers have come to their end once nothing more is asked of them
EXITS_OF_A_JOB = {0, 3, 76}  # done, refused, lost its lock
VARIANTS = {
    "program": "the page's program",
    "script": "the page's script under monolockctl run",
    "late": "the program, its token compared only when it writes",
    "unfenced": "the program without conditions",
    "unfenced script": "the script without conditions",
}
FENCED = ("program", "script")


def absent():
    """What is missing on this machine, or None."""
    if postgres.binary("postgres") is None or postgres.binary("initdb") is None:
        return "PostgreSQL is not installed"
    if "FENCED_PROGRAMS" not in os.environ:
        return "libpq-dev is not installed"
    return None


@dataclass
class Report:
    """A row, and who writes to it."""

    name: str
    variant: str
    fate: Fate
    workers: list = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    strike: object = None
    striking: bool = True

    def calm_down(self):
        """Nobody is struck any more, and who waits for an heir that cannot come goes on."""
        self.striking = False
        if self.strike is not None and not any(
            worker.element for worker in self.workers if worker is not self.strike.victim
        ):
            self.strike.let_go()

    def told(self, worker, event):
        if self.strike is not None:
            taken = self.strike.told(worker, event)
            if self.strike.over:
                self.strike = None
            if taken or event != "read":
                return
        if event == "read":
            if self.strike is None and self.striking:
                self.strike = self.fate.strike(worker)
            if self.strike is None or self.strike.victim is not worker:
                worker.go()


@dataclass
class Ground:
    """A database, a lock server, networks and programs."""

    cluster: postgres.Cluster
    star: Star
    scripts: dict
    server: Server = None
    _life_ends_at: float = 0.0

    def start_server(self):
        begun = time.monotonic()
        self.server = Server("-threads", "2", listen=f"0.0.0.0:{PORT}", prefix=self.star.prefix)
        now = time.monotonic()
        self._life_ends_at = now + SERVER_LIFE_SECONDS + STARTS_PER_LIFE * (now - begun)

    def restart_server(self):
        """As after a crash."""
        self.server.kill()
        self.server.dispose()
        self.start_server()

    def may_restart_server(self):
        return time.monotonic() > self._life_ends_at

    def worker(self, variant, report, number, place):
        made = self._make_worker(variant, f"{report}-{number}", report, place)
        made.ground = self
        return made

    def _make_worker(self, variant, name, report, place):
        if "script" in variant:
            script = self.scripts["unfenced" if variant.startswith("unfenced") else "fenced"]
            return Job(name, place, script, self.cluster.conninfo, report)
        program = {"program": "fenced_worker", "late": "fenced_worker_late", "unfenced": "fenced_worker_unfenced"}
        path = pathlib.Path(os.environ["FENCED_PROGRAMS"], program[variant])
        return Program(name, place, path, self.cluster.conninfo, report)

    def elements(self, report):
        return self.cluster.ask("SELECT body FROM report WHERE id = :'id';", id=report).split()


@contextlib.contextmanager
def ground(rays):
    with contextlib.ExitStack() as stack:
        # Nobody pulls its plug, so it need not wait for the disk.
        cluster = stack.enter_context(postgres.started("writer", fsync="off", max_connections=100))
        cluster.ask(page.schema())
        star = Star(rays)
        stack.callback(star.remove)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="monolock-fenced-"))
        made = Ground(cluster, star, page.write_scripts(pathlib.Path(folder)))
        made.start_server()
        stack.callback(lambda: made.server.dispose())
        yield made
        made.server.stop()


class Campaign:
    """One thread that gives out elements, hears what becomes of them, and strikes."""

    WORKERS = 3  # for each report

    def __init__(self, on, reports, seed):
        """reports: pairs of a variant and the reads between two strikes."""
        self.ground = on
        self.reports = []
        self.seed = seed
        self._selector = selectors.DefaultSelector()
        self._asking = True
        rays = iter(on.star.rays)
        for number, (variant, reads_between) in enumerate(reports):
            name = f"r{number}"
            report = Report(name, variant, Fate(random.Random(f"{seed} {name}"), reads_between))
            # A run that is cut off ends its job by itself, so only programs are.
            places = [on.star] * self.WORKERS
            if "script" not in variant:
                places[0] = next(rays, on.star)
            report.workers = [on.worker(variant, name, index, place) for index, place in enumerate(places)]
            on.cluster.ask("INSERT INTO report (id) VALUES (:'id');", id=name)
            self.reports.append(report)

    def __enter__(self):
        for report in self.reports:
            for worker in report.workers:
                self._ask(report, worker)
        return self

    def __exit__(self, *_):
        for report in self.reports:
            for worker in report.workers:
                if worker.process is not None:
                    worker.kill()
                    worker.reap()

    def run_until(self, enough, seconds_max):
        """Until enough(): then, or when time is up, what was begun is ended. Whether it was enough."""
        deadline = time.monotonic() + seconds_max
        while not (done := enough()) and time.monotonic() < deadline:
            self._turn()
        self._asking = False
        deadline = time.monotonic() + END_SECONDS
        while any(worker.process for report in self.reports for worker in report.workers):
            assert time.monotonic() < deadline, "workers do not come to their end"
            for report in self.reports:
                report.calm_down()
            self._turn()
        return done

    def of(self, variant):
        return [report for report in self.reports if report.variant == variant]

    # --- events

    def _turn(self):
        for key, _ in self._selector.select(0.1):
            self._hear(*key.data)
        for report in self.reports:
            if report.strike is not None:
                report.strike.check_time()

    def _ask(self, report, worker):
        if not self._asking:
            worker.element = None
            if worker.process is not None and not worker.process.stdin.closed:
                worker.process.stdin.close()  # there are no more: it ends by itself
            return
        fresh = worker.process is None
        worker.ask()
        report.ledger.given.add(worker.element)
        if fresh:
            self._selector.register(worker.fileno(), selectors.EVENT_READ, (report, worker))

    def _hear(self, report, worker):
        lines = worker.lines()
        if lines is None:
            self._end(report, worker)
            return
        for line in lines:
            event, element = re.fullmatch(r"(read|added|not added) (\S+)(?: \d+)?", line).groups()
            self._heed(report, worker, event, element)

    def _heed(self, report, worker, event, element):
        assert element == worker.element, f"{worker.name} speaks of {element} instead of {worker.element}"
        if event == "read":
            report.told(worker, "read")
            return
        answers = {"added": report.ledger.acknowledged, "not added": report.ledger.refused}
        answers[event].add(element)
        report.told(worker, "answered")
        if isinstance(worker, Program):
            self._ask(report, worker)

    def _end(self, report, worker):
        self._selector.unregister(worker.fileno())
        status = worker.reap()
        expected = EXITS_OF_A_JOB if isinstance(worker, Job) else set() if self._asking else {0}
        assert status in expected | {-signal.SIGKILL}, f"{worker.name} ended with {status} by itself"
        report.told(worker, "ended")
        self._ask(report, worker)


@dataclass
class Outcome:
    """Of all reports of a variant."""

    variant: str
    given: int = 0
    acknowledged: int = 0
    refused: int = 0
    in_doubt: int = 0
    lost: list = field(default_factory=list)
    others: list = field(default_factory=list)  # broken invariants but the first
    struck: dict = field(default_factory=dict)


def judge(campaign):
    """The outcomes by variant."""
    outcomes = {}
    for report in campaign.reports:
        one = outcomes.setdefault(report.variant, Outcome(report.variant))
        verdict = report.ledger.judge(campaign.ground.elements(report.name))
        one.given += len(report.ledger.given)
        one.acknowledged += len(report.ledger.acknowledged)
        one.refused += len(report.ledger.refused)
        one.in_doubt += len(report.ledger.in_doubt)
        one.lost += verdict.lost
        one.others += verdict.applied + verdict.unasked + verdict.twice
        for (kind, after), count in report.fate.struck.items():
            name = f"{kind.kind} until the heir's {after}" if (kind, "read") in WAYS and (kind, "write") in WAYS else kind.kind
            one.struck[name] = one.struck.get(name, 0) + count
    return outcomes


def say(outcomes, file=sys.stdout):
    for one in outcomes.values():
        print(f"{VARIANTS[one.variant]}:", file=file)
        print(
            f"  {one.given:,} elements given, {one.acknowledged:,} acknowledged, {one.refused:,} refused, "
            f"{one.in_doubt:,} in doubt; of the acknowledged {len(one.lost):,} are lost",
            file=file,
        )
        print(f"  {', '.join(f'{count} {name}' for name, count in one.struck.items() if count)}", file=file)
