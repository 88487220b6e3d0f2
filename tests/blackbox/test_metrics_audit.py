"""The metrics equal what the audit log says: one replayed against the other after a random workload."""

import json
import random
from urllib.parse import quote

from support import audit
from support.http import fetch
from support.protocol import ENDS, HEARTBEAT_FRAME, Acquired, acquire_frame
from support.tls import HandshakeFailed
from support.tls_files import TlsFiles
from support.waiting import SLOWNESS, scaled, wait_until

LOCKS = ["db/a", "db/b", "db/c"]
RULES = [("worker-?", ["db/*"]), ("leaver", ["db/*"])]
CLIENTS_MAX = 24
STEPS = 200  # with each set of rules
IO_TIMEOUT = f"{round(400 * SLOWNESS)}ms"  # also of a handshake, each of which must come to its end


class Workload:
    """Random clients, an operator and strangers; it counts only what no record can tell."""

    def __init__(self, server, seed):
        self.server = server
        self.choose = random.Random(seed)
        self.clients = []
        self.failed_handshakes = 0

    def step(self):
        kinds = {self.claim: 8, self.leave: 5, self.be_denied: 1, self.fail_the_handshake: 1, self.operate: 3}
        (kind,) = self.choose.choices(list(kinds), list(kinds.values()))
        kind()
        for client in list(self.clients):
            while (frame := client.poll()) is not None:
                if isinstance(frame, ENDS):
                    self.clients.remove(client)
                    client.close()
                    break

    def claim(self):
        if len(self.clients) == CLIENTS_MAX:
            return
        who = self.choose.choice(["worker-1", "worker-2", "leaver"])
        client = self.server.connect(who=who)
        lease_ms = self.choose.choice([60_000, 60_000, 60_000, 80])  # some may not be heard of in time
        client.send(acquire_frame(self.choose.choice(LOCKS), lease_ms) + HEARTBEAT_FRAME * self.choose.randrange(3))
        self.clients.append(client)

    def leave(self):
        if not self.clients:
            return
        client = self.clients.pop(self.choose.randrange(len(self.clients)))
        how = self.choose.choice(["close", "vanish", "reset", "wrong"])
        if how == "wrong":
            client.send(b"\x7f")
            how = "close"
        getattr(client, how)()

    def be_denied(self):
        with self.server.connect(who="stranger") as client:
            client.acquire(self.choose.choice(LOCKS)).expect_refused(0x18)

    def fail_the_handshake(self):
        self.failed_handshakes += 1
        how = self.choose.randrange(3)
        if how == 0:
            with self.server.connect(handshake=False) as client:
                client.send_raw(b"GET / HTTP/1.1\r\n\r\n")
                client.fin()
        elif how == 1:
            self.server.connect(handshake=False).vanish()
        else:
            try:
                with self.server.connect(credentials=None) as client:
                    client.expect_alert()
            except HandshakeFailed:
                pass  # TLS 1.3 may tell before the client thinks it is done

    def operate(self):
        address, name = self.server.admin_address, quote(self.choose.choice(LOCKS), safe="")
        if self.choose.random() < 0.5:
            fetch(address, f"/api/locks/{name}/release", "POST")
            return
        shown = fetch(address, f"/api/locks/{name}")
        if shown.status == 200 and (waiters := json.loads(shown.text)["waiters"]):
            who = self.choose.choice(waiters)[self.choose.choice(["id", "remote_addr"])]
            fetch(address, f"/api/locks/{name}/waiters/{quote(str(who), safe='')}", "DELETE")

    def be_silent_and_deaf(self):
        """One is never heard of again, and one owns and never reads, until the I/O timeout."""
        silent, deaf = (self.server.connect(who="worker-1", receive_buffer=4096) for _ in range(2))
        silent.own("db/silent", 50)
        deaf.own("db/deaf")
        ended = lambda: self.server.metrics()["monolock_releases_total"].value(reason="io_timeout")
        while not ended():
            if deaf.send_available(HEARTBEAT_FRAME * 65536) is None:
                break
        deaf.vanish()
        silent.vanish()

    def end(self):
        for client in self.clients:
            client.close()


def test_the_numbers_are_those_of_the_log(start_server, threads, authority, tmp_path):
    log = tmp_path / "audit.log"
    files = TlsFiles(tmp_path, authority, rules=RULES)
    server = start_server(
        "-threads", threads, "-io-timeout", IO_TIMEOUT, "-audit-log", str(log),
        "-ops-listen", "127.0.0.1:0", "-admin-listen", "127.0.0.1:0", tls=files,
    )
    work = Workload(server, seed=int(threads))
    for rules in (RULES, RULES[:1]):  # half way somebody is not permitted any more
        files.permit(rules)
        server.reload_well()
        for _ in range(scaled(STEPS, at_least=100)):
            work.step()
    work.be_silent_and_deaf()
    work.end()
    wait_until(lambda: server.metrics()["monolock_connections_active"].value() == 0, "all sessions have ended")
    families = server.metrics()
    server.stop()

    records = audit.read(log)
    audit.check(records)
    samples = {key: value for family in families.values() for key, value in family.samples.items()}
    expected = audit.totals(records)
    assert {key: samples[key] for key in expected} == expected
    for name, key in (("wait", "wait_ms"), ("hold", "held_ms")):
        least, most = audit.seconds(records, key)
        assert least - 1e-6 <= samples[f"monolock_{name}_seconds_sum", ()] <= most + 1e-6
    assert samples["monolock_tls_handshake_errors_total", ()] == work.failed_handshakes
    kinds = {(record["event"], record.get("reason")) for record in records}
    assert kinds >= {("granted", None), ("denied", None), ("force_release", None)}
    assert kinds >= {("released", reason) for reason in audit.REASONS}, "not random enough"
