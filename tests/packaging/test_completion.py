"""The completion scripts, each in its shell: commands, flags, values and operands.

COMPLETIONS_DIR has the scripts, COMPLETIONS_BIN is the program that wrote them and knows the options.
"""

import os
import pathlib
import subprocess

import pytest

from shells import SHELLS, there_is

FILES = {"ca.pem", "acl.json"}
COMMANDS = {"run", "locks", "show", "release", "kick", "info", "health", "audit", "check-acl", "help"}


def options(program):
    """Of each command the flags that the help of the program shows."""
    listed = subprocess.run([os.environ["COMPLETIONS_BIN"], "list", program], check=True, capture_output=True, text=True)
    found = {}
    for line in listed.stdout.splitlines():
        command, flag, _, _, about = line.split("\t")
        if about:
            found.setdefault(command, set()).add(flag)
    return found


SERVER = options("monolock")
CTL = options("monolockctl")


@pytest.fixture(scope="module", params=list(SHELLS))
def shell(request, tmp_path_factory):
    if not there_is(request.param):
        pytest.skip(f"there is no {request.param} here, or no bash-completion")
    work = tmp_path_factory.mktemp(request.param)
    for name in FILES:
        (work / name).touch()
    programs = tmp_path_factory.mktemp("programs")
    for name in ("nightly-import", "monolock", "monolockctl"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    started = SHELLS[request.param](
        pathlib.Path(os.environ["COMPLETIONS_DIR"]), work, f"{programs}:{os.environ['PATH']}")
    started.name = request.param
    yield started
    started.end()


@pytest.mark.parametrize("line, expected", [
    # commands
    ("monolockctl ", COMMANDS),
    ("monolockctl ch", {"check-acl"}),
    ("monolockctl audit ", {"verify", "stats", "report", "tail"}),
    ("monolockctl audit ve", {"verify"}),
    ("monolockctl help ", COMMANDS - {"help"}),
    ("monolockctl help ru", {"run"}),
    # flags, all of each command
    ("monolock -", SERVER[""]),
    ("monolockctl --", CTL[""]),
    *((f"monolockctl {command} --", {flag for flag in flags if flag.startswith("--")}) for command, flags in CTL.items() if command),
    *((f"monolockctl {command} -", CTL[command]) for command in ("audit tail", "audit report")),
    ("monolock -log", {"-log-level", "-log-format"}),
    ("monolockctl run --tls-", {"--tls-ca", "--tls-cert", "--tls-key", "--tls-name"}),
    # flags behind others, whose values are not taken for anything else
    ("monolockctl run --wait run --ret", {"--retry"}),
    ("monolockctl run --wait=5s --ret", {"--retry"}),
    ("monolockctl run --server locks.example:7070 --ret", {"--retry"}),
    ("monolockctl run --server=locks.example:7070 --ret", {"--retry"}),
    ("monolock -listen :7071 -thr", {"-threads"}),
    # values
    ("monolock -log-level ", {"debug", "info", "warn", "error"}),
    ("monolock -log-level=", {"debug", "info", "warn", "error"}),
    ("monolock -log-level w", {"warn"}),
    ("monolock -log-format=j", {"json"}),
    ("monolock -tls-cert ", FILES),
    ("monolock -tls-cert=", FILES),
    ("monolockctl run --tls-ca c", {"ca.pem"}),
    ("monolockctl run --tls-ca=c", {"ca.pem"}),
    ("monolockctl run --lease ", set()),
    # operands
    ("monolockctl run nig", set()),
    ("monolockctl run nightly nightly-im", {"nightly-import"}),
    ("monolockctl run nightly -- nightly-im", {"nightly-import"}),
    ("monolockctl run --server=locks.example:7070 --retry nightly -- nightly-im", {"nightly-import"}),
    ("monolockctl run nightly -- cat c", {"ca.pem"}),
    ("monolockctl audit verify ", FILES),
    ("monolockctl audit verify ca.pem a", {"acl.json"}),
    ("monolockctl check-acl ", FILES),
    ("monolockctl check-acl acl.json --id", {"--identity"}),
    ("monolockctl show ", set()),
    ("monolockctl show nightly --js", {"--json"}),
])
def test_completes(shell, line, expected):
    assert shell.words(line) == expected


def test_two_dashes_do_for_the_server_too(shell):
    if shell.name == "bash":
        assert shell.words("monolock --log") == {"--log-level", "--log-format"}


def test_words_that_follow_no_command_are_not_completed(shell):
    assert shell.words("monolockctl nonsense ru") == set()
