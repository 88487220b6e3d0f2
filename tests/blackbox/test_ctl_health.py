"""monolockctl health: what a container's health check runs."""

import signal
import socket
import time

import pytest

from ctl import address_text, ctl
from support.http import fetch
from support.waiting import wait_until

VARIABLE = "MONOLOCK_OPS_LISTEN_ADDRESS"


def asked(address, *words):
    done = ctl("health", *words, env={VARIABLE: address_text(address)})
    assert bool(done.stderr) == bool(done.returncode) and done.stderr.count("\n") <= 1, done
    return done.returncode, done.stdout or done.stderr


@pytest.mark.parametrize("words", [(), ("--ready",)])
def test_a_server_that_serves_is_healthy(start_server, words):
    watched = start_server("-ops-listen", "127.0.0.1:0")
    assert asked(watched.ops_address, *words) == (0, "ok\n")
    assert ctl("health", "--ops", address_text(watched.ops_address), *words).returncode == 0


@pytest.mark.parametrize("words", [(), ("--ready",)])
def test_one_that_shuts_down_is_not(start_server, words):
    watched = start_server("-ops-listen", "127.0.0.1:0", "-shutdown-delay", "30s")
    watched.signal(signal.SIGTERM)
    wait_until(lambda: fetch(watched.ops_address, "/healthz").status == 503, "the shutdown began")
    status, said = asked(watched.ops_address, *words)
    assert status == 1 and said.endswith(': "shutting down"\n')
    watched.kill()


def test_over_a_unix_socket(start_server, tmp_path):
    server = start_server("-ops-listen", f"unix:{tmp_path}/ops")
    assert asked(server.ops_address) == (0, "ok\n")


def test_what_is_not_there_is_not_healthy():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    status, said = asked(address)
    assert status == 69 and f"127.0.0.1:{address[1]}" in said


def test_whoever_says_nothing_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        status, _ = asked(silent.getsockname())
        assert status == 69 and time.monotonic() - began >= 4.9


def test_what_is_no_ops_address_says_so(start_server):
    server = start_server("-ops-listen", "127.0.0.1:0", "-admin-listen", "127.0.0.1:0")
    for address in (server.admin_address, server.address):
        status, said = asked(address)
        assert (status, "-ops-listen" in said) == (70, True), said


def test_wrong_usage():
    done = ctl("health")
    assert done.returncode == 2 and VARIABLE in done.stderr
    assert ctl("health", "--help").stdout == ctl("help", "health").stdout
