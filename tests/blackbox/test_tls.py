"""TLS on the protocol port: what is spoken, who speaks something else, and how long a handshake may take."""

import ssl
import time

import pytest

from support.protocol import Alert, Eof, Reset, acquire_frame
from support.tls import TLS_1_2, TLS_1_3, HandshakeFailed, client_context
from support.waiting import tried_again

both_versions = pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])


@pytest.fixture
def server(start_server, threads, tls_files):
    return start_server("-threads", threads, tls=tls_files)


@pytest.fixture
def one_server(start_server, tls_files):
    return start_server("-threads", "2", tls=tls_files)


# --- what is spoken


@both_versions
@pytest.mark.parametrize("key", ["ec", "rsa", "ed25519"])
def test_versions_and_keys(start_server, authority, tls_files, version, key):
    tls_files.serve(authority.issue_server(key=key))
    server = start_server(tls=tls_files)
    with server.connect(version=version) as owner, server.connect(version=version) as waiter:
        assert owner.tls.version() == {TLS_1_2: "TLSv1.2", TLS_1_3: "TLSv1.3"}[version]
        assert owner.tls.compression() is None
        token = owner.own("over-tls")
        waiter.queue("over-tls")
        owner.heartbeat().expect_acquired(token)
        waiter.heartbeat().expect_waiting()
        owner.close()
        assert waiter.expect_acquired() > token


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=["1.0", "1.1"])
def test_older_versions_are_refused(one_server, version):
    context = client_context(version=version, ciphers="ALL:@SECLEVEL=0")
    with pytest.raises(HandshakeFailed) as failure:
        one_server.connect(context=context)
    assert failure.value.end == Alert("PROTOCOL_VERSION"), failure.value


@pytest.mark.parametrize("ciphers", ["AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "AES256-SHA"])
def test_ciphers_without_forward_secrecy_or_authentication_are_refused(start_server, authority, tls_files, ciphers):
    tls_files.serve(authority.issue_server(key="rsa"))
    server = start_server(tls=tls_files)
    with pytest.raises(HandshakeFailed) as failure:
        server.connect(context=client_context(version=TLS_1_2, ciphers=ciphers))
    assert failure.value.end == Alert("HANDSHAKE_FAILURE"), failure.value


def test_intermediate_certificates_are_sent(start_server, authority, tls_files):
    """The client trusts the root alone."""
    tls_files.serve(authority.authority_below("middle").authority_below("lower").issue_server())
    server = start_server(tls=tls_files)
    with server.connect() as client:
        client.own("chain")


@both_versions
def test_no_session_is_ever_resumed(one_server, version):
    """Nothing that could be resumed is handed out, so nothing outlives a change of the client CA."""
    with one_server.connect(version=version) as first:
        first.own("resumed")
        first.heartbeat().expect_acquired()  # behind whatever the server had to send
        session = first.tls.session
        assert not session.has_ticket and first.tls.session_reused is False
    with one_server.connect(version=version, session=session) as second:
        assert second.tls.session_reused is False
        second.own("resumed")


def test_renegotiation_is_refused(server):
    with server.connect(version=TLS_1_2) as client, server.connect() as waiter:
        client.own("renegotiated")
        waiter.queue("renegotiated")
        client.native("SSL_renegotiate")
        assert client.handshake_step() is None
        client.send_raw(client.take_sealed())
        end = client.next_frame(within=2)
        assert isinstance(end, (Alert, Eof)), end
        client.close()
        waiter.expect_acquired(within=2)


# --- who speaks something else

FOREIGN = {
    "a plain claim": acquire_frame("plain-on-tls"),
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "PROXY header": b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
    "zeros": bytes(200),
    "noise in a record": bytes.fromhex("1603010100") + b"\xee" * 256,
    "application data first": bytes.fromhex("1703030010") + bytes(16),
    "a record too long": bytes.fromhex("160301ffff") + bytes(1000),
}


@pytest.mark.parametrize("greeting", FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_no_tls_is_ended_at_once(start_server, tls_files, greeting):
    server = start_server("-io-timeout", "60s", tls=tls_files)
    idle = server.settled_descriptors()
    with server.connect(handshake=False) as client:
        client.send_raw(greeting)
        client.fin()
        client.sock.settimeout(2)
        while client.sock.recv(4096):  # an alert, or nothing
            pass
    server.wait_descriptors(idle, within=2)
    assert not server.loud_lines()
    server.owner("served").close()


@pytest.mark.parametrize("kind", ["a plain claim", "HTTP", "PROXY header"])
def test_a_known_foreigner_hears_an_alert(start_server, tls_files, kind):
    """So that a client without TLS knows what is wrong, and does not come again for ever."""
    server = start_server(tls=tls_files)
    with server.connect(handshake=False) as client:
        client.send_raw(FOREIGN[kind])
        client.sock.settimeout(2)
        heard = b""
        while data := client.sock.recv(4096):
            heard += data
        assert heard == bytes.fromhex("15030100020246")  # fatal, protocol_version


@pytest.mark.parametrize("kind, hint", [("a plain claim", "without TLS"), ("HTTP", "HTTP")])
def test_log_gives_a_hint_of_who_speaks_something_else(start_server, tls_files, kind, hint):
    server = start_server(tls=tls_files)
    with server.connect(handshake=False) as client:
        client.send_raw(FOREIGN[kind])
        client.fin()
        server.wait_record(lambda record: record["level"] == "info" and hint in record["msg"])


def test_tls_client_on_a_plain_port_is_told_and_the_log_gives_a_hint(start_server, tls_files):
    server = start_server()
    with pytest.raises(HandshakeFailed) as failure:
        tls_files.connect(server.address)
    assert not isinstance(failure.value.end, Reset)
    server.wait_record(lambda record: record["level"] == "info" and "TLS" in record["msg"])


# --- the time that a handshake is given

LIMIT_MS = 500
LIMIT = LIMIT_MS / 1000


@pytest.fixture
def limited(start_server, threads, mtls_files):
    return start_server("-io-timeout", f"{LIMIT_MS}ms", "-threads", threads, tls=mtls_files)


def check_ended_at_the_limit(client, started_at):
    client.sock.settimeout(LIMIT + 3)
    while client.sock.recv(4096):
        pass
    took = time.monotonic() - started_at
    assert LIMIT <= took < LIMIT + 0.3, f"ended after {took:.3f} s"


@tried_again
@pytest.mark.parametrize("sent", [0, 1, 5, 100, None], ids="{} bytes of the hello".format)
def test_handshake_that_does_not_arrive(limited, sent):
    started_at = time.monotonic()
    with limited.connect(handshake=False) as client:
        client.handshake_step()
        client.send_raw(client.take_sealed()[:sent])
        check_ended_at_the_limit(client, started_at)


@tried_again
def test_handshake_a_byte_at_a_time_is_not_given_longer(limited):
    started_at = time.monotonic()
    with limited.connect(handshake=False) as client:
        client.handshake_step()
        hello = client.take_sealed()
        for at in range(len(hello)):
            if client.sock.send(hello[at : at + 1]) == 0 or time.monotonic() > started_at + 2:
                break
            time.sleep(0.02)
            try:
                if client.sock.recv(4096) == b"":
                    break
            except BlockingIOError:
                pass
            except ConnectionResetError:
                break
        took = time.monotonic() - started_at
        assert LIMIT <= took < LIMIT + 0.3, f"ended after {took:.3f} s"


@tried_again
def test_claim_has_a_limit_of_its_own_after_the_handshake(limited):
    """A slow handshake does not shorten it, and a claim a record at a time does not lengthen it."""
    with limited.connect(handshake=False) as client:
        time.sleep(LIMIT * 0.7)
        client.handshake()
        started_at = time.monotonic()
        time.sleep(LIMIT * 0.7)
        client.own("slow-but-in-time")
    with limited.connect() as client:
        started_at = time.monotonic()
        for byte in acquire_frame("n" * 200):
            client.send(bytes([byte]))
            if client.poll() is not None:
                break
            time.sleep(0.02)
        took = time.monotonic() - started_at
        assert LIMIT <= took < LIMIT + 0.3, f"ended after {took:.3f} s"
