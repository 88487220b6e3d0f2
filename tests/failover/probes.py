"""Whether two servers ever answered at once, by what clients saw.

At each server a client claims a lock of its own and beats all the time. Whoever answers a message is active at some
moment between its sending and the receipt of the answer, and a session does not outlive the server's time as the
active one. So from the receipt of the first answer of a session to the sending of the last message of it that was
answered, that server was active without a break: two such times of two servers must not overlap.
"""

import contextlib
import threading
import time
from dataclasses import dataclass

from support.protocol import HEARTBEAT_FRAME, Acquired, Waiting, acquire_frame
from support.waiting import NeverAllowed, wait_until

BEATS_EVERY = 0.005
TRIES_EVERY = 0.02
LEASE_MS = 400
SILENCE_MAX = 8.0  # of the server, until the probe begins anew


@dataclass
class Reign:
    """Certainly active, by one session's answers."""

    server: str
    begins: float
    ends: float
    answers: int
    tokens: tuple


class Probe:
    def __init__(self, peer):
        self._peer = peer
        self.reigns = []
        self.answers = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.wait(TRIES_EVERY):
            with contextlib.suppress(OSError):
                with self._peer.connect() as connection:
                    self._follow(connection)

    def _follow(self, connection):
        """One session, to its end."""
        sent = [time.monotonic()]  # of each message
        connection.send(acquire_frame(f"probe of {self._peer.name}", LEASE_MS))
        answered, first, heard = 0, None, sent[0]
        tokens, was_waiting = [], False
        while not self._over.is_set() and time.monotonic() - heard < SILENCE_MAX:
            frame = connection.poll()
            if frame is None:
                if time.monotonic() - sent[-1] >= BEATS_EVERY:
                    sent.append(time.monotonic())
                    if not connection.send(HEARTBEAT_FRAME):
                        break
                time.sleep(0.001)
                continue
            if not isinstance(frame, (Waiting, Acquired)):
                break
            heard = time.monotonic()
            first = first or heard
            was_waiting = was_waiting or isinstance(frame, Waiting)
            if isinstance(frame, Acquired) and not tokens:
                tokens.append(frame.token)
                if was_waiting:
                    continue  # pushed: it answers nothing
            answered += 1
            self.answers += 1
        if answered and first < sent[answered - 1]:
            self.reigns.append(Reign(self._peer.name, first, sent[answered - 1], answered, tuple(tokens)))


class Probes:
    """One at each of the peers, within `with`."""

    def __init__(self, peers):
        self._peers = peers

    def __enter__(self):
        self._probes = [Probe(peer) for peer in self._peers]
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for probe in self._probes:
            probe.stop()

    def wait_heard(self, peer, more=20):
        """Until that server has answered some more."""
        probe = self._probes[self._peers.index(peer)]
        enough = probe.answers + more
        wait_until(lambda: probe.answers >= enough, f"{peer.name} answers a probe")

    def judge(self):
        """To be called when they have stopped. The reigns in their order; raises if two overlap, or if tokens do not
        rise from one to the next."""
        reigns = sorted((one for probe in self._probes for one in probe.reigns), key=lambda one: one.begins)
        last, token = None, 0
        for reign in reigns:
            if any(each <= token for each in reign.tokens):
                raise NeverAllowed(f"tokens do not rise: {token} before {reign}")
            token = max(token, *reign.tokens) if reign.tokens else token
            if last and reign.server != last.server and reign.begins < last.ends:
                raise NeverAllowed(f"two servers answered at once: {last} and {reign}")
            if last is None or reign.ends > last.ends:
                last = reign
        return reigns


