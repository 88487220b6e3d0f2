"""-admin-listen: who has what, and ending exactly that claim (cases H1 to H4)."""

import json
import os
import re
import resource
import select
import signal
import stat
import threading
import time
from urllib.parse import quote

import pytest

from support import audit
from support.http import HttpConnection, fetch, refuses
from support.protocol import SHUTTING_DOWN
from support.waiting import stays_true, wait_until

ADMIN = ("-admin-listen", "127.0.0.1:0")
CLOSED = 0x02
STREAMS_MAX = 8
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NAMES = ["a/b", "a b", "a+b", "ü", "a?b#c", "%", "%2F", ".", "..", "x\n\"\\\0y", "n" * 255]


@pytest.fixture
def managed(start_server, threads):
    return start_server("-threads", threads, *ADMIN)


def ask(server, target, method="GET", expect=200, **options):
    answer = fetch(server.admin_address, target, method=method, **options)
    assert answer.status == expect, (method, target, answer)
    assert answer.value("Content-Type") == "application/json"
    return json.loads(answer.text)


def path(name):
    return "/api/locks/" + quote(name, safe="")


# --- what is there


def test_off_unless_configured(start_server):
    server = start_server()
    assert not [record for record in server.records() if "admin" in record["msg"]]


def test_info(start_server):
    server = start_server(*ADMIN, "-threads", "2", "-io-timeout", "1500ms")
    with server.owner("one"), server.waiter("one"):
        # Counted once the answer is on its way.
        wait_until(lambda: ask(server, "/api/info")["sessions"] == 2, "both are counted")
        info = ask(server, "/api/info")
    assert info["locks"] == 1 and info["sessions"] == 2 and info["uptime_ms"] >= 0
    assert re.fullmatch(r"\d+\.\d+\.\d+", info["version"])
    host, port = server.address
    assert info["config"] == {
        "listen": f"{host}:{port}", "ops_listen": "", "admin_listen": "{}:{}".format(*server.admin_address),
        "tls": False, "mtls": False, "acl_file": "", "audit_log": "", "io_timeout_ms": 1500, "threads": 2,
    }


def test_how_the_server_fares(start_server, tmp_path):
    """What the operator's page says first: the state, what is counted, and how the last reload went."""
    audit_file = tmp_path / "audit" / "log"
    audit_file.parent.mkdir()
    server = start_server(*ADMIN, "-audit-log", str(audit_file))
    owner, heir = server.owner("one"), server.waiter("one")
    owner.close()
    heir.expect_acquired()
    stranger = server.connect()
    stranger.send(b"\x7f")
    stranger.expect_error(0x13)
    stranger.close()

    def counted():
        totals = ask(server, "/api/info")["totals"]
        return totals if totals["handovers"] == 1 and totals["client_errors"] == 1 else None

    totals = wait_until(counted, "all is counted")
    assert totals | {"connections": 0} == {
        "grants": 2, "handovers": 1, "heartbeats": 0, "connections": 0, "client_errors": 1, "acl_denials": 0,
        "ends": {"graceful": 1, "expired": 0, "io_timeout": 0, "force": 0}, "accept_errors": 0,
        "tls_handshake_errors": 0, "audit_lost_events": 0,
    }
    assert totals["connections"] >= 3
    info = ask(server, "/api/info")
    assert info["state"] == "serving" and info["waiters"] == 0 and info["reload"] is None
    assert info["sessions_max"] > 100
    server.signal(signal.SIGHUP)
    reload = wait_until(lambda: ask(server, "/api/info")["reload"], "the reload is told")
    assert RFC3339.fullmatch(reload["at"]) and reload["failed"] == []
    audit_file.unlink()
    audit_file.parent.rmdir()
    server.signal(signal.SIGHUP)
    wait_until(lambda: ask(server, "/api/info")["reload"]["failed"] == ["audit"], "its failure is told")
    heir.close()


def test_a_lock_with_its_queue(managed):
    token_of = managed.connect()
    token = token_of.own("nightly", 60_000)
    waiters = [managed.waiter("nightly", 30_000) for _ in range(3)]
    lock = ask(managed, "/api/locks/nightly")
    assert set(lock) == {"name", "holder", "waiters", "waiters_total"}
    holder = lock["holder"]
    assert set(holder) == {"id", "identity", "remote_addr", "since", "held_ms", "silent_ms", "lease_ms", "token"}
    assert holder["token"] == token and holder["lease_ms"] == 60_000 and holder["identity"] == ""
    assert holder["remote_addr"] == f"127.0.0.1:{token_of.local_port}"
    assert RFC3339.fullmatch(holder["since"]) and holder["held_ms"] >= 0 and holder["silent_ms"] >= 0
    assert [waiter["remote_addr"] for waiter in lock["waiters"]] == [f"127.0.0.1:{w.local_port}" for w in waiters]
    for waiter in lock["waiters"]:
        assert set(waiter) == {"id", "identity", "remote_addr", "queued_at", "waited_ms", "lease_ms"}
        assert RFC3339.fullmatch(waiter["queued_at"]) and waiter["waited_ms"] >= 0
    ids = [claim["id"] for claim in [holder, *lock["waiters"]]]
    assert len(set(ids)) == 4
    assert ask(managed, "/api/lock?name=nightly")["holder"]["id"] == holder["id"]
    token_of.close()
    waiters[0].expect_acquired()
    assert ask(managed, "/api/locks/nightly")["holder"]["id"] == ids[1]
    for waiter in waiters:
        waiter.close()
    wait_until(lambda: fetch(managed.admin_address, "/api/locks/nightly").status == 404, "the lock is gone")


def test_a_listing_is_sorted_filtered_and_bounded(managed):
    owners = [managed.owner(name) for name in ["b", "a", "B", "a/x", "ü"]]
    waiters = [managed.waiter("a") for _ in range(103)]
    locks = ask(managed, "/api/locks")["locks"]
    assert [lock["name"] for lock in locks] == sorted(["b", "a", "B", "a/x", "ü"], key=str.encode)
    (crowded,) = [lock for lock in locks if lock["name"] == "a"]
    assert crowded["waiters_total"] == 103 and len(crowded["waiters"]) == 100
    assert len(ask(managed, "/api/locks/a")["waiters"]) == 103
    assert [lock["name"] for lock in ask(managed, "/api/locks?match=a*")["locks"]] == ["a", "a/x"]
    assert [lock["name"] for lock in ask(managed, "/api/locks?match=" + quote("?"))["locks"]] == ["B", "a", "b", "ü"]
    assert ask(managed, "/api/locks?match=nothing") == {"locks": []}
    for client in owners + waiters:
        client.close()


def test_a_window_is_sorted_as_asked_and_counts_all(managed):
    """For a screen: so many locks of all that match, the longest queues or the longest holds first."""
    owners, waiters = [], []
    for name, queue in [("w/a", 1), ("w/b", 3), ("w/c", 0), ("w/d", 3), ("other", 9)]:
        owners.append(managed.owner(name))
        waiters += [managed.waiter(name) for _ in range(queue)]

    def shown(parameters):
        answer = ask(managed, "/api/locks?" + parameters)
        assert set(answer) == {"locks", "total"}
        return [lock["name"] for lock in answer["locks"]], answer["total"]

    assert shown("sort=waiters&match=w*") == (["w/b", "w/d", "w/a", "w/c"], 4)
    assert shown("sort=held&match=w*") == (["w/a", "w/b", "w/c", "w/d"], 4)
    assert shown("sort=waiters&limit=2") == (["other", "w/b"], 5)
    assert shown("sort=waiters&limit=2&from=2") == (["w/d", "w/a"], 5)
    assert shown("sort=name&from=4") == (["w/d"], 5)
    assert shown("sort=name&from=5") == ([], 5)
    (crowded,) = ask(managed, "/api/locks?sort=waiters&limit=1&waiters=2")["locks"]
    assert len(crowded["waiters"]) == 2 and crowded["waiters_total"] == 9
    ask(managed, "/api/locks?sort=name&after=a", expect=400)
    ask(managed, "/api/locks?waiters=0", expect=400)
    for client in owners + waiters:
        client.close()


def test_the_first_of_a_long_queue(managed):
    owner, waiters = managed.owner("long"), [managed.waiter("long") for _ in range(300)]
    for wanted in (0, 2, 300, 999):
        lock = ask(managed, f"/api/lock?name=long&waiters={wanted}")
        assert lock["waiters_total"] == 300 and len(lock["waiters"]) == min(300, wanted)
    assert lock["waiters"][0]["remote_addr"] == f"127.0.0.1:{waiters[0].local_port}"
    for client in [owner, *waiters]:
        client.close()


def test_pages_are_of_one_listing(managed):
    owners = {f"lock-{index:02}/": managed.owner(f"lock-{index:02}/") for index in range(25)}
    page = ask(managed, "/api/locks?limit=10&match=lock-*")
    found = [lock["name"] for lock in page["locks"]]
    owners.pop("lock-24/").close()
    late = managed.owner("lock-15x")
    while "next" in page:
        for other in range(5):  # whatever others list
            ask(managed, f"/api/locks?limit=1&match={other}*")
        page = ask(managed, page["next"])
        assert len(page["locks"]) <= 10
        found += [lock["name"] for lock in page["locks"]]
    assert found == [f"lock-{index:02}/" for index in range(25)]
    again = ask(managed, "/api/locks?limit=10&match=lock-*&after=" + quote("lock-09/", safe=""))
    assert [lock["name"] for lock in again["locks"]] == found[10:20]
    ask(managed, "/api/locks?limit=1&snapshot=999999", expect=404)
    for client in [late, *owners.values()]:
        client.close()


def test_a_long_listing_arrives_whole(managed):
    names = [f"{'x' * 200}-{index}" for index in range(400)]
    owners = [managed.owner(name) for name in names]
    assert [lock["name"] for lock in ask(managed, "/api/locks")["locks"]] == sorted(names)
    answer = fetch(managed.admin_address, "/api/locks", version="1.0")
    assert not answer.values("Transfer-Encoding") and len(json.loads(answer.text)["locks"]) == 400
    for owner in owners:
        owner.close()


def test_a_unix_peer_and_a_unix_socket(start_server, tmp_path):
    admin = tmp_path / "admin.sock"
    server = start_server("-admin-listen", f"unix:{admin}", listen=f"unix:{tmp_path}/m.sock")
    assert stat.S_IMODE(os.stat(admin).st_mode) == 0o660
    with server.owner("local"):
        answer = fetch(str(admin), "/api/locks/local", fields=[("Host", "anything")])
        assert json.loads(answer.text)["holder"]["remote_addr"] == f"unix:pid={os.getpid()},uid={os.getuid()}"


def test_no_page_uses_a_unix_socket_through_ssh_and_a_browser(start_server, tmp_path):
    """The operator's own page does."""
    admin = tmp_path / "admin.sock"
    server = start_server("-admin-listen", f"unix:{admin}")
    here = [("Host", "localhost:9091"), ("User-Agent", "Mozilla/5.0"), ("Sec-Fetch-Site", "same-origin")]
    with server.owner("guarded") as owner:
        for fields in ([("Host", "evil.example:9091"), ("User-Agent", "Mozilla/5.0")],
                       [("Host", "localhost:9091"), ("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")],
                       [("Host", "localhost:9091"), ("Origin", "null")],
                       [("Host", "evil.example"), ("Sec-Fetch-Site", "same-origin")]):
            for target in ("/", "/api/info"):
                assert fetch(str(admin), target, fields=fields).status == 403
            assert fetch(str(admin), "/api/lock/release?name=guarded", method="POST", fields=fields).status == 403
        owner.heartbeat().expect_acquired()
        assert fetch(str(admin), "/", fields=here).status == 200
        released = fetch(str(admin), "/api/lock/release?name=guarded", method="POST",
                         fields=[*here, ("Origin", "http://localhost:9091")])
        assert released.status == 200


def test_who_reaches_it_from_elsewhere_is_warned_about(start_server):
    warned = lambda server: [record for record in server.records() if record["level"] == "warn"]
    assert not warned(start_server(*ADMIN))
    assert len(warned(start_server("-admin-listen", "0.0.0.0:0"))) == 1


# --- H4: names


def test_every_name_by_its_encoded_form(managed):
    owners = [managed.owner(name) for name in NAMES]
    assert sorted(lock["name"] for lock in ask(managed, "/api/locks")["locks"]) == sorted(NAMES)
    for name in NAMES:
        assert ask(managed, path(name))["name"] == name
        assert ask(managed, "/api/lock?name=" + quote(name, safe=""))["name"] == name
    for owner in owners:
        owner.close()


@pytest.mark.parametrize("target", ["/api/locks/%zz", "/api/locks/%0", "/api/locks/%", "/api/lock?name=%zz"])
def test_escapes_that_are_none(managed, target):
    ask(managed, target, expect=400)


def test_a_name_is_decoded_once(managed):
    with managed.owner("a b"), managed.owner("a/b"):
        for target in ["/api/locks/a+b", "/api/lock?name=a+b", "/api/locks/a%252Fb", "/api/locks/a/b"]:
            ask(managed, target, expect=404)


# --- H1, H2: ending a claim


def test_a_forced_out_owner_is_told_before_the_next_is_granted(managed):
    """When the next one can read its grant the ERROR is with the old one already."""
    owner = managed.connect()
    token = owner.own("forced")
    for _ in range(20):
        waiter = managed.waiter("forced")
        ended = ask(managed, "/api/locks/forced/release", method="POST")
        assert ended["token"] == token and ended["name"] == "forced"
        assert select.select([waiter], [], [], 1)[0], "nobody is granted"
        owner.expect_error(CLOSED, within=0)
        owner.expect_eof()
        token = waiter.expect_acquired()
        owner.close()
        owner = waiter
    owner.close()
    wait_until(lambda: fetch(managed.admin_address, "/api/locks/forced").status == 404, "gone")
    ask(managed, "/api/locks/forced/release", method="POST", expect=404)


def test_a_stale_token_touches_nobody(managed):
    with managed.connect() as owner:
        token = owner.own("guarded")
        answer = ask(managed, f"/api/lock/release?name=guarded&token={token - 1}", method="POST", expect=409)
        assert answer["holder"]["token"] == token and answer["error"]
        owner.heartbeat().expect_acquired(token)
        ask(managed, f"/api/lock/release?name=guarded&tokn={token}", method="POST", expect=400)
        owner.heartbeat().expect_acquired(token)
        ask(managed, f"/api/lock/release?name=guarded&token={token}", method="POST")
        owner.expect_refused(CLOSED)


def test_of_two_releases_with_one_token_one_wins(managed):
    for round_number in range(10):
        name = f"raced-{round_number}"
        owner = managed.connect()
        token = owner.own(name)
        heir = managed.waiter(name)
        statuses = []
        target = f"{path(name)}/release?token={token}"
        racers = [
            threading.Thread(target=lambda: statuses.append(fetch(managed.admin_address, target, "POST").status))
            for _ in range(2)
        ]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        assert sorted(statuses) == [200, 409]
        heir.expect_acquired()
        heir.heartbeat().expect_acquired()
        heir.close()
        owner.close()


def test_a_kicked_waiter_leaves_and_the_rest_keep_their_order(managed):
    owner = managed.owner("queue")
    waiters = [managed.waiter("queue") for _ in range(4)]
    lock = ask(managed, "/api/locks/queue")
    by_id = ask(managed, f"/api/locks/queue/waiters/{lock['waiters'][2]['id']}", method="DELETE")
    assert by_id["remote_addr"] == f"127.0.0.1:{waiters[2].local_port}"
    waiters[2].expect_refused(CLOSED)
    address = quote(f"127.0.0.1:{waiters[0].local_port}", safe="")
    ask(managed, f"/api/locks/queue/waiters/{address}", method="DELETE")
    waiters[0].expect_refused(CLOSED)
    ask(managed, f"/api/locks/queue/waiters/{lock['holder']['id']}", method="DELETE", expect=404)
    ask(managed, f"/api/lock/waiter?name=none&id={lock['holder']['id']}", method="DELETE", expect=404)
    owner.close()
    waiters[1].expect_acquired()
    waiters[3].expect_silence(0.05)
    for waiter in waiters:
        waiter.close()


def test_by_an_address_in_the_query(managed):
    with managed.owner("asked"), managed.waiter("asked") as waiter, managed.waiter("asked") as behind:
        address = quote(f"127.0.0.1:{waiter.local_port}", safe="")
        ended = ask(managed, f"/api/lock/waiter?name=asked&id={address}", method="DELETE")
        assert ended["remote_addr"] == f"127.0.0.1:{waiter.local_port}" and ended["name"] == "asked"
        waiter.expect_refused(CLOSED)
        ask(managed, f"/api/lock/waiter?name=asked&id={address}", method="DELETE", expect=404)
        behind.heartbeat().expect_waiting()


def test_a_process_that_waits_twice_is_named_by_its_ids(start_server, tmp_path):
    """Over a Unix socket both have one address: who is meant must be said."""
    server = start_server(*ADMIN, listen=f"unix:{tmp_path}/m.sock")
    with server.owner("local"), server.waiter("local") as first, server.waiter("local") as second:
        peer = quote(f"unix:pid={os.getpid()},uid={os.getuid()}", safe="")
        ask(server, f"/api/locks/local/waiters/{peer}", method="DELETE", expect=409)
        waiters = ask(server, "/api/locks/local")["waiters"]
        ask(server, f"/api/locks/local/waiters/{waiters[0]['id']}", method="DELETE")
        first.expect_refused(CLOSED)
        ask(server, f"/api/locks/local/waiters/{peer}", method="DELETE")
        second.expect_refused(CLOSED)


def test_what_an_operator_ends_is_recorded(start_server, threads, tmp_path):
    """The order to end a claim stands before its end, and that before the next grant."""
    log = tmp_path / "audit.log"
    server = start_server("-threads", threads, "-audit-log", str(log), *ADMIN)
    owner = server.connect()
    token = owner.own("recorded")
    kicked, heir = server.waiter("recorded"), server.waiter("recorded")
    address = {client: f"127.0.0.1:{client.local_port}" for client in (owner, kicked, heir)}
    ask(server, f"/api/locks/recorded/waiters/{quote(address[kicked], safe='')}", method="DELETE")
    ask(server, f"/api/locks/recorded/release?token={token + 1}", method="POST", expect=409)
    ask(server, f"/api/locks/recorded/release?token={token}", method="POST")
    next_token = heir.expect_acquired()
    for client in address:
        client.close()
    server.stop()
    told = [
        (record["event"], record["remote_addr"], record.get("token"), record.get("reason"))
        for record in audit.read(log)
    ]
    assert told == [
        ("granted", address[owner], token, None),
        ("kick_waiter", address[kicked], None, None),
        ("force_release", address[owner], token, None),
        ("released", address[owner], token, "force"),
        ("granted", address[heir], next_token, None),
        ("released", address[heir], next_token, "graceful"),
    ]


# --- H3: who may ask


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost:9", "[::1]:9", "LOCALHOST"])
def test_hosts_that_are_ours(managed, host):
    ask(managed, "/api/info", fields=[("Host", host)])


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", None, "localhost.evil:1"])
def test_foreign_hosts_are_refused(managed, host):
    ask(managed, "/api/info", fields=[("Host", host)], expect=403)


def test_two_hosts_are_refused(managed):
    ask(managed, "/api/info", fields=[("Host", "localhost"), ("Host", "localhost")], expect=403)


def test_the_host_that_a_target_names_counts(managed):
    ask(managed, "http://localhost:9091/api/info", fields=[("Host", "evil.example")])
    for authority in ["evil.example", "localhost@evil.example", "localhost:9091@evil.example"]:
        ask(managed, f"http://{authority}/api/info", fields=[("Host", "localhost")], expect=403)
    ask(managed, "http://localhost/api/info", fields=[("Host", "localhost"), ("Host", "localhost")], expect=403)
    own_page = [("Host", "localhost:1"), ("Origin", "http://localhost:1")]
    ask(managed, "http://localhost:1/api/info", fields=own_page)
    ask(managed, "http://localhost:2/api/info", fields=own_page, expect=403)
    ask(managed, "https://localhost/api/info", expect=400)


def test_a_configured_host_is_ours(start_server):
    server = start_server("-admin-listen", "localhost:0")
    ask(server, "/api/info", fields=[("Host", "localhost:1")])


FOREIGN = {
    "origin": ("Origin", "http://evil.example"),
    "null": ("Origin", "null"),
    "another local port": ("Origin", "http://127.0.0.1:1"),
    "https": ("Origin", "https://127.0.0.1:9091"),
    "cross-site": ("Sec-Fetch-Site", "cross-site"),
    "same-site": ("Sec-Fetch-Site", "same-site"),
}


@pytest.mark.parametrize("field", FOREIGN.values(), ids=FOREIGN.keys())
@pytest.mark.parametrize("method, target", [("GET", "/api/locks"), ("POST", "/api/locks/kept/release")])
def test_other_pages_are_refused(managed, field, method, target):
    with managed.owner("kept") as owner:
        ask(managed, target, method=method, fields=[("Host", "127.0.0.1:9091"), field], expect=403)
        owner.heartbeat().expect_acquired()


def test_our_own_page_may(managed):
    ask(managed, "/api/info", fields=[("Host", "localhost:9"), ("Origin", "http://localhost:9"),
                                      ("Sec-Fetch-Site", "same-origin")])


def test_the_page_is_for_its_own_origin_alone(managed):
    """What the browser is told of it, and that it is guarded like every call (tests/page has the rest)."""
    page = fetch(managed.admin_address, "/")
    assert page.status == 200 and page.value("Content-Type") == "text/html; charset=utf-8"
    policy = page.value("Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert page.value("X-Content-Type-Options") == "nosniff" and page.value("X-Frame-Options") == "DENY"
    assert page.value("Referrer-Policy") == "no-referrer" and page.value("Cache-Control") == "no-store"
    files = re.findall(r'(?:src|href)="(page/[^"]*)"', page.text)
    assert len(files) >= 4
    for file in files:
        assert fetch(managed.admin_address, f"/{file}").status == 200
    for target in ["/", "/page/main.js"]:
        assert fetch(managed.admin_address, target, method="POST").status == 405
        for fields in [("Host", "evil.example")], [("Sec-Fetch-Site", "cross-site")], [("Origin", "null")]:
            refused = fetch(managed.admin_address, target, fields=fields)
            assert refused.status == 403 and refused.value("Content-Type") == "application/json"
    assert fetch(managed.admin_address, "/", method="HEAD").value("Content-Length") == str(len(page.body))


def test_no_answer_invites_other_pages(managed):
    for target in ["/api/info", "/api/locks", "/api/nothing"]:
        answer = fetch(managed.admin_address, target)
        assert not [name for name, _ in answer.fields if name.startswith("access-control-")]
        assert "frame-ancestors 'none'" in answer.value("Content-Security-Policy")
        assert answer.value("Cross-Origin-Resource-Policy") == "same-origin"


def test_methods_are_told(managed):
    for method, target, allowed in [
        ("POST", "/api/locks", "GET, HEAD"), ("GET", "/api/locks/x/release", "POST"),
        ("POST", "/api/lock/waiter?name=x&id=1", "DELETE"), ("OPTIONS", "/api/info", "GET, HEAD"),
    ]:
        answer = fetch(managed.admin_address, target, method=method)
        assert answer.status == 405 and answer.value("Allow") == allowed and json.loads(answer.text)["error"]


def test_get_changes_nothing(managed):
    with managed.owner("unchanged") as owner, managed.waiter("unchanged") as waiter:
        for target in ["/api/locks/unchanged/release", "/api/lock/release?name=unchanged",
                       "/api/locks/unchanged/waiters/2", "/api/locks", "/api/locks/unchanged"]:
            fetch(managed.admin_address, target)
            fetch(managed.admin_address, target, method="HEAD")
        owner.heartbeat().expect_acquired()
        waiter.heartbeat().expect_waiting()


# --- what happened


def test_history_of_a_lock(managed):
    first = managed.connect()
    token = first.own("past")
    second = managed.waiter("past")
    ask(managed, f"/api/locks/past/release?token={token}", method="POST")
    second.expect_acquired()
    second.close()
    managed.owner("other").close()

    def past():
        found = ask(managed, "/api/lock/history?name=past")["history"]
        return found if len(found) == 4 else None

    history = wait_until(past, "four changes")
    assert [change["event"] for change in history] == ["granted", "released", "granted", "released"]
    assert [change.get("reason") for change in history] == [None, "force", None, "graceful"]
    assert history[0]["token"] == history[1]["token"] == token < history[2]["token"]
    assert all(RFC3339.fullmatch(change["time"]) and change["name"] == "past" for change in history)
    told = ask(managed, "/api/lock/history?name=past")
    assert set(told) == {"name", "now", "complete_after", "history"}
    assert told["complete_after"] <= history[0]["time"] and history[-1]["time"] <= told["now"]
    assert ask(managed, "/api/lock/history?name=never")["history"] == []
    first.close()


def test_a_busy_lock_does_not_push_out_the_history_of_another(start_server):
    server = start_server("-threads", "1", *ADMIN)
    server.owner("nightly").close()
    for _ in range(2500):  # more changes than a shard remembers of all
        server.owner("busy").close()

    def past(name):
        return ask(server, f"/api/lock/history?name={name}")

    wait_until(lambda: past("busy")["history"][-1]["event"] == "released", "the last one is gone")
    assert [change["event"] for change in past("nightly")["history"]] == ["granted", "released"]
    busy = past("busy")
    assert len(busy["history"]) == 100
    assert past("nightly")["complete_after"] < busy["complete_after"] <= busy["history"][0]["time"]


def test_events(managed):
    with HttpConnection(managed.admin_address) as stream:
        stream.ask("GET", "/api/events")
        head = stream.head()
        assert head.status == 200 and head.value("Content-Type") == "text/event-stream"
        seen = stream.chunk().decode()
        with managed.owner("evented"):
            deadline = time.monotonic() + 8
            while "evented" not in seen and time.monotonic() < deadline:
                seen += stream.chunk().decode()
        events = [dict(line.split(": ", 1) for line in block.split("\n")) for block in seen.strip().split("\n\n")]
    kinds = [event["event"] for event in events]
    assert set(kinds) == {"activity", "change"}
    change = json.loads(events[kinds.index("change")]["data"])
    assert change["event"] == "granted" and change["name"] == "evented"
    last = json.loads([event["data"] for event in events if event["event"] == "activity"][-1])
    assert set(last) == {
        "locks", "sessions", "waiters", "grants_per_s", "handovers_per_s", "releases_per_s", "heartbeats_per_s",
    }


def test_events_begin_with_the_last_changes_of_before(managed):
    """Of all shards together, in their order; and without being asked with none."""
    for index in range(20):
        managed.owner(f"before-{index}").close()
        # Two shards hear of two ends in whatever order.
        wait_until(lambda: ask(managed, "/api/info")["sessions"] == 0, "its end is heard")
    for recent, expected in ((3, 3), (256, 40), (0, 0)):
        with HttpConnection(managed.admin_address) as stream:
            stream.ask("GET", f"/api/events?recent={recent}").head()
            blocks = stream.chunk().decode().strip().split("\n\n")
        changes = [json.loads(block.split("data: ", 1)[1]) for block in blocks if block.startswith("event: change")]
        assert len(changes) == expected
        assert not [block for block in blocks if block.startswith("event: lost")]
        assert [change["time"] for change in changes] == sorted(change["time"] for change in changes)
        if changes:
            assert changes[-1]["name"] == "before-19" and changes[-1]["event"] == "released"


def test_a_flood_of_events_shows_the_latest(start_server):
    """Of more changes than anybody reads the newest are shown at once, and the rest are counted."""
    server = start_server("-threads", "1", *ADMIN)
    rounds, shown, lost, largest = 600, [], 0, 0
    with HttpConnection(server.admin_address) as stream:
        stream.ask("GET", "/api/events").head()
        stream.chunk()
        owner = server.owner("flood")
        for _ in range(rounds):  # each end and the grant that follows have the same time
            heir = server.waiter("flood")
            owner.close()
            token = heir.expect_acquired()
            owner = heir
        while len(shown) + lost < 2 * rounds + 1:
            blocks = [block.split("\n") for block in stream.chunk().decode().strip().split("\n\n")]
            found = [(kind.partition(": ")[2], json.loads(data.partition(": ")[2])) for kind, data in blocks]
            changes = [data for kind, data in found if kind == "change"]
            lost += sum(data["changes"] for kind, data in found if kind == "lost")
            largest = max(largest, len(changes))
            shown += changes
    assert largest <= 256
    assert (shown[-1]["event"], shown[-1]["token"]) == ("granted", token)
    assert [change["token"] for change in shown] == sorted(change["token"] for change in shown)
    owner.close()


def test_the_oldest_event_stream_makes_room(managed):
    """Also when nobody reads any of them, and all that they say is still in the kernel's buffers."""
    stuck = [HttpConnection(managed.admin_address).ask("GET", "/api/events") for _ in range(STREAMS_MAX)]
    assert [stream.head().status for stream in stuck] == [200] * STREAMS_MAX

    def opened():
        stream = HttpConnection(managed.admin_address).ask("GET", "/api/events")
        if stream.head().status == 200:
            return stream
        stream.close()
        return None

    newest = wait_until(opened, "room for one more", interval=0.05)
    assert newest.chunk()
    while stuck[0].chunk():  # up to its end, in good order
        pass
    assert stuck[1].chunk() and stuck[1].chunk(), "one made room"
    for stream in [newest, *stuck]:
        stream.close()


def test_the_head_of_the_events_takes_no_stream(managed):
    streams = [HttpConnection(managed.admin_address).ask("GET", "/api/events") for _ in range(STREAMS_MAX)]
    assert [stream.head().status for stream in streams] == [200] * STREAMS_MAX
    for _ in range(3):
        assert all([stream.chunk() for stream in streams])  # old enough to make room
    with HttpConnection(managed.admin_address) as asking:
        head = asking.ask("HEAD", "/api/events").head()
    assert head.status == 200 and head.value("Content-Type") == "text/event-stream"
    assert not head.values("Content-Length")
    for _ in range(2):
        assert all([stream.chunk() for stream in streams]), "no stream has ended"
    for stream in streams:
        stream.close()


# --- at the edges of the server's life


def test_it_answers_and_acts_at_the_descriptor_limit(start_server, threads):
    """Case S5."""
    server = start_server(
        "-threads", threads, "-io-timeout", "1m", *ADMIN,
        before_exec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    owners = [server.owner(f"kept-{index}") for index in range(25)]
    knocking = [server.connect() for _ in range(100)]
    server.settled_descriptors()
    for _ in range(10):
        assert len(ask(server, "/api/locks")["locks"]) == 25
        idle = [HttpConnection(server.admin_address) for _ in range(8)]  # more than HTTP may have
        for connection in idle:
            connection.close()
    ask(server, "/api/locks/kept-7/release", method="POST")
    owners.pop(7).expect_refused(CLOSED)
    for client in owners:
        client.heartbeat().expect_acquired()
    for client in owners + knocking:
        client.close()


def test_it_answers_until_the_last_connection_is_gone(start_server):
    """While the delay of a shutdown lasts it acts as ever; then it says what is left."""
    server = start_server("-shutdown-delay", "700ms", "-io-timeout", "700ms", *ADMIN)
    owner, waiter = server.owner("ends"), server.waiter("ends")
    server.signal(signal.SIGTERM)
    server.wait_record(lambda record: record["msg"] == "shutting down")
    ask(server, "/api/locks/ends/release", method="POST")
    owner.expect_refused(CLOSED)
    waiter.expect_acquired()
    waiter.expect_error(SHUTTING_DOWN)  # and lingers, since it does not close
    stays_true(lambda: ask(server, "/api/locks") == {"locks": []}, "the API answers", for_seconds=0.4)
    assert ask(server, "/api/info")["sessions"] == 0
    assert server.wait_exit() == 0
    assert refuses(server.admin_address)
    for client in (owner, waiter):
        client.close()
