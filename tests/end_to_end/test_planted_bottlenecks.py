"""Bottlenecks planted on real servers are named for what they are, and the report tells them in a sentence."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dyno.analysis import analyse, usages
from dyno.hosts.leftovers import CGROUPS
from dyno.model.findings import Findings
from dyno.store import Results
from tests.planting import ALL, DiskLimit, Planted, SlowSyncs, carry_out, named

# What a sentence must say of its cause, beside its name.
SAYS = {
    "cpu-quota": "of the 0.3 CPUs that it may",
    "bandwidth-limit": "its limit of bytes read was used",
    "operations-limit": "its limit of reads was used",
    "slow-sync": "waiting for a sync to end",
    "hot-row": "waited for a row lock",
    "memory-limit": "of what was read had been evicted not long before",
    "starved-driver": "Waiting on the driver",
    "server-sleep": "no resource explains it",
}


def found(results: Results) -> Findings:
    used = usages(results.runs, results.all_samples(), results.all_intervals())
    return analyse(results.study, results.runs, ended="as planned", used=used)


def lacking(planted: Planted) -> str | None:
    """What this machine does not have of what it takes."""
    if os.geteuid() != 0:
        return "control groups and mounts need root"
    if isinstance(planted.plant, DiskLimit) and not (CGROUPS / "blkio").is_dir():
        return "limits of block devices are planted by control groups of version 1"
    if isinstance(planted.plant, SlowSyncs) and shutil.which("strace") is None:
        return "strace is not installed"
    if planted.name == "starved-driver" and len(os.sched_getaffinity(0)) < 2:
        return "the driver needs a CPU of its own"
    return None


BUSY = 50.0  # per cent of the CPUs that others use, beyond which they are a bottleneck of their own


def most_of_others(results: Results) -> float:
    """The share of the CPUs that went to others, in the run in which that was most."""
    used = usages(results.runs, results.all_samples(), results.all_intervals())
    shares = [100 * each.per_s.get("rest.cpu", 0.0) / each.cpus for each in used.values() if each.cpus]
    return max(shares, default=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("planted", ALL, ids=lambda planted: planted.name)
def test_a_planted_bottleneck_is_named(planted: Planted, tmp_path: Path) -> None:
    if why := lacking(planted):
        pytest.skip(why)
    results = carry_out(planted, tmp_path, runs=2, seconds=4)
    names = [name for _, name in named(results)]
    if names != [planted.expected] * len(names) and (others := most_of_others(results)) >= BUSY:
        pytest.skip(f"named {names} where others used {others:.0f}% of the CPUs: nothing is planted alone here")
    assert names == [planted.expected] * len(names), [(run.status, run.responses) for run, _ in named(results)]
    (verdict,) = found(results).verdicts
    assert verdict.kind == planted.expected, verdict
    assert SAYS[planted.name] in verdict.sentence
    assert (verdict.agree, verdict.runs) == (len(names), len(names))
