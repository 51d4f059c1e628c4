"""What every system must do, whatever it is. A kind of another package is tried too where it is installed."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dyno import sql
from dyno.lab import Rooms
from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import Endpoint
from dyno.systems.base import Place, System
from dyno.systems.cluster import Cluster
from dyno.systems.server import ServerSystem
from dyno.workloads.base import Measured, Workload
from tests.contract.conftest import LIMIT_S, PlainRunner

ROOMS = Rooms.open()
# The least of each workload's options that makes it one; a kind that needs none is not listed.
SMALL: dict[str, dict[str, Any]] = {
    "ycsb": {"mix": "a", "records": 200, "operations": 300},
    "null": {"operations": 100},
    "tpcc": {"warehouses": 1, "items": 200, "customers_per_district": 30, "operations": 60},
    "ledger": {"operations": 100},
    "filebench": {"file": "varmail", "set": {"files": 20, "nthreads": 2}, "duration": "300 ms", "interval": "100 ms"},
    "fio": {"text": "[mixed]\nrw=randrw\nsize=1m\nbs=4k\nnumjobs=2"},
    "crash": {"steps": 100, "cuts": 1, "prefill": "10%"},
    "sysbench": {"test": "oltp_read_write", "table_size": 100, "events": 30},
    "go-ycsb": {"mix": "a", "records": 200, "operations": 300},
    "ycsb-java": {"mix": "a", "records": 200, "operations": 300},
    "tsbs": {"scale": 2, "interval": "10 min", "end": "2016-01-03"},
    "queries": {
        "text": "title: one\nqueries:\n  max:\n    title: by host\n    determinate:\n      columns: {most: number}\n"
        "      default: SELECT max(usage_user) AS most FROM cpu",
        "data": {"hosts": 1, "interval": "1 h", "end": "2016-01-02T00:00:00Z"},
    },
}
# Of servers, what makes copies of their data small and quick; each is tried in one way of reaching it here.
LEAST: dict[str, dict[str, Any]] = {
    "mariadb": {"innodb_log_file_size": "8M", "innodb_flush_method": "O_DIRECT", "innodb_doublewrite": False},
    "mysql": {"innodb_redo_log_capacity": "8M", "log_bin": False, "performance_schema": False, "sql_mode": "ANSI"},
    "filesystem": {"size": "32 MiB", "data": "journal", "journal_size": "4 MiB", "commit": "7 s", "barrier": False},
    "recorded-filesystem": {"size": "16 MiB", "data": "writeback", "barrier": True},
    "postgresql": {"connect": "tcp", "shared_buffers": "32MB", "wal_buffers": "1MB", "data_checksums": True},
}
# Besides the defaults of each kind.
CONFIGURED: list[tuple[str, dict[str, Any]]] = [
    ("sqlite", {"journal_mode": "wal", "synchronous": "off", "cache_size": "2 MiB", "page_size": "8 KiB"}),
    ("sqlite", {"journal_mode": "delete", "locking_mode": "exclusive", "mmap_size": "1 MiB", "check": "full"}),
    ("filesystem", {"type": "xfs", "size": "300 MiB", "journal_size": "64 MiB", "discard": False}),
    ("filesystem", {"type": "btrfs", "size": "110 MiB", "commit": "10 s", "discard": True}),
    ("filesystem", {"type": "overlay", "size": "16 MiB", "journal": "none"}),
    ("simulated", {"noise": "lognormal", "rho": 0.5, "cov": "10%"}),
]
# Clusters take ten seconds and more to form, and have a suite of their own, test_clusters; so have stores that none of
# these workloads loads, test_time_series.
SINGLE = {
    name: kind
    for name, kind in ROOMS.systems.items()
    if not (issubclass(kind, Cluster) and not kind.lone) and kind.backend not in ("questdb", "duckdb")
}
EVERY: list[tuple[str, dict[str, Any]]] = [(kind, LEAST.get(kind, {})) for kind in sorted(SINGLE)] + CONFIGURED


def options_of(kind: type[Any], options: dict[str, Any]) -> Frozen:
    made: Frozen = kind.Options.model_validate(options)
    return made


def workload_for(backend: str, *, with_data: bool = True) -> Workload[Any]:
    """One that can drive this backend; one that loads data where there is one."""
    able = [kind for kind in ROOMS.workloads.values() if backend in kind.backends]
    assert able, f"no workload drives {backend}"
    chosen = max(able, key=lambda kind: (bool(kind.load is not Workload.load) == with_data, kind.kind == "ycsb"))
    return chosen(options_of(chosen, SMALL.get(chosen.kind, {})))


@pytest.fixture(params=EVERY, ids=lambda each: f"{each[0]}-{'-'.join(map(str, each[1].values())) or 'default'}")
def system(request: pytest.FixtureRequest, place: Place) -> Iterator[System[Any]]:
    name, options = request.param
    kind = ROOMS.systems[name]
    made = kind(options_of(kind, options), place)
    made.provision(LIMIT_S)
    yield made
    made.destroy()


Loaded = Callable[[], Workload[Any]]


@pytest.fixture
def load(system: System[Any], runners: Callable[[], PlainRunner]) -> Loaded:
    """Prepare the system and load it, as the lab does; it is stopped afterwards."""

    def carry_out() -> Workload[Any]:
        workload = workload_for(system.backend)
        system.prepare(LIMIT_S)
        system.start(0, LIMIT_S)
        workload.load(runners(), system.ready(LIMIT_S), seed=1)
        system.stop(LIMIT_S)
        return workload

    return carry_out


def driven(workload: Workload[Any], system: System[Any], runners: Callable[[], PlainRunner], seed: int) -> Measured:
    """As the lab does it: what each run needs is made first."""
    workload.populate(runners(), system.ready(LIMIT_S), seed=seed)
    return workload.drive(runners(), system.ready(LIMIT_S), seed=seed)


STATEMENTS = {
    "mysql": (
        "CREATE TRIGGER planted BEFORE UPDATE ON usertable FOR EACH ROW SET @slept = SLEEP(0.001)",
        "CREATE INDEX added ON usertable (field0(10))",
    ),
    "postgresql": ("CREATE INDEX added ON usertable (field0)", "ANALYZE usertable"),
    "sqlite": ("CREATE INDEX added ON usertable (field0)", "ANALYZE"),
}
INDEXES = {
    "mysql": "SELECT COUNT(*) FROM information_schema.statistics WHERE index_name = 'added'",
    "postgresql": "SELECT COUNT(*) FROM pg_indexes WHERE indexname = 'added'",
    "sqlite": "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND name = 'added'",
}


@pytest.mark.parametrize("name", [name for name, kind in SINGLE.items() if kind.backend in STATEMENTS])
def test_what_is_to_be_done_after_loading_is_done_once_and_is_part_of_its_data(
    name: str, place: Place, runners: Callable[[], PlainRunner]
) -> None:
    kind = ROOMS.systems[name]
    statements = STATEMENTS[kind.backend]
    system = kind(options_of(kind, {**LEAST.get(name, {}), "after_load": statements}), place)
    assert system.after_load() == statements
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    system.start(0, LIMIT_S)
    endpoint = system.ready(LIMIT_S)
    workload_for(system.backend).load(runners(), endpoint, seed=1)
    system.finish_load(endpoint, LIMIT_S)
    with pytest.raises(RunError, match=r"^after_load: .*(exists|CREATE).* \(asked: CREATE "):
        system.finish_load(endpoint, LIMIT_S)
    system.stop(LIMIT_S)
    system.start(1, LIMIT_S)
    with sql.connect(system.ready(LIMIT_S), limit=LIMIT_S) as connection:
        assert connection.value(INDEXES[system.backend]) == 1
    system.destroy()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_says_its_versions_as_text(system: System[Any]) -> None:
    versions = system.provision(LIMIT_S)
    assert all(isinstance(name, str) and version for name, version in versions.items())


def test_what_shapes_its_data_is_json_and_stays_the_same(system: System[Any]) -> None:
    again = type(system)(system.options, system.place)
    assert json.dumps(system.data_key(), sort_keys=True) == json.dumps(again.data_key(), sort_keys=True)


def test_it_is_ready_after_it_was_started_and_says_where(system: System[Any], load: Loaded) -> None:
    load()
    system.start(1, LIMIT_S)
    endpoint = system.ready(LIMIT_S)
    assert isinstance(endpoint, Endpoint)
    assert endpoint.backend == type(system).backend
    assert json.loads(json.dumps(endpoint.settings)) == endpoint.settings


def test_it_is_not_ready_where_it_was_not_started(system: System[Any], load: Loaded) -> None:
    # An embedded or null system has nothing to start: for it the same answer as after a start will do.
    load()
    try:
        endpoint = system.ready(LIMIT_S)
    except RunError:
        return
    system.start(1, LIMIT_S)
    assert system.ready(LIMIT_S) == endpoint


def test_restoring_a_snapshot_gives_the_data_that_were_kept(
    system: System[Any], load: Loaded, runners: Callable[[], PlainRunner], workspace: Path
) -> None:
    workload = load()
    system.snapshot(workspace / "snapshot", LIMIT_S)
    kept = contents(system.place.data)
    assert contents(workspace / "snapshot") == kept
    system.start(1, LIMIT_S)
    driven(workload, system, runners, seed=2)
    system.stop(LIMIT_S)
    (system.place.data / "stray").write_bytes(b"left by a run")
    system.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    assert contents(system.place.data) == kept
    assert contents(workspace / "snapshot") == kept
    system.check(LIMIT_S)


def test_it_can_be_driven_again_after_a_restore(
    system: System[Any], load: Loaded, runners: Callable[[], PlainRunner], workspace: Path
) -> None:
    workload = load()
    system.snapshot(workspace / "snapshot", LIMIT_S)
    for run in (1, 2):
        system.restore(workspace / "snapshot", LIMIT_S, reflink=False)
        system.start(run, LIMIT_S)
        measured = driven(workload, system, runners, seed=1)
        system.stop(LIMIT_S)
        assert measured.complete
        assert measured.responses["throughput"] > 0
        system.check(LIMIT_S)


def test_every_setting_that_is_asked_for_is_effective(
    system: System[Any], load: Loaded, runners: Callable[[], PlainRunner]
) -> None:
    workload = load()
    system.start(1, LIMIT_S)
    measured = driven(workload, system, runners, seed=1)
    system.stop(LIMIT_S)
    reported = {**measured.settings, **system.settings()}
    effective = {name: reported.get(name) for name in system.asked()}
    assert effective == system.asked()


def test_its_status_is_finite_numbers(system: System[Any], load: Loaded) -> None:
    load()
    system.start(1, LIMIT_S)
    system.ready(LIMIT_S)
    status = system.status()
    system.stop(LIMIT_S)
    assert all(isinstance(value, float) and math.isfinite(value) for value in status.values())


def test_its_data_files_are_files_below_its_folder(system: System[Any], load: Loaded) -> None:
    assert system.data_files() == []
    load()
    files = system.data_files()
    assert all(path.is_file() and path.is_relative_to(system.place.data) for path in files)
    assert len(files) == len(contents(system.place.data))


def test_stopping_twice_and_before_the_start_is_no_error(system: System[Any], load: Loaded) -> None:
    system.stop(LIMIT_S)
    load()
    system.start(1, LIMIT_S)
    system.stop(LIMIT_S)
    system.stop(LIMIT_S)


def test_preparing_again_gives_an_empty_store(system: System[Any], load: Loaded) -> None:
    load()
    system.prepare(LIMIT_S)
    if isinstance(system, ServerSystem):
        system.start(1, LIMIT_S)
        with sql.connect(system.ready(LIMIT_S), limit=LIMIT_S) as connection:
            assert tables(connection) == 0
        system.stop(LIMIT_S)
    else:
        assert b"".join(contents(system.place.data).values()) == b""


def tables(connection: sql.Connection) -> int:
    found = connection.value("SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('dyno', 'public')")
    return int(found)


def test_restoring_a_snapshot_that_does_not_exist_is_a_run_error(
    system: System[Any], load: Loaded, workspace: Path
) -> None:
    load()
    with pytest.raises(RunError):
        system.restore(workspace / "no such snapshot", LIMIT_S, reflink=False)


def test_a_snapshot_over_an_earlier_one_is_a_run_error_and_the_earlier_one_stays(
    system: System[Any], load: Loaded, workspace: Path
) -> None:
    load()
    system.snapshot(workspace / "snapshot", LIMIT_S)
    before = contents(workspace / "snapshot")
    with pytest.raises(RunError):
        system.snapshot(workspace / "snapshot", LIMIT_S)
    assert contents(workspace / "snapshot") == before


def test_a_restore_past_its_limit_is_a_run_error(system: System[Any], load: Loaded, workspace: Path) -> None:
    load()
    if not contents(system.place.data):
        (system.place.data / "file").write_bytes(b"x")
    system.snapshot(workspace / "snapshot", LIMIT_S)
    with pytest.raises(RunError, match="longer than the study allows"):
        system.restore(workspace / "snapshot", -1.0, reflink=False)


def test_destroying_leaves_nothing_and_may_be_done_twice(system: System[Any], load: Loaded) -> None:
    load()
    system.destroy()
    assert not system.place.data.exists()
    system.destroy()


# ---- SQLite alone


def sqlite(place: Place, **options: Any) -> System[Any]:
    kind = ROOMS.systems["sqlite"]
    return kind(options_of(kind, options), place)


def test_damage_of_a_sqlite_file_is_found(place: Place, runners: Callable[[], PlainRunner]) -> None:
    system = sqlite(place, page_size="4 KiB", check="full")
    system.prepare(LIMIT_S)
    system.start(0, LIMIT_S)
    workload_for("sqlite").load(runners(), system.ready(LIMIT_S), seed=1)
    system.check(LIMIT_S)
    file = max(system.data_files(), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[4096 * 3 : 4096 * 5] = b"\xa5" * 8192
    file.write_bytes(data)
    with pytest.raises(RunError, match="PRAGMA integrity_check"):
        system.check(LIMIT_S)


def test_a_check_of_a_sqlite_file_past_its_limit_is_a_run_error(
    place: Place, runners: Callable[[], PlainRunner]
) -> None:
    system = sqlite(place, check="full")
    system.prepare(LIMIT_S)
    system.start(0, LIMIT_S)
    kind = ROOMS.workloads["ycsb"]
    workload = kind(options_of(kind, {"mix": "c", "records": 20_000, "operations": 1}))
    workload.load(runners(), system.ready(LIMIT_S), seed=1)
    with pytest.raises(RunError, match="PRAGMA integrity_check: interrupted"):
        system.check(0.0)


def test_a_cell_that_leaves_the_journal_mode_alone_does_not_get_the_wal_of_another(place: Place) -> None:
    # WAL is kept in the file: loaded by the cell that sets it, the default cell of the same study was measured in WAL.
    default, wal, delete = (sqlite(place, **o) for o in ({}, {"journal_mode": "wal"}, {"journal_mode": "delete"}))
    assert default.data_key() != wal.data_key()
    assert wal.data_key() == delete.data_key()


@pytest.mark.parametrize("check", ["quick", "full"])
def test_damage_in_a_database_is_found_after_the_run(check: str, place: Place) -> None:
    kind = ROOMS.systems["sqlite"]
    system = kind(options_of(kind, {"check": check}), place)
    system.prepare(LIMIT_S)
    file = place.data / "data.db"
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT)")
        database.executemany("INSERT INTO t(v) VALUES (?)", [("x" * 500,) for _ in range(200)])
        database.commit()
    system.check(LIMIT_S)
    whole = bytearray(file.read_bytes())
    whole[3 * 4096 : 3 * 4096 + 200] = b"\xff" * 200
    file.write_bytes(whole)
    with pytest.raises(RunError, match=f"PRAGMA {'quick' if check == 'quick' else 'integrity'}_check"):
        system.check(LIMIT_S)
    system.destroy()
