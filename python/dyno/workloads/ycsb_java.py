"""YCSB's core workloads carried out by YCSB itself, of the distribution that YCSB_HOME names.

What its output means was seen at YCSB 0.17.0. It is told to measure each operation both from its actual start and from
the one that its target intended; with a target the latter is the latency, as in any open loop.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dyno import sql
from dyno.hosts import LocalHost
from dyno.model.base import Frozen, InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Share, Size
from dyno.workloads import foreign
from dyno.workloads.base import Measured, Runner, Workload
from dyno.workloads.core_workloads import CHOOSERS, CHOSEN, MIXES, stored_bytes

_TOOL = foreign.Tool("YCSB", "Exception|Error|ERROR")
_OPERATIONS = ("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE")
_QUANTILES = {
    "AverageLatency(us)": "mean",
    "50thPercentileLatency(us)": "p50",
    "90thPercentileLatency(us)": "p90",
    "95thPercentileLatency(us)": "p95",
    "99thPercentileLatency(us)": "p99",
    "99.9PercentileLatency(us)": "p999",
    "MaxLatency(us)": "max",
}
_JDBC = {
    "mysql": ("org.mariadb.jdbc.Driver", "jdbc:mariadb", "mariadb-java-client.jar"),
    "postgresql": ("org.postgresql.Driver", "jdbc:postgresql", "postgresql.jar"),
}
_DEBIANS_JARS = Path("/usr/share/java")


class YcsbJavaOptions(Frozen):
    """Named as those of kind ycsb."""

    mix: Annotated[Literal["a", "b", "c", "d", "e", "f"], Field(description="a core workload")]
    records: Annotated[int, Field(ge=1, le=2**31 - 1, description="rows loaded before the first run")] = 1000
    operations: Annotated[int, Field(ge=1, le=2**31 - 1, description="over all threads")]
    threads: Annotated[int, Field(ge=1, le=4096, description="clients, each with a connection of its own")] = 1
    target: Annotated[
        int | None,
        Field(ge=1, le=10**7, description="operations a second; latency then counts from when each was intended"),
    ] = None
    key_chooser: Annotated[
        Literal["zipfian", "uniform", "latest"] | None,
        Field(description="default: latest for mix d, else zipfian, each as YCSB has it"),
    ] = None
    field_count: Annotated[int, Field(ge=1, le=1000, description="fields of a row")] = 10
    field_length: Annotated[Size, Field(ge=1, le=65535, description="of each field")] = 100
    max_errors: Annotated[
        Share, Field(le=1, description="share of operations that may fail before the run is invalid")
    ] = 0.0

    @property
    def chooser(self) -> str:
        """By what keys are chosen in the end."""
        return self.key_chooser or CHOOSERS.get(self.mix, "zipfian")


class YcsbJavaWorkload(Workload[YcsbJavaOptions]):
    """`site.ycsb.Client` with its JDBC binding; with its BasicDB, which does nothing, on the null system."""

    kind = "ycsb-java"
    Options = YcsbJavaOptions
    backends = frozenset({"null", "mysql", "postgresql"})

    def needs(self) -> Sequence[str]:
        """A distribution, and Java."""
        return ("YCSB",)

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """The distribution is the user's to unpack: its JDBC binding is in no package registry."""
        return {"ycsb": _core_jar(_home()).stem.removeprefix("core-"), "java": _java_version(host, logs, limit)}

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """JDBC knows addresses and ports alone."""
        return "YCSB connects by TCP alone: write system.config.connect: tcp" if reached_by == "socket" else None

    def rate(self) -> float | None:
        """Its target."""
        return self.options.target

    def clients(self) -> int:
        """One a thread."""
        return self.options.threads

    def data_key(self) -> dict[str, Any]:
        """What the rows look like and how many there are."""
        given = self.options
        return {"records": given.records, "field_count": given.field_count, "field_length": given.field_length}

    def data_bytes(self) -> int:
        """As its rows take."""
        return stored_bytes(self.options.records, self.options.field_count, self.options.field_length)

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Make the table as YCSB's own page for JDBC has it, insert the records, and count them."""
        if endpoint.backend in sql.backends():
            fields = ", ".join(f"FIELD{number} TEXT" for number in range(self.options.field_count))
            with sql.connect(endpoint, limit=60.0) as connection:
                connection.rows(f"CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, {fields})")
        said = self._carry_out(runner, endpoint, "load")
        if said.failed or said.done != self.options.records:
            raise RunError(f"YCSB's load inserted {said.done} of {self.options.records} records: {_told(said.failed)}")
        self._count_rows(endpoint, self.options.records, RunError)

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Run the mix, read what it says, and count the rows."""
        given = self.options
        said = self._carry_out(runner, endpoint, "run")
        ended_ns = time.time_ns()
        failed = sum(sum(kinds.values()) for kinds in said.failed.values())
        _TOOL.refuse_failed(said.done, failed, given.max_errors, _told(said.failed))
        if not failed and said.done != given.operations:
            raise InvalidRun(f"YCSB did {said.done} operations, {given.operations} were asked for")
        foreign.refuse_slow(said.throughput, given.target)
        if not failed:
            inserted = int(said.rows.get("INSERT", {}).get("Return=OK", 0))
            self._count_rows(endpoint, given.records + inserted, InvalidRun)
        return Measured(
            complete=True,
            responses=dict(_responses(said, intended=given.target is not None)),
            errors={_name(name): kinds for name, kinds in said.failed.items()},
            measured_from_ns=None,
            measured_to_ns=ended_ns,
            loop="closed" if given.target is None else "open",
            rate_per_s=given.target,
            notes=tuple(_notes(given)),
            ended_by="operations",
        )

    def _carry_out(self, runner: Runner, endpoint: Endpoint, phase: str) -> Said:
        text = _TOOL.execute(runner, phase, self._words(phase, endpoint))
        try:
            said = parse(text)
        except RunError as error:
            raise RunError(f"{error}: {_TOOL.last_words(runner, phase)}") from error
        if not any(operation in said.rows for operation in _OPERATIONS):
            # As where its binding cannot be loaded: every thread ends at once, and the exit status is 0.
            raise RunError(f"YCSB {phase} did nothing: {_TOOL.last_words(runner, phase)}")
        return said

    def _count_rows(self, endpoint: Endpoint, expected: int, error: type[Exception]) -> None:
        if endpoint.backend not in sql.backends():
            return
        rows = foreign.stored_rows(endpoint)
        if rows != expected:
            raise error(f"the store has {rows} rows; loaded and inserted were {expected}")

    def _words(self, phase: str, endpoint: Endpoint) -> list[str]:
        given, home = self.options, _home()
        binding, jars, properties = _binding(endpoint, home)
        properties |= {
            "workload": "site.ycsb.workloads.CoreWorkload",
            "recordcount": given.records,
            "operationcount": given.operations,
            **foreign.core_workload(MIXES[given.mix], given.chooser),
            "fieldcount": given.field_count,
            "fieldlength": given.field_length,
            "measurement.interval": "both",
            "measurementtype": "hdrhistogram",
            "hdrhistogram.percentiles": "50,90,95,99,99.9",
        }
        words = [_java(), "-cp", ":".join([str(home / "lib" / "*"), *jars]), "site.ycsb.Client"]
        words += ["-load" if phase == "load" else "-t", "-db", binding, "-threads", str(given.threads)]
        words += [] if given.target is None or phase == "load" else ["-target", str(given.target)]
        return words + foreign.in_words(properties)


@dataclass(frozen=True)
class Said:
    """What YCSB says at its end: measurement -> name of a figure -> figure."""

    rows: Mapping[str, Mapping[str, float]]

    def figure(self, measurement: str, name: str) -> float:
        """Raises RunError where it was not said."""
        if name not in self.rows.get(measurement, {}):
            raise RunError(f"YCSB's output has no line of [{measurement}], {name}")
        return self.rows[measurement][name]

    @property
    def throughput(self) -> float:
        """Over its whole life, connecting included."""
        return self.rows["OVERALL"]["Throughput(ops/sec)"]

    @property
    def done(self) -> int:
        """Operations that succeeded; a read-modify-write is one, though its read and its update are counted too."""
        counts = {name: int(self.rows.get(name, {}).get("Return=OK", 0)) for name in _OPERATIONS[:4]}
        both = int(self.rows.get("READ-MODIFY-WRITE", {}).get("Operations", 0))
        return sum(counts.values()) - both

    @property
    def failed(self) -> dict[str, dict[str, int]]:
        """Every answer that is not OK: a missing key too, which is no read."""
        found: dict[str, dict[str, int]] = {}
        for name in _OPERATIONS:
            for figure, count in self.rows.get(name, {}).items():
                if figure.startswith("Return=") and figure != "Return=OK" and count:
                    found.setdefault(name, {})[figure.removeprefix("Return=").lower()] = int(count)
        return found


def parse(text: str) -> Said:
    """Every figure of the operations in its output. Raises RunError where it is damaged or did not come to its end."""
    rows: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        found = re.match(r"\[(?:Intended-)?([A-Z-]+)\]", line)
        if found is None or found[1] not in ("OVERALL", *_OPERATIONS):
            continue
        parts = line.split(", ")
        if len(parts) != 3:
            raise RunError(f"YCSB's output has a line that is no figure: {line}")
        measurement, name, value = parts
        counted = name == "Operations" or name.startswith("Return=")
        read = _TOOL.count if counted else _TOOL.figure
        rows.setdefault(measurement.strip("[]"), {})[name] = read(value, line)
    if "Throughput(ops/sec)" not in rows.get("OVERALL", {}):
        raise RunError("YCSB's output has no [OVERALL] throughput")
    return Said(rows)


def _responses(said: Said, *, intended: bool) -> Iterator[tuple[str, float]]:
    seconds = said.figure("OVERALL", "RunTime(ms)") / 1000
    if seconds == 0:
        raise RunError("YCSB says that it took 0 ms")
    yield "throughput", said.throughput
    yield "elapsed", seconds
    yield "failed_operations", float(sum(sum(kinds.values()) for kinds in said.failed.values()))
    for name in _OPERATIONS:
        if name not in said.rows:
            continue
        yield f"{_name(name)}.throughput", said.figure(name, "Operations") / seconds
        latency = f"Intended-{name}" if intended else name
        if latency not in said.rows:
            raise RunError(f"YCSB's output has no [{latency}], though it was told to measure both")
        for figure, quantile in _QUANTILES.items():
            yield f"{_name(name)}.latency_{quantile}", said.figure(latency, figure) / 1000
            if intended:
                yield f"{_name(name)}.service_{quantile}", said.figure(name, figure) / 1000


def _name(operation: str) -> str:
    return operation.lower().replace("-", "_")


def _notes(given: YcsbJavaOptions) -> Iterator[str]:
    yield CHOSEN["ycsb-zipfian"] if given.chooser == "zipfian" else f"Keys were chosen by YCSB's own {given.chooser}."
    yield "YCSB's throughput is over its whole life: connecting and the first, uncompiled operations are in it."
    if given.target is not None:
        yield (
            "YCSB's latencies are from the start that its target intended; its threads are fixed, and it measures from "
            "when the first of them began."
        )


def _told(failed: Mapping[str, Mapping[str, int]]) -> str:
    parts = [f"{_name(name)} {kind}: {count}" for name, kinds in failed.items() for kind, count in kinds.items()]
    return ", ".join(parts) or "it named no error"


def _home() -> Path:
    given = os.environ.get("YCSB_HOME")
    if not given:
        raise RunError("YCSB_HOME is not set: unpack a YCSB distribution and set it to its folder")
    _core_jar(Path(given))
    return Path(given)


def _core_jar(home: Path) -> Path:
    found = sorted(home.glob("lib/core-*.jar"))
    if not found:
        raise RunError(f"YCSB_HOME ({home}) is no YCSB distribution: it has no lib/core-*.jar")
    return found[-1]


def _java() -> str:
    return foreign.installed("java", "default-jre-headless")


def _java_version(host: LocalHost, logs: Path, limit: float) -> str:
    said = host.run([_java(), "--version"], limit=limit, log=logs / "java-version")
    return said.splitlines()[0] if said.strip() else "unknown"


def _binding(endpoint: Endpoint, home: Path) -> tuple[str, list[str], dict[str, Any]]:
    """The class, the jars besides the core's, and the properties by which a backend is reached."""
    if endpoint.backend == "null":
        return "site.ycsb.BasicDB", [], {"basicdb.verbose": "false"}
    driver, scheme, jar = _JDBC[endpoint.backend]
    folder = home / "jdbc-binding" / "lib"
    if not list(folder.glob("*.jar")):
        raise RunError(f"{folder} has no jars: take a YCSB distribution that has the JDBC binding")
    at = endpoint.settings
    properties = {
        "db.driver": driver,
        "db.url": f"{scheme}://{at['host']}:{at['port']}/{at['database']}",
        "db.user": at["user"],
        "db.passwd": at.get("password", ""),
    }
    return "site.ycsb.db.JdbcDBClient", [str(folder / "*"), str(_DEBIANS_JARS / jar)], properties
