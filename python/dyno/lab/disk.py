"""The guard of free disk space: a forecast before each run, and a watch during it."""

from __future__ import annotations

import time
from pathlib import Path

from dyno.hosts import LocalHost
from dyno.model.base import RunError
from dyno.model.units import format_size

_LOOK_EVERY_S = 0.5


class DiskFull(RunError):
    """Free space is below what the study keeps: going on would only fail again."""


class DiskGuard:
    """Keeps `keep` bytes free on the file systems of the data and of the results."""

    def __init__(self, host: LocalHost, data: Path, results: Path, keep: int) -> None:
        self._host = host
        self._data = data
        self._results = results
        self._keep = keep
        self._growth = 0
        self._next_look = 0.0

    def forecast(self, data_bytes: int) -> None:
        """Refuse to begin something that would write `data_bytes` and grow as runs did so far. Raises DiskFull."""
        free = self._host.free_disk(self._data)
        need = data_bytes + self._growth
        if free < need + self._keep:
            raise DiskFull(
                f"free disk is {format_size(free)}; the run would write about {format_size(need)} "
                f"and {format_size(self._keep)} are to stay free (host.require.free_disk)"
            )
        self._look(self._results, "where the results go")

    def watch(self) -> None:
        """Look now and then while something is written. Raises DiskFull."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_EVERY_S
        self._look(self._data, "under the data")
        self._look(self._results, "where the results go")

    def _look(self, folder: Path, where: str) -> None:
        free = self._host.free_disk(folder)
        if free < self._keep:
            raise DiskFull(
                f"free disk {where} fell to {format_size(free)}; "
                f"{format_size(self._keep)} are to stay free (host.require.free_disk)"
            )

    def grew(self, data_bytes: int) -> None:
        """A run left its data this much larger than it found them."""
        self._growth = max(self._growth, data_bytes)
