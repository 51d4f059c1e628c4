"""A self-check that was never made."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyno.model.selfcheck import Machine, Selfcheck
from dyno.selfcheck import verdicts

DAY_NS = 86_400 * 10**9
MADE_NS = 20_000 * DAY_NS
MACHINE = Machine(cpu="a processor", cpus=2, memory_bytes=2**33, kernel="6.1.0", dyno="0.1.0")
ENVIRONMENT: dict[str, Any] = {
    "cpu": {"model": "a processor", "usable": 2},
    "memory": {"total_bytes": 2**33},
    "kernel": {"release": "6.1.0"},
    "versions": {"dyno": "0.1.0"},
}


def planted(**changes: Any) -> Selfcheck:
    """Of a quiet machine with 30 blocks."""
    rng = np.random.default_rng(1)
    values = 50_000 * np.exp(0.02 * rng.standard_normal((30, 4)))
    times = np.arange(120.0).reshape(30, 4)
    told = {"latency_p99": 960.0, "latency_p999": 996.0, "latency_max": 1000.0}
    blind = {**told, "latency_p99": 0.004}
    made = Selfcheck(
        made_ns=MADE_NS,
        seconds=120.0,
        scale="quick",
        machine=MACHINE,
        file_system="ext4 on /dev/vda",
        false_alarms=verdicts.false_alarms(values, times),
        variation=verdicts.variation(values, 1 / values, times, 0.8, []),
        ceiling=verdicts.ceiling([5e6], [8e6], 2, values),
        freeze=verdicts.freeze([told], [blind], rate_per_s=2000, run_s=4, stall_s=1),
        observer=verdicts.observer_cost(values, 1 / values),
        sensitivity=verdicts.sensitivity(0.03, 0.8),
    )
    return made.model_copy(update=changes)
