"""What servers say of themselves, on the real servers: figures that are known, by the observer `database`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dyno import sql
from dyno.deployments.native import NativeServer
from dyno.hosts import LocalHost
from dyno.model.base import InvalidRun, RunError
from dyno.model.counters import LOOKS
from dyno.model.endpoint import Endpoint
from dyno.observers.database import DatabaseObserver
from dyno.systems.base import Place
from dyno.systems.server import ServerSystem
from tests.contract.conftest import LIMIT_S
from tests.contract.test_observers import make as make_observer
from tests.contract.test_servers import SERVERS, make, pid_of
from tests.making import until

INSERTED = {"mariadb": "handler_write", "mysql": "innodb_rows_inserted", "postgresql": "database.tup_inserted"}
COMMITTED = {"mariadb": "com_insert", "mysql": "com_insert", "postgresql": "database.xact_commit"}
NAP = {"mariadb": "DO SLEEP(1.5)", "mysql": "DO SLEEP(1.5)", "postgresql": "SELECT pg_sleep(1.5)"}
NAP_S = 1.5
STATUS = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'"
# The last column of the row: INNODB_TRX is renewed only where nobody reads it for a while.
WAITS_NOW = {
    "mariadb": STATUS,
    "mysql": STATUS,
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
}
KILL = {"mariadb": "KILL {}", "mysql": "KILL {}", "postgresql": "SELECT pg_terminate_backend({})"}
PROCESSES = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER = 'dyno'"
OTHERS = {
    "mariadb": PROCESSES,
    "mysql": PROCESSES,
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE usename = 'dyno' AND pid <> pg_backend_pid()",
}
ROWS = 40
TEXT = "x" * 100


@pytest.fixture(params=SERVERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serve(place: Place) -> Iterator[Callable[..., tuple[ServerSystem[Any], Endpoint]]]:
    """Starts a server with a table `t`."""
    made: list[ServerSystem[Any]] = []

    def start(name: str, **options: Any) -> tuple[ServerSystem[Any], Endpoint]:
        server = make(name, place, **options)
        made.append(server)
        server.provision(LIMIT_S)
        server.prepare(LIMIT_S)
        server.start(1, LIMIT_S)
        endpoint = server.ready(LIMIT_S)
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            connection.rows("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))")
            connection.rows(f"INSERT INTO t VALUES (0, '{TEXT}')")
        all_left(name, endpoint)
        return server, endpoint

    yield start
    for server in made:
        with suppress(RunError):
            server.destroy()


@pytest.fixture
def watching(host: LocalHost, core: str, workspace: Path) -> Callable[..., DatabaseObserver]:
    def start(server: ServerSystem[Any], hz: float = 10, limit: float = LIMIT_S) -> DatabaseObserver:
        observer = make_observer("database", host, core, workspace, hz=hz)
        assert isinstance(observer, DatabaseObserver)
        observer.looks_at(server.counters, lambda: server.is_struck)
        observer.start(limit)
        return observer

    return start


def all_left(name: str, endpoint: Endpoint) -> None:
    """Wait until no client is there any more: PostgreSQL tells of one when it has left."""
    if name != "postgresql":
        return
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        until(lambda: not connection.rows(f"{OTHERS[name]} AND datname = current_database()"), LIMIT_S)


def looked(observer: DatabaseObserver, times: int) -> None:
    """Wait until it looked so often more."""
    wanted = len(observer._readings) + times
    until(lambda: len(observer._readings) >= wanted or observer._failure is not None, LIMIT_S)
    assert observer._failure is None, observer._failure


def amounts(samples: pl.DataFrame) -> dict[str, float]:
    """Metric -> sum over time of what grew."""
    times = samples.filter(pl.col("metric") == LOOKS).sort("time_ns")["time_ns"]
    spans = pl.DataFrame({"time_ns": times, "seconds": times.diff().cast(pl.Float64) / 1e9}).drop_nulls()
    summed = (
        samples.join(spans, on="time_ns")
        .group_by("metric")
        .agg((pl.col("value") * pl.col("seconds")).sum().alias("amount"))
    )
    return dict(summed.select("metric", "amount").iter_rows())


def insert(endpoint: Endpoint, rows: int) -> None:
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        for number in range(1, rows + 1):
            connection.rows(f"INSERT INTO t VALUES ({number}, '{TEXT}')")


def test_rows_commits_syncs_and_log_are_counted_as_they_were_made(
    name: str, serve: Callable[..., Any], watching: Callable[..., DatabaseObserver]
) -> None:
    server, endpoint = serve(name)
    observer = watching(server)
    insert(endpoint, ROWS)
    all_left(name, endpoint)
    looked(observer, 2)
    found = amounts(observer.stop(LIMIT_S))
    assert found[INSERTED[name]] == pytest.approx(ROWS)
    # Of PostgreSQL's transactions some are of who asks here.
    assert found[COMMITTED[name]] == pytest.approx(ROWS) or (name == "postgresql" and found[COMMITTED[name]] > ROWS)
    # Each commit of a single client is synced by itself; checkpoints and the like may come on top of it.
    assert ROWS <= found["server.syncs"] <= 3 * ROWS
    assert found["server.logged"] >= ROWS * len(TEXT)
    assert found["server.lock_wait"] == 0
    assert found["server.cache_reads"] >= ROWS


def test_who_asks_leaves_no_trace_and_what_was_taken_for_a_counter_never_falls(
    name: str, serve: Callable[..., Any], watching: Callable[..., DatabaseObserver]
) -> None:
    server, endpoint = serve(name)
    observer = watching(server)
    looked(observer, 5)
    samples = observer.stop(LIMIT_S)
    found = amounts(samples)
    of_clients = (
        "com_",
        "handler_",
        "questions",
        "queries",
        "created_tmp",
        "rows_",
        "select_",
        "database.xact",
        "sort_",
    )
    # Of all looks less than one leaves: one may send a row more than another.
    left = observer._traces
    told = {metric: amount for metric, amount in found.items() if metric.startswith(of_clients)}
    assert {metric for metric, amount in told.items() if amount > max(left.get(metric, 0.0), 0.5)} == set()
    assert samples.filter(pl.col("metric") == LOOKS).height >= 6
    source = server.counters(LIMIT_S)
    assert source is not None
    before = source.read()
    insert(endpoint, ROWS)
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        connection.rows("SELECT COUNT(*) FROM t")
        connection.rows("DROP TABLE t")
    after = source.read()
    source.close()
    assert {each for each in before.grown if after.grown.get(each, 0.0) < before.grown[each]} == set()
    assert len(before.grown) > 20


def test_a_wait_for_a_row_of_known_length_is_told(
    name: str, serve: Callable[..., Any], watching: Callable[..., DatabaseObserver]
) -> None:
    server, endpoint = serve(name)
    observer = watching(server)
    took: list[float] = []

    def wait_in_line() -> None:
        begun = time.monotonic()
        with sql.connect(endpoint, limit=LIMIT_S) as second:
            second.rows("UPDATE t SET v = 'second' WHERE id = 0")
        took.append(time.monotonic() - begun)

    with sql.connect(endpoint, limit=LIMIT_S) as first, sql.connect(endpoint, limit=LIMIT_S) as looking:
        first.rows("BEGIN")
        first.rows("UPDATE t SET v = 'first' WHERE id = 0")
        thread = threading.Thread(target=wait_in_line)
        thread.start()
        until(lambda: int(looking.rows(WAITS_NOW[name])[0][-1]) == 1, LIMIT_S)
        first.rows(NAP[name])
        first.rows("COMMIT")
        thread.join(LIMIT_S)
    looked(observer, 2)
    samples = observer.stop(LIMIT_S)
    found = amounts(samples)
    # Looked at now and then, it is seen to wait for as long as it does but for a look at each end; counted, it is
    # counted in milliseconds.
    times = samples.filter(pl.col("metric") == LOOKS).sort("time_ns")["time_ns"]
    longest = times.diff().drop_nulls().max()
    assert isinstance(longest, int)
    slack = 2 * longest / 1e9 if name == "postgresql" else 0.01
    assert NAP_S - slack <= found["server.lock_wait"] <= took[0] + slack
    waited = found["wait/lock" if name == "postgresql" else "wait/lock/row"]
    assert waited == pytest.approx(found["server.lock_wait"])
    if name != "postgresql":
        assert found["server.lock_waits"] == pytest.approx(1)
        # Without a performance schema the server keeps account of no other.
        assert {metric for metric in found if metric.startswith("wait/")} == {"wait/lock/row"}
        assert server.settings()["performance_schema"] in ("OFF", 0)


def test_a_server_that_dies_is_not_the_observers_error(
    name: str, serve: Callable[..., Any], watching: Callable[..., DatabaseObserver]
) -> None:
    server, endpoint = serve(name)
    observer = watching(server)
    looked(observer, 2)
    os.kill(pid_of(endpoint), signal.SIGKILL)
    until(lambda: observer._source is None, LIMIT_S)
    samples = observer.stop(LIMIT_S)
    assert samples.filter(pl.col("metric") == LOOKS).height >= 3, "what it said before is kept"
    with pytest.raises(RunError, match="was killed by SIGKILL"):
        server.stop(LIMIT_S)


def test_a_server_that_lives_and_does_not_answer_the_observer_fails_the_run(
    name: str,
    serve: Callable[..., Any],
    watching: Callable[..., DatabaseObserver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dyno.systems.server._DYING_TAKES_S", 0.1)
    server, _ = serve(name)
    observer = watching(server, limit=1.0)
    assert isinstance(server.running, NativeServer)
    server.running.process.send(signal.SIGSTOP)
    try:
        until(lambda: observer._failure is not None, LIMIT_S)
        with pytest.raises(RunError, match="the server could not be asked for its counters: "):
            observer.stop(LIMIT_S)
    finally:
        server.running.process.send(signal.SIGCONT)
    server.stop(LIMIT_S)


def test_a_connection_that_is_taken_from_the_observer_is_made_anew(
    name: str,
    serve: Callable[..., Any],
    watching: Callable[..., DatabaseObserver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dyno.systems.server._DYING_TAKES_S", 0.1)
    server, endpoint = serve(name)
    observer = watching(server)
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        for (other,) in connection.rows(OTHERS[name]):
            with suppress(RunError):  # it may be leaving
                connection.rows(KILL[name].format(other))
    until(lambda: observer._readings[-1].connection > 0, LIMIT_S)
    insert(endpoint, ROWS)
    all_left(name, endpoint)
    looked(observer, 2)
    assert amounts(observer.stop(LIMIT_S))[INSERTED[name]] == pytest.approx(ROWS, abs=0.01)
    server.stop(LIMIT_S)


@pytest.mark.parametrize("name", ["mariadb", "mysql"], indirect=True)
def test_waits_are_told_by_class_where_the_server_keeps_account_of_them_and_of_more_where_it_is_asked_to(
    name: str, serve: Callable[..., Any], watching: Callable[..., DatabaseObserver]
) -> None:
    mutexes = "wait/synch/mutex/%=ON"
    server, endpoint = serve(name, performance_schema=True, performance_schema_instrument=mutexes)
    observer = watching(server)
    insert(endpoint, ROWS)
    looked(observer, 2)
    found = {metric: amount for metric, amount in amounts(observer.stop(LIMIT_S)).items() if metric.startswith("wait/")}
    assert found["wait/lock/row"] == 0
    assert found["wait/synch/mutex"] > 0
    assert any(metric.startswith("wait/io/file/") for metric in found), found
    assert not {metric for metric in found if metric.startswith(("wait/io/table", "wait/io/socket"))}


@pytest.mark.parametrize("name", ["mariadb", "mysql"], indirect=True)
@pytest.mark.parametrize(("on", "events"), [(True, "wait/no_such/%=ON"), (False, "wait/synch/mutex/%=ON")])
def test_events_that_could_not_be_turned_on_make_the_run_invalid(
    name: str, on: bool, events: str, serve: Callable[..., Any]
) -> None:
    with pytest.raises(InvalidRun, match=r"performance_schema_instrument is .*, the study asks for wait/"):
        serve(name, performance_schema=on, performance_schema_instrument=events)
