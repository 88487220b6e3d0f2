"""Reloads in the middle of everything: no revoked identity is granted, and no client is turned away."""

import random
import select
import signal
import threading
import time

import pytest

from support.history import History
from support.pki import Authority
from support.protocol import NOT_AUTHORIZED, Acquired, Alert, Eof, Error, Waiting, acquire_frame
from support.strace import injected, shard_threads
from support.tls import TLS_1_2, TLS_1_3, HandshakeFailed, TlsConnection
from support.tls_files import TlsFiles
from support.waiting import NeverAllowed, scaled

IDENTITIES = ("even", "odd")
LOCKS = [f"storm-{index}" for index in range(7)]


class Client(TlsConnection):
    """One claim of an identity."""

    def __init__(self, files, address, who, lock, history):
        super().__init__(address, files.context(files.named(who)))
        self.who = who
        self.granted = False
        self.leave_at = None
        self.claim = history.asks(lock)
        self.send(acquire_frame(lock))


class Storm:
    """A population of claims of two identities. Whoever owns stays a moment, leaves and comes back."""

    def __init__(self, server, population, seed):
        self.server = server
        self.history = History(60_000)
        self.random = random.Random(seed)
        self.clients = {}
        self.grants = dict.fromkeys(IDENTITIES, 0)
        self.denied = dict.fromkeys(IDENTITIES, 0)
        for index in range(population):
            self.come(IDENTITIES[index % 2])

    def come(self, who):
        client = Client(self.server.tls, self.server.address, who, self.random.choice(LOCKS), self.history)
        self.clients[client.fileno()] = client

    def go(self, client):
        self.history.leaves(client.claim)
        del self.clients[client.fileno()]
        client.close()
        self.come(client.who)

    def turn(self, allowed=None):
        """Handles all that is there. allowed: the identity that may be granted from now on."""
        now = time.monotonic()
        for client in [each for each in self.clients.values() if each.leave_at and each.leave_at <= now]:
            self.go(client)
        for descriptor in select.select(list(self.clients), [], [], 0.002)[0]:
            client = self.clients.get(descriptor)
            while client is not None and (frame := client.poll()) is not None:
                if self.handle(client, frame, allowed):
                    break

    def handle(self, client, frame, allowed):
        """Whether the client is gone."""
        if isinstance(frame, Waiting):
            self.history.waiting(client.claim)
        elif isinstance(frame, Acquired):
            if allowed not in (None, client.who) and not client.granted:
                raise NeverAllowed(f"{client.who} was granted although only {allowed} may: {client.claim}")
            self.history.granted(client.claim, frame.token)
            client.granted = True
            client.leave_at = time.monotonic() + self.random.uniform(0, 0.01)
            self.grants[client.who] += 1
        elif frame == Error(NOT_AUTHORIZED, "not authorized for lock"):
            assert allowed != client.who, f"{client.who} was denied although it may"
            assert not client.granted, f"an owner was ended: {client.claim}"
            self.denied[client.who] += 1
            self.go(client)
            return True
        else:
            raise AssertionError(f"{client.who} got {frame}")
        return False

    def leave(self):
        for client in self.clients.values():
            client.close()


def test_no_grant_to_a_revoked_identity(start_server, threads, authority, tmp_path):
    """The rules turn to and fro between two identities, both of which claim all the time, from every
    shard to every shard. Once a reload has been told as done, and what was under way to the clients has
    been read, only the one is granted; the other's owners stay, its waiters go."""
    files = TlsFiles(tmp_path, authority, rules=[(who, ["*"]) for who in IDENTITIES])
    server = start_server("-threads", threads, tls=files)
    storm = Storm(server, population=24, seed=20261129)
    for epoch in range(scaled(10, at_least=4)):
        allowed = IDENTITIES[epoch % 2]
        files.permit([(allowed, ["*"])])
        told = len(server.lines())
        server.signal(signal.SIGHUP)
        while not [r for r in server.records()[told:] if r.get("part") == "acl"]:
            storm.turn()
        assert not server.loud_lines()
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            storm.turn()
        until = time.monotonic() + 0.12
        while time.monotonic() < until:
            storm.turn(allowed)
    storm.leave()
    storm.history.check()
    assert min(storm.grants.values()) > 10 and min(storm.denied.values()) > 10, (storm.grants, storm.denied)


@pytest.mark.parametrize("slow", [0, 1], ids="shard {} is slow".format)
def test_claims_on_their_way_between_shards_when_the_rules_change(start_server, authority, tmp_path, slow):
    """One shard takes milliseconds for each ACQUIRE, so that it moves claims which the old rules permitted
    while the other has adopted the new ones. None of a revoked identity is in a queue afterwards."""
    files = TlsFiles(tmp_path, authority, rules=[("good", ["*"]), ("bad", ["*"])])
    server = start_server("-threads", "2", tls=files)
    denied = [Error(NOT_AUTHORIZED, "not authorized for lock"), Eof()]
    locks = [f"on-the-way-{index}" for index in range(8)]
    owners = [server.owner(lock, who="good") for lock in locks]
    claims = [server.connect(who="bad") for _ in range(80)]
    files.permit([("good", ["*"])])
    told = len(server.lines())
    with injected(shard_threads(server.pid)[slow], "recvfrom", "delay_exit=5000"):
        server.pause()
        try:
            for index, client in enumerate(claims):
                client.acquire(locks[index % len(locks)])
            server.signal(signal.SIGHUP)
        finally:
            server.resume()
        server.wait_record(lambda record: record.get("part") == "acl", skip=told)
        for client in claims:
            frames = client.all_frames()
            assert frames in (denied, [Waiting(), *denied]), frames
    for client in owners + claims:
        client.close()


def test_rotation_under_load(start_server, threads, authority, mtls_files):
    """Certificates are replaced all the time while clients connect all the time: none fails, each is shown
    one of the certificates there were, and open sessions do not notice."""
    server = start_server("-threads", threads, tls=mtls_files)
    pairs = [authority.issue_server(key=key) for key in ("ec", "ec", "ed25519")]
    served_pairs = {pair.certificate.read_bytes() for pair in pairs} | {mtls_files.certificate.read_bytes()}
    stop = threading.Event()

    def rotate():
        at = 0
        while not stop.wait(0.03):
            mtls_files.serve(pairs[at % len(pairs)])  # a signal in between would find a pair that does not match
            server.signal(signal.SIGHUP)
            at += 1

    session = server.owner("lives-on")
    served = set()
    rotating = threading.Thread(target=rotate)
    rotating.start()
    try:
        until = time.monotonic() + 3
        patience = until + 15  # a busy machine reloads late
        index = 0
        while time.monotonic() < until or (len(served) < 3 and time.monotonic() < patience):
            version = TLS_1_2 if index % 4 == 0 else TLS_1_3
            with server.connect(version=version) as client:
                client.own(f"rotated-{index % 5}")
                served.add(client.tls.getpeercert(True))
            if index % 10 == 0:
                session.heartbeat().expect_acquired()
            index += 1
    finally:
        stop.set()
        rotating.join()
    assert index > 50
    assert 3 <= len(served) <= len(served_pairs), len(served)
    session.heartbeat().expect_acquired()
    session.close()


def check_refused(client):
    """In the handshake, or with the claim."""
    with client:
        try:
            client.handshake()
        except HandshakeFailed as failure:
            assert isinstance(failure.end, Alert), failure
            return
        client.acquire("refused")
        got = client.next_frame()
        assert isinstance(got, Alert) or got == Error(NOT_AUTHORIZED, "client certificate is no longer trusted"), got


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])
def test_change_of_the_ca_under_load(start_server, authority, mtls_files, tmp_path, version):
    """The CA turns to and fro while clients of both are in all stages of a handshake. Once it is told,
    only those of the one begin and end well."""
    other = Authority(tmp_path, "other")
    clients = {authority: mtls_files.client, other: other.issue_client("client")}
    server = start_server("-threads", "2", tls=mtls_files)
    for turn in range(scaled(10, at_least=4)):
        trusted, distrusted = (other, authority) if turn % 2 == 0 else (authority, other)
        half_done = []
        for _ in range(6):
            client = server.connect(credentials=clients[distrusted], version=version, handshake=False)
            client.handshake_step()
            client.send_raw(client.take_sealed())
            half_done.append(client)
        mtls_files.trust(trusted)
        server.reload_well()
        for client in half_done:
            check_refused(client)
        for _ in range(3):
            client = server.connect(credentials=clients[distrusted], version=version, handshake=False)
            check_refused(client)
            with server.connect(credentials=clients[trusted], version=version) as client:
                client.own("in-time")
