"""TPC-C, carried out by dyno's own driver: five transactions of a wholesale supplier, and whether its books agree.

Source: TPC Benchmark C, Standard Specification, revision 5.11. What is measured here is not tpmC: nothing is audited,
and keying and thinking times, which the specification demands, are off unless asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dyno.model.endpoint import Endpoint
from dyno.workloads import core
from dyno.workloads.base import Checked, Measured, Runner
from dyno.workloads.driving import DrivenWorkload, DrivingOptions, drive, with_limits

_ITEMS, _CUSTOMERS = 100_000, 3000
# About what a warehouse takes at the specification's sizes, indexes and half-full pages included.
_BYTES_OF_WAREHOUSE, _BYTES_OF_ITEMS = 150 * 10**6, 20 * 10**6


class TpccOptions(DrivingOptions):
    """The specification's scale, and what of it may be left out."""

    warehouses: Annotated[int, Field(ge=1, le=100_000, description="what the data set and its contention grow with")]
    mix: Annotated[
        Literal["standard", "looking-glass"],
        Field(
            description="standard: the specification's five transactions; looking-glass: New-Order and Payment half "
            "and half, as in Harizopoulos et al. 2008"
        ),
    ] = "standard"
    keying_time: Annotated[bool, Field(description="before each transaction, as the specification has it")] = False
    think_time: Annotated[bool, Field(description="after each transaction, likewise")] = False
    items: Annotated[int, Field(ge=100, le=_ITEMS, description="fewer than 100,000 is not TPC-C: for tests")] = _ITEMS
    customers_per_district: Annotated[
        int, Field(ge=30, le=_CUSTOMERS, description="and as many orders; fewer than 3,000 is not TPC-C: for tests")
    ] = _CUSTOMERS

    @model_validator(mode="after")
    def _waits_in_a_closed_loop_alone(self) -> TpccOptions:
        if self.rate is not None and (self.keying_time or self.think_time):
            raise ValueError("keying_time and think_time are of a closed loop, and a rate makes an open one")
        return self


class TpccWorkload(DrivenWorkload[TpccOptions]):
    """Load and run phases by `dyno-core drive`, and after each run the consistency conditions 1 to 4."""

    kind = "tpcc"
    Options = TpccOptions
    backends = frozenset({"sqlite", "mysql", "postgresql"})

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """As its limits do."""
        return self.options.refuses(backend)

    def rate(self) -> float | None:
        """As asked for."""
        return self.options.rate

    def clients(self) -> int:
        """One a thread."""
        return self.options.threads

    def warms_up(self) -> bool:
        """By time or by transactions."""
        return self.options.warmup > 0 or self.options.warmup_operations > 0

    def data_key(self) -> dict[str, Any]:
        """What is loaded."""
        given = self.options
        return {
            "warehouses": given.warehouses,
            "items": given.items,
            "customers_per_district": given.customers_per_district,
        }

    def data_bytes(self) -> int:
        """In proportion to the specification's sizes; stock goes by items, all else by customers."""
        given = self.options
        share = (given.items / _ITEMS + given.customers_per_district / _CUSTOMERS) / 2
        return round(given.warehouses * share * _BYTES_OF_WAREHOUSE + given.items / _ITEMS * _BYTES_OF_ITEMS)

    def expected_seconds(self) -> float | None:
        """Known where a duration ends it."""
        return self.options.seconds()

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """The specification's initial population."""
        core.load(runner, self._job(endpoint, "load", seed))

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Apply the mix."""
        measured = drive(runner, endpoint, self._workload(), self.options, seed)
        return replace(measured, notes=tuple(self._notes()))

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """The specification's 3.3.2.1 to 3.3.2.4; one that does not hold fails the run."""
        checked, _ = core.check(runner, self._job(endpoint, "check", seed))
        return checked

    def _job(self, endpoint: Endpoint, phase: str, seed: int) -> dict[str, Any]:
        target = with_limits(endpoint, self.options.limits)
        return core.job(target, self._workload(), phase=phase, clients=1, seed=seed)

    def _workload(self) -> dict[str, Any]:
        given = self.options
        return {
            "kind": "tpcc",
            "warehouses": given.warehouses,
            "mix": given.mix,
            "keying_time": given.keying_time,
            "think_time": given.think_time,
            "items": given.items,
            "customers_per_district": given.customers_per_district,
        }

    def _notes(self) -> list[str]:
        given = self.options
        waits = "with" if given.keying_time and given.think_time else "without"
        notes = [
            f"TPC-C ran {waits} the specification's keying and thinking times, unaudited: its figures are no tpmC and "
            "stand beside no published one."
        ]
        if given.items < _ITEMS or given.customers_per_district < _CUSTOMERS:
            notes.append(
                f"TPC-C ran on less than the specification's data ({given.items:,} items, "
                f"{given.customers_per_district:,} customers a district): it shows that everything works."
            )
        return notes
