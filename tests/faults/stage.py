"""One run of a scenario: a real server, real workers over their networks, and the hands that harm them."""

import contextlib
import itertools
import math
import pathlib
import random
import resource
import signal
import socket
import subprocess
import threading
import time

from faults.chronicle import Chronicle
from faults.networks import PORT, Beside, program
from support import netns, procfs
from support.campaigns import undisturbed
from support.protocol import ACQUIRED, acquire_frame
from support.server import Server
from support.small_disk import SmallDisk
from support.waiting import wait_until
from support.wall_clock import WallClock

TURN = 0.02  # seconds


@contextlib.contextmanager
def seized(candidates, guard_of, random):
    """One of them that nobody else harms meanwhile, or None."""
    candidates = list(candidates)
    random.shuffle(candidates)
    taken = next((one for one in candidates if guard_of(one).acquire(blocking=False)), None)
    try:
        yield taken
    finally:
        if taken:
            guard_of(taken).release()


class Worker:
    """A process of fault_worker. Whoever harms it holds `hands`."""

    def __init__(self, stage, group, number):
        self.number = number
        self.group = group
        self.hands = threading.Lock()
        self.path = stage.folder / f"worker-{number}.jsonl"
        options = {"worker": number, "seed": stage.seed, **stage.scenario.load, **group.load}
        words = [str(word) for key, value in options.items() for word in (f"--{key}", value)]
        address = group.via or group.network.server_address
        self.process = subprocess.Popen(
            [
                *group.network.prefix, program("FAULT_WORKER_BIN"),
                "--server", address, "--history", str(self.path), *words,
            ],
            stdin=subprocess.PIPE,
        )  # fmt: skip

    @property
    def pid(self):
        return self.process.pid

    def is_stopped(self):
        return all(procfs.state(f"{self.pid}/task/{tid}") == "T" for tid in procfs.threads(self.pid))


class Group:
    """Workers that share a way to the server. `via`: they believe that the server is there."""

    def __init__(self, stage, network, workers, load=None, via=None):
        self.network = network
        self.load = load or {}
        self.via = via
        self.cuts = threading.Lock()  # held by whoever harms the network
        # The numbers of the workers that a cut silences, or whose connections break, those since dead included.
        self.cut_off = self.resetting = None
        self.workers = [stage.start_worker(self) for _ in range(workers)]


class Stage:
    """Set up by `with`, in this order: namespace, server, networks, workers."""

    def __init__(self, scenario, seed, folder):
        self.scenario = scenario
        self.seed = seed
        self.folder = pathlib.Path(folder)
        self.chronicle = Chronicle(self.folder / "environment.jsonl", scenario.name, seed, scenario.limits())
        self.is_over = threading.Event()
        self.has_crashed = False  # the server
        self.injected = {}
        self.crashes = []  # workers that ended as none should, in words
        self.stuck = []  # the numbers of those that did not end
        self._clean_up = contextlib.ExitStack()
        self._guard = threading.RLock()
        self._mutes = {}
        self._numbers = itertools.count(1)
        self.server_hands = threading.Lock()
        self.groups = []

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            with undisturbed():
                undo.callback(self.chronicle.close)
                self.namespace = netns.Namespace()
                undo.callback(self.namespace.remove)
                self.clock = WallClock(self.folder) if self.scenario.steps_clock else None
                self._shift = self._shift_max = 0
                self.disk = SmallDisk(self.folder / "disk", size_kib=256) if self.scenario.small_disk else None
                self.servers = []
                undo.callback(lambda: [server.dispose() for server in self.servers])
                self.start_server()
                self.chronicle.note("server_serves")
                undo.callback(self._end_workers)
                for number, spec in enumerate(self.scenario.groups, 1):
                    network = (spec.network or Beside)(self.namespace, number, self.seed * 100 + number, **spec.how)
                    undo.callback(network.dispose)
                    via = None
                    if spec.liar:
                        liar = spec.liar(self.namespace)
                        undo.callback(liar.dispose)
                        via = liar.address
                    self.groups.append(Group(self, network, spec.workers, spec.load, via))
            self._clean_up = undo.pop_all()
        return self

    def __exit__(self, *_):
        with undisturbed():
            self._clean_up.close()

    # --- the server

    def start_server(self):
        flags = ["-admin-listen", f"unix:{self.folder}/admin.sock", *self.scenario.server_flags]
        prefix = list(self.namespace.prefix)
        if self.scenario.audited:
            prefix += self.disk.prefix if self.disk else ()
            flags += ["-audit-log", str(self.audit_path())]
        limit = self.scenario.descriptors

        def limited():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        server = Server(
            *flags,
            listen=f"0.0.0.0:{PORT}",
            prefix=prefix,
            env=self.clock.environment() if self.clock else None,
            before_exec=limited if limit else None,
        )
        self.servers.append(server)
        if self.disk:
            self.disk.entered_by(server.pid)

    @property
    def server(self):
        return self.servers[-1]

    def audit_path(self):
        return self.disk.path("audit.log") if self.disk else self.folder / "audit.log"

    def kill_server(self):
        """As a crash, and a new one on the same port."""
        self.chronicle.note("server_down")
        self.has_crashed = True
        self.server.kill()
        self._next_server()

    def replace_server(self):
        """In good order, as an operator does."""
        self.chronicle.note("server_down")
        self.server.stop()
        self._next_server()

    def _next_server(self):
        right = self._shift >= self._shift_max
        self._shift_max = self._shift
        self.chronicle.note("server_started", wall_clock_right=right)
        self.start_server()
        if self.clock:
            self._take_a_token()
        self.chronicle.note("server_serves")

    def _take_a_token(self):
        """By the clock that has been noted: no later step takes one below it."""
        with self.namespace.entered(), socket.create_connection(("127.0.0.1", PORT), timeout=5) as claim:
            claim.sendall(acquire_frame("first of all"))
            assert claim.recv(1) == bytes([ACQUIRED])

    def pause_server(self):
        self.chronicle.note("server_paused")
        self.server.pause()

    def resume_server(self):
        self.server.resume()
        self.chronicle.note("server_serves")

    def shift_clock(self, seconds):
        self._shift = seconds
        self._shift_max = max(self._shift_max, seconds)
        self.clock.shift(seconds)

    # --- workers

    def start_worker(self, group):
        with self._guard:
            number = next(self._numbers)
            if group.network.near:
                self.chronicle.note("near", worker=number)
            if group.cut_off is not None:
                group.cut_off.append(number)
                self.mute(number)
            if group.resetting is not None:
                group.resetting.append(number)
                self.chronicle.note("resetting", worker=number)
            return Worker(self, group, number)

    @property
    def workers(self):
        with self._guard:
            return [worker for group in self.groups for worker in group.workers]

    def a_worker(self, random):
        """One that nobody else harms meanwhile, or None."""
        return seized(self.workers, lambda worker: worker.hands, random)

    def mute(self, number):
        """Nothing of it reaches the server any more."""
        with self._guard:
            self._mutes[number] = self._mutes.get(number, 0) + 1
            if self._mutes[number] == 1:
                self.chronicle.note("silent", worker=number)

    def unmute(self, number):
        """It is about to be heard again."""
        with self._guard:
            self._mutes[number] -= 1
            if self._mutes[number] == 0:
                self.chronicle.note("heard", worker=number)

    def cut_off(self, group):
        """The group's network has been cut."""
        with self._guard:
            group.cut_off = [worker.number for worker in group.workers]
            for number in group.cut_off:
                self.mute(number)

    def join_again(self, group):
        """It is about to be mended."""
        with self._guard:
            for number in group.cut_off:
                self.unmute(number)
            group.cut_off = None

    def begin_resets(self, group):
        """The group's connections are about to break."""
        with self._guard:
            group.resetting = [worker.number for worker in group.workers]
            for number in group.resetting:
                self.chronicle.note("resetting", worker=number)

    def end_resets(self, group):
        """They do so no more."""
        with self._guard:
            for number in group.resetting:
                self.chronicle.note("reset_over", worker=number)
            group.resetting = None

    def pause_worker(self, worker):
        self.chronicle.note("paused", worker=worker.number)
        worker.process.send_signal(signal.SIGSTOP)
        wait_until(worker.is_stopped, "the worker stands still", interval=0.0005)
        if worker.group.network.near:  # elsewhere something of it may be under way
            self.mute(worker.number)

    def resume_worker(self, worker):
        if worker.group.network.near:
            self.unmute(worker.number)
        worker.process.send_signal(signal.SIGCONT)
        self.chronicle.note("resumed", worker=worker.number)

    def kill_worker(self, worker):
        """Another one takes its place."""
        self.chronicle.note("killed", worker=worker.number)
        worker.process.kill()
        worker.process.wait()
        worker.process.stdin.close()
        with self._guard:
            worker.group.workers.remove(worker)
            worker.group.workers.append(self.start_worker(worker.group))

    def _end_workers(self):
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()
            with contextlib.suppress(BrokenPipeError):
                worker.process.stdin.close()

    # --- the phases

    def rest(self, seconds):
        """Or less, if the faults are over meanwhile."""
        self.is_over.wait(seconds)

    def harm(self, seconds):
        """Every fault of the scenario, each by a thread of its own, for so long."""
        failures = []

        def again_and_again(fault):
            try:
                numbers = random.Random(f"{self.scenario.name} {self.seed} {fault.name}")
                while not self.is_over.is_set():
                    self.rest(numbers.uniform(*fault.every))
                    if not self.is_over.is_set() and fault.inject(self, numbers):
                        with self._guard:
                            self.injected[fault.name] = self.injected.get(fault.name, 0) + 1
            except Exception as failure:  # told by the main thread
                failures.append(failure)
                self.is_over.set()

        threads = [threading.Thread(target=again_and_again, args=(fault,)) for fault in self.scenario.faults]
        for thread in threads:
            thread.start()
        try:
            self.is_over.wait(seconds)
        finally:  # also when the run is interrupted: nobody harms what is being put away
            self.is_over.set()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]

    def calm_down(self):
        """Faults have stopped; so do their consequences. Then everybody must be served once more."""
        for group in self.groups:
            group.network.calm_down()
        if self.disk:
            self.disk.resize(64 * 1024)  # the log has grown too: whatever waits can be written
        time.sleep(self.scenario.settle_seconds)
        self.chronicle.note("calm")
        for worker in self.workers:
            with contextlib.suppress(BrokenPipeError):  # its exit code tells
                worker.process.stdin.write(b"calm\n")
                worker.process.stdin.flush()
        # In turns: of these a machine that stands still uses up one.
        for _ in range(math.ceil((self.scenario.served_ms / 1000 + 0.3) / TURN)):
            if all(worker.process.poll() is not None for worker in self.workers):
                break
            time.sleep(TURN)
        self.chronicle.note("finish")
        for worker in self.workers:
            code = worker.process.poll()
            if code is None:
                self.stuck.append(worker.number)
            elif code:
                self.crashes.append(f"worker {worker.number} ended with {code}")

    def histories(self):
        return sorted(str(path) for path in self.folder.glob("*.jsonl"))
