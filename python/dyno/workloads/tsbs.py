"""Rows of the Time Series Benchmark Suite (TSBS) loaded by its own programs or by dyno's loader, and its queries.

Rows are loaded once they can be read, in every store alike: TSBS's loader for QuestDB counts what it wrote to its
sockets, and never waits until anybody can see it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any

from dyno import ddl, sql
from dyno.hosts import LocalHost, tools
from dyno.model.base import InvalidRun, RunError
from dyno.model.devops import TIME
from dyno.model.endpoint import Endpoint
from dyno.model.run import BATCH
from dyno.workloads import core, tsbs_figures, tsbs_output, tsbs_stores
from dyno.workloads.base import Checked, Measured, Runner, Workload
from dyno.workloads.tsbs_data import Rows, window_end
from dyno.workloads.tsbs_options import ORDERS, TsbsOptions, parsed
from dyno.workloads.tsbs_output import TOOL

# TSBS's text for these is refused by QuestDB from 9 on ("must not contain both GROUP BY and SAMPLE BY"), and answered
# with other rows before that.
_REFUSED_BY_QUESTDB = ("double-groupby-1", "double-groupby-5", "double-groupby-all")

_BYTES_OF_ROW = 220  # as the widest of the stores has them, with an index


class TsbsWorkload(Workload[TsbsOptions]):
    """Loading, queries, and both at a time."""

    kind = "tsbs"
    Options = TsbsOptions
    backends = frozenset({"questdb", "cratedb", "postgresql", "duckdb"})
    lasts_by = "length"
    outlives_failure = True  # what a killed server still has of what it acknowledged is one of the questions
    goes_on = True  # until rows that were sent can be read
    forks = True  # TSBS's loaders are fed by dyno-core, which starts them

    def needs(self) -> Sequence[str]:
        """TSBS makes the rows in any case."""
        return ("tsbs",)

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """TSBS makes the rows in any case."""
        found = tsbs_stores.version()
        if not found:
            raise RunError(f"tsbs is not here, or not all of it: `dyno get {tools.TSBS.name}` builds it")
        return found

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """What TSBS has no programs for, or what would ask for tables that are laid out in another way."""
        given = self.options
        theirs = tsbs_stores.THEIRS.get(backend)
        if theirs is None and (given.loader == "tsbs" or given.action != "load"):
            return f"TSBS has no programs for {backend}: write action: load and loader: dyno"
        if backend == "postgresql" and given.action != "load" and given.loader == "dyno":
            return "TSBS's queries of PostgreSQL are for tables as its own loader makes them: write loader: tsbs"
        if backend == "duckdb" and (given.rate is not None or given.retry):
            return "DuckDB copies files in by itself, at once: leave rate and retry out"
        refused = [query for query in given.queries if backend == "questdb" and query in _REFUSED_BY_QUESTDB]
        if refused:
            return f"QuestDB refuses what TSBS asks for {refused[0]} (both GROUP BY and SAMPLE BY in it): leave it out"
        return None

    def refuses_tables(self, backend: str, tables: Mapping[str, Any]) -> str | None:
        """QuestDB replaces a row that comes twice, CrateDB leaves it out; COPY takes none of a batch that has one."""
        if self.options.duplicates and tables.get("deduplicate") and backend in ("postgresql", "duckdb"):
            return (
                f"{backend} refuses a batch with a row that its table has: leave duplicates out, or write "
                "system.tables.deduplicate: false"
            )
        return None

    def clients(self) -> int:
        """Workers, and those who ask meanwhile."""
        given = self.options
        return {"load": given.workers, "queries": given.query_workers}.get(
            given.action, given.workers + given.query_workers
        )

    def rate(self) -> float | None:
        """Of rows."""
        return self.options.rate if self.options.action != "queries" else None

    def measured_seconds(self) -> float | None:
        """Where rows come at a rate whether they are taken or not; queries last as long as they take."""
        given = self.options
        if given.action != "load" or given.rate is None:
            return None
        return len(tsbs_stores.TABLES) * given.scale * (given.seconds // given.interval) / given.rate

    def data_key(self) -> dict[str, Any]:
        """Rows that are there beforehand, or none in tables that are; and the packed rows, which are made with them."""
        given = self.options
        empty = given.action == "load"
        ours = {"loader": given.loader, "empty": empty}
        return {**self._rows("questdb").key(), **ours}

    def data_bytes(self) -> int:
        """About as rows take in a store."""
        given = self.options
        rows = len(tsbs_stores.TABLES) * given.scale * (given.seconds / given.interval)
        return 0 if given.action == "load" else round(rows * _BYTES_OF_ROW)

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Have the rows made, and tables where the loader does not make them; fill them where queries are asked."""
        given = self.options
        runner.folder.mkdir(parents=True, exist_ok=True)
        rows = self._rows(self._format(endpoint))
        rows.make(runner)
        if given.loader == "dyno":
            self._make_tables(endpoint)
        if given.action == "load":
            return
        if given.action == "mixed":
            self._later().make(runner)
        # What is there before anything is measured comes in order, at once, by whoever loads.
        plain = TsbsWorkload(
            given.model_copy(update={"action": "load", "rate": None, "order": "in-order", "duplicates": 0.0})
        )
        if not plain.drive(runner, endpoint, seed).complete:
            raise RunError("it was interrupted before all rows were loaded")

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """What the action says."""
        runner.folder.mkdir(parents=True, exist_ok=True)
        runner.logs.mkdir(parents=True, exist_ok=True)
        if self.options.action == "queries":
            return self._ask(runner, endpoint)
        if self.options.action == "mixed":
            return self._ask_meanwhile(runner, endpoint, seed)
        if endpoint.backend == "duckdb":
            return self._copy_in(runner, endpoint, seed)
        if self.options.loader == "tsbs":
            return self._load_by_theirs(runner, endpoint)
        return self._load_by_ours(runner, endpoint, seed)

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """Rows that were acknowledged and are absent, and rows that are there and were not, counted by table.

        Raises RunError where it is not known any more how many were there before.
        """
        told = runner.folder / "ingest" / "result.json"
        if self.options.action == "queries" or not told.exists():
            return Checked()
        before = self._rows("questdb").known() if self.options.action == "mixed" else None
        found = tsbs_figures.audit(
            json.loads(told.read_text()),
            before,
            tsbs_figures.doubtful_of(told.parent),
            lambda table: tsbs_figures.there(endpoint, table, runner.limit),
            lambda table: tsbs_figures.different(endpoint, table, runner.limit),
            lambda table, rows: tsbs_figures.landed(endpoint, table, rows, runner.limit),
        )
        lost = found["ledger.lost"]
        return Checked(found, f"{lost:.0f} rows that were acknowledged are absent" if lost else None)

    def later(self, runner: Runner, endpoint: Endpoint, seed: int) -> list[str]:
        """The words of a program that sends the rows up to `mixed_end`, until its standard input ends.

        It leaves what came of it in the folder `ingest` of the runner's. Raises RunError.
        """
        rows = self._later()
        rows.make(runner)
        backend = tsbs_stores.backend_of_job(endpoint, self.options.transport)
        return self._ingest_words(runner, self._job(rows, backend, seed))

    # Rows

    def _rows(self, form: str) -> Rows:
        given = self.options
        return Rows(
            use_case=given.use_case,
            seed=given.seed,
            scale=given.scale,
            start=parsed(given.start),
            end=given.until,
            interval=given.interval,
            format=form,
        )

    def _later(self) -> Rows:
        assert self.options.mixed_end is not None
        rows = self._rows("questdb")
        return replace(rows, start=rows.end, end=parsed(self.options.mixed_end))

    def _format(self, endpoint: Endpoint) -> str:
        return tsbs_stores.THEIRS[endpoint.backend].format if self.options.loader == "tsbs" else "questdb"

    def _make_tables(self, endpoint: Endpoint) -> None:
        given = self.options
        last = given.until if given.mixed_end is None else parsed(given.mixed_end)
        with sql.connect(endpoint, limit=600.0) as connection:
            for table in tsbs_stores.TABLES:
                for statement in ddl.of(endpoint, table, first=parsed(given.start), last=last):
                    connection.rows(statement)

    # Loading

    def _load_by_ours(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        rows = self._rows("questdb")
        known = rows.make(runner)
        backend = tsbs_stores.backend_of_job(endpoint, self.options.transport)
        measured, result = self._ingest(runner, self._job(rows, backend, seed))
        if not measured.complete:
            return measured  # there would be rows to wait for that were never sent
        visible_s = tsbs_figures.wait_until_visible(endpoint, result, known, runner.limit)
        return tsbs_figures.loaded(measured, result, visible_s, self._notes(endpoint))

    def _job(self, rows: Rows, backend: dict[str, Any], seed: int) -> dict[str, Any]:
        given = self.options
        delayed = ORDERS[given.order]
        job = {
            "format": core.JOB_FORMAT,
            "data": str(rows.folder()),
            "backend": backend,
            "workers": given.workers,
            "batch_rows": given.batch,
            "split": "host" if given.hash_workers else "batch",
            "rate_per_s": given.rate,
            "duplicates": given.duplicates,
            "retry_s": given.retry,
            "seed": seed,
            "delayed": None
            if delayed is None
            else {"share": delayed[0], "by_s": max(delayed[1], delayed[2] * given.interval)},
        }
        return {key: value for key, value in job.items() if value is not None}

    def _ingest_words(self, runner: Runner, job: dict[str, Any]) -> list[str]:
        path = runner.logs / "job-ingest.json"
        path.write_text(json.dumps(job, indent=1) + "\n")
        out = runner.folder / "ingest"
        return [runner.core, "ingest", "--job", str(path), "--out", str(out), "--progress", "--stop-on-stdin-eof"]

    def _ingest(self, runner: Runner, job: dict[str, Any]) -> tuple[Measured, dict[str, Any]]:
        out = runner.folder / "ingest"
        (result,) = core.collect(runner, [self._ingest_words(runner, job)], [out], tsbs_figures.INGEST)
        measured = tsbs_figures.taken(runner, result, out)
        return replace(measured, status={**measured.status, BATCH: float(self.options.batch)}), result

    def _load_by_theirs(self, runner: Runner, endpoint: Endpoint) -> Measured:
        theirs = tsbs_stores.THEIRS[endpoint.backend]
        known = self._rows(theirs.format).make(runner)
        report = runner.folder / "fed.json"
        given = self.options
        words = [runner.core, "feed", "--data", str(self._rows(theirs.format).folder()), "--report", str(report), "--"]
        words += [str(tools.TSBS.program(theirs.loader)), *tsbs_stores.words_of_loader(endpoint)]
        words += [f"--workers={given.workers}", f"--batch-size={given.batch}", "--reporting-period=1s"]
        words += [f"--hash-workers={str(given.hash_workers).lower()}"]
        said = tsbs_output.loaded(TOOL.execute(runner, "load", words))
        fed = json.loads(report.read_text())
        if not fed["whole"] or said.rows != known["rows"]:
            raise InvalidRun(f"TSBS's loader loaded {said.rows} of {known['rows']} rows")
        # Its own time is of the writing alone: before that it sleeps for a second where it would make a database.
        began_ns = fed["ended_ns"] - round(said.seconds * 1e9)
        for table in tsbs_stores.TABLES:
            tsbs_figures.visible(endpoint, table, known["tables"][table]["rows"], runner.limit)
        ended_ns = time.time_ns()
        visible_s = (ended_ns - began_ns) / 1e9
        cpu = fed["cpu"]["user_s"] + fed["cpu"]["system_s"]
        return Measured(
            complete=True,
            responses=tsbs_figures.responses(said.rows, said.metrics, said.seconds, visible_s, cpu),
            measured_from_ns=began_ns,
            measured_to_ns=ended_ns,
            loop="closed",
            settings={f"tsbs.{name}": f"dead: {why}" for name, why in theirs.dead.items()},
            notes=tuple(self._notes(endpoint)),
            ended_by="operations",
            intervals=tsbs_figures.reported(said, began_ns),
        )

    def _copy_in(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """DuckDB is embedded in a process of its own, and copies files in: rows are written to files first.

        That counts, as unpacking rows and sending them does where a store takes them over a connection.
        """
        rows = self._rows("questdb")
        known = rows.make(runner)
        folder = runner.folder / "csv"
        backend = {"kind": "csv", "folder": str(folder), "columns": {"time": TIME["duckdb"]}}
        job = {key: value for key, value in self._job(rows, backend, seed).items() if key != "rate_per_s"}
        measured, result = self._ingest(runner, job)
        # What files took is nothing that the store said it has.
        acknowledged = runner.folder / "ingest" / "result.json"
        if not measured.complete:
            acknowledged.unlink()
            return measured
        began_ns, copying_ns = int(result["measured_from_ns"]), time.time_ns()
        try:
            with sql.connect(endpoint, limit=runner.limit) as connection:
                for table in tsbs_stores.TABLES:
                    names = ", ".join(tsbs_figures.csv_columns(known, table))
                    files = f"{escape(str(folder))}/{table}-*.csv".replace("'", "''")
                    connection.rows(f"COPY {table} ({names}) FROM '{files}' (FORMAT csv, HEADER true)")
        except sql.SqlError:
            acknowledged.unlink()
            raise
        copied_ns = time.time_ns()
        for table in tsbs_stores.TABLES:
            tsbs_figures.visible(endpoint, table, known["tables"][table]["rows"], runner.limit)
        visible_s = (time.time_ns() - began_ns) / 1e9
        told, cpu = result["ingest"], result["cpu"]["user_s"] + result["cpu"]["system_s"]
        # Without intervals: the store itself does all of it at once, and nobody sees it go on.
        return Measured(
            complete=True,
            responses=tsbs_figures.responses(
                told["sent"], told["metrics"], (copied_ns - began_ns) / 1e9, visible_s, cpu
            ),
            status={"tsbs.csv_written_s": result["elapsed_s"], "tsbs.copied_s": (copied_ns - copying_ns) / 1e9},
            loop="closed",
            notes=(*self._notes(endpoint), *_COPIED),
            ended_by="operations",
        )

    # Queries

    def _ask(self, runner: Runner, endpoint: Endpoint) -> Measured:
        # All of them are made before: what that takes is the generator's, and nothing that the store did.
        asking = {query: self._query_words(runner, endpoint, query) for query in self.options.queries}
        began_ns = time.time_ns()
        responses: dict[str, float] = {}
        count, seconds = 0, 0.0
        for query, (words, results) in asking.items():
            said = tsbs_output.queried(TOOL.execute(runner, f"queries-{query}", words), results)
            if said.count != self.options.query_count:
                raise InvalidRun(f"TSBS asked {said.count} of {self.options.query_count} queries of {query}")
            count, seconds = count + said.count, seconds + said.seconds
            prefix = "" if len(self.options.queries) == 1 else f"{query}."
            responses[f"{prefix}throughput"] = said.count / said.seconds
            responses |= {f"{prefix}latency_{name}": value for name, value in said.latency.items()}
        return Measured(
            complete=True,
            responses={"throughput": count / seconds, "elapsed": seconds, **responses},
            measured_from_ns=began_ns,
            measured_to_ns=time.time_ns(),
            loop="closed",
            notes=tuple(self._notes(endpoint)),
            ended_by="operations",
        )

    def _query_words(self, runner: Runner, endpoint: Endpoint, query: str) -> tuple[list[str], Path]:
        """What asks the queries of a type, which are made before; and the file of what came of it."""
        given, theirs = self.options, tsbs_stores.THEIRS[endpoint.backend]
        rows = self._rows(theirs.format)
        asked, results = runner.folder / f"{query}.queries", runner.folder / f"{query}.json"
        results.unlink(missing_ok=True)
        making = [str(tools.TSBS.program("tsbs_generate_queries"))]
        making += [word for word in rows.words() if not word.startswith(("--timestamp-end", "--log-interval"))]
        making += [f"--timestamp-end={window_end(rows)}", f"--queries={given.query_count}", f"--query-type={query}"]
        TOOL.execute(runner, f"make-{query}", [*making, f"--file={asked}"])
        words = [str(tools.TSBS.program(theirs.runner)), *tsbs_stores.words_of_runner(endpoint)]
        words += [f"--file={asked}", f"--workers={given.query_workers}", f"--max-queries={given.query_count}"]
        # --hdr-latencies writes an empty file, so that quantiles are had of its results; --burn-in is not used, since
        # what is left out must be part of --max-queries; --max-rps starts its clock late (coordinated omission).
        return [*words, "--print-interval=0", f"--results-file={results}"], results

    def _ask_meanwhile(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        sending = self.later(runner, endpoint, seed)
        query = self.options.queries[0]
        asking, results = self._query_words(runner, endpoint, query)
        began_ns = time.time_ns()
        statuses = runner.execute_all([sending, asking])
        out = runner.folder / "ingest"
        result = core.read(out / "result.json", statuses[0], runner.complaint, tsbs_figures.INGEST)
        measured = tsbs_figures.taken(runner, result, out)
        if statuses[1] != 0:
            raise RunError(f"tsbs's query runner ended with status {statuses[1]}: {runner.complaint or 'nothing said'}")
        asked_s = tsbs_output.seconds_of_results(results)
        latency = tsbs_output.of_results(results)
        told = result["ingest"]
        responses = {
            "throughput": told["rows_per_s"],
            "elapsed": result["elapsed_s"],
            **{name: value for name, value in measured.responses.items() if name.startswith(("latency", "lag"))},
            f"{query}.throughput": self.options.query_count / asked_s,
            **{f"{query}.latency_{name}": value for name, value in latency.items()},
        }
        shared = min(asked_s, result["elapsed_s"]) / max(asked_s, result["elapsed_s"])
        return replace(
            measured,
            responses=responses,
            measured_from_ns=min(began_ns, measured.measured_from_ns or began_ns),
            status={**measured.status, "tsbs.overlap": shared},
            notes=(*self._notes(endpoint), *_MEANWHILE),
        )

    def _notes(self, endpoint: Endpoint) -> Iterator[str]:
        given, theirs = self.options, tsbs_stores.THEIRS.get(endpoint.backend)
        if given.loader == "tsbs" and given.action != "queries" and theirs is not None:
            for name, why in theirs.dead.items():
                yield f"{name} {why}: its levels asked for the same, and are to be taken as one."
        if given.action == "load":
            yield "A row counts as loaded once it can be read: throughput and elapsed are until all could be."
        ours = given.action == "load" and given.loader == "dyno" and endpoint.backend == "questdb"
        if ours and given.transport == "ilp-tcp":
            yield "Over a socket QuestDB acknowledges nothing: no row of such a run can be acknowledged and then lost."
        if given.action != "load" and endpoint.backend == "questdb":
            yield "TSBS's query runner for QuestDB adds an index on cpu.hostname first, whatever the study says."
            if "groupby-orderby-limit" in given.queries:
                yield (
                    "TSBS's text of groupby-orderby-limit for QuestDB has no ORDER BY: it asks for the first five "
                    "minutes, where it asks other stores for the last."
                )


_COPIED = (
    "Rows were written to files of comma-separated values, which DuckDB then copied in: both are in throughput and "
    "elapsed, and tsbs.csv_written_s and tsbs.copied_s say what each took.",
)
_MEANWHILE = (
    "throughput and latencies without a name are of batches of rows that came meanwhile, from when each was due; those "
    "with the name of a query are of queries.",
)
