"""A run as it is kept: `run.json` is the JSON of a `RunRecord`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from dyno.model.base import Frozen

RUN_FORMAT = 1


class Outcome(StrEnum):
    """How a run ended. Only ok runs enter an interval; all are shown."""

    OK = "ok"
    FAILED = "failed"  # a step went wrong
    INVALID = "invalid"  # it ran, but not what was asked
    PARTIAL = "partial"  # it was interrupted


class Step(StrEnum):
    """The steps of a run, in their order."""

    PREPARE = "prepare"
    RESTORE = "restore"
    START = "start"
    READY = "ready"
    CACHES = "caches"
    OBSERVE = "observe"
    DRIVE = "drive"
    STATUS = "status"
    CHECK = "check"
    STOP = "stop"
    COMMIT = "commit"


class Slot(Frozen):
    """Where a run stands in the design."""

    cell: Annotated[int, Field(ge=0)]
    block: Annotated[int, Field(ge=0)]
    attempt: Annotated[int, Field(ge=0, description="0, then 1 for the first retry")] = 0
    stage: Annotated[
        int | None, Field(ge=1, le=2, description="1 picks, 2 compares; None where the study has no stages")
    ] = None


class StepTime(Frozen):
    """How long a step took."""

    step: Step
    seconds: float


class RunRecord(Frozen):
    """Everything about one run that is not a time series."""

    format: int = RUN_FORMAT
    run: Annotated[int, Field(ge=1, description="its number and the name of its folder; counts in order of execution")]
    slot: Slot
    levels: dict[str, str]
    outcome: Outcome
    step: Annotated[Step | None, Field(description="the step that went wrong; None for an ok run")] = None
    cause: Annotated[str | None, Field(description="what went wrong, in a line; None for an ok run")] = None
    started_ns: int
    ended_ns: int
    seconds: Annotated[float, Field(description="by a monotonic clock; a study's budget is of these")] = 0.0
    measured_from_ns: int | None = None
    measured_to_ns: int | None = None
    steps: tuple[StepTime, ...] = ()
    driver_s: Annotated[float, Field(description="how long the driver's process lived, in seconds")] = 0.0
    responses: Annotated[dict[str, float], Field(description="in the units of dyno.model.responses")] = {}
    errors: Annotated[dict[str, dict[str, int]], Field(description="operation -> kind -> count")] = {}
    settings: Annotated[dict[str, Any], Field(description="the system's effective settings, as read back from it")] = {}
    status: Annotated[dict[str, float], Field(description="the system's own counters")] = {}
    caches: Annotated[dict[str, Any], Field(description="evidence for the state of the caches")] = {}
    commands: Annotated[tuple[tuple[str, ...], ...], Field(description="each command started, word by word")] = ()
    versions: dict[str, str] = {}
    driver: Annotated[dict[str, Any], Field(description="the job that the driver was given")] = {}
    loop: Annotated[
        str | None, Field(description="closed, or open: requests arrive whether or not others were answered")
    ] = None
    rate_per_s: Annotated[float | None, Field(description="requests a second asked for, of an open loop")] = None
    notes: Annotated[tuple[str, ...], Field(description="what a reader must know of how it was driven")] = ()
    halted: Annotated[bool, Field(description="the study was stopped here; its slot is tried again")] = False
    ended_by: Annotated[
        str | None, Field(description="what ended the driving: operations, duration, signal or error")
    ] = None
