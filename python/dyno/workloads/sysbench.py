"""sysbench's OLTP tests, carried out by sysbench itself: to set dyno's figures beside those that others publish.

What its output means was seen at sysbench 1.0.20. Faults of its that are guarded against: a default limit of 10 s that
cuts a run of many events short without a word; errors that it ignores and counts beside the transactions; events that
were asked for and never done.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import Field, field_validator, model_validator

from dyno import sql
from dyno.hosts import LocalHost
from dyno.model.base import Frozen, InvalidRun, RunError
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.units import PositiveDuration, Share, counted
from dyno.workloads import foreign
from dyno.workloads.base import INTERVAL_COLUMNS, Measured, Runner, Workload

_TOOL = foreign.Tool("sysbench", "^FATAL", lines=2)  # that it failed, and why
_BYTES_OF_ROW = 400  # 184 bytes of columns, an index on one of them, half-full pages
_PERCENTILE = 99
_LEAST_REACHED = 0.99
_MOST_PER_S = 1e9
_ONLY_READ = ("oltp_read_only", "oltp_point_select")
_BUCKETS: tuple[str, ...] = (
    "sysbench counts latencies in buckets 1.8% wide: its quantiles are no finer, and a difference smaller than that is "
    "none.",
)
_NO_WAY_OF_READS = "The system has no way in for reading alone: what was read was read where writes go."
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


class SysbenchOptions(Frozen):
    """sysbench's own parameters under their own names."""

    test: Annotated[
        Literal["oltp_read_only", "oltp_write_only", "oltp_read_write", "oltp_point_select"],
        Field(description="which of its tests"),
    ]
    tables: Annotated[int, Field(ge=1, le=10_000, description="of the same shape")] = 1
    table_size: Annotated[int, Field(ge=1, le=10**9, description="rows of each")] = 10_000
    threads: Annotated[int, Field(ge=1, le=4096, description="clients, each with a connection of its own")] = 1
    events: Annotated[int | None, Field(ge=1, le=10**9, description="transactions, over all threads")] = None
    duration: Annotated[PositiveDuration | None, Field(description="instead of events; whole seconds")] = None
    rate: Annotated[
        int | None, Field(ge=1, le=10**6, description="transactions a second, in an open loop with Poisson arrivals")
    ] = None
    rand_type: Annotated[
        Literal["uniform", "gaussian", "special", "pareto"],
        Field(
            description="how rows are chosen: uniform, each as often as another; special, sysbench's own, where three "
            "of four go to a hundredth of them"
        ),
    ] = "special"
    way: Annotated[
        Literal["first", "read_only"],
        Field(
            description="which way into a cluster it takes: first, where writes go; read_only, where nodes answer that "
            "are only read, or first where the system has no such way"
        ),
    ] = "first"
    interval: Annotated[PositiveDuration, Field(ge=1, le=3600, description="of the time series; whole seconds")] = 1.0
    max_errors: Annotated[
        Share, Field(le=1, description="share of transactions that may meet an error it ignores, such as a deadlock")
    ] = 0.01

    @field_validator("duration", "interval")
    @classmethod
    def _is_whole_seconds(cls, value: float | None) -> float | None:
        if value is not None and not float(value).is_integer():
            raise ValueError("sysbench takes whole seconds")
        return value

    @model_validator(mode="after")
    def _has_one_end(self) -> SysbenchOptions:
        if (self.events is None) == (self.duration is None):
            raise ValueError("give either events or duration")
        return self

    @model_validator(mode="after")
    def _only_reads_take_the_way_of_reads(self) -> SysbenchOptions:
        if self.way == READ_ONLY and self.test not in _ONLY_READ:
            raise ValueError(f"{self.test} writes, and way: {READ_ONLY} leads to nodes that are only read")
        return self


class SysbenchWorkload(Workload[SysbenchOptions]):
    """`sysbench TEST prepare`, then `sysbench TEST run` with everything it can be told."""

    kind = "sysbench"
    Options = SysbenchOptions
    backends = frozenset({"mysql", "postgresql"})

    def needs(self) -> Sequence[str]:
        """Itself."""
        return ("sysbench",)

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """Debian's package, or any other on the PATH."""
        said = host.run([_program(), "--version"], limit=limit, log=logs / "sysbench-version")
        return {"sysbench": said.removeprefix("sysbench").strip()}

    def rate(self) -> float | None:
        """As asked for."""
        return self.options.rate

    def clients(self) -> int:
        """One a thread."""
        return self.options.threads

    def data_key(self) -> dict[str, Any]:
        """All of its OLTP tests have the same tables."""
        return {"tables": self.options.tables, "table_size": self.options.table_size}

    def data_bytes(self) -> int:
        """Rows and their index."""
        return self.options.tables * self.options.table_size * _BYTES_OF_ROW

    def expected_seconds(self) -> float | None:
        """Known where a duration ends it."""
        return self.options.duration

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Make and fill the tables, and count what is in them."""
        words = [*self._words(endpoint, seed), self.options.test, "prepare"]
        _TOOL.execute(runner, "prepare", words)
        with sql.connect(endpoint, limit=600.0) as connection:
            for number in range(1, self.options.tables + 1):
                rows = int(connection.value(f"SELECT count(*) FROM sbtest{number}"))
                if rows != self.options.table_size:
                    raise RunError(
                        f"sysbench prepare left {rows} rows in sbtest{number}, not {self.options.table_size}"
                    )

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Run it, read what it says, and see whether that is what was asked for."""
        given, notes = self.options, _BUCKETS
        if given.way == READ_ONLY:
            if READ_ONLY in endpoint.others:
                endpoint = endpoint.by(READ_ONLY)
            else:
                notes = (*notes, _NO_WAY_OF_READS)
        words = [
            *self._words(endpoint, seed),
            f"--threads={given.threads}",
            # Each said in any case: without --time its default of 10 s would end a run of events too.
            f"--events={given.events or 0}",
            f"--time={int(given.duration or 0)}",
            f"--rate={given.rate or 0}",
            f"--percentile={_PERCENTILE}",
            f"--report-interval={int(given.interval)}",
            "--histogram",
            given.test,
            "run",
        ]
        text = _TOOL.execute(runner, "run", words)
        ended_ns = time.time_ns()
        said = parse(text)
        self._refuse(said)
        began_ns = ended_ns - round(said.seconds * 1e9)
        return Measured(
            complete=True,
            responses=responses(said),
            errors={"transaction": {"ignored": said.ignored}} if said.ignored else {},
            measured_from_ns=began_ns,
            measured_to_ns=ended_ns,
            status={"sysbench.queries": float(said.queries), "sysbench.reconnects": float(said.reconnects)},
            loop="closed" if given.rate is None else "open",
            rate_per_s=given.rate,
            notes=notes,
            ended_by="operations" if given.events else "duration",
            intervals=_intervals(said, began_ns),
        )

    def _refuse(self, said: Said) -> None:
        given = self.options
        if given.events is not None and said.events != given.events:
            raise InvalidRun(f"sysbench did {said.events} events, {given.events} were asked for")
        if given.duration is not None and said.seconds < given.duration:
            raise InvalidRun(f"sysbench ran for {said.seconds:g} s, {given.duration:g} s were asked for")
        if said.transactions == 0:
            raise InvalidRun("sysbench ended without a single transaction")
        failed = said.ignored + said.reconnects
        if failed > given.max_errors * (failed + said.transactions):
            raise InvalidRun(
                f"{counted(said.ignored, 'transaction')} met errors that sysbench ignores and {said.reconnects} lost "
                f"their connection, beside {said.transactions} that succeeded; allowed is {given.max_errors:.3%}"
            )
        if given.rate is not None:
            due = given.rate * said.seconds
            # Arrivals are at random, so that chance alone takes the square root of their number away.
            if said.events < _LEAST_REACHED * due - 3 * math.sqrt(due):
                raise InvalidRun(
                    f"the rate was not reached: {said.events / said.seconds:.1f} of {given.rate} transactions a second"
                )

    def _words(self, endpoint: Endpoint, seed: int) -> list[str]:
        at, prefix = endpoint.settings, "mysql" if endpoint.backend == "mysql" else "pgsql"
        if "socket" not in at:
            where = [f"--{prefix}-host={at['host']}", f"--{prefix}-port={at['port']}"]
        elif prefix == "mysql":
            where = [f"--mysql-socket={at['socket']}"]
        else:
            folder, _, name = str(at["socket"]).rpartition("/")
            where = [f"--pgsql-host={folder}", f"--pgsql-port={name.rpartition('.')[2]}"]
        if prefix == "mysql":
            where += [f"--mysql-ignore-errors={_TRIED_AGAIN}"]
        return [
            _program(),
            f"--db-driver={prefix}",
            *where,
            f"--{prefix}-user={at['user']}",
            f"--{prefix}-password={at.get('password', '')}",
            f"--{prefix}-db={at['database']}",
            f"--tables={self.options.tables}",
            f"--table-size={self.options.table_size}",
            f"--rand-type={self.options.rand_type}",
            f"--rand-seed={seed % 2**31 or 1}",  # 0 would stand for the time of day
        ]


_TRIED_AGAIN = "1213,1020,1205,3101,1180"
"""A deadlock, a record that changed, a lock waited for too long, as sysbench has it by itself; and the conflict that a
group finds when it certifies (ER_TRANSACTION_ROLLBACK_DURING_COMMIT), or as it commits (ER_ERROR_DURING_COMMIT, of a
deadlock), each of which would end it. All are counted, and `max_errors` is held against them."""


@dataclass(frozen=True)
class Interval:
    """A line of its intermediate report; `at` in seconds since the start."""

    at: float
    transactions_per_s: float
    latency_ms: float
    errors_per_s: float


@dataclass(frozen=True)
class Said:
    """What sysbench says at its end, in its own units."""

    transactions: int
    transactions_per_s: float
    queries: int
    queries_per_s: float
    ignored: int
    reconnects: int
    seconds: float
    events: int
    latency_ms: dict[str, float]
    histogram: tuple[tuple[float, int], ...]
    intervals: tuple[Interval, ...]


def parse(text: str) -> Said:
    """Its output, every figure of it. Raises RunError where one is missing or damaged."""

    def line(label: str, pattern: str) -> re.Match[str]:
        found = re.search(rf"^[ \t]*{label}:.*$", text, re.MULTILINE)
        if found is None:
            raise RunError(f"sysbench's output has no {label!r} as sysbench 1.0 writes it")
        figures = re.fullmatch(rf"\s*{label}:\s+{pattern}\s*", found[0])
        if figures is None:
            raise RunError(f"sysbench's output has a line that sysbench 1.0 writes in another way: {found[0].strip()}")
        return figures

    def counted(label: str) -> tuple[int, float]:
        found = line(label, r"(\S+)\s+\((\S+) per sec\.\)")
        return _TOOL.count(found[1], found[0]), _TOOL.figure(found[2], found[0])

    def figure(label: str) -> float:
        found = line(label, r"(\S+)")
        return _TOOL.figure(found[1], found[0])

    transactions, transactions_per_s = counted("transactions")
    queries, queries_per_s = counted("queries")
    latency = {name: figure(label) for name, label in (("min", "min"), ("mean", "avg"), ("max", "max"))}
    latency["p99"] = figure(f"{_PERCENTILE}th percentile")
    total, events = line("total time", r"(\S+)s"), line("total number of events", r"(\S+)")
    return Said(
        transactions,
        transactions_per_s,
        queries,
        queries_per_s,
        counted("ignored errors")[0],
        counted("reconnects")[0],
        _TOOL.seconds(total[1], total[0]),
        _TOOL.count(events[1], events[0]),
        latency,
        tuple(
            (_TOOL.figure(bucket[1], bucket[0]), _TOOL.count(bucket[2], bucket[0]))
            for bucket in re.finditer(r"^[ \t]*(\S+) \|\**[ \t]+(\S+)[ \t]*$", text, re.MULTILINE)
        ),
        tuple(_interval_lines(text)),
    )


def responses(said: Said) -> dict[str, float]:
    """Throughput in transactions a second; quantiles from the histogram, in the way that sysbench has its own."""
    found = {
        "throughput": said.transactions_per_s,
        "query.throughput": said.queries_per_s,
        "elapsed": said.seconds,
        "latency_mean": said.latency_ms["mean"],
        "latency_max": said.latency_ms["max"],
        "latency_p99": said.latency_ms["p99"],
        "failed_operations": float(said.ignored),
        "reconnects": float(said.reconnects),
    }
    total = sum(count for _, count in said.histogram)
    if total != said.events:
        raise RunError(f"sysbench's histogram has {total} latencies, of {said.events} events")
    for name, share in _QUANTILES.items():
        if name != "p99":
            found[f"latency_{name}"] = min(quantile(said, share), said.latency_ms["max"])
    return found


def quantile(said: Said, share: float) -> float:
    """In ms, by sysbench's own rule: the bucket in which that many of the latencies, rounded, have been seen."""
    so_far = 0
    rank = max(math.floor(share * said.events + 0.5), 1)
    for value, count in said.histogram:
        so_far += count
        if so_far >= rank:
            return value
    return said.latency_ms["max"]


def _interval_lines(text: str) -> Iterator[Interval]:
    pattern = r"\[ (\S+)s \] thds: \d+ tps: (\S+) qps: .*? lat \(ms,\d+%\): (\S+) err/s: (\S+) reconn/s: \S+"
    before = 0.0
    for line in re.findall(r"^\[ .* \] thds:.*$", text, re.MULTILINE):
        found = re.fullmatch(pattern, line.rstrip())
        if found is None:
            raise RunError(f"sysbench's output has a line that sysbench 1.0 writes in another way: {line}")
        at = _TOOL.seconds(found[1], line)
        if at <= before:
            raise RunError(f"sysbench's reports go back in time: {line}")
        before = at
        tps, latency, errors = (_TOOL.figure(figure, line, _MOST_PER_S) for figure in found.groups()[1:])
        yield Interval(at, tps, latency, errors)


def _intervals(said: Said, began_ns: int) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    before = 0.0
    for each in said.intervals:
        span = each.at - before
        rows.append(
            {
                "start_ns": began_ns + round(before * 1e9),
                "end_ns": began_ns + round(each.at * 1e9),
                "warmup": False,
                "operation": "transaction",
                "count": round(each.transactions_per_s * span),
                "errors": round(each.errors_per_s * span),
                "p99_us": each.latency_ms * 1000,
            }
        )
        before = each.at
    if said.seconds > before:
        # Its reports end with the last whole interval; its totals tell of what came after.
        counted, ignored = (sum(row[name] for row in rows) for name in ("count", "errors"))
        rows.append(
            {
                "start_ns": began_ns + round(before * 1e9),
                "end_ns": began_ns + round(said.seconds * 1e9),
                "warmup": False,
                "operation": "transaction",
                "count": max(said.transactions - counted, 0),
                "errors": max(said.ignored - ignored, 0),
                "p99_us": None,
            }
        )
    return pl.DataFrame(rows, schema=INTERVAL_COLUMNS)


def _program() -> str:
    return foreign.installed("sysbench", "sysbench")
