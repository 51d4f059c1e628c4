"""A run as it is kept: `run.json` is the JSON of a `RunRecord`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from dyno.model.base import Frozen, Scalar

RUN_FORMAT = 1
CLIENTS = "clients"
"""Of the ways to a store's rows the one that clients take: its audit says what was lost."""
BATCH = "batch.rows"
"""In the status of a run by a loader: its operations are rows, and so many of them have one latency together."""
BETWEEN = "driver.between_ms"
"""In the status of a run: what a client does by itself between two operations, on average, such as decode an answer."""
IN_TURN = "driver.in_turn"
"""In the status of a run: so many kinds of operations came one after the other, so that no part tells of the whole."""


class Event(Frozen):
    """Something that was done."""

    at_ns: int
    text: str


class Outcome(StrEnum):
    """How a run ended. Only ok runs enter an interval; all are shown."""

    OK = "ok"
    FAILED = "failed"  # a step went wrong
    INVALID = "invalid"  # it ran, but not what was asked
    PARTIAL = "partial"  # it was interrupted


class Step(StrEnum):
    """The steps of a run, in their order."""

    HOST = "host"
    PREPARE = "prepare"
    RESTORE = "restore"
    START = "start"
    READY = "ready"
    CACHES = "caches"
    OBSERVE = "observe"
    POPULATE = "populate"
    DRIVE = "drive"
    MEND = "mend"
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


Course = Literal["steady", "warm-up then steady", "slowing down", "none"]
"""What a run went through, by E. Barrett et al. (OOPSLA 2017); `none` where it never became steady."""


class RateChange(Frozen):
    """A step in the throughput within a run: operations a second before and after it."""

    at_s: float
    before: float
    after: float


class RateWithin(Frozen):
    """The mean throughput of one run and how sure it is from that run alone, by batch means.

    It says nothing of what another run would give: the run is what is repeated.
    """

    mean: float
    lo: float
    hi: float
    confidence: float
    intervals: int
    effective: Annotated[float, Field(description="independent intervals that would give a mean as sure")]


class MeasuredPart(Frozen):
    """The part that a run's responses are of. Seconds count from where the measured part begins that was asked for."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True, validate_by_alias=True)

    course: Annotated[Course | None, Field(alias="class", description="None where it cannot be told")]
    reason: Annotated[str | None, Field(description="why it cannot be told")] = None
    from_s: Annotated[float, Field(ge=0, description="above 0 where a warm-up that was found is left out")] = 0.0
    to_s: float
    seconds: float
    intervals: Annotated[int, Field(description="whole ones, within that part")]
    steady_from_s: Annotated[
        float | None, Field(description="where the steady part begins, left out or not; None where nothing is steady")
    ] = None
    change_points: tuple[RateChange, ...] = ()
    within: Annotated[RateWithin | None, Field(description="of the measured part, where that is steady")] = None


class Intervened(Frozen):
    """What an intervention did in a run. Figures are of the measured part."""

    kind: str
    dose: float
    clients: Annotated[int, Field(ge=1, description="that the workload had")]
    calls: Annotated[float | None, Field(description="calls that it acted on; None where it acts on none")] = None
    calls_per_op: float | None = None
    added_s: Annotated[
        float | None, Field(description="what it adds to a call, as measured here before the study; 0 in the control")
    ] = None
    slowed: Annotated[
        float | None,
        Field(
            description="by how much a unit of the resource takes longer to be had: 0.25 where a fifth is taken; None "
            "of delayed calls, and of what is not shared in time (memory)"
        ),
    ] = None
    measured: Annotated[
        dict[str, float],
        Field(
            description="of the instrument, before the first run: read_bytes_s, write_bytes_s of io-limit, "
            "read_operations_s, write_operations_s of io-operations-limit, and `_sd`"
        ),
    ] = {}
    notes: Annotated[tuple[str, ...], Field(description="what passes it by")] = ()


AUDITED = ("lost", "phantom", "duplicated", "altered", "foreign")
"""Of an audit, what is a response of the run."""


class Audited(Frozen):
    """What became of a ledger's rows, at one way into the store."""

    acknowledged: int
    present: int
    lost: int
    phantom: int
    duplicated: int
    altered: Annotated[int | None, Field(description="None where nobody looked at what is in rows")]
    foreign: Annotated[
        int | None, Field(description="rows that no client of the run can have written; None where nobody looked")
    ] = 0

    @property
    def responses(self) -> dict[str, float]:
        """By their names as responses of a run."""
        return {f"rows_{name}": float(value) for name in AUDITED if (value := getattr(self, name)) is not None}


class Faulted(Frozen):
    """What a fault did in a run. Times of day in ns since the epoch."""

    kind: str
    role: Annotated[str, Field(description="of the node, as it was asked for")]
    nodes: Annotated[tuple[str, ...], Field(description="that were struck")]
    at_ns: Annotated[int, Field(description="just before it was struck")]
    mended_ns: Annotated[int | None, Field(description="when mending began; None where it was not mended")] = None
    whole_ns: Annotated[int | None, Field(description="when the cluster was whole again; None where it never was")] = (
        None
    )
    watched_s: Annotated[float | None, Field(description="how long it was driven from then on")] = None
    former_per_s: Annotated[float | None, Field(description="successes a second before, in the measured part")] = None
    usual_gap_s: Annotated[float | None, Field(description="the longest time without a success before")] = None
    interrupted: Annotated[
        bool | None, Field(description="whether there was a time without a success that is more than twice that")
    ] = None
    interruptions: Annotated[
        tuple[tuple[float, float], ...],
        Field(description="each such time that began before mending did: when, since the fault, and how long it was"),
    ] = ()
    outage_s: Annotated[float | None, Field(description="None where it did not end")] = None
    first_success_s: float | None = None
    resolution_s: Annotated[
        float | None,
        Field(description="how long before the first success's request the one before it had been sent"),
    ] = None
    former_throughput_s: float | None = None
    rejoin_outage_s: float | None = None
    at_least: Annotated[
        dict[str, float],
        Field(
            description="responses of the run that are not known, since they were not over yet: what was seen of them"
        ),
    ] = {}
    audits: Annotated[
        dict[str, Audited],
        Field(description="of the rows: as clients find them (clients), and on each node by its name"),
    ] = {}

    @model_validator(mode="before")
    @classmethod
    def _as_an_earlier_dyno_wrote_it(cls, given: Any) -> Any:
        """It kept of an outage alone how long one was seen that did not end."""
        if not isinstance(given, dict) or "at_least_s" not in given:
            return given
        seen, rest = given["at_least_s"], {name: value for name, value in given.items() if name != "at_least_s"}
        if seen is not None:
            rest["at_least"] = {"outage": seen, "first_success": given.get("watched_s") or seen}
        return rest


class RunRecord(Frozen):
    """Everything about one run that is not a time series."""

    format: int = RUN_FORMAT
    run: Annotated[int, Field(ge=1, description="its number and the name of its folder; counts in order of execution")]
    slot: Slot
    pilot: Annotated[bool, Field(description="of a pilot: in no figure of the study")] = False
    levels: dict[str, str]
    outcome: Outcome
    step: Annotated[Step | None, Field(description="the step that went wrong; None for an ok run")] = None
    cause: Annotated[str | None, Field(description="what went wrong, in a line; None for an ok run")] = None
    started_ns: int
    ended_ns: int
    seconds: Annotated[float, Field(description="by a monotonic clock; a study's budget is of these")] = 0.0
    populated_from_ns: Annotated[
        int | None,
        Field(
            description="when the workload began to make what each of its runs finds in the store: before anything is "
            "measured, with samples, and in no figure; None where it makes nothing, and in records of an earlier dyno"
        ),
    ] = None
    populated_to_ns: Annotated[int | None, Field(description="when that ended")] = None
    measured_from_ns: Annotated[int | None, Field(description="of what the responses are of, as `measured` says")] = (
        None
    )
    measured_to_ns: int | None = None
    measured: Annotated[
        MeasuredPart | None,
        Field(description="what the responses are of; None without intervals, and in records of an earlier dyno"),
    ] = None
    steps: tuple[StepTime, ...] = ()
    driver_s: Annotated[float, Field(description="how long the driver's process lived, in seconds")] = 0.0
    responses: Annotated[dict[str, float], Field(description="in the units of dyno.model.responses")] = {}
    errors: Annotated[dict[str, dict[str, int]], Field(description="operation -> kind -> count")] = {}
    settings: Annotated[dict[str, Any], Field(description="the system's effective settings, as read back from it")] = {}
    status: Annotated[dict[str, float], Field(description="the system's own counters")] = {}
    caches: Annotated[dict[str, Any], Field(description="evidence for the state of the caches")] = {}
    deployed: Annotated[
        dict[str, Scalar], Field(description="how the system was deployed, as found while it ran: what may confound")
    ] = {}
    disk: Annotated[
        str | None, Field(description="the block device of the data, as samples name it; None where there is none")
    ] = None
    written: Annotated[
        dict[str, float],
        Field(description="operation -> bytes of values that one of it writes; empty where that is not known"),
    ] = {}
    read: Annotated[
        dict[str, float],
        Field(description="operation -> bytes that one of it asked to be read; empty where that is not known"),
    ] = {}
    commands: Annotated[tuple[tuple[str, ...], ...], Field(description="each command started, word by word")] = ()
    versions: dict[str, str] = {}
    driver: Annotated[dict[str, Any], Field(description="the job that the driver was given")] = {}
    loop: Annotated[
        str | None, Field(description="closed, or open: requests arrive whether or not others were answered")
    ] = None
    rate_per_s: Annotated[float | None, Field(description="requests a second asked for, of an open loop")] = None
    notes: Annotated[
        tuple[str, ...], Field(description="what a reader must know of how it was driven and observed")
    ] = ()
    events: Annotated[
        tuple[Event, ...], Field(description="what looks after the system did meanwhile, such as to promote a node")
    ] = ()
    halted: Annotated[bool, Field(description="the study was stopped here; its slot is tried again")] = False
    permanent: Annotated[
        bool,
        Field(description="what was asked was refused, or a setting was not effective: the cell is not tried again"),
    ] = False
    intervened: Annotated[
        Intervened | None, Field(description="what was done to a resource meanwhile; None where nothing was")
    ] = None
    faulted: Annotated[Faulted | None, Field(description="what was struck meanwhile; None where nothing was")] = None
    ended_by: Annotated[
        str | None, Field(description="what ended the driving: operations, duration, signal or error")
    ] = None
