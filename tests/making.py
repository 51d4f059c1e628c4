"""Studies and runs for tests, made without a study file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from dyno.model.run import Outcome, RunRecord, Slot, Step
from dyno.model.study import Cell, Factor, HostSpec, KindSpec, Level, Limits, Replicates, Require, Study

SECOND = 1_000_000_000
# Of test machines nothing is asked: a test must not depend on how full the disk is.
ANY_DISK = Require.model_validate({"free_disk": 0})


def until(condition: Callable[[], bool], limit: float = 30) -> None:
    """Return as soon as it holds; an AssertionError where it does not within `limit` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.005)  # what is waited for needs the CPU


def share(value: float) -> str:
    """A fraction as a study file has it."""
    return f"{value * 100:.10f}%"


def make_study(
    factors: Mapping[str, tuple[Any, ...]] | None = None,
    *,
    system: str = "simulated",
    workload: str | None = None,
    options: Mapping[str, Any] | None = None,
    workload_options: Mapping[str, Any] | None = None,
    observe: tuple[str, ...] = (),
    compare: str | None = None,
    caches: str = "warm",
    host: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    order: str = "randomised",
    prepare: str = "once",
    seed: int = 1,
    free_disk: int = 0,
    stages: Mapping[str, Any] | None = None,
    **replicates: Any,
) -> Study:
    """A study with a cell for each combination of levels; a level is also an option of its cell's system.

    `stages`, which leave out the combinations that they do not list, and `host` are as in a study file.
    `replicates` are as in a study file: `min=3, precision="5%"`.
    """
    factors = factors if factors is not None else {"mean": (1000, 2000)}
    spec = {"caches": caches, "require": {"free_disk": f"{free_disk} B"}, **(host or {})}
    cells = []
    for levels in product(*factors.values()):
        of_levels = dict(zip(factors, levels, strict=True))
        if stages is not None:
            own = stages.get("levels", {}).get(str(of_levels[str(compare)]))
            if own is not None and of_levels[stages["best"]] not in own:
                continue
        cells.append(
            Cell(
                index=len(cells),
                levels={name: str(level) for name, level in of_levels.items()},
                host=HostSpec.model_validate(spec),
                system=KindSpec(kind=system, options={**(options or {}), **of_levels}),
                workload=KindSpec(kind=workload or system, options=dict(workload_options or {})),
            )
        )
    return Study.model_validate(
        {
            "study": "made",
            "question": "Does it hold?",
            "scale": "default",
            "factors": [
                Factor(name=name, levels=tuple(Level(value=level) for level in levels))
                for name, levels in factors.items()
            ],
            "compare": compare,
            "stages": stages,
            "cells": cells,
            "replicates": Replicates.model_validate({"min": 2, "max": 2, **replicates}),
            "observe": [KindSpec(kind=kind) for kind in observe],
            "limits": Limits.model_validate(limits or {}),
            "order": order,
            "prepare": prepare,
            "restore": "copy",
            "seed": seed,
            "source_sha256": "0" * 64,
        }
    )


def make_record(
    run: int,
    slot: Slot,
    outcome: Outcome = Outcome.OK,
    value: float | None = None,
    *,
    response: str = "throughput",
    seconds: float = 1.0,
    **rest: Any,
) -> RunRecord:
    """A run that took `seconds`; `value` is its response."""
    return RunRecord(
        run=run,
        slot=slot,
        levels={},
        outcome=outcome,
        step=None if outcome is Outcome.OK else Step.DRIVE,
        cause=None if outcome is Outcome.OK else "as the test wanted it",
        started_ns=run * 100 * SECOND,
        ended_ns=run * 100 * SECOND + round(seconds * SECOND),
        seconds=seconds,
        responses={} if value is None else {response: value},
        **rest,
    )


def scratch_in(root: Path) -> Path:
    """An empty folder under `root`, for `new_results` to make a results folder of."""
    root.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".new-", dir=root))
