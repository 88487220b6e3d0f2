"""monolockctl audit report: one page that needs nothing else, with the figures of audit stats."""

import gzip
import html.parser
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess

import pytest

from ctl import binary, clean_environment, ctl
from support.waiting import wait_until

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"


def record(second, event, lock, **more):
    fields = {"time": f"2026-03-01T09:00:{second:06.3f}Z", "event": event, "lock": lock}
    return fields | {"identity": more.pop("identity", ""), "remote_addr": "192.0.2.1:50123"} | more


def written(path, *records):
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in records), encoding="utf-8")
    return path


def some(lock="nightly"):
    """Ten ownerships, the fifth forced, the last one open; and a denial."""
    for token in range(1, 11):
        yield record(2 * token, "granted", lock, token=token, wait_ms=token * token)
        if token == 5:
            yield record(2 * token + 1, "force_release", lock, token=token)
        if token < 10:
            reason = "force" if token == 5 else "graceful"
            yield record(2 * token + 1, "released", lock, token=token, held_ms=1000, reason=reason)
    yield record(30, "denied", lock, identity="mallory")


class Page(html.parser.HTMLParser):
    """What a parser of HTML makes of it."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.policy, self._open = [], [], None, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag == "script":
            self._open = attributes
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]

    def handle_data(self, data):
        if self._open is not None:
            self.scripts.append((self._open, data))
            self._open = None

    def data(self):
        (text,) = [text for attributes, text in self.scripts if attributes.get("id") == "data"]
        return json.loads(text)


def report(*files, options=(), **more):
    done = ctl("audit", "report", *map(str, files), "-o", "-", *options, **more)
    assert (done.returncode, done.stderr) == (0, ""), done
    return Page(done.stdout)


def stats(*files):
    done = ctl("audit", "stats", "--json", *map(str, files))
    assert done.returncode == 0
    return json.loads(done.stdout)


def is_part(part, whole):
    if isinstance(part, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    return part == whole


def test_figures_of_what_a_server_wrote_are_those_of_stats(start_server, threads, tmp_path):
    path = tmp_path / "audit.log"
    server = start_server("-threads", threads, "-audit-log", str(path))
    for turn in range(2):
        for index in range(40):
            with server.owner(f"lock-{index % 4}") as owner:
                waiter = server.waiter(f"lock-{index % 4}")
                owner.close()
                waiter.expect_acquired()
                waiter.close()
        if turn == 0:
            path.rename(tmp_path / "audit.log.1")
            server.signal(signal.SIGHUP)
            wait_until(path.exists, "the file is made anew")
    server.stop()
    files = [tmp_path / "audit.log.1", path]
    drawn, summed = report(*files).data(), stats(*files)
    assert drawn["total"]["grants"] == 160 and is_part(summed["total"], drawn["total"])
    assert is_part(dict(enumerate(summed["locks"])), dict(enumerate(drawn["locks"])))
    assert all(len(lock["ownerships"]) == 40 and lock["forgotten"] == 0 for lock in drawn["locks"])
    whole = "".join(each.read_text() for each in files)
    piped = report("-", input=whole, stdin=None).data()
    assert is_part({key: drawn[key] for key in ("total", "locks", "from", "to")}, piped)
    assert piped["files"] == ["standard input"]


def test_the_page_lets_nothing_in(tmp_path):
    page = report(written(tmp_path / "a.log", record(1, "denied", HOSTILE, identity=HOSTILE)))
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; "
        r"base-uri 'none'; form-action 'none'", page.policy
    )  # fmt: skip
    assert not {"img", "link", "iframe", "object", "base"} & set(page.tags) and page.tags.count("script") == 2
    assert page.data()["locks"][0]["lock"] == HOSTILE


def test_filters(tmp_path):
    path = written(tmp_path / "a.log", *some("a/1"), *some("b"))
    assert [lock["lock"] for lock in report(path, options=["--lock", "a*"]).data()["locks"]] == ["a/1"]
    times = ["--since", "2026-03-01T09:00:10Z", "--until", "2026-03-01T09:00:13"]
    data = report(path, options=times).data()
    assert data["total"]["grants"] == 4 and data["total"]["force"] == 2
    assert data["to"] - data["from"] == 3000
    assert data["filter"] == {"lock": None, "since": data["from"], "until": data["to"]}


def test_what_cannot_be_read_is_said(tmp_path):
    path = written(tmp_path / "a.log", *some())
    with path.open("a") as log:
        log.write('{"time":"2026-')
    assert report(path).data()["unreadable"] == 1
    done = ctl("audit", "report", str(tmp_path / "gone"), "-o", str(tmp_path / "page"))
    assert done.returncode == 66 and str(tmp_path / "gone") in done.stderr
    assert not (tmp_path / "page").exists()


def test_the_page_takes_its_place_at_once(tmp_path):
    path, page = written(tmp_path / "a.log", *some()), tmp_path / "page.html"
    old = os.umask(0o027)
    try:
        assert ctl("audit", "report", str(path), "-o", str(page)).returncode == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE(page.stat().st_mode) == 0o640 and page.read_text().endswith("</html>\n")
    page.chmod(0o600)
    before = page.stat().st_ino
    assert ctl("audit", "report", str(path), "-o", str(page)).returncode == 0
    assert page.stat().st_ino != before and stat.S_IMODE(page.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["a.log", "page.html"]


def test_a_page_that_cannot_be_written(tmp_path):
    path = written(tmp_path / "a.log", *some())
    for target in (tmp_path / "no" / "folder", tmp_path, "/dev/full"):
        done = ctl("audit", "report", str(path), "-o", str(target))
        assert done.returncode == 74 and str(target) in done.stderr and done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["a.log"]


def test_a_log_is_never_overwritten(tmp_path):
    path = written(tmp_path / "a.log", *some())
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "twin").hardlink_to(path)
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    before = path.read_bytes()
    for named in (str(path), "-"):
        for target in (tmp_path / "a.log", tmp_path / "link", tmp_path / "twin", "-", tmp_path / "stdout"):
            with open(path, "rb") as log, open(path, "ab") as out:
                done = ctl("audit", "report", named, "-o", str(target), stdin=log, stdout=out, stderr=subprocess.PIPE)
            assert done.returncode == 2 and "one of the files to read" in done.stderr, (named, target)
    assert path.read_bytes() == before and path.samefile(tmp_path / "twin") and (tmp_path / "link").is_symlink()
    for read in ("/dev/null", "-"):  # nothing of that can be lost
        assert ctl("audit", "report", read, "-o", "/dev/null").returncode == 0


def test_files_in_the_wrong_order_are_complained_of(tmp_path):
    newest = written(tmp_path / "audit.log", record(9, "granted", "a", token=9, wait_ms=0))
    oldest = written(tmp_path / "audit.log.1", record(2, "granted", "a", token=2, wait_ms=0))
    page = tmp_path / "report.html"
    wrong = ctl("audit", "report", str(newest), str(oldest), "-o", str(page))
    assert wrong.returncode == 0 and "oldest first" in wrong.stderr
    right = ctl("audit", "report", str(oldest), str(newest), "-o", str(page))
    assert right.returncode == 0 and right.stderr == ""


def test_a_file_that_is_no_log_is_complained_of(tmp_path):
    log = tmp_path / "audit.log.2.gz"
    log.write_bytes(gzip.compress(b"x" * 1000))
    wrong = ctl("audit", "report", str(log), "-o", str(tmp_path / "report.html"))
    assert wrong.returncode == 0 and "compressed" in wrong.stderr


def test_an_empty_log_is_a_page_too(tmp_path):
    data = report(written(tmp_path / "a.log")).data()
    assert data["records"] == 0 and data["locks"] == [] and "from" not in data


# --- links


def test_a_link_stays_and_leads_to_the_page(tmp_path):
    path, www = written(tmp_path / "a.log", *some()), tmp_path / "www"
    www.mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(tmp_path / "folder" / "three")
    (tmp_path / "folder").symlink_to("www")
    (www / "three").symlink_to("page.html")
    for mode in (None, 0o604):  # it does not exist yet; it does
        if mode:
            (www / "page.html").chmod(mode)
        assert ctl("audit", "report", str(path), "-o", "one", cwd=tmp_path).returncode == 0
        assert not (www / "page.html").is_symlink() and (www / "page.html").read_text().endswith("</html>\n")
        assert mode is None or stat.S_IMODE((www / "page.html").stat().st_mode) == mode
        assert all(each.is_symlink() for each in (tmp_path / "one", tmp_path / "two", tmp_path / "folder", www / "three"))
        assert sorted(os.listdir(www)) == ["page.html", "three"]


def test_a_link_that_leads_nowhere_stays(tmp_path):
    path, link = written(tmp_path / "a.log", *some()), tmp_path / "link"
    (tmp_path / "other").symlink_to("link")
    for target in ("other", "gone/page", "a.log/page"):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        done = ctl("audit", "report", str(path), "-o", str(link))
        assert done.returncode == 74 and str(tmp_path) in done.stderr and done.stderr.count("\n") == 1
        assert os.readlink(link) == target and sorted(os.listdir(tmp_path)) == ["a.log", "link", "other"]


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write everywhere")
def test_a_page_in_a_folder_of_others_stays(tmp_path):
    """Though the page itself may be written: it cannot be replaced at once, and is not written over in place."""
    path, www = written(tmp_path / "a.log", *some()), tmp_path / "www"
    www.mkdir()
    (www / "page").write_text("old")
    (tmp_path / "link").symlink_to("www/page")
    (www / "page").chmod(0o666)
    www.chmod(0o555)
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    command = [*drop, binary(), "audit", "report", str(path), "-o", str(tmp_path / "link")]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment())
    assert done.returncode == 74 and f"{www}/page" in done.stderr and "Permission denied" in done.stderr
    assert (www / "page").read_text() == "old" and os.listdir(www) == ["page"]


@pytest.mark.parametrize("name", ["stdout", "fd/1", "/proc/self/fd/1", "link"])
def test_a_descriptor_is_written_to_as_it_is(tmp_path, name):
    """Where it stands, and whatever it is; its name stays what it was. (The names of /dev, made again here: a
    monolockctl that replaces them would take them from the whole machine.)"""
    path, dev = written(tmp_path / "a.log", *some()), tmp_path / "dev"
    dev.mkdir()
    links = {dev / "fd": "/proc/self/fd", dev / "stdout": "fd/1", dev / "link": str(dev / "stdout")}
    for link, target in links.items():
        link.symlink_to(target)
    command = ["audit", "report", str(path), "-o", str(dev / name)]
    page = ctl(*command).stdout
    assert page.endswith("</html>\n")
    with open(tmp_path / "out", "w+", encoding="utf-8") as out:
        out.write("before\n")
        out.flush()
        assert ctl(*command, stdout=out, stderr=subprocess.PIPE).returncode == 0
        out.seek(0, os.SEEK_END)
        out.write("after\n")
        out.seek(0)
        text = out.read()
    assert text.startswith("before\n<!") and text.endswith("</html>\nafter\n")
    assert len(text) == len("before\n") + len(page) + len("after\n")
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([binary(), *command], stdout=theirs, env=clean_environment()) as process:
        theirs.close()
        with ours.makefile("rb") as reader:
            assert len(reader.read().decode()) == len(page)
        assert process.wait() == 0
    with open(os.devnull, "rb") as nothing:  # cannot be written to
        done = ctl(*command, stdout=nothing, stderr=subprocess.PIPE)
    assert done.returncode == 74 and str(dev / name) in done.stderr
    assert links == {link: os.readlink(link) for link in links} and sorted(os.listdir(dev)) == ["fd", "link", "stdout"]


# --- in a browser


def opened(page, *options):
    """The page's document as Chromium has it after the script ran, and what it complained of."""
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=5000",
         f"--user-data-dir={page.parent / 'profile'}", *options, "--dump-dom", page.as_uri()],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


class Rows(html.parser.HTMLParser):
    """The rows of the table of locks: {name: {column: value}}."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.alerts, self._name, self._row = {}, 0, None, {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.alerts += tag == "img"
        if tag == "th" and attributes.get("scope") == "row":
            self._name, self._row = "", {}
        elif tag == "td" and "data-column" in attributes:
            self._row[attributes["data-column"]] = int(attributes["data-value"])

    def handle_data(self, data):
        if self._name is not None and not self._row:
            self._name += data

    def handle_endtag(self, tag):
        if tag == "tr" and self._name is not None:
            self.rows[self._name] = self._row
            self._name = None


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium here")
def test_a_browser_shows_the_figures_of_stats_and_no_markup_of_strangers(tmp_path):
    path = written(tmp_path / "a.log", *some(), *some(HOSTILE))
    page = tmp_path / "page.html"
    assert ctl("audit", "report", str(path), "-o", str(page)).returncode == 0
    document, complaints = opened(page)
    assert complaints == []
    found = Rows(document)
    assert found.alerts == 0
    summed = stats(path)
    wanted = {lock["lock"].replace("\u202e", "\\u{202e}"): lock for lock in summed["locks"]} | {"(all)": summed["total"]}
    assert found.rows.keys() == wanted.keys()
    for name, row in found.rows.items():
        for column, value in row.items():
            key, _, time = column.partition("-")
            if time != "p90":  # stats has none
                assert value == (wanted[name][key][time] if time else wanted[name][key]), (name, column)
    assert document.count('class="card"') == 2 and document.count('class="bar open"') == 2
    assert document.count("mark-force") >= 2 and len(re.findall(r'class="count"', document)) >= 2
    assert "mallory" in document and "denied by the access rules" in document
