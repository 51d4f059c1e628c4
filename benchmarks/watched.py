"""The same cell with an observer and without, in pairs of runs in random order.

The cell is YCSB C on a MariaDB whose data are in its buffer pool, which has nothing but CPU to do it with.
"""

from __future__ import annotations

import sys
from typing import Any

from dyno.model.run import Outcome, RunRecord
from dyno.model.study import Cell, Factor, HostSpec, KindSpec, Level, Limits, Replicates, Require, Study
from dyno.selfcheck.measure import Bench
from dyno.stats import paired_ratio


def pairs(bench: Bench, blocks: int, observer: KindSpec) -> None:
    """Print throughput and latency with the observer over those without; ends the benchmark where a run is not ok."""
    runs, _ = bench.run(study(blocks, observer), lambda cell: cell.levels["watched"] == "yes")
    for response in ("throughput", "latency_p99"):
        with_it, without = (of(runs, level, response) for level in ("yes", "no"))
        ratio = paired_ratio(without, with_it, 0.95)
        if ratio is not None:
            said = f"{ratio.ratio:.3f} [{ratio.lo:.3f}, {ratio.hi:.3f}]"
            print(f"{response} with / without {observer.kind} {observer.options}: {said}, {ratio.n} pairs", flush=True)


def of(runs: Any, level: str, response: str) -> list[float]:
    """By block; ends the benchmark where a run is not ok."""
    found: list[RunRecord] = sorted((run for run in runs if run.levels["watched"] == level), key=lambda r: r.slot.block)
    if wrong := [run.cause for run in found if run.outcome is not Outcome.OK]:
        sys.exit(f"a run is not ok: {wrong[0]}")
    return [run.responses[response] for run in found]


def study(blocks: int, observer: KindSpec) -> Study:
    """The same cell twice."""
    levels = ("yes", "no")
    return Study(
        study="observer-cost",
        question="What does the observer cost?",
        scale="default",
        factors=(Factor(name="watched", levels=tuple(Level(value=level) for level in levels)),),
        compare=None,
        cells=tuple(
            Cell(
                index=index,
                levels={"watched": level},
                host=HostSpec(require=Require.model_validate({"free_disk": "64 MiB"})),
                system=KindSpec(kind="mariadb", options={"innodb_buffer_pool_size": "128M"}),
                workload=KindSpec(
                    kind="ycsb",
                    options={"mix": "c", "records": 20000, "threads": 4, "duration": "6 s", "warmup": "1 s"},
                ),
            )
            for index, level in enumerate(levels)
        ),
        replicates=Replicates.model_validate({"precision": "0.01%", "retries": 0, "min": blocks, "max": blocks}),
        observe=(observer,),
        limits=Limits(),
        order="randomised",
        prepare="once",
        restore="copy",
        seed=1,
        source_sha256="",
    )
