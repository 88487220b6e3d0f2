"""Servers that are not active: what they say, what they refuse, and wrong wishes."""

import signal
import socket

import pytest
from failover.group import PORT, Group
from support.etcd import as_base64
from support.server import run_to_end
from support.service_manager import listening_socket, passing
from support.waiting import stays_true, wait_until


def test_etcd_absent_at_start():
    """A standby keeps trying and says why; it is active soon after etcd has come."""
    with Group(servers=1) as alone:
        (server,) = alone.peers
        server.start().wait_up()
        complaint = server.wait_record("etcd does not do what it is asked")
        assert complaint["level"] == "warn" and alone.etcd.members[0].url in complaint["reason"], complaint
        standing_by = server.wait_record("standing by")
        assert {"etcd_endpoints", "etcd_prefix", "etcd_ttl", "grant_delay"} <= set(standing_by), standing_by
        assert standing_by["name"] == "s1"
        assert server.health("/healthz").status == 200
        unready = server.health("/readyz")
        assert unready.status == 503 and "standby" in unready.text
        assert server.refuses()
        info = server.info()
        assert info["role"] == "standby" and info["active_server"] == "" and info["term"] is None, info
        assert info["etcd_errors"] > 0 and info["last_error"], info
        assert server.metric("monolock_active") == server.metric("monolock_term") == 0
        wait_until(lambda: server.metric("monolock_etcd_errors_total") >= 3, "it keeps trying")
        alone.etcd.start()
        alone.wait_active(server, within=10)
        with server.connect() as client:
            client.own("a lock")


def test_a_resolver_that_hangs_delays_no_failover():
    """The name to listen on was resolved at the start."""
    with Group(servers=1) as alone:
        (server,) = alone.peers
        with alone.clients.entered():
            silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            silent.bind((alone.clients.address, 53))
        server.machine.write_etc("hosts", f"{server.machine.address} named\n")
        server.machine.write_etc("resolv.conf", f"nameserver {alone.clients.address}\n")
        server.start(host="named").wait_up()
        server.machine.write_etc("hosts", "")
        alone.etcd.start()
        alone.wait_active(server)
        with server.connect() as client:
            client.own("a lock")
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.recv(1)
        silent.close()


def test_a_standby_and_the_active():
    with Group("-grant-delay", "auto", "-grant-delay-max", "700ms") as group:
        group.etcd.start()
        active, standby = group.start().peers
        assert standby.refuses()
        assert standby.health("/healthz").status == 200 and standby.health("/readyz").status == 503
        info = standby.info()
        assert info["role"] == "standby" and info["active_server"] == "s1" and info["term"] is None, info
        info = active.info()
        assert info["role"] == "active" and info["active_server"] == "s1" and info["failovers"] == 1, info
        assert str(info["term"]) == group.active_entry()["create_revision"]
        assert active.metric("monolock_active") == 1 and active.metric("monolock_term") == info["term"]
        assert active.metric("monolock_failovers_total") == 1 and standby.metric("monolock_failovers_total") == 0
        check_leases_beyond_the_delay(active)
        standby.server.stop()  # in good order, though it never served
        assert active.is_ready()
        beside = check_two_on_one_machine(group, active)
        check_an_address_that_is_taken(group, beside, standby)


def check_leases_beyond_the_delay(active):
    """They are granted, and an operator is told that a failover does not wait for them."""
    assert active.metric("monolock_leases_uncovered_total") == 0
    with active.connect() as covered, active.connect() as uncovered:
        covered.own("covered", lease_ms=700)
        uncovered.own("not covered", lease_ms=701)
    assert active.metric("monolock_leases_uncovered_total") == 1
    warning = active.wait_record("a lease is longer than a failover waits: two may believe that they own the lock")
    assert warning["level"] == "warn" and warning["lock"] == "not covered" and warning["lease_ms"] == "701", warning


WAITS = "this server has the key, and waits until the one before it is over for certain"
ADDRESS_IN_USE = "this server cannot become active as long as another program has its address"


def check_two_on_one_machine(group, active):
    """They share an address, and have it one after the other."""
    beside = group.add_beside(active)
    beside.start().wait_up()
    warning = beside.wait_record(ADDRESS_IN_USE)
    assert warning["level"] == "warn" and str(PORT) in warning["reason"], warning
    assert active.is_ready() and not beside.is_ready()
    active.server.stop()
    group.wait_active(beside)
    with beside.connect() as client:
        client.own("a lock")
    return beside


def check_an_address_that_is_taken(group, active, peer):
    """A server that cannot listen when its turn comes ends, and does not keep the locks from the others."""
    peer.start().wait_up()
    assert not [record for record in peer.server.records() if record["msg"] == ADDRESS_IN_USE]
    with peer.machine.entered():
        blocker = socket.create_server(("0.0.0.0", PORT))
    peer.server.signal(signal.SIGHUP)
    stays_true(peer.is_running, "a reload changes nothing for a standby", 0.1)
    active.server.stop()
    assert peer.server.wait_exit() == 1
    complaint = peer.wait_record("cannot listen")
    assert complaint["level"] == "error" and str(PORT) in complaint["reason"], complaint
    assert peer.wait_record("this server is active no more")["reason"] == complaint["reason"]
    state = group.state()
    assert state["name"] == peer.name and state["resigned"] and group.active_entry() is None, state
    blocker.close()
    peer.start()
    group.wait_active(peer)


def test_a_standby_that_is_told_to_go_does_not_wait_for_clients():
    """The active one serves on while its delay lasts."""
    with Group("-shutdown-delay", "1m") as group:
        group.etcd.start()
        active, standby = group.start().peers
        standby.server.signal(signal.SIGTERM)
        assert standby.server.wait_exit() == 0
        active.server.signal(signal.SIGTERM)
        with active.connect() as client:
            client.own("served during the delay")
        assert group.active_entry() is not None


def test_what_cannot_be_read_is_named_and_not_hammered_at():
    with Group(servers=2) as group:
        group.etcd.start()
        group.etcd.put(group.prefix + "state", '{"format":"2"}')
        for peer in group.peers:
            peer.start().wait_up()
        key = group.prefix + "state"
        for peer in group.peers:
            reason = peer.wait_record("etcd does not do what it is asked")["reason"]
            assert f'"{key}" is no record of ours: it is of another format' in reason, reason
            wait_until(lambda peer=peer: peer.metric("monolock_etcd_errors_total") >= 3, "it keeps trying")
        # Each tries again a few times in a second at most, and two revisions come of it.
        before = group.etcd.revision()
        stays_true(lambda: group.etcd.revision() < before + 30, "it tries again after pauses", 1.0)
        for peer in group.peers:
            assert not [record for record in peer.server.records() if record["msg"] == "another server is active"]
        group.etcd.delete(key)
        active = group.wait_active()
        active.wait_record("etcd does what it is asked again")
        group.etcd.put(group.prefix + "active", "garbage")  # without its lease
        wait_until(lambda: group.active_entry()["value"] != as_base64("garbage"), "the active one writes it anew")
        assert active.is_ready() and int(group.active_entry()["lease"]) != 0


def test_who_was_never_active_is_not_waited_for():
    """However long its TTL is."""
    with Group(servers=2, ttl="1m") as group:
        group.etcd.start()
        first, second = group.peers
        waits = first.start().wait_up().wait_record(WAITS)
        assert 50_000 < int(waits["waits_ms"]) <= 60_000, waits
        first.server.stop()
        assert group.etcd.get(group.prefix + "state") is None
        group.ttl = "1s"
        second.start()
        group.wait_active(second)


WRONG = (
    (("-etcd-endpoints", "ftp://127.0.0.1:2379"), {}, "-etcd-endpoints"),
    (("-etcd-endpoints", "http://127.0.0.1:1,http://127.0.0.1:1"), {}, "-etcd-endpoints"),
    (("-etcd-endpoints", "http://127.0.0.1:2379", "-etcd-ttl", "1500ms"), {}, "-etcd-ttl"),
    (("-etcd-endpoints", "http://127.0.0.1:2379", "-etcd-ttl", "0s"), {}, "-etcd-ttl"),
    (("-etcd-endpoints", "http://127.0.0.1:2379"), {"MONOLOCK_ETCD_TTL": "soon"}, "MONOLOCK_ETCD_TTL"),
    (("-etcd-ttl", "2s"), {}, "-etcd-ttl"),
    ((), {"MONOLOCK_ADVERTISE": "a"}, "MONOLOCK_ADVERTISE"),
    (("-etcd-endpoints", "http://127.0.0.1:2379", "-etcd-ca", "ca.pem"), {}, "-etcd-ca"),
    (("-etcd-endpoints", "https://127.0.0.1:2379", "-etcd-cert", "a.pem"), {}, "-etcd-cert"),
    (("-grant-delay", "auto"), {}, "-grant-delay"),
    (("-grant-delay", "-1s"), {}, "-grant-delay"),
    (("-grant-delay-max", "0s"), {}, "-grant-delay-max"),
)


@pytest.mark.parametrize("flags, env, named", WRONG)
def test_wrong_flags(flags, env, named):
    done = run_to_end(*flags, env=env)
    assert done.returncode == 2 and done.stdout == "", done
    (line,) = done.stderr.splitlines()
    assert named in line, line


WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set", "-net_bind_service", "--inh-caps", "-net_bind_service")


@pytest.mark.parametrize(
    "address, prefix, why",
    (
        ("192.0.2.1:7070", (), "Cannot assign requested address"),
        ("127.0.0.1:80", WITHOUT_PRIVILEGE, "Permission denied"),
        ("unix:/nowhere/socket", (), "/nowhere: No such file or directory"),
    ),
)
def test_an_address_that_it_can_never_have(address, prefix, why):
    """That is found at the start, and not when the others are gone."""
    done = run_to_end("-etcd-endpoints", "http://127.0.0.1:9", "-listen", address, prefix=prefix)
    assert done.returncode == 1 and done.stderr == f"monolock: cannot listen on {address}: {why}\n", done


def test_a_socket_of_the_service_manager_is_refused():
    """It would be open while another server is active."""
    with listening_socket() as port:
        done = run_to_end("-etcd-endpoints", "http://127.0.0.1:9", **passing(("listen", port)))
    assert done.returncode == 2, done
    (line,) = done.stderr.splitlines()
    assert "-etcd-endpoints" in line, line
