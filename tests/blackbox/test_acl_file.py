"""Rules that are refused, at start and at reload (S12): what is wrong is told, and nothing changes."""

import json

import pytest

from support.protocol import NOT_AUTHORIZED
from support.server import run_to_end
from support.tls_files import TlsFiles


@pytest.fixture
def acl_files(authority, tmp_path):
    return TlsFiles(tmp_path, authority, rules=[])


@pytest.fixture
def server(start_server, acl_files):
    """Allows everything to "good"."""
    acl_files.permit([("good", ["*"])])
    return start_server("-threads", "2", tls=acl_files)


# --- files that are refused

GOOD_RULE = {"identity": "a", "locks": ["x"]}


def rules_text(*rules):
    return json.dumps({"rules": list(rules)})


# What the file holds, and a word that tells where the mistake is.
MEANINGLESS = {
    "an empty object": ("{}", "rules"),
    "no object": ("[]", ""),
    "null": ("null", ""),
    "rules of a wrong type": ('{"rules":{}}', "/rules"),
    "rules as a string": ('{"rules":"a"}', "/rules"),
    "rules null": ('{"rules":null}', "/rules"),
    "an unknown key": ('{"rules":[],"default":"allow"}', "default"),
    "a key of other case": ('{"Rules":[]}', "Rules"),
    "rules twice": ('{"rules":[],"rules":[{"identity":"*","locks":["*"]}]}', "rules"),
    "a rule that is no object": (rules_text(GOOD_RULE, "a"), "/rules/1"),
    "a rule that is null": (rules_text(None), "/rules/0"),
    "no identity": (rules_text(GOOD_RULE, {"locks": ["x"]}), "/rules/1"),
    "no locks": (rules_text({"identity": "a"}), "/rules/0"),
    "an empty rule": (rules_text({}), "/rules/0"),
    "an empty list of locks": (rules_text({"identity": "a", "locks": []}), "/rules/0/locks"),
    "locks as a string": (rules_text({"identity": "a", "locks": "x"}), "/rules/0/locks"),
    "locks as an object": (rules_text({"identity": "a", "locks": {"x": 1}}), "/rules/0/locks"),
    "a lock that is a number": (rules_text(GOOD_RULE, {"identity": "a", "locks": ["x", 7]}), "/rules/1/locks/1"),
    "a lock that is null": (rules_text({"identity": "a", "locks": [None]}), "/rules/0/locks/0"),
    "a lock that is a list": (rules_text({"identity": "a", "locks": [["x"]]}), "/rules/0/locks/0"),
    "an identity that is a number": (rules_text({"identity": 1, "locks": ["x"]}), "/rules/0/identity"),
    "an identity that is a list": (rules_text({"identity": ["a"], "locks": ["x"]}), "/rules/0/identity"),
    "an identity that is false": (rules_text({"identity": False, "locks": ["x"]}), "/rules/0/identity"),
    "an unknown key in a rule": (rules_text(GOOD_RULE | {"allow": True}), "allow"),
    "identities": (rules_text({"identities": ["a"], "locks": ["x"]}), "identities"),
    "identity twice": ('{"rules":[{"identity":"a","identity":"*","locks":["x"]}]}', "identity"),
    "locks twice": ('{"rules":[{"identity":"a","locks":["x"],"locks":["*"]}]}', "locks"),
    "identity twice, once escaped": ('{"rules":[{"identity":"a","\\u0069dentity":"*","locks":["x"]}]}', "identity"),
}

UNREADABLE = {
    "nothing": "",
    "spaces": " \n\t ",
    "half written": rules_text(GOOD_RULE)[:-7],
    "cut in a string": '{"rules":[{"identity":"a',
    "two documents": rules_text(GOOD_RULE) * 2,
    "something behind it": rules_text(GOOD_RULE) + "x",
    "a comma too many": '{"rules":[{"identity":"a","locks":["x",]}]}',
    "a comma too few": '{"rules":[{"identity":"a" "locks":["x"]}]}',
    "a comment": '{"rules":[] /* all */}',
    "single quotes": "{'rules':[]}",
    "no JSON at all": "identity: a\nlocks: [x]\n",
    "not a number": '{"rules":NaN}',
    "bytes that are no UTF-8": b'{"rules":[{"identity":"\xff","locks":["x"]}]}',
    "half a surrogate pair": '{"rules":[{"identity":"\\ud800","locks":["x"]}]}',
    "a control character in a string": '{"rules":[{"identity":"a\nb","locks":["x"]}]}',
    "a NUL behind it": rules_text(GOOD_RULE) + "\0",
    "far too deep": "[" * 100_000,
}

REFUSED = {name: text for name, (text, _) in MEANINGLESS.items()} | UNREADABLE | {"a file that is gone": None}


def check_start_refused(files, *expected):
    """One line that names the file and what else is expected, and exit 1."""
    result = run_to_end("-listen", "127.0.0.1:0", *files.flags())
    assert result.returncode == 1, (result.returncode, result.stderr)
    assert result.stdout == ""
    assert result.stderr.endswith("\n") and result.stderr.count("\n") == 1, result.stderr
    for text in (str(files.acl), *expected):
        assert text in result.stderr, f"no {text!r} in {result.stderr!r}"
    return result.stderr


@pytest.mark.parametrize("text, where", MEANINGLESS.values(), ids=MEANINGLESS.keys())
def test_start_with_rules_that_mean_nothing(acl_files, text, where):
    acl_files.permit(text)
    check_start_refused(acl_files, where)


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_start_with_a_file_that_is_no_json(acl_files, text):
    acl_files.permit(text)
    check_start_refused(acl_files)


def test_start_without_the_file(acl_files):
    acl_files.replace(acl_files.acl, None)
    check_start_refused(acl_files, "No such file")
    acl_files.acl.mkdir()
    check_start_refused(acl_files)


def test_syntax_is_told_with_line_and_column(acl_files):
    acl_files.permit('{\n  "rules": [\n    { "identity": "a", "locks": ["x"]; }\n  ]\n}\n')
    told = check_start_refused(acl_files)
    assert f"{acl_files.acl}:3:38" in told, told


def test_all_mistakes_are_told_at_once(acl_files):
    acl_files.permit(
        json.dumps(
            {
                "rules": [
                    {"identity": 1, "locks": []},
                    GOOD_RULE,
                    {"locks": ["x", None]},
                    {"identity": "b", "locks": ["x"], "until": "noon"},
                ],
                "version": 2,
            }
        )
    )
    places = ["/rules/0/identity", "/rules/0/locks", "/rules/2", "/rules/2/locks/1", "/rules/3"]
    check_start_refused(acl_files, *places, "until", "version")


def test_text_of_the_file_forges_no_line(acl_files):
    acl_files.permit(json.dumps({"rules": [], "x\nlevel=error \x1b[31m": 1}))
    assert "\x1b" not in check_start_refused(acl_files)


# --- at reload


def check_only(server, who):
    """May claim, and another may not."""
    other = {"good": "bad", "bad": "good"}[who]
    with server.connect(who=who) as client, server.connect(who=other) as denied:
        client.own("only")
        denied.acquire("only").expect_refused(NOT_AUTHORIZED)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_reload_of_a_refused_file_keeps_the_rules(server, acl_files, text):
    """One error line with the count of failures, and the rules before stay, waiters too."""
    with server.connect(who="good") as owner, server.connect(who="good") as waiter:
        owner.own("kept")
        waiter.queue("kept")
        acl_files.replace(acl_files.acl, None) if text is None else acl_files.permit(text)
        record = server.reload_badly("acl")
        assert record["reload_failures"] == "1" and str(acl_files.acl) in "".join(record.values())
        check_only(server, "good")
        waiter.heartbeat().expect_waiting()
        owner.close()
        waiter.expect_acquired()


def test_failures_are_counted_and_a_good_file_is_taken_again(server, acl_files):
    for count in range(1, 4):
        acl_files.permit("{}")
        assert server.reload_badly("acl")["reload_failures"] == str(count)
    acl_files.permit([("bad", ["*"])])
    server.reload_well()
    check_only(server, "bad")
    acl_files.permit("")
    assert server.reload_badly("acl")["reload_failures"] == "4"
    check_only(server, "bad")
    assert len(server.loud_lines()) == 4
