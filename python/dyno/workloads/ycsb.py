"""The Yahoo! Cloud Serving Benchmark's core workloads A to F, carried out by dyno's own driver.

Source of the mixes: Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010, table 2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, Share, Size
from dyno.workloads import core
from dyno.workloads.base import Measured, Runner
from dyno.workloads.driving import DrivenWorkload, DrivingOptions, drive, with_limits

KeyChooser = Literal[
    "zipfian", "clustered-zipfian", "ycsb-zipfian", "uniform", "latest", "hotspot", "exponential", "sequential"
]

MIXES: dict[str, dict[str, float]] = {
    "a": {"read": 0.5, "update": 0.5},
    "b": {"read": 0.95, "update": 0.05},
    "c": {"read": 1.0},
    "d": {"read": 0.95, "insert": 0.05},
    "e": {"scan": 0.95, "insert": 0.05},
    "f": {"read": 0.5, "read_modify_write": 0.5},
}
CHOOSERS = {"d": "latest"}
_PARAMETERS = {
    "hotspot_keys": "hotspot",
    "hotspot_operations": "hotspot",
    "exponential_percentile": "exponential",
    "exponential_keys": "exponential",
}
_YCSB_THETA = 0.99
_LEAST_TO_CHECK = 16  # bytes that the name of a row, field and version take
CHOSEN = {
    "zipfian": "Keys were chosen by an exact Zipfian (theta {theta:g}), the popular ones scattered over the key space.",
    "clustered-zipfian": "Keys were chosen by an exact Zipfian (theta {theta:g}), the popular ones side by side.",
    "ycsb-zipfian": "Keys were chosen by ycsb-zipfian: what YCSB itself calls zipfian, draw for draw. It is no Zipfian "
    "over the keys: it draws from ten thousand million items and hashes them onto the keys, so that several fall on "
    "one key, and the skew does not follow the number of records.",
    "uniform": "Keys were chosen uniformly.",
    "latest": "Keys were chosen by latest: the newest inserted are the most popular (theta {theta:g}).",
    "hotspot": "Keys were chosen by hotspot: a share of the operations goes to the first keys, evenly.",
    "exponential": "Keys were chosen by exponential: the newest are the most popular.",
    "sequential": "Keys were chosen one after the other, over all threads.",
}
_OVERHEAD = 1.5  # of stored rows over their fields' bytes: keys, row headers, half-full pages


class Proportions(Frozen):
    """A mix of one's own; the shares add up to 100%."""

    read: Share = 0.0
    update: Share = 0.0
    insert: Share = 0.0
    scan: Share = 0.0
    read_modify_write: Share = 0.0


class YcsbOptions(DrivingOptions):
    """YCSB's own parameters under their own names, where it has them."""

    mix: Annotated[Literal["a", "b", "c", "d", "e", "f"] | None, Field(description="a core workload")] = None
    proportions: Annotated[Proportions | None, Field(description="instead of `mix`")] = None
    records: Annotated[int, Field(ge=1, le=10**12, description="rows loaded before the first run")] = 1000
    think_time: Annotated[
        Duration, Field(le=3600, description="of a thread between an answer and its next request; part of no latency")
    ] = 0.0
    key_chooser: Annotated[
        KeyChooser | None,
        Field(
            description="default: latest for mix d, else zipfian. zipfian: exact, its popular keys scattered; "
            "clustered-zipfian: exact, they stand side by side; ycsb-zipfian: what YCSB calls so, draw for draw; "
            "latest and exponential favour the newest; sequential: one key after the other"
        ),
    ] = None
    theta: Annotated[float, Field(gt=0, le=10, description="skew of zipfian, clustered-zipfian and latest")] = 0.99
    hotspot_keys: Annotated[
        Share | None, Field(le=1, description="of hotspot: share of the keys that are hot; 20%")
    ] = None
    hotspot_operations: Annotated[
        Share | None, Field(le=1, description="of hotspot: share of the operations that go to them; 80%")
    ] = None
    exponential_percentile: Annotated[
        Share | None, Field(gt=0, lt=1, description="of exponential: this share of the operations; 95%")
    ] = None
    exponential_keys: Annotated[
        Share | None, Field(gt=0, le=1, description="of exponential: goes to this share of the keys; 85.71428571%")
    ] = None
    data_integrity: Annotated[
        bool, Field(description="each value names its row, field and version, and what is read is checked")
    ] = False
    field_count: Annotated[int, Field(ge=1, le=1000, description="fields of a row")] = 10
    field_length: Annotated[Size, Field(ge=1, le=2**20, description="of each field")] = 100
    read_all_fields: Annotated[bool, Field(description="read the whole row, else one field")] = True
    write_all_fields: Annotated[bool, Field(description="update the whole row, else one field")] = False
    max_scan_length: Annotated[int, Field(ge=1, le=100_000, description="rows; lengths are uniform from 1")] = 100
    insert_order: Annotated[Literal["hashed", "ordered"], Field(description="of keys, by their number")] = "hashed"

    @model_validator(mode="after")
    def _is_one_workload(self) -> YcsbOptions:
        if (self.mix is None) == (self.proportions is None):
            raise ValueError("give either mix (a to f) or proportions")
        if self.proportions is not None:
            total = sum(self.proportions.model_dump().values())
            if abs(total - 1) > 1e-9:
                raise ValueError(f"proportions add up to {total:.6%}, not to 100%")
        if self.rate is not None and self.think_time:
            raise ValueError("think_time is of a closed loop, and a rate makes an open one: keep one of them")
        if self.data_integrity and self.field_length < _LEAST_TO_CHECK:
            raise ValueError(f"data_integrity needs a field_length of at least {_LEAST_TO_CHECK} B to be told by")
        return self

    @model_validator(mode="after")
    def _parameters_are_of_the_chooser(self) -> YcsbOptions:
        for name, chooser in _PARAMETERS.items():
            if getattr(self, name) is not None and self.chooser != chooser:
                raise ValueError(f"{name} is of key_chooser {chooser} alone, and keys are chosen by {self.chooser}")
        if self.chooser == "ycsb-zipfian" and self.theta != _YCSB_THETA:
            raise ValueError(f"theta of ycsb-zipfian is {_YCSB_THETA}, as YCSB has it; zipfian takes any other")
        return self

    @property
    def chooser(self) -> str:
        """By what keys are chosen in the end."""
        return self.key_chooser or CHOOSERS.get(self.mix or "", "zipfian")


class YcsbWorkload(DrivenWorkload[YcsbOptions]):
    """Load and run phases by `dyno-core drive`."""

    kind = "ycsb"
    Options = YcsbOptions
    backends = frozenset({"sqlite", "null", "mysql", "postgresql"})

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """Where nothing is stored there is nothing to check."""
        if self.options.data_integrity and backend == "null":
            return "data_integrity checks what was stored, and this system stores nothing: leave it out"
        return self.options.refuses(backend)

    def rate(self) -> float | None:
        """As asked for."""
        return self.options.rate

    def clients(self) -> int:
        """One a thread."""
        return self.options.threads

    def warms_up(self) -> bool:
        """By time or by operations."""
        return self.options.warmup > 0 or self.options.warmup_operations > 0

    def data_key(self) -> dict[str, Any]:
        """What the rows look like and how many there are."""
        given = self.options
        return {
            "records": given.records,
            "field_count": given.field_count,
            "field_length": given.field_length,
            "insert_order": given.insert_order,
            "data_integrity": given.data_integrity,
        }

    def data_bytes(self) -> int:
        """Fields and their share of overhead."""
        return round(self.options.records * self.options.field_count * self.options.field_length * _OVERHEAD)

    def expected_seconds(self) -> float | None:
        """Known where a duration ends it."""
        return self.options.seconds()

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Insert the records; every one must succeed."""
        target = with_limits(endpoint, self.options.limits)
        job = core.job(target, self._workload(), phase="load", clients=1, seed=seed)
        core.load(runner, job)

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Apply the mix."""
        given = self.options
        measured = drive(runner, endpoint, self._workload(), given, seed, think_time=given.think_time)
        return replace(measured, notes=(CHOSEN[given.chooser].format(theta=given.theta),))

    def _workload(self) -> dict[str, Any]:
        given = self.options
        if given.proportions is not None:
            proportions = {name: share for name, share in given.proportions.model_dump().items() if share}
        else:
            assert given.mix is not None
            proportions = MIXES[given.mix]
        return {
            "kind": "ycsb",
            "records": given.records,
            "proportions": proportions,
            "key_chooser": given.chooser,
            "theta": given.theta,
            **self._parameters(),
            **({"data_integrity": True} if given.data_integrity else {}),
            "field_count": given.field_count,
            "field_length_bytes": given.field_length,
            "read_all_fields": given.read_all_fields,
            "write_all_fields": given.write_all_fields,
            "max_scan_length": given.max_scan_length,
            "insert_order": given.insert_order,
        }

    def _parameters(self) -> dict[str, float]:
        """Those of the chooser that were given; the driver has the rest."""
        given = {name: getattr(self.options, name) for name in _PARAMETERS}
        if given["exponential_percentile"] is not None:
            given["exponential_percentile"] *= 100
        return {name: value for name, value in given.items() if value is not None}
