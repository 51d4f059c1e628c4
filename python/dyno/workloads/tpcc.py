"""TPC-C, carried out by dyno's own driver: five transactions of a wholesale supplier, and whether its books agree.

Source: TPC Benchmark C, Standard Specification, revision 5.11. What is measured here is not tpmC: nothing is audited,
and keying and thinking times, which the specification demands, are off unless asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dyno.model.endpoint import Endpoint
from dyno.workloads import core
from dyno.workloads.base import Checked, Runner
from dyno.workloads.driving import DrivenWorkload, DrivingOptions

_ITEMS, _CUSTOMERS = 100_000, 3000
# New-Orders that end at an item that is not there (2.4.1.4).
_ROLLBACKS = 0.01
# About what a warehouse takes at the specification's sizes, indexes and half-full pages included.
_BYTES_OF_WAREHOUSE, _BYTES_OF_ITEMS = 150 * 10**6, 20 * 10**6
# What a transaction writes: the columns that its statements set, at the sizes of their types in the driver's tables
# (a number 4 B, a large one 8 B, letters as many as they are), and rows that are inserted whole, without columns that
# are left empty. An order has 10 lines on average (2.4.1.3), those that are rolled back all but the last, whose item is
# not there (2.4.1.4). A tenth of payments are of customers with bad credit (4.3.3.1), whose data of 300 to 500 letters
# are written anew. A delivery takes an order in each of 10 districts.
_LINES = 10
_ORDER, _LINE = 4 + 32 + 12, 20 + 60  # district, order, new order; stock and order line
_PAYMENT = 8 + 8 + 20 + 56 + 0.1 * 450  # warehouse, district, customer, history; data
_DELIVERY = 10 * (4 + 12 + _LINES * 8)  # order, customer; order lines
_WRITTEN = {"payment": _PAYMENT, "delivery": _DELIVERY, "order_status": 0.0, "stock_level": 0.0}
# By whether keying and thinking times were kept.
_WAITS = {
    (True, True): "with the specification's keying and thinking times",
    (True, False): "with the specification's keying times and without its thinking times",
    (False, True): "with the specification's thinking times and without its keying times",
    (False, False): "without the specification's keying and thinking times",
}


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
    rollbacks: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="share of the standard mix's New-Orders that are rolled back; other than 0.01 is not TPC-C: "
            "for stores that cannot roll back",
        ),
    ] = _ROLLBACKS
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
    backends = frozenset({"berkeleydb", "glass", "sqlite", "mysql", "postgresql"})
    counts = True

    def rolls_back(self) -> bool:
        """New-Orders of the standard mix, which are checked beforehand in the other."""
        return self.options.mix == "standard" and self.options.rollbacks > 0

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

    def written(self) -> dict[str, float]:
        """On average: how many lines an order has, and who pays, is drawn."""
        return {"new_order": _ORDER + (_LINES - self.options.rollbacks) * _LINE, **_WRITTEN}

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """The specification's 3.3.2.1 to 3.3.2.4; one that does not hold fails the run.

        A volatile store is looked at by the run itself.
        """
        if endpoint.volatile:
            return Checked()
        checked, _ = core.check(runner, self.job(endpoint, "check", seed))
        return checked

    def count(
        self, runner: Runner, endpoint: Endpoint, seed: int, *, transactions: int, settling: int
    ) -> dict[str, float]:
        """By a job of one client without keying and thinking, whatever the measured run had."""
        given = {"transactions": transactions, "settling": settling}
        workload = {**self.asked(), "keying_time": False, "think_time": False}
        return core.count(runner, core.job(endpoint, workload, phase="run", clients=1, seed=seed, count=given))

    def asked(self) -> dict[str, Any]:
        """As a job has it."""
        given = self.options
        return {
            "kind": "tpcc",
            "warehouses": given.warehouses,
            "mix": given.mix,
            "rollbacks": given.rollbacks,
            "keying_time": given.keying_time,
            "think_time": given.think_time,
            "items": given.items,
            "customers_per_district": given.customers_per_district,
        }

    def notes(self) -> Iterator[str]:
        """What its figures are not."""
        given = self.options
        waits = _WAITS[given.keying_time, given.think_time]
        yield f"TPC-C ran {waits}, unaudited: its figures are no tpmC and stand beside no published one."
        if given.mix == "standard" and given.rollbacks != _ROLLBACKS:
            yield f"TPC-C rolled back {given.rollbacks:.1%} of its New-Orders instead of the specification's 1 %."
        if given.items < _ITEMS or given.customers_per_district < _CUSTOMERS:
            yield (
                f"TPC-C ran on less than the specification's data ({given.items:,} items, "
                f"{given.customers_per_district:,} customers a district): it shows that everything works."
            )
