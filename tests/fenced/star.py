"""A server's network namespace with a cable to each of several clients' ones, each of which can be cut."""

import itertools

from support.netns import Namespace, run

PORT = 7070


class Ray:
    """A client side."""

    _numbers = itertools.count(1)

    def __init__(self, server_side):
        number = next(self._numbers)
        self.side = Namespace()
        self.server_address = f"10.78.{number}.1"
        run(
            "ip", "link", "add", f"ray{number}", "netns", server_side.name, "type", "veth",
            "peer", "name", "cable", "netns", self.side.name,
        )  # fmt: skip
        for namespace, device, address in (
            (server_side, f"ray{number}", self.server_address),
            (self.side, "cable", f"10.78.{number}.2"),
        ):
            namespace.run("ip", "addr", "add", f"{address}/24", "dev", device)
            namespace.run("ip", "link", "set", device, "up")

    @property
    def prefix(self):
        return self.side.prefix

    @property
    def address(self):
        """Of the server, seen from here."""
        return f"{self.server_address}:{PORT}"

    def cut(self):
        """Packets vanish both ways, and nobody is told."""
        self.side.drop_packets('meta iifname "cable"', 'meta oifname "cable"')

    def mend(self):
        self.side.pass_packets()


class Star:
    def __init__(self, rays):
        self.server_side = Namespace()
        self.rays = [Ray(self.server_side) for _ in range(rays)]

    @property
    def prefix(self):
        """Of the server's side."""
        return self.server_side.prefix

    @property
    def address(self):
        """Of the server, seen from its own side."""
        return f"127.0.0.1:{PORT}"

    def remove(self):
        for side in [self.server_side, *(ray.side for ray in self.rays)]:
            side.remove()
