"""The ways from a group of workers to the server: beside it, over the relay, or over a cable."""

import json
import os
import subprocess
import threading

from support import netns

PORT = 7070
READY_WITHIN = 10


def program(variable):
    path = os.environ.get(variable)
    assert path, f"{variable} must name a program of tests/faults"
    return path


class Beside:
    """In the server's own namespace: nothing comes between."""

    near = True

    def __init__(self, server_side, number, seed):
        self.prefix = server_side.prefix
        self.server_address = f"127.0.0.1:{PORT}"

    def calm_down(self):
        pass

    def dispose(self):
        pass


class Relayed:
    """Over fault_relay, in a namespace of its own. Works on every machine with TUN."""

    near = False
    drains_within = 0  # seconds after a cut

    def __init__(self, server_side, number, seed, **usual):
        self._usual = usual
        self._lock = threading.Lock()
        self._side = netns.Namespace()
        device = f"relay{number}"
        self._relay = subprocess.Popen(
            [
                program("FAULT_RELAY_BIN"), "--seed", str(seed),
                f"{server_side.name}:{device}", f"{self._side.name}:{device}",
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._relay.stdout.readline() == "ready\n", "the relay does not start"
        here, there = f"10.78.{number}.2", f"10.78.{number}.1"
        for side, its, peer in ((server_side, there, here), (self._side, here, there)):
            side.run("ip", "addr", "add", its, "peer", peer, "dev", device)
            side.run("ip", "link", "set", device, "up")
        self.prefix = self._side.prefix
        self.server_address = f"{there}:{PORT}"
        self.become("both", **usual)

    def _command(self, line):
        with self._lock:
            self._relay.stdin.write(line + "\n")
            self._relay.stdin.flush()
            return self._relay.stdout.readline().strip()

    def become(self, which, **how):
        """`there` is from the server to the workers, `back` from them to it."""
        words = [which, *(f"{key}={value}" for key, value in how.items())]
        answer = self._command(" ".join(words))
        assert answer == "ok", answer

    def cut(self, which="both"):
        """What is under way that way is gone as well, once this returns."""
        self.become(which, **{**self._usual, "cut": 1})

    def mend(self):
        self.become("both", **self._usual)

    def calm_down(self):
        """Perfect, but for the delay."""
        self.become("both", delay_us=self._usual.get("delay_us", 0))

    def counts(self):
        return json.loads(self._command("counts"))

    def dispose(self):
        self._relay.stdin.close()
        self._relay.wait(READY_WITHIN)
        self._relay.stdout.close()
        self._side.remove()


class Wired:
    """Over a veth pair, whose packets nftables treats; `rate` is tbf's, both ways."""

    near = False

    def __init__(self, server_side, number, seed, loss_percent=0, rate=None):
        self._loss_percent = loss_percent
        self.drains_within = 0.25 if rate else 0  # tbf's queue lies behind nftables
        self._side = netns.Namespace()
        self._device = f"wire{number}"
        self._server_side = server_side
        netns.run(
            "ip", "link", "add", self._device, "netns", server_side.name, "type", "veth",
            "peer", "name", self._device, "netns", self._side.name,
        )  # fmt: skip
        here, there = f"10.77.{number}.2", f"10.77.{number}.1"
        for side, its in ((server_side, there), (self._side, here)):
            side.run("ip", "addr", "add", f"{its}/24", "dev", self._device)
            side.run("ip", "link", "set", self._device, "up")
            if rate:
                side.run(
                    "tc", "qdisc", "add", "dev", self._device, "root",
                    "tbf", "rate", rate, "burst", "3000", "latency", "200ms",
                )  # fmt: skip
        self.prefix = self._side.prefix
        self.server_address = f"{there}:{PORT}"
        self.mend()

    def _rules(self, incoming="", outgoing=""):
        """Of the workers' namespace, in one step."""
        loss = f"numgen random mod 100 < {self._loss_percent} drop" if self._loss_percent else ""
        self._side.run(
            "nft", "-f", "-",
            stdin="flush ruleset\ntable inet faults {\n"
            f"  chain in {{ type filter hook input priority 0;\n{incoming}\n{loss}\n }}\n"
            f"  chain out {{ type filter hook output priority 0;\n{outgoing}\n{loss}\n }}\n}}\n",
        )  # fmt: skip

    def cut(self, which="both"):
        """`there` is from the server to the workers, `back` from them to it."""
        drop = f'meta {{}}name "{self._device}" drop'
        self._rules(
            incoming=drop.format("iif") if which != "back" else "",
            outgoing=drop.format("oif") if which != "there" else "",
        )

    def reset(self, whom):
        """From now on whatever the server sends is answered to it with a RST ("server"), or whatever the
        workers send to them ("workers")."""
        reject = "tcp {}port %d reject with tcp reset" % PORT
        if whom == "server":
            self._rules(incoming=reject.format("s"))
        else:
            self._rules(outgoing=reject.format("d"))

    def mend(self):
        self._rules()

    def calm_down(self):
        self._loss_percent = 0
        self.mend()

    def dispose(self):
        self._side.remove()
