"""SIGHUP: certificate, key and client CA are taken over as a whole or not at all, and no session is lost."""

import os
import select
import signal
import time

import pytest

from support import procfs
from support.pki import DAY, HOUR, Authority
from support.protocol import NOT_AUTHORIZED, Acquired, Alert, Error, acquire_frame
from support.server import frees_at_once, run_to_end
from support.strace import shard_threads, standing_still
from support.tls import TLS_1_2, TLS_1_3, HandshakeFailed
from support.tls_files import TlsFiles
from support.waiting import stays_true, wait_until

both_versions = pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])
NO_LONGER_TRUSTED = "client certificate is no longer trusted"


@pytest.fixture
def server(start_server, threads, mtls_files):
    return start_server("-threads", threads, tls=mtls_files)


@pytest.fixture(scope="module")
def new_authority(tmp_path_factory):
    """Of the same name as the old one, and another key."""
    return Authority(tmp_path_factory.mktemp("new"))


def certificate_served(server, **options):
    with server.connect(**options) as client:
        client.own("served")
        return client.tls.getpeercert(True)


def check_refused(server, **options):
    """At the handshake, which TLS 1.3 tells late."""
    try:
        with server.connect(**options) as client:
            client.acquire("refused")
            client.expect_alert()
    except HandshakeFailed:
        pass


def half(path):
    content = path.read_bytes()
    return content[: len(content) // 2]


# What goes wrong, and which of the files the message must name.
MISTAKES = {
    "garbage as certificate": (lambda f, a: f.replace(f.certificate, b"garbage\n" * 50), "certificate"),
    "garbage as key": (lambda f, a: f.replace(f.key, b"garbage\n" * 50), "key"),
    "certificate of another key": (
        lambda f, a: f.replace(f.certificate, a.issue_server().certificate.read_bytes()),
        "key",
    ),
    "key of another certificate": (lambda f, a: f.replace(f.key, a.issue_server().key.read_bytes()), "key"),
    "key of another kind": (lambda f, a: f.replace(f.key, a.issue_server(key="rsa").key.read_bytes()), "key"),
    "no certificate": (lambda f, a: f.replace(f.certificate, None), "certificate"),
    "no key": (lambda f, a: f.replace(f.key, None), "key"),
    "half a certificate": (lambda f, a: f.replace(f.certificate, half(f.certificate)), "certificate"),
    "half a key": (lambda f, a: f.replace(f.key, half(f.key)), "key"),
    "half a chain": (
        lambda f, a: f.replace(f.certificate, f.certificate.read_bytes() + half(a.certificate)),
        "certificate",
    ),
    "empty certificate": (lambda f, a: f.replace(f.certificate, b""), "certificate"),
    "empty key": (lambda f, a: f.replace(f.key, b""), "key"),
    "key as certificate": (lambda f, a: f.replace(f.certificate, f.key.read_bytes()), "certificate"),
    "certificate as key": (lambda f, a: f.replace(f.key, f.certificate.read_bytes()), "key"),
    "expired": (lambda f, a: f.serve(a.issue_server(starts=-2 * DAY, ends=-HOUR)), "certificate"),
    "not valid yet": (lambda f, a: f.serve(a.issue_server(starts=HOUR, ends=DAY)), "certificate"),
    "encrypted key": (lambda f, a: serve_encrypted(f, a, False), "key"),
    "encrypted key of the old kind": (lambda f, a: serve_encrypted(f, a, True), "key"),
    "a folder as certificate": (lambda f, a: (f.certificate.unlink(), f.certificate.mkdir()), "certificate"),
    "no client CA": (lambda f, a: f.replace(f.client_ca, None), "client_ca"),
    "garbage as client CA": (lambda f, a: f.replace(f.client_ca, b"garbage\n"), "client_ca"),
    "empty client CA": (lambda f, a: f.replace(f.client_ca, b""), "client_ca"),
    "half a client CA": (lambda f, a: f.replace(f.client_ca, half(f.client_ca)), "client_ca"),
    "half of a second client CA": (lambda f, a: f.replace(f.client_ca, a.pem + half(a.certificate)), "client_ca"),
    "key as client CA": (lambda f, a: f.replace(f.client_ca, f.key.read_bytes()), "client_ca"),
}


def serve_encrypted(files, authority, traditional):
    fresh = authority.issue_server()
    files.serve(fresh)
    files.replace(files.key, fresh.encrypted_key(traditional))


each_mistake = pytest.mark.parametrize("mistake, culprit", MISTAKES.values(), ids=MISTAKES.keys())


# --- what does not load


@each_mistake
def test_reload_of_what_does_not_load_keeps_the_old(start_server, authority, mtls_files, mistake, culprit):
    """Case T1: the old pair is served, one error line names the file and counts; then a good pair is taken."""
    server = start_server("-threads", "2", tls=mtls_files)
    before = certificate_served(server)
    with server.connect() as owner, server.connect() as waiter:
        owner.own("kept")
        waiter.queue("kept")
        mistake(mtls_files, authority)
        record = server.reload_badly("tls")
        assert record["reload_failures"] == "1"
        assert str(getattr(mtls_files, culprit)) in "".join(record.values()), record
        assert certificate_served(server) == before
        check_refused(server, credentials=None)
        owner.heartbeat().expect_acquired()
        waiter.heartbeat().expect_waiting()
        if mtls_files.certificate.is_dir():
            mtls_files.certificate.rmdir()
        mtls_files.serve(authority.issue_server())
        mtls_files.trust(authority)
        server.reload_well()
        assert certificate_served(server) != before
        owner.heartbeat().expect_acquired()
        owner.close()
        waiter.expect_acquired()
    assert len(server.loud_lines()) == 1


def check_start_refused(files, *expected):
    result = run_to_end("-listen", "127.0.0.1:0", *files.flags(), within=5)
    assert result.returncode == 1, (result.returncode, result.stderr)
    assert result.stdout == ""
    assert result.stderr.endswith("\n") and result.stderr.count("\n") == 1, result.stderr
    for text in expected:
        assert str(text) in result.stderr, f"no {text} in {result.stderr!r}"


@each_mistake
def test_start_with_what_does_not_load(authority, mtls_files, mistake, culprit):
    mistake(mtls_files, authority)
    check_start_refused(mtls_files, getattr(mtls_files, culprit))


def test_start_tells_all_mistakes_at_once(mtls_files):
    mtls_files.replace(mtls_files.key, b"garbage")
    mtls_files.replace(mtls_files.client_ca, None)
    check_start_refused(mtls_files, mtls_files.key, mtls_files.client_ca)


def test_reload_tells_all_mistakes_in_one_line(server, mtls_files):
    mtls_files.replace(mtls_files.key, b"garbage")
    mtls_files.replace(mtls_files.client_ca, None)
    told = "".join(server.reload_badly("tls").values())
    assert str(mtls_files.key) in told and str(mtls_files.client_ca) in told


# --- together or not at all, and apart from the rules


def test_a_good_pair_is_not_taken_with_a_bad_ca(server, authority, mtls_files):
    before = certificate_served(server)
    mtls_files.serve(authority.issue_server())
    mtls_files.replace(mtls_files.client_ca, b"garbage")
    server.reload_badly("tls")
    assert certificate_served(server) == before


def test_a_good_ca_is_not_taken_with_a_bad_pair(server, authority, new_authority, mtls_files):
    mtls_files.trust(new_authority)
    mtls_files.replace(mtls_files.key, b"garbage")
    server.reload_badly("tls")
    check_refused(server, credentials=new_authority.issue_client("client"))
    server.owner("old-ca").close()


def test_parts_are_independent(start_server, authority, tmp_path):
    files = TlsFiles(tmp_path, authority, rules=[("a", ["*"])])
    server = start_server("-threads", "2", tls=files)
    before = certificate_served(server, who="a")
    files.permit([("b", ["*"])])
    files.replace(files.key, b"garbage")
    assert server.reload_badly("tls")["reload_failures"] == "1"
    assert certificate_served(server, who="b") == before
    files.permit("{}")
    files.serve(authority.issue_server())
    assert server.reload_badly("acl")["reload_failures"] == "1"
    assert certificate_served(server, who="b") != before
    files.replace(files.key, b"garbage")
    records = server.reload()
    assert sorted((record["part"], record["level"], record["reload_failures"]) for record in records) == [
        ("acl", "error", "2"),
        ("tls", "error", "2"),
    ]
    server.owner("both-kept", who="b").close()


# --- what does load


@both_versions
def test_next_connection_is_shown_the_new_certificate(start_server, authority, tls_files, version):
    """Also without client certificates, and after a change of the kind of key."""
    server = start_server("-threads", "2", tls=tls_files)
    served = {certificate_served(server, version=version)}
    with server.connect(version=version) as owner:
        token = owner.own("through-it-all")
        for key in ("ec", "rsa", "ec"):
            tls_files.serve(authority.issue_server(key=key))
            server.reload_well()
            served.add(certificate_served(server, version=version))
            owner.heartbeat().expect_acquired(token)
    assert len(served) == 4
    assert not server.loud_lines()


def test_a_switched_symbolic_link_is_followed(start_server, authority, tmp_path):
    folders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        folders.append(TlsFiles(tmp_path / name, authority, mutual=True))
    live = tmp_path / "live"
    live.symlink_to("one")
    linked = folders[0]
    linked.certificate, linked.key, linked.client_ca = (
        live / path.name for path in (linked.certificate, linked.key, linked.client_ca)
    )
    server = start_server(tls=linked)
    before = certificate_served(server)
    (tmp_path / "next").symlink_to("two")
    os.replace(tmp_path / "next", live)
    server.reload_well()
    assert certificate_served(server) != before


def test_client_certificate_is_required_after_any_number_of_reloads(server, authority, mtls_files):
    """Case T2."""
    for index in range(20):
        if index % 3 == 0:
            mtls_files.serve(authority.issue_server())
        server.reload_well()
        check_refused(server, credentials=None, version=TLS_1_2 if index % 2 else TLS_1_3)
    server.owner("served").close()


@both_versions
@pytest.mark.parametrize("identified", [True, False], ids=["identified", "not identified"])
def test_ca_that_is_taken_out_lets_nobody_in_any_more(server, mtls_files, tmp_path, identified, version):
    """Case T2, by way of both, though they share their name; owners and waiters stay, as it is only about
    new connections."""
    authorities = [Authority(tmp_path, "lab", identified=identified) for _ in range(2)]
    old, new = ({"credentials": each.issue_client("client"), "version": version} for each in authorities)
    mtls_files.trust(authorities[0])
    server.reload_well()
    with server.owner("stays", **old) as owner, server.waiter("stays", **old) as waiter:
        check_refused(server, **new)
        for both in (authorities, reversed(authorities)):
            mtls_files.trust(*both)
            server.reload_well()
            for client in (old, new):
                server.owner("both", **client).close()
        mtls_files.trust(authorities[1])
        server.reload_well()
        check_refused(server, **old)
        check_refused(server, credentials=None, version=version)
        server.owner("new", **new).close()
        owner.heartbeat().expect_acquired()
        waiter.heartbeat().expect_waiting()
        owner.close()
        waiter.expect_acquired()


@both_versions
def test_nothing_from_before_a_change_of_the_ca_resumes(server, new_authority, mtls_files, version):
    """Case T3."""
    with server.connect(version=version) as client:
        client.own("before")
        client.heartbeat().expect_acquired()
        session = client.tls.session
    mtls_files.trust(new_authority)
    server.reload_well()
    check_refused(server, version=version, session=session)


def shaken_hands(server, **options):
    """A client whose handshake the server has seen the end of: TLS 1.2 tells the client so."""
    return server.connect(version=TLS_1_2, **options)


def test_handshake_under_the_old_ca_and_claim_under_the_new(server, authority, new_authority, mtls_files):
    """The claim is judged by the files in force when it is made."""
    old, both = shaken_hands(server), shaken_hands(server)
    mtls_files.trust(authority, new_authority)
    server.reload_well()
    both.own("still-trusted")
    new = shaken_hands(server, credentials=new_authority.issue_client("client"))
    mtls_files.trust(new_authority)
    server.reload_well()
    mtls_files.serve(authority.issue_server())
    server.reload_well()
    old.acquire("old").expect_refused(NOT_AUTHORIZED, NO_LONGER_TRUSTED)
    old.expect_fin()
    new.own("new")
    both.heartbeat().expect_acquired()
    for client in (old, new, both):
        client.close()
    assert not server.loud_lines()


def test_a_reload_is_told_when_it_is_in_force_everywhere(start_server, mtls_files):
    """Until then a shard may admit by what was in force, and whoever revoked somebody is not to think otherwise."""
    server = start_server("-threads", "2", tls=mtls_files)
    with standing_still(shard_threads(server.pid)[1], 2, ":when=1"):
        server.signal(signal.SIGHUP)
        stays_true(lambda: server.reloads("tls") == 0, "nothing is told", for_seconds=0.5)
    wait_until(lambda: server.reloads("tls") > 0, "the shard turns, and it is told")


@both_versions
def test_handshake_half_done_when_the_ca_changes(server, new_authority, mtls_files, version):
    """Begun under the old files and ended under the new: it lets nobody claim whom these do not trust."""
    with server.connect(handshake=False, version=version) as client:
        assert client.handshake_step() is None
        client.send_raw(client.take_sealed())
        assert select.select([client.sock], [], [], 2)[0], "no answer to the hello"
        mtls_files.trust(new_authority)
        server.reload_well()
        try:
            client.handshake()
            client.acquire("half-done")
            got = client.next_frame()
            assert isinstance(got, Alert) or got == Error(NOT_AUTHORIZED, NO_LONGER_TRUSTED), got
        except HandshakeFailed as failure:
            assert isinstance(failure.end, Alert), failure
    server.owner("half-done", credentials=new_authority.issue_client("client")).close()


@both_versions
def test_owner_survives_the_end_of_its_certificate(start_server, authority, mtls_files, version):
    """Case T3: it is not asked again; its next connection is."""
    server = start_server("-threads", "2", tls=mtls_files)
    short = authority.issue_client("client", ends=3)
    until = time.monotonic() + 3.2
    options = {"credentials": short, "version": version}
    with server.connect(**options) as owner, server.connect(**options) as waiter:
        token = owner.own("ends")
        waiter.queue("ends")
        time.sleep(max(0, until - time.monotonic()))
        server.reload_well()
        owner.heartbeat().expect_acquired(token)
        waiter.heartbeat().expect_waiting()
        check_refused(server, **options)
        owner.close()
        waiter.expect_acquired()


def test_a_hundred_hangups_in_a_second(start_server, authority, mtls_files, threads):
    """Case T1: nobody is lost, nothing leaks."""
    server = start_server("-threads", threads, tls=mtls_files, env=frees_at_once())
    sessions = [(server.owner(f"hup-{index}", 2000), server.waiter(f"hup-{index}", 2000)) for index in range(8)]
    descriptors = server.settled_descriptors()

    def storm():
        for index in range(100):
            began = time.monotonic()
            if index % 10 == 0:
                mtls_files.serve(authority.issue_server())
            server.signal(signal.SIGHUP)
            owner, waiter = sessions[index % len(sessions)]
            owner.heartbeat().expect_acquired()
            waiter.heartbeat().expect_waiting()
            time.sleep(max(0, began + 0.01 - time.monotonic()))
        server.reload()

    def growth():
        memory = procfs.resident_bytes(server.pid)
        storm()
        storm()
        return procfs.resident_bytes(server.pid) - memory

    storm()
    # What leaks, leaks each time; an allocator takes its time to settle, above all AddressSanitizer's.
    grown = []
    while not grown or (grown[-1] >= 2 << 20 and len(grown) < 4):
        grown.append(growth())
    assert grown[-1] < 2 << 20, f"bytes more each time: {grown}"
    assert server.settled_descriptors() == descriptors
    for owner, waiter in sessions:
        owner.close()
        waiter.expect_acquired()
        waiter.close()


def test_hangup_and_termination_together(start_server, mtls_files):
    for _ in range(5):
        server = start_server("-threads", "2", tls=mtls_files)
        with server.owner("last") as owner:
            server.signal(signal.SIGHUP)
            server.signal(signal.SIGTERM)
            owner.expect_error(0x01)
        assert server.wait_exit(within=3) == 0


def test_hangup_while_the_server_stands_still(server, mtls_files, new_authority):
    """Claims that wait in the sockets are judged by the files in force when the server sees them, or by
    those before; both kinds of client get an answer and nobody hangs."""
    old = [shaken_hands(server) for _ in range(6)]
    mtls_files.trust(new_authority)
    server.pause()
    try:
        for index, client in enumerate(old):
            client.send(acquire_frame(f"still-{index}"))
        server.signal(signal.SIGHUP)
    finally:
        server.resume()
    for client in old:
        frame = client.next_frame()
        assert isinstance(frame, Acquired) or frame == Error(NOT_AUTHORIZED, NO_LONGER_TRUSTED), frame
        client.close()
    wait_until(lambda: refused(server), "the new files are in force", within=2)


def refused(server):
    try:
        check_refused(server)
        return True
    except AssertionError:
        return False
