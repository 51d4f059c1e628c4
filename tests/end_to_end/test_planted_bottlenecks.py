"""Bottlenecks planted on real servers are named for what they are, and the report tells them in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyno.analysis import analyse, usages
from dyno.hosts.doctor import examine
from dyno.model.findings import Findings
from dyno.store import Results
from tests.planting import ALL, Planted, carry_out, named

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


def lacking(planted: Planted, folder: Path) -> str | None:
    """What `dyno doctor` says that this machine does not have of what the study asks for."""
    needed = {"root", *planted.needs}
    missing = [check for check in examine(folder) if check.name in needed and not check.holds]
    return "; ".join(f"{check.name}: {check.found}" for check in missing) or None


BUSY = 50.0  # per cent of the CPUs that others use, beyond which they are a bottleneck of their own, and rightly named
OTHERS = "of the CPUs went to processes that were not watched"
TRIES = 3


def most_of_others(results: Results) -> float:
    """The share of the CPUs that went to others, in the run in which that was most."""
    used = usages(results.runs, results.all_samples(), results.all_intervals())
    shares = [100 * each.per_s.get("rest.cpu", 0.0) / each.cpus for each in used.values() if each.cpus]
    return max(shares, default=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("planted", ALL, ids=lambda planted: planted.name)
def test_a_planted_bottleneck_is_named(planted: Planted, tmp_path: Path) -> None:
    if why := lacking(planted, tmp_path):
        pytest.skip(why)
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        results = carry_out(planted, folder, runs=2, seconds=planted.seconds)
        names = [name for _, name in named(planted, results)]
        others = most_of_others(results)
        if set(names) == {planted.expected} or others < BUSY:
            break
    busy = f"others used {others:.0f}% of the CPUs: nothing is planted alone here" if others >= BUSY else ""
    told = [(run.outcome, run.cause, run.status, run.responses) for run, _ in named(planted, results)]
    true = {planted.expected, "cpu-all"} if busy else {planted.expected}
    assert names
    assert set(names) <= true, (busy, told)
    verdicts = [each for each in found(results).verdicts if planted.is_in(results.study.cells[each.cell])]
    assert verdicts
    for verdict in verdicts:
        assert verdict.kind in true, (busy, verdict)
        if verdict.kind == planted.expected:
            assert SAYS[planted.name] in verdict.sentence
        else:
            assert any(OTHERS in each for each in verdict.against), verdict
        assert verdict.runs == 2
        assert verdict.agree == 2 or busy
