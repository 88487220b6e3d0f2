"""docs/operating.md says what is so: its metrics are those of a real server, its alerts those of the rules
file, its commands run as they stand."""

import gzip
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
import yaml

from support import audit
from support import server as servers
from support.http import fetch
from support.pki import Authority
from support.tls_files import TlsFiles
from support.waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
RULES = ROOT / "deploy" / "prometheus" / "monolock.rules.yml"
SOCKET = "/run/monolock/admin.sock"
AT, FROM, TO = "2026-03-01T09:30:00.000Z", "2026-03-01T09:29:00.000Z", "2026-03-01T09:31:00.000Z"


def section(title):
    """What stands below that title, up to the next of its rank or above."""
    (start,) = re.finditer(rf"^(#+) {re.escape(title)}$", PAGE, re.M)
    end = re.compile(rf"^#{{1,{len(start[1])}}} ", re.M).search(re.sub(r"^# ", "  ", PAGE, flags=re.M), start.end())
    return PAGE[start.end() : end.start() if end else None]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


def rows(text):
    """The cells of all tables, without the head and the line below it."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rule = next(index for index, row in enumerate(cells) if set("".join(row)) <= {"-", ":"})
    return cells[rule + 1 :]


# --- metrics and alerts


@pytest.fixture(scope="module")
def families():
    server = servers.Server("-ops-listen", "127.0.0.1:0")
    try:
        found = server.metrics()
        server.stop()
        return found
    finally:
        server.dispose()


def test_every_metric_is_explained_and_every_explained_metric_is_there(families):
    explained = {}
    for names, kind, question in rows(section("The metrics, and what each answers")):
        assert question.count("?") >= 1, f"{names}: no question"
        for name, label in re.findall(r"`(\w+)(?:\{(\w+)\})?`", names):
            assert name not in explained, name
            explained[name] = (kind, {label} - {""})
    there = {
        name: (family.type, {label for _, labels in family.samples for label, _ in labels} - {"le"})
        for name, family in families.items()
    }
    assert explained == there


def test_what_is_said_of_label_values_is_so(families):
    page = section("The metrics, and what each answers")
    for name, label in [("monolock_releases_total", "reason"), ("monolock_reload_failures_total", "part")]:
        (row,) = [row for row in rows(page) if row[0] == f"`{name}{{{label}}}`"]
        assert set(re.findall(r"`(\w+)`", row[2])) == {labels[0][1] for _, labels in families[name].samples}


# What only a server with etcd has; tests/failover/test_standby.py looks at them.
ONE_OF_SEVERAL = {f"monolock_{name}_total" for name in ("etcd_errors", "failovers", "leases_uncovered")}


def test_no_metric_that_is_not_there_is_named_anywhere(families):
    samples = {name for family in families.values() for name, _ in family.samples} | set(families) | ONE_OF_SEVERAL
    metric = re.compile(r"\b(?:monolock_[a-z_]+_(?:total|seconds|bytes)\w*|process_[a-z_]+)\b")
    for document in [*ROOT.glob("docs/*.md"), ROOT / "README.md"]:
        assert set(metric.findall(document.read_text(encoding="utf-8"))) <= samples, document


def test_every_alert_has_its_answer():
    names = [row[0] for row in rows(section("When an alert comes"))]
    alerts = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert names == alerts


def test_the_scrape_configuration_is_one(tmp_path):
    (configuration,) = blocks(section("Alerts and a dashboard"), "yaml")
    (tmp_path / "prometheus.yml").write_text(configuration)
    shutil.copy(RULES, tmp_path)
    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- what the audit log can tell


def run(script, folder):
    """With bash, as somebody would who has both programs on the path."""
    programs = [str(pathlib.Path(os.environ[name]).parent) for name in ("MONOLOCK_BIN", "MONOLOCKCTL_BIN")]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=servers.clean_environment({"PATH": ":".join([*programs, os.environ["PATH"]])}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{script}\n{done}"
    return done.stdout.splitlines()


def recipes():
    """By the question that their first line asks; and what defines log()."""
    found = blocks(section("What the audit log can tell"), "sh")
    questions = {block[2:].partition("\n")[0]: block for block in found if block.startswith("# ")}
    (definition,) = [block for block in found if not block.startswith("# ")]
    assert len(questions) == len(found) - 1, "a question twice"
    return questions, definition


class Rotated:
    """A server over mutual TLS that writes an audit log, rotated twice, with names as deploy/logrotate gives them."""

    OLDEST = "audit.log-20260228-1772236800.gz"
    OLDER = "audit.log-20260301-1772323200"

    def __init__(self, folder):
        self.folder = folder
        self.current = folder / "audit.log"
        self.admin = folder / "admin.sock"
        rules = [(who, ["*"]) for who in ("importer", "reporter")]
        files = TlsFiles(folder, Authority(folder), rules=rules)
        self.server = servers.Server("-audit-log", str(self.current), "-admin-listen", f"unix:{self.admin}", tls=files)

    def rotate(self, records):
        """Once so many are written."""

        def written():
            return len(audit.read(self.current)) == records

        wait_until(written, f"{records} records are in the log")
        older = self.folder / self.OLDER
        if older.exists():
            with gzip.open(self.folder / self.OLDEST, "wb") as packed:
                packed.write(older.read_bytes())
            older.unlink()
        self.current.rename(older)
        before = self.server.reloads("audit")
        self.server.signal(signal.SIGHUP)
        # The file is there a moment before it is written to.
        wait_until(lambda: self.server.reloads("audit") > before, "the server has turned to a new file")

    def hold(self, who, name, seconds=0.0):
        with self.server.connect(who=who) as owner:
            owner.own(name)
            time.sleep(seconds)

    def expire(self, who):
        with self.server.connect(who=who) as owner:
            owner.own("silent", lease_ms=20)
            owner.expect_eof()

    def end(self, method, target):
        assert fetch(str(self.admin), target, method=method).status == 200

    def records(self):
        first = gzip.decompress((self.folder / self.OLDEST).read_bytes()).decode()
        return audit.parse_text(first) + audit.read(self.folder / self.OLDER, self.current)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    told = Rotated(tmp_path_factory.mktemp("story"))
    try:
        with told.server.connect(who="importer") as owner, told.server.connect(who="reporter") as next_owner:
            owner.own("nightly")
            next_owner.queue("nightly")
            time.sleep(0.05)
            owner.close()
            token = next_owner.expect_acquired()
            time.sleep(0.05)
            for who in ("stranger", "stranger", "another"):
                with told.server.connect(who=who) as refused:
                    refused.acquire("nightly").expect_refused(0x18)
        told.rotate(7)
        for who in ("importer", "reporter", "importer"):
            told.expire(who)
        with told.server.connect(who="importer") as forced, told.server.connect(who="reporter") as kicked:
            forced.own("stuck")
            kicked.queue("stuck")
            told.end("DELETE", f"/api/locks/stuck/waiters/127.0.0.1:{kicked.local_port}")
            told.end("POST", "/api/locks/stuck/release")
            forced.expect_error(0x02)
        told.rotate(10)
        for index in range(11):
            told.hold("importer", f"hold-{index}", 0.002 * index)
        with told.server.connect(who="reporter") as last:
            last_token = last.own("kept")
            wait_until(lambda: len(audit.read(told.current)) == 23, "all records are there")
            records = told.records()
            granted, released = [record for record in records if record.get("token") == token]
            yield SimpleNamespace(
                folder=told.folder, records=records, granted=granted, released=released, last_token=last_token
            )
        told.server.stop()
    finally:
        told.server.dispose()


def answer(story, question, at=None):
    questions, definition = recipes()
    script = definition + questions[question]
    at = at or story.granted["time"]
    script = script.replace(AT, at).replace(FROM, story.granted["time"]).replace(TO, story.released["time"])
    return [line.split("\t") for line in run(script, story.folder)]


def seconds(milliseconds):
    return pytest.approx(milliseconds / 1000)


def test_who_held_it_then(story):
    question = "Who held `nightly` at half past nine?"
    granted = story.granted
    holder = [granted["identity"], granted["remote_addr"], str(granted["token"]), granted["time"]]
    assert holder[0] == "reporter"
    assert answer(story, question) == [holder]
    (before,) = answer(story, question, story.records[0]["time"])
    assert before[0] == "importer" and before[2] == str(story.records[0]["token"])
    assert answer(story, question, "2020-01-01T00:00:00.000Z") == [["nobody"]]
    assert answer(story, question, story.records[-1]["time"]) == [["nobody"]]


def ten_longest(story, event, key):
    chosen = [record for record in story.records if record["event"] == event]
    assert len(chosen) > 10
    return [seconds(value) for value in sorted((record[key] for record in chosen), reverse=True)[:10]]


def test_the_longest_holds(story):
    found = answer(story, "Which ten holds were the longest? (seconds, lock, who, how it ended, when)")
    assert [float(row[0]) for row in found] == ten_longest(story, "released", "held_ms")
    for held, lock, identity, address, reason, when in found:
        (record,) = [each for each in story.records if each["event"] == "released" and each["remote_addr"] == address]
        assert seconds(record["held_ms"]) == float(held)
        assert (record["lock"], record["identity"], record["reason"], record["time"]) == (lock, identity, reason, when)


def test_the_longest_waits(story):
    found = answer(story, "Which ten grants waited longest?")
    assert [float(row[0]) for row in found] == ten_longest(story, "granted", "wait_ms")
    assert found[0][1:3] == ["nightly", "reporter"]


def test_what_operators_ended(story):
    found = answer(story, "What did operators end?")
    assert [row[1:4] for row in found] == [["kick_waiter", "stuck", "reporter"], ["force_release", "stuck", "importer"]]


def counts(rows):
    return [row[0].split(None, 1) + row[1:] for row in rows]


def test_expirations_by_identity(story):
    question = "Whose owners fell silent, and how often? (by address without mutual TLS)"
    assert counts(answer(story, question)) == [["2", "importer"], ["1", "reporter"]]
    nameless = [json.dumps(record | {"identity": ""}) for record in story.records if "lock" in record]
    script = f"log() {{ printf '%s\\n' {shlex.join(nameless)}; }}\n" + recipes()[0][question]
    assert counts([[line] for line in run(script, story.folder)]) == [["3", "127.0.0.1"]]


def test_denials(story):
    found = counts(answer(story, "Who was denied what, and how often?"))
    assert found == [["2", "stranger", "nightly"], ["1", "another", "nightly"]]


def test_who_holds_now(story):
    (row,) = answer(story, "Who holds what now? (after a crash, too: who held what then)")
    assert row[:2] == ["kept", "reporter"] and row[3] == str(story.last_token)


def test_between_two_moments(story):
    found = [audit.parse(line) for (line,) in answer(story, "What happened between two moments?")]
    wanted = [each for each in story.records if story.granted["time"] <= each["time"] < story.released["time"]]
    assert found == wanted and story.granted in found and story.released not in found


def test_around_a_rotation(story):
    lines = answer(story, "What stands around the last rotation, and is nothing missing there?")
    assert [audit.parse(line) for (line,) in lines[:6]] == story.records[14:20]
    assert lines[6][0].startswith("proven: ")


def test_the_largest_token(story):
    question = "What is the largest token, and when was it given? (no clock may be behind that after a failover)"
    ((token, when),) = answer(story, question)
    assert token == str(story.last_token)
    (granted,) = [record for record in story.records if record.get("token") == story.last_token]
    given_at = datetime.fromisoformat(when.removesuffix("Z"))
    assert abs(given_at - datetime.fromisoformat(granted["time"].removesuffix("Z"))) <= timedelta(seconds=1.1)


def test_every_recipe_is_tested():
    source = pathlib.Path(__file__).read_text()
    untested = [question for question in recipes()[0] if f'"{question}"' not in source]
    assert untested == []


def test_a_broken_line_is_skipped(story, tmp_path):
    shutil.copy(story.folder / "audit.log", tmp_path)
    with open(tmp_path / "audit.log", "a") as log:
        log.write('{"time":"2026-0\n')
    (skips,) = re.findall(r"`log \| (jq -cR 'fromjson\?') \| jq …`", section("What the audit log can tell"))
    assert len(run(f"{skips} audit.log", tmp_path)) == len(audit.read(story.folder / "audit.log"))


def test_what_the_audit_page_asks_jq(story, tmp_path):
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    stats, waited = [block.replace("60000", "40") for block in blocks(page, "sh") if "jq" in block]
    with open(tmp_path / "audit.log", "w") as log:
        log.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in story.records)
    assert [json.loads(line) for line in run(waited, tmp_path)] == [story.granted]
    assert run(stats, tmp_path) == ["nightly"]


# --- at three in the morning


def steps():
    return blocks(section("At three in the morning"), "sh")


def with_curl(block):
    return "".join(f"{line}\n" for line in block.splitlines() if not line.startswith("monolockctl"))


def with_monolockctl(block):
    kept = ("monolockctl", "token=", "waiter=")
    return "".join(f"{line}\n" for line in block.splitlines() if line.startswith(kept))


@pytest.fixture
def stuck(start_server, tmp_path):
    """A lock with an owner and three waiters, and a function that runs steps of the page."""
    socket = tmp_path / "admin.sock"
    server = start_server("-admin-listen", f"unix:{socket}")
    owner = server.connect()
    token = owner.own("nightly")
    waiters = [server.waiter("nightly") for _ in range(3)]
    definition, *_ = steps()

    def follow(*chosen, more=""):
        script = definition + "".join(chosen) + more
        return run(script.replace(SOCKET, shlex.quote(str(socket))), tmp_path)

    yield SimpleNamespace(server=server, owner=owner, token=token, waiters=waiters, follow=follow)
    for client in [owner, *waiters]:
        client.close()


def step_with(text):
    (block,) = [block for block in steps() if text in block]
    return block


def test_curl_shows_the_server_and_the_lock(stuck):
    info = "\n".join(stuck.follow(with_curl(step_with("/api/info"))))
    assert '"sessions": 4' in info
    lock = "\n".join(stuck.follow(with_curl(step_with("monolockctl show"))))
    assert f'"token": {stuck.token}' in lock and '"waiters_total": 3' in lock
    with stuck.server.owner("alone"):
        rows = [line.split("\t") for line in stuck.follow(with_curl(step_with("monolockctl locks")))]
    held, queues = rows[:2], rows[2:]
    assert [row[0] for row in held] == ["nightly", "alone"]
    assert held[0][2] == f"127.0.0.1:{stuck.owner.local_port}"
    assert [row[:2] for row in queues] == [["nightly", "3"], ["alone", "0"]] and queues[1][2] == "0"
    with stuck.server.owner("db/orders"):
        assert '  "name": "db/orders",' in stuck.follow(step_with("db/orders"))


def test_a_listing_while_the_server_shuts_down(tmp_path):
    """Where a lock may be without an owner."""
    names = [("a", None, 2000), ("b", 5000, None), ("c", None, None)]
    holder = {"remote_addr": "127.0.0.1:1", "identity": "", "silent_ms": 9, "lease_ms": 10}
    locks = [
        {
            "name": name,
            "holder": None if held is None else holder | {"held_ms": held},
            "waiters": [] if waited is None else [{"waited_ms": waited}],
            "waiters_total": int(waited is not None),
        }
        for name, held, waited in names
    ]
    (tmp_path / "listing").write_text(json.dumps({"locks": locks}))
    told = run("admin() { cat listing; }\n" + with_curl(step_with("monolockctl locks")), tmp_path)
    assert [line.split("\t")[:2] for line in told[:3]] == [["b", "5"], ["a", "0"], ["c", "0"]]
    assert told[3:] == ["a\t1\t2", "b\t0\t0", "c\t0\t0"]
    page = (ROOT / "docs" / "monolockctl.md").read_text(encoding="utf-8")
    (silent,) = [block for block in blocks(page, "sh") if "jq" in block]
    assert run(silent.replace("monolockctl locks --json", "cat listing"), tmp_path) == ["b"]


def test_curl_ends_exactly_that_claim(stuck):
    find = with_curl(step_with("monolockctl release"))
    ended = "\n".join(stuck.follow(find, step_with("admin -X POST")))
    assert f'"token": {stuck.token}' in ended
    stuck.owner.expect_error(0x02)
    next_token = stuck.waiters[0].expect_acquired()
    stale = "\n".join(stuck.follow(f"token={stuck.token}\n", step_with("admin -X POST")))
    assert '"error"' in stale and f'"token": {next_token}' in stale
    stuck.waiters[0].heartbeat().expect_acquired(next_token)


def test_curl_ends_one_waiter(stuck):
    find = with_curl(step_with("monolockctl kick"))
    ended = "\n".join(stuck.follow(find, step_with("admin -X DELETE")))
    assert f'"remote_addr": "127.0.0.1:{stuck.waiters[0].local_port}"' in ended
    stuck.waiters[0].expect_error(0x02)
    stuck.owner.close()
    stuck.waiters[1].expect_acquired()


def test_curl_shows_the_history(stuck):
    (command,) = re.findall(r"`(admin '[^`]*history[^`]*)`", section("At three in the morning"))
    assert f'"token": {stuck.token}' in "\n".join(stuck.follow(command))


def test_monolockctl_shows_the_server_and_the_lock(stuck):
    address = f"127.0.0.1:{stuck.owner.local_port}"
    info = stuck.follow(with_monolockctl(step_with("/api/info")))
    assert ["sessions", "4"] in [line.split() for line in info]
    lock = "\n".join(stuck.follow(with_monolockctl(step_with("monolockctl show"))))
    assert address in lock and str(stuck.token) in lock and "silent for" in lock
    assert all(f"127.0.0.1:{waiter.local_port}" in lock for waiter in stuck.waiters)
    _, row = stuck.follow(with_monolockctl(step_with("monolockctl locks")))
    assert row.split()[:2] == ["nightly", address]


def test_monolockctl_ends_exactly_that_claim(stuck):
    release = with_monolockctl(step_with("monolockctl release"))
    stuck.follow(release)
    stuck.owner.expect_error(0x02)
    next_token = stuck.waiters[0].expect_acquired()
    (command,) = [line for line in release.splitlines() if line.startswith("monolockctl")]
    (status,) = re.findall(r"`monolockctl` exits with (\d+)", section("At three in the morning"))
    said = stuck.follow(f"token={stuck.token}\n{command} 2>&1 || echo status $?")
    assert said[-1] == f"status {status}" and str(next_token) in said[0]
    stuck.waiters[0].heartbeat().expect_acquired(next_token)


def test_monolockctl_ends_one_waiter(stuck):
    stuck.follow(with_monolockctl(step_with("monolockctl kick")))
    stuck.waiters[0].expect_error(0x02)
    stuck.owner.close()
    stuck.waiters[1].expect_acquired()
