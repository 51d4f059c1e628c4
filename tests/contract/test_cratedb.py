"""CrateDB, where a distribution of it is: it is in no registry, and nothing of this is tried without one.

Three nodes take twenty seconds to be one cluster on a busy machine, so that one life of them has nearly all of it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dyno import ddl, sql
from dyno.hosts import undo
from dyno.hosts.crate_home import VARIABLE
from dyno.hosts.local import core_binary
from dyno.model.base import InvalidRun, RunError
from dyno.model.devops import MEASUREMENTS
from dyno.model.endpoint import Endpoint
from dyno.model.faults import Fault, Struck
from dyno.observers.database import DatabaseObserver
from dyno.systems.base import Place
from dyno.systems.cratedb import CratedbOptions, CratedbSystem, counters_of
from dyno.systems.tabled import AT_REST
from dyno.workloads import tsbs_figures
from tests.contract.conftest import PlainRunner
from tests.contract.test_clusters import there_are
from tests.contract.test_observers import make as make_observer
from tests.contract.test_systems import contents
from tests.contract.test_time_series import HELD, processes_called_with
from tests.contract.test_tsbs import workload
from tests.making import until

pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"{VARIABLE} names no distribution of CrateDB, which is in no registry"
)

LIMIT_S = 180.0
HOSTS, DAYS = 5, 40
ROWS = HOSTS * DAYS
SMALL: dict[str, Any] = {"heap": "256 MiB"}
THREE: dict[str, Any] = {
    **SMALL,
    "nodes": 3,
    "merged": True,
    "indices.breaker.query.limit": "100mb",
    "tables": {"partition_by": "month", "shards": 3, "replicas": 1, "deduplicate": True},
}
Maker = Callable[..., CratedbSystem]


@pytest.fixture
def making(place: Place) -> Iterator[Maker]:
    made: list[CratedbSystem] = []

    def new(**options: Any) -> CratedbSystem:
        made.append(CratedbSystem(CratedbOptions.model_validate(options), place))
        made[-1].provision(LIMIT_S)
        made[-1].prepare(LIMIT_S)
        return made[-1]

    yield new
    for each in made:
        with suppress(RunError):
            each.destroy()


def fill(endpoint: Endpoint, *, days: int = DAYS) -> None:
    rows = [
        (datetime.fromtimestamp(86400 * (16801 + day), UTC), {"hostname": f"host_{host}"}, float(day))
        for day in range(days)
        for host in range(HOSTS)
    ]
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        for first in range(0, len(rows), 20):  # so that shards have segments to be merged
            connection.many("INSERT INTO cpu (ts, tags, usage_user) VALUES (%s, %s, %s)", rows[first : first + 20])
            connection.rows("REFRESH TABLE cpu")


def test_three_nodes_are_one_cluster_with_tables_as_asked_for_and_mend_what_is_struck(
    making: Maker, workspace: Path
) -> None:
    store = making(**THREE)
    store.start(0, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    assert set(endpoint.processes) == set(endpoint.others) == {"n1", "n2", "n3"}
    assert endpoint.tables == store.design()
    for pid in endpoint.processes.values():
        assert Path(f"/proc/{pid}").stat().st_uid != 0 or os.geteuid() != 0
    for table in MEASUREMENTS:
        for statement in ddl.of(endpoint, table):
            sql.ask(endpoint, statement)
    fill(endpoint)
    assert store.visible("cpu", ROWS, LIMIT_S) == ROWS
    first = 86400 * 16801 * 1000
    looked_for = {("host_0", first), ("host_4", first + 86400_000), ("host_0", first + 1), ("host_9", first)}
    assert tsbs_figures.landed(endpoint, "cpu", looked_for, LIMIT_S) == 2
    before = store.status()
    assert before["segments_most"] > 1
    store.finish_load(endpoint, LIMIT_S)
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        found = store.read_tables(connection)
        assert set(found) == set(MEASUREMENTS)
        assert all(dict(each) == dict(store.design()) for each in found.values())
        answer = connection.ask(
            "SELECT tags['hostname'] AS host, min(ts) AS begun, sum(usage_user) AS used FROM cpu "
            "WHERE tags['hostname'] <> %s GROUP BY 1 ORDER BY 1",
            "host_0",
        )
        assert answer.columns == ("host", "begun", "used")
        assert answer.rows[0] == ("host_1", datetime(2016, 1, 1, tzinfo=UTC), float(sum(range(DAYS))))
        with pytest.raises(sql.SqlError, match="nowhere"):
            connection.rows("SELECT * FROM nowhere")
        rows = [(1, {"hostname": "x"}, 1.0), (2, {"hostname": "x"}, "much")]
        with pytest.raises(sql.SqlError, match=r"\d+ of 2 rows were refused|[Cc]annot cast"):
            connection.many("INSERT INTO cpu (ts, tags, usage_user) VALUES (%s, %s, %s)", rows)
    assert {name: store.settings().get(name) for name in store.asked()} == store.asked()
    status = store.status()
    assert status["segments_most"] == 1
    assert sum(status[f"{name}.shards_rows"] for name in store.names) == 2 * ROWS  # with a replica of each
    assert status["jobs.insert"] >= 1
    source = store.counters(LIMIT_S)
    assert source is not None
    seen = source.read()
    source.close()
    assert {f"{name}.{what}" for name in store.names for what in ("load1", "heap_used_bytes", "shards_bytes")} <= {
        *seen.now
    }
    store.stop(LIMIT_S)
    at_rest = store.at_rest()
    assert at_rest[AT_REST] == sum(at_rest[f"at_rest.{name}.bytes"] for name in store.names) > 0
    kept = contents(store.place.data)
    store.snapshot(workspace / "snapshot", LIMIT_S)
    store.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    assert contents(store.place.data) == kept

    store.start(1, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    assert store.visible("cpu", ROWS, LIMIT_S) == ROWS
    assert store.whole()
    roles = [node.role for node in store.nodes()]
    assert sorted(roles) == ["primary", "secondary", "secondary"]
    struck = store.strike(Fault(kind="kill", node="secondary"), random.Random(1))
    (name,) = struck.nodes
    until(lambda: not Path(f"/proc/{endpoint.processes[name]}").exists() or not store._nodes[name].lives())
    assert not store.whole()
    other = next(each for each in store.names if each != name)
    with sql.connect(endpoint.by(other), limit=LIMIT_S) as connection:
        until(lambda: connection.value("SELECT count(*) FROM sys.nodes") == 2, LIMIT_S)
        connection.rows("INSERT INTO cpu (ts, tags) VALUES ('2016-02-01T12:00:00Z', {hostname = 'late'})")
        # The node that is away says nothing, and the others go on being observed.
        seen = counters_of(connection)
    there = {figure.partition(".")[0] for figure in seen.now if figure.endswith("heap_share")}
    assert there == set(store.names) - {name}
    assert not any(figure.startswith("None") for figure in seen.now)
    store.mend(struck, LIMIT_S)
    until(store.whole, LIMIT_S)
    assert store.processes()[name] != endpoint.processes[name]
    assert store.visible("cpu", ROWS + 1, LIMIT_S) == ROWS + 1
    observer = make_observer("database", store.place.host, store.place.core, workspace, hz=2)
    assert isinstance(observer, DatabaseObserver)
    observer.looks_at(store.counters, lambda: store.is_struck)
    observer.start(LIMIT_S)
    assert observer._readings[0].counters.by == " ".join(sorted(store.names))
    struck = store.strike(Fault(kind="freeze", node="primary"), random.Random(1))
    (frozen,) = struck.nodes
    assert not store.whole()
    # By whom it was asked so far may be the one that is silent now: another is asked then.
    until(lambda: frozen not in observer._readings[-1].counters.by, LIMIT_S)
    observed = observer.stop(LIMIT_S)
    assert {f"now/{name}.load1" for name in store.names} & set(observed["metric"])
    store.mend(struck, LIMIT_S)
    until(store.whole, LIMIT_S)
    # One that nobody struck and that is gone all the same is what the run fails for.
    pid = store.processes()["n2"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not store._nodes["n2"].lives())
    with pytest.raises(RunError, match="n2: crate was killed by SIGKILL"):
        store.stop(LIMIT_S)
    store.stop(LIMIT_S)
    for pid in store.processes().values():
        assert not Path(f"/proc/{pid}").exists()
    store.destroy()
    assert not store.place.data.exists()


def test_a_node_is_killed_while_rows_come_and_what_it_acknowledged_is_counted(
    making: Maker, runners: Callable[[], PlainRunner]
) -> None:
    """Its connections break; the loader goes on at the other nodes, and at this one once it is back."""
    store = making(**SMALL, nodes=3, tables={"shards": 3, "replicas": 1})
    store.start(0, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    made = workload(workers=3, batch=60, rate=400.0, retry="90 s")
    made.load(runners(), endpoint, seed=1)
    struck: list[Struck] = []

    def strike() -> None:
        struck.append(store.strike(Fault(kind="kill", node="secondary"), random.Random(1)))

    killing = threading.Timer(3.0, strike)
    killing.start()
    runner = runners()
    measured = made.drive(runner, endpoint, seed=1)
    killing.join()
    store.mend(struck[0], LIMIT_S)
    until(store.whole, LIMIT_S)
    checked = made.check(runner, endpoint, seed=1)
    assert measured.status["tsbs.resent"] > 0, "some of it was under way when the node died"
    assert checked.status["ledger.acknowledged"] > 4000
    assert (checked.wrong, checked.status["ledger.lost"]) == (None, 0)
    # A row that was acknowledged and is gone is told, whatever took it.
    sql.ask(endpoint, "DELETE FROM redis")
    checked = made.check(runner, endpoint, seed=1)
    assert checked.status["ledger.lost"] > 500
    assert "that were acknowledged are absent" in str(checked.wrong)
    store.stop(LIMIT_S)


def test_one_node_is_told_of_a_setting_that_is_none_and_of_tables_that_are_others(making: Maker) -> None:
    store = making(**SMALL, nodes=1)
    store.start(0, LIMIT_S)
    endpoint = store.ready(LIMIT_S)
    sql.ask(endpoint, ddl.of(endpoint, "cpu")[0])
    sql.ask(endpoint, "CREATE TABLE mem (ts TIMESTAMP) CLUSTERED INTO 2 SHARDS WITH (number_of_replicas = 0)")
    with pytest.raises(InvalidRun, match=r"tables\.shards of mem is 2, the study asks for 4"):
        store.status()
    sql.ask(endpoint, "DROP TABLE mem")
    sql.ask(endpoint, "ALTER TABLE cpu SET (\"translog.durability\" = 'ASYNC')")
    with pytest.raises(InvalidRun, match=r"translog\.durability of cpu is ASYNC"):
        store.status()
    store.stop(LIMIT_S)
    wrong = making(**SMALL, nodes=1, **{"no.such.setting": 1})
    wrong.start(1, LIMIT_S)
    with pytest.raises(RunError, match=r"n1: crate ended with status \d+ as it started: .*no\.such\.setting"):
        wrong.ready(LIMIT_S)
    with suppress(RunError):
        wrong.stop(LIMIT_S)


def test_nothing_of_it_is_left_after_a_kill_of_dyno(tmp_path: Path) -> None:
    unpacked = set(Path("/tmp").glob("lib*.so"))
    script = (
        HELD.replace("system.Options()", "system.Options(nodes=3, node_cpus=2, heap='256 MiB')")
        .replace(
            "print(store._folder",
            "print(*(each._folder for each in nodes), *(each.deployment.site.confinement.group for each in nodes)",
        )
        .replace("    print(", "    nodes = store._nodes.values()\n    print(")
        .replace("store.ready(60)", "store.ready(180)")
    )
    words = [sys.executable, "-c", script, "cratedb", str(tmp_path), core_binary()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as dyno:
        assert dyno.stdout is not None
        told = dyno.stdout.readline().split()
        assert len(told) == 6
        folders, groups = told[:3], told[3:]
        assert all(processes_called_with(folder) for folder in folders)
        assert all(there_are(group) for group in groups)
        dyno.kill()
    until(lambda: not any(processes_called_with(folder) for folder in folders))
    undo.clean()
    assert not any(there_are(group) for group in groups)
    assert not any(Path(folder).exists() for folder in folders)
    assert not (tmp_path / "held").exists()
    assert set(Path("/tmp").glob("lib*.so")) <= unpacked
