"""monolockctl over TLS: names and trust (T6), refused certificates (T7), codes (C6), and the job's safety."""

import contextlib
import os
import signal
import socket
import ssl
import threading
import time

import pytest

from ctl import Run, ScriptedServer, address_text, ctl, processes_of, run_words
from support.pki import DAY, HOUR, Authority, address, dns, uri
from support.tls import TLS_1_2, TLS_1_3, server_context
from support.tls_files import TlsFiles
from support.waiting import scaled, tried_again, wait_until

both_versions = pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])


def tls_words(authority=None, credentials=None, name=None):
    words = []
    if authority is not None:
        words += ["--tls-ca", str(authority.certificate)]
    if credentials is not None:
        words += ["--tls-cert", str(credentials.certificate), "--tls-key", str(credentials.key)]
    if name is not None:
        words += ["--tls-name", name]
    return words


def echo(server, *options, **more):
    """`run … echo ran` with --retry, so that what is tried again shows; at most once is what is tested."""
    return ctl(*run_words(server, "n", "echo", "ran", options=[*options, "--retry"]), **more)


def check_ran(done):
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def check_failed(done, status, *texts):
    """Nothing ran, one line says why."""
    assert (done.returncode, done.stdout) == (status, ""), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for text in texts:
        assert text in done.stderr, f"no {text!r} in {done.stderr!r}"


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


# --- the usual way


def test_run_over_tls_and_mutual_tls(start_server, authority, tls_files, tmp_path):
    check_ran(echo(start_server(tls=tls_files), *tls_words(authority)))
    (tmp_path / "mutual").mkdir()
    mutual = TlsFiles(tmp_path / "mutual", authority, rules=[("importer", ["n"])])
    server = start_server(tls=mutual)
    check_ran(echo(server, *tls_words(authority, mutual.named("importer"))))
    check_failed(echo(server, *tls_words(authority, mutual.named("other"))), 77, "not authorized for lock")


def test_variables(start_server, authority, mtls_files):
    server = start_server(tls=mtls_files)
    client = mtls_files.client
    env = {
        "MONOLOCK_SERVER": address_text(server.address),
        "MONOLOCK_TLS_CA": str(authority.certificate),
        "MONOLOCK_TLS_CERT": str(client.certificate),
        "MONOLOCK_TLS_KEY": str(client.key),
    }
    check_ran(ctl("run", "n", "echo", "ran", env=env))
    check_failed(ctl("run", "n", "echo", "ran", env=env | {"MONOLOCK_TLS_NAME": "other.example"}), 70)
    check_ran(ctl("run", "--tls-name", "localhost", "n", "echo", "ran", env=env | {"MONOLOCK_TLS_NAME": "other.example"}))
    check_ran(ctl("run", "n", "echo", "ran", env=env | {"MONOLOCK_TLS_NAME": ""}))


def test_the_systems_store(start_server, authority, tls_files):
    """--tls alone trusts it, and it does not hold our authority unless OpenSSL is told that it does."""
    server = start_server(tls=tls_files)
    check_failed(echo(server, "--tls"), 70)
    check_ran(echo(server, "--tls", env={"SSL_CERT_FILE": str(authority.certificate)}))


def test_a_ca_file_replaces_the_systems_store(start_server, authority, tls_files, tmp_path):
    server = start_server(tls=tls_files)
    other = Authority(tmp_path, "other")
    check_failed(echo(server, *tls_words(other), env={"SSL_CERT_FILE": str(authority.certificate)}), 70)


def test_unix_socket_needs_a_name(start_server, authority, tls_files, tmp_path):
    server = start_server(listen=f"unix:{tmp_path}/socket", tls=tls_files)
    check_ran(echo(server, *tls_words(authority, name="localhost")))
    check_failed(echo(server, *tls_words(authority)), 2, "--tls-name")


def test_heartbeats_and_the_queue_over_tls(start_server, authority, tls_files):
    server = start_server(tls=tls_files)
    owner = server.owner("n")
    with Run(server, "n", "sh", "-c", "sleep 2; echo ran", options=[*tls_words(authority), "--lease", "600ms"]) as run:
        time.sleep(1)
        owner.close()
        assert run.end() == (0, "ran\n", "")


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
            assert len(server.claims) + len(server.failures) == 1, "it tried again"


@pytest.mark.parametrize("host, listen", [("127.0.0.1", "127.0.0.1:0"), ("localhost", "127.0.0.1:0"), ("[::1]", "[::1]:0")])
@pytest.mark.parametrize("names", [[dns("localhost")], [address("127.0.0.1")], [address("::1")]], ids=["DNS", "IPv4", "IPv6"])
def test_the_name_is_that_of_the_address(start_server, authority, tls_files, host, listen, names):
    tls_files.serve(authority.issue("localhost", names=tuple(names), usages=("server",)))
    server = start_server(listen=listen, tls=tls_files)
    done = ctl("run", "--server", f"{host}:{server.port}", *tls_words(authority), "n", "echo", "ran")
    if {"127.0.0.1": address("127.0.0.1"), "localhost": dns("localhost"), "[::1]": address("::1")}[host] in names:
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
        assert len(server.claims) + len(server.failures) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_is_not_spoken(authority):
    context = server_context(authority.issue_server())
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with ScriptedServer(context=context) as server:
        check_failed(echo(server, *tls_words(authority)), 70)
        assert len(server.failures) == 1


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
        assert len(server.failures) == 1 and not server.claims


def test_a_certificate_that_is_wrong_while_queued_elsewhere_harms_nobody(start_server, authority, mtls_files):
    server = start_server(tls=mtls_files)
    with server.owner("n") as owner, server.waiter("n") as waiter:
        check_failed(echo(server, *tls_words(authority)), 77)
        owner.heartbeat().expect_acquired()
        waiter.heartbeat().expect_waiting()


# --- C6: what a code means does not depend on the transport


@pytest.mark.parametrize("code, status", [(0x10, 70), (0x15, 70), (0x18, 77), (0x20, 70), (0xFF, 70)])
def test_permanent_codes_are_one_connection(authority, code, status):
    with ScriptedServer(context=server_context(authority.issue_server())) as server:
        server.owner("n")
        with Run(server, "n", "echo", "ran", options=[*tls_words(authority), "--retry"]) as run:
            claim = server.claim("n")
            server.send_error(claim, code, b"because")
            got, out, err = run.end()
        assert (got, out) == (status, "") and "because" in err
        assert len(server.claims) == 1


@pytest.mark.parametrize("code", [0x01, 0x02, 0x0F])
def test_codes_below_0x10_are_tried_again(authority, code):
    with ScriptedServer(context=server_context(authority.issue_server())) as server:
        owner = server.owner("n")
        with Run(server, "n", "echo", "ran", options=[*tls_words(authority), "--retry"]) as run:
            claim = server.claim("n")
            server.send_error(claim, code)
            wait_until(lambda: len(server.claims) == 2, "a second connection")
            server.release(owner)
            assert run.end() == (0, "ran\n", "")


@pytest.mark.parametrize("how", ["close_notify", "fin", "reset"])
def test_loss_of_a_held_lock_is_told(authority, how):
    """The end of the connection stops the job, whatever end it is."""
    with ScriptedServer(context=server_context(authority.issue_server())) as server:
        with Run(server, "n", "sleep", "60", options=tls_words(authority)) as run:
            claim = server.granted("n")
            run.commands()
            began = time.monotonic()
            if how == "reset":
                server.reset(claim)
            else:
                server.say_goodbye(claim, close_notify=how == "close_notify")
            status, _, err = run.end()
            assert status == 76 and len(err.splitlines()) == 1
            assert time.monotonic() - began < 2


# --- files


def test_files_that_are_wrong(authority, tmp_path):
    """No connection is made, and the line names the file."""
    good = authority.issue_client("client")
    other = authority.issue_client("client")
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("garbage")
    encrypted = tmp_path / "encrypted.pem"
    encrypted.write_bytes(good.encrypted_key())
    gone = tmp_path / "gone.pem"
    with ScriptedServer(context=server_context(authority.issue_server())) as server:
        for words, culprit in (
            (["--tls-ca", str(gone)], gone),
            (["--tls-ca", str(garbage)], garbage),
            ([*tls_words(authority), "--tls-cert", str(garbage), "--tls-key", str(good.key)], garbage),
            ([*tls_words(authority), "--tls-cert", str(good.certificate), "--tls-key", str(gone)], gone),
            ([*tls_words(authority), "--tls-cert", str(good.certificate), "--tls-key", str(encrypted)], encrypted),
            ([*tls_words(authority), "--tls-cert", str(good.certificate), "--tls-key", str(other.key)], other.key),
        ):
            check_failed(echo(server, *words), 78, str(culprit))
        assert not server.claims and not server.failures


@pytest.mark.parametrize("flag", ["--tls-cert", "--tls-key"])
def test_half_a_pair_is_wrong_usage(flag):
    check_failed(ctl("run", "--tls-ca", "x", flag, "x", "n", "true"), 2, flag)


def test_files_are_read_again_at_each_attempt(start_server, authority, mtls_files, tmp_path):
    """Case T3: a client that waits for its server uses what is in its files when that comes."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    stranger = Authority(tmp_path, "other")
    ca, cert, key = tmp_path / "ca", tmp_path / "cert", tmp_path / "key"

    def write(trusted, credentials):
        for path, source in ((ca, trusted.certificate), (cert, credentials.certificate), (key, credentials.key)):
            mtls_files.replace(path, source.read_bytes())

    write(stranger, stranger.issue_client("client"))

    class Target:
        address = ("127.0.0.1", port)

    options = ["--tls-ca", str(ca), "--tls-cert", str(cert), "--tls-key", str(key), "--retry"]
    with Run(Target, "n", "echo", "ran", options=options) as run:
        time.sleep(0.3)
        write(authority, mtls_files.client)
        start_server(listen=f"127.0.0.1:{port}", tls=mtls_files)
        assert run.end(within=15) == (0, "ran\n", "")


# --- time and signals


@pytest.fixture
def mute():
    """Accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@tried_again
def test_a_wait_counts_the_handshake_too(mute, authority):
    began = time.monotonic()
    done = ctl("run", "--server", address_text(mute.getsockname()), *tls_words(authority), "--wait", "400ms", "n", "true")
    assert done.returncode == 75
    assert 0.4 <= time.monotonic() - began < 0.6


def test_a_handshake_that_hangs_is_given_up(mute, authority):
    began = time.monotonic()
    done = ctl("run", "--server", address_text(mute.getsockname()), *tls_words(authority), "n", "true")
    check_failed(done, 69)
    assert 4.9 <= time.monotonic() - began < 7


@tried_again
def test_a_signal_in_the_handshake(mute, authority):
    class Target:
        address = mute.getsockname()

    with Run(Target, "n", "true", options=tls_words(authority)) as run:
        accepted, _ = mute.accept()
        time.sleep(0.1)
        began = time.monotonic()
        run.signal(signal.SIGTERM)
        assert run.end()[0] == 143
        assert time.monotonic() - began < 0.2
        accepted.close()


def test_sigkill_of_the_wrapper_over_tls(start_server, authority, tls_files):
    """Case L3 holds: the job is dead before the lock moves, though only the wrapper speaks TLS."""
    server = start_server("-threads", "2", tls=tls_files)
    for index in range(scaled(20)):
        name = f"killed-{index}"
        with Run(server, name, "sh", "-c", "sleep 60 | sleep 60", options=tls_words(authority)) as run:
            wait_until(lambda: len(processes_of(name)) >= 3, "the job runs")
            with server.connect() as waiter:
                waiter.queue(name)
                os.kill(run.pid, signal.SIGKILL)
                waiter.expect_acquired(within=2)
                assert not processes_of(name), "the job outlived the lock"
    assert not server.loud_lines()


def test_server_that_dies_over_tls(start_server, authority, tls_files):
    server = start_server(tls=tls_files)
    with Run(server, "n", "sleep", "60", options=[*tls_words(authority), "--grace", "100ms"]) as run:
        run.commands()
        server.kill()
        began = time.monotonic()
        assert run.end()[0] == 76
        assert time.monotonic() - began < 2
