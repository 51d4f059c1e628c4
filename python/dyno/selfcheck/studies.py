"""The studies of a self-check: what is run, how long, how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dyno.model.selfcheck import Scale
from dyno.model.study import Cell, Factor, HostSpec, KindSpec, Level, Limits, Replicates, Require, Study

WATCHED = ("watched 1", "watched 2")
UNWATCHED = ("unwatched 1", "unwatched 2")
_HARDLY_EVER = "0.0001%"  # a precision that no study reaches: the budget or the blocks end it
_SEED = 1


@dataclass(frozen=True)
class Extent:
    """How much is measured. Durations as in a study file."""

    twins: Mapping[str, Any]
    """When the A/A study ends; as `replicates`."""
    drive: str
    """The measured part of a short run."""
    ceiling: str
    ceiling_blocks: int
    freeze_s: float
    stall_s: float
    freeze_blocks: int


EXTENTS: Mapping[Scale, Extent] = {
    "smoke": Extent({"min": 3, "max": 3}, "30 ms", "30 ms", 2, freeze_s=0.8, stall_s=0.4, freeze_blocks=2),
    "quick": Extent({"max": 10_000, "budget": "95 s"}, "300 ms", "500 ms", 3, freeze_s=4, stall_s=1, freeze_blocks=2),
    "full": Extent({"max": 10_000, "budget": "12 min"}, "500 ms", "2 s", 5, freeze_s=10, stall_s=2, freeze_blocks=3),
}
RATE_PER_S = 2000.0


def twins(extent: Extent) -> Study:
    """Four times the same cell: YCSB A on SQLite; two of them watched by the observer `machine`."""
    system = KindSpec(kind="sqlite", options={"journal_mode": "wal", "synchronous": "normal"})
    driving = {"duration": extent.drive, "warmup": "50 ms", "interval": "100 ms", "threads": 1}
    workload = KindSpec(kind="ycsb", options={"mix": "a", "records": 1000, **driving})
    cells = dict.fromkeys((*WATCHED, *UNWATCHED), (system, workload))
    return _study("twins", cells, extent.twins, observe=(KindSpec(kind="machine"),))


def ceiling(extent: Extent, cpus: int) -> Study:
    """YCSB C on nothing, with one client and with as many as CPUs."""
    driving = {"duration": extent.ceiling, "warmup": "20 ms"}
    cells = {
        str(clients): (
            KindSpec(kind="null"),
            KindSpec(kind="ycsb", options={"mix": "c", "records": 1_000_000, "threads": clients, **driving}),
        )
        for clients in dict.fromkeys((1, cpus))
    }
    return _study("ceiling", cells, {"min": extent.ceiling_blocks, "max": extent.ceiling_blocks})


def freeze(extent: Extent) -> Study:
    """A stall a third of the way into the run, driven by an open loop and by a closed one."""
    stall = {"stall_at": f"{extent.freeze_s / 3:.3f} s", "stall_for": f"{extent.stall_s} s"}
    driving = {"mix": "c", "records": 1000, "threads": 4, "duration": f"{extent.freeze_s} s"}
    cells = {
        loop: (KindSpec(kind="null", options=stall), KindSpec(kind="ycsb", options={**driving, **rate}))
        for loop, rate in (("open", {"rate": RATE_PER_S}), ("closed", {}))
    }
    return _study("freeze", cells, {"min": extent.freeze_blocks, "max": extent.freeze_blocks})


def _study(
    name: str,
    cells: Mapping[str, tuple[KindSpec, KindSpec]],
    replicates: Mapping[str, Any],
    observe: tuple[KindSpec, ...] = (),
) -> Study:
    """One factor, whose levels are the cells; nothing is compared, so that nothing but its size ends it."""
    host = HostSpec(require=Require.model_validate({"free_disk": "64 MiB"}))
    return Study(
        study=name,
        question="Does the instrument hold?",
        scale="default",
        factors=(Factor(name=name, levels=tuple(Level(value=level) for level in cells)),),
        compare=None,
        cells=tuple(
            Cell(index=index, levels={name: level}, host=host, system=system, workload=workload)
            for index, (level, (system, workload)) in enumerate(cells.items())
        ),
        replicates=Replicates.model_validate({"precision": _HARDLY_EVER, "retries": 0, **replicates}),
        observe=observe,
        limits=Limits(),
        order="randomised",
        prepare="once",
        restore="copy",
        seed=_SEED,
        source_sha256="",
    )
