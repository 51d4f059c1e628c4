"""The data that queries are asked of: tables as TSBS's use case devops has them, made here.

They have the columns, tags and kinds of values of TSBS (walks within bounds, counters that grow), and other values.
They are the same wherever they are made, and need no program of others; their answers are no answers on TSBS's data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import escape
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from dyno import ddl, sql
from dyno.model.base import Frozen, KeyProblem, RunError
from dyno.model.devops import MEASUREMENTS, TAGS, TIME, Measurement
from dyno.model.endpoint import Endpoint
from dyno.model.units import PositiveDuration
from dyno.workloads.query_parameters import NS, Span

_ROWS_OF_STATEMENT = 500
_ROWS_OF_REQUEST = 2000
_BYTES_OF_ROW = 350
_MOST_ROWS = 200_000_000


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time: write it as 2016-01-01T00:00:00Z") from None
    if moment.microsecond:
        raise ValueError(f"{text!r}: the data begin and end at a whole second")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return f"{aware.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


Instant = Annotated[str, AfterValidator(_moment)]


class DataOptions(Frozen):
    """How many hosts tell of themselves, when, and how often: nine rows each time."""

    source: Annotated[
        Literal["dyno", "tsbs"],
        Field(description="whose rows: those that dyno makes itself, or TSBS's own, as workload tsbs loads them"),
    ] = "dyno"
    hosts: Annotated[int, Field(ge=1, le=100_000, description="TSBS calls it scale")] = 2
    interval: Annotated[PositiveDuration, Field(ge=1, description="between two rows of a host; whole seconds")] = 600.0
    start: Annotated[Instant, Field(description="of the first rows; UTC where no zone is told")] = (
        "2016-01-01T00:00:00Z"
    )
    end: Annotated[Instant, Field(description="before which the last rows are")] = "2016-03-01T00:00:00Z"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, description="of the values")] = 666

    @model_validator(mode="after")
    def _is_some(self) -> DataOptions:
        if not float(self.interval).is_integer():
            raise KeyProblem("interval", "should be whole seconds")
        if self.span().end_ns - self.span().start_ns < self.span().step_ns:
            raise KeyProblem("end", f"{self.end} leaves no room for a row after start, {self.start}")
        if self.rows() > _MOST_ROWS:
            raise KeyProblem("hosts", f"that is {self.rows():,} rows; {_MOST_ROWS:,} are the most")
        return self

    def span(self) -> Span:
        """As parameters of queries see them."""
        start, end = (int(datetime.fromisoformat(each).timestamp()) * NS for each in (self.start, self.end))
        return Span([f"host_{number}" for number in range(self.hosts)], start, end, round(self.interval * NS))

    def times(self) -> int:
        """How many rows a host has in each table."""
        span = self.span()
        return -(-(span.end_ns - span.start_ns) // span.step_ns)

    def rows(self) -> int:
        """Of all tables together."""
        return self.times() * self.hosts * len(MEASUREMENTS)

    def bytes(self) -> int:
        """About how much room they take."""
        return self.rows() * _BYTES_OF_ROW


# By field: from where to where its walk goes, and how far a step; of a counter how much it grows at the most.
_PERCENT: Final = (0.0, 100.0, 1.0)
_WALKS: Final[dict[str, tuple[float, float, float]]] = {
    "active": (0.0, 100.0, 3.0),
    "reading": (0.0, 100.0, 3.0),
    "waiting": (0.0, 100.0, 3.0),
    "writing": (0.0, 100.0, 3.0),
    "connected_clients": (0.0, 10_000.0, 50.0),
    "numbackends": (0.0, 1000.0, 5.0),
    "pubsub_channels": (0.0, 100.0, 2.0),
    "pubsub_patterns": (0.0, 100.0, 2.0),
    "latest_fork_usec": (0.0, 1000.0, 10.0),
    "mem_fragmentation_ratio": (0.0, 100.0, 2.0),
    "repl_backlog_active": (0.0, 1.0, 0.3),
    "instantaneous_ops_per_sec": (0.0, 1000.0, 5.0),
    "instantaneous_input_kbps": (0.0, 1000.0, 5.0),
    "instantaneous_output_kbps": (0.0, 1000.0, 5.0),
}
_GIB = 2**30
_REGIONS = ("us-east-1", "us-west-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-1", "sa-east-1")
_CHOICES: Final[dict[str, Sequence[str]]] = {
    "os": ("Ubuntu15.10", "Ubuntu16.10", "Ubuntu16.04LTS"),
    "arch": ("x64", "x86"),
    "team": ("SF", "NYC", "LON", "CHI"),
    "service_environment": ("production", "staging", "test"),
    "fstype": ("ext3", "ext4", "btrfs"),
}


def tables(options: DataOptions) -> Iterator[tuple[Measurement, pl.DataFrame]]:
    """Each table with its rows by time and host: the time in ns, tags, fields. Always the same of the same options."""
    for measurement in MEASUREMENTS.values():
        yield measurement, table(options, measurement)


def table(options: DataOptions, measurement: Measurement) -> pl.DataFrame:
    """One table."""
    span, times = options.span(), options.times()
    columns: dict[str, Any] = {
        "time": np.repeat(span.start_ns + np.arange(times, dtype=np.int64) * span.step_ns, options.hosts)
    }
    tags = [_tags(options, number, measurement) for number in range(options.hosts)]
    for name in (*TAGS, *measurement.tags):
        columns[name] = pl.Series([each[name] for each in tags] * times, dtype=pl.String)
    walks = [_values(options, number, measurement, times) for number in range(options.hosts)]
    for name in measurement.fields:
        together = np.stack([each[name] for each in walks], axis=1).reshape(-1)
        columns[name] = together if name in measurement.real else np.round(together).astype(np.int64)
    return pl.DataFrame(columns)


def _chance(options: DataOptions, *of: Any) -> np.random.Generator:
    text = "/".join(map(str, (options.seed, *of)))
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")))


def _tags(options: DataOptions, host: int, measurement: Measurement) -> dict[str, str]:
    chance = _chance(options, "tags", host)
    region = _REGIONS[int(chance.integers(len(_REGIONS)))]
    found = {
        "hostname": f"host_{host}",
        "region": region,
        "datacenter": f"{region}{'abc'[int(chance.integers(3))]}",
        "rack": str(chance.integers(100)),
        "service": str(chance.integers(20)),
        "service_version": str(chance.integers(2)),
        "serial": f"{chance.integers(1000):03d}-{chance.integers(1000):03d}-{chance.integers(1000):03d}",
        "path": f"/dev/sda{chance.integers(10)}",
        "interface": f"eth{chance.integers(4)}",
        "port": str(1024 + chance.integers(20_000)),
        "server": f"{measurement.name}_{chance.integers(100_000)}",
    }
    for name, choices in _CHOICES.items():
        found[name] = choices[int(chance.integers(len(choices)))]
    return found


def _values(options: DataOptions, host: int, measurement: Measurement, times: int) -> dict[str, NDArray[np.float64]]:
    chance = _chance(options, measurement.name, host)
    if measurement.name == "mem":
        return _memory(chance, times)
    if measurement.name == "disk":
        return _disk(chance, times)
    found = {}
    for name in measurement.fields:
        if measurement.name == "cpu" or name in _WALKS:
            found[name] = _walk(chance, times, *_WALKS.get(name, _PERCENT))
        elif name in ("boot_time", "uptime_in_seconds"):
            start = options.span().start_ns // NS
            seconds = np.arange(times, dtype=np.float64) * options.interval
            found[name] = np.full(times, float(start)) if name == "boot_time" else seconds
        elif name.startswith("used_memory"):
            found[name] = _walk(chance, times, 0.0, 16.0 * _GIB, 16.0 * _GIB / 64)
        else:
            found[name] = np.cumsum(np.abs(chance.normal(50.0, 15.0, times)))
    return found


def _memory(chance: np.random.Generator, times: int) -> dict[str, NDArray[np.float64]]:
    total = float(chance.choice((8, 12, 16))) * _GIB
    used, cached, buffered = (np.round(_walk(chance, times, 0.0, total, total / 64)) for _ in range(3))
    return {
        "total": np.full(times, total),
        "available": total - used,
        "used": used,
        "free": total - used,
        "cached": cached,
        "buffered": buffered,
        "used_percent": 100.0 * used / total,
        "available_percent": 100.0 * (total - used) / total,
        "buffered_percent": 100.0 * (total - buffered) / total,
    }


def _disk(chance: np.random.Generator, times: int) -> dict[str, NDArray[np.float64]]:
    total, inodes = 1024.0 * _GIB, 268_435_456.0
    used = np.round(_walk(chance, times, 0.0, total, total / 1000))
    return {
        "total": np.full(times, total),
        "free": total - used,
        "used": used,
        "used_percent": 100.0 * used / total,
        "inodes_total": np.full(times, inodes),
        "inodes_free": np.round(inodes * (total - used) / total),
        "inodes_used": np.round(inodes * used / total),
    }


def _walk(chance: np.random.Generator, times: int, least: float, most: float, step: float) -> NDArray[np.float64]:
    """A random walk from anywhere between two walls, by which it is thrown back."""
    width = most - least
    steps = chance.normal(0.0, step, times)
    steps[0] = chance.uniform(0.0, width)
    folded = np.mod(np.cumsum(steps), 2 * width)
    return least + np.where(folded > width, 2 * width - folded, folded)


# Loading: through the store's own protocol, as a program of its own does it.


def load(endpoint: Endpoint, options: DataOptions, scratch: Path, *, limit: float) -> None:
    """Make the tables, fill them, and wait until every row can be read. Raises RunError."""
    first, last = (datetime.fromisoformat(each) for each in (options.start, options.end))
    with sql.connect(endpoint, limit=limit) as connection:
        for measurement, rows in tables(options):
            made = _sqlite if endpoint.backend == "sqlite" else ddl.of
            for statement in made(endpoint, measurement.name, first=first, last=last):
                connection.rows(statement)
            _LOADERS[endpoint.backend](_Target(endpoint, connection, measurement, scratch, limit), rows)
    see(endpoint, options, limit=limit)


def see(endpoint: Endpoint, options: DataOptions, *, limit: float) -> None:
    """Wait until every row can be read, and have a store that has to be vacuumed do that. Raises RunError."""
    rows_of_table = options.times() * options.hosts
    for name in MEASUREMENTS:
        there = sql.visible(endpoint, name, rows_of_table, limit=limit)
        if there != rows_of_table:
            raise RunError(f"{name} has {there:,} rows that can be read, and {rows_of_table:,} were loaded")
        if endpoint.backend == "postgresql":
            # By autovacuum it would come within a minute, in the middle of what is measured or not.
            sql.ask(endpoint, f"VACUUM (ANALYZE) {name}", limit=limit)


@dataclass(frozen=True)
class _Target:
    """A table to be filled, and by what."""

    endpoint: Endpoint
    connection: sql.Connection
    measurement: Measurement
    scratch: Path
    limit: float


def _sqlite(_endpoint: Endpoint, table: str, **_: Any) -> tuple[str, ...]:
    """SQLite has no types for times, and no design of tables: whole nanoseconds, with indexes as TSBS would have."""
    measurement = MEASUREMENTS[table]
    columns = ["ts INTEGER NOT NULL", *(f"{tag} TEXT" for tag in (*TAGS, *measurement.tags))]
    columns += [f"{name} {'REAL' if name in measurement.real else 'INTEGER'}" for name in measurement.fields]
    return (
        f"CREATE TABLE {table} ({', '.join(columns)})",
        f"CREATE INDEX {table}_hostname ON {table} (hostname, ts)",
        f"CREATE INDEX {table}_ts ON {table} (ts)",
    )


def _by_statements(target: _Target, rows: pl.DataFrame) -> None:
    """Many rows a statement."""
    names = ", ".join(["ts", *rows.columns[1:]])
    for part in rows.iter_slices(_ROWS_OF_STATEMENT):
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in part.iter_rows())
        target.connection.rows(f"INSERT INTO {target.measurement.name} ({names}) VALUES {values}")


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value)


def _by_bulk(target: _Target, rows: pl.DataFrame) -> None:
    """CrateDB's bulk arguments: the tags are in an object, as TSBS's loader has them."""
    measurement = target.measurement
    names = ("tags", TIME["cratedb"], *measurement.fields)
    statement = f"INSERT INTO {measurement.name} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
    tags = len(TAGS) + len(measurement.tags)
    for part in rows.iter_slices(_ROWS_OF_REQUEST):
        sent = [
            [dict(zip(part.columns[1 : 1 + tags], row[1 : 1 + tags], strict=True)), row[0] // 10**6, *row[1 + tags :]]
            for row in part.iter_rows()
        ]
        target.connection.many(statement, sent)


def _by_copy(target: _Target, rows: pl.DataFrame) -> None:
    """PostgreSQL's COPY."""
    text = rows.with_columns(pl.from_epoch("time", time_unit="ns").dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ"))
    target.connection.copy(
        f"COPY {target.measurement.name} FROM STDIN (FORMAT csv)", text.write_csv(include_header=False)
    )


def _from_parquet(target: _Target, rows: pl.DataFrame) -> None:
    """From a file, which DuckDB reads by itself."""
    path = target.scratch / f"{target.measurement.name}.parquet"
    rows.with_columns(pl.from_epoch("time", time_unit="ns").dt.cast_time_unit("us")).write_parquet(path)
    read = escape(str(path)).replace("'", "''")
    target.connection.rows(f"INSERT INTO {target.measurement.name} SELECT * FROM read_parquet('{read}')")
    path.unlink()


def _by_lines(target: _Target, rows: pl.DataFrame) -> None:
    """InfluxDB's line protocol over HTTP, which QuestDB answers when the rows are in its log."""
    measurement, settings = target.measurement, target.endpoint.settings
    http = HTTPConnection(settings["host"], settings["port"], timeout=target.limit)
    tags = len(TAGS) + len(measurement.tags)
    names = rows.columns
    try:
        for part in rows.iter_slices(_ROWS_OF_REQUEST):
            body = "".join(f"{_line(measurement, names, row, tags)}\n" for row in part.iter_rows())
            http.request("POST", "/write?precision=n", body.encode())
            answer = http.getresponse()
            said = answer.read().decode(errors="replace")
            if answer.status != 204:
                raise RunError(f"{measurement.name} was not loaded: HTTP status {answer.status}: {said[:300]}")
    except (HTTPException, OSError) as error:
        raise RunError(f"{measurement.name} was not loaded: {error or type(error).__name__}") from error
    finally:
        http.close()


def _line(measurement: Measurement, names: Sequence[str], row: Sequence[Any], tags: int) -> str:
    of_tags = ",".join(f"{name}={value}" for name, value in zip(names[1 : 1 + tags], row[1 : 1 + tags], strict=True))
    fields = ",".join(
        f"{name}={value!r}{'' if name in measurement.real else 'i'}"
        for name, value in zip(names[1 + tags :], row[1 + tags :], strict=True)
    )
    return f"{measurement.name},{of_tags} {fields} {row[0]}"


_LOADERS: Final[Mapping[str, Callable[[_Target, pl.DataFrame], None]]] = {
    "cratedb": _by_bulk,
    "duckdb": _from_parquet,
    "postgresql": _by_copy,
    "questdb": _by_lines,
    "sqlite": _by_statements,
}
