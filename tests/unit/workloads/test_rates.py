"""The series by which a run's course is told has whole intervals of the measured part alone."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dyno.workloads.base import INTERVAL_COLUMNS, Measured, rates

MS = 1_000_000
FROM = 7_000 * MS


def row(start_ms: float, length_ms: float, count: int, operation: str = "read", warmup: bool = False) -> dict[str, Any]:
    start = FROM + round(start_ms * MS)
    end = start + round(length_ms * MS)
    return {"start_ns": start, "end_ns": end, "warmup": warmup, "operation": operation, "count": count, "errors": 0}


def measured(*rows: dict[str, Any], elapsed: float | None = None, to_ms: float = 1000) -> Measured:
    return Measured(
        complete=True,
        responses={} if elapsed is None else {"elapsed": elapsed},
        measured_from_ns=FROM,
        measured_to_ns=FROM + round(to_ms * MS),
        intervals=pl.DataFrame(list(rows), schema=INTERVAL_COLUMNS),
    )


def test_operations_of_an_interval_are_added_up_and_the_warm_up_is_left_out() -> None:
    found = measured(
        row(-100, 100, 90, warmup=True),
        row(100, 100, 7, "update"),
        row(0, 100, 10),
        row(0, 100, 5, "update"),
        row(100, 100, 0),
        elapsed=0.2,
    )
    assert rates(found) == ([150.0, 70.0], pytest.approx(0.1), 0.2)


def test_the_last_interval_counts_only_if_it_is_whole() -> None:
    found = measured(row(0, 100, 10), row(100, 100, 10), row(200, 60, 6), to_ms=260)
    assert rates(found) == ([100.0, 100.0], pytest.approx(0.1), pytest.approx(0.26))


def test_what_ended_after_the_time_was_over_is_no_part_of_the_series() -> None:
    # Clients that waited for a lock while the others had stopped: it would look like a collapse.
    found = measured(row(0, 100, 10), row(100, 100, 10), row(200, 100, 1), row(300, 40, 1), elapsed=0.2, to_ms=340)
    assert rates(found)[0] == [100.0, 100.0]


@pytest.mark.parametrize("nothing", [measured(), Measured(complete=True, responses={"throughput": 1.0})])
def test_without_intervals_there_is_no_series(nothing: Measured) -> None:
    assert rates(nothing)[0] == []
