"""-ops-listen: health, readiness, and HTTP that no peer can hold up."""

import os
import resource
import select
import signal
import socket
import stat
import struct
import threading
import time

import pytest

from support import procfs
from support.http import HttpConnection, fetch, refuses
from support.protocol import SHUTTING_DOWN
from support.server import run_to_end
from support.strace import shard_threads, standing_still
from support.waiting import SCALE, scaled, stays_true, wait_until

OPS = ("-ops-listen", "127.0.0.1:0")
REQUEST_TIME = 5  # seconds that a request may take to arrive
CONNECTIONS_MAX = 16


@pytest.fixture
def watched(start_server):
    return start_server(*OPS)


def health(server, path="/healthz"):
    return fetch(server.ops_address, path).status


# --- what is served


def test_off_unless_configured(start_server):
    server = start_server()
    assert procfs.listening_ports(server.pid) == {server.port}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz?verbose", "/readyz?a=b?c"])
def test_a_server_that_serves_is_well(watched, path):
    answer = fetch(watched.ops_address, path)
    assert (answer.status, answer.body) == (200, b"ok\n")
    assert answer.value("Content-Type").startswith("text/plain")
    assert answer.value("Cache-Control") == "no-store"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_head_is_get_without_its_body(watched, path):
    answer = fetch(watched.ops_address, path, method="HEAD")
    assert answer.status == 200 and answer.body == b""
    assert int(answer.value("Content-Length")) > 0


def test_a_target_may_name_the_server(watched):
    assert health(watched, "http://{}:{}/readyz?verbose".format(*watched.ops_address)) == 200
    for target in ["https://localhost/healthz", "http:///healthz", "http://localhost"]:
        assert health(watched, target) == 404


@pytest.mark.parametrize("path", ["/", "/healthz/", "/Healthz", "//healthz", "/metrics/x", "/%68ealthz", "*"])
def test_other_paths_are_not_there(watched, path):
    assert fetch(watched.ops_address, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
def test_other_methods_are_not_allowed(watched, method):
    answer = fetch(watched.ops_address, "/metrics", method=method)
    assert answer.status == 405 and answer.value("Allow") == "GET, HEAD"


def test_on_a_unix_socket(start_server, tmp_path):
    path = tmp_path / "ops.sock"
    server = start_server("-ops-listen", f"unix:{path}")
    assert fetch(str(path), "/healthz").status == 200
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    server.stop()
    assert not path.exists()


def test_second_signal_removes_the_unix_socket_too(start_server, tmp_path):
    path = tmp_path / "ops.sock"
    server = start_server("-ops-listen", f"unix:{path}", "-shutdown-delay", "1m")
    server.signal(signal.SIGTERM)
    wait_until(lambda: fetch(str(path), "/healthz").status == 503, "shutting down")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 1
    assert not path.exists()


def test_a_taken_port_is_named(watched):
    host, port = watched.ops_address
    result = run_to_end("-listen", "127.0.0.1:0", "-ops-listen", f"{host}:{port}")
    assert result.returncode == 1
    assert f"{host}:{port}" in result.stderr and result.stderr.count("\n") == 1


# --- connections


def test_requests_follow_each_other_on_a_connection(watched):
    with HttpConnection(watched.ops_address) as connection:
        for _ in range(3):
            assert connection.ask("GET", "/healthz").response().status == 200
        connection.ask("GET", "/nothing").ask("GET", "/readyz")  # sent together, answered in order
        assert [connection.response().status for _ in range(2)] == [404, 200]


def test_a_connection_ends_when_it_was_agreed(watched):
    for options in ({"fields": [("Connection", "close")]}, {"version": "1.0"}):
        with HttpConnection(watched.ops_address) as connection:
            assert connection.ask("GET", "/metrics", **options).response().status == 200
            connection.expect_end()


def test_a_body_that_nobody_wants_is_read_and_forgotten(watched):
    with HttpConnection(watched.ops_address) as connection:
        assert connection.ask("GET", "/healthz", body=b"x" * 4096).response().status == 200
        assert connection.ask("GET", "/healthz").response().status == 200


MALFORMED = {
    "no HTTP": b"\x01\x01\x00\x00\x27\x10\x00\x07nightly\r\n\r\n",
    "a field without colon": b"GET /healthz HTTP/1.1\r\nHost\r\n\r\n",
    "two lengths": b"GET /healthz HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length that is none": b"GET /healthz HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "a length and chunks": b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "a space in the target": b"GET /healthz /x HTTP/1.1\r\n\r\n",
    "HTTP/3": b"GET /healthz HTTP/3.0\r\n\r\n",
    "an encoding we do not know": b"POST /healthz HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nGET /readyz HTTP/1.1\r\n\r\n",
    "a bare line feed": b"GET /healthz HTTP/1.1\n\n",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_requests(watched, sent):
    with HttpConnection(watched.ops_address) as connection:
        connection.send(sent)
        assert connection.response().status == 400
        connection.expect_end()


TOO_LARGE = {
    "a field": (431, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000),
    "many fields": (431, b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 20_000),
    "the target": (431, b"GET /" + b"x" * 100_000),
    "a body": (413, b"GET /healthz HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 50_000),
    "a chunk": (413, b"GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n" + b"x" * 50_000),
}


@pytest.mark.parametrize("expected, sent", TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_requests_beyond_the_limits_are_told_so(watched, expected, sent):
    """And the answer arrives although the rest of the request was not read."""
    with HttpConnection(watched.ops_address) as connection:
        connection.send(sent)
        assert connection.response().status == expected
        connection.expect_end()


def test_a_request_a_byte_at_a_time_has_no_longer(watched):
    started_at = time.monotonic()
    with HttpConnection(watched.ops_address) as connection:
        while not select.select([connection.sock], [], [], 0.05)[0]:
            assert time.monotonic() - started_at < REQUEST_TIME + 5
            connection.send(b"G")
        assert REQUEST_TIME - 0.5 < time.monotonic() - started_at < REQUEST_TIME + 2
        assert connection.response().status == 408
        connection.expect_end()


def never_read(address):
    """A scraper that asks for more than all buffers hold and reads nothing."""
    scraper = HttpConnection(address, receive_buffer=4096)
    scraper.sock.setblocking(False)
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.05:
        try:
            scraper.sock.send(request)
            quiet_since = time.monotonic()
        except BlockingIOError:
            pass
        except OSError:
            break  # it had to make room
    return scraper


def test_a_probe_is_answered_whatever_slow_readers_do(watched):
    before = watched.settled_descriptors()
    scrapers = [never_read(watched.ops_address) for _ in range(CONNECTIONS_MAX + 4)]
    assert watched.descriptors() <= before + CONNECTIONS_MAX + 1  # /metrics looks into /proc
    for _ in range(3):
        started_at = time.monotonic()
        assert health(watched) == 200
        assert time.monotonic() - started_at < 2 / min(SCALE, 1)
    for scraper in scrapers:
        scraper.close()


def test_idle_connections_make_room(watched):
    before = watched.settled_descriptors()
    idle = [HttpConnection(watched.ops_address) for _ in range(3 * CONNECTIONS_MAX)]
    for _ in range(3):
        assert health(watched) == 200
    assert watched.descriptors() <= before + CONNECTIONS_MAX
    assert idle[-1].ask("GET", "/healthz").response().status == 200, "the last to come stays longest"
    for connection in idle:
        connection.close()


def test_many_scrapers_at_once_are_all_served(watched):
    scrapers = [HttpConnection(watched.ops_address) for _ in range(4 * CONNECTIONS_MAX)]
    served = 0
    for scraper in scrapers[-CONNECTIONS_MAX:]:
        scraper.ask("GET", "/metrics")
    for scraper in scrapers[-CONNECTIONS_MAX:]:
        served += scraper.response().status == 200
    assert served == CONNECTIONS_MAX
    for scraper in scrapers:
        scraper.close()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_probes_leave_nothing_behind(start_server, how):
    """Case S15, for the ports of operators."""
    server = start_server("-admin-listen", "127.0.0.1:0", *OPS)
    before = server.settled_descriptors()
    for address in [server.ops_address, server.admin_address]:
        for index in range(scaled(200)):
            probe = HttpConnection(address)
            if index % 2:
                probe.send(b"GET / HT")
            if how == "reset":
                probe.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            probe.close()
    server.wait_descriptors(before)
    assert not server.loud_lines()
    assert health(server) == 200


# --- case S5: at the descriptor limit


def test_health_and_metrics_at_the_descriptor_limit(start_server, threads):
    server = start_server(
        "-threads", threads, "-io-timeout", "1m", *OPS,
        before_exec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    address = server.ops_address
    owners = [server.owner(f"kept-{index}") for index in range(25)]
    knocking = [server.connect() for _ in range(100)]
    server.settled_descriptors()
    for _ in range(20):
        assert fetch(address, "/healthz").status == 200
        families = server.metrics()
        assert families["monolock_locks_held"].value() == 25
        assert families["process_open_fds"].value() < families["process_max_fds"].value() == 64
        idle = [HttpConnection(address) for _ in range(8)]  # more than HTTP may have
        for connection in idle:
            connection.close()
    assert families["monolock_accept_errors_total"].value() > 0
    for client in owners:
        client.heartbeat().expect_acquired()
    for client in owners + knocking:
        client.close()


# --- case H7 and the shutdown


def test_health_turns_with_the_signal_and_service_goes_on_during_the_delay(start_server):
    server = start_server("-shutdown-delay", "1s", *OPS)
    assert health(server) == health(server, "/readyz") == 200
    server.signal(signal.SIGTERM)
    signalled_at = time.monotonic()
    wait_until(lambda: health(server) == 503, "unhealthy", within=0.5)
    assert health(server, "/readyz") == 503
    owner, waiter = server.owner("as-ever"), server.waiter("as-ever")
    wait_until(lambda: server.metrics()["monolock_waiters"].value() == 1, "the waiter is counted", within=0.5)
    assert time.monotonic() - signalled_at < 1
    for client in (owner, waiter):
        client.expect_error(SHUTTING_DOWN)
        client.close()
    assert server.wait_exit() == 0


def test_health_and_metrics_answer_until_the_last_connection_is_gone(start_server):
    server = start_server("-io-timeout", "1500ms", *OPS)
    address = server.ops_address
    lingers = server.owner("lingers")
    server.signal(signal.SIGTERM)
    lingers.expect_error(SHUTTING_DOWN)
    told_at = time.monotonic()

    def still_answers():
        return fetch(address, "/healthz").status == fetch(address, "/readyz").status == 503 and server.metrics()

    stays_true(still_answers, "health and metrics answer", for_seconds=1)
    families = server.metrics()
    assert families["monolock_connections_active"].value() == 0
    assert families["monolock_releases_total"].value(reason="graceful") == 1
    assert families["monolock_protocol_errors_total"].value(code="0x01") == 1
    assert server.wait_exit() == 0
    assert time.monotonic() - told_at > 1.4
    assert refuses(address)
    lingers.close()


def test_http_peers_do_not_hold_up_the_end(start_server):
    server = start_server("-io-timeout", "1m", *OPS)
    idle, slow = HttpConnection(server.ops_address), never_read(server.ops_address)
    server.signal(signal.SIGTERM)
    assert server.wait_exit(within=3) == 0
    idle.close()
    slow.close()


def test_a_shard_that_does_not_turn_is_found(start_server):
    """Its thread is kept from its next system call for longer than the watchdog bears. An operator hears of
    it, and what he ordered meanwhile does not happen later."""
    server = start_server("-threads", "1", "-admin-listen", "127.0.0.1:0", *OPS)
    admin = server.admin_address
    owner = server.owner("stalled")
    answers = []
    orders = [
        threading.Thread(target=lambda order=order: answers.append(fetch(admin, *order)))
        for order in [("/api/locks",), ("/api/locks/stalled/release", "POST"), ("/api/info",)]
    ]
    with standing_still(shard_threads(server.pid)[0], 8, ":when=1"):
        stopped_at = time.monotonic()
        for order in orders:
            order.start()
        wait_until(lambda: health(server) == 503, "unhealthy", within=7, interval=0.05)
        assert time.monotonic() - stopped_at >= 4.5
        answer = fetch(server.ops_address, "/readyz")
        assert answer.status == 503 and "shard" in answer.text
        assert server.metrics()["monolock_build_info"].type == "gauge", "metrics need no shard"
        for order in orders:
            order.join()
        assert sorted(answer.status for answer in answers) == [200, 503, 503]
        wait_until(lambda: health(server) == 200, "well again", within=5, interval=0.05)
    owner.heartbeat().expect_acquired()
    owner.close()
    server.wait_record(lambda record: "turns again" in record["msg"])
    assert [record["level"] for record in server.records() if "stalled" in record["msg"]] == ["error", "warn"]
