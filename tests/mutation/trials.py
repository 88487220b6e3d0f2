"""Runs the tests against one mutant after another, each within limits of processor time and memory."""

import dataclasses
import os
import re
import resource
import signal
import subprocess

MEMORY = 3 << 30
NOT_KILLED, BY_TIME = "survived", "time limit"


@dataclasses.dataclass
class Suite:
    name: str       # what it is called in the report
    target: str     # what is built for it
    program: str    # below the build folder
    arguments: tuple = ()
    of: str = ""    # the folder whose tests these are
    seconds: float = 0.0
    reached: frozenset = frozenset()


def gtest(name, program, pattern="*", of=""):
    return Suite(name, program.rsplit("/", 1)[-1], program,
                 (f"--gtest_filter={pattern}", "--gtest_fail_fast", "--gtest_brief=1"), of)


def suites(seeds):
    protocol, core = "src/protocol/monolock_protocol_test", "src/core/monolock_core_test"
    simulate, failover = "tests/simulation/simulate", "tests/simulation/failover/simulate_failover"
    return [
        gtest("unit tests", protocol, "-*vectors*", "protocol"),
        gtest("vectors", protocol, "*vectors*", "protocol"),
        gtest("unit tests", core, "-*vectors*", "core"),
        gtest("vectors", core, "*vectors*", "core"),
        gtest("unit tests", "src/core/monolock_lock_table_allocation_test", of="core"),
        gtest("unit tests", "src/core/monolock_session_engine_allocation_test", of="core"),
        gtest("unit tests", "src/client/claim_test", of="claim"),
        gtest("unit tests", "src/coordination/monolock_coordination_test", of="coordination"),
        gtest("unit tests", "src/etcd/messages/etcd_messages_test", of="etcd messages"),
        Suite("simulator", "simulate", simulate, ("--seed", "1", "--seeds", str(max(1, seeds // 10)))),
        Suite("simulator", "simulate_failover", failover, ("--seed", "1", "--seeds", str(seeds))),
        Suite("simulator", "simulate", simulate, ("--seed", "1001", "--seeds", str(seeds))),
    ]


def in_order(all_suites, folder):
    """The folder's own tests first, then the others', the simulator last."""
    return ([each for each in all_suites if each.of == folder]
            + [each for each in all_suites if each.of and each.of != folder]
            + [each for each in all_suites if not each.of])


def limits(seconds):
    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return apply


def run(build, suite, mutant=0, reached_file=None, seconds=600):
    """(exit status, what it printed); None for a status if a limit of time ended it."""
    environment = dict(os.environ, MUTANT=str(mutant))
    if reached_file:
        environment["MUTANT_REACHED"] = str(reached_file)
    try:
        ran = subprocess.run([build / suite.program, *suite.arguments], env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, preexec_fn=limits(seconds), timeout=40 * seconds + 60,
                             errors="replace", text=True)
    except subprocess.TimeoutExpired as late:
        return None, str(late)
    if -ran.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return None, ran.stdout
    return ran.returncode, ran.stdout


QUICK_MS = 5


def split(build, suite):
    """A program of unit tests as two suites, so that the many quick tests have their turn before the few slow ones."""
    if not suite.of:
        return [suite]
    listed = Suite(suite.name, suite.target, suite.program, suite.arguments[:1])
    status, output = run(build, listed)
    if status != 0:
        raise SystemExit(f"{suite.program} fails without any mutant:\n{output[-4000:]}")
    times = re.findall(r"^\[       OK \] (\S+) \((\d+) ms\)", output, re.MULTILINE)
    parts = [[test for test, time in times if int(time) <= QUICK_MS],
             [test for test, time in times if int(time) > QUICK_MS]]
    return [dataclasses.replace(suite, arguments=(f"--gtest_filter={':'.join(part)}", *suite.arguments[1:]))
            for part in parts if part]


def measure(build, all_suites, area):
    """Each suite without a mutant: it must pass; how long it takes, and which mutants it comes by."""
    quick_first = [split(build, each) for each in all_suites]
    all_suites = [parts[turn] for turn in range(2) for parts in quick_first if turn < len(parts)]
    for each in all_suites:
        reached = area / "reached"
        reached.unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        status, output = run(build, each, 0, reached)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if status != 0:
            raise SystemExit(f"{each.program} fails without any mutant:\n{output[-4000:]}")
        each.seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        told = reached.read_bytes() if reached.exists() else b""
        each.reached = frozenset(number for number, asked in enumerate(told) if asked)
    return all_suites


def limit_of(suite):
    return int(5 * suite.seconds) + 3


def what_failed(output):
    failed = re.search(r"^\[  FAILED  \] (\w+\.\w+)", output, re.MULTILINE)
    broken = re.search(r"^broken invariant: (\w+)", output, re.MULTILINE)
    asserted = re.search(r"broken invariant at ([^\s:]+:\d+)", output)
    return failed[1] if failed else broken[1] if broken else "assertion" if asserted else "a crash"


def try_mutant(build, all_suites, mutant, folder, seen=True, make=None):
    """(verdict, which suite, what in it). With `seen`, only suites that come by the mutant are run; `make`, if
    given, builds a suite's program first."""
    for each in in_order(all_suites, folder):
        if seen and mutant.id not in each.reached:
            continue
        if make and not make(each.target):
            return "does not compile", "", ""
        status, output = run(build, each, mutant.id if seen else 0, seconds=limit_of(each))
        if status is None:
            return "killed", BY_TIME, each.program
        if status != 0:
            name = each.name if each.of in (folder, "") else "tests of other folders"
            return "killed", name, what_failed(output)
    return NOT_KILLED, "", ""
