"""Where the server listens: every form of an address, one lock space each, and restarts."""

import os
import pathlib
import socket
import stat
import threading

import pytest

from support import netns
from support.connection import Connection
from support.procfs import sockets_of_port
from support.server import Server, run_to_end
from support.waiting import scaled, wait_until


def own_and_leave(address):
    with Connection(address) as client:
        return client.own("where")


def test_ipv4(start_server):
    server = start_server(listen="127.0.0.1:0")
    assert server.address[0] == "127.0.0.1" and server.port > 0
    own_and_leave(server.address)


def test_ipv6(start_server):
    server = start_server(listen="[::1]:0")
    assert server.address[0] == "::1" and server.port > 0
    own_and_leave(server.address)


def test_all_interfaces_of_ipv4(start_server):
    server = start_server(listen="0.0.0.0:0")
    own_and_leave(("127.0.0.1", server.port))
    own_and_leave(("127.0.0.9", server.port))


def test_no_host_means_every_interface_of_both_families(start_server):
    server = start_server(listen=":0")
    for index, host in enumerate(("127.0.0.1", "::1")):
        with Connection((host, server.port)) as owner:
            owner.own("both-families")
            with Connection(("::1" if index == 0 else "127.0.0.1", server.port)) as waiter:
                waiter.queue("both-families")


def test_ipv6_wildcard(start_server):
    server = start_server(listen="[::]:0")
    own_and_leave(("::1", server.port))


def test_same_port_on_the_other_wildcard_fails_too(start_server):
    server = start_server(listen="0.0.0.0:0")
    result = run_to_end("-listen", f"127.0.0.1:{server.port}")
    assert result.returncode == 1, result.stderr


@pytest.mark.parametrize("count", ["1", "4"])
def test_second_server_on_the_same_address_fails(start_server, count):
    """Two servers are two lock spaces, so SO_REUSEPORT is never used, however many shards share the port."""
    server = start_server("-threads", count)
    for _ in range(3):
        result = run_to_end("-listen", f"127.0.0.1:{server.port}", "-threads", count)
        assert result.returncode == 1
        assert f"127.0.0.1:{server.port}" in result.stderr and result.stderr.count("\n") == 1
    own_and_leave(server.address)


def test_restart_right_after_a_crash_binds_at_once(start_server):
    """Connections of the dead server are still around in the kernel, in each state."""
    server = start_server()
    port = server.port
    for _ in range(5):
        clients = [server.owner(f"crash-{index}") for index in range(10)]
        clients[0].half_close()
        server.kill()
        server = start_server(listen=f"127.0.0.1:{port}")
        for client in clients:
            client.close()
        own_and_leave(server.address)


def test_restart_after_an_orderly_end_binds_at_once(start_server):
    server = start_server()
    port = server.port
    for _ in range(3):
        owner = server.owner("orderly")
        server.signal(15)
        owner.expect_refused(0x01)
        owner.close()
        server.wait_exit()
        server = start_server(listen=f"127.0.0.1:{port}")


def test_backlog_is_the_longest_the_kernel_allows(start_server):
    server = start_server()
    limit = int(pathlib.Path("/proc/sys/net/core/somaxconn").read_text())
    lines = sockets_of_port(server.port, "-l")
    assert len(lines) == 1, "one listening socket, shared by the shards"
    assert int(lines[0].split()[2]) == limit, lines


def test_descriptors_are_closed_on_exec(start_server):
    """No descriptor of the server would leak into a program that it started."""
    server = start_server()
    with server.connect() as client:
        client.own("cloexec")
        for fd in os.listdir(f"/proc/{server.pid}/fd"):
            if int(fd) > 2:
                info = pathlib.Path(f"/proc/{server.pid}/fdinfo/{fd}").read_text()
                (flags,) = [int(line.split()[1], 8) for line in info.splitlines() if line.startswith("flags:")]
                target = os.readlink(f"/proc/{server.pid}/fd/{fd}")
                assert flags & os.O_CLOEXEC, f"descriptor {fd} ({target})"


# --- host names


@pytest.fixture
def namespace():
    made = []

    def make(hosts):
        made.append(netns.Namespace(hosts))
        return made[-1]

    yield make
    for one in made:
        one.remove()


SEVERAL = "127.0.0.1 several\n127.0.0.2 several\n::1 several\n127.0.0.1 localhost\n"


def test_host_name_with_several_addresses_is_bound_on_all(start_server, namespace):
    inside = namespace(SEVERAL)
    server = start_server(listen="several:7070", prefix=inside.prefix)
    with inside.entered():
        assert sorted(server.wait_listening(count=3).addresses) == [("127.0.0.1", 7070), ("127.0.0.2", 7070), ("::1", 7070)]
        owner = Connection(("127.0.0.1", 7070))
        owner.own("one-space")
        for host in ("127.0.0.2", "::1"):
            with Connection((host, 7070)) as waiter:
                waiter.queue("one-space")
        with pytest.raises(ConnectionRefusedError):
            Connection(("127.0.0.3", 7070))
        owner.close()


@pytest.mark.parametrize("port", [7070, 0])
def test_host_name_that_stands_twice_for_an_address_is_bound_once(start_server, namespace, port):
    inside = namespace("127.0.0.1 doubled\n127.0.0.1 localhost doubled\n")
    server = start_server(listen=f"doubled:{port}", prefix=inside.prefix)
    server.stop()
    assert [record["msg"] for record in server.records()].count("listening") == 1


@pytest.mark.parametrize("taken", ["127.0.0.1", "127.0.0.2", "::1"])
def test_host_name_whose_one_address_is_taken_fails(namespace, taken):
    inside = namespace(SEVERAL)
    with inside.entered():
        other = socket.create_server((taken, 7070), family=socket.AF_INET6 if ":" in taken else socket.AF_INET)
    with other:
        result = run_to_end("-listen", "several:7070", prefix=inside.prefix)
        assert result.returncode == 1
        assert "several:7070" in result.stderr or taken in result.stderr
        assert result.stderr.count("\n") == 1, result.stderr


# --- Unix sockets


@pytest.fixture
def socket_path(tmp_path):
    return str(tmp_path / "monolock.sock")


def test_unix_socket(start_server, socket_path, threads):
    server = start_server("-threads", threads, listen=f"unix:{socket_path}")
    assert server.address == socket_path
    owner, waiter, third = server.owner("unix"), server.waiter("unix"), server.waiter("unix")
    owner.heartbeat().expect_acquired()
    owner.close()
    waiter.expect_acquired()
    waiter.half_close()
    waiter.expect_eof()
    third.expect_acquired()
    third.send(b"\x7f" * 1000)
    third.expect_error(0x13)
    for client in (waiter, third):
        client.close()


def test_unix_socket_lease_and_limits(start_server, socket_path):
    server = start_server("-io-timeout", "300ms", listen=f"unix:{socket_path}")
    with server.connect() as client:
        client.own("unix-lease", 100)
        client.expect_eof(within=2)
    with server.connect() as client:
        client.send(b"\x01")
        client.expect_eof(within=2)


def test_unix_error_arrives_despite_unread_input(start_server, socket_path):
    server = start_server(listen=f"unix:{socket_path}")
    for size in (1, 1000, 1_000_000):
        with server.connect() as client:
            client.send(b"\x7f" * size)
            client.half_close()
            client.expect_refused(0x13)


def test_stale_unix_socket_is_replaced(start_server, socket_path):
    for _ in range(3):
        server = start_server(listen=f"unix:{socket_path}")
        own_and_leave(socket_path)
        server.kill()
        assert stat.S_ISSOCK(os.stat(socket_path).st_mode)
    start_server(listen=f"unix:{socket_path}")
    own_and_leave(socket_path)


def test_unix_socket_after_an_orderly_end(start_server, socket_path):
    for _ in range(2):
        start_server(listen=f"unix:{socket_path}").stop()
    start_server(listen=f"unix:{socket_path}")
    own_and_leave(socket_path)


def test_live_unix_socket_is_an_error_and_stays_alive(start_server, socket_path):
    server = start_server(listen=f"unix:{socket_path}")
    owner = server.owner("alive")
    for _ in range(3):
        result = run_to_end("-listen", f"unix:{socket_path}")
        assert result.returncode == 1
        assert socket_path in result.stderr and result.stderr.count("\n") == 1, result.stderr
    with server.connect() as waiter:
        waiter.queue("alive")
        owner.close()
        waiter.expect_acquired()


def test_foreign_live_unix_socket_is_an_error(socket_path):
    """Somebody else listens there: it is not ours to replace, lock file or not."""
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(socket_path)
        other.listen()
        result = run_to_end("-listen", f"unix:{socket_path}")
        assert result.returncode == 1, result.stderr
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(socket_path)


def test_file_that_is_no_socket_is_not_replaced(socket_path):
    pathlib.Path(socket_path).write_text("precious")
    result = run_to_end("-listen", f"unix:{socket_path}")
    assert result.returncode == 1 and socket_path in result.stderr
    assert pathlib.Path(socket_path).read_text() == "precious"


def test_of_many_starters_on_one_unix_socket_one_wins(socket_path):
    """They find the same stale socket at the same moment. The lock file beside it settles who it is."""
    for _ in range(scaled(20, at_least=3)):
        stale = Server(listen=f"unix:{socket_path}")
        stale.kill()
        stale.dispose()
        barrier = threading.Barrier(8)
        starters = []

        def start():
            barrier.wait()
            starters.append(Server(listen=f"unix:{socket_path}", wait=False))

        racers = [threading.Thread(target=start) for _ in range(8)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        try:
            wait_until(
                lambda: sum(starter.exit_code() is None for starter in starters) <= 1, "all but one starter gave up"
            )
            (winner,) = [starter for starter in starters if starter.exit_code() is None]
            assert all(starter.exit_code() == 1 for starter in starters if starter is not winner)
            winner.wait_listening()
            own_and_leave(socket_path)
        finally:
            for starter in starters:
                starter.dispose()


def test_starter_that_is_slow_to_replace_a_stale_unix_socket_does_not_steal_it(socket_path):
    """Two starters find the socket stale; each stands still before it unlinks the file. Without the lock
    file the second one would remove the first one's live socket, and there would be two lock spaces."""
    stale = Server(listen=f"unix:{socket_path}")
    stale.kill()
    stale.dispose()
    slow = ("strace", "-D", "-o", "/dev/null", "-e", "trace=unlink,unlinkat",
            "-e", "inject=unlink,unlinkat:delay_enter=400000")  # fmt: skip
    no_leak_check = {"ASAN_OPTIONS": "detect_leaks=0"}  # it cannot work under a tracer
    starters = [
        Server(listen=f"unix:{socket_path}", prefix=slow, env=no_leak_check, wait=False) for _ in range(2)
    ]
    try:
        wait_until(lambda: any(s.exit_code() is not None for s in starters), "one gave up", within=5)
        (winner,) = [starter for starter in starters if starter.exit_code() is None]
        winner.wait_listening()
        own_and_leave(socket_path)
    finally:
        for starter in starters:
            starter.dispose()
