"""deploy/prometheus and deploy/grafana: whatever they ask for, a real server exports."""

import itertools
import json
import pathlib
import re
import subprocess

import pytest
import yaml

from support import promql
from support import server as servers

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "monolock.rules.yml"
RULES_TEST = DEPLOY / "prometheus" / "monolock.test.yml"
OF_PROMETHEUS = {"up"}  # it makes these itself
OF_A_TARGET = {"job", "instance"}  # and gives each series these
WINDOWS = {"$__rate_interval": "5m", "$window": "5m"}  # what Grafana puts in their place
EVERYTHING = {"$job": ".+", "$instance": ".+"}


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def promtool(*arguments, folder=None):
    done = subprocess.run(["promtool", *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def exported():
    """The labels of every series of a real server, by name."""
    server = servers.Server("-ops-listen", "127.0.0.1:0")
    try:
        found = {}
        for family in server.metrics().values():
            for name, labels in family.samples:
                found.setdefault(name, []).append(dict(labels))
        server.stop()
        return found
    finally:
        server.dispose()


def faults_of(expression, exported):
    """What the expression asks for that is not there."""
    selectors, labels = promql.parse(expression)
    assert selectors, expression
    for selector in selectors:
        series = [{}] if selector.name in OF_PROMETHEUS else exported.get(selector.name)
        if series is None:
            yield f"no metric {selector.name}"
            continue
        labels -= set().union(*series)
        for matcher in selector.matchers:
            if matcher.label not in OF_A_TARGET and not any(
                matcher.label in each and matcher.takes(each[matcher.label]) for each in series
            ):
                yield f"no series of {selector.name} has {matcher}"
    for label in labels - OF_A_TARGET:
        yield f"no label {label}"


# --- the alert rules


def alerts():
    return [rule for group in load(RULES)["groups"] for rule in group["rules"]]


def test_the_rules_are_valid():
    promtool("check", "rules", RULES)


def test_the_rules_pass_their_unit_tests():
    promtool("test", "rules", RULES_TEST)


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_is_there(rule, exported):
    assert list(faults_of(rule["expr"], exported)) == []
    assert rule["labels"].keys() == {"severity"} and rule["labels"]["severity"] in ("page", "ticket", "info")
    assert rule["annotations"].keys() == {"summary", "description"}
    for selector in promql.parse(rule["expr"])[0]:
        assert promql.Matcher("job", "=", "monolock") in selector.matchers, "counts what others export"


def test_each_alert_is_seen_to_come_and_to_stay_away():
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)
    checks = [check for test in load(RULES_TEST)["tests"] for check in test["alert_rule_test"]]
    assert {check["alertname"] for check in checks if check["exp_alerts"]} == set(names)
    assert {check["alertname"] for check in checks if not check["exp_alerts"]} == set(names)


def test_the_unit_tests_are_about_real_series(exported):
    for test in load(RULES_TEST)["tests"]:
        for series in test["input_series"]:
            ((selector,), _) = promql.parse(series["series"])
            labels = {matcher.label: matcher.value for matcher in selector.matchers}
            assert labels.pop("job") and labels.pop("instance")
            assert labels in ([{}] if selector.name in OF_PROMETHEUS else exported[selector.name]), series


# --- the dashboard


@pytest.fixture(scope="module")
def dashboard():
    def no_duplicates(pairs):
        assert len(dict(pairs)) == len(pairs), "a key twice"
        return dict(pairs)

    text = (DEPLOY / "grafana" / "monolock.json").read_text(encoding="utf-8")
    return json.loads(text, object_pairs_hook=no_duplicates)


def expressions(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        if "expr" in annotation:
            yield annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield re.fullmatch(r"label_values\((.*), \w+\)", variable["query"]["query"])[1]


def filled(expression):
    for name, value in (WINDOWS | EVERYTHING).items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def test_the_dashboard_asks_for_what_is_there(dashboard, exported):
    faults = {expression: list(faults_of(filled(expression), exported)) for expression in expressions(dashboard)}
    assert {expression: found for expression, found in faults.items() if found} == {}


def test_the_dashboard_shows_what_operators_ask_for(dashboard):
    shown = {selector.name for each in expressions(dashboard) for selector in promql.parse(filled(each))[0]}
    assert shown >= {
        "monolock_waiters", "monolock_locks_held", "monolock_handover_duration_seconds_bucket",
        "monolock_wait_duration_seconds_bucket", "monolock_hold_duration_seconds_bucket", "monolock_releases_total",
        "monolock_acl_denials_total", "monolock_protocol_errors_total", "monolock_tls_handshake_errors_total",
        "monolock_accept_errors_total", "monolock_audit_lost_events_total", "monolock_reload_failures_total",
        "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
    }  # fmt: skip


def test_every_expression_of_the_dashboard_gives_data(dashboard, exported, tmp_path):
    """promtool evaluates them over the series of the real server, all of them rising."""
    series = [
        {"series": f"{name}{{{','.join(f'{k}={json.dumps(v)}' for k, v in labels.items())}}}", "values": "1+1x20"}
        for name, all_labels in itertools.chain(exported.items(), [("up", [{}])])
        for labels in [{"job": "monolock", "instance": "here"} | each for each in all_labels]
    ]
    checks = [
        {"expr": f"count({filled(each)}) > bool 0", "eval_time": "15m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for each in expressions(dashboard)
    ]
    path = tmp_path / "dashboard.test.yml"
    path.write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]}))
    promtool("test", "rules", path)


def test_the_dashboard_is_one_that_grafana_imports(dashboard):
    assert dashboard["schemaVersion"] >= 36 and dashboard["title"] and dashboard["uid"] and dashboard["id"] is None
    datasource, *others = dashboard["templating"]["list"]
    assert (datasource["type"], datasource["query"], datasource["name"]) == ("datasource", "prometheus", "datasource")
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert all(variable["datasource"] == chosen for variable in others if variable["type"] == "query")
    ids, taken = set(), set()
    for panel in dashboard["panels"]:
        assert panel["id"] not in ids, "a panel's number twice"
        ids.add(panel["id"])
        assert panel["type"] in ("row", "stat", "timeseries") and panel["title"]
        at = panel["gridPos"]
        places = set(itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])))
        assert at["x"] >= 0 and at["x"] + at["w"] <= 24 and not places & taken, f"{panel['title']} lies on another"
        taken |= places
        if panel["type"] != "row":
            assert panel["description"] and panel["datasource"] == chosen and panel["targets"]
            assert panel["fieldConfig"]["defaults"]["unit"]
            references = [target["refId"] for target in panel["targets"]]
            assert len(set(references)) == len(references)
            assert all(target["datasource"] == chosen for target in panel["targets"])


def test_a_fault_would_be_found(exported):
    good = 'sum by (le) (rate(monolock_wait_duration_seconds_bucket{job="monolock",le=~"60(\\\\.0)?"}[5m])) > 0'
    assert list(faults_of(good, exported)) == []
    for old, new in [("wait_duration", "wait_time"), ("(le)", "(bound)"), ('le=~"60', 'le=~"61'), ("_bucket", "")]:
        assert len(list(faults_of(good.replace(old, new), exported))) >= 1, new
