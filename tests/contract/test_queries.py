"""The thirteen queries of a published study on real stores: the same answers, and times that are compared only then."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dyno import sql
from dyno.analysis.answers import Given, difference, gather, read
from dyno.hosts import LocalHost, UndoJournal
from dyno.model.endpoint import Endpoint
from dyno.systems.base import Place, System
from dyno.workloads.base import Measured
from dyno.workloads.queries import QueriesWorkload
from tests.contract.conftest import PlainRunner
from tests.contract.test_systems import LEAST, ROOMS, options_of

LIMIT_S = 120.0
FILE = Path(__file__).parents[2] / "studies" / "queries" / "time-series.yaml"
STORES = ("duckdb", "postgresql", "questdb", *(("cratedb",) if os.environ.get("CRATE_HOME") else ()))
FEWEST = {"cratedb": {"nodes": 1, "tables": {"shards": 2, "partition_by": "month"}}}
SEED = 1
PLANTED = {
    "duckdb": "UPDATE cpu SET usage_user = usage_user + 100 WHERE hostname = 'host_1'",
    "postgresql": "UPDATE cpu SET usage_user = usage_user + 100 WHERE hostname = 'host_1'",
}


def workload(**options: Any) -> QueriesWorkload:
    given = {"file": FILE.name, "text": FILE.read_text(), "repeat": 1, **options}
    return QueriesWorkload(options_of(QueriesWorkload, given))  # type: ignore[arg-type]


class Store:
    """A store that runs and holds the data of scale smoke."""

    def __init__(self, system: System[Any], endpoint: Endpoint, runner: Callable[[], PlainRunner]) -> None:
        self.system = system
        self.endpoint = endpoint
        self._runner = runner

    def drive(self, **options: Any) -> Measured:
        return workload(**options).drive(self._runner(), self.endpoint, SEED)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Store]]:
    """All of them at once: the same data in each, loaded once."""
    folder = tmp_path_factory.mktemp("queries")
    for each in (tmp_path_factory.getbasetemp(), folder):
        each.chmod(0o711)
    with contextlib.ExitStack() as ending:
        # A state of their own: each test has another.
        ending.enter_context(pytest.MonkeyPatch.context()).setenv("DYNO_STATE", str(folder / "state"))
        host = LocalHost(ending.enter_context(UndoJournal()))
        found = {}
        for name in STORES:
            found[name] = started(name, folder / name, host, ending)
        yield found


def started(name: str, folder: Path, host: LocalHost, ending: contextlib.ExitStack) -> Store:
    folder = host.temporary_folder(folder)
    place = Place(host=host, data=folder / "live", logs=folder / "logs", core="", shared=folder / "shared")
    kind = ROOMS.systems[name]
    system = kind(options_of(kind, {**LEAST.get(name, {}), **FEWEST.get(name, {})}), place)
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    ending.callback(system.destroy)
    system.start(1, LIMIT_S)
    endpoint = system.ready(LIMIT_S)
    count = iter(range(1000))

    def runner() -> PlainRunner:
        made = PlainRunner(host, "", folder / f"drive-{next(count)}")
        made.namespace = endpoint.namespace
        return made

    workload().load(runner(), endpoint, SEED)
    return Store(system, endpoint, runner)


def answers_of(measured: Mapping[str, Measured]) -> Any:
    """As analysis has them, each store a cell by its place."""
    frames = [
        each.answers.with_columns(pl.lit(number, dtype=pl.Int64).alias("run"))
        for number, each in enumerate(measured.values())
        if each.answers is not None
    ]
    assert len(frames) == len(measured)
    return gather({number: number for number in range(len(frames))}, read(pl.concat(frames)))


def first_of(found: Any, cell: int, query: str) -> Given:
    given: Given = next(iter(found.of_cell[cell][query].values()))
    return given


@pytest.fixture(scope="module")
def determinate(stores: Mapping[str, Store]) -> Mapping[str, Measured]:
    return {name: store.drive() for name, store in stores.items()}


def test_all_thirteen_determinate_answers_are_the_same(determinate: Mapping[str, Measured]) -> None:
    found = answers_of(determinate)
    names = list(determinate)
    assert len(found.queries(0)) == 13
    wrong = {
        (query, names[cell]): told.told
        for cell in range(1, len(names))
        for query in found.queries(0)
        if (told := difference(first_of(found, 0, query), first_of(found, cell, query))).kind != "equal"
    }
    assert wrong == {}
    for cell in range(1, len(names)):
        assert found.why_unlike("warm", 0, found, cell) == ""


def test_no_answer_is_empty_and_every_store_tells_its_plans(determinate: Mapping[str, Measured]) -> None:
    for name, measured in determinate.items():
        assert measured.answers is not None
        rows = {row["query"]: row["rows"] for row in measured.answers.iter_rows(named=True)}
        assert min(rows.values()) >= 1, (name, rows)
        assert rows["constant-memory"] >= 5
        assert rows["limit-scan"] == 17_280
        assert all(len(plan) > 20 and not plan.startswith("not told") for plan in measured.answers["plan"]), name


def test_each_query_has_a_cold_and_a_warm_time(determinate: Mapping[str, Measured]) -> None:
    for measured in determinate.values():
        assert measured.complete
        for query in workload().options.asked():
            assert measured.responses[f"q.{query}.cold"] > 0
            assert measured.responses[f"q.{query}.warm"] > 0
        assert measured.responses["cold"] > 0
        assert measured.responses["warm"] > 0


def test_verbatim_forms_differ_and_each_difference_is_told(stores: Mapping[str, Store]) -> None:
    """QuestDB's texts of TSBS: one is refused, one has no order, and elsewhere ties are left open."""
    found = answers_of({name: stores[name].drive(form="verbatim") for name in ("questdb", "postgresql")})
    unlike = {
        query: difference(first_of(found, 0, query), first_of(found, 1, query))
        for query in found.queries(0)
        if found.why_unlike(f"{query}.warm", 0, found, 1)
    }
    assert unlike["q.double-groupby-5"].kind == "error"
    assert "SAMPLE BY" in unlike["q.double-groupby-5"].told
    assert unlike["q.groupby-orderby-limit"].kind in ("values", "rows")
    assert all(each.told for each in unlike.values())
    # What both texts ask the same of is answered the same.
    assert "q.single-groupby-1-1-1" not in unlike
    assert "q.max-by-host" not in unlike


@pytest.mark.parametrize("wrong", sorted(PLANTED))
def test_a_planted_wrong_answer_is_found_and_stops_the_comparison(wrong: str, stores: Mapping[str, Store]) -> None:
    other = "questdb"
    asked = {"queries": ["max-by-host", "range-month"]}
    with sql.connect(stores[wrong].endpoint, limit=LIMIT_S) as connection:
        connection.rows(PLANTED[wrong])
        try:
            found = answers_of({name: stores[name].drive(**asked) for name in (other, wrong)})
        finally:
            connection.rows(PLANTED[wrong].replace("+ 100", "- 100"))
    assert difference(first_of(found, 0, "q.max-by-host"), first_of(found, 1, "q.max-by-host")).kind == "values"
    for response in ("q.max-by-host.warm", "q.max-by-host.cold", "warm", "throughput", "cpu_per_op"):
        why = found.why_unlike(response, 0, found, 1)
        assert "answer max-by-host otherwise: row 2 is (host_1, " in why
    # The other query has nothing to do with it.
    assert found.why_unlike("q.range-month.warm", 0, found, 1) == ""


def test_batches_ask_different_questions_and_every_client_has_its_share(stores: Mapping[str, Store]) -> None:
    asked = {"singly": False, "batch": 20, "workers": 3, "queries": ["single-groupby-1-1-1", "double-groupby-5"]}
    measured = {name: store.drive(**asked) for name, store in stores.items()}
    found = answers_of(measured)
    for cell, each in enumerate(measured.values()):
        assert len(found.of_cell[cell]["b.double-groupby-5"]) == 20
        assert found.why_unlike("throughput", 0, found, cell) == ""
        assert each.responses["b.double-groupby-5.latency_p50"] <= each.responses["b.double-groupby-5.latency_p99"]
        assert each.responses["b.double-groupby-5.throughput"] == pytest.approx(
            20 / each.responses["b.double-groupby-5.elapsed"]
        )
        assert each.intervals is not None
        assert each.intervals["count"].sum() == 40
        # The first of each batch is explained, with its own parameters.
        assert len(first_of(found, cell, "b.double-groupby-5").plan) > 20
        assert each.answers is not None
        assert each.answers.filter(pl.col("plan").is_not_null())["number"].to_list() == [0, 0]


def test_an_open_loop_counts_from_when_a_query_was_due(stores: Mapping[str, Store]) -> None:
    asked = {"singly": False, "batch": 20, "workers": 2, "rate": 20.0, "queries": ["point"]}
    measured = stores["postgresql"].drive(**asked)
    assert measured.loop == "open"
    assert measured.responses["b.point.elapsed"] >= 19 / 20
    assert measured.responses["latency_mean"] >= measured.responses["service_mean"]
