"""Bottlenecks that are planted on purpose, on real servers: each is what a verdict must find by itself.

What a study can ask for is asked for by the study: a CPU quota, a memory limit, CPUs to be pinned to. The others are
planted by hand into the system of the study just before it is driven: limits of its block device, syncs that end late,
a trigger that holds a row or sleeps, neighbours on the driver's CPU.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyno import sql
from dyno.analysis import usages
from dyno.analysis.bottlenecks import judge
from dyno.hosts import Process, UndoJournal
from dyno.hosts.cgroups import IO_LIMITS
from dyno.hosts.devices import device_of
from dyno.hosts.leftovers import CGROUPS
from dyno.hosts.local import LocalHost, core_binary
from dyno.hosts.undo import Change
from dyno.lab import Interrupt, Lab, Listener, Rooms
from dyno.model.endpoint import Endpoint
from dyno.model.findings import Bottleneck
from dyno.model.run import Outcome, RunRecord
from dyno.model.saturation import DRIVER_IS_THE_LIMIT
from dyno.model.study import Study
from dyno.store import Results, new_results
from dyno.study import load
from dyno.systems.mariadb import MariadbSystem
from tests.making import scratch_in

STUDY = """
study: {name}
question: What holds it back?
host: {{{host}}}
system: {{kind: {system}, config: {{{config}}}}}
workload: {{kind: ycsb, duration: {seconds} s, interval: 250 ms, {workload}}}
replicates: {{min: {runs}, max: {runs}, precision: 500%, retries: 0}}
observe: [{{machine: {{hz: 10, cgroups: true}}}}]
"""

_INNODB = "check: none, innodb_log_file_size: 32M"
_OWN_DISK = "file_system: {kind: ext4, size: 400 MiB}"
_NO_SYNCS = f"{_INNODB}, innodb_flush_log_at_trx_commit: 0"
_UPDATES = "proportions: {update: 100%}, key_chooser: uniform"
_READS_OF_A_DISK = "mix: c, key_chooser: uniform, records: 15000, threads: 4"
_SMALL_POOL = f"{_INNODB}, innodb_buffer_pool_size: 8M, innodb_flush_method: O_DIRECT"
_HOGS = 24


class Plant:
    """What is done to a MariaDB server by hand while it is driven; nothing unless one says otherwise."""

    def command(self, argv: list[str]) -> list[str]:
        """What starts the server that is to be driven."""
        return argv

    def begin(self, system: MariadbSystem, endpoint: Endpoint) -> None:
        """It is ready."""

    def end(self, system: MariadbSystem) -> None:
        """It has ended."""


class SlowSyncs(Plant):
    """Each sync ends so much later. strace holds up nothing else: other system calls do not stop for it."""

    def __init__(self, us: int) -> None:
        self._us = us

    def command(self, argv: list[str]) -> list[str]:
        inject = f"inject=fsync,fdatasync:delay_exit={self._us}"
        words = ["strace", "-D", "-f", "-q", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]
        return [*words, "-e", inject, *argv]


class DiskLimit(Plant):
    """A limit of requests or bytes a second on the device of the data, for the server's processes alone."""

    def __init__(self, what: str, limit: int) -> None:
        self._file, self._limit = f"blkio.throttle.{IO_LIMITS[what][0]}", limit
        self._change: Change | None = None

    def begin(self, system: MariadbSystem, endpoint: Endpoint) -> None:
        device = device_of(system.deployment.data_while_running()).folder
        assert device is not None
        name = f"dyno-planted-{secrets.token_hex(4)}"
        self._change = system.place.host._undo.will(Change("cgroup", {"name": name}))
        group = CGROUPS / "blkio" / name
        group.mkdir()
        (group / self._file).write_text(f"{(device / 'dev').read_text().strip()} {self._limit}")
        for pid in endpoint.processes.values():
            (group / "cgroup.procs").write_text(str(pid))

    def end(self, system: MariadbSystem) -> None:
        change, self._change = self._change, None
        if change is not None:
            system.place.host.put_back(change)


class Trigger(Plant):
    """What the server does for each update of a row, holding its lock."""

    def __init__(self, does: str) -> None:
        self._does = does

    def begin(self, system: MariadbSystem, endpoint: Endpoint) -> None:
        with sql.connect(endpoint, limit=10.0) as connection:
            connection.rows(f"CREATE TRIGGER planted BEFORE UPDATE ON usertable FOR EACH ROW {self._does}")


class Neighbours(Plant):
    """Others that want a CPU all the time."""

    def __init__(self, cpu: int) -> None:
        self._words = ["taskset", "--cpu-list", str(cpu), sys.executable, "-c", "while True: pass"]
        self._processes: list[Process] = []

    def begin(self, system: MariadbSystem, endpoint: Endpoint) -> None:
        logs = system.place.logs
        self._processes = [system.place.host.start(self._words, log=logs / f"neighbour-{n}") for n in range(_HOGS)]

    def end(self, system: MariadbSystem) -> None:
        while self._processes:
            self._processes.pop().kill()


@dataclass(frozen=True)
class Planted:
    """One bottleneck, as which it must be named, and the study in which it is."""

    name: str
    expected: Bottleneck
    workload: str
    config: str = _INNODB
    host: str = ""
    plant: Plant | None = None
    system: str = "mariadb"

    def study(self, runs: int, seconds: float) -> str:
        """Its file."""
        host = ", ".join(filter(None, ["require: {free_disk: 0 B}", self.host]))
        system = f"planted-{self.name}" if self.plant else self.system
        return STUDY.format(
            name=f"planted-{self.name}",
            host=host,
            system=system,
            config=self.config,
            workload=self.workload,
            runs=runs,
            seconds=seconds,
        )


ALL: Sequence[Planted] = (
    Planted("cpu-quota", "cpu-quota", "mix: c, records: 2000, threads: 4", host="machine: {cpus: 0.3}"),
    Planted(
        "bandwidth-limit",
        "disk-bandwidth",
        _READS_OF_A_DISK,
        _SMALL_POOL,
        f"caches: cold, {_OWN_DISK}",
        DiskLimit("read_bytes", 4 * 2**20),
    ),
    Planted(
        "operations-limit",
        "disk-operations",
        _READS_OF_A_DISK,
        _SMALL_POOL,
        f"caches: cold, {_OWN_DISK}",
        DiskLimit("reads", 200),
    ),
    Planted("slow-sync", "disk-sync", f"{_UPDATES}, records: 1000, threads: 4", plant=SlowSyncs(20_000)),
    Planted(
        "hot-row",
        "locks",
        f"{_UPDATES}, records: 1, threads: 8",
        _NO_SYNCS,
        plant=Trigger("SET @held = SLEEP(0.002)"),
    ),
    Planted(
        "memory-limit",
        "memory",
        "mix: c, key_chooser: uniform, records: 20000, threads: 4",
        "check: none, cache_size: 256 KiB, mmap_size: 0 B",
        f"caches: cold, machine: {{memory: 16 MiB}}, {_OWN_DISK}",
        system="sqlite",
    ),
    Planted(
        "starved-driver",
        "driver",
        "mix: c, records: 2000, threads: 4",
        host="pin: {system: '0', driver: '1'}",
        plant=Neighbours(1),
    ),
    Planted(
        "server-sleep",
        "unexplained",
        f"{_UPDATES}, records: 5000, threads: 4",
        _NO_SYNCS,
        plant=Trigger("SET @slept = SLEEP(0.01)"),
    ),
)
"""Each must be named rightly."""


def rooms(planted: Planted) -> Rooms:
    """All kinds there are, and the system that it is planted in."""
    found = Rooms.open()
    if planted.plant is None:
        return found
    made = _system(f"planted-{planted.name}", planted.plant)
    return Rooms(
        systems={**found.systems, made.kind: made},
        workloads=found.workloads,
        observers=found.observers,
        deployments=found.deployments,
    )


def _system(name: str, plant: Plant) -> type[MariadbSystem]:
    class PlantedMariadb(MariadbSystem):
        kind = name

        def command(self, folder: Path, port: int | None) -> list[str]:
            argv = super().command(folder, port)
            return argv if self.loading else plant.command(argv)

        def ready(self, limit: float) -> Endpoint:
            endpoint = super().ready(limit)
            if not self.loading:
                plant.begin(self, endpoint)
            return endpoint

        def stop(self, limit: float) -> None:
            try:
                super().stop(limit)
            finally:
                plant.end(self)

    return PlantedMariadb


def carry_out(planted: Planted, root: Path, *, runs: int, seconds: float, core: str | None = None) -> Results:
    """Run its study below `root`, and put back all that was changed."""
    kinds = rooms(planted)
    file = root / f"{planted.name}.yaml"
    file.write_text(planted.study(runs, seconds))
    study: Study = load(file, kinds.kinds())
    results = new_results(root / "results", study, file.read_bytes(), {"format": 1}, scratch_in(root / "results"))
    results.folder.chmod(0o711)  # servers run as users of their own
    with UndoJournal() as journal:
        results.lock()
        try:
            Lab(
                results,
                LocalHost(journal),
                kinds,
                core=core or core_binary(),
                workspace=results.folder / f".dyno-{journal.token}",
                interrupt=Interrupt(),
                listener=Listener(),
            ).run()
        finally:
            results.unlock()
    return Results(results.folder)


def named(results: Results) -> list[tuple[RunRecord, str]]:
    """Each run with what it is named by itself; what went wrong of one that is neither ok nor the driver's."""
    used = usages(results.runs, results.all_samples(), results.all_intervals())
    return [(run, _name(results.study, run, used)) for run in results.runs]


def _name(study: Study, run: RunRecord, used: dict[int, Any]) -> str:
    if run.outcome is Outcome.INVALID and str(run.cause).startswith(DRIVER_IS_THE_LIMIT):
        return "driver"
    if run.outcome is not Outcome.OK:
        return f"{run.outcome.value}: {run.cause}"
    judged = judge(study.cells[run.slot.cell], run, used[run.run]) if run.run in used else None
    return "not observed" if judged is None else judged.kind
