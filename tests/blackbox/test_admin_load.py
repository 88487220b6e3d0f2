"""Case H5: whoever asks much of the admin API, or reads slowly, delays no client of the locks."""

import contextlib
import json
import threading
import time

import pytest

from support.http import HttpConnection, fetch
from support.waiting import SCALE, tried_again, wait_until

LOCKS = 800
SCRAPERS = 10
ROUNDS = 1000
LEASE_MS = 2000
CONNECTIONS_MAX = 16


@pytest.fixture
def crowded(start_server):
    """Locks whose listing is longer than what a socket's buffers hold."""
    server = start_server("-threads", "1", "-admin-listen", "127.0.0.1:0")
    owners = [server.owner(f"{'y' * 200}-{index}") for index in range(LOCKS)]
    yield server
    for owner in owners:
        owner.close()


def p99(server):
    """Of the time from a close to the next owner's grant, in seconds; its sessions live all the time."""
    took = []
    watched = server.owner("watched", LEASE_MS)
    owner = server.owner("handed-over", LEASE_MS)
    for _ in range(ROUNDS):
        heir = server.waiter("handed-over", LEASE_MS)
        owner.close()
        closed_at = time.monotonic()
        heir.expect_acquired(within=LEASE_MS / 1000)
        took.append(heir.received_at - closed_at)
        owner = heir
        watched.heartbeat().expect_acquired(within=LEASE_MS / 1000)
    owner.close()
    watched.close()
    return sorted(took)[-len(took) // 100]


def slow_scraper(server):
    """Asks for far more than all buffers hold, and has read nothing yet."""
    scraper = HttpConnection(server.admin_address, receive_buffer=4096)
    with contextlib.suppress(OSError):  # it had to make room
        scraper.send(b"GET /api/locks HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
    return scraper


@contextlib.contextmanager
def in_background(*tasks):
    """Each is called over and over in a thread of its own until the block ends."""
    stop = threading.Event()
    failures = []

    def repeat(task):
        try:
            while not stop.is_set():
                task()
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=repeat, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


@tried_again
def test_slow_scrapers_and_listings_delay_no_grant(crowded):
    scrapers = [slow_scraper(crowded) for _ in range(SCRAPERS)]
    listings = 0

    def read_a_byte_a_second():
        for scraper in scrapers:
            scraper.sock.recv(1)
        time.sleep(1 / SCRAPERS)

    def list_all():
        nonlocal listings
        listings += len(json.loads(fetch(crowded.admin_address, "/api/locks").text)["locks"]) >= LOCKS

    quiet = p99(crowded)
    with in_background(read_a_byte_a_second, list_all):
        wait_until(lambda: listings, "the first listing")
        loaded = p99(crowded)
    assert listings > 1
    assert loaded < quiet + 0.005, f"{quiet * 1e3:.2f} ms, under load {loaded * 1e3:.2f} ms"
    for scraper in scrapers:
        scraper.close()


def test_connections_have_a_bound(crowded):
    before = crowded.settled_descriptors()
    scrapers = [slow_scraper(crowded) for _ in range(CONNECTIONS_MAX + 4)]
    assert crowded.descriptors() <= before + CONNECTIONS_MAX
    started_at = time.monotonic()
    assert fetch(crowded.admin_address, "/api/info").status == 200
    assert time.monotonic() - started_at < 2 / min(SCALE, 1)
    for scraper in scrapers:
        scraper.close()
