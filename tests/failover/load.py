"""Clients of all the servers while one takes over from another, and the verdict on what they saw.

Each client of the library has the whole list of servers. All histories are judged as one, as if there were a
single server that never restarts: exclusion by belief and rising tokens must hold across every failover (which takes
-grant-delay auto). Only the order of a queue is nobody's promise while servers change; it is
judged by itself, without the times in which they do.
"""

import contextlib
import json
import pathlib
import subprocess
import threading
from dataclasses import dataclass

from faults.chronicle import Chronicle, now
from faults.judged import check_history
from faults.networks import program
from support.waiting import NeverAllowed, wait_until

NOTED_EVERY = 0.02
ENDS_WITHIN = 5.0

# Locks that are held for a moment and wanted all the time.
BUSY = {"locks": 4, "lease-min": 300, "lease-max": 600, "hold-max": 40, "rest-max": 20, "impatient": 5}
LEASE_MAX = BUSY["lease-max"] / 1000
LATE = {"everyone_served", "nothing_lost_in_calm"}  # what a busy machine may break


@dataclass
class Outage:
    """The longest time that one of the workers was without a grant."""

    seconds: float
    worker: int


class Load:
    """`programs` are the wishes of each worker."""

    def __init__(self, group, seed, programs=(BUSY, BUSY), served_ms=10_000):
        self._folder = pathlib.Path(group.folder, f"histories-{seed}")
        self._folder.mkdir()
        limits = {"handover_ms": 0, "slack_ms": 0, "served_ms": served_ms, "causes_noted": False, "faults_noted": False}
        self._strict = Chronicle(self._folder / "strict.environment", "failover", seed, limits)
        self._lenient = Chronicle(self._folder / "lenient.environment", "failover", seed, limits)
        self._served_within = served_ms / 1000
        self._workers = []
        for number, wishes in enumerate(programs, 1):
            words = [str(word) for key, value in wishes.items() for word in (f"--{key}", value)]
            self._workers.append(
                subprocess.Popen(
                    [
                        *group.clients.prefix, program("FAULT_WORKER_BIN"), "--server", group.addresses,
                        "--history", str(self._history(number)), "--worker", str(number), "--seed", str(seed), *words,
                    ],
                    stdin=subprocess.PIPE,
                )
            )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self._workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.close()
        self._strict.close()
        self._lenient.close()

    def _history(self, number):
        return self._folder / f"worker-{number}.jsonl"

    def grants(self, number):
        """The times of a worker's grants, on the clock of now(), and their tokens."""
        path = self._history(number)
        found = []
        if path.exists():
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n") and '"grant"' in line:
                    record = json.loads(line)
                    found.append((record["t"], record["token"]))
        return found

    def wait_served(self, since, within):
        """Until every worker has been granted something after that time."""
        numbers = range(1, len(self._workers) + 1)
        wait_until(
            lambda: all((self.grants(number) or [(0, 0)])[-1][0] > since for number in numbers),
            "every client is served",
            within,
            interval=0.02,
        )

    def outage(self, since, until):
        """While that was done to the servers, and after."""
        longest = Outage(0.0, 0)
        for number in range(1, len(self._workers) + 1):
            times = [at for at, _ in self.grants(number)]
            before = max((at for at in times if at <= since), default=since)
            within = [max(before, since), *(at for at in times if since < at <= until), until]
            for one, next_one in zip(within, within[1:]):
                if (next_one - one) / 1e9 > longest.seconds:
                    longest = Outage((next_one - one) / 1e9, number)
        return longest

    @contextlib.contextmanager
    def unsettled(self):
        """Servers change in the block: queues begin anew, at any moment of it."""
        over = threading.Event()

        def note():
            while True:
                self._lenient.note("server_down")
                self._lenient.note("server_started", wall_clock_right=True)
                self._lenient.note("server_serves")
                if over.wait(NOTED_EVERY):
                    break
            self._lenient.note("server_down")
            self._lenient.note("server_serves")

        noting = threading.Thread(target=note)
        noting.start()
        try:
            yield
        finally:
            over.set()
            noting.join()

    def histories(self):
        """The files of the workers."""
        return sorted(self._folder.glob("worker-*.jsonl"))

    def judge(self, excused=frozenset()):
        """Ends the load in calm: each worker is served once more. The verdict on everything; raises if it is more than
        late, but for what is excused."""
        for chronicle in (self._strict, self._lenient):
            chronicle.note("calm")
        for worker in self._workers:
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.write(b"calm\n")
                worker.stdin.flush()
        deadline = now() + (self._served_within + ENDS_WITHIN) * 1e9
        for worker in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(max((deadline - now()) / 1e9, 0.01))
        for chronicle in (self._strict, self._lenient):
            chronicle.note("finish")
        codes = [worker.poll() for worker in self._workers]
        assert codes == [0] * len(codes), f"workers ended with {codes}"
        histories = [str(path) for path in self.histories()]
        verdict = check_history([str(self._folder / "strict.environment"), *histories])
        in_order = check_history([str(self._folder / "lenient.environment"), *histories])
        broken = {name: count for name, count in verdict.broken.items() if name != "fifo_as_seen"}
        broken.update({name: count for name, count in in_order.broken.items() if name == "fifo_as_seen"})
        for counts, of_the_order in ((verdict.checked, in_order.checked), (verdict.passed_over, in_order.passed_over)):
            counts["fifo_as_seen"] = of_the_order["fifo_as_seen"]
        verdict.violations = broken
        if set(broken) - LATE - excused:
            raise NeverAllowed(f"{broken}\n{verdict.text}\n{in_order.text}")
        return verdict
