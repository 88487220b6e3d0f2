"""Sockets that a service manager opened: listen, ops and admin."""

import os
import signal
import socket

import pytest

from support import procfs
from support.connection import Connection
from support.http import fetch
from support.protocol import SHUTTING_DOWN, Acquired
from support.server import run_to_end
from support.service_manager import listening_socket, passing
from support.waiting import wait_until


@pytest.fixture
def port():
    with listening_socket() as made:
        yield made


@pytest.fixture
def unix_path(tmp_path):
    return tmp_path / "monolock.sock"


@pytest.fixture
def unix_socket(unix_path):
    with listening_socket(unix_path) as made:
        yield made


def activated(start_server, *named, flags=(), **options):
    return start_server(*flags, listen=None, **passing(*named), **options)


def test_each_serves_what_its_name_says(start_server, threads, port, unix_socket, unix_path):
    with listening_socket() as ops:
        ops_address = ops.getsockname()
        server = activated(
            start_server, ("ops", ops), ("listen", port), ("admin", unix_socket), flags=("-threads", threads)
        )
    assert server.address == port.getsockname()
    assert server.ops_address == ops_address
    clients = [server.owner(f"lock-{index}") for index in range(20)]
    for client in clients:
        client.heartbeat().expect_acquired()
    assert fetch(server.ops_address, "/readyz").status == 200
    info = fetch(str(unix_path), "/api/info")
    assert info.status == 200 and f'"listen":"127.0.0.1:{server.port}"' in info.text.replace(" ", "")
    for client in clients:
        client.close()


def test_several_of_a_name_are_one_port(start_server, port, unix_socket, unix_path):
    server = activated(start_server, ("listen", port), ("listen", unix_socket))
    assert server.wait_listening(count=2).addresses == [port.getsockname(), str(unix_path)]
    with server.owner("shared"), Connection(str(unix_path)) as other:
        other.queue("shared")


def test_flags_configure_what_was_not_passed(start_server, port):
    server = activated(start_server, ("listen", port), flags=("-ops-listen", "127.0.0.1:0"))
    assert procfs.listening_ports(server.pid) == {server.port, server.ops_address[1]}


def test_a_socket_unit_survives_the_service(start_server, threads, unix_socket, unix_path):
    """And who connects while no server runs is served by the next."""
    first = activated(start_server, ("listen", unix_socket), flags=("-threads", threads))
    owner = first.owner("mine")
    first.signal(signal.SIGTERM)
    owner.expect_refused(SHUTTING_DOWN)
    owner.close()
    assert first.wait_exit() == 0
    with Connection(str(unix_path)) as early:
        early.acquire("mine")
        activated(start_server, ("listen", unix_socket), flags=("-threads", threads))
        assert isinstance(early.next_frame(within=20), Acquired)


def test_a_second_signal_leaves_the_socket_too(start_server, unix_socket, unix_path):
    server = activated(start_server, ("listen", unix_socket), flags=("-shutdown-delay", "1m"))
    server.signal(signal.SIGTERM)
    server.wait_record(lambda record: record["msg"] == "shutting down")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 1
    assert unix_path.is_socket() and not os.path.exists(f"{unix_path}.lock")


def test_variables_for_another_process_are_not_ours(start_server, port):
    server = start_server(**passing(("nonsense", port), listen_pid=1))
    assert server.port != port.getsockname()[1]
    server.owner("served").close()


# --- the admin API on a socket that no flag describes


@pytest.mark.parametrize("host, status", [("127.0.0.1:1", 200), ("localhost", 200), ("evil.example", 403)])
def test_admin_over_tcp_is_held_to_its_rules(start_server, port, host, status):
    server = activated(start_server, ("admin", port), flags=("-listen", "127.0.0.1:0"))
    assert fetch(server.admin_address, "/api/info", fields=[("Host", host)]).status == status


def test_admin_over_unix_is_not(start_server, unix_socket, unix_path):
    activated(start_server, ("admin", unix_socket), flags=("-listen", "127.0.0.1:0"))
    assert fetch(str(unix_path), "/api/info", fields=[("Host", "evil.example")]).status == 200


# --- what cannot be used


def refused(*named, flags=()):
    """The one line of a start that fails."""
    result = run_to_end(*flags, **passing(*named))
    assert result.returncode == 1 and result.stderr.count("\n") == 1, result
    assert result.stdout == ""
    return result.stderr.removeprefix("monolock: the service manager's socket ").rstrip("\n")


def test_names_that_mean_nothing(port):
    expected = '"monolock.socket": FileDescriptorName= must be listen, ops or admin'
    assert refused(("monolock.socket", port)) == expected
    with listening_socket() as another:
        assert refused(("listen", another), ("monolock.socket", port)) == expected


def test_sockets_that_nobody_can_connect_to():
    with socket.socket() as silent, socket.socket(type=socket.SOCK_DGRAM) as packets:
        for each in (silent, packets):
            assert refused(("ops", each)) == '"ops": not a listening stream socket over IP or Unix'


def test_a_flag_for_the_same(port):
    why = refused(("listen", port), flags=("-listen", "127.0.0.1:7071"))
    assert why == '"listen": -listen 127.0.0.1:7071 is configured as well, and only one of them can be'


def test_a_check_takes_no_sockets(port):
    result = run_to_end("-check", "-listen", "127.0.0.1:7071", **passing(("nonsense", port)))
    assert (result.returncode, result.stderr) == (0, "")


def test_none_stays_after_the_server(start_server, port):
    """The port closes once systemd lets go of it as well."""
    address = port.getsockname()
    server = activated(start_server, ("listen", port))
    server.stop()
    port.close()
    wait_until(lambda: not accepts(address), "the port is closed")


def accepts(address):
    try:
        socket.create_connection(address, timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True
