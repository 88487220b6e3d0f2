"""examples/asio_service: everybody answers, one is on duty."""

import signal
import socket

from programs import LEASE_MS, address, binary
from support.waiting import wait_until


class Service:
    def __init__(self, start, server):
        self.program = start(binary("example_service"), address(server), "0", str(LEASE_MS))
        self.port = int(self.program.wait_line(r"listening on (\d+)")[1])

    def state(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as asked:
            return asked.makefile().readline().strip()

    def token(self):
        """Waits until it is on duty."""
        return int(wait_until(lambda: "token" in (said := self.state()) and said, "it is on duty").split()[-1])


def test_one_is_on_duty_and_another_follows(server, start):
    first = Service(start, server)
    before = first.token()
    second, third = Service(start, server), Service(start, server)
    assert (second.state(), third.state()) == ("standby", "standby")
    assert first.program.stop() == 0
    wait_until(lambda: {second.state(), third.state()} != {"standby"}, "somebody is on duty")
    on_duty, standby = (second, third) if second.state() != "standby" else (third, second)
    assert on_duty.token() > before
    on_duty.program.signal(signal.SIGSTOP)
    follows = standby.token()
    on_duty.program.signal(signal.SIGCONT)
    wait_until(lambda: on_duty.state() == "standby", "it knows that it was frozen")
    assert standby.token() == follows
    assert on_duty.program.stop() == 0
    assert standby.program.stop() == 0


def test_it_answers_and_tries_again_while_the_server_is_away(server, start):
    one = Service(start, server)
    one.token()
    server.kill()
    wait_until(lambda: one.state() == "standby", "it knows that its lock is lost")
    assert one.program.stop() == 0


def test_a_wrong_port_is_said(start):
    for port in ("abc", "-1", "99999", "80x"):
        wrong = start(binary("example_service"), "127.0.0.1:1", port)
        assert wrong.wait() == 2 and "usage:" in wrong.stderr()
