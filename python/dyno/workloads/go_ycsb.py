"""YCSB's core workloads carried out by go-ycsb: to set dyno's figures beside those that others publish.

What its output means was seen at go-ycsb 1.0.1. Faults of its that are guarded against: it ends with status 0 whatever
happened to its operations; its workload A is uniform where YCSB's is Zipfian; it opens a profiling port on every
address; a read of a key that is not there counts as one that succeeded; its interval reports are cumulative.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import Field

from dyno import sql
from dyno.hosts import LocalHost, tools
from dyno.model.base import Frozen, InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, Share, Size
from dyno.workloads import foreign
from dyno.workloads.base import INTERVAL_COLUMNS, Checked, Measured, Runner, Workload
from dyno.workloads.core_workloads import CHOOSERS, MIXES, stored_bytes

_TOOL = foreign.Tool("go-ycsb", r"(?i)panic|fatal|error")  # a panic's reason stands before a page of stacks
_OPERATIONS = ("READ", "UPDATE", "INSERT", "SCAN", "READ_MODIFY_WRITE")
_ENDLESS = 10**12  # operations, where time ends it
_TO_CONNECT_S = 0.2  # of its life before its first operation; seen on a busy machine of two cores
KEY_DIGITS = 20
"""Of a key's number, as dyno writes it: with as many, and keys in their order, both find the rows of either."""

_COLUMNS = {"Avg": "mean", "50th": "p50", "90th": "p90", "95th": "p95", "99th": "p99", "99.9th": "p999", "Max": "max"}


class GoYcsbOptions(Frozen):
    """Named as those of kind ycsb."""

    mix: Annotated[Literal["a", "b", "c", "d", "e", "f"], Field(description="a core workload")]
    records: Annotated[int, Field(ge=1, le=10**10, description="rows loaded before the first run")] = 1000
    operations: Annotated[int, Field(ge=1, le=10**10, description="measured operations, over all threads")]
    warmup: Annotated[Duration, Field(le=86400, description="before the measured part; whole seconds")] = 0.0
    threads: Annotated[int, Field(ge=1, le=4096, description="clients")] = 1
    target: Annotated[
        int | None,
        Field(
            ge=1, le=10**7, description="operations a second at the most; still a closed loop: a stall is counted once"
        ),
    ] = None
    key_chooser: Annotated[
        Literal["zipfian", "uniform", "latest"] | None, Field(description="default: latest for mix d, else zipfian")
    ] = None
    field_count: Annotated[int, Field(ge=1, le=1000, description="fields of a row")] = 10
    field_length: Annotated[Size, Field(ge=1, le=65535, description="of each field")] = 100
    interval: Annotated[Duration, Field(ge=1, le=3600, description="of the time series; whole seconds")] = 1.0
    max_errors: Annotated[
        Share, Field(le=1, description="share of operations that may fail before the run is invalid")
    ] = 0.0

    @property
    def chooser(self) -> str:
        """By what keys are chosen in the end."""
        return self.key_chooser or CHOOSERS.get(self.mix, "zipfian")


@dataclass(frozen=True)
class Asked:
    """What go-ycsb is to do, whichever options say so. Times are in seconds, lengths in bytes.

    `operations` end it or `seconds`, whichever comes first. `target` is in operations a second. `more` are parameters
    of the chooser by go-ycsb's names.
    """

    mix: Mapping[str, float]
    chooser: str
    records: int
    operations: int | None
    seconds: float | None
    warmup: float
    threads: int
    field_count: int
    field_length: int
    interval: int
    max_errors: float
    target: int | None = None
    insert_order: Literal["hashed", "ordered"] = "hashed"
    read_all_fields: bool = True
    write_all_fields: bool = False
    max_scan_length: int = 100
    more: Mapping[str, float] = dataclasses.field(default_factory=dict)


class GoYcsb:
    """`go-ycsb load` and `go-ycsb run`; the database itself is asked what became of them."""

    backends = frozenset({"mysql", "postgresql"})

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    @staticmethod
    def provision() -> dict[str, str]:
        """As `dyno get` built it."""
        version = tools.installed(_TOOL.name)
        if version is None:
            raise RunError(f"{tools.tool_path(_TOOL.name)} is missing: `dyno get {_TOOL.name}` builds it")
        return {_TOOL.name: version}

    @staticmethod
    def refuses(reached_by: str | None) -> str | None:
        """It knows addresses and ports alone."""
        return "go-ycsb connects by TCP alone: write system.config.connect: tcp" if reached_by == "socket" else None

    def clients(self) -> int:
        """Its pool opens up to two connections a thread."""
        return 2 * self.asked.threads

    def load(self, runner: Runner, endpoint: Endpoint) -> None:
        """Insert the records, and count them."""
        text = _TOOL.execute(runner, "load", self._words("load", endpoint))
        rows = foreign.stored_rows(endpoint)
        if rows != self.asked.records:
            raise RunError(f"go-ycsb load left {rows} rows, not {self.asked.records}: {_first_error(text)}")

    def drive(self, runner: Runner, endpoint: Endpoint) -> Measured:
        """Run the mix, and read what it says."""
        text = _TOOL.execute(runner, "run", [*self._time_limit(), *self._words("run", endpoint)])
        ended_ns = time.time_ns()
        said = parse(text)
        seconds = said.seconds - self.asked.warmup
        self._refuse(said, seconds, text)
        began_ns = ended_ns - round(seconds * 1e9)
        errors = {name.lower(): {"failed": count} for name, count in said.errors.items() if count}
        return Measured(
            complete=True,
            responses=_responses(said, seconds),
            errors=errors if said.failed else {},
            measured_from_ns=began_ns,
            measured_to_ns=ended_ns,
            loop="closed",
            notes=tuple(self._notes()),
            ended_by="operations" if said.cut_off is None else "duration",
            intervals=_intervals(said, began_ns, seconds, self.asked.interval),
        )

    def check(self, runner: Runner, endpoint: Endpoint) -> Checked:
        """What it says it inserted must be there, and every value must have its length. Raises InvalidRun."""
        said = parse(_TOOL.said(runner, "run"))
        rows = foreign.stored_rows(endpoint)
        inserted = int(said.last.get("INSERT", {}).get("Count", 0))
        expected = self.asked.records + inserted
        # Inserts of the warm-up are there and not counted, and a failed one may have been carried out.
        unsure = self.asked.warmup > 0 or said.errors.get("INSERT", 0) > 0
        if rows < expected or (rows > expected and not unsure):
            raise InvalidRun(f"the store has {rows} rows after the run; loaded and inserted were {expected}")
        with sql.connect(endpoint, limit=600.0) as connection:
            whole = f"length(FIELD0) = {self.asked.field_length}"
            wrong = rows - int(connection.value(f"SELECT count(*) FROM usertable WHERE {whole}"))
        if wrong:
            raise InvalidRun(f"{wrong} rows have a first field that is not {self.asked.field_length} bytes long")
        return Checked()

    def _refuse(self, said: Said, seconds: float, text: str) -> None:
        asked = self.asked
        done, failed = said.operations, said.failed
        if said.cut_off is not None and asked.seconds is None:
            raise InvalidRun("go-ycsb was told to end before it had done what was asked")
        _TOOL.refuse_failed(done if seconds > 0 else 0, failed, asked.max_errors, _first_error(text))
        both = failed and asked.mix.get("read_modify_write")
        if said.cut_off is None and done + failed != asked.operations and not both:
            # A read_modify_write that failed in its read never gets to its update, so that its parts do not add up.
            raise InvalidRun(f"go-ycsb did {done + failed} operations, {asked.operations} were asked for")
        foreign.refuse_slow(done / seconds, asked.target)

    def _time_limit(self) -> list[str]:
        """It knows no end but a number of operations; asked to end, it ends in order and says what it did."""
        asked = self.asked
        if asked.seconds is None:
            return []
        seconds = f"{asked.warmup + asked.seconds + _TO_CONNECT_S:.3f}"
        # In the foreground, so that it stays in the group of processes that dyno started and may have to end.
        return [foreign.installed("timeout", "coreutils"), "--foreground", "--signal=INT", "--preserve-status", seconds]

    def _words(self, phase: str, endpoint: Endpoint) -> list[str]:
        asked, at = self.asked, endpoint.settings
        prefix = "mysql" if endpoint.backend == "mysql" else "pg"
        properties: dict[str, Any] = {
            "workload": "core",
            "recordcount": asked.records,
            "operationcount": _ENDLESS if asked.operations is None else asked.operations,
            "threadcount": asked.threads,
            **foreign.core_workload(asked.mix, asked.chooser, asked.insert_order),
            **asked.more,
            "zeropadding": KEY_DIGITS if asked.insert_order == "ordered" else 1,
            "fieldcount": asked.field_count,
            "fieldlength": asked.field_length,
            "fieldlengthdistribution": "constant",
            "readallfields": str(asked.read_all_fields).lower(),
            "writeallfields": str(asked.write_all_fields).lower(),
            "maxscanlength": asked.max_scan_length,
            "scanlengthdistribution": "uniform",
            "warmuptime": int(asked.warmup),
            "measurementtype": "histogram",
            "outputstyle": "plain",
            "measurement.interval": asked.interval,
            "silence": "false",
            "debug.pprof": "127.0.0.1:0",
            f"{prefix}.host": at["host"],
            f"{prefix}.port": at["port"],
            f"{prefix}.user": at["user"],
            f"{prefix}.password": at.get("password", ""),
            f"{prefix}.db": at["database"],
        }
        if prefix == "pg":
            properties["pg.sslmode"] = "disable"
        if asked.target is not None and phase == "run":
            properties["target"] = asked.target
        return [str(tools.tool_path(_TOOL.name)), phase, prefix, *foreign.in_words(properties)]

    def _notes(self) -> Iterator[str]:
        yield (
            f"go-ycsb chose keys by its {self.asked.chooser} (said on its command line: its own workload A would be "
            "uniform), and counts a read of a key that is not there as one that succeeded; rows were counted by dyno."
        )
        yield (
            "go-ycsb measures from the actual start of an operation, also with a target: what waits behind a stall is "
            "in no latency of its (coordinated omission)."
        )
        if self.asked.mix.get("read_modify_write"):
            yield "go-ycsb's total latency of read-modify-writes is over reads and updates, of which each has both."
        if self.asked.seconds is not None:
            yield "go-ycsb was interrupted when its time was over; what it was doing then is in no figure of its."


class GoYcsbWorkload(Workload[GoYcsbOptions]):
    """go-ycsb alone, also with its own target."""

    kind = "go-ycsb"
    Options = GoYcsbOptions
    backends = GoYcsb.backends

    def __init__(self, options: GoYcsbOptions) -> None:
        super().__init__(options)
        self._tool = GoYcsb(
            Asked(
                mix=MIXES[options.mix],
                chooser=options.chooser,
                records=options.records,
                operations=options.operations,
                seconds=None,
                warmup=options.warmup,
                threads=options.threads,
                field_count=options.field_count,
                field_length=options.field_length,
                interval=int(options.interval),
                max_errors=options.max_errors,
                target=options.target,
            )
        )

    def needs(self) -> Sequence[str]:
        """Itself."""
        return ("go-ycsb",)

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """As `dyno get` built it."""
        return self._tool.provision()

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """Where it cannot reach the server."""
        return self._tool.refuses(reached_by)

    def clients(self) -> int:
        """Of its pool."""
        return self._tool.clients()

    def at_once(self) -> int:
        """One a thread."""
        return self.options.threads

    def warms_up(self) -> bool:
        """By time."""
        return self.options.warmup > 0

    def data_key(self) -> dict[str, Any]:
        """What the rows look like and how many there are."""
        given = self.options
        return {"records": given.records, "field_count": given.field_count, "field_length": given.field_length}

    def data_bytes(self) -> int:
        """As its rows take."""
        return stored_bytes(self.options.records, self.options.field_count, self.options.field_length)

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """By its own means."""
        self._tool.load(runner, endpoint)

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Once."""
        return self._tool.drive(runner, endpoint)

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """Its word against the database's."""
        return self._tool.check(runner, endpoint)


Block = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Said:
    """What go-ycsb says: cumulative blocks, and how long all of it took."""

    seconds: float
    blocks: tuple[Block, ...]
    last: Block
    cut_off: int | None = None
    """Operations that it gave up when it was interrupted; None where it came to its end."""

    @property
    def errors(self) -> dict[str, int]:
        """Failed operations by kind."""
        return {
            name.removesuffix("_ERROR"): int(row["Count"])
            for name, row in self.last.items()
            if name.endswith("_ERROR") and name != "TOTAL_ERROR"
        }

    @property
    def failed(self) -> int:
        """Without those that were given up at the end."""
        return max(sum(self.errors.values()) - (self.cut_off or 0), 0)

    @property
    def operations(self) -> int:
        """Those that succeeded; a read-modify-write is one, though its read and its update are counted too."""
        counts = {name: int(row["Count"]) for name, row in self.last.items()}
        return sum(counts.get(name, 0) for name in _OPERATIONS[:4]) - counts.get("READ_MODIFY_WRITE", 0)


def parse(text: str) -> Said:
    """Its output from the first report on. Raises RunError where it did not finish."""
    finished = re.search(r"^Run finished, takes (\S+)$", text, re.MULTILINE)
    if finished is None:
        raise RunError("go-ycsb's output does not say that the run finished")
    seconds = _go_duration(finished[1])
    before, after = text[: finished.start()], text[finished.end() :]
    last = list(_blocks(after))
    if len(last) != 1:
        raise RunError("go-ycsb's output has no report after its end")
    if "TOTAL" not in last[0]:
        raise RunError("go-ycsb's report after its end has no line of TOTAL")
    _, interrupted, given_up = before.partition("Got signal [interrupt] to exit.")
    cut_off = len(re.findall(r"^operation err: ", given_up, re.MULTILINE)) if interrupted else None
    return Said(seconds, tuple(_blocks(before)), last[0], cut_off)


def _blocks(text: str) -> Iterator[Block]:
    block: dict[str, dict[str, float]] = {}
    for found in re.finditer(r"^([A-Z_]+)[ \t]+- (.*)$", text, re.MULTILINE):
        name = found[1]
        if name in block:
            yield block
            block = {}
        block[name] = _row(name, found[2], found[0])
    if block:
        yield block


def _row(name: str, fields: str, line: str) -> dict[str, float]:
    row = {}
    for field in fields.strip().split(", "):
        label, _, value = field.partition(": ")
        label = label.removesuffix("(us)").removesuffix("(s)")
        row[label] = _TOOL.count(value, line) if label == "Count" else _TOOL.figure(value, line)
    missing = {"Count", *([] if name.endswith("_ERROR") else _COLUMNS)} - row.keys()
    if missing:
        raise RunError(f"go-ycsb's output has a line without {', '.join(sorted(missing))}: {line}")
    return row


def _go_duration(text: str) -> float:
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s|µs|us|ns)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise RunError(f"go-ycsb says that it took {text!r}, which is no duration")
    return sum(_TOOL.seconds(number, text) * units[unit] for number, unit in parts)


def _responses(said: Said, seconds: float) -> dict[str, float]:
    found = {
        "throughput": said.operations / seconds,
        "elapsed": seconds,
        "failed_operations": float(said.failed),
        **_latencies("", said.last["TOTAL"]),
    }
    for name in _OPERATIONS:
        if row := said.last.get(name):
            found[f"{name.lower()}.throughput"] = row["Count"] / seconds
            found |= _latencies(f"{name.lower()}.", row)
    return found


def _latencies(prefix: str, row: Mapping[str, float]) -> dict[str, float]:
    return {f"{prefix}latency_{name}": row[column] / 1000 for column, name in _COLUMNS.items()}


def _intervals(said: Said, began_ns: int, seconds: float, interval: float) -> pl.DataFrame:
    """Counts of each interval, as differences of the cumulative ones; quantiles cannot be had from those."""
    rows: list[dict[str, Any]] = []
    earlier: Block = {}
    ends = [(block, (number + 1) * interval) for number, block in enumerate(said.blocks)]
    before = 0.0
    for block, end in [*ends, (said.last, max(seconds, ends[-1][1] if ends else 0.0))]:
        for name in _OPERATIONS:
            done, failed = (_grew(block, earlier, label) for label in (name, f"{name}_ERROR"))
            if end > before and (name in block or f"{name}_ERROR" in block):
                rows.append(
                    {
                        "start_ns": began_ns + round(before * 1e9),
                        "end_ns": began_ns + round(end * 1e9),
                        "warmup": False,
                        "operation": name.lower(),
                        "count": done,
                        "errors": failed,
                    }
                )
        earlier, before = block, end
    return pl.DataFrame(rows, schema=INTERVAL_COLUMNS)


def _grew(block: Block, earlier: Block, name: str) -> int:
    now, before = (int(each.get(name, {}).get("Count", 0)) for each in (block, earlier))
    if now < before:
        raise RunError(f"go-ycsb's count of {name} went from {before} down to {now}: its reports are not cumulative")
    return now - before


def _first_error(text: str) -> str:
    found = re.search(r"^operation err: (.*)$", text, re.MULTILINE)
    return found[1] if found else "it named no error"
