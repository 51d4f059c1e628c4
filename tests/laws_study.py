"""A closed network whose demands are known, as a study with runs and what they used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dyno.analysis.table import Table, tabulate
from dyno.model.run import RunRecord, Slot
from dyno.model.study import KindSpec, Study
from dyno.model.usage import Usage
from dyno.stats import Centre, mean_value_analysis
from tests.making import make_record, make_study

CPUS = 2
CLIENTS = [1, 2, 3, 4, 6, 8, 12, 16]
SECONDS = 10.0


def cpu_that_falls(clients: int) -> float:
    """CPU seconds of an operation: much for one client alone, then less the more there are."""
    return 66e-6 if clients == 1 else 40e-6 * clients**-0.12


class Network:
    """A study over clients with `blocks` runs of each cell, and what each used by run number."""

    def __init__(
        self,
        clients: Sequence[int] = CLIENTS,
        *,
        cpu: Callable[[int], float] = cpu_that_falls,
        disk: float = 5e-6,
        delay: float = 10e-6,
        blocks: int = 5,
        noise: float = 0.01,
        host: Mapping[str, Any] | None = None,
        others: Mapping[str, tuple[Any, ...]] | None = None,
        **of_runs: Any,
    ) -> None:
        plan = make_study({"threads": tuple(clients), **(others or {})}, host=host)
        cells = [
            cell.model_copy(
                update={"workload": KindSpec(kind="drive", options={"threads": int(cell.levels["threads"])})}
            )
            for cell in plan.cells
        ]
        self.study: Study = plan.model_copy(update={"cells": tuple(cells)})
        self.runs: list[RunRecord] = []
        self.used: dict[int, Usage] = {}
        random = np.random.default_rng(1)
        for block in range(blocks):
            drift = float(np.exp(5 * noise * random.standard_normal()))
            for cell in self.study.cells:
                n = int(cell.levels["threads"])
                own = cpu(n) * drift
                solved = mean_value_analysis(n, [Centre(own, CPUS), Centre(disk)], delay)
                rate = solved.throughput * float(np.exp(noise * random.standard_normal()))
                responses = {"throughput": rate, "latency_mean": 1000 * n / rate, "elapsed": SECONDS}
                number = len(self.runs) + 1
                record = make_record(number, Slot(cell=cell.index, block=block), loop="closed", **of_runs)
                self.runs.append(record.model_copy(update={"responses": responses, "levels": cell.levels}))
                self.used[number] = usage(rate, own, disk)

    @property
    def table(self) -> Table:
        """As `analyse` makes it."""
        return tabulate(self.study, self.runs, self.used)

    def replace_run(self, number: int, **responses: float) -> None:
        """Give a run other responses."""
        run = self.runs[number - 1]
        self.runs[number - 1] = run.model_copy(update={"responses": {**run.responses, **responses}})

    def replace_usage(self, number: int, **parts: Mapping[str, float]) -> None:
        """Give a run another use: `per_s={"server.cpu": 3.0}`."""
        used = self.used[number]
        self.used[number] = used.model_copy(update={name: {**getattr(used, name), **of} for name, of in parts.items()})


def usage(rate: float, cpu: float, disk: float, *, cpus: int = CPUS) -> Usage:
    """Of so many operations a second, each with so much CPU and disk: a quarter of the CPU time is the driver's."""
    per_op = {
        "server.cpu": 0.7 * cpu,
        "driver.cpu": 0.25 * cpu,
        "rest.cpu": 0.05 * cpu,
        "machine.cpu": cpu,
        "machine.steal": 0.0,
        "disk.read": 100.0,
        "disk.written": 0.0,
        "disk.busy": disk,
        "disk.waited": 3 * disk,
    }
    busy = min(100 * cpu * rate / cpus, 100.0)
    return Usage(
        seconds=SECONDS,
        operations=SECONDS * rate,
        samples=10,
        cpus=cpus,
        per_op=per_op,
        per_s={name: value * rate for name, value in per_op.items()},
        means={"cpu.usr": busy, "cpu.idle": 100 - busy, "stat.ticks": 100.0 * cpus},
    )
