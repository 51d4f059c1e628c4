"""Counting instructions where no counter does: the system's program under valgrind, with a workload cut short."""

from __future__ import annotations

import re
import shutil
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from dyno.deployments.base import FUNCTION_COLUMNS, Launch, Recipe, Running
from dyno.deployments.native import Native, NativeServer
from dyno.lab.callgrind import Function, self_costs
from dyno.lab.rooms import Rooms
from dyno.model.base import RunError
from dyno.model.study import Cell, Factor, HostSpec, KindSpec, Level, Study

LENGTH: Final = "operations counted"
"""The factor of the two lengths: what the longer one takes more is that of operations alone."""

INSTRUCTIONS: Final = "valgrind.instructions"

_BLOCKS: Final = 2
_GRACE_S: Final = 5.0  # for a server that was told already to end at once
_SLOWER: Final = 10.0
"""Of the limits. MariaDB came up in 4 to 9 s, so ten times the 120 s that it may take natively leave room; longer waits
hide only that it hangs."""
_PROFILE: Final = "callgrind.out"
_COLLECTED: Final = re.compile(r"Collected\s*:\s*(\d+)")
_LEFT_OUT: Final = ("duration", "warmup", "warmup_operations", "warmup_detect", "rate", "arrivals", "min_rate_reached")
"""What would do other operations than the ones counted, or wants a pace that nothing under valgrind can keep."""


class Counted(Native):
    """Native, under valgrind's callgrind. Loading is not counted, and not slowed down."""

    kind = "native, under valgrind"

    _running: NativeServer | None = None
    _undo_by = signal.SIGKILL
    _reminders = 0
    _log: Path | None = None
    _counted: Mapping[str, float] = {}
    _functions: pl.DataFrame | None = None

    def provision(self, _recipe: Recipe | None, limit: float) -> Mapping[str, str]:
        """Whether valgrind is there."""
        valgrind = _valgrind()
        said = self.site.host.run([valgrind, "--version"], limit=limit, log=self.site.logs / "valgrind-version")
        return {"valgrind": said.strip()}

    def start(self, launch: Launch, limit: float) -> NativeServer:
        """As a child of dyno's; valgrind becomes the program, so that its process is that of the server."""
        self._counted, self._functions = {}, None
        if not launch.loading:
            launch = self._under_valgrind(launch)
        self._undo_by = launch.undo_by
        running = self._running = super().start(launch, limit)
        if self._reminders:  # while it was being started
            running.process.send(self._undo_by)
        return running

    def _under_valgrind(self, launch: Launch) -> Launch:
        # Where the server's account may write.
        folder = launch.folders[0] if launch.folders else self.site.work
        self._log = folder / "callgrind"
        # Not /tmp: as it starts, another MariaDB removes the temporary tables that it finds there, and one that is slow
        # has its own for long.
        valgrind: tuple[str, ...] = (
            _valgrind(),
            "--tool=callgrind",
            f"--callgrind-out-file={folder / _PROFILE}.%p",  # each process that it forks has a file of its own
            f"--log-file={self._log}",
        )
        if launch.first_of_child:
            # A child begins with the count of its parent. Of a dozen, what a start varies by would be counted as often.
            valgrind = (*valgrind, f"--zero-before={launch.first_of_child}")
        return replace(launch, argv=("env", f"TMPDIR={folder}", *valgrind, *launch.argv, *launch.for_valgrind))

    def interrupted(self) -> None:
        """Its run does not count: what it would answer or write in minutes is not waited for, and soon it is killed."""
        self._reminders += 1
        if self._running is not None:
            self._running.process.send(self._undo_by if self._reminders == 1 else signal.SIGKILL)

    def end(self, running: Running, *, limit: float, farewell: signal.Signals = signal.SIGTERM) -> int:
        """It tells what it counted when it ends, and what that was spent on."""
        log, self._log = self._log, None
        try:
            status = super().end(running, limit=_GRACE_S if self._reminders else limit, farewell=farewell)
        finally:
            self._running = None
        # Of one that was told to end at once nothing counts, and of one that died there is worse to tell.
        if log is not None and status == 0 and not self._reminders:
            self._counted, self._functions = read_counts(log)
        return status

    def counted(self) -> Mapping[str, float]:
        """Of the server that ended last."""
        return self._counted

    def functions(self) -> pl.DataFrame | None:
        """The largest first."""
        return self._functions


def read_counts(log: Path) -> tuple[Mapping[str, float], pl.DataFrame]:
    """Of all processes of a server that ended: their instructions, and those of each function. Raises RunError."""
    spent: Counter[Function] = Counter()
    try:
        told = [int(each) for each in _COLLECTED.findall(log.read_text(errors="replace"))]
        for profile in sorted(log.parent.glob(f"{_PROFILE}.*")):
            with profile.open(errors="replace") as lines:
                spent.update(self_costs(lines, profile.name))
    except OSError as error:
        raise RunError(f"valgrind told nothing: {error}") from error
    if not told:
        raise RunError("valgrind told nothing of what it counted")
    if spent.total() != sum(told):
        raise RunError(
            f"valgrind counted {sum(told)} instructions, and its profiles ({_PROFILE}.*) have {spent.total()}: "
            "a process was ended before it wrote its own"
        )
    ranked = sorted(spent.items(), key=lambda item: (-item[1], item[0].module, item[0].symbol or ""))
    rows = [(*function, count) for function, count in ranked]
    return {INSTRUCTIONS: float(sum(told))}, pl.DataFrame(rows, schema=FUNCTION_COLUMNS, orient="row")


def _valgrind() -> str:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise RunError("valgrind is not installed: install Debian's valgrind")
    return valgrind


def counting(rooms: Rooms) -> Rooms:
    """The same rooms, with every deployment replaced by one that counts."""
    return replace(rooms, deployments=dict.fromkeys(rooms.deployments, Counted))


def shortened(study: Study, operations: int) -> Study:
    """A pilot of two blocks: each cell at so many operations and at twice as many, natively and without limits."""
    lengths = (operations, 2 * operations)
    cells = [
        _cell(cell, length, 2 * cell.index + place) for cell in study.cells for place, length in enumerate(lengths)
    ]
    factor = Factor(name=LENGTH, levels=tuple(Level(value=length) for length in lengths))
    rule = study.replicates.model_copy(update={"min": _BLOCKS, "max": _BLOCKS, "budget": None, "of": "throughput"})
    slow = {name: _SLOWER * getattr(study.limits, name) for name in ("start", "ready", "drive", "stop")}
    return study.model_copy(
        update={
            "pilot": True,
            "factors": (*study.factors, factor),
            "cells": tuple(cells),
            "replicates": rule,
            "limits": study.limits.model_copy(update=slow),
            "observe": (),
            "targets": (),
            "published": None,
            "stages": None,
        }
    )


def _cell(cell: Cell, length: int, index: int) -> Cell:
    given = {name: value for name, value in cell.workload.options.items() if name not in _LEFT_OUT}
    return cell.model_copy(
        update={
            "index": index,
            "levels": {**cell.levels, LENGTH: str(length)},
            "host": HostSpec(require=cell.host.require.model_copy(update={"truly_cold": False})),
            "workload": KindSpec(kind=cell.workload.kind, options={**given, "operations": length}),
        }
    )
