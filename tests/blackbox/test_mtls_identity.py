"""Mutual TLS: who is let in, and which identity a certificate yields (case T4).

The identity shows in two places from outside: in what the rules allow, and in the log at debug level.
"""

import json

import pytest

from support.pki import (
    BMP_STRING,
    DAY,
    HOUR,
    PRINTABLE_STRING,
    Authority,
    address,
    common_name,
    dns,
    email,
    organisation,
    uri,
)
from support.protocol import HEARTBEAT_FRAME, NOT_AUTHORIZED, Alert, acquire_frame
from support.tls import TLS_1_2, TLS_1_3, HandshakeFailed
from support.tls_files import TlsFiles
from support.waiting import scaled

both_versions = pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])


@pytest.fixture
def server(start_server, threads, mtls_files):
    return start_server("-threads", threads, tls=mtls_files)


@pytest.fixture(scope="module")
def other_authority(tmp_path_factory):
    """Of the same name as the one that is trusted, and another key."""
    return Authority(tmp_path_factory.mktemp("other"))


def refused(server, version=None, *names, **options):
    """The handshake, or the first thing heard after it, is a fatal alert: TLS 1.3 lets a client think that
    it is through before the server has seen its certificate. Returns the alert's name."""
    try:
        client = server.connect(version=version, **options)
    except HandshakeFailed as failure:
        assert isinstance(failure.end, Alert), failure
        assert not names or failure.end.name in names, failure
        return failure.end.name
    with client:
        client.send(acquire_frame("refused") + HEARTBEAT_FRAME * 20)
        return client.expect_alert(*names)


# --- who is let in


@both_versions
def test_a_certificate_is_required(server, version):
    alert = refused(server, version, credentials=None)
    assert alert in ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE"), alert
    server.owner("refused").close()  # and the claim that came along made no trace


UNTRUSTED = {
    "expired": {"starts": -2 * DAY, "ends": -1},
    "not valid yet": {"starts": HOUR, "ends": DAY},
    "for servers only": {"usages": ("server",)},
    "for signing code": {"usages": ("code",)},
}


@both_versions
@pytest.mark.parametrize("wishes", UNTRUSTED.values(), ids=UNTRUSTED.keys())
def test_certificate_that_does_not_stand(server, authority, version, wishes):
    refused(server, version, credentials=authority.issue_client("client", **wishes))


@both_versions
def test_certificate_of_another_authority(server, other_authority, version):
    refused(server, version, credentials=other_authority.issue_client("client"))


@both_versions
def test_certificate_that_signed_itself(server, tmp_path, version):
    refused(server, version, credentials=Authority(tmp_path, "client").credentials())


@both_versions
def test_only_the_client_ca_counts(start_server, authority, mtls_files, other_authority, version):
    """Not the authority of the server's own certificate, nor the system's store."""
    mtls_files.trust(other_authority)
    server = start_server(tls=mtls_files, env={"SSL_CERT_FILE": str(authority.certificate)})
    refused(server, version, credentials=authority.issue_client("client"))
    with server.connect(version=version, credentials=other_authority.issue_client("client")) as client:
        client.own("let-in")


@both_versions
@pytest.mark.parametrize("key", ["ec", "rsa", "ed25519"])
def test_kinds_of_keys(server, authority, version, key):
    with server.connect(version=version, credentials=authority.issue_client("client", key=key)) as client:
        client.own("let-in")


@both_versions
def test_without_usages_any_use_is_fine(server, authority, version):
    with server.connect(version=version, credentials=authority.issue_client("client", usages=())) as client:
        client.own("let-in")


@both_versions
def test_chain_over_intermediate_authorities(server, authority, version):
    lower = authority.authority_below("middle").authority_below("lower")
    with server.connect(version=version, credentials=lower.issue_client("client")) as client:
        client.own("let-in")


def test_an_intermediate_authority_may_be_all_that_is_trusted(start_server, authority, mtls_files):
    middle = authority.authority_below("middle")
    mtls_files.trust(middle)
    server = start_server(tls=mtls_files)
    server.owner("let-in", credentials=middle.issue_client("client")).close()
    refused(server, credentials=authority.issue_client("client"))
    refused(server, credentials=authority.authority_below("middle").issue_client("client"))


def test_chain_over_an_expired_authority(server, authority):
    expired = authority.authority_below("middle", starts=-2 * DAY, ends=-1)
    refused(server, credentials=expired.issue_client("client"))


def test_leaf_is_no_authority(server, authority, tmp_path):
    """A client's certificate signs nothing that is let in."""
    impostor = Authority.impostor(tmp_path, "client", authority.issue_client("client"))
    refused(server, credentials=impostor.issue_client("admin"))


@pytest.mark.parametrize("size", [0, 1000, 1_000_000], ids="{} heartbeats behind it".format)
def test_alert_arrives_though_the_client_goes_on_sending(server, size):
    """A TLS 1.3 client sends its claim before it hears of the refusal; the alert must survive that."""
    for _ in range(scaled(15)):
        with server.connect(credentials=None, version=TLS_1_3) as client:
            assert client.send(acquire_frame("never") + HEARTBEAT_FRAME * size), "reset while it still spoke"
            client.fin()
            client.expect_alert("CERTIFICATE_REQUIRED")
            client.expect_fin()


@pytest.mark.parametrize("tls", ["plain", "TLS without client certificates"])
def test_a_server_that_wants_no_certificate_takes_everybody(start_server, tls_files, authority, tls):
    server = start_server("-log-level", "debug", **({} if tls == "plain" else {"tls": tls_files}))
    if tls != "plain":
        with server.connect(credentials=authority.issue_client("ignored")) as client:
            client.own("anybody")
    server.owner("anybody").close()
    server.stop()
    assert not any(record.get("identity") for record in server.records())


# --- the identity


def long_uri(length):
    return "spiffe://lab/" + "x" * (length - len("spiffe://lab/"))


IDENTITIES = {
    "CN alone": (["importer"], [], "importer"),
    "CN of another string type": ([common_name("importer", PRINTABLE_STRING)], [], "importer"),
    "CN among other parts": ([organisation("lab"), "importer"], [], "importer"),
    "DNS without CN": ([], [dns("db.example")], "db.example"),
    "URI without CN": ([], [uri("spiffe://lab/db")], "spiffe://lab/db"),
    "DNS before CN": (["importer"], [dns("db.example")], "db.example"),
    "URI before CN": (["importer"], [uri("spiffe://lab/db")], "spiffe://lab/db"),
    "URI before DNS": (["importer"], [dns("db.example"), uri("spiffe://lab/db")], "spiffe://lab/db"),
    "first of two URIs": ([], [uri("spiffe://lab/one"), uri("spiffe://lab/two")], "spiffe://lab/one"),
    "first of two DNS names": ([], [dns("one.example"), dns("two.example")], "one.example"),
    "empty CN with a DNS name": ([""], [dns("db.example")], "db.example"),
    "two CNs with a URI": (["one", "two"], [uri("spiffe://lab/db")], "spiffe://lab/db"),
    "CN beside an email address": (["importer"], [email("a@example")], "importer"),
    "CN beside an IP address": (["importer"], [address("192.0.2.1")], "importer"),
    "CN with a newline": (["impo\nrter level=error"], [], "impo\nrter level=error"),
    "CN with a star": (["*"], [], "*"),
    "CN with quotes and a backslash": (['a"b\\c'], [], 'a"b\\c'),
    "CN beyond ASCII": (["ünïcødé 😀"], [], "ünïcødé 😀"),
    "CN with spaces around": ([" importer "], [], " importer "),
    "wildcard DNS name": ([], [dns("*.example")], "*.example"),
    "URI kept as it is": ([], [uri("SPIFFE://Lab/%2e/../x?y#z")], "SPIFFE://Lab/%2e/../x?y#z"),
    "URI of 2 KiB": ([], [uri(long_uri(2048))], long_uri(2048)),
}


def literal(identity):
    """A pattern that this identity matches and none of another length."""
    return identity.replace("*", "?")


@pytest.mark.parametrize("subject, names, identity", IDENTITIES.values(), ids=IDENTITIES.keys())
@both_versions
def test_identity_by_the_rule(start_server, authority, tmp_path, subject, names, identity, version):
    """Exactly it is what the rules and the log see, escaped in the log and whole."""
    files = TlsFiles(tmp_path, authority, rules=[(literal(identity), ["mine"]), (literal(identity) + "?", ["longer"])])
    server = start_server("-log-level", "debug", "-log-format", "json", "-threads", "2", tls=files)
    who = authority.issue_client(*subject, names=tuple(names))
    with server.connect(credentials=who, version=version) as client, server.connect(credentials=who) as other:
        client.own("mine")
        other.acquire("longer").expect_refused(NOT_AUTHORIZED, "not authorized for lock")
    server.stop()
    assert {record["identity"] for record in server.records() if record.get("identity")} == {identity}
    assert all(json.loads(line) for line in server.lines())
    assert not server.loud_lines()


def test_identity_in_a_text_log_forges_no_line(start_server, authority, mtls_files):
    server = start_server("-log-level", "debug", tls=mtls_files)
    forged = "x\ntime=2026-01-01T00:00:00Z level=error msg=forged"
    server.owner("escaped", credentials=authority.issue_client(forged)).close()
    server.stop()
    assert {record["identity"] for record in server.records() if record.get("identity")} == {forged}
    assert not any(record["msg"] == "forged" for record in server.records())


NO_IDENTITY = {
    "no name at all": ([], []),
    "other parts alone": ([organisation("lab")], []),
    "empty CN": ([""], []),
    "two CNs": (["one", "two"], []),
    "two equal CNs": (["one", "one"], []),
    "CN with NUL": (["good\0evil"], []),
    "NUL alone": (["\0"], []),
    "email address alone": ([], [email("a@example")]),
    "IP address alone": ([], [address("192.0.2.1")]),
    "URI with NUL": (["importer"], [uri("spiffe://lab/a\0b")]),
    "DNS name with NUL": (["importer"], [dns("good.example\0.evil")]),
    "URI that is not UTF-8": (["importer"], [uri(b"spiffe://lab/\xff")]),
    "DNS name that is not UTF-8": (["importer"], [dns(b"\xc0\xaf.example")]),
    "CN with NUL in another string type": ([common_name("a\0b".encode("utf-16-be"), BMP_STRING)], []),
    "bad URI before a good one": ([], [uri("a\0b"), uri("spiffe://lab/good")]),
    "bad URI before a good DNS name": ([], [dns("good.example"), uri("a\0b")]),
}


@pytest.mark.parametrize("subject, names", NO_IDENTITY.values(), ids=NO_IDENTITY.keys())
def test_no_identity_no_handshake(start_server, authority, mtls_files, subject, names):
    server = start_server("-threads", "2", tls=mtls_files)
    who = authority.issue_client(*subject, names=tuple(names))
    for version in (TLS_1_2, TLS_1_3):
        refused(server, version, "BAD_CERTIFICATE", credentials=who)
    assert not server.loud_lines()
    server.owner("refused").close()


def test_the_same_certificate_twice_is_two_claims(server):
    """Case S16."""
    with server.connect() as first, server.connect() as second:
        token = first.own("twice")
        second.queue("twice")
        first.heartbeat().expect_acquired(token)
        second.expect_silence(0.1)
        first.close()
        assert second.expect_acquired() > token
