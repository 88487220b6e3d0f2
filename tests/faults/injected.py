"""The faults: each harms something for a while and undoes it. inject() tells whether it found a victim."""

import contextlib
import os
import socket
import subprocess
from dataclasses import dataclass

from faults.networks import PORT, Relayed, Wired, program
from faults.stage import seized


@dataclass(frozen=True)
class Fault:
    every: tuple = (0.1, 0.6)  # seconds from one to the next
    lasts: tuple = (0.05, 1.0)

    @property
    def name(self):
        return type(self).__name__

    def duration(self, random):
        return random.uniform(*self.lasts)


@dataclass(frozen=True)
class PauseWorker(Fault):
    """SIGSTOP, SIGCONT."""

    lasts: tuple = (0.1, 1.4)

    def inject(self, stage, random):
        with stage.a_worker(random) as worker:
            if worker is None:
                return False
            stage.pause_worker(worker)
            try:
                stage.rest(self.duration(random))
            finally:
                stage.resume_worker(worker)
            return True


class KillWorker(Fault):
    """SIGKILL; its kernel says goodbye for it."""

    def inject(self, stage, random):
        with stage.a_worker(random) as worker:
            if worker is None:
                return False
            stage.kill_worker(worker)
            return True


class PauseServer(Fault):
    def inject(self, stage, random):
        with stage.server_hands:
            stage.pause_server()
            try:
                stage.rest(self.duration(random))
            finally:
                stage.resume_server()
            return True


class KillServer(Fault):
    """SIGKILL, and the next one on the same port."""

    def inject(self, stage, random):
        with stage.server_hands:
            stage.kill_server()
            return True


class ReplaceServer(Fault):
    """SIGTERM, and the next one on the same port."""

    def inject(self, stage, random):
        with stage.server_hands:
            stage.replace_server()
            return True


def a_group(stage, random, kinds):
    """One whose network nobody else harms meanwhile, or None."""
    groups = [group for group in stage.groups if isinstance(group.network, kinds)]
    return seized(groups, lambda group: group.cuts, random)


class Cut(Fault):
    """Packets vanish both ways."""

    which = "both"

    def inject(self, stage, random):
        with a_group(stage, random, (Relayed, Wired)) as group:
            if group is None:
                return False
            group.network.cut(self.which)
            silences = self.which != "there"
            if silences:
                stage.rest(group.network.drains_within)
                stage.cut_off(group)
            stage.rest(self.duration(random))
            if silences:
                stage.join_again(group)
            group.network.mend()
            return True


class CutToServer(Cut):
    """Only those to the server."""

    which = "back"


class CutToWorkers(Cut):
    """Only those from the server."""

    which = "there"


class Reset(Fault):
    """Connections break, and only one side is told."""

    def inject(self, stage, random):
        with a_group(stage, random, Wired) as group:
            if group is None:
                return False
            stage.begin_resets(group)
            group.network.reset(random.choice(("server", "workers")))
            stage.rest(self.duration(random))
            group.network.mend()
            stage.end_resets(group)
            return True


class StepClock(Fault):
    """The server's wall clock is set, up to an hour either way."""

    def inject(self, stage, random):
        with stage.server_hands:
            stage.shift_clock(random.uniform(-3600, 3600))
            return True


class ForceRelease(Fault):
    """An operator ends whoever owns a lock."""

    def inject(self, stage, random):
        lock = f"lock-{random.randrange(stage.scenario.load.get('locks', 4))}"
        with stage.server_hands:
            stage.chronicle.note("forcing", lock=lock)
            words = ("release", lock, "--admin", f"unix:{stage.folder}/admin.sock", "--yes")
            done = subprocess.run([program("MONOLOCKCTL_BIN"), *words], capture_output=True, text=True, timeout=20)
            stage.chronicle.note("forced_over", lock=lock)
            assert done.returncode in (0, 1), done.stderr  # 1: nobody owns it
            return True


class Crowd(Fault):
    """More connections than the server has descriptors, which say nothing."""

    def inject(self, stage, random):
        with stage.namespace.entered(), contextlib.ExitStack() as crowd:
            for _ in range(2 * stage.scenario.descriptors):
                try:
                    crowd.enter_context(socket.create_connection(("127.0.0.1", PORT), timeout=0.2))
                except OSError:
                    break
            stage.rest(self.duration(random))
            return True


class FillDisk(Fault):
    """The disk of the audit log is full for a while."""

    def inject(self, stage, random):
        filler = stage.disk.seen("filler")
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        stage.rest(self.duration(random))
        os.unlink(filler)
        return True
