"""What may be asked of workload `tsbs`: TSBS's parameters by its own names, and what dyno's loader has besides."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dyno.model.base import Frozen, KeyProblem
from dyno.model.units import Duration, PositiveDuration, Share
from dyno.workloads.tsbs_data import in_utc

QUERY_TYPES = (
    "cpu-max-all-1", "cpu-max-all-8", "double-groupby-1", "double-groupby-5", "double-groupby-all",
    "groupby-orderby-limit", "high-cpu-1", "high-cpu-all", "lastpoint", "single-groupby-1-1-1",
    "single-groupby-1-1-12", "single-groupby-1-8-1", "single-groupby-5-1-1", "single-groupby-5-1-12",
    "single-groupby-5-8-1",
)  # fmt: skip

ORDERS: Mapping[str, tuple[float, float, float] | None] = {
    "in-order": None,
    "light": (0.01, 60.0, 2),
    "heavy": (0.2, 3600.0, 20),
}
"""Of each order: the share of rows that are delayed, for how many seconds of their own time, and for at least how many
intervals: a row that is delayed for less than one is still in its order."""


def _moment(value: object) -> object:
    """YAML has dates and times of its own."""
    if isinstance(value, datetime):
        return in_utc(value if value.tzinfo is None else value.astimezone(UTC))
    return f"{value:%Y-%m-%dT00:00:00Z}" if hasattr(value, "isoformat") else value


def _in_seconds(value: str) -> str:
    for form in ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"):
        try:
            return in_utc(datetime.strptime(value, form).replace(tzinfo=UTC))
        except ValueError:
            continue
    raise ValueError(f"{value!r} is no time in UTC, such as 2016-01-01T00:00:00Z")


Moment = Annotated[str, BeforeValidator(_moment), AfterValidator(_in_seconds)]


Order = Annotated[
    Literal["in-order", "light", "heavy"],
    Field(
        description="light: 1 % of rows come a minute late or two intervals, the longer; heavy: 20 % an hour or "
        "twenty; dyno's loader"
    ),
]
Duplicates = Annotated[Share, Field(le=1, description="share of rows that are sent twice; dyno's loader")]


class TsbsOptions(Frozen):
    """TSBS's parameters by its own names, and what dyno's loader has besides."""

    action: Annotated[
        Literal["load", "queries", "mixed"],
        Field(
            description="what is measured: loading into empty tables; queries on loaded ones; or queries while more "
            "rows come"
        ),
    ] = "load"
    loader: Annotated[
        Literal["dyno", "tsbs"], Field(description="who loads: dyno's own loader, or TSBS's for the store")
    ] = "dyno"
    use_case: Annotated[Literal["devops"], Field(description="nine tables of measurements of hosts")] = "devops"
    scale: Annotated[int, Field(ge=1, le=10**7, description="hosts")] = 20
    interval: Annotated[PositiveDuration, Field(ge=1, le=86400, description="between two rows of a host")] = 10.0
    start: Annotated[Moment, Field(description="time of the first rows, in UTC")] = "2016-01-01T00:00:00Z"
    end: Annotated[Moment | None, Field(description="rows are before it; a day after start if left out")] = None
    length: Annotated[
        PositiveDuration | None, Field(ge=1, le=10**9, description="instead of end: how much time the rows are of")
    ] = None
    seed: Annotated[int, Field(ge=1, le=2**31 - 1, description="of TSBS's generators: the same rows each time")] = 666
    workers: Annotated[int, Field(ge=1, le=256, description="loaders, each with a connection of its own")] = 1
    batch: Annotated[int, Field(ge=1, le=10**6, description="rows that a worker sends at once")] = 10_000
    hash_workers: Annotated[
        bool,
        Field(description="all rows of a host by one worker; false: whole batches by whoever is free"),
    ] = True
    transport: Annotated[
        Literal["ilp-http", "ilp-tcp"],
        Field(
            description="of dyno's loader into QuestDB: acknowledged by HTTP, or over a socket and never acknowledged"
        ),
    ] = "ilp-http"
    rate: Annotated[
        float | None,
        Field(gt=0, le=1e9, description="rows a second over all workers, taken or not (an open loop); dyno's loader"),
    ] = None
    order: Order = "in-order"
    duplicates: Duplicates = 0.0
    retry: Annotated[
        Duration, Field(le=3600, description="how long a batch whose connection broke is sent again; dyno's loader")
    ] = 0.0
    queries: Annotated[
        tuple[Literal[QUERY_TYPES], ...],  # type: ignore[valid-type]
        Field(description="of actions queries and mixed: types of TSBS's queries, one after the other"),
    ] = ()
    query_count: Annotated[int, Field(ge=1, le=10**6, description="queries of each type")] = 100
    query_workers: Annotated[int, Field(ge=1, le=256, description="who ask at a time")] = 1
    mixed_end: Annotated[
        Moment | None, Field(description="of action mixed: rows from `end` to before it come while queries are asked")
    ] = None

    @model_validator(mode="after")
    def _goes_together(self) -> TsbsOptions:
        if self.length is not None and self.end is not None:
            raise KeyProblem("length", "stands beside end: one of them says how much time the rows are of")
        try:
            until = self.until
        except OverflowError:
            raise KeyProblem("length", "reaches beyond the year 9999") from None
        if until <= parsed(self.start):
            raise KeyProblem("end", "is not behind start")
        if self.loader == "tsbs" and self.action != "queries":
            for name, usual in (("rate", None), ("order", "in-order"), ("duplicates", 0.0), ("retry", 0.0)):
                if getattr(self, name) != usual:
                    raise KeyProblem(name, "is of dyno's loader alone: write loader: dyno, or leave it out")
        if (self.action == "load") == bool(self.queries):
            raise KeyProblem("queries", "are of actions queries and mixed, which need them")
        if (self.action == "mixed") != (self.mixed_end is not None):
            raise KeyProblem("mixed_end", "is of action mixed alone, which needs it")
        if self.action == "mixed":
            if self.loader != "dyno" or self.rate is None:
                raise KeyProblem("rate", "action mixed needs one, and loader: dyno")
            if self.mixed_end is not None and parsed(self.mixed_end) <= until:
                raise KeyProblem("mixed_end", "is not behind end")
            if len(self.queries) != 1:
                raise KeyProblem("queries", "action mixed takes one type")
        return self

    @property
    def seconds(self) -> float:
        """How much time the rows are of, those of `mixed_end` excepted."""
        return (self.until - parsed(self.start)).total_seconds()

    @property
    def until(self) -> datetime:
        """Rows are before it, those of `mixed_end` excepted."""
        if self.end is not None:
            return parsed(self.end)
        return parsed(self.start) + timedelta(seconds=self.length or timedelta(days=1).total_seconds())


def parsed(moment: str) -> datetime:
    """A time of the options."""
    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
