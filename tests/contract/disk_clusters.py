"""What a cluster on a disk that is kept twice has to do: form, say how it is, bear a fault, be mended, leave nothing.

Figures of how long each step took are printed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from dyno import sql
from dyno.hosts import undo
from dyno.hosts.networks import CLIENT
from dyno.hosts.replication import greets
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.model.faults import Fault
from dyno.systems.base import Place
from dyno.systems.disk_cluster import DiskCluster
from dyno.systems.members import PORT

_SEEN = 15
"""Rows by which it is seen how long one takes."""
_SLOWED_S = 10.0
TABLE = "CREATE TABLE kept (id INT PRIMARY KEY) ENGINE = InnoDB"
SMALL = {
    "innodb_buffer_pool_size": "32M",
    "innodb_redo_log_capacity": "16M",
    "max_connections": 40,
    "node_disk": "384 MiB",
}


def loaded(kind: type[DiskCluster[Any]], options: dict[str, Any], place: Place) -> tuple[DiskCluster[Any], Path]:
    """One with a table in it, and the snapshot of that."""
    system = kind(kind.Options.model_validate({**SMALL, **options}), place)
    timed("provision", lambda: system.provision(120.0))
    timed("prepare", lambda: system.prepare(120.0))
    system.start(0, 60.0)
    with sql.connect(system.ready(60.0), limit=30.0) as connection:
        connection.rows(TABLE)
        connection.rows("INSERT INTO kept VALUES (0)")
    system.stop(60.0)
    snapshot = place.data.with_name("snapshot")
    system.snapshot(snapshot, 60.0)
    return system, snapshot


@contextmanager
def formed(system: DiskCluster[Any], snapshot: Path, limit: float) -> Iterator[Endpoint]:
    """Within, it runs on what was loaded; it ends in any case."""
    timed("restore", lambda: system.restore(snapshot, 120.0, reflink=False))
    try:
        timed("start", lambda: system.start(1, 60.0))
        yield timed("ready", lambda: system.ready(limit))
        timed("stop", lambda: system.stop(limit))
    finally:
        if system.running is not None:
            system.stop(limit)


def until(condition: Callable[[], bool], limit: float) -> None:
    """Not at full speed: what is waited for needs the CPUs."""
    deadline, between = time.monotonic() + limit, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold"
        between.wait(0.05)


def timed(what: str, do: Callable[[], Any]) -> Any:
    begun = time.monotonic()
    try:
        return do()
    finally:
        print(f"{what}: {time.monotonic() - begun:.1f} s", flush=True)


class Writer:
    """Inserts rows one by one, each by itself, and remembers those that were acknowledged; goes on after an error."""

    def __init__(self, system: DiskCluster[Any], limit: float = 5.0) -> None:
        """No row takes longer than `limit` seconds."""
        self._limit = limit
        self.acknowledged: list[int] = []
        self.gaps: list[float] = []
        self._system = system
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join(60)

    def has(self, more: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= wanted, limit=240)

    def _write(self) -> None:
        number, connection, last = max(kept(self._system)), None, time.monotonic()
        while not self._over.is_set():
            number += 1
            try:
                if connection is None:
                    connection = sql.connect(self._system.way_of_dyno(), limit=self._limit)
                connection.rows(f"INSERT INTO kept VALUES ({number})")
                now = time.monotonic()
                self.acknowledged.append(number)
                self.gaps.append(now - last)
                last = now
            except RunError:
                if connection is not None:
                    connection.close()
                connection = None
                self._over.wait(0.05)
        if connection is not None:
            connection.close()


def kept(system: DiskCluster[Any]) -> set[int]:
    with sql.connect(system.way_of_dyno(), limit=30.0) as connection:
        return {int(number) for (number,) in connection.rows("SELECT id FROM kept")}


def forms_and_says_how_it_is(system: DiskCluster[Any], endpoint: Endpoint) -> None:
    assert system.whole()
    first, second = system.nodes()
    assert (first.role, second.role) == ("primary", "secondary")
    assert first.pid is not None
    assert endpoint.settings["port"] == PORT
    assert endpoint.namespace is not None
    assert reached(system, endpoint)
    assert system.settings()["innodb_buffer_pool_size"] == 32 << 20
    assert system.asked().items() <= system.settings().items()
    with sql.connect(system.way_of_dyno(), limit=30.0) as connection:
        connection.rows("INSERT INTO kept VALUES (-1)")
    status = system.status()
    assert status["cluster.servers"] == 2
    assert status["cluster.memory_bytes"] > 50e6
    assert status["cluster.wire_bytes"] > 4096  # the row went to the other node


def reached(system: DiskCluster[Any], endpoint: Endpoint) -> bool:
    """Whether a server says something to the client at the virtual address."""
    host = endpoint.settings["host"]
    found: bool = system.network.within(CLIENT, lambda: greets(host, PORT, 2.0))  # type: ignore[attr-defined]
    return found


def bears(system: DiskCluster[Any], endpoint: Endpoint, fault: dict[str, Any], limit: float, *, moves: bool) -> Writer:
    """It is struck while it is written to, goes on, is mended, and is whole again; nothing acknowledged is lost."""
    before = next(node.name for node in system.nodes() if node.role == "primary")
    slows = fault["kind"].startswith("slow")
    # Behind pages that the server flushes a row waits long there, and whoever gives it up never has one.
    with Writer(system, limit=60.0 if slows else 5.0) as writer:
        writer.has(5)
        if slows:
            writer.has(_SEEN)
        struck = system.strike(Fault.model_validate(fault), random.Random(1))
        struck_at = time.monotonic()
        after = len(writer.acknowledged)
        if moves:
            until(lambda: system.primary() not in (None, before), limit=limit)
            print(f"{fault['kind']}: another is primary after {time.monotonic() - struck_at:.1f} s", flush=True)
            until(lambda: reached(system, endpoint), limit=limit)
            print(f"{fault['kind']}: answers the client after {time.monotonic() - struck_at:.1f} s", flush=True)
        if slows:
            # Behind pages that the server flushes a row may wait for minutes: it is counted how many come.
            usual = 1 / median(writer.gaps[after - _SEEN : after])
            threading.Event().wait(_SLOWED_S)
            slowed = (len(writer.acknowledged) - after) / (time.monotonic() - struck_at)
            print(f"{fault['kind']}: {slowed:.1f} rows/s of {usual:.1f}", flush=True)
            assert slowed < usual / 1.5
        else:
            writer.has(5)
            print(f"{fault['kind']}: longest time without a row {max(writer.gaps[after:]):.1f} s", flush=True)
        timed("mend", lambda: system.mend(struck, limit))
        timed("whole again", lambda: until(system.whole, limit=limit))
        writer.has(5)
    lost = set(writer.acknowledged) - kept(system)
    print(f"{fault}: {len(writer.acknowledged)} acknowledged, {len(lost)} lost", flush=True)
    return writer


def is_full_and_is_not(system: DiskCluster[Any]) -> None:
    """With its disk full a server that is written to stands still or refuses; with room again it goes on."""
    struck = system.strike(Fault(kind="disk-full"), random.Random(1))
    insert = "INSERT INTO filling SELECT REPEAT('x', 60000) FROM kept a, kept b, kept c, kept d LIMIT 400"
    try:
        with sql.connect(system.way_of_dyno(), limit=20.0) as connection:
            connection.rows("CREATE TABLE filling (text LONGTEXT)")
            for _ in range(8):
                connection.rows(insert)
        failed = False
    except RunError as error:
        print(f"disk-full: {error}", flush=True)
        failed = True
    assert failed, "there was room"
    timed("mend", lambda: system.mend(struck, 120.0))
    until(system.whole, limit=120)
    with sql.connect(system.way_of_dyno(), limit=60.0) as connection:
        connection.rows("INSERT INTO kept VALUES (1000000)")
    assert 1000000 in kept(system)


def leaves_nothing(folder: Path) -> None:
    """No mount, loop device or process that knows a folder."""
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        assert not backing.read_text().startswith(str(folder))
    others = [each for each in Path("/proc").glob("[0-9]*") if int(each.name) != os.getpid()]
    assert not [each for each in others if _names(each, folder)]


def _names(process: Path, folder: Path) -> bool:
    try:
        return str(folder).encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


_FORMS = """
import random
import sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from dyno.lab import Rooms
from dyno.model.faults import Fault
from dyno.systems.base import Place
from tests.contract.disk_clusters import loaded, formed
folder, kind, limit = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
host = LocalHost(UndoJournal())
workspace = host.temporary_folder(folder / "workspace")
workspace.chmod(0o711)
place = Place(host=host, data=workspace / "live", logs=folder / "logs", core="")
system, snapshot = loaded(Rooms.open().systems[kind], {}, place)
with formed(system, snapshot, limit):
    system.strike(Fault(kind="freeze"), random.Random(1))
    print("struck", flush=True)
    sys.stdin.read()
"""


def leaves_nothing_when_killed(kind: str, folder: Path, limit: float) -> None:
    """A dyno that has formed one and stopped a node of it is killed: the next command takes all of it away."""
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[2]}:{':'.join(sys.path)}"}
    process = subprocess.Popen(
        [sys.executable, "-c", _FORMS, str(folder), kind, str(limit)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        said = iter(process.stdout.readline, "")
        assert any(line == "struck\n" for line in said), "it did not form and was not struck"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
    cleaned = undo.clean()
    assert [each.stuck for each in cleaned] == [()]
    leaves_nothing(folder)
    assert not (folder / "workspace").exists()
