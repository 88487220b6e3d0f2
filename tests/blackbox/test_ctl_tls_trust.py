"""monolockctl and certificates: whom it trusts under which name (T6), and what a refusal of its own
certificate means (T7)."""

import contextlib
import socket
import ssl
import threading

import pytest

from ctl import ScriptedServer, ctl, run_words
from ctl_tls import check_failed, check_ran, echo, tls_words
from support.pki import DAY, HOUR, Authority, address, dns, uri
from support.tls import TLS_1_2, TLS_1_3, server_context
from support.waiting import scaled

both_versions = pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])


class Relay:
    """Passes bytes on to a server, and counts the connections."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                self.connections += 1
                far = socket.create_connection(self.target)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pass_on(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


# --- T6: the name of the server


NAMES = {
    "DNS name": ("lock.example", [dns("lock.example")], True),
    "one of several": ("lock.example", [dns("a.example"), uri("x:y"), dns("lock.example")], True),
    "case does not matter": ("LOCK.example", [dns("lock.EXAMPLE")], True),
    "another name": ("lock.example", [dns("clock.example")], False),
    "a longer name": ("lock.example", [dns("lock.example.evil.test")], False),
    "a name with NUL": ("lock.example", [dns("lock.example\0.evil.test")], False),
    "wildcard one level": ("a.lock.example", [dns("*.lock.example")], True),
    "wildcard two levels": ("b.a.lock.example", [dns("*.lock.example")], False),
    "wildcard no level": ("lock.example", [dns("*.lock.example")], False),
    "wildcard within a label": ("abc.lock.example", [dns("a*.lock.example")], False),
    "wildcard not leftmost": ("a.lock.example", [dns("a.*.example")], False),
    "wildcard alone": ("localhost", [dns("*")], False),
    "IPv4 address": ("127.0.0.1", [address("127.0.0.1")], True),
    "another IPv4 address": ("127.0.0.1", [address("127.0.0.2")], False),
    "IPv6 address": ("::1", [address("::1")], True),
    "IPv6 address spelt otherwise": ("0:0::0:1", [address("::1")], True),
    "another IPv6 address": ("::1", [address("::2")], False),
    "IPv4 address as DNS name": ("127.0.0.1", [dns("127.0.0.1")], False),
    "IPv6 address as DNS name": ("::1", [dns("::1")], False),
    "DNS name as URI": ("lock.example", [uri("lock.example")], False),
}


@pytest.mark.parametrize("name, names, good", NAMES.values(), ids=NAMES.keys())
def test_the_servers_name_is_checked(authority, name, names, good):
    # The Common Name is always the one asked for: it must never help.
    credentials = authority.issue(name, names=tuple(names), usages=("server",))
    with ScriptedServer(context=server_context(credentials)) as server:
        done = echo(server, *tls_words(authority, name=name))
        if good:
            check_ran(done)
        else:
            check_failed(done, 70, "certificate")
            assert not server.claims or server.claims[0].name is None, "it claimed all the same"
            assert server.wait_attempts() == 1, "it tried again"


HOSTS = {
    "127.0.0.1": ("127.0.0.1:0", address("127.0.0.1")),
    "localhost": ("127.0.0.1:0", dns("localhost")),
    "[::1]": ("[::1]:0", address("::1")),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("certified", HOSTS)
def test_the_name_is_that_of_the_address(start_server, authority, tls_files, host, certified):
    """Here too the Common Name would help if it could."""
    tls_files.serve(authority.issue(host, names=(HOSTS[certified][1],), usages=("server",)))
    server = start_server(listen=HOSTS[host][0], tls=tls_files)
    done = ctl("run", "--server", f"{host}:{server.port}", *tls_words(authority), "n", "echo", "ran")
    if host == certified:
        check_ran(done)
    else:
        check_failed(done, 70)


def test_nothing_turns_the_check_off(start_server, authority, tls_files):
    tls_files.serve(authority.issue_server(names=(dns("other.example"),)))
    server = start_server(tls=tls_files)
    check_failed(echo(server, *tls_words(authority)), 70)
    for name in ("", "*", "*.example", "a b", "-"):
        done = echo(server, *tls_words(authority, name=name))
        assert done.returncode in (2, 70) and done.stdout == "", done


UNTRUSTED_SERVERS = {
    "another authority": lambda a, tmp: Authority(tmp, "other").issue_server(),
    "signed by itself": lambda a, tmp: Authority(tmp, "self").credentials(),
    "expired": lambda a, tmp: a.issue_server(starts=-2 * DAY, ends=-HOUR),
    "not valid yet": lambda a, tmp: a.issue_server(starts=HOUR, ends=DAY),
    "for clients only": lambda a, tmp: a.issue_server(usages=("client",)),
    "an expired intermediate": lambda a, tmp: a.authority_below("middle", starts=-2 * DAY, ends=-1).issue_server(),
}


@both_versions
@pytest.mark.parametrize("make", UNTRUSTED_SERVERS.values(), ids=UNTRUSTED_SERVERS.keys())
def test_a_server_that_is_not_trusted(authority, tmp_path, make, version):
    """One connection, no claim, an error of its own."""
    with ScriptedServer(context=server_context(make(authority, tmp_path), version=version)) as server:
        check_failed(echo(server, *tls_words(authority)), 70, "certificate")
        assert not any(claim.name for claim in server.claims)
        assert server.wait_attempts() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_is_not_spoken(authority):
    context = server_context(authority.issue_server())
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with ScriptedServer(context=context) as server:
        check_failed(echo(server, *tls_words(authority)), 70)
        assert server.wait_attempts() == 1 and server.failures


def test_plain_and_tls_do_not_meet(start_server, authority, tls_files):
    check_failed(echo(start_server(), *tls_words(authority)), 70)
    done = ctl(*run_words(start_server(tls=tls_files), "n", "echo", "ran"), within=10)
    assert done.returncode in (69, 70) and done.stdout == "" and len(done.stderr.splitlines()) == 1


# --- T7: the client's certificate is refused

REFUSED_CLIENTS = {
    "none": lambda a, tmp: None,
    "another authority": lambda a, tmp: Authority(tmp, "other").issue_client("client"),
    "expired": lambda a, tmp: a.issue_client("client", starts=-2 * DAY, ends=-HOUR),
    "for servers only": lambda a, tmp: a.issue_client("client", usages=("server",)),
    "no identity": lambda a, tmp: a.issue_client(),
    "two names": lambda a, tmp: a.issue_client("one", "two"),
}


@pytest.mark.parametrize("make", REFUSED_CLIENTS.values(), ids=REFUSED_CLIENTS.keys())
def test_a_refused_client_certificate(start_server, authority, mtls_files, tmp_path, make):
    """TLS 1.3 says so after the client's handshake: permanent all the same, and the line names both the
    certificate and the alert."""
    server = start_server(tls=mtls_files)
    credentials = make(authority, tmp_path)
    with Relay(server.address) as relay:
        for _ in range(scaled(5)):
            before = relay.connections
            done = echo(relay, *tls_words(authority, credentials))
            check_failed(done, 77, "certificate", *([str(credentials.certificate)] if credentials else []))
            assert relay.connections == before + 1


def test_a_refused_client_certificate_over_tls_1_2(authority):
    context = server_context(authority.issue_server(), authority, version=TLS_1_2)
    with ScriptedServer(context=context) as server:
        check_failed(echo(server, *tls_words(authority)), 77, "certificate")
        assert server.wait_attempts() == 1 and server.failures


def test_a_certificate_that_is_wrong_while_queued_elsewhere_harms_nobody(start_server, authority, mtls_files):
    server = start_server(tls=mtls_files)
    with server.owner("n") as owner, server.waiter("n") as waiter:
        check_failed(echo(server, *tls_words(authority)), 77)
        owner.heartbeat().expect_acquired()
        waiter.heartbeat().expect_waiting()
