"""A server by itself that lets owners of an earlier process stop before it grants."""

import contextlib
import signal
import time

from support.connection import Connection
from support.protocol import SHUTTING_DOWN, Waiting
from support.server import Server
from support.service_manager import listening_socket, passing
from support.waiting import NeverAllowed

DELAY = 0.8


def claims_in_order(address, count):
    """On one lock, in the order in which they are in its queue."""
    claims = []
    for _ in range(count):
        claim = Connection(address).acquire("a lock")
        assert claim.next_frame() == Waiting()
        claims.append(claim)
    return claims


def test_claims_queue_and_are_granted_in_order():
    began = time.monotonic()
    server = Server("-grant-delay", f"{DELAY}s")
    try:
        told = server.wait_record(lambda record: record["msg"] == "claims queue, and none is granted yet")
        assert told["grant_delay"] == f"{DELAY * 1000:.0f}ms", told
        claims = claims_in_order(server.address, 5)
        other = server.waiter("another lock")
        claims.pop(1).close()  # leaves the queue
        previous = 0
        for claim in claims:
            token = claim.expect_acquired()
            if claim.received_at - began < DELAY:
                raise NeverAllowed(f"granted after {claim.received_at - began} s")
            assert token > previous
            previous = token
            claim.close()
        other.expect_acquired()
        other.close()
        with server.connect() as later:
            later.own("at once")
        server.wait_record(lambda record: record["msg"] == "the grant delay is over")
        server.stop()
    finally:
        server.dispose()


def test_claims_that_waited_before_the_start_are_not_granted_before_the_delay():
    """Their connections stand in the port when the server's first thread begins to look."""
    for _ in range(5):
        with listening_socket() as port, contextlib.ExitStack() as clients:
            claims = [clients.enter_context(Connection(port.getsockname())) for _ in range(4)]
            for number, claim in enumerate(claims):
                claim.acquire(f"lock {number}")
            server = Server("-grant-delay", "1h", listen=None, **passing(("listen", port)))
            try:
                for claim in claims:
                    frame = claim.next_frame()
                    if frame != Waiting():
                        raise NeverAllowed(f"{frame} before the delay")
            finally:
                server.dispose()


def test_a_shutdown_during_the_delay_grants_nobody():
    server = Server("-grant-delay", "300ms", "-shutdown-delay", "0s")
    try:
        claims = claims_in_order(server.address, 3)
        server.signal(signal.SIGTERM)
        for claim in claims:
            claim.expect_error(SHUTTING_DOWN)
            claim.close()
        assert server.wait_exit() == 0
    finally:
        server.dispose()
