"""Case H12: claims through a TCP proxy whose idle timeouts are a little longer than the lease."""

import contextlib
import os
import socket
import subprocess
import time

import pytest

import ctl
from support.connection import Connection
from support.http import refuses
from support.protocol import Waiting
from support.waiting import tried_again, wait_until

# The case's proportions (10 s, 8 s and a minute) at an eighth of their length.
IDLE_MS = 1250
LEASE_MS = 1000
LIVES_SECONDS = 7.5

CONFIGURATION = """
global
    maxconn 100
defaults
    mode tcp
    timeout connect {idle}ms
    timeout client {idle}ms
    timeout server {idle}ms
listen locks
    bind 127.0.0.1:{port}
    server only {host}:{server_port}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def proxied(start_server, tmp_path):
    """A server and the address at which haproxy passes connections on to it."""
    server = start_server()
    address = ("127.0.0.1", free_port())
    host, server_port = server.address
    file = tmp_path / "haproxy.cfg"
    file.write_text(CONFIGURATION.format(idle=IDLE_MS, port=address[1], host=host, server_port=server_port))
    with open(tmp_path / "haproxy.log", "w") as log:
        proxy = subprocess.Popen(["haproxy", "-db", "-f", str(file)], stdout=log, stderr=log)
    try:
        wait_until(lambda: not refuses(address), "haproxy listens")
        yield server, address
    finally:
        proxy.kill()
        proxy.wait()


@tried_again
def test_a_claim_lives_behind_a_proxy(proxied):
    """The owner's and the waiter's heartbeats keep their connections; who says nothing is cut off by the
    proxy, long before the lease that it asked for."""
    server, address = proxied
    lease = ["--server", ctl.address_text(address), "--lease", f"{LEASE_MS}ms"]
    with contextlib.ExitStack() as stack:
        begin = time.monotonic()
        owner = stack.enter_context(started("run", *lease, "proxied", "--", "sleep", str(LIVES_SECONDS)))
        wait_until(lambda: has_owner(server, "proxied"), "the first has the lock")
        silent = stack.enter_context(Connection(address))
        silent.own("silent", 60_000)
        waiter = stack.enter_context(started("run", *lease, "proxied", "--", "true"))
        silent.expect_end(within=2 * IDLE_MS / 1000 + 2)
        assert waiter.poll() is None and owner.poll() is None
        assert owner.wait(LIVES_SECONDS + 10) == 0
        assert time.monotonic() - begin > LIVES_SECONDS
        assert waiter.wait(5) == 0


def has_owner(server, name):
    with server.connect() as probe:
        return probe.acquire(name).next_frame() == Waiting()


@contextlib.contextmanager
def started(*words):
    process = subprocess.Popen(
        [ctl.binary(), *words], env=ctl.clean_environment(), stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.kill(process.pid, 15)
            process.wait(10)
