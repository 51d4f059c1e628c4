"""Named queries of a file, asked of any store in its dialect: each by itself, first cold, then warm, and in batches.

The parameters come from a seed, so that every store is asked the same; what each answered is kept with the run, and
`dyno.analysis.answers` holds it against the others before any times are compared. See docs/queries.md.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, model_validator

from dyno.hosts import LocalHost
from dyno.model.answers import ANSWER_COLUMNS, IN_BATCH, SINGLY
from dyno.model.base import Frozen, InvalidRun, KeyProblem, NeverValid, RunError
from dyno.model.devops import MEASUREMENTS
from dyno.model.endpoint import Endpoint
from dyno.model.run import BETWEEN, IN_TURN
from dyno.model.saturation import DRIVER_IS_THE_LIMIT, EXHAUSTED
from dyno.model.units import PositiveDuration, format_percent
from dyno.workloads import beside, devops_data, query_file, tsbs_figures
from dyno.workloads.asking import COURSE
from dyno.workloads.base import INTERVAL_COLUMNS, Checked, Measured, Runner, Workload
from dyno.workloads.devops_data import DataOptions
from dyno.workloads.query_file import PLACEHOLDER, FormName, Query, QueryFile
from dyno.workloads.query_parameters import CannotDraw, Value, draw, plain, written
from dyno.workloads.tsbs import TsbsWorkload
from dyno.workloads.tsbs_data import in_utc
from dyno.workloads.tsbs_figures import Came
from dyno.workloads.tsbs_options import Duplicates, Order, TsbsOptions, parsed

_PROGRAM = "dyno.workloads.asking"
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_TIME_UNITS = {"sqlite": "ns", "questdb": "us", "duckdb": "us", "cratedb": "ms", "postgresql": "s"}
_EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN "}
_LEAST_REACHED = 0.99
_MAY_BE_LATE_S = 0.25
"""By so much the last query of a batch may be sent late, however short its schedule: of the clients, which are threads,
one computes at a time, and what the machine does besides holds them up for as long.
"""
_JUDGED_FROM_S = 0.05
"""How long a batch has to last for the driver's CPU time to tell that it was the limit: it is counted, not sampled."""
_LEAST_SHARED = 0.95
_ENOUGH_S = 120.0
_MOST_S = 10**9
_MEANWHILE = (
    "Rows came while batches were asked: figures that begin with ingest are of batches of rows, from when each was "
    "due; whoever sent them is part of the driver. What the system used is of queries and rows together, from a second "
    "before the first query on.",
)
_FEW_BATCHES = 10
_INTERVAL_NS = 10**9


def _frozen(given: object) -> object:
    # What a validator has looked at before is no JSON any more, of which lists would be taken as they are.
    return tuple(given) if isinstance(given, list) else given


Names = Annotated[tuple[str, ...], BeforeValidator(_frozen)]


class ComingRows(Frozen):
    """Rows that come while batches are asked: TSBS's, of the same hosts, from the end of the data on."""

    rate: Annotated[float, Field(gt=0, le=1e9, description="rows a second, taken or not (an open loop)")]
    workers: Annotated[int, Field(ge=1, le=256, description="who send them, each with a connection of its own")] = 1
    batch: Annotated[int, Field(ge=1, le=10**6, description="rows that are sent at once")] = 1000
    order: Order = "in-order"
    duplicates: Duplicates = 0.0
    length: Annotated[
        PositiveDuration | None,
        Field(
            ge=1,
            le=10**9,
            description="how much time the rows are of; those that are left when all is asked are not sent; as much as "
            "comes in two minutes if left out",
        ),
    ] = None

    def rows(self, data: DataOptions) -> int:
        """How many there are."""
        return len(MEASUREMENTS) * data.hosts * (self.seconds(data) // round(data.interval))

    def seconds(self, data: DataOptions) -> int:
        """Of the rows' own time, in whole intervals."""
        a_second = len(MEASUREMENTS) * data.hosts / data.interval
        wanted = _ENOUGH_S * self.rate / a_second if self.length is None else self.length
        return math.ceil(wanted / data.interval) * round(data.interval)


class QueriesOptions(Frozen):
    """Which queries, how they are asked, and of what data."""

    form: Annotated[
        FormName,
        Field(
            description="verbatim: the texts as a publication or a tool has them, which may ask each store for "
            "something else; determinate: the same of all"
        ),
    ] = "determinate"
    queries: Annotated[
        Names, Field(description="which of the file's, by name; all that have this form if left out")
    ] = ()
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, description="of the parameters")] = 1
    draw: Annotated[
        Literal["once", "per-block"],
        Field(
            description="when parameters are drawn: once, so that the answers of all replicates can be compared; or "
            "anew for each block, so that intervals are over other parameters too"
        ),
    ] = "once"
    singly: Annotated[
        bool, Field(description="whether each query is asked by itself: once as it comes (cold), then again (warm)")
    ] = True
    repeat: Annotated[
        int, Field(ge=1, le=10_000, description="of singly: how often each is asked again; warm is their median")
    ] = 5
    batch: Annotated[
        int, Field(ge=0, le=1_000_000, description="queries of each kind that are asked at once; 0 for no batches")
    ] = 0
    batched: Annotated[Names, Field(description="of which queries there are batches; all if left out")] = ()
    workers: Annotated[
        int, Field(ge=1, le=256, description="clients of a batch, each with a connection of its own")
    ] = 1
    rate: Annotated[
        float | None,
        Field(
            gt=0,
            le=1e6,
            description="of batches: queries a second that are due whether or not others were answered (an open loop); "
            "without it each client waits for its answer before it asks again",
        ),
    ] = None
    ingest: Annotated[
        ComingRows | None, Field(description="of batches: rows that come meanwhile; none if left out")
    ] = None
    explain: Annotated[bool, Field(description="whether each store is asked for its plan, once all is measured")] = True
    data: Annotated[DataOptions, Field(description="what is loaded")] = DataOptions()
    text: Annotated[str | None, Field(max_length=2**20, description="instead of a file: what would stand in it")] = None
    file: Annotated[str | None, Field(description="a file of queries, by its path from the study file")] = None

    @model_validator(mode="before")
    @classmethod
    def _has_its_text(cls, given: Any, info: ValidationInfo) -> Any:
        return beside.with_text(given, info)

    @model_validator(mode="after")
    def _can_be_asked(self) -> QueriesOptions:
        if self.text is None:
            raise KeyProblem("file", "give a file of queries, such as queries/time-series.yaml")
        try:
            file = self.read()
        except query_file.QueryFileError as error:
            raise KeyProblem("file" if self.file else "text", str(error)) from None
        there = [name for name, query in file.queries.items() if query.form(self.form) is not None]
        if not there:
            raise KeyProblem("form", f"no query of {self.source()} has a {self.form} form")
        for key, names in (("queries", self.queries), ("batched", self.batched)):
            for name in names:
                if name not in there:
                    raise KeyProblem(
                        key,
                        f"no {self.form} query {name!r} in {self.source()} (there are {', '.join(there) or 'none'})",
                    )
            if len(set(names)) < len(names):
                raise KeyProblem(key, "names a query twice")
        if not self.singly and not self.batch:
            raise KeyProblem("singly", "without it and without a batch nothing is asked")
        if self.data.source == "tsbs":
            self._fit_for_tsbs()
        for key in ("batched", "rate", "ingest"):
            if getattr(self, key) and not self.batch:
                raise KeyProblem(key, "is of batches: give batch, or leave it out")
        if self.ingest is not None and self.data.source != "tsbs":
            raise KeyProblem("ingest", "rows that come are TSBS's, as those before them: write data.source: tsbs")
        if self.ingest is not None and self.ingest.seconds(self.data) > _MOST_S:
            raise KeyProblem(
                "ingest",
                "two minutes of rows at that rate are more than thirty years of these hosts: lower rate, give length, "
                "or have more hosts or a shorter interval (data)",
            )
        if self.ingest is not None and self.ingest.rows(self.data) < self.ingest.rate:
            raise KeyProblem(
                "ingest",
                f"length has {self.ingest.rows(self.data):,} rows of these hosts, which do not last a second at that "
                "rate",
            )
        return self

    def _fit_for_tsbs(self) -> None:
        # Its options are narrower than those of dyno's own rows.
        try:
            self.tsbs(loading=True)
        except ValidationError as error:
            (first, *_) = error.errors()
            raise KeyProblem("data", f"{first['loc'][0]} of TSBS's rows: {query_file.in_words(first)}") from None

    def tsbs(self, *, loading: bool) -> TsbsOptions:
        """TSBS's rows: those that are loaded before anything is measured, or those that come meanwhile."""
        data, coming = self.data, self.ingest
        more: dict[str, Any] = {"action": "queries"}
        if coming is not None:
            try:
                until = in_utc(parsed(data.end) + timedelta(seconds=coming.seconds(data)))
            except OverflowError:
                raise KeyProblem("ingest", "the rows that come reach beyond the year 9999") from None
            more = {"action": "mixed", "mixed_end": until, "rate": coming.rate}
            # What is there before is loaded alike, however rows come later.
            if not loading:
                more |= coming.model_dump(mode="json", include={"workers", "batch", "order", "duplicates"})
        return TsbsOptions(
            **more,
            queries=("single-groupby-1-1-1",),
            scale=data.hosts,
            interval=f"{data.interval:g} s",
            start=data.start,
            end=data.end,
            seed=data.seed,
        )

    def source(self) -> str:
        """What the file is called in messages."""
        return self.file or "text"

    def read(self) -> QueryFile:
        """The queries. Raises QueryFileError."""
        return query_file.parse(self.text or "", self.source())

    def asked(self) -> dict[str, Query]:
        """Those that are asked, by name, in the order of the file or as they are named."""
        file = self.read()
        names = self.queries or [name for name, query in file.queries.items() if query.form(self.form) is not None]
        return {name: file.queries[name] for name in names}

    def in_batches(self) -> tuple[str, ...]:
        """The names of those that are asked in batches."""
        if not self.batch:
            return ()
        return self.batched or tuple(self.asked())


class QueriesWorkload(Workload[QueriesOptions]):
    """`dyno.workloads.asking`, once to load the data and once to ask."""

    kind = "queries"
    Options = QueriesOptions
    backends = frozenset({"questdb", "cratedb", "postgresql", "duckdb", "sqlite"})
    forks = True  # the loader of rows that come meanwhile

    def needs(self) -> Sequence[str]:
        """What makes the rows, where that is a program of others."""
        return ("tsbs",) if self.options.data.source == "tsbs" else ()

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """What makes the rows, where that is a program of others. Raises RunError."""
        return self._tsbs(loading=True).provision(host, logs, limit) if self.options.data.source == "tsbs" else {}

    def _tsbs(self, *, loading: bool) -> TsbsWorkload:
        """Its rows; its own queries are not asked."""
        return TsbsWorkload(self.options.tsbs(loading=loading))

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """Without a text in its dialect a store cannot be asked."""
        if self.options.ingest is not None and backend == "sqlite":
            return "sqlite takes no rows of TSBS, which come meanwhile (ingest)"
        if self.options.data.source == "tsbs" and backend not in TsbsWorkload.backends:
            return f"rows of TSBS are not loaded into {backend}: write data.source: dyno"
        if self.options.ingest is not None and backend == "duckdb":
            return "DuckDB copies files in by itself, and takes no rows that come one batch after the other (ingest)"
        file = self.options.read()
        for name, query in self.options.asked().items():
            form = query.form(self.options.form)
            text = form.of(backend) if form is not None else None
            if text is None:
                return f"query {name} has no {self.options.form} text for {backend} ({self.options.source()})"
            for word, _ in PLACEHOLDER.findall(text):
                if word in file.names and file.names[word].of(backend) is None:
                    return f"{{{word}}} of query {name} has no text for {backend} ({self.options.source()})"
        return None

    def refuses_tables(self, backend: str, tables: Mapping[str, Any]) -> str | None:
        """Rows that come meanwhile are TSBS's."""
        coming = self.options.ingest is not None
        return self._tsbs(loading=False).refuses_tables(backend, tables) if coming else None

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Parameters that the data have nothing for."""
        for name in self.options.asked():
            try:
                self._drawn(name, 0, self.options.seed)
            except CannotDraw as error:
                yield "data", f"query {name}: {error}"
                return

    def operations(self) -> frozenset[str]:
        """Each query by itself and in its batch, and rows that come meanwhile."""
        singly = {f"{SINGLY}.{name}" for name in self.options.asked()} if self.options.singly else set()
        batched = {f"{IN_BATCH}.{name}" for name in self.options.in_batches()}
        return frozenset(singly | batched | ({"ingest"} if self.options.ingest is not None else set()))

    def rate(self) -> float | None:
        """Of its batches."""
        return self.options.rate

    def clients(self) -> int:
        """Those of a batch, the one that asks singly and waits meanwhile, and those who send rows."""
        coming = self.options.ingest
        return 1 + (self.options.workers if self.options.batch else 0) + (0 if coming is None else coming.workers)

    def at_once(self) -> int:
        """Whoever asks singly asks nothing during a batch."""
        coming = self.options.ingest
        return (self.options.workers if self.options.batch else 1) + (0 if coming is None else coming.workers)

    def data_key(self) -> dict[str, Any]:
        """All that the data hang on: partitions are made for the rows to come too."""
        coming = self.options.ingest
        of_data = self.options.data.model_dump(mode="json")
        return of_data if coming is None else {**of_data, "room_for_s": coming.seconds(self.options.data)}

    def data_bytes(self) -> int:
        """Before they are compressed."""
        return self.options.data.bytes()

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """The data that the queries are asked of; their seed is an option, since answers hang on it."""
        if self.options.data.source == "tsbs":
            self._tsbs(loading=True).load(runner, endpoint, seed)
            devops_data.see(endpoint, self.options.data, limit=runner.limit)
            return
        self._execute(runner, "load", {**_endpoint(endpoint), "data": self.options.data.model_dump(mode="json")})

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Ask, and tell apart what was asked singly and in batches."""
        job = {**_endpoint(endpoint), **self.job(endpoint.backend, seed)}
        if self.options.ingest is not None:
            runner.folder.mkdir(parents=True, exist_ok=True)
            words = self._tsbs(loading=False).later(runner, endpoint, seed)
            job["ingest"] = {"words": words, "log": str(runner.logs / "ingest")}
        out = self._execute(runner, "run", job)
        if not (out / "result.json").is_file() and runner.interrupted:
            return Measured(complete=False, responses={})
        result, answers, course = _read(out)
        loop = "closed" if self.options.rate is None or not self.options.batch else "open"
        measured = Measured(
            complete=True,
            responses=dict(_responses(result, answers, loop)),
            status=dict(_status(result)),
            errors=_errors(answers),
            measured_from_ns=result["measured_from_ns"],
            measured_to_ns=result["measured_to_ns"],
            loop=loop,
            rate_per_s=self.options.rate,
            notes=tuple(self._notes()),
            ended_by="operations",
            intervals=_intervals(course, result["measured_from_ns"], result["measured_to_ns"], loop),
            answers=answers,
        )
        coming = self.options.ingest
        if coming is not None:
            measured = self._with_rows(measured, tsbs_figures.came(runner.folder / "ingest", runner.complaint), result)
        runner.measured = measured
        if coming is not None:
            self._refuse_rows(coming, measured)
        self._refuse(result, answers, embedded=not endpoint.processes)
        return measured

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """Of rows that came meanwhile: those that were acknowledged and are absent, and what else became of them."""
        told = runner.folder / "ingest" / "result.json"
        if self.options.ingest is None or not told.exists():
            return Checked()
        return self._tsbs(loading=False).check(runner, endpoint, seed)

    def _with_rows(self, measured: Measured, came: Came, result: Mapping[str, Any]) -> Measured:
        """With what became of rows that came."""
        since, until = result["batches_from_ns"], result["batches_to_ns"]
        shared = max(min(until, came.to_ns) - max(since, came.from_ns), 0) / (until - since)
        due = came.status["ingest.batches_due"]
        few = f"Only {due:.0f} batches of rows were due while batches were asked: what they cost can hardly be seen."
        return replace(
            measured,
            responses={**measured.responses, **came.responses},
            withheld={**measured.withheld, **came.withheld},
            status={**measured.status, **came.status, "ingest.overlap": shared},
            notes=(*measured.notes, *_MEANWHILE, *([few] if due < _FEW_BATCHES else [])),
        )

    def _refuse_rows(self, coming: ComingRows, measured: Measured) -> None:
        """Rows that did not come as the study says make a run invalid."""
        told, reached = measured.status, measured.responses["ingest.throughput"]
        shared, unsent, due = (told[f"ingest.{name}"] for name in ("overlap", "batches_unsent", "batches_due"))
        if shared < _LEAST_SHARED:
            raise InvalidRun(
                f"rows came during {format_percent(shared)} of the batches only: give more (ingest.length), or ask "
                "fewer (batch)"
            )
        # What became due for each of them just as it was told to end is no sign of being late.
        if unsent > max((1 - _LEAST_SHARED) * due, coming.workers):
            raise InvalidRun(
                f"the rate was not reached: {reached:.4g} rows a second were taken, and {coming.rate:g} came (ingest)"
            )

    def job(self, dialect: str, seed: int) -> dict[str, Any]:
        """What is to be asked, in the dialect of a store: the order hangs on the lab's seed, so that none always
        comes after the same others, and the parameters on their own or on that too, as asked for.
        """
        given = self.options
        of_draw = given.seed if given.draw == "once" else seed
        order = list(given.asked())
        random.Random(f"{seed}/order").shuffle(order)
        batched = set(given.in_batches())
        return {
            "singly": [self._question(SINGLY, name, 0, dialect, of_draw) for name in order] if given.singly else [],
            "batches": {
                name: [self._question(IN_BATCH, name, number, dialect, of_draw) for number in range(given.batch)]
                for name in order
                if name in batched
            },
            "repeat": given.repeat,
            "workers": given.workers,
            "rate": given.rate,
            "explain": given.explain,
        }

    def _question(self, part: str, name: str, number: int, dialect: str, seed: int) -> dict[str, Any]:
        given, query = self.options, self.options.asked()[name]
        form = query.form(given.form)
        text = form.of(dialect) if form is not None else None
        if form is None or text is None:
            raise RunError(f"query {name} has no {given.form} text for {dialect} ({given.source()})")
        values = self._drawn(name, number, seed)
        statement = " ".join(_filled(text, values, given.read(), dialect).split())
        columns = list(form.columns)
        return {
            "part": part,
            "query": name,
            "title": query.title,
            "form": given.form,
            "dialect": dialect,
            "number": number,
            "data": json.dumps(given.data.model_dump(mode="json"), sort_keys=True),
            "parameters": json.dumps(plain(values), sort_keys=True),
            "statement": statement,
            "explain": f"{_EXPLAIN.get(dialect, 'EXPLAIN ')}{statement}",
            "ordered": form.ordered,
            "keys": [columns.index(each) for each in form.order_by],
            "relative": query.tolerance.relative,
            "absolute": query.tolerance.absolute,
            "kinds": list(form.columns.values()) or None,
            "time_unit": _TIME_UNITS[dialect],
            "comment": form.comment,
        }

    def _drawn(self, name: str, number: int, seed: int) -> dict[str, Value]:
        parameters = self.options.read().drawn_for(self.options.asked()[name])
        return draw(parameters, self.options.data.span(), seed=seed, query=name, number=number)

    def _execute(self, runner: Runner, phase: str, job: Mapping[str, Any]) -> Path:
        out = runner.folder / phase
        runner.folder.mkdir(parents=True, exist_ok=True)
        path = runner.folder / f"{phase}.json"
        path.write_text(json.dumps({"phase": phase, "out": str(out), "limit_s": runner.limit, **job}) + "\n")
        status = runner.execute([sys.executable, "-m", _PROGRAM, str(path)])
        if status != 0 and not runner.interrupted:
            raise RunError(f"asking ({phase}) ended with status {status}: {runner.complaint or 'it said nothing'}")
        return out

    def _refuse(self, result: Mapping[str, Any], answers: pl.DataFrame, *, embedded: bool) -> None:
        """What makes a run invalid, once it is kept what was measured.

        In an embedded store the driver's CPU time is the store's.
        """
        given = self.options
        failed = answers.filter(pl.col("error").is_not_null())
        if given.form == "determinate" and failed.height:
            lasting = failed.filter(pl.col("query").is_in(result["lasting"]))
            first = (lasting if lasting.height else failed).row(0, named=True)
            why = (
                f"{failed.height} of {answers.height} questions had no answer: "
                f"{self._where(first['query'], first['dialect'])}: {first['query']}: {first['error']}"
            )
            raise NeverValid(why) if lasting.height else InvalidRun(why)
        for name, batch in result["batches"].items():
            elapsed, cpu = batch["elapsed_s"], batch["cpu_s"]
            if not embedded and elapsed >= _JUDGED_FROM_S and cpu >= EXHAUSTED * elapsed:
                raise InvalidRun(
                    f"{DRIVER_IS_THE_LIMIT}: in the batch of {name} it used {cpu / elapsed:.2f} of the one CPU that "
                    f"its {given.workers} clients can"
                )
            if given.rate is not None and batch["services_ms"]:
                # Latencies count from when a query was due, so that they say nothing of whether the store kept up.
                late_s = batch["lags_ms"][-1] / 1000
                if late_s > max((1 - _LEAST_REACHED) * elapsed, _MAY_BE_LATE_S):
                    raise InvalidRun(
                        f"the rate was not reached: the last of {given.batch} queries in the batch of {name} was sent "
                        f"{late_s:.3g} s after it was due ({given.rate:g} a second)"
                    )

    def _where(self, name: str, dialect: str) -> str:
        """The file and the line of a query's text in a dialect."""
        form = self.options.asked()[name].form(self.options.form)
        own = form is not None and getattr(form, dialect) is not None
        key = ("queries", name, self.options.form, dialect if own else "default")
        return query_file.where(self.options.text or "", self.options.source(), key)

    def _notes(self) -> Iterator[str]:
        given = self.options
        if given.singly:
            yield (
                "Cold is the first time that a query is asked after the store was started, whose caches the study's "
                "host.caches are about, in an order that is drawn for each block: what queries before it brought into "
                f"caches is there. Warm is the median of {given.repeat} more, at once after it."
            )
        if given.form == "verbatim":
            yield (
                "The texts are verbatim: they may ask each store for something else, and a store that refuses one is "
                "shown with what it said."
            )


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    # The driver is started in the network namespace from which the store is reached.
    told = {"backend": endpoint.backend, "settings": endpoint.settings, "tables": endpoint.tables}
    return {"endpoint": told, "others": endpoint.others}


def _filled(text: str, values: Mapping[str, Value], file: QueryFile, dialect: str) -> str:
    def put_in(found: Any) -> str:
        word, part = found[1], found[2] or ""
        if word in file.names:
            return file.names[word].of(dialect) or ""
        return written(values[word], part, dialect)

    return PLACEHOLDER.sub(put_in, text)


def _read(out: Path) -> tuple[dict[str, Any], pl.DataFrame, pl.DataFrame]:
    try:
        result = json.loads((out / "result.json").read_text())
        answers = pl.read_parquet(out / "answers.parquet", glob=False).cast(pl.Schema(ANSWER_COLUMNS))
        return result, answers, pl.read_parquet(out / "course.parquet", glob=False).cast(pl.Schema(COURSE))
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise RunError(f"what the driver wrote cannot be read: {error}") from error


def _intervals(course: pl.DataFrame, since: int, until: int, loop: str) -> pl.DataFrame:
    """The answers by query and second, an answer counting where it was there."""
    starts = since + (pl.col("ended_ns").clip(since, until - 1) - since) // _INTERVAL_NS * _INTERVAL_NS
    service = pl.col("service_us") if loop == "open" else pl.lit(None, dtype=pl.Float64)
    told = {"": pl.col("latency_us"), "service_": service}
    figures = [
        figure.cast(pl.Float64).alias(f"{prefix}{name}_us")
        for prefix, of in told.items()
        for name, figure in (
            ("mean", of.mean()),
            *((name, of.quantile(_QUANTILES[name], "higher")) for name in ("p50", "p95", "p99")),
            ("max", of.max()),
        )
    ]
    errors = pl.col("latency_us").is_null().sum().cast(pl.Int64)
    made = (
        course.with_columns(starts.alias("start_ns"))
        .group_by("start_ns", "operation")
        .agg(pl.col("latency_us").is_not_null().sum().cast(pl.Int64).alias("count"), errors.alias("errors"), *figures)
        .sort("start_ns", "operation")
        .with_columns(
            (pl.col("start_ns") + _INTERVAL_NS).clip(upper_bound=until).alias("end_ns"),
            pl.lit(value=False).alias("warmup"),
            pl.when(pl.col("errors") > 0)
            .then(pl.concat_str(pl.lit('{"refused":'), pl.col("errors"), pl.lit("}")))
            .otherwise(pl.lit(None, dtype=pl.String))
            .alias("error_kinds"),
        )
    )
    return made.select(pl.col(name).cast(kind) for name, kind in INTERVAL_COLUMNS.items())


def _responses(result: Mapping[str, Any], answers: pl.DataFrame, loop: str) -> Iterator[tuple[str, float]]:
    """Of each query, of each batch, and of all together: of a mean over several only where all of them answered."""
    colds, warms = [], []
    for row in answers.filter(pl.col("part") == SINGLY).iter_rows(named=True):
        if row["error"] is not None or not row["warm_ms"]:
            continue
        colds.append(row["cold_ms"])
        warms.append(float(np.median(row["warm_ms"])))
        yield f"{SINGLY}.{row['query']}.cold", colds[-1]
        yield f"{SINGLY}.{row['query']}.warm", warms[-1]
    if colds:
        yield "cold", _geometric_mean(colds)
        yield "warm", _geometric_mean(warms)
    elapsed, cpu, count, latencies, services = 0.0, 0.0, 0, [], []
    for name, batch in result["batches"].items():
        done = len(batch["latencies_ms"])
        if not done:
            continue
        yield from _of_batch(f"{IN_BATCH}.{name}.", batch["latencies_ms"], batch["services_ms"], batch, loop)
        elapsed, cpu, count = elapsed + batch["elapsed_s"], cpu + batch["cpu_s"], count + done
        latencies += batch["latencies_ms"]
        services += batch["services_ms"]
    if count:
        yield from _of_batch("", latencies, services, {"elapsed_s": elapsed, "cpu_s": cpu}, loop)
        return
    singly = result["singly"]
    if singly["count"] and singly["elapsed_s"] > 0:
        yield "elapsed", singly["elapsed_s"]
        yield "throughput", singly["count"] / singly["elapsed_s"]
        yield "cpu_per_op", singly["cpu_s"] * 1e6 / singly["count"]


def _status(result: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """What laws have to know: kinds of queries come one after the other, and clients decode what they were answered."""
    between = [each for batch in result["batches"].values() for each in batch["between_ms"]]
    if between:
        yield BETWEEN, math.fsum(between) / len(between)
    yield IN_TURN, float(max(result["singly"]["count"], len(result["batches"])))


def _of_batch(
    prefix: str, latencies: Sequence[float], services: Sequence[float], batch: Mapping[str, Any], loop: str
) -> Iterator[tuple[str, float]]:
    yield f"{prefix}elapsed", batch["elapsed_s"]
    yield f"{prefix}throughput", len(latencies) / batch["elapsed_s"]
    yield f"{prefix}cpu_per_op", batch["cpu_s"] * 1e6 / len(latencies)
    for kind, values in (("latency", latencies), *([("service", services)] if loop == "open" else [])):
        of_all = np.asarray(values, dtype=np.float64)
        yield f"{prefix}{kind}_mean", float(of_all.mean())
        yield f"{prefix}{kind}_max", float(of_all.max())
        for name, share in _QUANTILES.items():
            yield f"{prefix}{kind}_{name}", float(np.quantile(of_all, share, method="inverted_cdf"))


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(max(value, 1e-6)) for value in values) / len(values))


def _errors(answers: pl.DataFrame) -> dict[str, dict[str, int]]:
    failed = answers.filter(pl.col("error").is_not_null())
    counts = failed.group_by("part", "query").len().sort("part", "query")
    return {f"{part}.{query}": {"refused": count} for part, query, count in counts.iter_rows()}
