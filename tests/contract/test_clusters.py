"""What every cluster must do, on the real servers: form, say how it is, be struck, heal, end, and leave nothing behind.

A cluster takes ten seconds and more to form and as long to heal, so one life of each has all of it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from dyno import sql
from dyno.hosts import cgroups, undo
from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.faults import Fault
from dyno.systems.base import Place
from dyno.systems.cluster import Cluster
from dyno.systems.members import ServerCluster
from tests.contract.conftest import PlainRunner
from tests.contract.test_systems import ROOMS, options_of, workload_for
from tests.making import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="nodes have networks of their own, which takes root")

LIMIT_S = 90.0
MYSQL = {"innodb_redo_log_capacity": "8M", "innodb_buffer_pool_size": "32M", "max_connections": 60}
MARIADB = {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M"}
GROUP = {**MYSQL, "group_replication_member_expel_timeout": 0, "group_replication_consistency": "BEFORE_AND_AFTER"}
SPINS = {"group_replication_poll_spin_loops": 1000}
BEHIND_S = 6
"""More than a manager takes to notice, since a late replica goes on applying until then."""
BETWEEN_ROWS_S = 0.002
"""Else a disk that is fast has the writer take a CPU, which servers need."""
LIVES: dict[str, tuple[str, dict[str, Any], str]] = {
    "group-replication": ("group-replication", {**GROUP, **SPINS}, "kill"),
    "group-replication, all primaries": ("group-replication", {**GROUP, "primaries": "multi"}, "shutdown"),
    "galera": ("galera", {**MARIADB, "provider": {"evs.suspect_timeout": "PT3S"}, "node_disk": "1 GiB"}, "cut"),
    # What one node wrote another reads at once only where it waits for it.
    "galera, all primaries": ("galera", {**MARIADB, "writers": "all", "wsrep_sync_wait": 1}, "kill"),
    "async, with a planted fault": (
        "mysql-replication",
        {**MYSQL, "promote": "behind", "behind_by": f"{BEHIND_S} s"},
        "kill",
    ),
    "semi-sync": ("mysql-replication", {**MYSQL, "mode": "semi-sync"}, "freeze"),
}


def make(kind: str, place: Place, options: dict[str, Any]) -> ServerCluster[Any]:
    found = ROOMS.systems[kind]
    made = found(options_of(found, options), place)
    assert isinstance(made, ServerCluster)
    return made


def begun(system: Cluster[Any], workspace: Path) -> None:
    """Its servers were started, on data of which none is loaded."""
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    system.snapshot(workspace / "snapshot", LIMIT_S)
    system.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    system.start(1, LIMIT_S)


def formed(system: Cluster[Any], workspace: Path) -> tuple[Endpoint, float]:
    """Loaded by one server, restored to all; how long they took from there to be a cluster."""
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    system.start(0, LIMIT_S)
    with sql.connect(system.ready(LIMIT_S), limit=LIMIT_S) as connection:
        connection.rows("CREATE TABLE loaded (k INTEGER PRIMARY KEY)")
        connection.rows("INSERT INTO loaded VALUES (1), (2), (3)")
        connection.rows("CREATE TABLE written (k INTEGER PRIMARY KEY)")
    system.stop(LIMIT_S)
    system.snapshot(workspace / "snapshot", LIMIT_S)
    since = time.monotonic()
    system.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    system.start(1, LIMIT_S)
    return system.ready(LIMIT_S), time.monotonic() - since


class Writer:
    """Writes one row after the other by the way of clients, and remembers when which was acknowledged."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._acknowledged: dict[int, float] = {}
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_wrong: object) -> None:
        """Whatever happened: the next cluster has the same addresses, and would be written to."""
        self.stop()

    @property
    def acknowledged(self) -> dict[int, float]:
        """By row when it was, so far."""
        with self._lock:
            return dict(self._acknowledged)

    def _write(self) -> None:
        connection, number = None, 0
        while not self._over.is_set():
            number += 1
            try:
                connection = connection or sql.connect(self._endpoint, limit=2)
                connection.rows(f"INSERT INTO written VALUES ({number})")
                with self._lock:
                    self._acknowledged[number] = time.monotonic()
                self._over.wait(BETWEEN_ROWS_S)
            except sql.SqlError:
                if connection is not None:
                    connection.close()
                connection = None
                self._over.wait(0.05)
        if connection is not None:
            connection.close()

    def since(self, moment: float) -> list[int]:
        return [number for number, at in self.acknowledged.items() if at > moment]

    def stop(self) -> None:
        self._over.set()
        self._thread.join(LIMIT_S)


def rows(endpoint: Endpoint, table: str) -> set[int]:
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        return {int(row[0]) for row in connection.rows(f"SELECT k FROM {table}")}


def namespace_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


@pytest.fixture(params=LIVES)
def life(request: pytest.FixtureRequest, place: Place) -> Iterator[tuple[str, ServerCluster[Any], Fault]]:
    kind, options, fault = LIVES[request.param]
    system = make(kind, place, options)
    yield request.param, system, Fault.model_validate({"kind": fault})
    with suppress(RunError):
        system.destroy()


def test_it_forms_is_struck_heals_and_leaves_nothing_behind(
    life: tuple[str, ServerCluster[Any], Fault], workspace: Path, runners: Callable[[], PlainRunner]
) -> None:
    name, system, fault = life
    endpoint, seconds = formed(system, workspace)
    assert seconds < LIMIT_S
    is_as_it_says(system, endpoint, 3 if name.endswith("all primaries") else 1)
    driven(endpoint, runners())
    with Writer(endpoint) as writer:
        until(lambda: len(writer.acknowledged) > 20, LIMIT_S)
        if name.startswith("async"):
            until(lambda: bool(writer.since(first_of(writer) + BEHIND_S + 2)), LIMIT_S)
        struck = system.strike(fault, random.Random(1))
        at = time.monotonic()
        (primary,) = struck.nodes
        until(lambda: len(writer.since(at + 0.5)) > 5, LIMIT_S)
        assert primary not in [node.name for node in system.nodes() if node.role == "primary"]
        assert not system.whole()
        system.mend(struck, LIMIT_S)
        until(system.whole, LIMIT_S)
    until(system.whole, LIMIT_S)
    kept = {way: rows(endpoint.by(way), "written") for way in system.names}
    written = set().union(*kept.values())
    assert not {way: sorted(written - has)[:9] for way, has in kept.items() if has != written}, "rows that a node lacks"
    lost = writer.acknowledged.keys() - written
    if name.startswith("async"):
        is_the_planted_loss(writer, lost, at)
    else:
        assert not lost
    assert rows(endpoint.by(READ_ONLY), "loaded") == {1, 2, 3}
    assert system.status()["cluster.wire_bytes"] > 0
    pids = [node.pid for node in system.nodes()]
    system.stop(LIMIT_S)
    system.check(LIMIT_S)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    system.destroy()
    assert not system.place.data.exists()


def is_as_it_says(system: ServerCluster[Any], endpoint: Endpoint, primaries: int) -> None:
    nodes = system.nodes()
    assert [node.role for node in nodes] == ["primary"] * primaries + ["secondary"] * (3 - primaries)
    assert system.whole()
    networks = {namespace_of(int(str(node.pid))) for node in nodes}
    assert len(networks) == 3
    assert namespace_of(os.getpid()) not in networks
    assert {node.name: node.pid for node in nodes}.items() <= endpoint.processes.items()
    assert json.loads(json.dumps(endpoint.settings)) == endpoint.settings
    for way in (*system.names, READ_ONLY):
        assert rows(endpoint.by(way), "loaded") == {1, 2, 3}
    asked = system.asked()
    assert asked
    assert {key: system.settings().get(key) for key in asked} == asked
    # The machine's own network has no way to them.
    with pytest.raises(sql.SqlError):
        sql.connect(Endpoint(endpoint.backend, {**endpoint.settings}), limit=0.5)


def driven(endpoint: Endpoint, runner: PlainRunner) -> None:
    """Drivers come the same way."""
    runner.namespace = endpoint.namespace
    workload = workload_for("mysql")
    workload.load(runner, endpoint, seed=1)
    runner.folder = runner.folder.with_name("driven")
    assert workload.drive(runner, endpoint, seed=1).complete


def first_of(writer: Writer) -> float:
    return min(writer.acknowledged.values())


def is_the_planted_loss(writer: Writer, lost: set[int], at: float) -> None:
    """All of the last second, which the one that was promoted had received and not applied, and nothing long before."""
    late = {number for number, when in writer.acknowledged.items() if at - 1 < when < at - 0.2}
    assert late
    assert late <= lost
    assert all(writer.acknowledged[number] > at - BEHIND_S - 1.5 for number in lost)


def test_a_setting_of_the_group_that_is_only_accepted_is_not_taken_for_effective(place: Place) -> None:
    # SET GLOBAL group_replication_poll_spin_loops is shown at once, and in force from the next start of the group.
    system = make("group-replication", place, {**GROUP, **SPINS})
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    system.start(0, LIMIT_S)
    try:
        system.ready(LIMIT_S)
        lone = system._lone
        assert lone is not None
        with lone.ask() as administrator, lone.as_client() as connection:
            lone.attest(connection)
            administrator.rows("SET GLOBAL group_replication_poll_spin_loops = 1000")
            with pytest.raises(InvalidRun, match=r"poll_spin_loops is 1000, but was set while it ran \(DYNAMIC\)"):
                lone.attest(connection)
    finally:
        system.destroy()


ALONE = """
import random
import sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from dyno.hosts.local import core_binary
from dyno.model.faults import Fault
from dyno.systems.base import Place
from tests.contract.test_clusters import LIVES, begun, formed, make

kind, options, _ = LIVES[sys.argv[1]]
host = LocalHost(UndoJournal())
workspace = host.temporary_folder(Path(sys.argv[2]))
workspace.chmod(0o711)
place = Place(host=host, data=workspace / "live", logs=workspace / "logs", core=core_binary(), shared=Path(sys.argv[3]))
system = make(kind, place, {**options, "node_disk": "1 GiB"})
if sys.argv[4] == "begun":
    begun(system, workspace)
else:
    formed(system, workspace)
relays = []
if sys.argv[4] == "struck":
    for number, fault in enumerate(["slow-disk", "slow-network", "disk-full"]):
        system.strike(Fault(kind=fault, node="secondary"), random.Random(number))
    system.strike(Fault(kind="freeze"), random.Random(1))
    relays = [node.relay._process.pid for node in system.network._nodes.values() if node.relay]
print(*system.processes().values(), *relays, flush=True)
print(*(system.confinement(name).group for name in system.names), flush=True)
sys.stdin.read()
"""


def there_are(group: str) -> list[Path]:
    """The folders of a control group, one for each hierarchy that has it."""
    tops = {each.top for each in cgroups.hierarchies().values()}
    return [top / group.strip("/") for top in tops if (top / group.strip("/")).exists()]


# Formed, there are four: three servers, and what is in front of them; struck, who makes a link slow besides. Galera
# begins with one.
@pytest.mark.parametrize(
    ("name", "when", "processes"),
    [("group-replication", "begun", 3), ("galera", "begun", 1), ("semi-sync", "struck", 5)],
)
def test_a_killed_dyno_leaves_nothing_of_a_cluster(
    name: str, when: str, processes: int, tmp_path: Path, shared: Path, state: Path
) -> None:
    environment = {**os.environ, "DYNO_STATE": str(state), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    workspace = tmp_path / "alone"
    words = [sys.executable, "-c", ALONE, name, str(workspace), str(shared), when]
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == processes
        groups = process.stdout.readline().split()
        assert [group for group in groups if there_are(group)] == groups
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT_S)
    for cleaned in undo.clean(state):
        assert cleaned.stuck == ()
    until(lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()], LIMIT_S)
    assert not [group for group in groups if there_are(group)]
    assert not workspace.exists()
    assert str(workspace) not in Path("/proc/self/mountinfo").read_text()
    assert (
        str(workspace) not in subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    )
