"""Loaded data sets: each distinct one is loaded once (or once a block) and kept as a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dyno.hosts import LocalHost
from dyno.lab.disk import DiskGuard
from dyno.lab.runner import WatchedRunner
from dyno.model.study import Limits
from dyno.systems.base import System
from dyno.workloads.base import Workload


class DataSets:
    """Snapshots under one folder, by what shapes the data."""

    def __init__(self, host: LocalHost, folder: Path, *, limits: Limits, seed: int) -> None:
        self._host = host
        self._folder = folder
        self._limits = limits
        self._seed = seed
        self._known: dict[str, Path] = {}
        self._count = 0

    def key(self, system: System[Any], workload: Workload[Any], block: int | None) -> str:
        """What two cells must agree in to share a data set. How they are deployed is not among it."""
        parts = [system.kind, system.data_key(), system.after_load(), workload.kind, workload.data_key(), block]
        return json.dumps(parts, sort_keys=True)

    def known(self, key: str) -> Path | None:
        """The snapshot, where it was made already."""
        return self._known.get(key)

    def make(
        self,
        key: str,
        system: System[Any],
        workload: Workload[Any],
        runner: Callable[[], WatchedRunner],
        guard: DiskGuard,
    ) -> Path:
        """Load the data set and keep it. Raises RunError; nothing is kept then."""
        limits = self._limits
        guard.forecast_load(workload.data_bytes())
        if needs := system.needs_bytes():
            guard.forecast(needs)
        system.prepare(limits.prepare)
        try:
            system.start(0, limits.start)
            endpoint = system.ready(limits.ready)
            loader = runner()
            loader.namespace = endpoint.namespace
            workload.load(loader, endpoint, self._seed)
            system.finish_load(endpoint, limits.prepare)
        finally:
            system.stop(limits.stop)
        self._count += 1
        target = self._folder / f"{self._count:04d}"
        guard.forecast_snapshot(system.snapshot_bytes())
        system.snapshot(target, limits.restore)
        self._known[key] = target
        return target

    def forget_all(self) -> None:
        """Remove every snapshot: the next block loads its own."""
        for path in self._known.values():
            self._host.remove_tree(path)
        self._known.clear()
