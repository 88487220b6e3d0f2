"""Case S4 and its kin: packets that vanish, and what the kernel makes of it. Silence is silence only.

The client under test speaks over a cable between two namespaces; its rivals are beside the server.
"""

import time

import pytest

from support import netns, procfs
from support.connection import Connection
from support.waiting import NeverAllowed, tried_again, wait_until

PORT = 7070
LATE_AT_MOST = 0.1  # rivals are only polled; test_lease.py measures exactly
NEAR = ("127.0.0.1", PORT)
FAR = (netns.SERVER_ADDRESS, PORT)


@pytest.fixture
def cable():
    made = netns.Cable()
    yield made
    made.remove()


def start_far_server(start_server, cable, tls=None):
    return start_server("-threads", "2", listen=f"0.0.0.0:{PORT}", prefix=cable.server_side.prefix, tls=tls)


@pytest.fixture
def far_server(start_server, cable):
    return start_far_server(start_server, cable)


def connect(address, tls):
    return tls.connect(address) if tls else Connection(address)


def far_client(cable, tls=None):
    with cable.client_side.entered():
        return connect(FAR, tls)


def near_client(cable, tls=None):
    with cable.server_side.entered():
        return connect(NEAR, tls)


def give_up_early(cable):
    """The kernel ends a connection whose data is not acknowledged after about 3 s, with ETIMEDOUT."""
    cable.server_side.run("sysctl", "-qw", "net.ipv4.tcp_retries2=3")


def far_sockets(cable):
    """The server's sockets whose peer is at the other end of the cable."""
    lines = procfs.sockets_of_port(PORT, prefix=cable.server_side.prefix)
    return [line for line in lines if netns.CLIENT_ADDRESS in line]


def check_granted_at_lease(waiter, sent_at, answered_at, lease):
    waiter.expect_acquired(within=lease + 5)
    if waiter.received_at - sent_at <= lease:
        raise NeverAllowed(f"granted {waiter.received_at - sent_at:.3f} s into a lease of {lease} s")
    late = waiter.received_at - answered_at - lease
    assert late < LATE_AT_MOST, f"{late:.3f} s late"


@tried_again
def test_black_holed_owner_costs_its_lease(far_server, cable):
    lease = 1.5
    owner, waiter = far_client(cable), near_client(cable)
    token = owner.own("half-open", 1500)
    waiter.queue("half-open")
    time.sleep(0.3)
    owner.heartbeat().expect_acquired(token)
    cable.cut()
    owner.sock.send(b"\x02")  # lost, so not a sign of life
    check_granted_at_lease(waiter, owner.sent_at, owner.received_at, lease)
    cable.mend()
    owner.expect_end()
    waiter.heartbeat().expect_acquired()
    owner.close()
    waiter.close()


@tried_again
def test_cut_that_heals_within_the_lease_costs_nothing(far_server, cable):
    owner, waiter = far_client(cable), near_client(cable)
    token = owner.own("healed", 4000)
    waiter.queue("healed")
    cable.cut()
    owner.heartbeat()
    waiter.expect_silence(1)
    cable.mend()
    owner.expect_acquired(token, within=3)
    waiter.expect_silence(0.5)
    owner.close()
    waiter.expect_acquired(within=1)
    waiter.close()


def leave_a_reply_unacknowledged(cable, connection):
    """The heartbeat gets through and sets lastSeen; its answer does not, and nothing comes any more."""
    cable.client_side.drop_packets('meta iifname "cable"')
    connection.heartbeat()
    wait_until(
        lambda: any(int(line.split()[2]) > 0 for line in far_sockets(cable)),
        "the reply waits for its acknowledgement",
    )
    answered_at = time.monotonic()
    cable.cut()
    return answered_at


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
def test_verdict_of_the_kernel_is_only_silence(start_server, cable, tls_files, secured):
    """Case S4: tcp_retries2 = 3 turns an unacknowledged reply into ETIMEDOUT after some seconds. The
    descriptor closes, yet the owner keeps its lock until 12 s after its last heartbeat."""
    lease = 12
    tls = tls_files if secured else None
    start_far_server(start_server, cable, tls)
    give_up_early(cable)
    waiter = near_client(cable, tls)
    owner = far_client(cable, tls)
    owner.own("timed-out", lease * 1000)
    waiter.queue("timed-out")
    answered_at = leave_a_reply_unacknowledged(cable, owner)
    wait_until(lambda: not far_sockets(cable), "the kernel gives the connection up", within=lease - 2)
    gave_up_after = time.monotonic() - answered_at
    assert waiter.poll() is None, f"granted {gave_up_after:.1f} s after the last heartbeat"
    check_granted_at_lease(waiter, owner.sent_at, answered_at, lease)
    owner.close()
    waiter.close()


def test_verdict_of_the_kernel_leaves_a_waiter_its_place(far_server, cable):
    """The same for a waiter: it is promoted in its turn, without a socket, and holds the rest of its lease."""
    lease = 9
    give_up_early(cable)
    owner, behind = near_client(cable), near_client(cable)
    waiter = far_client(cable)
    owner.own("waiter-timed-out")
    waiter.queue("waiter-timed-out", lease * 1000)
    behind.queue("waiter-timed-out")
    answered_at = leave_a_reply_unacknowledged(cable, waiter)
    wait_until(lambda: not far_sockets(cable), "the kernel gives the connection up", within=lease - 1)
    owner.close()
    check_granted_at_lease(behind, waiter.sent_at, answered_at, lease)
    behind.heartbeat().expect_acquired()
    waiter.close()
    behind.close()


def test_unreachable_host_is_only_silence(far_server, cable):
    """The server's own route is gone, so that its writes fail with ENETUNREACH or EHOSTUNREACH."""
    lease = 8
    give_up_early(cable)
    owner, waiter = far_client(cable), near_client(cable)
    owner.own("no-route", lease * 1000)
    waiter.queue("no-route")
    answered_at = leave_a_reply_unacknowledged(cable, owner)
    cable.server_side.run("ip", "link", "set", "cable", "down")
    check_granted_at_lease(waiter, owner.sent_at, answered_at, lease)
    owner.close()
    waiter.close()


def test_unreachable_by_icmp_is_only_silence(far_server, cable):
    """A router on the way says that the host is not reachable: a soft verdict that must not free a lock."""
    lease = 8
    give_up_early(cable)
    owner, waiter = far_client(cable), near_client(cable)
    owner.own("icmp", lease * 1000)
    waiter.queue("icmp")
    answered_at = leave_a_reply_unacknowledged(cable, owner)
    cable.client_side.pass_packets()
    cable.client_side.run(
        "nft", "-f", "-",
        stdin="table inet faults {\n"
        "  chain input {\n    type filter hook input priority 0;\n"
        '    meta iifname "cable" tcp sport 7070 reject with icmp type host-unreachable\n  }\n'
        "  chain output {\n    type filter hook output priority 0;\n"
        '    meta oifname "cable" tcp dport 7070 drop\n  }\n'
        "}\n",
    )  # fmt: skip
    check_granted_at_lease(waiter, owner.sent_at, answered_at, lease)
    owner.close()
    waiter.close()


@tried_again
def test_black_holed_waiters_cost_one_lease_together(far_server, cable):
    """Case S1: five waiters without FIN."""
    lease = 1.2
    owner, alive = near_client(cable), near_client(cable)
    owner.own("five")
    gone = [far_client(cable) for _ in range(5)]
    for waiter in gone:
        waiter.queue("five", 1200)
    alive.queue("five")
    cable.cut()
    owner.close()
    left_at = time.monotonic()
    alive.expect_acquired()
    assert alive.received_at - left_at < lease + LATE_AT_MOST
    for connection in [*gone, alive]:
        connection.close()


@tried_again
def test_reset_over_the_cable_frees_at_once(far_server, cable):
    """Case S3: a reset is the peer's word, wherever it comes from."""
    owner, waiter = far_client(cable), near_client(cable)
    owner.own("reset-far")
    waiter.queue("reset-far")
    reset_at = time.monotonic()
    owner.reset()
    waiter.expect_acquired()
    assert waiter.received_at - reset_at < 0.05
    waiter.close()


def test_reset_of_a_client_that_vanished_and_came_back(far_server, cable):
    """The client's kernel has forgotten the connection and answers the server's retransmission with RST:
    that is the peer's word, though nobody sent it on purpose, and the lease need not run out."""
    owner, waiter = far_client(cable), near_client(cable)
    owner.own("forgotten", 600_000)
    waiter.queue("forgotten")
    leave_a_reply_unacknowledged(cable, owner)
    owner.reset()  # this RST vanishes
    waiter.expect_silence(0.3)
    cable.mend()
    waiter.expect_acquired(within=10)
    waiter.close()
