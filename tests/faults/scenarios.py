"""The scenarios, as a table: who works over which networks, and what befalls them."""

from dataclasses import dataclass, field

from faults.injected import (
    Crowd,
    Cut,
    CutToServer,
    CutToWorkers,
    FillDisk,
    ForceRelease,
    KillServer,
    KillWorker,
    PauseServer,
    PauseWorker,
    ReplaceServer,
    Reset,
    StepClock,
)
from faults.networks import Relayed, Wired


@dataclass(frozen=True)
class Workers:
    """Each process has two clients of the library with four claims at a time each."""

    workers: int = 2
    network: type = None  # beside the server
    how: dict = field(default_factory=dict)  # of the network
    load: dict = field(default_factory=dict)  # of fault_worker
    liar: type = None  # a proxy before the server


@dataclass(frozen=True)
class Scenario:
    name: str
    groups: tuple
    faults: tuple = ()
    load: dict = field(default_factory=dict)
    server_flags: tuple = ("-threads", "2")
    descriptors: int = None
    steps_clock: bool = False
    audited: bool = False
    small_disk: bool = False
    short: bool = False  # in `make test` too
    handover_ms: int = 50
    slack_ms: int = 50
    served_ms: int = 8000
    settle_seconds: float = 0.3

    def limits(self):
        return {
            "handover_ms": self.handover_ms,
            "slack_ms": self.slack_ms,
            "served_ms": self.served_ms,
            "causes_noted": True,
            "faults_noted": True,
        }


# Microseconds, and parts of a million.
FAR = {"delay_us": 5_000, "jitter_us": 2_000}
LOSSY = {**FAR, "lost": 30_000}
WILD = {
    "delay_us": 5_000, "jitter_us": 20_000, "lost": 20_000,
    "doubled": 20_000, "overtaken": 50_000, "held_back_us": 15_000,
}  # fmt: skip
SLOW = {"delay_us": 60_000, "jitter_us": 20_000}

# Owners that hold their locks for a while, so that faults meet them.
HELD = {"lease-min": 200, "lease-max": 500, "hold-max": 900, "locks": 8}

SCENARIOS = (
    Scenario("beside", (Workers(3),), (ForceRelease(every=(0.3, 0.9)),), audited=True),
    Scenario(
        "stops and kills", (Workers(3),),
        (PauseWorker(), KillWorker(every=(0.2, 0.8))),
        load=HELD, audited=True, short=True,
    ),
    Scenario(
        "cut off", (Workers(2), Workers(2, Relayed, FAR)),
        (Cut(lasts=(0.1, 1.5)),),
        load=HELD, short=True,
    ),
    Scenario(
        "cut one way", (Workers(2), Workers(2, Relayed, FAR), Workers(1, Wired)),
        (CutToServer(lasts=(0.1, 1.2)), CutToWorkers(lasts=(0.1, 1.2))),
        load=HELD,
    ),
    Scenario("lossy", (Workers(1), Workers(2, Relayed, LOSSY), Workers(2, Wired, {"loss_percent": 3}))),
    Scenario(
        "wild", (Workers(1), Workers(2, Relayed, WILD), Workers(1, Relayed, SLOW)),
        (PauseWorker(),), short=True,
    ),
    Scenario("slow wire", (Workers(1), Workers(2, Wired, {"rate": "128kbit"})), (Cut(lasts=(0.1, 1.0)),)),
    Scenario(
        "resets", (Workers(2), Workers(2, Wired), Workers(1, Relayed, FAR)),
        (Reset(lasts=(0.02, 0.3)), KillWorker()), short=True,
    ),
    Scenario(
        "server stops", (Workers(2), Workers(2, Relayed, FAR)),
        (PauseServer(every=(0.3, 1.0), lasts=(0.02, 1.5)), PauseWorker()),
        load=HELD,
    ),
    Scenario(
        "server dies", (Workers(2), Workers(2, Relayed, FAR)),
        (KillServer(every=(0.4, 1.2)), ReplaceServer(every=(1.0, 2.0))),
        audited=True, short=True,
    ),
    Scenario(
        "wall clock", (Workers(3),),
        (StepClock(every=(0.05, 0.3)), KillServer(every=(1.0, 2.0)), PauseWorker()),
        steps_clock=True, load=HELD,
    ),
    Scenario(
        "descriptors", (Workers(2), Workers(1, Relayed, FAR)),
        (Crowd(lasts=(0.1, 1.0)), KillWorker()),
        descriptors=100,
    ),
    Scenario(
        "full disk", (Workers(3),),
        (FillDisk(every=(0.2, 0.6), lasts=(0.3, 1.0)), PauseWorker(), ForceRelease()),
        audited=True, small_disk=True, short=True,
    ),
    Scenario(
        "everything", (Workers(2), Workers(2, Relayed, WILD), Workers(1, Wired, {"loss_percent": 2})),
        (
            PauseWorker(), KillWorker(every=(0.5, 2.0)), Cut(every=(0.5, 1.5)), Reset(every=(0.5, 1.5)),
            PauseServer(every=(1.0, 3.0), lasts=(0.02, 0.8)), KillServer(every=(2.0, 4.0)), ForceRelease(),
        ),
        audited=True,
    ),
)  # fmt: skip
