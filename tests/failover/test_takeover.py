"""One server takes over from another: real servers, a real etcd, each on a machine of its own."""

import contextlib
import random
import subprocess
import time

import pytest
from failover.group import Group
from failover.load import LEASE_MAX, Load, now
from failover.network import Network
from failover.probes import Probes
from faults.networks import program
from support.etcd import Etcd
from support.protocol import ENDS, SHUTTING_DOWN, Acquired, Error, Waiting
from support.strace import shard_threads, standing_still
from support.waiting import NeverAllowed, stays_true, tried_again, wait_until

TTL = 1
SLACK = 2.0  # seconds beyond a TTL, by the contract


@pytest.fixture(scope="module")
def network():
    made = Network()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def etcd(network):
    made = Etcd([network.machine()])
    try:
        yield made.start()
    finally:
        made.dispose()


@pytest.fixture
def group(network, etcd):
    """Starts groups of two servers; both must end in good order if the test does not end them."""
    with contextlib.ExitStack() as undo:

        def start(*flags, **wishes):
            made = undo.enter_context(Group(*flags, network=network, etcd=etcd, **wishes))
            return made.start()

        yield start


def served_again(load, since, within):
    """Every client, after something that was done at that moment."""
    load.wait_served(since + 0.1e9, within)


@tried_again
def test_kill_of_the_active_under_load(group):
    """Tokens rise, nobody believes beside another, and everybody is served in time."""
    servers = group("-grant-delay", "auto")
    active, standby = servers.peers
    with Load(servers, seed=random.randrange(10_000)) as load:
        with Probes(servers.peers) as probes:
            load.wait_served(now(), 10)
            probes.wait_heard(active)
            with load.unsettled():
                struck = now()
                active.server.kill()
                served_again(load, struck, TTL + SLACK + LEASE_MAX)
                probes.wait_heard(standby)
            outage = load.outage(struck, now())
            active.start().wait_up()
        reigns = probes.judge()
        verdict = load.judge()
    assert {reign.server for reign in reigns} == {"s1", "s2"}, reigns
    assert not verdict.violations, verdict.text
    assert verdict.grants > 20 and outage.seconds > TTL / 2, (verdict.text, outage)
    assert standby.metric("monolock_failovers_total") == 1
    standby.wait_record("claims queue, and none is granted yet")
    standby.wait_record("the grant delay is over")
    wait_until(lambda: active.info()["active_server"] == "s2", "the one that died is a standby of the other")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_server_that_stood_still_answers_nobody(group, threads):
    """What waits in its sockets was sent to a server that was active then; it is not any more."""
    servers = group("-threads", str(threads))
    stopped, standby = servers.peers
    owners = [stopped.connect() for _ in range(8)]
    tokens = [owner.own(f"lock {number}") for number, owner in enumerate(owners)]
    waiters = [stopped.connect().queue(f"lock {number}") for number in range(8)]
    silent = [stopped.connect() for _ in range(8)]
    waiting = [*owners, *waiters]
    stopped.server.pause()
    for one in waiting:
        one.heartbeat(3)
    for number, one in enumerate(silent):
        one.acquire(f"new {number}").heartbeat()
    late = [stopped.connect().acquire(f"late {number}").heartbeat() for number in range(8)]  # in the backlog
    servers.wait_active(standby, within=TTL + SLACK)
    successor = standby.connect()
    assert successor.own("lock 0") > max(tokens)
    for one in waiting:
        one.heartbeat(3)
    stopped.server.resume()
    for one in [*waiting, *silent, *late]:
        frames = []
        while not frames or not isinstance(frames[-1], ENDS):
            frames.append(one.next_frame())
            if isinstance(frames[-1], (Waiting, Acquired)):
                raise NeverAllowed(f"answered by a server whose time was over: {frames}")
        assert [frame.code for frame in frames[:-1] if isinstance(frame, Error)] == [SHUTTING_DOWN], frames
        one.close()
    successor.heartbeat().expect_acquired()
    successor.close()
    wait_until(lambda: stopped.info()["role"] == "standby", "it is a standby")
    assert stopped.info()["active_server"] == "s2" and "no renewal" in stopped.info()["last_loss"]
    assert stopped.refuses() and stopped.health("/healthz").status == 200 and stopped.health("/readyz").status == 503
    assert stopped.metric("monolock_active") == 0 and standby.metric("monolock_active") == 1


@tried_again
def test_an_owner_whom_a_silent_server_lost_is_waited_for(group):
    """Its lease is longer than the TTL: it believes for longer than it takes the next server to open."""
    lease = 3.0
    servers = group("-grant-delay", "auto")
    silent, standby = servers.peers
    owner = silent.connect()
    token = owner.own("a lock", lease_ms=int(1000 * lease))
    owner.heartbeat().expect_acquired()
    confirmed = owner.sent_at
    silent.server.pause()
    servers.wait_active(standby, within=TTL + SLACK)
    opened = time.monotonic()
    assert opened < confirmed + 0.8 * lease, "too late for the test: the owner believes no more"
    with standby.connect() as successor:
        later = successor.own("a lock")
        if successor.received_at < confirmed + 0.8 * lease:
            raise NeverAllowed(f"granted {successor.received_at - confirmed} s after an owner with a lease of {lease} s")
        assert later > token and successor.received_at < opened + lease + SLACK
    owner.close()


@tried_again
def test_a_controlled_shutdown_hands_over_at_once(group):
    """Sooner than a lease ends: the standby need not wait for what was resigned. Not even a client that does
    nothing of what it is told delays that."""
    ttl = 3
    servers = group("-io-timeout", "5s", ttl=f"{ttl}s")
    active, standby = servers.peers
    owner = active.connect()
    token = owner.own("a lock")
    begun = time.monotonic()
    active.server.signal(15)
    owner.expect_error(SHUTTING_DOWN)  # and stays connected
    servers.wait_active(standby, within=ttl + 5)
    took = time.monotonic() - begun
    assert took < ttl / 2, f"{took} s"
    with standby.connect() as next_owner:
        assert next_owner.own("a lock") > token
    owner.close()
    assert active.server.wait_exit() == 0


def test_a_shutdown_does_not_resign_for_a_shard_that_has_stalled(group):
    """Nobody told its clients, and it may yet grant: the standby waits as if the active had died."""
    servers = group("-io-timeout", "300ms")
    active, standby = servers.peers
    owners = [active.connect() for _ in range(16)]
    tokens = [owner.own(f"lock {number}") for number, owner in enumerate(owners)]
    with standing_still(shard_threads(active.server.pid)[0], 60):
        for owner in owners:
            owner.heartbeat()
        wait_until(lambda: sum(owner.poll() is not None for owner in owners) > 0, "the other shard answers")
        active.server.signal(15)
        complaint = active.wait_record(
            "a shard has stalled: this server gives up its role without resigning, and the next one waits for it"
        )
        assert complaint["level"] == "error"
        stays_true(lambda: not standby.is_ready(), "the standby waits", TTL / 2)
        servers.wait_active(standby, within=TTL + SLACK)
        active.wait_record("a shard has stalled: its clients could not be told to go")
    assert active.server.wait_exit() == 1
    with standby.connect() as next_owner:
        assert next_owner.own("lock 0") > max(tokens)
    for owner in owners:
        owner.close()


def test_partition_of_the_active_from_etcd(group):
    """It stops before the other begins, and says why; when it is back it is a standby."""
    servers = group()
    cut, standby = servers.peers
    with Probes(servers.peers) as probes:
        probes.wait_heard(cut)
        with cut.connect() as owner:
            owner.own("a lock")
            cut.machine.cut(*servers.etcd_machines)
            owner.expect_error(SHUTTING_DOWN)
        assert cut.refuses()
        servers.wait_active(standby, within=TTL + SLACK)
        info = cut.info()
        assert info["role"] != "active" and info["last_loss"].startswith("no renewal was answered in time"), info
        assert info["etcd_errors"] > 0 and info["last_error"], info
        cut.machine.mend()
        wait_until(lambda: cut.info()["active_server"] == "s2", "it hears of the other")
        assert cut.info()["role"] == "standby" and standby.is_ready()
        probes.wait_heard(standby)
    reigns = probes.judge()
    assert [reign.server for reign in reigns] == ["s1", "s2"], reigns


@pytest.mark.parametrize("deed", ["delete_active", "revoke_lease"])
def test_what_a_hand_takes_from_the_active(group, deed):
    """It notices by itself, in good time, and one of the two is active again."""
    servers = group()
    active = servers.peers[0]
    with Probes(servers.peers) as probes:
        probes.wait_heard(active)
        owner = active.connect()
        token = owner.own("a lock")
        getattr(servers, deed)()
        owner.expect_error(SHUTTING_DOWN, within=TTL)
        again = servers.wait_active(within=TTL + SLACK)
        with again.connect() as next_owner:
            assert next_owner.own("a lock") > token
        owner.close()
        probes.wait_heard(again)
    reigns = probes.judge()
    assert [reign.server for reign in reigns] == ["s1", again.name], reigns
    loss = active.info()["last_loss"]
    assert loss.startswith(("the key is gone", "another server has the key", "the lease has ended")), loss


def test_a_server_without_others_opens_again(group):
    """In good time, though a client does nothing of what it is told."""
    servers = group("-io-timeout", "30s", servers=1)
    (server,) = servers.peers
    owner = server.connect()
    token = owner.own("a lock")
    term = server.info()["term"]
    servers.delete_active()
    owner.expect_error(SHUTTING_DOWN, within=TTL)  # and stays connected
    wait_until(server.refuses, "it is closed", interval=0.001)
    servers.wait_active(server, within=TTL + SLACK)
    with server.connect() as next_owner:
        assert next_owner.own("a lock") > token
    assert server.info()["term"] > term and server.info()["failovers"] == 2
    owner.close()


def test_a_job_is_run_again_by_the_next_server(group):
    """monolockctl run --retry knows the list, and rides through."""
    servers = group()
    active, standby = servers.peers
    words = ("run", "--retry", "--server", servers.addresses, "--lease", "500ms", "a job", "--", "echo", "done")
    active.server.kill()
    began = time.monotonic()
    done = subprocess.run(
        [*servers.clients.prefix, program("MONOLOCKCTL_BIN"), *words], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0 and done.stdout == "done\n", done
    assert time.monotonic() - began < TTL + SLACK + 4, "a pause between two attempts is 1.2 s by then"
    assert standby.is_ready()
    # With a delay of a fixed length no lease has to be recorded first, which a try would not wait for.
    try_words = ("run", "--no-wait", "--server", servers.addresses, "--lease", "1h", "a free lock", "--", "echo", "done")
    done = subprocess.run(
        [*servers.clients.prefix, program("MONOLOCKCTL_BIN"), *try_words], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0 and done.stdout == "done\n", done
