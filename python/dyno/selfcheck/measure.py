"""Carries out a self-check: three small studies through the real lab, in a folder that goes again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dyno.hosts import LocalHost
from dyno.lab import Interrupt, Lab, Listener, Rooms
from dyno.model.base import RunError
from dyno.model.disturbances import disturbances
from dyno.model.run import Outcome, RunRecord
from dyno.model.selfcheck import Machine, Scale, Selfcheck
from dyno.model.study import Cell, Study
from dyno.selfcheck import studies, verdicts
from dyno.store import Results, new_results


@dataclass(frozen=True)
class Bench:
    """What the studies are carried out with. `folder` goes when dyno ends."""

    rooms: Rooms
    host: LocalHost
    core: str
    folder: Path
    interrupt: Interrupt
    say: Callable[[str], None]

    def run(self, study: Study, watches: Callable[[Cell], bool]) -> tuple[Sequence[RunRecord], float]:
        """A study's runs, and how long one took with all around it. Raises RunError, KeyboardInterrupt."""
        scratch = self.host.temporary_folder(self.folder / f"{study.study}-new")
        results = new_results(self.folder / "results", study, b"", {}, scratch)
        results.lock()
        begun = time.monotonic()
        try:
            lab = Lab(
                results,
                self.host,
                self.rooms,
                core=self.core,
                workspace=self.folder / study.study,
                interrupt=self.interrupt,
                listener=Listener(),
                watches=watches,
            )
            ending = lab.run()
        finally:
            results.unlock()
        if ending.interrupted:
            raise KeyboardInterrupt
        if not ending.completed:
            raise RunError(f"the self-check cannot go on: {ending.reason}")
        runs = Results(results.folder).runs
        return runs, (time.monotonic() - begun) / len(runs)


def measure(bench: Bench, scale: Scale, environment: dict[str, Any]) -> Selfcheck:
    """All of it. Raises RunError where the disk fills up, KeyboardInterrupt where the user ends it."""
    begun, made_ns = time.monotonic(), time.time_ns()
    extent, cpus = studies.EXTENTS[scale], environment["cpu"]["usable"]
    rate, run_s, stall_s = studies.RATE_PER_S, extent.freeze_s, extent.stall_s

    bench.say("a cell against itself, watched and not (A/A study, observer cost)")
    runs, seconds = bench.run(studies.twins(extent), lambda cell: cell.levels["twins"] in studies.WATCHED)
    throughput, cpu, times = (_by_blocks(runs, 4, figure) for figure in ("throughput", "cpu_per_op", None))
    bench.say("the driver without a store (ceiling)")
    alone, _ = bench.run(studies.ceiling(extent, cpus), _nobody)
    bench.say("a planted stall (freeze test)")
    frozen, _ = bench.run(studies.freeze(extent), _nobody)

    varied = verdicts.variation(throughput, cpu, times, seconds, _causes(runs))
    return Selfcheck(
        made_ns=made_ns,
        seconds=time.monotonic() - begun,
        scale=scale,
        machine=Machine.of(environment),
        file_system=_file_system(environment),
        disturbances=tuple(disturbances(environment)),
        false_alarms=verdicts.false_alarms(throughput, times),
        variation=varied,
        ceiling=verdicts.ceiling(_throughputs(alone, "1"), _throughputs(alone, str(cpus)), cpus, throughput),
        freeze=verdicts.freeze(
            _responses(frozen, "open"), _responses(frozen, "closed"), rate_per_s=rate, run_s=run_s, stall_s=stall_s
        ),
        observer=verdicts.observer_cost(throughput, cpu),
        sensitivity=verdicts.sensitivity(None if varied.verdict == "cannot tell" else varied.ratio_sd, seconds),
    )


def _nobody(_cell: Cell) -> bool:
    return False


def _by_blocks(runs: Sequence[RunRecord], cells: int, response: str | None) -> verdicts.Array:
    """A response of the ok runs, or their places in the order of execution: (blocks, cells)."""
    table = np.full((max(run.slot.block for run in runs) + 1, cells), np.nan)
    for run in runs:
        if run.outcome is Outcome.OK:
            value = run.run if response is None else run.responses.get(response, np.nan)
            # What has no logarithm is no figure of a run that did anything.
            table[run.slot.block, run.slot.cell] = value if value > 0 else np.nan
    return table


def _responses(runs: Sequence[RunRecord], level: str) -> list[dict[str, float]]:
    return [run.responses for run in runs if run.outcome is Outcome.OK and level in run.levels.values()]


def _throughputs(runs: Sequence[RunRecord], level: str) -> list[float]:
    return [responses["throughput"] for responses in _responses(runs, level)]


def _causes(runs: Sequence[RunRecord]) -> list[str]:
    return [f"{run.step}: {run.cause}" for run in runs if run.outcome is not Outcome.OK]


def _file_system(environment: dict[str, Any]) -> str:
    data = environment["file_systems"]["data"]
    return f"{data['type']} on {data['device']}"
