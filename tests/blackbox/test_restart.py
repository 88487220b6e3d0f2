"""Case S2: a hundred crashes under load, and tokens that rise through all of them."""

import time

from support.connection import Connection
from support.protocol import Acquired, acquire_frame
from support.waiting import NeverAllowed, scaled
from support.wall_clock import WallClock

CRASHES = 100
GRANTS = 1000
AT_A_TIME = 20


def rising(previous, tokens, when):
    for token in tokens:
        if token <= previous:
            raise NeverAllowed(f"{when}: token {token} after {previous}")
        previous = token
    return previous


def batch(address, number):
    """Grants of as many locks, asked for together: in the order of their tokens, with nothing lost."""
    clients = [Connection(address) for _ in range(AT_A_TIME)]
    for index, client in enumerate(clients):
        client.send(acquire_frame(f"restart-{number}-{index}"))
    tokens = []
    for client in clients:
        tokens.append(client.expect_acquired())
    for client in clients:
        client.close()
    if len(set(tokens)) != len(tokens):
        raise NeverAllowed(f"a token twice: {sorted(tokens)}")
    return sorted(tokens)


def test_tokens_rise_through_a_hundred_crashes(start_server):
    server = start_server()
    address = server.address
    previous = 0
    grants = scaled(GRANTS, at_least=100)
    for crash in range(scaled(CRASHES, at_least=10)):
        # Held through the crash: an owner and a waiter that learn of it by the end of their streams.
        owner, waiter = server.owner("held"), server.waiter("held")
        for number in range(grants // AT_A_TIME):
            previous = rising(previous, batch(address, number), f"crash {crash}")
        under_load = [Connection(address) for _ in range(10)]
        for index, client in enumerate(under_load):
            client.send(acquire_frame(f"load-{index % 3}") + b"\x02" * 5)
        server.kill()
        for client in under_load:  # what was granted at the very end counts too
            while isinstance(frame := client.poll(), Acquired):
                previous = max(previous, frame.token)
            client.close()
        for client in (owner, waiter):
            client.expect_end()
            client.close()
        time.sleep(0.001)  # the bound that the contract states: a millisecond between the grants
        server.dispose()
        server = start_server(listen=f"{address[0]}:{address[1]}")


def test_tokens_rise_while_the_wall_clock_goes_back(start_server, tmp_path):
    clock = WallClock(tmp_path)
    server = start_server(env=clock.environment())
    previous = 0
    grants = scaled(GRANTS, at_least=100)
    for number in range(grants // AT_A_TIME):
        if number == grants // AT_A_TIME // 2:
            clock.shift(-3600)
        previous = rising(previous, batch(server.address, number), "with the clock an hour back")
