"""A study as it is run: cells with everything interpolated and every default filled in. `plan.json` is its JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from dyno.model.base import Frozen, Scalar, level_name
from dyno.model.faults import FaultPlan
from dyno.model.forms import CpuList, Governor, KernelSetting, KernelValue, MkfsWords, MountOptions
from dyno.model.interventions import Dose, DoseOptions
from dyno.model.published import Published
from dyno.model.targets import Target
from dyno.model.units import Bandwidth, PositiveDuration, Share, Size, format_size

PLAN_FORMAT = 1


class Level(Frozen):
    """A value that a factor takes. `settings` (dotted study key -> value) is there for a named group of settings."""

    value: Scalar
    settings: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The level as it is written in tables, in `${...}` and on axes."""
        return level_name(self.value)


class Factor(Frozen):
    """What is varied."""

    name: str
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]

    @property
    def ordered(self) -> bool:
        """Whether its levels are numbers, so that a line between them means something."""
        return len(self.levels) > 1 and all(
            isinstance(level.value, (int, float)) and not isinstance(level.value, bool) and level.settings is None
            for level in self.levels
        )


class KindSpec(Frozen):
    """Which kind of system, workload or observer, and its own options as that kind's `Options` wrote them."""

    kind: str
    options: dict[str, Any] = {}


class Require(Frozen):
    """What the machine must have before anything is started."""

    free_disk: Annotated[Size, Field(description="free space kept on the file system of the data")] = 1024**3
    truly_cold: Annotated[
        bool,
        Field(
            description="with `caches: cold`: a run whose device read faster than its kind can, since a cache below "
            "the machine answered, is invalid; so is one on a device whose kind is not known"
        ),
    ] = False


_MOST_IOPS = 2**32 - 1  # the kernel keeps them in 32 bits


class Disk(Frozen):
    """What of the device of the data may be used a second; all of it where a limit is left out."""

    read_bandwidth: Annotated[
        Bandwidth | None, Field(gt=0, description="bytes read a second; as fast as it can if left out")
    ] = None
    write_bandwidth: Annotated[Bandwidth | None, Field(gt=0, description="bytes written a second; likewise")] = None
    read_iops: Annotated[int | None, Field(ge=1, le=_MOST_IOPS, description="reads a second; likewise")] = None
    write_iops: Annotated[int | None, Field(ge=1, le=_MOST_IOPS, description="writes a second; likewise")] = None

    @property
    def limits(self) -> dict[str, int]:
        """Those that there are, by what is limited: as `io.limit.*` of a run's `deployed` has them."""
        given = {
            "read_bytes": self.read_bandwidth,
            "write_bytes": self.write_bandwidth,
            "reads": self.read_iops,
            "writes": self.write_iops,
        }
        return {name: limit for name, limit in given.items() if limit is not None}


class Machine(Frozen):
    """What the processes of a system may use of the machine together; the same for all that is compared."""

    # The kernel takes no quota below 1 ms of its period of 100 ms.
    cpus: Annotated[float | None, Field(ge=0.01, description="seconds of CPU time a second; all if left out")] = None
    memory: Annotated[
        Size | None, Field(gt=0, description="memory, page cache included; as much as there is if left out")
    ] = None
    disk: Annotated[Disk, Field(description="the device of the data")] = Disk()


LEAST_FILE_SYSTEM: Mapping[str, int] = {"ext4": 8 * 2**20, "xfs": 300 * 2**20, "btrfs": 110 * 2**20}
"""Bytes that mkfs of each kind asks for: mkfs.xfs since xfsprogs 5.19 by its manual, the others as tried."""


class FileSystem(Frozen):
    """A file system made for the data, in a file on the file system of the data: one for each deployment."""

    kind: Annotated[Literal["ext4", "xfs", "btrfs"], Field(description="which file system")] = "ext4"
    size: Annotated[Size, Field(gt=0, description="of each")]
    mkfs: Annotated[MkfsWords, Field(description="further options of mkfs, word by word")] = ()
    mount: Annotated[MountOptions, Field(description="mount options")] = ("noatime",)
    direct_io: Annotated[
        bool, Field(description="past the page cache of the file system below, which would keep the data twice")
    ] = True

    @model_validator(mode="after")
    def _is_large_enough(self) -> FileSystem:
        if self.size < LEAST_FILE_SYSTEM[self.kind]:
            raise ValueError(f"{self.kind} needs {format_size(LEAST_FILE_SYSTEM[self.kind])} at least (size)")
        return self


class Pin(Frozen):
    """CPUs by their numbers, such as `0` or `0-1,3`."""

    system: Annotated[
        CpuList | None, Field(description="the only CPUs of the system's processes, such as `0` or `0-1,3`")
    ] = None
    driver: Annotated[CpuList | None, Field(description="the only CPUs of the driver's processes")] = None


class Kernel(Frozen):
    """States of the machine that are set for a run and put back; those left out stay as they are."""

    governor: Annotated[Governor | None, Field(description="of CPU frequency, such as performance")] = None
    turbo: Annotated[bool | None, Field(description="whether the CPUs may exceed their nominal frequency")] = None
    transparent_hugepages: Annotated[
        Literal["always", "madvise", "never"] | None, Field(description="which memory may come in large pages")
    ] = None
    aslr: Annotated[
        Literal[0, 1, 2] | None, Field(description="randomisation of addresses: 0 none, 2 all (randomize_va_space)")
    ] = None


class HostSpec(Frozen):
    """The state of the host in which a cell is measured."""

    caches: Annotated[
        Literal["warm", "cold"],
        Field(
            description="warm: after the workload's warm-up, the one given and the one found (`warmup_detect`); cold: "
            "the data files are dropped from page cache first, and all of a run counts"
        ),
    ] = "warm"
    require: Require = Require()
    machine: Machine = Machine()
    file_system: Annotated[
        FileSystem | None, Field(description="the data lie on one made for them; where `--work` says if left out")
    ] = None
    sysctl: Annotated[
        dict[KernelSetting, KernelValue],
        Field(description="kernel settings by name, such as vm.dirty_expire_centisecs; put back after the study"),
    ] = {}
    kernel: Kernel = Kernel()
    pin: Pin = Pin()
    containers: Annotated[
        Literal["docker", "podman"] | None,
        Field(description="the engine of containers; docker where it is installed, else podman, if left out"),
    ] = None

    @model_validator(mode="after")
    def _truly_cold_is_cold(self) -> HostSpec:
        if self.require.truly_cold and self.caches != "cold":
            raise ValueError("require.truly_cold is of cold caches alone; write caches: cold, or leave it out")
        return self

    @model_validator(mode="after")
    def _each_setting_has_one_value(self) -> HostSpec:
        if self.kernel.aslr is not None and "kernel.randomize_va_space" in self.sysctl:
            raise ValueError("kernel.aslr and sysctl's kernel.randomize_va_space are one setting; keep one of them")
        return self


FIRST_LOOK: Mapping[str, int] = {"mean": 4, "ratio": 3}
"""Blocks before which nothing is called precise: fewer do not show how much runs differ."""

_USUAL_MIN = {"mean": 4, "ratio": 5}


class Replicates(Frozen):
    """When a cell has been repeated often enough."""

    min: Annotated[
        int, Field(ge=2, le=10_000, description="blocks before the first look; 5 where `precision_of` is `ratio`")
    ] = 4
    max: Annotated[int, Field(ge=2, le=10_000, description="blocks at the most")] = 30
    budget: Annotated[PositiveDuration | None, Field(description="no new block is begun that would pass this time")] = (
        None
    )
    precision: Annotated[
        Share, Field(gt=0, description="half-width of the interval wanted, relative to its centre")
    ] = 0.05
    confidence: Annotated[Share, Field(ge=0.5, lt=1)] = 0.95
    equivalence: Annotated[
        Share, Field(gt=0, description="ratios that are shown to be within this factor of 1 are called equal")
    ] = 0.02
    of: Annotated[str, Field(description="the response whose interval decides")] = "throughput"
    precision_of: Annotated[
        Literal["mean", "ratio"],
        Field(description="mean: of each cell; ratio: of each comparison between levels of the compared factor"),
    ] = "mean"
    strict: Annotated[bool, Field(description="a cell that misses its precision makes the exit status 1")] = False
    retries: Annotated[
        int,
        Field(
            ge=0,
            le=10,
            description="further attempts at a failed run within its block; none where a setting or a statement was "
            "refused, or a setting was not effective",
        ),
    ] = 1

    @model_validator(mode="before")
    @classmethod
    def _min_goes_by_what_is_precise(cls, given: Any) -> Any:
        """One ratio looked at early needs a much wider interval to be honest than one looked at a block later."""
        if not isinstance(given, Mapping) or "min" in given:
            return given
        usual = _USUAL_MIN.get(str(given.get("precision_of", "mean")), 4)
        most = given.get("max")
        return {**given, "min": min(usual, max(most, 2)) if isinstance(most, int) else usual}

    @model_validator(mode="after")
    def _min_is_not_above_max(self) -> Replicates:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is above max ({self.max})")
        return self


class Limits(Frozen):
    """The longest that each step of a run may take; past it the run has failed in that step."""

    provision: Annotated[PositiveDuration, Field(description="having the programs ready, once a study")] = 600.0
    prepare: Annotated[
        PositiveDuration, Field(description="loading a data set; what a workload makes for each run")
    ] = 3600.0
    restore: Annotated[PositiveDuration, Field(description="copying the loaded data set into place")] = 600.0
    start: Annotated[PositiveDuration, Field(description="starting the system, and each observer")] = 60.0
    ready: Annotated[PositiveDuration, Field(description="until the system answers")] = 120.0
    drive: Annotated[
        PositiveDuration, Field(description="the driver's whole life, warm-up included; all cuts of a crash")
    ] = 3600.0
    stop: Annotated[
        PositiveDuration, Field(description="stopping the system, and each observer; checking the data")
    ] = 60.0


class DesignSpec(Frozen):
    """Which combinations of levels are cells. `model.fractions` says what a screening design tells apart."""

    kind: Annotated[
        Literal["factorial", "screening", "cells"],
        Field(description="factorial: all; screening: of two levels a factor, all or a fraction; cells: those named"),
    ] = "factorial"
    generators: Annotated[
        tuple[str, ...], Field(description="of a fraction, such as E=ABCD; letters in the order of the factors")
    ] = ()


class Stages(Frozen):
    """A study in two stages: the best level of a factor is picked, then what was picked is compared on other runs."""

    best: Annotated[
        str, Field(description="the factor whose best level is picked in stage one, for each combination of the others")
    ]
    levels: Annotated[
        dict[str, tuple[Scalar, ...]],
        Field(description="level of the compared factor to those levels of `best` that it has; all where left out"),
    ] = {}
    min: Annotated[
        int | None, Field(ge=2, le=10_000, description="blocks of stage one at the least, in place of `replicates.min`")
    ] = None
    max: Annotated[
        int | None, Field(ge=2, le=10_000, description="blocks of stage one at the most, within `replicates.max`")
    ] = None
    share: Annotated[
        Share, Field(gt=0, lt=1, description="of the budget, what stage one may take; the rest is for comparing")
    ] = 0.5


class Cell(Frozen):
    """One combination of levels, with all that follows from it."""

    index: int
    levels: dict[str, str]
    host: HostSpec
    system: KindSpec
    workload: KindSpec
    deployment: Annotated[str, Field(description="where the system's processes and data live")] = "native"
    intervention: Annotated[Dose | None, Field(description="what is done to a resource while it is driven")] = None
    fault: Annotated[FaultPlan | None, Field(description="what is done to a node while it is driven")] = None

    @property
    def name(self) -> str:
        """`journal=wal threads=4`, or `the only cell` where nothing is varied."""
        return " ".join(f"{factor}={level}" for factor, level in self.levels.items()) or "the only cell"


class Study(Frozen):
    """A validated study at one scale. Nothing in it refers to the file it came from."""

    format: int = PLAN_FORMAT
    study: str
    question: str
    scale: str
    overrides: Annotated[tuple[str, ...], Field(description="each `--set` that was given, as `key=value`")] = ()
    pilot: Annotated[bool, Field(description="a few blocks to plan by: no answer to the question")] = False
    design: DesignSpec = DesignSpec()
    factors: Annotated[tuple[Factor, ...], Field(description="with the levels that some cell has; low before high")]
    compare: Annotated[str | None, Field(description="the factor whose levels are compared; None where there is none")]
    stages: Annotated[Stages | None, Field(description="None where nothing is picked first")] = None
    cells: tuple[Cell, ...]
    replicates: Replicates
    observe: tuple[KindSpec, ...]
    limits: Limits
    order: Literal["randomised", "fixed"]
    prepare: Literal["once", "per-block"]
    restore: Literal["copy", "reflink"]
    seed: int
    source_sha256: str
    targets: tuple[Target, ...] = ()
    published: Published | None = None

    def telling(self, levels: Mapping[str, str]) -> dict[str, str]:
        """Those levels that tell cells apart; all of them where each factor has a single level."""
        varied = {factor.name for factor in self.factors if len(factor.levels) > 1}
        return {name: level for name, level in levels.items() if name in varied or not varied}

    def shared(self) -> dict[str, str]:
        """The levels that all cells have, which need saying but once; none where that is all that they have."""
        first = self.cells[0].levels
        return {name: level for name, level in first.items() if name not in self.telling(first)}

    @property
    def judged(self) -> bool:
        """Whether its statistics say anything: at scale smoke sizes are tiny, and runs only show that all works."""
        return self.scale != "smoke"

    def numbered(self) -> dict[int, Cell]:
        """The cells by their numbers, which in the study of a stage are not their places."""
        return {cell.index: cell for cell in self.cells}

    def factor(self, name: str) -> Factor:
        """The factor of that name. Raises KeyError."""
        return next(factor for factor in self.factors if factor.name == name)


@dataclass(frozen=True)
class Mismatch:
    """Why a study could only fail though each of its parts is sound: at which dotted key, in which cell if in one."""

    key: str
    text: str
    cell: Cell | None = None


@dataclass(frozen=True)
class Kinds:
    """Every kind that a study may name, each with the type of its own options. Filled by the rooms that have them."""

    systems: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    workloads: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    observers: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    deployments: tuple[str, ...] = ("native",)
    interventions: Mapping[str, type[DoseOptions]] = field(default_factory=dict)
    mismatches: Callable[[Study], Iterable[Mismatch]] = lambda _: ()
    """What of a study's kinds does not go together."""
