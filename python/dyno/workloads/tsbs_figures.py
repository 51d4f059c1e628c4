"""What a load came to, by workload `tsbs`: when rows can be read, figures, and rows by what became of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from dyno import sql
from dyno.model.base import RunError
from dyno.model.devops import TIME
from dyno.model.endpoint import Endpoint
from dyno.workloads import core, tsbs_output
from dyno.workloads.base import INTERVAL_COLUMNS, Measured, Runner

INGEST = "dyno-core ingest"
_AWAY_S = 5.0
"""For so long a node is waited for before another one is asked."""


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
    rows = pl.read_csv(path, glob=False).select("start_ns", pl.col("sent").alias("count"))
    counted = (
        measured.intervals.drop("count")
        .join(rows, on="start_ns", how="left")
        .with_columns(pl.col("count").fill_null(0))
    )
    return replace(measured, intervals=counted.select(list(INTERVAL_COLUMNS)).cast(INTERVAL_COLUMNS))  # type: ignore[arg-type]


def wait_until_visible(endpoint: Endpoint, result: dict[str, Any], known: dict[str, Any], limit: float) -> float:
    """How long it took from the first batch until every row could be read, in s. Raises RunError.

    Rows in doubt are not waited for: nobody knows whether they came.
    """
    once = bool((endpoint.tables or {}).get("deduplicate"))
    deadline = time.monotonic() + limit
    for table, counts in result["ingest"]["tables"].items():
        expected = known["tables"][table]["rows"] if once else counts["sent"]
        visible(endpoint, table, expected - counts["in_doubt"], max(deadline - time.monotonic(), 0.01))
    return (time.time_ns() - int(result["measured_from_ns"])) / 1e9


def answering(endpoint: Endpoint) -> Endpoint:
    """The first of a store's ways in that takes a connection, since a node may be away; its own where none does."""
    ways = [endpoint, *(replace(endpoint, settings=dict(way)) for way in endpoint.others.values() if "port" in way)]
    for way in ways if len(ways) > 1 else ():
        with suppress(sql.SqlError), sql.connect(way, limit=_AWAY_S):
            return way
    return endpoint


def visible(endpoint: Endpoint, table: str, rows: int, limit: float) -> int:
    """Wait until so many rows can be read; how many there are then. Raises SqlError."""
    return sql.visible(answering(endpoint), table, rows, limit=max(limit, 0.01))


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


@dataclass(frozen=True)
class Came:
    """What became of rows that came while something else was measured; the latencies are of their batches."""

    from_ns: int
    to_ns: int
    responses: dict[str, float]
    withheld: dict[str, str]
    status: dict[str, float]


def came(folder: Path, complaint: str) -> Came:
    """Of a loader that was told to end once the other was done. Raises RunError where it failed."""
    result = core.read(folder / "result.json", 0, complaint, INGEST)
    if result["outcome"] == "failed":
        raise RunError(f"{INGEST}: {result['error']['kind']}: {result['error']['message']}")
    told, opened, measured = result["ingest"], result["open"], core.told(result, {}, folder)
    kept = {name: value for name, value in measured.responses.items() if name.startswith(("latency_", "lag_"))}
    counts = {name: told[name] for name in ("sent", "acknowledged", "in_doubt", "resent")}
    counts |= {"batches_unsent": opened["unsent"], "batches_due": opened["due"]}
    return Came(
        from_ns=result["measured_from_ns"],
        to_ns=result["ended_ns"],
        # Until it was told to end: what was in hand then was due before, however long it took.
        responses={"ingest.throughput": told["rows_per_s"]} | {f"ingest.{name}": value for name, value in kept.items()},
        withheld={f"ingest.{name}": why for name, why in measured.withheld.items() if name.startswith("latency_")},
        status={f"ingest.{name}": float(value) for name, value in counts.items()},
    )


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


def _host(endpoint: Endpoint) -> str:
    return "tags['hostname']" if endpoint.backend == "cratedb" else "hostname"


def different(endpoint: Endpoint, table: str, limit: float) -> int:
    """How many rows can be read of which no two are of one host and time."""
    time, host = TIME[endpoint.backend], _host(endpoint)
    with sql.connect(answering(endpoint), limit=limit) as connection:
        found = connection.value(
            f"SELECT count(*) FROM (SELECT {host} AS host, {time} AS moment FROM {table} GROUP BY {host}, {time}) AS t"
        )
    return int(found)


Doubtful = dict[str, set[tuple[str, int]]]
"""By table the rows that are in doubt, each as its host and its time in ms: who sent them had no answer."""


def doubtful_of(folder: Path) -> Doubtful:
    """As dyno's loader named them."""
    found: Doubtful = {}
    for line in (folder / "in-doubt.jsonl").read_text().splitlines():
        table, host, time_ns = json.loads(line)
        found.setdefault(table, set()).add((host, time_ns // 10**6))
    return found


_MS = {
    "questdb": "cast({} AS long) / 1000",
    "cratedb": "{}::bigint",
    "postgresql": "round(extract(epoch FROM {}) * 1000)::bigint",
    "duckdb": "epoch_ms({})",
}
"""A time as ms since 1970."""


def landed(endpoint: Endpoint, table: str, rows: set[tuple[str, int]], limit: float) -> int:
    """How many of some rows can be read."""
    moments = [moment for _, moment in rows]
    host, ms = _host(endpoint), _MS[endpoint.backend].format(TIME[endpoint.backend])
    with sql.connect(answering(endpoint), limit=limit) as connection:
        found = connection.rows(
            f"SELECT {host} AS host, {ms} AS moment FROM {table} WHERE {ms} BETWEEN {min(moments)} AND {max(moments)}"
        )
    return len(rows & {(str(host), int(moment)) for host, moment in found})


def audit(
    result: dict[str, Any],
    before: dict[str, Any] | None,
    doubtful: Doubtful,
    present_of: Callable[[str], int],
    different_of: Callable[[str], int],
    landed_of: Callable[[str, set[tuple[str, int]]], int],
) -> dict[str, float]:
    """Rows by what became of them, in the terms of a ledger; `before` are those that were there when it began, None
    where there were none.

    Where a row may have come twice it counts once: else one that is there twice would stand for one that is lost. Rows
    in doubt are looked for one by one: else one that arrived would stand for an acknowledged one that is lost.
    """
    told = result["ingest"]
    sums = dict.fromkeys(("acknowledged", "present", "lost", "phantom", "duplicated"), 0)
    absent = 0
    for table, counts in told["tables"].items():
        earlier = before["tables"][table]["rows"] if before is not None else 0
        present = present_of(table) - earlier
        once = present
        if told["duplicated"] or counts["resent"]:
            once = different_of(table) - earlier
        rows = doubtful.get(table, set())
        arrived = landed_of(table, rows) if rows else 0
        acknowledged = counts["different"] - len(rows) if told["acknowledges"] else 0
        sums["acknowledged"] += acknowledged
        sums["present"] += present
        sums["lost"] += max(acknowledged - (once - arrived), 0)
        sums["duplicated"] += max(present - counts["sent"], 0)
        sums["phantom"] += arrived
        absent += max(counts["different"] - once, 0)
    found = {f"ledger.{name}": float(value) for name, value in sums.items()}
    return {**found, "tsbs.sent_and_absent": float(absent)}
