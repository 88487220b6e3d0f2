"""Flags, environment, help, exit codes: what a start says and how it ends."""

import json
import os
import re
import resource
import signal

import pytest

from support import logs, procfs
from support.server import run_to_end
from support.waiting import wait_until

FLAGS = {
    "-listen": ("MONOLOCK_LISTEN_ADDRESS", "0.0.0.0:7070"),
    "-tls-cert": ("MONOLOCK_TLS_CERT", ""),
    "-tls-key": ("MONOLOCK_TLS_KEY", ""),
    "-tls-client-ca": ("MONOLOCK_TLS_CLIENT_CA", ""),
    "-acl-file": ("MONOLOCK_ACL_FILE", ""),
    "-ops-listen": ("MONOLOCK_OPS_LISTEN_ADDRESS", ""),
    "-admin-listen": ("MONOLOCK_ADMIN_LISTEN_ADDRESS", ""),
    "-io-timeout": ("MONOLOCK_IO_TIMEOUT", "5s"),
    "-log-level": ("MONOLOCK_LOG_LEVEL", "info"),
    "-log-format": ("MONOLOCK_LOG_FORMAT", "text"),
    "-threads": ("MONOLOCK_THREADS", "cores"),
    "-shutdown-delay": ("MONOLOCK_SHUTDOWN_DELAY", "0s"),
}


def check_one_line(result, code, *names):
    """One line on stderr that holds one of the names, nothing on stdout, and the exit code."""
    assert result.returncode == code, (result.returncode, result.stderr)
    assert result.stdout == ""
    assert result.stderr.endswith("\n") and result.stderr.count("\n") == 1, result.stderr
    assert any(name in result.stderr for name in names), f"none of {names} in {result.stderr!r}"


def test_help_prints_the_table():
    for flag in ("-h", "--h"):
        result = run_to_end(flag)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        for name, (variable, default) in FLAGS.items():
            (line,) = [line for line in result.stdout.splitlines() if re.match(rf"\s*{name}\b", line)]
            assert variable in line and default in line, line


def test_version():
    result = run_to_end("-version")
    assert result.returncode == 0
    assert re.search(r"\d+\.\d+\.\d+", result.stdout)
    assert result.stdout.count("\n") == 1 and result.stderr == ""
    assert run_to_end("--version").stdout == result.stdout


# --- mistakes: one line, exit 2

BAD_FLAGS = {
    "unknown flag": (["-no-such-flag"], "no-such-flag"),
    "unknown flag with a value": (["--no-such-flag=1"], "no-such-flag"),
    "prefix of a flag": (["-thread", "1"], "-thread"),
    "stray argument": (["stray"], "stray"),
    "stray argument after flags": (["-threads", "1", "stray"], "stray"),
    "flag without its value": (["-listen"], "-listen"),
    "no threads": (["-threads", "0"], "-threads"),
    "no threads, joined": (["--threads=0"], "-threads"),
    "negative threads": (["-threads", "-1"], "-threads"),
    "threads that are no number": (["-threads", "two"], "-threads"),
    "threads and more": (["-threads", "2x"], "-threads"),
    "fractional threads": (["-threads", "1.5"], "-threads"),
    "threads beyond an integer": (["-threads", "99999999999999999999"], "-threads"),
    "empty threads": (["-threads="], "-threads"),
    "bare number as time": (["-io-timeout", "5"], "-io-timeout"),
    "no time": (["-io-timeout", "0s"], "-io-timeout"),
    "bare zero": (["-io-timeout", "0"], "-io-timeout"),
    "negative time": (["-io-timeout", "-1s"], "-io-timeout"),
    "unknown unit": (["-io-timeout", "5 s"], "-io-timeout"),
    "unit alone": (["-io-timeout", "s"], "-io-timeout"),
    "last part without unit": (["-io-timeout", "1m30"], "-io-timeout"),
    "days": (["-io-timeout", "1d"], "-io-timeout"),
    "time beyond bounds": (["-io-timeout", "99999999999h"], "-io-timeout"),
    "negative delay": (["-shutdown-delay", "-1s"], "-shutdown-delay"),
    "bare number as delay": (["-shutdown-delay", "3"], "-shutdown-delay"),
    "unknown level": (["-log-level", "loud"], "-log-level"),
    "level in capitals": (["-log-level", "INFO"], "-log-level"),
    "unknown format": (["-log-format", "xml"], "-log-format"),
    "address without port": (["-listen", "127.0.0.1"], "-listen"),
    "address with an empty port": (["-listen", "127.0.0.1:"], "-listen"),
    "port too large": (["-listen", "127.0.0.1:65536"], "-listen"),
    "negative port": (["-listen", "127.0.0.1:-1"], "-listen"),
    "port that is no number": (["-listen", "127.0.0.1:http"], "-listen"),
    "IPv6 without brackets": (["-listen", "::1:7070"], "-listen"),
    "IPv6 without port": (["-listen", "[::1]"], "-listen"),
    "bracket not closed": (["-listen", "[::1:7070"], "-listen"),
    "Unix socket without path": (["-listen", "unix:"], "-listen"),
    "certificate without its key": (["-tls-cert", "x"], "-tls-cert"),
    "key without its certificate": (["-tls-key", "x"], "-tls-key"),
    "client CA without TLS": (["-tls-client-ca", "x"], "-tls-client-ca"),
    "client CA without the key": (["-tls-client-ca", "x", "-tls-cert", "x"], "-tls-key"),
    "rules without TLS": (["-acl-file", "x"], "-acl-file"),
    "rules without a client CA": (["-acl-file", "x", "-tls-cert", "x", "-tls-key", "x"], "-acl-file"),
    "empty certificate": (["-tls-cert", "", "-tls-key", "x"], "-tls-cert"),
}


@pytest.mark.parametrize("arguments, name", BAD_FLAGS.values(), ids=BAD_FLAGS.keys())
def test_bad_flag(arguments, name):
    check_one_line(run_to_end(*arguments), 2, name)


BAD_VARIABLES = {
    "MONOLOCK_LISTEN_ADDRESS": "nowhere",
    "MONOLOCK_OPS_LISTEN_ADDRESS": "::1:9090",
    "MONOLOCK_ADMIN_LISTEN_ADDRESS": "9091",
    "MONOLOCK_IO_TIMEOUT": "5",
    "MONOLOCK_LOG_LEVEL": "loud",
    "MONOLOCK_LOG_FORMAT": "yaml",
    "MONOLOCK_THREADS": "0",
    "MONOLOCK_SHUTDOWN_DELAY": "-1s",
}


PARTNERLESS = ["MONOLOCK_TLS_CERT", "MONOLOCK_TLS_KEY", "MONOLOCK_TLS_CLIENT_CA", "MONOLOCK_ACL_FILE"]


@pytest.mark.parametrize("variable", PARTNERLESS)
def test_variable_without_its_partner(variable):
    check_one_line(run_to_end(env={variable: "x"}), 2, variable)


def test_partners_may_come_one_by_flag_and_one_by_variable(start_server, tls_files):
    variables = {"MONOLOCK_TLS_KEY": str(tls_files.key)}
    server = start_server("-tls-cert", str(tls_files.certificate), env=variables)
    with tls_files.connect(server.address) as client:
        client.own("mixed")


@pytest.mark.parametrize("variable, value", BAD_VARIABLES.items(), ids=BAD_VARIABLES.keys())
def test_bad_variable(variable, value):
    check_one_line(run_to_end(env={variable: value}), 2, variable)


def test_diagnostic_stays_one_line_whatever_was_typed():
    check_one_line(run_to_end("-log-level", "a\nb\x1b[31m"), 2, "-log-level")
    check_one_line(run_to_end("stray\nlevel=error"), 2, "stray")
    assert "\x1b" not in run_to_end("-log-level", "\x1b[31m").stderr


# --- -check


def test_check_reads_files_and_opens_nothing(start_server):
    server = start_server()
    host, port = server.address
    result = run_to_end("-check", "-listen", f"{host}:{port}")
    assert result.returncode == 0, result.stderr
    assert result.stderr == "" and "TLS" in result.stdout and "access rules" in result.stdout


def test_check_tells_each_mistake_in_a_line_of_its_own(tmp_path):
    names = ("cert.pem", "key.pem", "ca.pem", "acl.json")
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.write_text('{"rules":[{"identity":1,"locks":[]}]}')
    flags = zip(("-tls-cert", "-tls-key", "-tls-client-ca", "-acl-file"), map(str, paths))
    words = [word for pair in flags for word in pair]
    result = run_to_end("-check", *words)
    assert result.returncode == 1 and result.stdout == ""
    lines = result.stderr.splitlines()
    assert all(line.startswith("monolock: ") for line in lines), lines
    for place in (*map(str, paths), "/rules/0/identity", "/rules/0/locks"):
        assert any(place in line for line in lines), (place, lines)
    # A start says the same in one line.
    check_one_line(run_to_end(*words, "-listen", "127.0.0.1:0"), 1, str(paths[0]), str(paths[3]))


# --- flag, environment, default


@pytest.mark.parametrize(
    "form",
    [["-log-format", "json"], ["-log-format=json"], ["--log-format", "json"], ["--log-format=json"]],
    ids=" ".join,
)
def test_forms_of_a_flag(start_server, form):
    assert json.loads(start_server(*form).lines()[0])


def test_environment_beats_default(start_server):
    assert json.loads(start_server(env={"MONOLOCK_LOG_FORMAT": "json"}).lines()[0])


def test_flag_beats_environment(start_server):
    server = start_server(
        "-log-format", "text", env={"MONOLOCK_LOG_FORMAT": "json", "MONOLOCK_LISTEN_ADDRESS": "127.0.0.1:1"}
    )
    assert logs.parse_text(server.lines()[0])


def test_listen_address_from_the_environment(start_server):
    server = start_server(listen=None, env={"MONOLOCK_LISTEN_ADDRESS": "127.0.0.1:0"})
    assert server.address[0] == "127.0.0.1" and server.port != 0
    server.owner("here").close()


def test_every_variable_is_read(start_server):
    server = start_server(
        listen=None,
        env={
            "MONOLOCK_LISTEN_ADDRESS": "127.0.0.1:0",
            "MONOLOCK_OPS_LISTEN_ADDRESS": "127.0.0.1:0",
            "MONOLOCK_ADMIN_LISTEN_ADDRESS": "127.0.0.1:0",
            "MONOLOCK_IO_TIMEOUT": "300ms",
            "MONOLOCK_LOG_FORMAT": "json",
            "MONOLOCK_THREADS": "3",
            "MONOLOCK_SHUTDOWN_DELAY": "10ms",
        },
    )
    with server.connect() as client:
        client.expect_eof(within=3)
    assert json.loads(server.lines()[0])
    assert server.ops_address[1] != 0 and server.admin_address[1] != 0


def test_empty_variable_is_unset(start_server):
    empty = {variable: "" for variable, _ in FLAGS.values()}
    server = start_server(env=empty)
    assert logs.parse_text(server.lines()[0])


@pytest.mark.parametrize("value", ["5s", "250ms", "1m30s", "1.5h", "1h2m3s"])
def test_durations(start_server, value):
    start_server("-io-timeout", value).owner("duration").close()


@pytest.mark.parametrize("value", ["0s", "100us", "1ms", "0.01s"])
def test_short_durations(start_server, value):
    start_server("-shutdown-delay", value).owner("duration").close()


def test_threads(start_server):
    one, three = start_server("-threads", "1"), start_server("-threads", "3")
    assert len(procfs.threads(three.pid)) - len(procfs.threads(one.pid)) == 2


def test_threads_by_default_are_the_cores(start_server):
    by_default, one = start_server(env={"MONOLOCK_THREADS": ""}), start_server("-threads", "1")
    cores = len(os.sched_getaffinity(0))
    assert len(procfs.threads(by_default.pid)) - len(procfs.threads(one.pid)) == cores - 1


def test_log_level(start_server):
    """What is below the level is not said; errors and the exit code stay."""
    server = start_server("-log-level", "error", wait=False)
    wait_until(lambda: procfs.listening_ports(server.pid), "the server listens")
    server.stop()
    assert server.stderr() == ""


def test_nothing_on_stdout(start_server):
    server = start_server("-log-level", "debug")
    server.owner("quiet").close()
    server.stop()
    assert server.stdout() == ""


def test_descriptor_limit_is_raised(start_server):
    hard = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    server = start_server(before_exec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
    assert procfs.descriptor_limits(server.pid) == (hard, hard)
    owners = [server.owner(f"many-{index}") for index in range(100)]
    for owner in owners:
        owner.heartbeat().expect_acquired()
        owner.close()


def test_start_that_fails_tells_the_address(start_server):
    server = start_server()
    taken = f"127.0.0.1:{server.port}"
    check_one_line(run_to_end("-listen", taken), 1, taken)
    server.owner("still-served").close()


FAILING_STARTS = {
    "not this machine's": "192.0.2.1:0",
    "unknown host": "no-such-host.invalid:7070",
    "no such folder": "unix:/no/such/folder/socket",
}


@pytest.mark.parametrize("address", FAILING_STARTS.values(), ids=FAILING_STARTS.keys())
def test_start_that_cannot_listen(address):
    check_one_line(run_to_end("-listen", address, within=60), 1, address, address.removeprefix("unix:"))


def test_unix_path_too_long(tmp_path):
    result = run_to_end("-listen", f"unix:{tmp_path}/{'x' * 200}")
    assert result.returncode in (1, 2)
    assert result.stderr.count("\n") == 1


def test_hangup_does_not_end_the_server(start_server):
    server = start_server()
    owner, waiter = server.owner("hup"), server.waiter("hup")
    for _ in range(5):
        server.signal(signal.SIGHUP)
    owner.heartbeat().expect_acquired()
    waiter.heartbeat().expect_waiting()
    owner.close()
    waiter.expect_acquired()
    waiter.close()


