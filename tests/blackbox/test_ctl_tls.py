"""monolockctl over TLS: how it is told to, what codes and losses mean (C6), and the job's safety (L3)."""

import os
import signal
import socket
import time

import pytest

from ctl import Run, ScriptedServer, address_text, ctl, processes_of
from ctl_tls import check_failed, check_ran, echo, tls_words
from support.pki import Authority
from support.tls import server_context
from support.tls_files import TlsFiles
from support.waiting import scaled, tried_again, wait_until


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
    other_name = env | {"MONOLOCK_TLS_NAME": "other.example"}
    check_failed(ctl("run", "n", "echo", "ran", env=other_name), 70)
    check_ran(ctl("run", "--tls-name", "localhost", "n", "echo", "ran", env=other_name))
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
    words = ["run", "--server", address_text(mute.getsockname()), *tls_words(authority)]
    began = time.monotonic()
    done = ctl(*words, "--wait", "400ms", "n", "true")
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
