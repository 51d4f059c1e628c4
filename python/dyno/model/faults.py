"""Faults: what is done to a node of a cluster on purpose while it is driven, so that what a failover costs is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from dyno.model.base import Frozen, Scalar
from dyno.model.units import Duration, PositiveDuration

FACTOR = "fault"
"""The factor that a study with faults has besides its own."""
NONE = "none"
"""Its level where nothing is struck."""

FaultKind = Literal[
    "kill", "freeze", "shutdown", "cut", "cut-client", "cut-one-way", "disk-full", "slow-disk", "slow-network"
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

TITLES: dict[FaultKind, str] = {
    "kill": "the server's process is killed (SIGKILL)",
    "freeze": "the server's process is stopped (SIGSTOP), and goes on later",
    "shutdown": "the server is asked to end",
    "cut": "the node's network is cut",
    "cut-client": "the client's way to the node is cut",
    "cut-one-way": "nothing that the node sends arrives",
    "disk-full": "the node's disk is full",
    "slow-disk": "the node's disk is slow",
    "slow-network": "the node's network is slow",
}

LOSSES = ("rows_lost", "rows_duplicated", "rows_altered", "rows_foreign")
"""The responses that are asked of each fault by itself: what is lost once is not made good by the mean of many."""
OF_FAULTS = (
    *("outage", "first_success", "interruptions", "former_throughput", "rejoin_outage", "redundancy", "rejoin"),
    *("lost_work", "requests_failed", "requests_late", "stale_reads_after", "rows_phantom"),
    *LOSSES,
)
"""The responses that only a run has in which something was struck."""

NodeRole = Literal["primary", "secondary", "any"]


class Fault(Frozen):
    """What is done, to which node, and for how long."""

    kind: FaultKind
    node: Annotated[NodeRole, Field(description="whose role when it is struck; any: one at random")] = "primary"
    lasts: Annotated[
        float | None, Field(gt=0, description="seconds until it is mended; None: when the driver has ended")
    ] = None


@dataclass(frozen=True)
class Struck:
    """A fault that was carried out: on which nodes, and from when on (CLOCK_REALTIME, just before it was done)."""

    kind: FaultKind
    nodes: tuple[str, ...]
    at_ns: int


class FaultOptions(Frozen):
    """What each kind of fault takes in a study file."""

    node: Annotated[NodeRole, Field(description="which node: by its role when it is struck; any: one at random")] = (
        "primary"
    )
    at: Annotated[
        tuple[Duration, Duration],
        Field(
            description="[from, to]: struck at a random time of the run's seed between these, since the measured part "
            "began"
        ),
    ]
    lasts: Annotated[
        PositiveDuration | None,
        Field(
            description="until it is mended: what was ended is started again, what was cut is joined; the driver has "
            "to be there as long; when it has ended if left out"
        ),
    ] = None
    late: Annotated[
        PositiveDuration, Field(description="an answer later than this, from when the request was due, is late")
    ] = 1.0
    whole: Annotated[
        PositiveDuration, Field(description="the longest that the cluster may take to be whole, once it was mended")
    ] = 300.0
    where: Annotated[
        dict[str, Scalar], Field(description="factor to level: only in these cells; in all of them if left out")
    ] = {}

    @model_validator(mode="after")
    def _the_window_ends_after_it_begins(self) -> FaultOptions:
        if self.at[0] > self.at[1]:
            raise ValueError("at: ends before it begins; write [from, to]")
        return self

    def plan(self, kind: FaultKind) -> FaultPlan:
        """What is done in a cell."""
        return FaultPlan(
            fault=Fault(kind=kind, node=self.node, lasts=self.lasts),
            from_s=self.at[0],
            to_s=self.at[1],
            late_s=self.late,
            whole_s=self.whole,
        )


class NoFaultOptions(Frozen):
    """Of the level at which nothing is struck."""

    where: Annotated[
        dict[str, Scalar], Field(description="factor to level: only in these cells; in all of them if left out")
    ] = {}


class FaultPlan(Frozen):
    """What is struck in each run of a cell, and when. Times in seconds; the window is of the measured part."""

    fault: Fault
    from_s: float
    to_s: float
    late_s: Annotated[float, Field(description="an answer later than this, from when the request was due, is late")]
    whole_s: Annotated[float, Field(description="how long the cluster is waited for, once it was mended")]
