"""monolockctl for the operator: locks, show, release, kick, info, over the admin API."""

import http.server
import json
import os
import re
import subprocess
import threading

import pytest

from ctl import address_text, binary, clean_environment, ctl
from ctl_screen import Screen

CLOSED = 0x02
HOSTILE = "a\nLOCK  x\r\x1b[2J\u202e"


@pytest.fixture
def managed(start_server):
    return start_server("-threads", "2", "-admin-listen", "127.0.0.1:0")


def admin_env(server):
    return {"MONOLOCK_ADMIN": address_text(server.admin_address)}


def admin(server, *words, expect=0, **options):
    """Runs a command; what it printed, which is an error on standard error only if it should fail."""
    done = ctl(*words, env=admin_env(server), **options)
    assert done.returncode == expect, (words, done)
    assert bool(done.stderr) == bool(expect), done
    assert len(done.stderr.splitlines()) <= 1
    return done.stdout if not expect else done.stderr


def admin_json(server, *words, expect=0):
    """The same with --json: the one document, and nothing else on standard output."""
    done = ctl(words[0], "--json", *words[1:], env=admin_env(server))
    assert done.returncode == expect, (words, done)
    assert done.stdout.endswith("\n") and done.stdout.count("\n") == 1 and done.stdout.isascii()
    return json.loads(done.stdout)


# --- what is there


def test_locks_is_a_table_for_people(managed):
    assert admin(managed, "locks") == "no lock is held\n"
    assert admin(managed, "locks", "--match", "x*") == 'no lock matches "x*"\n'
    owners = [managed.owner(name) for name in ["nightly", "a/b", "日本"]]
    waiters = [managed.waiter("nightly") for _ in range(2)]
    lines = admin(managed, "locks").splitlines()
    assert re.fullmatch(r"LOCK +OWNER +HELD +SILENT +LEASE +WAITING +TOKEN", lines[0])
    assert [line.split()[0] for line in lines[1:]] == ["a/b", "nightly", '"日本"']
    port = owners[0].local_port
    assert re.fullmatch(rf"nightly +127\.0\.0\.1:{port} +[\d.]+m?s +[\d.]+m?s +1m0s +2 +\d{{16}}", lines[2])
    # Every token ends where its heading ends; two characters of the last name take two columns each.
    assert [len(line) + 2 * line.count("日本") for line in lines] == [len(lines[0])] * 4
    assert admin(managed, "locks", "--match", "night*").count("\n") == 2
    for client in owners + waiters:
        client.close()


def test_locks_for_programs_are_those_of_the_api_page_by_page(managed):
    names = [f"lock-{index:04}" for index in range(600)]
    owners = [managed.owner(name) for name in names]
    listing = admin_json(managed, "locks")
    assert list(listing) == ["locks"] and [lock["name"] for lock in listing["locks"]] == names
    assert set(listing["locks"][0]["holder"]) == {
        "id", "identity", "remote_addr", "since", "held_ms", "silent_ms", "lease_ms", "token"}  # fmt: skip
    assert admin(managed, "locks").count("\n") == 601
    assert len(admin_json(managed, "locks", "--match", "lock-00*")["locks"]) == 100
    for owner in owners:
        owner.close()


@pytest.mark.parametrize("name", ["nightly", ".", "..", "a/b?c#d%2F", "ü", HOSTILE, "n" * 255, "-x", "a\u200b\U000e0041"])
def test_show_any_lock(managed, name):
    with managed.owner(name) as owner, managed.waiter(name) as first, managed.waiter(name) as second:
        text = admin(managed, "show", "--", name)
        lines = text.splitlines()
        assert len(lines) == 6 and all(character.isprintable() or character == "\n" for character in text)
        assert f"held by 127.0.0.1:{owner.local_port}, id " in lines[0] and lines[1] == "2 wait"
        assert [line.split()[1] for line in lines[4:]] == [f"127.0.0.1:{w.local_port}" for w in (first, second)]
        lock = admin_json(managed, "show", "--", name)
        assert lock["name"] == name and len(lock["waiters"]) == lock["waiters_total"] == 2
        (listed,) = admin_json(managed, "locks")["locks"]
        assert listed["name"] == name
        assert admin(managed, "locks").count("\n") == 2


def test_info(managed):
    text = admin(managed, "info")
    assert re.search(r"^version +\d+\.\d+\.\d+$", text, re.M) and re.search(r"^locks +0$", text, re.M)
    assert re.search(rf"^listen +{re.escape(address_text(managed.address))}$", text, re.M)
    assert admin_json(managed, "info")["config"]["threads"] == 2


def test_identities_are_shown(start_server, mtls_files):
    server = start_server("-admin-listen", "127.0.0.1:0", tls=mtls_files)
    with server.owner("n") as owner:
        (listed,) = admin_json(server, "locks")["locks"]
        identity = listed["holder"]["identity"]
        assert identity
        heading, row = admin(server, "locks").splitlines()
        assert heading.split()[2] == "IDENTITY" and row.split()[2] == identity
        assert f"127.0.0.1:{owner.local_port} ({identity})" in admin(server, "show", "n")


# --- ending claims


def test_release_and_kick(managed):
    owner, first, second = managed.owner("n"), managed.waiter("n"), managed.waiter("n")
    third = managed.waiter("n")
    admin(managed, "kick", "n", f"127.0.0.1:{first.local_port}")
    first.expect_refused(CLOSED)
    waiters = admin_json(managed, "show", "n")["waiters"]
    ended = admin_json(managed, "kick", "n", str(waiters[0]["id"]))
    assert ended["name"] == "n" and ended["id"] == waiters[0]["id"]
    second.expect_refused(CLOSED)
    text = admin(managed, "release", "n")
    assert text.startswith(f"released n, held by 127.0.0.1:{owner.local_port}, id ") and text.count("\n") == 1
    owner.expect_refused(CLOSED)
    third.expect_acquired()
    third.close()


def test_a_stale_token_ends_nobody(managed):
    with managed.connect() as owner:
        token = owner.own("n")
        text = admin(managed, "release", "n", "--token", str(token - 1), expect=75)
        assert f"127.0.0.1:{owner.local_port}" in text and str(token) in text
        document = admin_json(managed, "release", "n", "--token", str(token - 1), expect=75)
        assert document["error"] and document["holder"]["token"] == token
        owner.heartbeat().expect_acquired(token)
        assert admin_json(managed, "release", "--token", str(token), "n")["token"] == token
        owner.expect_refused(CLOSED)


def test_what_is_not_there(managed):
    for words in [("show", "none"), ("release", "none"), ("release", "none", "--token", "7"), ("kick", "none", "1")]:
        assert "none" in admin(managed, *words, expect=1)
        assert set(admin_json(managed, *words, expect=1)) == {"error"}
    with managed.owner("n"), managed.waiter("n"):
        assert "127.0.0.1:1" in admin(managed, "kick", "n", "127.0.0.1:1", expect=1)


def test_several_waiters_with_one_address(start_server, tmp_path):
    """Clients of a Unix socket are told apart by their ids alone."""
    socket, admin_socket = tmp_path / "m.sock", tmp_path / "admin.sock"
    server = start_server("-admin-listen", f"unix:{admin_socket}", listen=f"unix:{socket}")
    with server.owner("n"), server.waiter("n"), server.waiter("n") as second:
        who = f"unix:pid={os.getpid()},uid={os.getuid()}"
        assert "id" in admin(server, "kick", "n", who, expect=75)
        ids = [waiter["id"] for waiter in admin_json(server, "show", "n")["waiters"]]
        admin(server, "kick", "n", str(ids[1]))
        second.expect_refused(CLOSED)


# --- who is asked, and how


def test_addresses(managed, start_server, tmp_path):
    host, port = managed.admin_address
    for text in [f"{host}:{port}", f":{port}", f"localhost:{port}"]:
        assert ctl("info", "--admin", text).returncode == 0, text
    nowhere = {"MONOLOCK_ADMIN": f"unix:{tmp_path}/none"}
    assert ctl("info", "--admin", f"{host}:{port}", env=nowhere).returncode == 0
    for words in (["info"], ["info", "--json"]):
        done = ctl(*words, env=nowhere)
        assert done.returncode == 69 and nowhere["MONOLOCK_ADMIN"] in done.stderr
        assert ("error" in json.loads(done.stdout)) if "--json" in words else not done.stdout
    done = ctl("info")
    assert done.returncode == 2 and "--admin" in done.stderr and "MONOLOCK_ADMIN" in done.stderr
    done = ctl("info", env={"MONOLOCK_ADMIN": "::1:9091"})
    assert done.returncode == 2 and "MONOLOCK_ADMIN" in done.stderr and "brackets" in done.stderr
    six = start_server("-admin-listen", "[::1]:0")
    assert admin_json(six, "info")["version"]


def test_what_is_no_admin_api(managed, start_server):
    """The lock port, and an HTTP server that is something else."""
    ops = start_server("-ops-listen", "127.0.0.1:0")
    for address in (managed.address, ops.ops_address):
        for words in (["locks"], ["show", "n"], ["release", "n"]):
            done = ctl(*words, "--admin", address_text(address))
            assert done.returncode == 70 and address_text(address) in done.stderr, done
            assert len(done.stderr.splitlines()) == 1 and not done.stdout


class ScriptedApi(http.server.ThreadingHTTPServer):
    """Gives the answers of a script, (status, document or text) each, and keeps what it was asked."""

    def __init__(self, *script):
        super().__init__(("127.0.0.1", 0), ScriptedHandler)
        self.script, self.asked = list(script), []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def env(self):
        return {"MONOLOCK_ADMIN": address_text(self.server_address)}

    def __exit__(self, *failure):
        self.shutdown()
        super().__exit__(*failure)


class ScriptedHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.server.asked.append(f"{self.command} {self.path}")
        status, document = self.server.script.pop(0)
        body = (document if isinstance(document, str) else json.dumps(document)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(("answer", "status"), [(400, 70), (403, 77), (409, 75), (500, 70), (503, 69)])
def test_what_the_server_refuses(answer, status):
    error = "because\nof \x1b[2J"
    for words in (["locks"], ["show", "n"], ["release", "n"], ["kick", "n", "1"], ["info"]):
        with ScriptedApi((answer, {"error": error}), (answer, {"error": error})) as api:
            done = ctl(*words, env=api.env())
            assert done.returncode == status and not done.stdout, (words, done)
            assert done.stderr.count("\n") == 1 and "\x1b" not in done.stderr
            done = ctl(*words, "--json", env=api.env())
            assert done.returncode == status and json.loads(done.stdout) == {"error": error}


CALLS = [("locks",), ("show", "n"), ("release", "n"), ("kick", "n", "1"), ("info",)]
CLAIM = {"id": 1, "identity": "", "remote_addr": "127.0.0.1:1", "lease_ms": 10}
HOLDER = CLAIM | {"since": "2026-03-01T09:30:00.250Z", "held_ms": 1, "silent_ms": 1, "token": 1}
LOCK = {"name": "n", "holder": HOLDER, "waiters": [], "waiters_total": 0}


def refused_as_foreign(words, status, document):
    """That it ends with 70 in both modes, in words that say what is not known after a change."""
    with ScriptedApi(*[(status, document)] * 2) as api:
        done = ctl(*words, env=api.env())
        assert done.returncode == 70 and not done.stdout, (words, document, done)
        assert address_text(api.server_address) in done.stderr and done.stderr.count("\n") == 1
        asked_to_end = words[0] in ("release", "kick")
        assert ("whether the claim was ended is not known" in done.stderr) == asked_to_end, done
        in_json = ctl(*words, "--json", env=api.env())
        assert in_json.returncode == 70 and done.stderr == in_json.stderr, (words, document, in_json)
        assert json.loads(in_json.stdout) == {"error": done.stderr.removeprefix("monolockctl: ").rstrip("\n")}


@pytest.mark.parametrize("words", CALLS, ids=lambda words: words[0])
def test_a_foreign_answer_is_no_success(words):
    foreign = [{}, {"foo": 1}, {"locks": [None]}, {"locks": {}}, LOCK | {"waiters_total": -1}]
    foreign.append(LOCK | {"holder": HOLDER | {"held_ms": 2**64 - 1}})
    foreign += [HOLDER | {"name": "n", "token": -1}, HOLDER | {"name": "another"}, CLAIM | {"name": "n"}]
    if words[0] != "locks":
        foreign.append({"locks": []})
    for document in foreign:
        refused_as_foreign(words, 200, document)
    refused_as_foreign(words, 404, {"message": "Not Found"})
    if words[0] in ("locks", "info"):  # which every server has
        refused_as_foreign(words, 404, {"error": "Not Found"})


@pytest.mark.parametrize("words", CALLS, ids=lambda words: words[0])
def test_an_answer_that_is_nested_deeply(words):
    deep = "[" * 200_000 + "]" * 200_000
    for status in (200, 500):
        refused_as_foreign(words, status, f'{{"error": "x", "locks": {deep}}}')


def page(*names, next_page="/api/locks?limit=500&snapshot=1&after=x"):
    return (200, {"locks": [LOCK | {"name": name} for name in names], "next": next_page})


@pytest.mark.parametrize(
    "script",
    [
        [page("a"), page("a")],
        [page("b"), page("a")],
        [page("a"), page()],
        [page()],
        [page("b", "a")],
        [page("a", next_page="http://127.0.0.1/api/locks?after=a")],
        [page("a", next_page="/api/lock/release?name=a")],
        [page("a", next_page="/api/locks?after=a HTTP/1.1\r\nX-Smuggled: yes\r\n\r\n")],
    ],
)
def test_pages_that_lead_nowhere_or_elsewhere(script):
    with ScriptedApi(*script) as api:
        done = ctl("locks", env=api.env())
        assert done.returncode == 70 and not done.stdout and done.stderr.count("\n") == 1, done
        assert len(api.asked) == len(script) and not api.script


def test_a_listing_that_is_not_kept_begins_anew():
    lock, (_, begun) = LOCK | {"name": "a"}, page("a")
    gone = (404, {"error": "this listing is not kept any more: begin anew"})
    first = (200, begun)
    with ScriptedApi(first, gone, first, (200, {"locks": [lock | {"name": "b"}]})) as api:
        done = ctl("locks", "--match", "a b*", "--json", env=api.env())
        assert [each["name"] for each in json.loads(done.stdout)["locks"]] == ["a", "b"]
        assert api.asked == ["GET /api/locks?limit=500&match=a%20b%2A", "GET " + begun["next"]] * 2
    with ScriptedApi(*[first, gone] * 3) as api:
        done = ctl("locks", env=api.env())
        assert done.returncode == 69 and not done.stdout and "listing" in done.stderr and not api.script
    with ScriptedApi(first, gone, (200, {"locks": [lock | {"name": "b"}]})) as api:
        heading, row = ctl("locks", env=api.env()).stdout.splitlines()
        assert row.split()[0] == "b"  # and nothing of what was begun before


def test_output_that_cannot_be_written(managed):
    for words in (["locks"], ["info", "--json"], ["help", "locks"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = ctl(*words, env=admin_env(managed), stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 74 and done.stderr


# --- a terminal


def on_terminal(server, *words, env=None, **options):
    return Screen(binary(), *words, env=admin_env(server) | {"TERM": "xterm"} | (env or {}), **options)


def test_colour_is_for_terminals(managed):
    with managed.owner("n"):
        assert "\x1b" not in admin(managed, "locks")
        for env, coloured in [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]:
            with on_terminal(managed, "locks", env=env) as screen:
                status, seen = screen.end()
                assert status == 0 and ("\x1b[1mLOCK\x1b[0m" in seen) == coloured and "LOCK" in seen


def test_release_shows_whom_it_ends_and_asks(managed):
    with managed.connect() as owner, managed.connect() as waiter:
        token = owner.own("n")
        waiter.queue("n")
        wordy = ["yo\n", "you sure?\n", "yes but wait\n", "y" + " " * 99 + "but wait\n"]
        for answer in ["n\n", "\n", "no\n", "y" * 99 + "\n", "\x04", *wordy]:
            with on_terminal(managed, "release", "n") as screen:
                screen.read_until(rf"held by 127\.0\.0\.1:{owner.local_port}, .*token {token}")
                screen.read_until(r"1 waits\r\nEnd this claim\? \[y/N\] ")
                screen.type(answer)
                status, seen = screen.end()
                assert status == 3 and "nobody was ended" in seen
        owner.heartbeat().expect_acquired(token)
        with on_terminal(managed, "release", "n") as screen:
            screen.read_until(r"\[y/N\] ")
            screen.type("y\n")
            status, seen = screen.end()
            assert status == 0 and "released n" in seen
        owner.expect_refused(CLOSED)
        waiter.expect_acquired()


def test_what_was_typed_before_the_question_does_not_answer_it(managed, tmp_path):
    go = tmp_path / "go"
    script = 'while [ ! -e "$1" ]; do sleep 0.01; done; exec "$2" release n'
    with managed.owner("n") as owner:
        with Screen("sh", "-c", script, "sh", go, binary(), env=admin_env(managed)) as screen:
            screen.type("y\n")
            screen.read_until("y\r\n")
            go.touch()
            screen.read_until(r"\[y/N\] ")
            screen.type("n\n")
            status, seen = screen.end()
            assert status == 3 and "nobody was ended" in seen
        owner.heartbeat().expect_acquired()


def test_an_owner_that_comes_while_the_question_stands_is_spared(managed):
    owner, heir = managed.owner("n"), managed.waiter("n")
    with on_terminal(managed, "release", "n") as screen:
        screen.read_until(r"\[y/N\] ")
        owner.close()
        heir.expect_acquired()
        screen.type("y\n")
        status, seen = screen.end()
        assert status == 75 and f"127.0.0.1:{heir.local_port}" in seen
    heir.heartbeat().expect_acquired()
    heir.close()


def test_kick_asks_too_and_names_the_place(managed):
    with managed.owner("n"), managed.waiter("n") as first, managed.waiter("n") as second:
        who = f"127.0.0.1:{second.local_port}"
        with on_terminal(managed, "kick", "n", who) as screen:
            screen.read_until(rf"{re.escape(who)}, .* in place 2 of 2\r\nEnd this claim\? \[y/N\] ")
            screen.type(" YES \n")
            assert screen.end()[0] == 0
        second.expect_refused(CLOSED)
        with on_terminal(managed, "kick", "n", "127.0.0.1:1") as screen:
            assert screen.end()[0] == 1  # nobody to ask about
        first.heartbeat().expect_waiting()


def test_nobody_is_asked_who_said_yes_or_is_a_program(managed):
    for words in (["--yes"], ["--yes", "--json"]):
        owner = managed.owner("n")
        with on_terminal(managed, "release", "n", *words) as screen:
            assert screen.end()[0] == 0
        owner.expect_refused(CLOSED)
    owner = managed.owner("n")
    with on_terminal(managed, "release", "n", stdin=subprocess.DEVNULL) as screen:
        assert screen.end()[0] == 0
    owner.expect_refused(CLOSED)


def test_the_question_is_seen_when_standard_error_goes_elsewhere(managed, tmp_path):
    with managed.owner("n"), open(tmp_path / "log", "w", encoding="utf-8") as log:
        with on_terminal(managed, "release", "n", stderr=log) as screen:
            screen.read_until(r"\[y/N\] ")
            screen.type("n\n")
            assert screen.end()[0] == 3


def test_a_question_that_can_be_read_only_is_shown_all_the_same(managed):
    """Standard input is the terminal, open to be read only, and standard error is not one."""
    script = '"$1" release n </dev/tty 2>/dev/null; echo "status $?"'
    with managed.owner("n") as owner:
        with Screen("sh", "-c", script, "sh", binary(), env=admin_env(managed)) as screen:
            screen.read_until(r"held by 127\.0\.0\.1:.*End this claim\? \[y/N\] ")
            screen.type("n\n")
            screen.read_until("status 3")
        owner.heartbeat().expect_acquired()


def test_nobody_is_ended_whose_question_cannot_be_shown(managed):
    """The terminal can be read, but neither it nor another one be written to."""
    drop = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []  # as root may write to it whatever its mode
    keys, inside = os.openpty()
    read_only = os.open(os.ttyname(inside), os.O_RDONLY | os.O_NOCTTY)
    os.fchmod(inside, 0o444)
    os.write(keys, b"y\n" * 9)
    with managed.owner("n") as owner, managed.waiter("n"):
        for words in (["release", "n"], ["kick", "n", "2"]):
            done = subprocess.run(
                [*drop, binary(), *words], env=clean_environment(admin_env(managed)), stdin=read_only,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, timeout=20,
            )  # fmt: skip
            assert (done.returncode, done.stdout) == (2, "") and "nobody was ended" in done.stderr, done
            assert done.stderr.count("\n") == 1 and "--yes" in done.stderr
        owner.heartbeat().expect_acquired()
    for end in (keys, inside, read_only):
        os.close(end)
