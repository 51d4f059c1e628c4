"""The guard of free disk space: a forecast before each run, and a watch during it."""

from __future__ import annotations

import time
from pathlib import Path

from dyno.hosts import LocalHost
from dyno.model.base import RunError
from dyno.model.units import format_size

_LOOK_EVERY_S = 0.5
_OWN_SHARE = 0.05
"""Of a file system made for the data, what is to stay free: its end is seen before the system meets it."""


class DiskFull(RunError):
    """Free space is below what the study keeps: going on would only fail again."""


class DiskGuard:
    """Keeps `keep` bytes free on the file systems of the data, of the snapshots and of the results.

    With `own`, the size in bytes of the file system that was made for the data at `data`, a small share of that stays
    free there; where it is too small, its own runs fail, and those on others go on.
    """

    def __init__(
        self,
        host: LocalHost,
        data: Path,
        results: Path,
        keep: int,
        *,
        snapshots: Path | None = None,
        own: int | None = None,
    ) -> None:
        self._host = host
        self._data = data
        self._results = results
        self._snapshots = snapshots or data
        self._keep = keep
        self._own_keep = None if own is None else round(_OWN_SHARE * own)
        self._growth = 0
        self._next_look = 0.0

    def forecast(self, data_bytes: int) -> None:
        """Refuse to begin something that would write `data_bytes` and grow as runs did so far.

        Less than nothing where more is removed first than is written.
        Raises DiskFull, RunError where a file system made for the data is too small.
        """
        free = self._host.free_disk(self._data)
        need = data_bytes + self._growth
        if self._own_keep is None:
            self._forecast_below(free, need)
        elif free < need + self._own_keep:
            raise RunError(
                f"the file system made for the data has {format_size(free)} free; the run would write about "
                f"{format_size(max(need, 0))} and {format_size(self._own_keep)} are to stay free: raise "
                "host.file_system.size"
            )
        self._look(self._results, "where the results go")

    def forecast_load(self, data_bytes: int) -> None:
        """The same before data are loaded: they are there twice then, live and as a snapshot."""
        if self._own_keep is None:
            self.forecast(2 * data_bytes)
        else:
            self.forecast(data_bytes)
            self.forecast_snapshot(data_bytes)

    def forecast_snapshot(self, data_bytes: int) -> None:
        """The same before a snapshot of that size is made. Raises DiskFull."""
        if self._own_keep is None:
            self.forecast(data_bytes)
        else:
            self._forecast_below(self._host.free_disk(self._snapshots), data_bytes)

    def _forecast_below(self, free: int, need: int) -> None:
        if free < need + self._keep:
            raise DiskFull(
                f"free disk is {format_size(free)}; the run would write about {format_size(max(need, 0))} "
                f"and {format_size(self._keep)} are to stay free (host.require.free_disk)"
            )

    def watch(self) -> None:
        """Look now and then while something is written. Raises as `forecast` does."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_EVERY_S
        if self._own_keep is None:
            self._look(self._data, "under the data")
        elif (free := self._host.free_disk(self._data)) < self._own_keep:
            raise RunError(
                f"the file system made for the data is nearly full: {format_size(free)} are free, "
                f"{format_size(self._own_keep)} are to stay free: raise host.file_system.size"
            )
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
