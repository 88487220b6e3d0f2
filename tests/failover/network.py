"""Several machines on one network: a namespace each, joined by a bridge in one more, and cuts between any two.

Needs root, iproute2 and nftables, as scripts/setup installs them.
"""

import threading

from support import netns


class Machine:
    """A namespace with an address. Packets from and to others can be made to vanish, each way by itself."""

    def __init__(self, network, number):
        self._side = netns.Namespace()
        self.address = f"10.79.0.{number}"
        self._dropped = set()  # ("saddr" or "daddr", address)
        self._lock = threading.Lock()
        netns.run(
            "ip", "link", "add", "eth0", "netns", self._side.name, "type", "veth",
            "peer", "name", f"port{number}", "netns", network.name,
        )  # fmt: skip
        network.run("ip", "link", "set", f"port{number}", "master", "bridge", "up")
        self._side.run("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self._side.run("ip", "link", "set", "eth0", "up")

    @property
    def prefix(self):
        """Goes before a command that shall run there; it execs."""
        return self._side.prefix

    def entered(self):
        """Sockets made by this thread in the block belong there for good."""
        return self._side.entered()

    def write_etc(self, name, text):
        """As netns.Namespace.write_etc."""
        self._side.write_etc(name, text)

    def hear_not(self, *others):
        """What they send does not arrive here."""
        self._drop(("saddr", other.address) for other in others)

    def reach_not(self, *others):
        """What is sent from here does not arrive there."""
        self._drop(("daddr", other.address) for other in others)

    def cut(self, *others):
        self.hear_not(*others)
        self.reach_not(*others)

    def mend(self):
        with self._lock:
            self._dropped.clear()
            self._apply()

    def _drop(self, rules):
        with self._lock:
            self._dropped.update(rules)
            self._apply()

    def _apply(self):
        def chain(hook, side):
            rules = "".join(f"ip {side} {address} drop\n" for kind, address in self._dropped if kind == side)
            return f"chain {hook} {{ type filter hook {hook} priority 0;\n{rules} }}\n"

        self._side.run(
            "nft", "-f", "-",
            stdin=f"flush ruleset\ntable inet cuts {{\n{chain('input', 'saddr')}{chain('output', 'daddr')}}}\n",
        )  # fmt: skip

    def remove(self):
        self._side.remove()


class Network:
    def __init__(self):
        self._bridge = netns.Namespace()
        self._bridge.run("ip", "link", "add", "bridge", "type", "bridge")
        self._bridge.run("ip", "link", "set", "bridge", "up")
        self._machines = []

    def machine(self):
        """One more."""
        made = Machine(self._bridge, len(self._machines) + 1)
        self._machines.append(made)
        return made

    def remove(self):
        for machine in self._machines:
            machine.remove()
        self._bridge.remove()
