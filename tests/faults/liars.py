"""Proxies that lie: between workers and server, each breaks one promise. What the checkers must find."""

import asyncio
import collections
import struct
import threading

from faults.networks import PORT
from support.protocol import ACQUIRE, ACQUIRED, ERROR, HEARTBEAT, HEARTBEAT_FRAME, WAITING

CLOSED_BY_ADMINISTRATOR = 0x02
WAITING_FRAME = bytes([WAITING])


def acquired_frame(token):
    return struct.pack(">BQ", ACQUIRED, token)


class Client:
    """The worker's side of a connection."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.upstream = None


class Upstream:
    """The server's side. Its client may change."""

    def __init__(self, reader, writer, client, lock):
        self.reader = reader
        self.writer = writer
        self.client = client
        self.lock = lock
        self.was_told_waiting = False
        self.token = None
        self.heard_at = 0.0  # the last byte of the client
        self.unanswered = collections.deque(["client"])  # who sent each message: the client, or the liar

    def tell(self, frame):
        self.client.writer.write(frame)


class Proxy:
    """Honest in itself. `hears` may change what a client is told."""

    def __init__(self, namespace):
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._port = None
        self.links = []
        self._thread = threading.Thread(target=self._run, args=(namespace,))
        self._thread.start()
        assert self._listening.wait(10), "the proxy does not listen"

    @property
    def address(self):
        return f"127.0.0.1:{self._port}"

    def dispose(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, namespace):
        asyncio.set_event_loop(self._loop)
        with namespace.entered():
            server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
            self._port = server.sockets[0].getsockname()[1]
            self._listening.set()
            self._loop.run_forever()
            server.close()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0.01))
            self._loop.close()

    async def _serve(self, reader, writer):
        client = Client(reader, writer)
        try:
            head = await reader.readexactly(8)
            assert head[0] == ACQUIRE
            name = await reader.readexactly(struct.unpack(">H", head[6:])[0])
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", PORT)
            client.upstream = Upstream(up_reader, up_writer, client, name)
            self.links.append(client.upstream)
            up_writer.write(head + name)
            answers = asyncio.ensure_future(self._answers(client.upstream))
            self.begins(client.upstream)
            await self._heartbeats(client)
            client.upstream.writer.close()
            await answers
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            if client.upstream:
                client.upstream.writer.close()

    async def _heartbeats(self, client):
        while True:
            data = await client.reader.read(100)
            assert set(data) <= {HEARTBEAT}
            if not data:
                return
            client.upstream.heard_at = self._loop.time()
            client.upstream.unanswered.extend(["client"] * len(data))
            client.upstream.writer.write(data)

    async def _answers(self, upstream):
        try:
            while True:
                kind = (await upstream.reader.readexactly(1))[0]
                if kind == WAITING:
                    upstream.was_told_waiting = True
                    await self._answer(upstream, WAITING_FRAME)
                elif kind == ACQUIRED:
                    (token,) = struct.unpack(">Q", await upstream.reader.readexactly(8))
                    is_push = upstream.was_told_waiting and upstream.token is None
                    upstream.token = token
                    if is_push:
                        await self.pushed(upstream)
                    else:
                        await self._answer(upstream, acquired_frame(self.token_of(upstream)))
                else:
                    assert kind == ERROR
                    code, length = await upstream.reader.readexactly(2)
                    reason = await upstream.reader.readexactly(length)
                    upstream.tell(bytes([ERROR, code, length]) + reason)
        except (OSError, asyncio.IncompleteReadError):
            pass
        self.links.remove(upstream)
        await self.ends(upstream)

    async def _answer(self, upstream, frame):
        if upstream.unanswered.popleft() == "client":
            await self.answers(upstream, frame)

    # --- where a liar lies

    def begins(self, upstream):
        """The ACQUIRE was handed on."""

    def token_of(self, upstream):
        return upstream.token

    async def answers(self, upstream, frame):
        upstream.tell(frame)

    async def pushed(self, upstream):
        upstream.tell(acquired_frame(self.token_of(upstream)))

    async def ends(self, upstream):
        """The server has closed."""
        upstream.client.writer.close()


class Swapper(Proxy):
    """Gives the turn of the head of a queue to somebody behind it."""

    async def pushed(self, upstream):
        behind = [
            other
            for other in self.links
            if other.lock == upstream.lock and other.was_told_waiting and other.token is None and not other.unanswered
        ]
        if behind and not upstream.unanswered:
            other = behind[-1]
            upstream.client, other.client = other.client, upstream.client
            upstream.client.upstream, other.client.upstream = upstream, other
        await super().pushed(upstream)


class Hasty(Proxy):
    """Tells a waiter after a while that it owns the lock, whatever the server says."""

    def token_of(self, upstream):
        return getattr(upstream, "forged", upstream.token)

    async def answers(self, upstream, frame):
        if frame == WAITING_FRAME and not hasattr(upstream, "forged"):
            upstream.tell(frame)
            self._loop.call_later(0.03, self._forge, upstream)
        else:
            upstream.tell(acquired_frame(self.token_of(upstream)))

    def _forge(self, upstream):
        owners = [other.token for other in self.links if other.lock == upstream.lock and other.token]
        if upstream.token is None and owners:
            upstream.forged = max(owners) + 1_000_000_000
            upstream.tell(acquired_frame(upstream.forged))

    async def pushed(self, upstream):
        if not hasattr(upstream, "forged"):
            await super().pushed(upstream)


class Falling(Proxy):
    """Each third token is an old one."""

    _count = 0

    def token_of(self, upstream):
        if not hasattr(upstream, "told"):
            Falling._count += 1
            upstream.told = upstream.token - (1_000_000_000 if Falling._count % 3 == 0 else 0)
        return upstream.told


class Doubling(Proxy):
    """Each third token was somebody's before."""

    _count = 0
    _last = None

    def token_of(self, upstream):
        if not hasattr(upstream, "told"):
            Doubling._count += 1
            upstream.told = Doubling._last if Doubling._count % 3 == 0 else upstream.token
            Doubling._last = upstream.token
        return upstream.told


class Slow(Proxy):
    """Keeps each promotion to itself for a while."""

    async def pushed(self, upstream):
        await asyncio.sleep(0.25)
        await super().pushed(upstream)


class Traitor(Proxy):
    """Closes an owner's session with the server, and goes on answering its client."""

    async def pushed(self, upstream):
        await super().pushed(upstream)
        upstream.writer.close()

    async def ends(self, upstream):
        if upstream.token is None:
            await super().ends(upstream)


class Forgetful(Proxy):
    """Every waiter but the first of its lock loses its place, and is not told."""

    async def answers(self, upstream, frame):
        await super().answers(upstream, frame)
        waiting = [other for other in self.links if other.lock == upstream.lock and other.was_told_waiting]
        if frame == WAITING_FRAME and len(waiting) > 1:
            upstream.writer.close()
            upstream.is_forgotten = True

    async def ends(self, upstream):
        if not hasattr(upstream, "is_forgotten"):
            await super().ends(upstream)
        while hasattr(upstream, "is_forgotten") and not upstream.client.reader.at_eof():
            await asyncio.sleep(0.005)
            while upstream.unanswered:
                upstream.unanswered.popleft()
                upstream.tell(WAITING_FRAME)


class Babbling(Proxy):
    """Says to each owner what no server says."""

    async def pushed(self, upstream):
        await super().pushed(upstream)
        upstream.tell(b"\x7f")


class Denouncing(Proxy):
    """Tells each owner of an operator who was not there."""

    async def pushed(self, upstream):
        await super().pushed(upstream)
        upstream.tell(bytes([ERROR, CLOSED_BY_ADMINISTRATOR, 0]))
        upstream.client.writer.close()


class Keeper(Proxy):
    """Beats for its clients for a while after they have fallen silent."""

    SECONDS = 0.6

    def begins(self, upstream):
        upstream.heard_at = self._loop.time()
        asyncio.ensure_future(self._keep(upstream))

    async def _keep(self, upstream):
        while not upstream.writer.is_closing():
            await asyncio.sleep(0.02)
            keeps = self._loop.time() < upstream.heard_at + self.SECONDS
            if upstream.token and keeps and not upstream.unanswered:
                upstream.unanswered.append("liar")
                upstream.writer.write(HEARTBEAT_FRAME)


class Breaking(Proxy):
    """Hangs up on owners."""

    async def pushed(self, upstream):
        await super().pushed(upstream)
        upstream.client.writer.close()
