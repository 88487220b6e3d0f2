"""Runs a scenario once and says how it went."""

import collections
import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field

from faults.networks import program
from faults.stage import Stage
from support import audit
from support.waiting import NeverAllowed

CHECKED_WITHIN = 60


@dataclass
class Verdict:
    """What check_history said."""

    text: str
    code: int
    grants: int = 0
    losses: int = 0
    handover_ms: float = None
    past_lease_ms: float = None  # see the legend of `run`
    checked: dict = field(default_factory=dict)  # invariant -> times
    passed_over: dict = field(default_factory=dict)  # invariant -> times that it could not be judged
    late: dict = field(default_factory=dict)  # invariant -> times, those above zero
    violations: dict = field(default_factory=dict)  # the same, of what nothing excuses
    injected: dict = field(default_factory=dict)  # fault -> times
    folder: str = None  # keeps the history of a run that was late

    @property
    def is_unsafe(self):
        return self.code == 1

    @property
    def is_late(self):
        return self.code == 3

    @property
    def broken(self):
        """Late or worse."""
        return collections.Counter(self.late) + collections.Counter(self.violations)


def check_history(files):
    done = subprocess.run(
        [program("CHECK_HISTORY_BIN"), *files], capture_output=True, text=True, timeout=CHECKED_WITHIN
    )
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    verdict = Verdict(done.stdout, done.returncode)
    head = re.search(r" (\d+) grants, (\d+) owners lost", done.stdout)
    verdict.grants, verdict.losses = int(head[1]), int(head[2])
    for line in done.stdout.splitlines():
        if span := re.fullmatch(r"  (slowest handover|grant past a lease) +([0-9.]+) ms", line):
            name = "handover_ms" if span[1].startswith("slowest") else "past_lease_ms"
            setattr(verdict, name, float(span[2]))
        if row := re.fullmatch(r"  (\w+) +(\d+) +(\d+) +(\d+) +(\d+)", line):
            verdict.checked[row[1]] = int(row[2])
            verdict.passed_over[row[1]] = int(row[3])
            for counts, times in ((verdict.late, row[4]), (verdict.violations, row[5])):
                if int(times):
                    counts[row[1]] = int(times)
    return verdict


class Unsafe(NeverAllowed):
    """Something happened that nothing excuses. `folder` keeps the histories and the audit log."""

    def __init__(self, what, folder):
        super().__init__(what)
        self.folder = folder


def kept(stage, why):
    """The folder that keeps them."""
    folder = tempfile.mkdtemp(prefix=f"{why}-{stage.seed}-")
    for path in (*stage.histories(), *stage.folder.glob("audit.log")):
        shutil.copy(path, folder)
    return folder


def run_scenario(scenario, seed, seconds):
    """Faults for so long, then calm. What was only late is in the verdict."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, Stage(scenario, seed, folder) as stage:
        try:
            stage.harm(seconds)
            stage.calm_down()
            return judge(stage)
        except NeverAllowed as found:
            raise Unsafe(str(found), kept(stage, "unsafe")) from found


def judge(stage):
    verdict = check_history(stage.histories())
    verdict.injected = dict(stage.injected)
    if verdict.is_late:
        verdict.folder = kept(stage, "late")
    log = read_audit_and_stop(stage)
    if verdict.is_unsafe:
        raise NeverAllowed(verdict.text)
    if stage.crashes:
        raise NeverAllowed("; ".join(stage.crashes))
    # Who waits for its turn has told so itself: then it is late.
    assert verdict.is_late or not stage.stuck, f"served, and do not end: workers {stage.stuck}"
    if log is not None:
        check_audit(stage, log)
    return verdict


def read_audit_and_stop(stage):
    if not stage.scenario.audited:
        stage.server.stop()
        return None
    path = stage.disk.seen("audit.log") if stage.disk else stage.audit_path()
    with open(path, encoding="utf-8") as file:  # a disk of its own is gone with the server
        stage.server.stop()
        text = file.read()
    if stage.disk:
        (stage.folder / "audit.log").write_text(text, encoding="utf-8")
    return text


def check_audit(stage, text):
    """monolockctl proves it, and no client knows of a grant that it does not tell of."""
    crashes = ("--crashes",) if stage.has_crashed else ()
    proof = subprocess.run(
        [program("MONOLOCKCTL_BIN"), "audit", "verify", *crashes, "-"],
        input=text, capture_output=True, text=True, timeout=CHECKED_WITHIN,
    )  # fmt: skip
    if proof.returncode != 0:
        raise NeverAllowed(proof.stdout + proof.stderr)
    if stage.has_crashed:
        return  # its last moments are missing
    records = audit.parse_text(text)
    told = {(record["lock"], record["token"]) for record in records if record["event"] == "granted"}
    if any(record["event"] == "audit_gap" for record in records):
        return
    unknown = grants_of(stage.histories()) - told
    if unknown:
        raise NeverAllowed(f"granted, and not in the audit log: {sorted(unknown)[:10]}")


def grants_of(files):
    """(lock, token) of every grant that a client saw."""
    locks, grants = {}, set()
    for path in files:
        with open(path, encoding="utf-8") as file:
            for line in file:
                record = json.loads(line) if line.endswith("\n") else {"kind": "torn"}
                who = (record.get("worker"), record.get("claim"))
                if record["kind"] == "ask":
                    locks[who] = record["lock"]
                elif record["kind"] == "grant":
                    grants.add((locks[who], record["token"]))
    return grants
