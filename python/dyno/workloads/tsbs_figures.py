"""What a load came to, by workload `tsbs`: when rows can be read, figures, and rows by what became of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dyno import sql
from dyno.model.devops import TIME
from dyno.model.endpoint import Endpoint
from dyno.workloads import core, tsbs_output
from dyno.workloads.base import INTERVAL_COLUMNS, Measured, Runner

_NO_TABLE = "table does not exist"  # as QuestDB says it, whose loader of TSBS ends before its rows were looked at
_BETWEEN_LOOKS_S = 0.01


def taken(runner: Runner, result: dict[str, Any], out: Path) -> Measured:
    """What dyno's loader measured, where it did what it was asked. Raises RunError or InvalidRun."""
    # Its job is not one of `drive`'s: it is kept among the logs.
    first = core.keep(runner, [out])
    measured = _with_rows(core.told(result, {}, out), out / "rows.csv")
    return core.accept(runner, result, measured, max_errors=1.0, first=first)


def _with_rows(measured: Measured, path: Path) -> Measured:
    """The intervals count rows, as throughput does; latencies stay those of batches."""
    if measured.intervals is None or not path.exists():
        return measured
    rows = pl.read_csv(path).select("start_ns", pl.col("sent").alias("count"))
    counted = (
        measured.intervals.drop("count")
        .join(rows, on="start_ns", how="left")
        .with_columns(pl.col("count").fill_null(0))
    )
    return replace(measured, intervals=counted.select(list(INTERVAL_COLUMNS)).cast(INTERVAL_COLUMNS))  # type: ignore[arg-type]


def wait_until_visible(endpoint: Endpoint, result: dict[str, Any], known: dict[str, Any], limit: float) -> float:
    """How long it took from the first batch until every row could be read, in s. Raises RunError."""
    once = bool((endpoint.tables or {}).get("deduplicate"))
    deadline = time.monotonic() + limit
    for table, counts in result["ingest"]["tables"].items():
        expected = known["tables"][table]["rows"] if once else counts["sent"]
        visible(endpoint, table, expected, max(deadline - time.monotonic(), 0.01))
    return (time.time_ns() - int(result["measured_from_ns"])) / 1e9


def visible(endpoint: Endpoint, table: str, rows: int, limit: float) -> int:
    """Wait until so many rows can be read, also where the table is still to be made of the first of them."""
    deadline = time.monotonic() + limit
    pause = threading.Event()
    while True:
        left = deadline - time.monotonic()
        try:
            return sql.visible(endpoint, table, rows, limit=max(left, 0.01))
        except sql.SqlError as error:
            if _NO_TABLE not in str(error) or left <= 0:
                raise
            pause.wait(_BETWEEN_LOOKS_S)


def loaded(measured: Measured, result: dict[str, Any], visible_s: float, notes: Iterator[str]) -> Measured:
    """The figures of a load by dyno's loader, all of whose rows could be read after so many seconds."""
    told = result["ingest"]
    cpu = result["cpu"]["user_s"] + result["cpu"]["system_s"]
    kept = {
        name: value
        for name, value in measured.responses.items()
        if name.partition("_")[0] in ("latency", "service", "lag", "unsent", "share")
    }
    counts = {f"tsbs.{name}": float(told[name]) for name in ("sent", "acknowledged", "in_doubt", "resent")}
    counts |= {f"tsbs.{name}": float(told[name]) for name in ("delayed", "duplicated", "bytes")}
    return replace(
        measured,
        responses={**kept, **responses(told["sent"], told["metrics"], told["sent_s"], visible_s, cpu)},
        measured_to_ns=result["measured_from_ns"] + round(visible_s * 1e9),
        status={**measured.status, **counts},
        notes=(*notes, *measured.notes),
    )


def responses(rows: int, metrics: float, loader_s: float, visible_s: float, cpu_s: float) -> dict[str, float]:
    """By whoever loaded: what a load has; without CPU time where it is 0."""
    found = {
        "throughput": rows / visible_s,
        "elapsed": visible_s,
        "loader_time": loader_s,
        "loader_throughput": rows / loader_s,
        "metrics": metrics / visible_s,
    }
    return {**found, "cpu_per_op": cpu_s * 1e6 / rows} if cpu_s else found


def reported(said: tsbs_output.Loaded, began_ns: int) -> pl.DataFrame:
    """Rows by interval, as its loader reported them: by whole seconds, and to seven digits."""
    rows, before, since = [], 0, began_ns
    for at_s, total in said.reports:
        until = at_s * 10**9
        if until > since:
            rows.append(
                {
                    "start_ns": since,
                    "end_ns": until,
                    "warmup": False,
                    "operation": "batch",
                    "count": max(total - before, 0),
                    "errors": 0,
                }
            )
            before, since = total, until
    return pl.DataFrame(rows, schema=INTERVAL_COLUMNS)


def csv_columns(known: dict[str, Any], table: str) -> list[str]:
    """As they stand in the files of a table."""
    of = known["tables"][table]
    return [TIME["duckdb"], *of["tags"], *(name for name, _ in of["fields"])]


def there(endpoint: Endpoint, table: str, limit: float) -> int:
    """How many rows can be read once all that was acknowledged was applied."""
    return visible(endpoint, table, 0, limit)


def audit(result: dict[str, Any], before: dict[str, Any] | None, present_of: Callable[[str], int]) -> dict[str, float]:
    """Rows by what became of them, in the terms of a ledger; `before` are those that were there when it began.

    Tables that drop duplicates have fewer rows than were acknowledged: where rows came twice, each counts once.
    """
    told = result["ingest"]
    sums = dict.fromkeys(("acknowledged", "present", "lost", "phantom", "duplicated", "altered", "foreign"), 0)
    absent = 0
    for table, counts in told["tables"].items():
        earlier = before["tables"][table]["rows"] if before else 0
        present = present_of(table) - earlier
        acknowledged = counts["acknowledged"]
        if told["duplicated"]:
            acknowledged = min(acknowledged, counts["rows"])
        sums["acknowledged"] += acknowledged
        sums["present"] += present
        sums["lost"] += max(acknowledged - present, 0)
        sums["duplicated"] += max(present - counts["sent"], 0)
        sums["phantom"] += max(min(present, counts["sent"]) - counts["acknowledged"], 0) if told["acknowledges"] else 0
        absent += max(counts["sent"] - present, 0)
    found = {f"ledger.{name}": float(value) for name, value in sums.items()}
    return {**found, "tsbs.sent_and_absent": float(absent)}
