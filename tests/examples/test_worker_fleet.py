"""examples/worker_fleet: no payment is lost, done twice or out of turn, whatever becomes of the workers."""

import signal

import pytest
from harness import postgres
from programs import EXAMPLES, LEASE_MS, address, binary
from support.waiting import scaled, wait_until

ACCOUNTS = 4
missing = next(
    (
        f"{what} is not installed"
        for what, there in (("libpq-dev", binary("example_worker")), ("PostgreSQL", postgres.binary("initdb")))
        if not there
    ),
    None,
)
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


@pytest.fixture(scope="module")
def cluster():
    # Nobody pulls its plug, so it need not wait for the disk.
    with postgres.started("fleet", fsync="off") as made:
        yield made


@pytest.fixture
def database(cluster):
    cluster.ask((EXAMPLES / "worker_fleet" / "schema.sql").read_text())
    yield cluster
    cluster.ask("DROP TABLE payment, account")


def give_work(database, payments):
    database.ask(
        f"""INSERT INTO account (name) SELECT 'a' || n FROM generate_series(1, {ACCOUNTS}) n;
        INSERT INTO payment (account, amount)
        SELECT 'a' || n % {ACCOUNTS} + 1, n FROM generate_series(1, {payments}) n;"""
    )


def left(database):
    return int(database.ask("SELECT count(*) FROM payment WHERE done_by IS NULL"))


def test_a_fleet_that_is_struck_works_off_everything(server, start, database):
    payments = scaled(1000, at_least=600)
    give_work(database, payments)
    fleet = [
        start(binary("example_worker"), address(server), database.conninfo, str(LEASE_MS)) for _ in range(4)
    ]
    frozen, killed, retired, _ = fleet
    for each in fleet:
        each.wait_line("applied")
    frozen.signal(signal.SIGSTOP)
    killed.signal(signal.SIGKILL)
    retired.signal(signal.SIGTERM)
    assert retired.wait() == 0
    retired = start(binary("example_worker"), address(server), database.conninfo, str(LEASE_MS))
    fleet.append(retired)
    wait_until(lambda: left(database) == 0, "all is done", within=60)
    frozen.signal(signal.SIGCONT)
    statuses = [each.wait() for each in fleet if each not in (frozen, killed)]
    assert statuses == [0] * len(statuses)
    # Its transaction was taken from it, or its lock, or it had neither.
    assert frozen.wait() in (0, 1)

    wrong = database.ask(
        """SELECT name FROM account JOIN payment ON account = name
        GROUP BY name, balance HAVING balance <> sum(amount)"""
    )
    assert wrong == "", "a payment was applied twice, or not at all"
    out_of_turn = database.ask(
        """SELECT id FROM (SELECT id, done_by, lag(done_by) OVER (PARTITION BY account ORDER BY id) AS before
        FROM payment) AS each WHERE done_by < before"""
    )
    assert out_of_turn == ""
    said = [line for each in fleet for line in each.lines() if line.startswith("applied")]
    assert len(said) == len(set(said)) <= payments


def test_a_worker_that_was_overtaken_is_refused(server, start, database):
    give_work(database, ACCOUNTS)
    database.ask("UPDATE account SET token = 9007199254740991")  # of an owner to come
    worker = start(binary("example_worker"), address(server), database.conninfo)
    assert worker.wait() == 1
    assert "a later owner was here" in worker.stderr()
    assert left(database) == ACCOUNTS
