"""Statements that make the tables of TSBS's use case devops, laid out as a study asks: `system.tables`.

Between systems, which attest what they find against them, and workloads, which have them executed: neither knows the
other. Names of columns are those that TSBS's own loaders use, where a store has one (`dyno.model.devops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dyno.model.base import RunError
from dyno.model.devops import MEASUREMENTS, TAGS, TIME, Measurement
from dyno.model.endpoint import Endpoint

FIRST: Final = datetime(2016, 1, 1, tzinfo=UTC)
"""TSBS's data begin then where nothing else is asked for."""
LAST: Final = datetime(2016, 3, 31, tzinfo=UTC)

Design = Mapping[str, Any]


def of(endpoint: Endpoint, table: str, *, first: datetime = FIRST, last: datetime = LAST) -> tuple[str, ...]:
    """What makes a table of that name in an empty store, to be executed in this order. Raises RunError.

    Rows are expected from `first` to before `last`: a store whose partitions have to be made beforehand makes those.
    """
    if endpoint.tables is None:
        raise RunError(f"{endpoint.backend} does not say how its tables are laid out")
    return statements(endpoint.backend, endpoint.tables, table, first=first, last=last)


def statements(
    backend: str, design: Design, table: str, *, first: datetime = FIRST, last: datetime = LAST
) -> tuple[str, ...]:
    """The same for a backend and a design of its own. Raises RunError where there is no such table."""
    if (measurement := MEASUREMENTS.get(table)) is None:
        raise RunError(f"there is no table {table} in devops; there are {', '.join(MEASUREMENTS)}")
    return tuple(_MAKERS[backend](design, measurement, first, last))


def partitions(by: str, first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The days or months, in UTC, from the one with `first` to the one before `last`: begin and end of each."""
    begin = first.replace(hour=0, minute=0, second=0, microsecond=0)
    if by == "month":
        begin = begin.replace(day=1)
    while begin < last:
        end = begin + timedelta(days=1)
        if by == "month":
            end = (begin + timedelta(days=32)).replace(day=1)
        yield begin, end
        begin = end


def _questdb(design: Design, table: Measurement, _first: datetime, _last: datetime) -> Iterator[str]:
    time = TIME["questdb"]
    indexed = design["index"]
    columns = [f"{tag} SYMBOL{' INDEX' if tag in indexed else ''}" for tag in (*TAGS, *table.tags)]
    columns += [f"{name} {'DOUBLE' if name in table.real else 'LONG'}" for name in table.fields]
    statement = f"CREATE TABLE {table.name} ({', '.join(columns)}, {time} TIMESTAMP) TIMESTAMP({time})"
    statement += f" PARTITION BY {design['partition_by'].upper()}"
    if design["partition_by"] != "none":
        statement += " WAL" if design["wal"] else " BYPASS WAL"
    if design["deduplicate"]:
        statement += f" DEDUP UPSERT KEYS({time}, hostname)"
    yield statement


def _cratedb(design: Design, table: Measurement, _first: datetime, _last: datetime) -> Iterator[str]:
    # As TSBS's loader makes them: the tags in an object, and all fields as DOUBLE.
    time, by = TIME["cratedb"], design["partition_by"]
    tags = ", ".join(f"{tag} TEXT" for tag in (*TAGS, *table.tags))
    columns = [f"tags OBJECT(STRICT) AS ({tags})", f"{time} TIMESTAMP WITH TIME ZONE"]
    columns += [f"{name} DOUBLE PRECISION" for name in table.fields]
    key = [time, "tags['hostname']"]
    if by != "none":
        columns.append(f"part TIMESTAMP WITH TIME ZONE GENERATED ALWAYS AS date_trunc('{by}', {time})")
        key.append("part")
    if design["deduplicate"]:
        columns.append(f"PRIMARY KEY ({', '.join(key)})")
    statement = f"CREATE TABLE {table.name} ({', '.join(columns)}) CLUSTERED INTO {design['shards']} SHARDS"
    statement += " PARTITIONED BY (part)" if by != "none" else ""
    yield f"{statement} WITH (number_of_replicas = {design['replicas']})"


def _duckdb(design: Design, table: Measurement, _first: datetime, _last: datetime) -> Iterator[str]:
    time = TIME["duckdb"]
    # A column alone has no aliases there, and TIMESTAMPTZ would need an extension to be cut to days.
    columns = [f"{time} TIMESTAMP NOT NULL", *(f"{tag} VARCHAR" for tag in (*TAGS, *table.tags))]
    columns += [f"{name} {'DOUBLE' if name in table.real else 'BIGINT'}" for name in table.fields]
    if design["deduplicate"]:
        columns.append(f"PRIMARY KEY ({time}, hostname)")
    yield f"CREATE TABLE {table.name} ({', '.join(columns)})"
    yield from (f"CREATE INDEX {table.name}_{tag} ON {table.name} ({tag})" for tag in design["index"])


def _postgresql(design: Design, table: Measurement, first: datetime, last: datetime) -> Iterator[str]:
    time, by = TIME["postgresql"], design["partition_by"]
    columns = [f"{time} TIMESTAMPTZ NOT NULL", *(f"{tag} TEXT" for tag in (*TAGS, *table.tags))]
    columns += [f"{name} {'DOUBLE PRECISION' if name in table.real else 'BIGINT'}" for name in table.fields]
    if design["deduplicate"]:
        columns.append(f"PRIMARY KEY ({time}, hostname)")
    statement = f"CREATE TABLE {table.name} ({', '.join(columns)})"
    if design["hypertable"]:
        yield statement
        chunk = "1 month" if by == "month" else "1 day"
        yield f"SELECT create_hypertable('{table.name}', '{time}', chunk_time_interval => INTERVAL '{chunk}')"
    elif by == "none":
        yield statement
    else:
        yield f"{statement} PARTITION BY RANGE ({time})"
        for begin, end in partitions(by, first, last):
            name = f"{table.name}_{begin:%Y%m%d}" if by == "day" else f"{table.name}_{begin:%Y%m}"
            yield (
                f"CREATE TABLE {name} PARTITION OF {table.name} "
                f"FOR VALUES FROM ('{begin:%Y-%m-%d}Z') TO ('{end:%Y-%m-%d}Z')"
            )
    # By itself, as a key whose first column is the time does not help to find a host.
    yield from (f"CREATE INDEX {table.name}_{tag} ON {table.name} ({tag}, {time})" for tag in design["index"])


_MAKERS: Final[Mapping[str, Callable[[Design, Measurement, datetime, datetime], Iterator[str]]]] = {
    "questdb": _questdb,
    "cratedb": _cratedb,
    "duckdb": _duckdb,
    "postgresql": _postgresql,
}
