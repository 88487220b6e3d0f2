"""The soak itself: servers, everybody who uses them, and a sample of each now and then."""

import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

from harness.errors import CannotMeasure
from harness.options import DESCRIPTORS_SPARE, descriptor_limit
from support.pki import Authority

from .helpers import Broken
from .judging import FLAT, MINUTES_MIN, Verdict, judge_books, judge_flat, judge_none, judge_some
from .subject import Subject

TLS_SHARE = 0.1  # of all sessions
SAMPLE_SECONDS_MAX, SAMPLES_MIN = 10, 24
CHURN_DESCRIPTORS = 500  # more than all that come and go have open at a time


def shares(wanted):
    """How many sessions the plain server and the one over TLS have, and what bounds them, in words."""
    limit = descriptor_limit() - DESCRIPTORS_SPARE - CHURN_DESCRIPTORS
    tls = round(wanted * TLS_SHARE)
    plain = wanted - tls
    if max(plain, tls) <= limit:
        return plain, tls, None
    return min(plain, limit), min(tls, limit), (
        f"{wanted:,} sessions were asked for; a process may have {descriptor_limit():,} descriptors here, "
        f"so the plain server has {min(plain, limit):,} and that over TLS {min(tls, limit):,}"
    )


def sample_seconds(minutes):
    return min(SAMPLE_SECONDS_MAX, minutes * 60 / SAMPLES_MIN)


def planted(folder):
    """The environment of a server that leaks."""
    shim = pathlib.Path(folder, "leak_shim.so")
    source = pathlib.Path(__file__).with_name("leak_shim.c")
    compiler = shutil.which("cc") or shutil.which("c++")
    subprocess.run([compiler, "-x", "c", "-O1", "-shared", "-fPIC", "-o", shim, source], check=True)
    return {"LD_PRELOAD": str(shim)}


def soak(flags, options, say):
    """The samples by server, and the verdicts."""
    plain, tls, bounded = shares(flags.sessions)
    if bounded:
        say(bounded)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="monolock-soak-")))
        (folder / "authority").mkdir()
        leak = planted(folder) if flags.plant == "leak" else None
        subjects = []
        for name, count, authority in (("plain", plain, None), ("mtls", tls, Authority(folder / "authority"))):
            if count:
                subjects.append(Subject(name, folder / name, options, count, authority, leak))
                stack.callback(subjects[-1].dispose)
        for subject in subjects:
            subject.open_all(flags.seed, flags.reload_seconds)
            say(f"{subject.sessions:,} sessions are open, {subject.transport}")
        samples = take_samples(subjects, flags, options.build_dir / "soak" / "samples.jsonl", say)
        if not all(samples.values()):
            raise Broken("interrupted before anything was sampled")
        verdicts = []
        for subject in subjects:
            verdicts += [(subject.name, verdict) for verdict in judge_series(samples[subject.name])]
            verdicts += [(subject.name, verdict) for verdict in judge_end(subject, samples[subject.name], options)]
        return samples, verdicts


def take_samples(subjects, flags, path, say):
    """Until the time is up, or somebody interrupts. Each is written down at once."""
    every = sample_seconds(flags.minutes)
    samples = {subject.name: [] for subject in subjects}
    started = time.monotonic()
    due = started + every
    with path.open("w") as file, contextlib.suppress(KeyboardInterrupt):
        while due <= started + flags.minutes * 60 + every / 2:
            time.sleep(max(due - time.monotonic(), 0))
            due += every
            for subject in subjects:
                sample = {"t": time.monotonic() - started, **subject.sample()}
                samples[subject.name].append(sample)
                print(json.dumps({"server": subject.name, **sample}), file=file, flush=True)
            if len(samples[subjects[0].name]) % max(round(60 / every), 1) == 0:
                for subject in subjects:
                    say(line_of(subject.name, samples[subject.name][-1]))
    return samples


def line_of(name, sample):
    return (
        f"{sample['t']:>6.0f} s {name:>5}: {sample['owning']:,} owning, {sample['lost']} lost; {sample['descriptors']:,} descriptors, "
        f"{sample['resident'] / (1 << 20):.1f} MiB, {sample['cpu']:.0%} of a core; beat max {sample['beat_max_ms']:.1f} ms, "
        f"handover p50 {sample['handover_p50_ms']:.2f}, max {sample['handover_max_ms']:.1f} ms; "
        f"{sample['counts'].get('reloads', 0)} reloads, {len(sample['unexpected'])} unexpected"
    )


def judge_series(samples, minutes_min=MINUTES_MIN):
    """Growth over less than so many minutes says nothing about anybody."""
    times = [sample["t"] for sample in samples]
    minutes = (times[-1] + sample_seconds(minutes_min)) / 60  # of the run: the last one may be that much before its end
    if minutes < minutes_min:
        said = f"only {times[-1] / 60:.1f} minutes were sampled, {minutes_min:g} are needed: what a start fills is still filling"
        yield Verdict("growth can be judged", False, said)
    else:
        for tolerance in FLAT:
            yield judge_flat(tolerance, times, [sample[tolerance.figure] for sample in samples])
    yield judge_none("no session was lost", sum(sample["lost"] for sample in samples))


def judge_end(subject, samples, options):
    """Ends the subject."""
    last, open_still = subject.leave_all()
    yield judge_none("all that was open is closed when all have left", open_still)
    counters = subject.counters()
    counts = last["churn"]["counts"], last["operators"]["counts"]
    expected = {
        name: sum(each.get(name, 0) for each in counts) for name in ("grants", "expired", "forced", "denied")
    }
    expected["grants"] += subject.sessions
    yield judge_none("nothing unexpected was seen", last["churn"]["unexpected"] + last["operators"]["unexpected"])
    for what in ("reloads", "scrapes", "listings", "forced", "kicked"):
        yield judge_some(f"there were {what}", sum(each.get(what, 0) for each in counts))
    subject.server.stop(within=60)
    audit = subject.verify_audit(options.build_dir / "monolockctl")
    yield judge_none("the audit log is proven", [] if audit["grants"] >= 0 else [audit["said"]])
    yield from judge_books(counters, expected, audit)


def check_programs(options):
    for program in (options.folder / "load", options.build_dir / "monolock", options.build_dir / "monolockctl"):
        if not program.exists():
            raise CannotMeasure(f"{program} is not there: `make soak` builds it")
