"""What systems for time series must do, on the real servers: tables as asked for, rows that can be read, bytes at rest.

QuestDB takes seconds to start, so that each start serves several questions; single servers of tables besides have all
of `test_systems` and `test_servers` too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dyno import ddl, sql
from dyno.hosts import files, java, undo
from dyno.hosts.local import core_binary
from dyno.model.base import InvalidRun, RunError
from dyno.model.devops import MEASUREMENTS, TIME
from dyno.model.endpoint import Endpoint
from dyno.systems.base import Place
from dyno.systems.server import ServerSystem
from dyno.systems.tabled import AT_REST, LOG_AT_REST, Tabled
from tests.contract.conftest import LIMIT_S
from tests.contract.test_systems import ROOMS, contents, options_of
from tests.making import until

KINDS = ("questdb", "duckdb", "postgresql")
HOSTS, DAYS = 5, 40
ROWS = HOSTS * DAYS
# Of each: small, and with all that its tables can have.
LAID_OUT: dict[str, dict[str, Any]] = {
    "questdb": {"heap": "256 MiB", "tables": {"partition_by": "month", "index": ["hostname"], "deduplicate": True}},
    "duckdb": {"threads": 2, "memory_limit": "200MB", "tables": {"index": "hostname,rack", "deduplicate": True}},
    "postgresql": {"tables": {"partition_by": "month", "index": ["hostname"], "deduplicate": True}},
}
# One that the server does not know, and how that is told; of QuestDB it does not end for it.
UNKNOWN = {
    "questdb": ("cairo.no.such", InvalidRun, "cairo.no.such is not a setting that the server shows"),
    "duckdb": ("no_such", RunError, "duckdb ended with status 1 as it started: .*not recognized: no_such"),
}
FATAL = {
    "questdb": ({"cairo.wal.purge.interval": "often"}, "questdb ended with status .* as it started: .*invalid config"),
    "duckdb": ({"threads": "many"}, "duckdb ended with status 1 as it started: error: "),
}


class Store(Tabled, ServerSystem[Any]):
    """For types alone: what all of these are."""


def make(kind: str, place: Place, **options: Any) -> Store:
    found = ROOMS.systems[kind]
    made: Any = found(options_of(found, options), place)
    made.provision(LIMIT_S)
    made.prepare(LIMIT_S)
    return made  # type: ignore[no-any-return]


Maker = Callable[..., Store]


@pytest.fixture
def making(place: Place, workspace: Path) -> Iterator[Maker]:
    made: list[Store] = []
    (plain_folder := workspace / "a plain folder").mkdir()

    def new(kind: str, **options: Any) -> Store:
        if kind == "questdb" and java.QUESTDB.installed() is None:
            pytest.fail("QuestDB is missing: make tools")
        made.append(make(kind, replace(place, data=plain_folder / "live") if kind == "duckdb" else place, **options))
        return made[-1]

    yield new
    for each in made:
        with suppress(RunError):
            each.destroy()


def fill(endpoint: Endpoint, *, first: int = 0, days: int = DAYS) -> None:
    rows = ", ".join(
        f"('{datetime.fromtimestamp(86400 * (16801 + first + day), UTC):%Y-%m-%dT%H:%M:%SZ}', 'host_{host}', {day})"
        for day in range(days)
        for host in range(HOSTS)
    )
    time_column = TIME[endpoint.backend]
    sql.ask(endpoint, f"INSERT INTO cpu ({time_column}, hostname, usage_user) VALUES {rows}")


def processes_called_with(marker: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if marker in (text := path.read_text(errors="replace")):
                found.append(text)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_as_asked_for_and_rows_can_be_read_once_they_are_said_to_be(
    kind: str, making: Maker, workspace: Path
) -> None:
    store = making(kind, **LAID_OUT[kind])
    store.start(0, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    assert endpoint.tables == store.design()
    for table in MEASUREMENTS:
        assert store.statements(table) == ddl.of(endpoint, table)
        for statement in ddl.of(endpoint, table):
            sql.ask(endpoint, statement)
    source = store.counters(LIMIT_S)
    assert source is not None
    before = source.read()
    fill(endpoint)
    assert store.visible("cpu", ROWS, LIMIT_S) == ROWS
    after = source.read()
    source.close()
    if kind != "duckdb":  # it counts nothing but its memory
        assert any(after.grown[name] >= before.grown[name] + ROWS for name in before.grown)
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        found = store.read_tables(connection)
        assert set(found) == set(MEASUREMENTS)
        assert all(each == {key: store.design()[key] for key in each} for each in found.values())
        assert all(len(each) == len(store.design()) for each in found.values())
        time_column = TIME[kind]
        answer = connection.ask(
            f"SELECT hostname, min({time_column}) AS begun, sum(usage_user) AS used FROM cpu "
            "WHERE hostname <> %s GROUP BY hostname ORDER BY hostname",
            "host_0",
        )
        assert answer.columns == ("hostname", "begun", "used")
        assert answer.rows[0] == ("host_1", datetime(2016, 1, 1, tzinfo=UTC), sum(range(DAYS)))
        assert len(answer.rows) == HOSTS - 1
        with pytest.raises(sql.SqlError, match=r"no_such_table.*\(asked: SELECT "):
            connection.rows("SELECT * FROM no_such_table")
        assert connection.value("SELECT count(*) FROM cpu") == ROWS, "the connection can be used after an error"
    with pytest.raises(sql.SqlError, match=f"{ROWS} of {ROWS + 1} rows of cpu can be read after 2 s"):
        store.visible("cpu", ROWS + 1, 2.0)
    settings = store.settings()
    assert settings["tables.deduplicate"] is True
    assert {name: settings.get(name) for name in store.asked()} == store.asked()
    assert all(isinstance(value, float) for value in store.status().values())
    running = store.live_bytes()
    store.stop(LIMIT_S)
    store.check(LIMIT_S)
    at_rest = store.at_rest()[AT_REST]
    assert at_rest > 10_000
    log = store.at_rest()[LOG_AT_REST]
    assert files.bytes_on_disk(store.place.data) == at_rest + log
    if kind == "postgresql":  # QuestDB may have removed its own by now
        assert log >= 16 * 2**20, "a segment is as large"
    if kind == "questdb":
        assert at_rest < running / 2, "its files are preallocated while it runs"
    kept = contents(store.place.data)
    store.snapshot(workspace / "snapshot", LIMIT_S)

    # On the same data, a run that wants other tables is invalid, and one that wants these is not.
    store.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    assert contents(store.place.data) == kept
    other = ROOMS.systems[kind]
    wrong: Any = other(options_of(other, {**LAID_OUT[kind], "tables": {"deduplicate": True}}), store.place)
    assert wrong.data_key() != store.data_key()
    wrong.start(1, LIMIT_S)
    try:
        with pytest.raises(InvalidRun, match=r"tables.(partition_by|index) of \w+ is [\w, ]+, the study asks for \w+"):
            wrong.ready(LIMIT_S)
    finally:
        wrong.stop(LIMIT_S)
    store.start(2, LIMIT_S)
    assert store.ready(LIMIT_S).settings.keys() == endpoint.settings.keys()
    assert store.visible("cpu", ROWS, LIMIT_S) == ROWS
    # The same rows again: they replace what is there, or are refused.
    with suppress(sql.SqlError):
        fill(store.ready(LIMIT_S))
    assert store.visible("cpu", ROWS, LIMIT_S) == ROWS
    pid = next(iter(store.ready(LIMIT_S).processes.values()))
    store.stop(LIMIT_S)
    assert not Path(f"/proc/{pid}").exists()
    store.destroy()
    assert not store.place.data.exists()


@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_setting_that_is_none_and_one_that_it_cannot_start_with_are_told(kind: str, making: Maker) -> None:
    name, error, said = UNKNOWN[kind]
    store = making(kind, **{name: 1})
    store.start(1, LIMIT_S)
    with pytest.raises(error, match=said):
        store.ready(LIMIT_S)
    store.stop(LIMIT_S)
    options, said = FATAL[kind]
    store = making(kind, **options)
    store.start(1, LIMIT_S)
    with pytest.raises(RunError, match=said):
        store.ready(LIMIT_S)
    store.stop(LIMIT_S)


@pytest.mark.parametrize("kind", ["questdb", "duckdb"])
def test_one_that_is_killed_comes_back_with_what_was_synced_and_its_death_is_told(kind: str, making: Maker) -> None:
    synced = {"cairo.commit.mode": "sync"} if kind == "questdb" else {}
    store = making(kind, stop="kill", **synced)
    store.start(1, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    for statement in ddl.of(endpoint, "cpu"):
        sql.ask(endpoint, statement)
    fill(endpoint)
    assert store.visible("cpu", ROWS, LIMIT_S) == ROWS
    (pid,) = endpoint.processes.values()
    assert store.status()["recovery_s"] > 0
    assert store.running is not None
    assert store.running.pid != pid
    assert not Path(f"/proc/{pid}").exists()
    assert store.visible("cpu", ROWS, LIMIT_S) == ROWS
    fill(endpoint, first=DAYS)
    assert store.visible("cpu", 2 * ROWS, LIMIT_S) == 2 * ROWS
    folder = store._folder
    os.kill(store.running.pid, signal.SIGKILL)
    os.waitid(os.P_PID, store.running.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(RunError, match=r"was killed by SIGKILL$"):
        store.stop(LIMIT_S)
    store.stop(LIMIT_S)
    assert folder is not None
    assert not folder.exists()


@pytest.mark.parametrize("kind", ["questdb", "duckdb"])
def test_a_journal_that_nobody_holds_ends_it(kind: str, making: Maker) -> None:
    store = making(kind)
    store.start(1, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    folder, process = store._folder, store.running
    assert folder is not None
    assert process is not None
    # What `dyno clean` does with the journal of a session that was killed.
    undo._undo(undo.Change("server", {"marker": store.marker(folder), "undo_by": store.undo_by.name}))
    assert process.wait(LIMIT_S) is not None
    with pytest.raises(sql.SqlError):
        sql.connect(endpoint, limit=1)


HELD = """
import sys, time
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from dyno.lab import Rooms
from dyno.systems.base import Place

kind, folder, core = sys.argv[1:]
with UndoJournal() as journal:
    host = LocalHost(journal)
    place = Place(host=host, data=host.temporary_folder(Path(folder) / "held") / "live", logs=Path(folder), core=core)
    system = Rooms.open().systems[kind]
    store = system(system.Options(), place)
    store.provision(60)
    store.prepare(60)
    store.start(1, 60)
    store.ready(60)
    print(store._folder, flush=True)
    time.sleep(120)
"""


@pytest.mark.parametrize("kind", ["questdb", "duckdb"])
def test_nothing_of_it_is_left_after_a_kill_of_dyno(kind: str, tmp_path: Path) -> None:
    """A Java that is killed left the libraries that it had unpacked, 45 MB of each node of CrateDB."""
    unpacked = set(Path("/tmp").glob("lib*.so"))
    words = [sys.executable, "-c", HELD, kind, str(tmp_path), core_binary()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as dyno:
        assert dyno.stdout is not None
        folder = dyno.stdout.readline().strip()
        assert processes_called_with(folder)
        dyno.kill()
    # Whatever dyno dies of, who watches over its end tells the server.
    until(lambda: not processes_called_with(folder))
    undo.clean()
    assert not Path(folder).exists()
    assert not (tmp_path / "held").exists()
    assert set(Path("/tmp").glob("lib*.so")) <= unpacked


def test_questdb_shows_rows_by_its_line_protocol_over_tcp_and_http(making: Maker) -> None:
    import socket
    from http.client import HTTPConnection

    store = making("questdb", tables={"partition_by": "month"})
    store.start(1, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    lines = "".join(f"cpu,hostname=h{n} usage_user={n}i {1451606400000000000 + n}\n" for n in range(100))
    with socket.create_connection((endpoint.settings["host"], endpoint.settings["ilp_port"])) as line:
        line.sendall(lines.encode())
        # Nothing is acknowledged here: only what can be read tells.
        assert store.visible("cpu", 100, LIMIT_S) == 100
    http = HTTPConnection(endpoint.settings["host"], endpoint.settings["port"], timeout=LIMIT_S)
    http.request("POST", "/write?precision=n", lines.replace("cpu,", "mem,"))
    assert http.getresponse().status == 204
    http.close()
    assert store.visible("mem", 100, LIMIT_S) == 100
    # A loader's own tables are as the study has them too.
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        found = store.read_tables(connection)
    assert {table: each["partition_by"] for table, each in found.items()} == {"cpu": "month", "mem": "month"}
    assert store.status()["wal_pending_transactions"] == 0
    store.stop(LIMIT_S)


def test_a_folder_in_which_duckdb_loses_its_log_is_named_before_anything_is_done(place: Place) -> None:
    with pytest.raises(RunError, match=r"DuckDB cannot keep its log below .*/100% a#b\?, .*--work"):
        make("duckdb", place)


def test_clients_of_duckdb_work_beside_one_another(making: Maker) -> None:
    store = making("duckdb", threads=1)
    store.start(1, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    with sql.connect(endpoint, limit=LIMIT_S) as one, sql.connect(endpoint, limit=LIMIT_S) as other:
        one.rows("CREATE TABLE t (k INTEGER)")
        one.many("INSERT INTO t VALUES (%s)", [(k,) for k in range(1000)])
        one._cursor()._stream.write(b'{"sql": "SELECT count(*) FROM range(60000), range(10000)"}\n')
        one._cursor()._stream.flush()
        begun = time.monotonic()
        assert other.value("SELECT count(*) FROM t") == 1000
        assert time.monotonic() - begun < LIMIT_S / 4
    store.stop(LIMIT_S)
