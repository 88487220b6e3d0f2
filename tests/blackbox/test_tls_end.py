"""How sessions over TLS end: the peer's word counts as over plain TCP, and alerts and ERRORs arrive."""

import os
import signal
import statistics
import time

import pytest

from support.pki import Authority
from support.protocol import DUPLICATE_ACQUIRE, SHUTTING_DOWN, UNKNOWN_TYPE, Eof, Truncated, acquire_frame
from support.tls import TLS_1_2, TLS_1_3, HandshakeFailed, client_context
from support.waiting import scaled, tried_again, wait_until

AT_ONCE = 0.05
both_versions = pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])


@pytest.fixture
def server(start_server, threads, tls_files):
    return start_server("-threads", threads, tls=tls_files)


def spoiled(record):
    """The same record with one bit of its authentication turned."""
    return record[:-1] + bytes([record[-1] ^ 1])


def half_a_record_and_fin(client):
    client.send_raw(client.seal(b"\x02" * 100)[:50])
    client.fin()


ENDINGS = {
    "close": lambda client: client.close(),
    "no close_notify": lambda client: client.vanish(),
    "half close": lambda client: client.half_close(),
    "FIN alone": lambda client: client.fin(),
    "close_notify alone": lambda client: client.send_close_notify(),
    "half a record and FIN": half_a_record_and_fin,
    "reset": lambda client: client.reset(),
    "spoiled record": lambda client: client.send_raw(spoiled(client.seal(b"\x02"))),
    "plain bytes": lambda client: client.send_raw(b"\x02" * 20),
    "unknown message": lambda client: client.send(b"\x7f"),
    "second claim": lambda client: client.send(b"\x01"),
}
each_ending = pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS.keys())


@tried_again
@both_versions
@each_ending
def test_lock_moves_on_at_once(server, end, version):
    """Case S3: whatever the peer does last, a vanished one and a reset among it, frees at once."""
    owner = server.owner("moves-on", version=version)
    with server.connect(version=version) as waiter:
        waiter.queue("moves-on")
        ended_at = time.monotonic()
        end(owner)
        waiter.expect_acquired()
        assert waiter.received_at - ended_at < AT_ONCE
    owner.close()
    assert not server.loud_lines()


@each_ending
def test_place_in_the_queue_is_given_up_at_once(server, end):
    with server.connect() as owner, server.connect() as last:
        owner.own("gives-up")
        leaver = server.waiter("gives-up")
        last.queue("gives-up")
        end(leaver)
        owner.heartbeat().expect_acquired()
        owner.close()
        last.expect_acquired(within=2)
        leaver.close()
    assert not server.loud_lines()


def test_ends_leave_nothing_behind(server):
    idle = server.settled_descriptors()
    for _ in range(scaled(15)):
        for end in ENDINGS.values():
            owner = server.owner("leaks")
            waiter = server.waiter("leaks")
            end(waiter)
            end(owner)
            owner.close()
            waiter.close()
    server.wait_descriptors(idle)


# --- what the server says last


@both_versions
@pytest.mark.parametrize("end", ["half_close", "send_close_notify", "fin"])
def test_end_is_answered_in_good_order(server, end, version):
    """Who says close_notify hears it. Who does not has broken TLS off, and is only spared a reset."""
    with server.connect(version=version) as client:
        client.own("in-order")
        getattr(client, end)()
        got = client.next_frame(within=1)
        assert got == Eof() or end == "fin" and got == Truncated(), got
        client.expect_fin(within=1)


@both_versions
def test_error_is_followed_by_close_notify_and_fin(server, version):
    for before in (b"", acquire_frame("culprit")):
        with server.connect(version=version) as client:
            if before:
                client.send(before)
                client.expect_acquired()
            client.send(b"\x7f")
            client.expect_refused(UNKNOWN_TYPE, within=1)
            client.expect_fin(within=1)


def test_expired_session_is_closed_with_close_notify(server):
    with server.connect() as client:
        client.own("expires", 100)
        client.expect_eof(within=2)
        client.expect_fin(within=1)


def test_claim_that_never_came_is_closed_with_close_notify(start_server, tls_files):
    server = start_server("-io-timeout", "200ms", tls=tls_files)
    with server.connect() as client:
        client.expect_eof(within=2)
        client.expect_fin(within=1)


def test_error_arrives_in_many_noisy_ends(server):
    """Each with records behind the culprit, some on their way while the server answers."""
    for index in range(scaled(150)):
        with server.connect() as client:
            client.send(acquire_frame("noisy", 5000) + b"\x01" + b"\x02" * (index * 337 % 50_000))
            client.send_records(*[b"\x02"] * 20)
            client.expect_acquired()
            client.expect_refused(DUPLICATE_ACQUIRE)


@both_versions
@pytest.mark.parametrize("size", [0, 1000, 1_000_000], ids="{} bytes behind it".format)
def test_alert_arrives_despite_unread_input(server, version, size):
    """A fatal alert lingers like an ERROR."""
    for _ in range(scaled(10)):
        with server.connect(version=version) as client:
            token = client.own("spoiled")
            heartbeat = client.seal(b"\x02")
            assert client.send_raw(heartbeat + spoiled(client.seal(b"\x02")) + os.urandom(size))
            client.fin()
            client.expect_acquired(token)
            client.expect_alert("BAD_RECORD_MAC")
            client.expect_fin()


def test_alert_of_the_client_is_its_word(start_server, authority, tls_files, tmp_path):
    """A client that does not trust the server says so and goes; nothing of it is an alarm."""
    server = start_server(tls=tls_files)
    idle = server.settled_descriptors()
    stranger = client_context(Authority(tmp_path, "stranger"))
    for _ in range(5):
        with pytest.raises(HandshakeFailed) as failure:
            server.connect(context=stranger)
        assert failure.value.end is None, failure.value
    server.wait_descriptors(idle, within=2)
    assert not server.loud_lines()


@pytest.mark.parametrize("behind", [b"", b"\x02" * 30], ids=["alone", "with heartbeats behind it"])
def test_lingering_over_tls_delays_nobody_and_ends(start_server, threads, tls_files, behind):
    server = start_server("-threads", threads, "-io-timeout", "700ms", tls=tls_files)
    idle = server.settled_descriptors()
    with server.connect() as culprit, server.connect() as waiter:
        culprit.own("lingering")
        waiter.queue("lingering")
        culprit.send(b"\x7f" + behind)
        waiter.expect_acquired(within=0.5)
        culprit.expect_refused(UNKNOWN_TYPE)
        assert server.descriptors() == idle + 2
        started_at = time.monotonic()
        wait_until(lambda: server.descriptors() == idle + 1, "the linger ends", within=3)
        assert time.monotonic() - started_at < 1.5
        waiter.heartbeat().expect_acquired()


# --- processes that die


def owner_process(server, name, version):
    """A process of its own that owns the lock and sleeps: its pid."""
    ready, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if version is None:
                client = server.connect_plain()
                client.own(name)
            else:
                client = server.owner(name, version=version)
            os.write(said, b"x")
            time.sleep(60)
        finally:
            os._exit(1)
    os.close(said)
    assert os.read(ready, 1) == b"x", "the owner never owned"
    os.close(ready)
    return pid


@tried_again
def test_killed_owner_frees_as_fast_as_over_plain_tcp(start_server, threads, tls_files):
    """Case T5."""
    over_tls = start_server("-threads", threads, tls=tls_files)
    plain = start_server("-threads", threads)
    took = {}
    for server, version in ((over_tls, TLS_1_3), (over_tls, TLS_1_2), (plain, None)):
        took[version] = []
        for index in range(10):
            pid = owner_process(server, f"killed-{index}", version)
            with server.connect() as waiter:
                waiter.queue(f"killed-{index}")
                killed_at = time.monotonic()
                os.kill(pid, signal.SIGKILL)
                waiter.expect_acquired(within=2)
                took[version].append(waiter.received_at - killed_at)
            os.waitpid(pid, 0)
    medians = {version: statistics.median(times) for version, times in took.items()}
    assert max(medians.values()) < AT_ONCE, medians
    assert max(medians.values()) < medians[None] + 0.02, medians
    assert not over_tls.loud_lines()


# --- probes


def connect_only(server):
    return server.connect(handshake=False)


def say_hello(server):
    client = server.connect(handshake=False)
    client.handshake_step()
    client.send_raw(client.take_sealed())
    return client


def shake_hands(server):
    return server.connect()


PROBES = {"connect": (connect_only, 1000), "hello": (say_hello, 500), "handshake": (shake_hands, 250)}


@pytest.mark.parametrize("how", ["vanish", "reset"])
@pytest.mark.parametrize("probe, count", PROBES.values(), ids=PROBES.keys())
def test_probes_leave_nothing_behind(start_server, tls_files, probe, count, how):
    """Case S15 over TLS."""
    server = start_server("-threads", "2", tls=tls_files)
    idle = server.settled_descriptors()
    for _ in range(scaled(count)):
        getattr(probe(server), how)()
    server.wait_descriptors(idle)
    assert not server.loud_lines()
    server.owner("after-the-probes").close()


# --- shutdown


def test_everyone_is_told_of_a_shutdown(start_server, threads, tls_files):
    server = start_server("-threads", threads, tls=tls_files)
    idle = server.settled_descriptors()
    sessions = [server.owner(f"told-{index}") for index in range(10)]
    sessions += [server.waiter(f"told-{index}") for index in range(10)]
    sessions += [server.connect() for _ in range(5)]  # shook hands and claimed nothing yet
    in_handshake = [say_hello(server) for _ in range(5)]
    silent = [connect_only(server) for _ in range(5)]
    wait_until(lambda: server.descriptors() == idle + 35, "all are accepted")
    server.signal(signal.SIGTERM)
    for client in sessions:
        client.expect_refused(SHUTTING_DOWN, "server shutting down")
        client.expect_fin()
        client.close()
    for client in in_handshake:
        client.handshake()
        client.expect_refused(SHUTTING_DOWN)
        client.close()
    for client in silent:  # nothing can be told them before a handshake
        client.sock.settimeout(1)
        assert client.sock.recv(1) == b""
        client.vanish()
    assert server.wait_exit(within=3) == 0


def test_peers_that_stay_delay_the_end_by_the_io_timeout_at_most(start_server, tls_files):
    server = start_server("-io-timeout", "700ms", tls=tls_files)
    stay = [server.owner("stays"), server.connect(), say_hello(server), connect_only(server)]
    started_at = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait_exit(within=5) == 0
    assert time.monotonic() - started_at < 2.5
    for client in stay:
        client.vanish()


def test_second_signal_ends_at_once(start_server, tls_files):
    server = start_server("-io-timeout", "1m", tls=tls_files)
    owner = server.owner("lingers")
    server.signal(signal.SIGTERM)
    owner.expect_error(SHUTTING_DOWN)
    server.signal(signal.SIGTERM)
    assert server.wait_exit(within=2) == 1
    owner.vanish()
