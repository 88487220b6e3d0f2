"""Operators at the admin API: they ask while the server is measured."""

import contextlib
import multiprocessing
import os
import socket
import time

SLOW_SCRAPERS = 10
OPERATORS_NICE = 10
LISTED_BYTES = 100  # of a lock in a listing, at the least
LISTING = b"GET /api/locks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def asking(address, locks):
    """Listings in a loop, and scrapers that take a byte a second. Yields the number of whole listings
    of so many locks. The operators are nice: elsewhere they would have cores of their own."""
    listings = multiprocessing.Value("l")
    host, port = address.split(":")
    where = host, int(port)
    operators = [
        multiprocessing.Process(target=list_on, args=(where, locks, listings)),
        multiprocessing.Process(target=scrape_slowly, args=(where,)),
    ]
    for each in operators:
        each.start()
    try:
        yield listings
    finally:
        for each in operators:
            each.kill()
            each.join()


def list_on(address, locks, listings):
    os.nice(OPERATORS_NICE)
    room = bytearray(1 << 20)
    while True:
        with socket.create_connection(address) as connection:
            connection.sendall(LISTING)
            seen, last = 0, b""
            while count := connection.recv_into(room):
                seen += count
                last = (last + room[:count])[-7:]
            if last == b"\r\n0\r\n\r\n" and seen > locks * LISTED_BYTES:  # the end of the last chunk
                listings.value += 1


def scrape_slowly(address):
    os.nice(OPERATORS_NICE)
    scrapers = [None] * SLOW_SCRAPERS
    while True:
        for index, scraper in enumerate(scrapers):
            try:
                if scraper is None:
                    scraper = scrapers[index] = socket.socket()
                    scraper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    scraper.connect(address)
                    scraper.sendall(LISTING)
                scraper.recv(1)
            except OSError:  # it was cut off, as it should be, and comes again
                scraper.close()
                scrapers[index] = None
            time.sleep(1 / SLOW_SCRAPERS)
