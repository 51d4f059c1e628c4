"""The observer counted: what a transaction of an embedded system takes, counted once the run is over."""

from __future__ import annotations

import shutil
from typing import Annotated

import polars as pl
from pydantic import Field

from dyno.hosts import perf
from dyno.model.base import Frozen, RunError
from dyno.observers.base import SAMPLE_COLUMNS, Counting, Observer

EVENTS = ("instructions", "cycles")


class CountedOptions(Frozen):
    """How many are counted: of code that does the same each time, a few hundred say as much as more."""

    transactions: Annotated[
        int, Field(ge=1, le=10**9, description="of each kind of the mix, in a run of their own under valgrind")
    ] = 1000
    settling: Annotated[
        int, Field(ge=0, le=10**9, description="of the mix, before those that are counted, at valgrind's speed")
    ] = 100


class CountedObserver(Observer[CountedOptions]):
    """It sees nothing of the measured run, and costs it nothing."""

    kind = "counted"
    needs = ("instruction counts",)
    Options = CountedOptions
    counts = True

    _hardware = False

    def provision(self, limit: float) -> None:
        """Whether valgrind is there."""
        if shutil.which("valgrind") is None:
            raise RunError("valgrind is not installed: install Debian's valgrind")

    def start(self, limit: float) -> None:
        """Whether the machine has counters, too."""
        try:
            program = perf.program()
        except RunError:
            return  # nobody can tell
        self._hardware = all(perf.counts(program, event) for event in EVENTS)

    def watch(self, pid: int, subject: str) -> None:
        """Looks away."""

    def stop(self, limit: float) -> pl.DataFrame:
        """No samples."""
        return pl.DataFrame(schema=SAMPLE_COLUMNS)

    def counting(self) -> Counting:
        """As asked for."""
        return Counting(self.options.transactions, self.options.settling, self._hardware)

    def notes(self) -> tuple[str, ...]:
        """What is missing."""
        if self._hardware:
            return ()
        return (
            "Instructions of transactions are counted by valgrind alone, since this machine has no counters of "
            "instructions and cycles that can be read here: cycles are not known.",
        )
