"""How many bytes an operation writes, as the workloads say it: what write amplification is set against."""

from __future__ import annotations

from typing import Any

import pytest

from dyno.workloads.ledger import LedgerOptions, LedgerWorkload
from dyno.workloads.null import NullOptions, NullWorkload
from dyno.workloads.tpcc import TpccOptions, TpccWorkload
from dyno.workloads.ycsb import YcsbOptions, YcsbWorkload

GO = {"driver": "go-ycsb", "key_chooser": "ycsb-zipfian"}


def of_ycsb(**options: Any) -> dict[str, float]:
    given = {"mix": "a", "operations": 100, "field_count": 8, "field_length": "50 B", **options}
    return YcsbWorkload(YcsbOptions.model_validate(given)).written()


@pytest.mark.parametrize(
    ("options", "operation", "written"),
    [
        ({}, "read", 0.0),
        ({}, "update", 50.0),
        ({"write_all_fields": True}, "update", 400.0),
        ({"mix": "d"}, "insert", 400.0),
        ({"mix": "e"}, "scan", 0.0),
        ({"mix": "f"}, "read_modify_write", 50.0),
        # go-ycsb counts the update of a read_modify_write as an update too.
        ({"mix": "f", **GO}, "read_modify_write", 0.0),
        ({"mix": "f", **GO}, "update", 50.0),
    ],
)
def test_ycsb_writes_a_row_or_one_field_of_it(options: dict[str, Any], operation: str, written: float) -> None:
    assert of_ycsb(**options)[operation] == written


def test_a_ledger_writes_its_payload() -> None:
    assert LedgerWorkload(LedgerOptions.model_validate({"operations": 1, "payload": "70 B"})).written() == {
        "write": 70.0
    }


def test_a_transaction_of_tpc_c_writes_the_columns_that_it_sets_at_the_size_of_their_types() -> None:
    """Counted again from the tables of the driver: (numbers, large ones, letters) of each statement."""

    def size(numbers: int, large: int = 0, letters: float = 0.0) -> float:
        return 4 * numbers + 8 * large + letters

    line = size(3, 1) + size(7, 1, 24)  # stock: quantity, counts, ytd; order line without its delivery
    new_order = size(1) + size(6, 1) + size(3) + 9.99 * line
    payment = size(0, 1) * 2 + size(1, 2) + size(5, 2, 8 + 4 + 8) + 0.1 * 450
    delivery = 10 * (size(1) + size(1, 1) + 10 * size(0, 1))
    told = TpccWorkload(TpccOptions(warehouses=1, operations=1)).written()
    assert told == pytest.approx(
        {"new_order": new_order, "payment": payment, "delivery": delivery, "order_status": 0.0, "stock_level": 0.0}
    )


def test_a_workload_that_stores_nothing_says_nothing() -> None:
    assert NullWorkload(NullOptions()).written() == {}
