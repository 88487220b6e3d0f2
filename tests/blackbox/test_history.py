"""Random clients, and the invariants that hold for whatever they did (tests/history)."""

import random
import select
import time

import pytest

from support.history import History
from support.protocol import HEARTBEAT_FRAME, Acquired, Eof, Error, Reset, Violation, Waiting, acquire_frame
from support.waiting import SCALE, NeverAllowed

LOCKS = [f"history-{number}" for number in range(5)]
SECONDS = 6.0
CLIENTS_MAX = 40
LEASE_MS = 60_000


class Client:
    """One claim that decides by itself what to do next; it counts what it is owed."""

    def __init__(self, server, history, random_numbers):
        self.history = history
        self.random = random_numbers
        self.connection = server.connect()
        lock = random_numbers.choice(LOCKS)
        heartbeats = random_numbers.choice([0, 0, 1, 3])
        self.claim = history.asks(lock)
        self.messages = 1 + heartbeats
        self.frames = 0
        self.pushes = 0
        self.connection.send(acquire_frame(lock, LEASE_MS) + HEARTBEAT_FRAME * heartbeats)
        self.gone = False

    def read(self):
        while (frame := self.connection.poll()) is not None:
            if isinstance(frame, Waiting):
                self.frames += 1
                self.history.waiting(self.claim)
            elif isinstance(frame, Acquired):
                self.frames += 1
                if self.claim.waiting_seen and self.claim.token is None:
                    self.pushes = 1
                self.history.granted(self.claim, frame.token)
            elif isinstance(frame, (Eof, Reset, Error, Violation)):
                raise NeverAllowed(f"ended by the server: {frame}, {self.claim}")
            if self.frames > self.messages + self.pushes:
                raise NeverAllowed(f"{self.frames} frames for {self.messages} messages: {self.claim}")

    def act(self):
        choice = self.random.random()
        if choice < 0.5:
            self.messages += 1
            self.connection.heartbeat()
        elif choice < 0.8 or (self.claim.token is None and choice < 0.95):
            pass
        else:
            self.leave()

    def leave(self):
        self.history.leaves(self.claim)
        how = self.random.randrange(4)
        if how == 0:
            self.connection.reset()
        elif how == 1:
            self.connection.send(b"\x7f")
            self.connection.close()
        elif how == 2:
            self.connection.half_close()
            self.connection.close()
        else:
            self.connection.close()
        self.gone = True


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_clients(server, seed):
    print(f"seed {seed}")
    random_numbers = random.Random(seed)
    history = History(LEASE_MS)
    clients = []
    deadline = time.monotonic() + max(1.0, SECONDS * min(SCALE, 1))
    while time.monotonic() < deadline:
        if len(clients) < CLIENTS_MAX and random_numbers.random() < 0.5:
            clients.append(Client(server, history, random_numbers))
        ready = {} if not clients else set(select.select([c.connection for c in clients], [], [], 0.001)[0])
        for client in clients:
            if client.connection in ready:
                client.read()
        if clients:
            random_numbers.choice(clients).act()
        clients = [client for client in clients if not client.gone]
    # The rest is served in turn: no free lock with a queue.
    end = time.monotonic() + 20
    while clients:
        assert time.monotonic() < end, f"never served: {[client.claim for client in clients]}"
        ready = select.select([c.connection for c in clients], [], [], 0.1)[0]
        for client in clients:
            if client.connection in ready:
                client.read()
            if client.claim.token is not None:
                client.leave()
        clients = [client for client in clients if not client.gone]
    history.check()
    granted = sum(claim.token is not None for claim in history.claims)
    print(f"{len(history.claims)} claims, {granted} granted")
    assert granted > 50 * min(SCALE, 1)
