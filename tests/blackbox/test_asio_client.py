"""The Asio client of the library against the real server, plain and over TLS: tests/client has its parts in process."""

import os
import signal
import subprocess

import pytest

from support import http
from support.pki import Authority
from support.tls_files import TlsFiles

LEASE_MS = 1000
ADMIN = ("-admin-listen", "127.0.0.1:0")
NOT_TRUSTED, HEARTBEAT_TIMEOUT, CONNECTION_CLOSED = 22, 33, 34
SHUTTING_DOWN, CLOSED_BY_ADMINISTRATOR, NOT_AUTHORIZED = 0x101, 0x102, 0x118


@pytest.fixture
def probe(tmp_path):
    """probe(server, name, …) starts a client; it is ended with the test."""
    made = []

    def start(server, name="n", *words, who=None, ca=None, lease_ms=LEASE_MS):
        if server.tls is not None:
            words += (str(ca or server.tls.authority.certificate),)
            if who is not None:
                credentials = server.tls.named(who)
                words += (str(credentials.certificate), str(credentials.key))
        made.append(Probe([os.environ["ASIO_PROBE_BIN"], f"127.0.0.1:{server.port}", name, str(lease_ms), *words]))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.communicate()


class Probe:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hears(self):
        """The next thing that it says."""
        return self.process.stdout.readline().strip()

    def held(self):
        word, token = self.hears().split()
        assert word == "held"
        return int(token)

    def release(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.hears() == "released"
        assert self.process.wait(10) == 0, "its context had nothing more to do"


def test_claims_follow_each_other(one_server, probe):
    first = probe(one_server)
    before = first.held()
    second = probe(one_server)
    assert second.hears() == "queued"
    first.release()
    assert second.held() > before
    second.release()


def test_it_beats_for_as_long_as_it_holds(one_server, probe):
    owner = probe(one_server, lease_ms=400)
    owner.held()
    with one_server.waiter("n") as heir:
        heir.expect_silence(1.2)
    owner.release()


def test_it_is_told_what_an_operator_and_a_shutdown_do(start_server, probe):
    server = start_server(*ADMIN)
    kicked, other = probe(server, "kicked"), probe(server, "other")
    kicked.held()
    other.held()
    assert http.fetch(server.admin_address, "/api/locks/kicked/release", method="POST").status == 200
    assert kicked.hears() == f"lost {CLOSED_BY_ADMINISTRATOR}"
    server.stop()
    assert other.hears() == f"lost {SHUTTING_DOWN}"


def test_one_that_stood_still_has_lost_its_lock_and_knows_it(one_server, probe):
    frozen = probe(one_server)
    before = frozen.held()
    frozen.process.send_signal(signal.SIGSTOP)
    with one_server.waiter("n") as heir:
        assert heir.expect_acquired() > before
    frozen.process.send_signal(signal.SIGCONT)
    # The deadline has passed, and the server has closed: it reads what is there before it judges.
    assert frozen.hears() in (f"lost {HEARTBEAT_TIMEOUT}", f"lost {CONNECTION_CLOSED}")


def test_it_finds_the_server_that_comes_back(start_server, probe):
    server = start_server()
    owner = server.owner("n")
    waiting = probe(server, "n", "retry")
    assert waiting.hears() == "queued"
    port = server.port
    server.stop()
    owner.close()
    start_server(listen=f"127.0.0.1:{port}")
    waiting.held()
    waiting.release()


def test_with_mutual_tls_and_rules(start_server, authority, tmp_path, probe):
    server = start_server(tls=TlsFiles(tmp_path, authority, rules=[("importer", ["nightly"])]))
    owner = probe(server, "nightly", who="importer", lease_ms=200)
    token = owner.held()
    assert token > 0
    denied = probe(server, "nightly", "retry", who="somebody")
    assert denied.hears() == f"failed {NOT_AUTHORIZED}"
    assert denied.process.wait(10) == 0
    waiter = probe(server, "nightly", who="importer")
    assert waiter.hears() == "queued"
    owner.release()
    assert waiter.held() > token


def test_a_server_that_is_not_trusted(start_server, tls_files, tmp_path, probe):
    server = start_server(tls=tls_files)
    (tmp_path / "stranger").mkdir()
    wary = probe(server, "n", "retry", ca=Authority(tmp_path / "stranger").certificate)
    assert wary.hears() == f"failed {NOT_TRUSTED}"
    own = probe(server, "n", "retry", ca=tls_files.certificate)
    own.held()
    own.release()
