"""The Yahoo! Cloud Serving Benchmark's core workloads A to F, carried out by dyno's own driver.

Source of the mixes: Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010, table 2.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, PositiveDuration, Share, Size
from dyno.workloads import core
from dyno.workloads.base import Measured, Runner, Workload

_MIXES: dict[str, dict[str, float]] = {
    "a": {"read": 0.5, "update": 0.5},
    "b": {"read": 0.95, "update": 0.05},
    "c": {"read": 1.0},
    "d": {"read": 0.95, "insert": 0.05},
    "e": {"scan": 0.95, "insert": 0.05},
    "f": {"read": 0.5, "read_modify_write": 0.5},
}
_CHOOSERS = {"d": "latest"}
_OVERHEAD = 1.5  # of stored rows over their fields' bytes: keys, row headers, half-full pages


class Proportions(Frozen):
    """A mix of one's own; the shares add up to 100%."""

    read: Share = 0.0
    update: Share = 0.0
    insert: Share = 0.0
    scan: Share = 0.0
    read_modify_write: Share = 0.0


class YcsbOptions(Frozen):
    """YCSB's own parameters under their own names, where it has them."""

    mix: Annotated[Literal["a", "b", "c", "d", "e", "f"] | None, Field(description="a core workload")] = None
    proportions: Annotated[Proportions | None, Field(description="instead of `mix`")] = None
    records: Annotated[int, Field(ge=1, le=10**12, description="rows loaded before the first run")] = 1000
    operations: Annotated[int | None, Field(ge=1, le=10**12, description="measured operations, over all threads")] = (
        None
    )
    duration: Annotated[
        PositiveDuration | None, Field(description="of the measured part; the first to come ends it")
    ] = None
    warmup: Annotated[Duration, Field(description="before the measured part")] = 0.0
    warmup_operations: Annotated[
        int, Field(ge=0, le=10**12, description="before the measured part, over all threads")
    ] = 0
    interval: Annotated[
        Duration, Field(ge=0.01, le=60, description="of the time series that are kept beside a run's figures")
    ] = 1.0
    threads: Annotated[int, Field(ge=1, le=4096, description="clients, each with a connection of its own")] = 1
    key_chooser: Annotated[
        Literal["zipfian", "uniform", "latest"] | None, Field(description="default: latest for mix d, else zipfian")
    ] = None
    theta: Annotated[float, Field(gt=0, le=10, description="skew of zipfian and latest")] = 0.99
    field_count: Annotated[int, Field(ge=1, le=1000, description="fields of a row")] = 10
    field_length: Annotated[Size, Field(ge=1, le=2**20, description="of each field")] = 100
    read_all_fields: Annotated[bool, Field(description="read the whole row, else one field")] = True
    write_all_fields: Annotated[bool, Field(description="update the whole row, else one field")] = False
    max_scan_length: Annotated[int, Field(ge=1, le=100_000, description="rows; lengths are uniform from 1")] = 100
    insert_order: Annotated[Literal["hashed", "ordered"], Field(description="of keys, by their number")] = "hashed"
    max_errors: Annotated[
        Share, Field(le=1, description="share of operations that may fail before the run is invalid")
    ] = 0.0

    @model_validator(mode="after")
    def _is_one_workload(self) -> YcsbOptions:
        if (self.mix is None) == (self.proportions is None):
            raise ValueError("give either mix (a to f) or proportions")
        if self.operations is None and self.duration is None:
            raise ValueError("give operations, or duration, or both (the first to come ends the run)")
        if self.proportions is not None:
            total = sum(self.proportions.model_dump().values())
            if abs(total - 1) > 1e-9:
                raise ValueError(f"proportions add up to {total:.6%}, not to 100%")
        return self


class YcsbWorkload(Workload[YcsbOptions]):
    """Load and run phases by `dyno-core drive`."""

    kind = "ycsb"
    Options = YcsbOptions
    backends = frozenset({"sqlite", "null"})

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
        }

    def data_bytes(self) -> int:
        """Fields and their share of overhead."""
        return round(self.options.records * self.options.field_count * self.options.field_length * _OVERHEAD)

    def expected_seconds(self) -> float | None:
        """Known where a duration ends it."""
        return None if self.options.duration is None else self.options.warmup + self.options.duration

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Insert the records; every one must succeed."""
        job = core.job(endpoint, self._workload(), phase="load", clients=1, seed=seed)
        if not core.drive(runner, job, max_errors=0.0).complete:
            raise RunError("the load was cut short")

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Apply the mix."""
        given = self.options
        job = core.job(
            endpoint,
            self._workload(),
            phase="run",
            clients=given.threads,
            seed=seed,
            operations=given.operations,
            duration_s=given.duration,
            warmup_operations=given.warmup_operations,
            warmup_s=given.warmup,
            interval_ms=round(given.interval * 1000),
        )
        return core.drive(runner, job, max_errors=given.max_errors)

    def _workload(self) -> dict[str, Any]:
        given = self.options
        if given.proportions is not None:
            proportions = {name: share for name, share in given.proportions.model_dump().items() if share}
        else:
            assert given.mix is not None
            proportions = _MIXES[given.mix]
        return {
            "kind": "ycsb",
            "records": given.records,
            "proportions": proportions,
            "key_chooser": given.key_chooser or _CHOOSERS.get(given.mix or "", "zipfian"),
            "theta": given.theta,
            "field_count": given.field_count,
            "field_length_bytes": given.field_length,
            "read_all_fields": given.read_all_fields,
            "write_all_fields": given.write_all_fields,
            "max_scan_length": given.max_scan_length,
            "insert_order": given.insert_order,
        }
