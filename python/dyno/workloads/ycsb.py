"""The Yahoo! Cloud Serving Benchmark's core workloads A to F, carried out by dyno's own driver or by go-ycsb."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dyno.hosts import LocalHost
from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, Share, Size
from dyno.workloads.base import Checked, Measured, Runner
from dyno.workloads.core_workloads import CHOOSERS, CHOSEN, MIXES, stored_bytes
from dyno.workloads.driving import DrivenWorkload, DrivingOptions
from dyno.workloads.go_ycsb import Asked, GoYcsb

KeyChooser = Literal[
    "zipfian", "clustered-zipfian", "ycsb-zipfian", "uniform", "latest", "hotspot", "exponential", "sequential"
]

_PARAMETERS = {
    "hotspot_keys": "hotspot",
    "hotspot_operations": "hotspot",
    "exponential_percentile": "exponential",
    "exponential_keys": "exponential",
}
_GO_NAMES = {
    "hotspot_keys": "hotspotdatafraction",
    "hotspot_operations": "hotspotopnfraction",
    "exponential_percentile": "exponential.percentile",
    "exponential_keys": "exponential.frac",
}
_OF_THETA = ("zipfian", "clustered-zipfian", "latest")
_YCSB_THETA = 0.99  # and the default of the others
_SCAN_LENGTH = 100
_LONGEST_GO_FIELD = 65535
_LEAST_TO_CHECK = 16  # bytes that the name of a row, field and version take


class Proportions(Frozen):
    """A mix of one's own; the shares add up to 100%."""

    read: Share = 0.0
    update: Share = 0.0
    insert: Share = 0.0
    scan: Share = 0.0
    read_modify_write: Share = 0.0


class YcsbOptions(DrivingOptions):
    """YCSB's own parameters under their own names, where it has them."""

    driver: Annotated[
        Literal["dyno", "go-ycsb"],
        Field(description="who asks: dyno's own driver, or go-ycsb, which takes the same keys as far as it can"),
    ] = "dyno"
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
    theta: Annotated[float, Field(gt=0, le=10, description="skew of zipfian, clustered-zipfian and latest")] = (
        _YCSB_THETA
    )
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
        bool,
        Field(
            description="each value proves of which row and field it is, and what is read is checked; that it is the "
            "newest is not"
        ),
    ] = False
    field_count: Annotated[int, Field(ge=1, le=1000, description="fields of a row")] = 10
    field_length: Annotated[Size, Field(ge=1, le=2**20, description="of each field")] = 100
    read_all_fields: Annotated[bool, Field(description="read the whole row, else one field")] = True
    write_all_fields: Annotated[bool, Field(description="update the whole row, else one field")] = False
    max_scan_length: Annotated[int, Field(ge=1, le=100_000, description="rows; lengths are uniform from 1")] = (
        _SCAN_LENGTH
    )
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
        # A default may be written out: a plan has them all.
        if self.theta != _YCSB_THETA and self.chooser not in _OF_THETA:
            raise ValueError(
                f"theta is of key_chooser {', '.join(_OF_THETA)} alone, and keys are chosen by {self.chooser}"
            )
        if self.max_scan_length != _SCAN_LENGTH and not self.shares().get("scan"):
            raise ValueError("max_scan_length is of scans, and this mix has none")
        return self

    @model_validator(mode="after")
    def _driver_can(self) -> YcsbOptions:
        if self.driver == "go-ycsb":
            for wrong, text in self._beyond_go_ycsb():
                if wrong:
                    raise ValueError(f"driver go-ycsb {text}")
        return self

    def _beyond_go_ycsb(self) -> Iterator[tuple[bool, str]]:
        """What it cannot do, each with the key."""
        yield self.rate is not None, "has no open loop: leave out rate"
        yield self.think_time > 0, "has no think_time: leave it out"
        yield self.drivers > 1, "is one process: leave out drivers"
        yield self.limits is not None, "waits as long as its connections do: leave out limits"
        yield self.reconnect is not None, "connects anew as it likes: leave out reconnect"
        yield self.data_integrity, "writes values of its own: leave out data_integrity"
        yield self.warmup_operations > 0, "warms up by time: write warmup instead of warmup_operations"
        yield self.warmup != int(self.warmup), f"warms up for whole seconds, not {self.warmup:g} (warmup)"
        yield self.chooser == "clustered-zipfian", "has no key_chooser clustered-zipfian"
        # Its zipfian is YCSB's, whose popular keys are much less so: to call the two one would compare other keys.
        yield self.chooser == "zipfian", "has no exact zipfian: write key_chooser: ycsb-zipfian for both drivers"
        yield self.theta != _YCSB_THETA, f"has a theta of {_YCSB_THETA} and no other"
        yield self.field_length > _LONGEST_GO_FIELD, f"has fields of up to {_LONGEST_GO_FIELD} B (field_length)"
        few = self.operations is not None and self.operations < self.threads
        yield few, "needs an operation a thread (operations)"
        unknown = self.operations is None and bool(self.shares().get("insert"))
        yield unknown, "has to know how many operations a mix with inserts has: give operations"

    def shares(self) -> dict[str, float]:
        """Of the operations of each kind."""
        return MIXES[self.mix] if self.mix else self.proportions.model_dump() if self.proportions else {}

    @property
    def chooser(self) -> str:
        """By what keys are chosen in the end."""
        return self.key_chooser or CHOOSERS.get(self.mix or "", "zipfian")


class YcsbWorkload(DrivenWorkload[YcsbOptions]):
    """Load and run phases by `dyno-core drive`, or by go-ycsb.

    go-ycsb hashes keys otherwise than dyno does, and then loads its own; ordered ones are the same for both, so that it
    runs on the very data that dyno loads.
    """

    kind = "ycsb"
    Options = YcsbOptions
    backends = frozenset({"berkeleydb", "glass", "sqlite", "null", "mysql", "postgresql"})

    def __init__(self, options: YcsbOptions) -> None:
        super().__init__(options)
        self._other = GoYcsb(self._for_go_ycsb()) if options.driver == "go-ycsb" else None

    def program(self) -> str:
        """The driver's."""
        return self.options.driver if self._other else self.kind

    def needs(self) -> Sequence[str]:
        """The driver of others, where it is one."""
        return ("go-ycsb",) if self._other else ()

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """Of dyno's own driver there is nothing to get."""
        return self._other.provision() if self._other else {}

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """Where nothing is stored there is nothing to check, and go-ycsb knows servers alone."""
        if self.options.data_integrity and backend == "null":
            return "data_integrity checks what was stored, and this system stores nothing: leave it out"
        if self._other and backend not in self._other.backends:
            return f"driver go-ycsb reaches no store of backend {backend}: leave driver out"
        return super().refuses(backend, reached_by) or (self._other.refuses(reached_by) if self._other else None)

    def clients(self) -> int:
        """One a thread, or as many as go-ycsb opens."""
        return self._other.clients() if self._other else super().clients()

    def at_once(self) -> int:
        """One a thread, by either driver."""
        return self.options.threads

    def cuts(self) -> bool:
        """go-ycsb keeps no record that a part could be cut from."""
        return self._other is None and super().cuts()

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """By dyno, unless the keys are go-ycsb's own."""
        if self._other and self._loads_its_own():
            self._other.load(runner, endpoint)
        else:
            super().load(runner, endpoint, seed)

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """By the driver that was chosen."""
        return self._other.drive(runner, endpoint) if self._other else super().drive(runner, endpoint, seed)

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """What go-ycsb says is held against the store; dyno's driver looks at each answer itself."""
        return self._other.check(runner, endpoint) if self._other else super().check(runner, endpoint, seed)

    def data_key(self) -> dict[str, Any]:
        """What the rows look like and how many there are."""
        given = self.options
        return {
            "records": given.records,
            "field_count": given.field_count,
            "field_length": given.field_length,
            "insert_order": given.insert_order,
            "data_integrity": given.data_integrity,
            **({"driver": given.driver} if self._loads_its_own() else {}),
        }

    def _loads_its_own(self) -> bool:
        return self.options.driver == "go-ycsb" and self.options.insert_order == "hashed"

    def _for_go_ycsb(self) -> Asked:
        given = self.options
        more = {name: getattr(given, key) for key, name in _GO_NAMES.items() if getattr(given, key) is not None}
        if "exponential.percentile" in more:
            more["exponential.percentile"] *= 100
        return Asked(
            mix=given.shares(),
            chooser=given.chooser.removeprefix("ycsb-"),
            records=given.records,
            operations=given.operations,
            seconds=given.duration,
            warmup=given.warmup,
            threads=given.threads,
            field_count=given.field_count,
            field_length=given.field_length,
            interval=max(math.ceil(given.interval), 1),  # whole seconds are its finest
            max_errors=given.max_errors,
            insert_order=given.insert_order,
            read_all_fields=given.read_all_fields,
            write_all_fields=given.write_all_fields,
            max_scan_length=given.max_scan_length,
            more=more,
        )

    def data_bytes(self) -> int:
        """As its rows take."""
        return stored_bytes(self.options.records, self.options.field_count, self.options.field_length)

    def written(self) -> dict[str, float]:
        """The values of a row, or of one field; keys are not counted."""
        given = self.options
        row = given.field_count * given.field_length
        update = row if given.write_all_fields else given.field_length
        of_kind = {"insert": row, "update": update, "read_modify_write": update}
        if self._other:
            of_kind["read_modify_write"] = 0  # go-ycsb counts its update among the updates as well
        kinds = (*of_kind, *(name for name, share in given.shares().items() if share))
        return {name: float(of_kind.get(name, 0)) for name in kinds}

    def think_time(self) -> float:
        """As asked for."""
        return self.options.think_time

    def notes(self) -> Iterator[str]:
        """How keys were chosen."""
        yield CHOSEN[self.options.chooser].format(theta=self.options.theta)

    def asked(self) -> dict[str, Any]:
        """As a job has it."""
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
