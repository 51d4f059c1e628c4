"""TSBS's rows in real stores: loaded by TSBS and by dyno, in order and not, and into a server that is killed."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dyno import sql
from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.faults import Fault
from dyno.observers.database import DatabaseObserver
from dyno.systems.base import Place, System
from dyno.systems.lone import LoneServer
from dyno.workloads import tsbs_figures, tsbs_stores
from dyno.workloads.base import Measured
from dyno.workloads.queries import QueriesOptions, QueriesWorkload
from dyno.workloads.tsbs import TsbsWorkload
from dyno.workloads.tsbs_options import TsbsOptions
from tests.contract.conftest import LIMIT_S, PlainRunner
from tests.contract.test_observers import make as make_observer
from tests.contract.test_systems import LEAST, ROOMS, options_of
from tests.making import until

SMALL = {"scale": 2, "interval": "10 min", "end": "2016-01-03"}  # two days: 576 rows in each of nine tables
ROWS = 576
Runners = Callable[[], PlainRunner]


def workload(**given: Any) -> TsbsWorkload:
    return TsbsWorkload(TsbsOptions.model_validate({**SMALL, **given}))


@contextmanager
def running(name: str, place: Place, **config: Any) -> Iterator[tuple[System[Any], Endpoint]]:
    kind = ROOMS.systems[name]
    system = kind(options_of(kind, {**LEAST.get(name, {}), **config}), place)
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    system.start(1, LIMIT_S)
    try:
        yield system, system.ready(LIMIT_S)
    finally:
        system.stop(LIMIT_S)


def empty(endpoint: Endpoint) -> None:
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        for table in tsbs_stores.TABLES:
            connection.rows(f"DROP TABLE IF EXISTS {table}")


def counts(endpoint: Endpoint) -> dict[str, int]:
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        return {table: int(connection.value(f"SELECT count(*) FROM {table}")) for table in tsbs_stores.TABLES}


def loaded(made: TsbsWorkload, endpoint: Endpoint, runners: Runners) -> Measured:
    made.load(runners(), endpoint, seed=1)
    runner = runners()
    measured = made.drive(runner, endpoint, seed=1)
    checked = made.check(runner, endpoint, seed=1)
    assert checked.wrong is None, checked
    return measured


def test_each_way_into_questdb_has_every_row_to_be_read_when_it_ends(place: Place, runners: Runners) -> None:
    with running("questdb", place) as (_, endpoint):
        for given in (
            {"loader": "tsbs", "hash_workers": True},
            {"transport": "ilp-tcp"},
            {"transport": "ilp-http", "batch": 100},
            {"hash_workers": False, "batch": 100},
        ):
            made = workload(workers=2, **given)
            measured = loaded(made, endpoint, runners)
            assert counts(endpoint) == dict.fromkeys(tsbs_stores.TABLES, ROWS), given
            responses = measured.responses
            assert responses["elapsed"] >= responses["loader_time"] > 0
            assert responses["throughput"] == pytest.approx(9 * ROWS / responses["elapsed"])
            assert responses["cpu_per_op"] > 0
            acknowledged = measured.status.get("tsbs.acknowledged")
            expected = None if given.get("loader") else 0 if given.get("transport") == "ilp-tcp" else 9 * ROWS
            assert acknowledged == expected
            dead = "hash_workers is set back to false" in " ".join(measured.notes)
            assert dead == (given.get("loader") == "tsbs")
            empty(endpoint)


def test_a_node_of_questdb_has_the_cpus_that_it_is_given(place: Place) -> None:
    with running("questdb", place, node_cpus=0.5) as (system, endpoint):
        assert system.facts()["node.cpus"] == 0.5
        (pid,) = endpoint.processes.values()
        assert "-n1" in Path(f"/proc/{pid}/cgroup").read_text()


def test_rows_out_of_order_and_duplicates_are_sorted_and_dropped_where_the_tables_say_so(
    place: Place, runners: Runners
) -> None:
    with running("questdb", place, tables={"deduplicate": True}) as (_, endpoint):
        measured = loaded(workload(order="heavy", duplicates="20%", batch=500), endpoint, runners)
        assert counts(endpoint) == dict.fromkeys(tsbs_stores.TABLES, ROWS)
        assert 700 < measured.status["tsbs.delayed"] < 1400
        assert 700 < measured.status["tsbs.duplicated"] < 1400
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            times = [row[0] for row in connection.rows("SELECT timestamp FROM cpu")]
        assert times == sorted(times)


def test_duplicates_stay_where_nothing_drops_them(place: Place, runners: Runners) -> None:
    with running("questdb", place) as (_, endpoint):
        measured = loaded(workload(duplicates="20%"), endpoint, runners)
        assert sum(counts(endpoint).values()) == 9 * ROWS + measured.status["tsbs.duplicated"]


def test_what_a_killed_questdb_acknowledged_is_looked_for_and_what_is_absent_is_counted(
    place: Place, runners: Runners
) -> None:
    """HTTP is acknowledged once it is in the log, which the kernel still has when the process is killed."""
    with running("questdb", place) as (system, endpoint):
        made = workload(rate=2000.0, batch=50)
        made.load(runners(), endpoint, seed=1)
        runner = runners()
        killing = threading.Timer(1.5, os.kill, (endpoint.processes["questdb"], signal.SIGKILL))
        killing.start()
        with pytest.raises(RunError, match=r"connection_lost|connect"):
            made.drive(runner, endpoint, seed=1)
        killing.join()
        with pytest.raises(RunError):
            system.stop(LIMIT_S)
        system.start(2, LIMIT_S)
        endpoint = system.ready(LIMIT_S)
        checked = made.check(runner, endpoint, seed=1)
        assert 500 < checked.status["ledger.acknowledged"] < 9 * ROWS
        assert checked.status["ledger.lost"] == 0
        # What was in doubt is looked for row by row, so that those that arrived stand for none that is lost.
        rows = tsbs_figures.doubtful_of(runner.folder / "ingest")
        assert 0 < sum(map(len, rows.values())) <= 50
        arrived = sum(tsbs_figures.landed(endpoint, table, of, LIMIT_S) for table, of in rows.items())
        assert arrived == checked.status["ledger.phantom"]
        assert sum(counts(endpoint).values()) == checked.status["ledger.acknowledged"] + arrived
        # A row that was acknowledged and is gone is told, whatever took it.
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            connection.rows("TRUNCATE TABLE redis")
        checked = made.check(runner, endpoint, seed=1)
        assert checked.status["ledger.lost"] > 50
        assert "that were acknowledged are absent" in str(checked.wrong)


def is_silent(connection: sql.Connection) -> bool:
    try:
        connection.rows("SELECT 1")
    except sql.SqlError:
        return True
    return False


@pytest.mark.parametrize(
    ("name", "rows"), [("questdb", "committed_rows_total"), ("postgresql", "database.tup_inserted")]
)
def test_a_server_alone_is_struck_and_mended_while_rows_come(
    name: str, rows: str, place: Place, runners: Runners, workspace: Path
) -> None:
    with running(name, place) as (system, endpoint):
        assert isinstance(system, LoneServer)
        assert system.why_not_struck(system.options, "cut") is not None
        made = workload(rate=1500.0, batch=50, retry="60 s")
        made.load(runners(), endpoint, seed=1)
        (node,) = system.nodes()
        assert (node.role, {node.name: node.pid}) == ("primary", endpoint.processes)

        def strike() -> None:
            struck = system.strike(Fault(kind="kill"), random.Random(1))
            until(lambda: system.nodes()[0].pid is None)
            assert not system.whole()
            with pytest.raises(RunError, match="there is no primary to be struck"):
                system.strike(Fault(kind="freeze"), random.Random(1))
            system.mend(struck, LIMIT_S)

        runner = runners()
        observer = make_observer("database", place.host, place.core, workspace, hz=10)
        assert isinstance(observer, DatabaseObserver)
        observer.looks_at(system.counters, lambda: system.is_struck)
        observer.start(LIMIT_S)
        with ThreadPoolExecutor() as pool:
            striking = pool.submit(lambda: (threading.Event().wait(1.5), strike()))
            measured = made.drive(runner, endpoint, seed=1)
            striking.result()
        assert system.whole()
        # It is observed before its death and after it, and that it counts from 0 then is no fall.
        until(lambda: len({reading.connection for reading in observer._readings[-2:]} - {0}) == 1)
        observed = observer.stop(LIMIT_S)
        assert observed.filter(observed["metric"] == rows)["value"].max() > 0
        assert system.processes() != endpoint.processes
        assert measured.status["tsbs.resent"] > 0
        checked = made.check(runner, endpoint, seed=1)
        assert (checked.wrong, checked.status["ledger.acknowledged"]) == (None, 9 * ROWS)
        assert min(system.status().values()) >= 0, "it counts from 0 since it came back"
        with sql.connect(system._endpoint, limit=1.0) as connection:
            connection.rows("SELECT 1")
            frozen = system.strike(Fault(kind="freeze"), random.Random(1))
            # Nobody is answered any more, whoever was connected before neither.
            assert is_silent(connection)
        assert not system.whole()
        system.mend(frozen, LIMIT_S)
        until(system.whole)
        # What is struck and not mended ends with it, and is no error of its own.
        system.strike(Fault(kind="kill"), random.Random(1))
        system.stop(LIMIT_S)
        assert system.running is None


@pytest.mark.parametrize("name", ["questdb", "postgresql"])
def test_rows_in_doubt_are_found_one_by_one(name: str, place: Place, runners: Runners) -> None:
    with running(name, place) as (_, endpoint):
        loaded(workload(), endpoint, runners)
        start = 1451606400_000
        there = {("host_0", start), ("host_1", start + 10 * 60_000)}
        absent = {("host_0", start + 1), ("host_9", start)}
        assert tsbs_figures.landed(endpoint, "cpu", there | absent, LIMIT_S) == 2


def test_postgresql_takes_rows_by_copy_and_what_it_acknowledged_outlives_its_death(
    place: Place, runners: Runners
) -> None:
    with running("postgresql", place) as (system, endpoint):
        measured = loaded(workload(workers=2, batch=300), endpoint, runners)
        assert counts(endpoint) == dict.fromkeys(tsbs_stores.TABLES, ROWS)
        assert measured.status["tsbs.acknowledged"] == 9 * ROWS
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            first = connection.rows(
                "SELECT hostname, usage_user, extract(epoch from ts)::bigint FROM cpu ORDER BY ts, hostname LIMIT 1"
            )
        assert first == [("host_0", 47, 1451606400)]
        empty(endpoint)
        made = workload(rate=2000.0, batch=50)
        made.load(runners(), endpoint, seed=1)
        runner = runners()
        killing = threading.Timer(1.5, os.kill, (next(iter(endpoint.processes.values())), signal.SIGKILL))
        killing.start()
        with pytest.raises(RunError):
            made.drive(runner, endpoint, seed=1)
        killing.join()
        with pytest.raises(RunError):
            system.stop(LIMIT_S)
        system.start(2, LIMIT_S)
        checked = made.check(runner, system.ready(LIMIT_S), seed=1)
        assert checked.status["ledger.acknowledged"] > 500
        assert checked.status["ledger.lost"] == 0


def test_duckdb_copies_files_in(place: Place, runners: Runners) -> None:
    # DuckDB refuses a place with a question mark in its path, as the others' here has.
    plain = replace(place, data=place.data.parent.parent / "live")
    odd = place.host.temporary_folder(place.data.parent.parent / "it's [1]*")  # which a pattern of files would be
    with running("duckdb", plain) as (_, endpoint):
        made = workload(workers=2)
        made.load(runners(), endpoint, seed=1)
        measured = made.drive(PlainRunner(place.host, place.core, odd / "run"), endpoint, seed=1)
        assert counts(endpoint) == dict.fromkeys(tsbs_stores.TABLES, ROWS)
        found = measured.responses
        parts = measured.status["tsbs.csv_written_s"] + measured.status["tsbs.copied_s"]
        assert 0 < 0.99 * parts <= found["loader_time"] <= found["elapsed"]
        assert found["cpu_per_op"] > 0


def test_tsbs_asks_its_queries_and_asks_them_while_rows_come(place: Place, runners: Runners) -> None:
    with running("questdb", place) as (_, endpoint):
        asked = {"queries": ["single-groupby-1-1-1"], "query_count": 20, "query_workers": 2}
        made = workload(action="queries", **asked)
        made.load(runners(), endpoint, seed=1)
        measured = made.drive(runners(), endpoint, seed=1)
        assert (
            measured.responses["latency_p50"] <= measured.responses["latency_p99"] <= measured.responses["latency_max"]
        )
        assert measured.responses["throughput"] > 0
        assert "adds an index" in " ".join(measured.notes)
        empty(endpoint)
        made = workload(action="mixed", rate=3000.0, batch=100, mixed_end="2016-01-04", **asked)
        made.load(runners(), endpoint, seed=1)
        runner = runners()
        measured = made.drive(runner, endpoint, seed=1)
        assert measured.responses["throughput"] < 3300
        assert measured.responses["single-groupby-1-1-1.latency_p99"] > 0
        assert 0 < measured.status["tsbs.overlap"] <= 1
        assert made.check(runner, endpoint, seed=1).wrong is None
        assert sum(counts(endpoint).values()) == 9 * ROWS * 3 // 2


QUERIES = Path(__file__).parents[2] / "studies" / "queries" / "time-series.yaml"


@pytest.mark.parametrize("name", ["questdb", "postgresql"])
def test_dyno_asks_its_queries_while_rows_come_for_just_as_long(name: str, place: Place, runners: Runners) -> None:
    tables = {"tables": {"partition_by": "month", "index": "hostname"}}
    given = {
        "file": QUERIES.name,
        "text": QUERIES.read_text(),
        "queries": ["single-groupby-1-1-1", "groupby-orderby-limit"],
        "singly": False,
        "batch": 200,
        "data": {"source": "tsbs", "end": "2016-01-03T00:00:00Z"},
    }
    with running(name, place, **tables) as (_, endpoint):
        made = QueriesWorkload(QueriesOptions.model_validate({**given, "ingest": {"rate": 2000.0, "batch": 100}}))
        made.load(runners(), endpoint, seed=1)
        runner = runners()
        measured = made.drive(runner, endpoint, seed=1)
        found, status = measured.responses, measured.status
        # Of what came until the loader was told to end: 5 % of the batches may be missing, or one that was not sent,
        # and besides one that may not be whole, and a part of another.
        due = status["ingest.batches_due"]
        assert found["ingest.throughput"] == pytest.approx(2000, rel=(max(0.05 * due, 1) + 2) / due)
        assert found["ingest.latency_p50"] > 0  # higher ones are not known where a batch was due and never sent
        assert found["b.single-groupby-1-1-1.latency_p99"] > 0
        assert status["ingest.overlap"] > 0.95
        checked = made.check(runner, endpoint, seed=1)
        assert (checked.wrong, checked.status["ledger.lost"]) == (None, 0)
        # What was in doubt when it was told to end may be there or not.
        came = sum(counts(endpoint).values()) - 9 * ROWS
        assert status["ingest.acknowledged"] <= came <= status["ingest.sent"]
        # The questions are of the time before these rows: they have the same answers once nothing comes any more.
        again = QueriesWorkload(QueriesOptions.model_validate(given)).drive(runners(), endpoint, seed=1)
        assert measured.answers is not None
        assert again.answers is not None
        assert measured.answers["digest"].to_list() == again.answers["digest"].to_list()
        # Rows that run out are no rows that come.
        short = {**given, "ingest": {"rate": 20_000.0, "length": "8 d"}}
        with pytest.raises(InvalidRun, match="of the batches only"):
            QueriesWorkload(QueriesOptions.model_validate(short)).drive(runners(), endpoint, seed=1)


def test_what_tsbs_says_when_it_fails_is_told_in_one_line(place: Place, runners: Runners) -> None:
    with running("questdb", place) as (_, endpoint):
        made = workload(loader="tsbs")
        loaded(made, endpoint, runners)
        # It refuses a store that has the table already.
        with pytest.raises(RunError, match="cpu table already exists") as caught:
            made.drive(runners(), endpoint, seed=1)
        assert "\n" not in str(caught.value)
