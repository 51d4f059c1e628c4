"""Strikes a node of a cluster while it is driven, mends it, and waits until the cluster is whole."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

import polars as pl

from dyno.model.base import RunError
from dyno.model.faults import Fault, FaultPlan, Struck
from dyno.model.outage import Attempt, Outage, outage
from dyno.model.run import Audited
from dyno.model.units import format_duration
from dyno.workloads.base import Measured

_LOOK_EVERY_S = 0.1


class Struckable(Protocol):
    """What is asked of a cluster."""

    def strike(self, fault: Fault, rng: Random) -> Struck:
        """Carry it out now."""
        ...

    def mend(self, struck: Struck, limit: float) -> None:
        """End it."""
        ...

    def whole(self) -> bool:
        """Whether every node is there and in step, as the cluster itself says."""
        ...


class Striker:
    """One fault, in a thread of its own from `begin` to `end`.

    The driver's process goes on meanwhile, and so does whoever watches over it.
    """

    def __init__(self, cluster: Struckable, plan: FaultPlan, seed: int, limit: float) -> None:
        """`limit` is of mending, in seconds; the plan has how long the cluster is waited for after it."""
        self._cluster = cluster
        self._plan = plan
        self._limit = limit
        self._rng = Random(seed)
        self.at_s = self._rng.uniform(plan.from_s, plan.to_s)
        """When it is struck, in seconds since the measured part begins."""
        self._since: float | None = None
        self._measuring = threading.Event()
        self._over = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._live, name="striker", daemon=True)
        self._error: Exception | None = None
        self.struck: Struck | None = None
        self.mended_ns: int | None = None
        self.whole_ns: int | None = None

    def begin(self) -> None:
        """Just before driving."""
        self._thread.start()

    def measuring(self, since: float) -> None:
        """The measured part began then, by the monotonic clock; it is told more than once."""
        if self._since is None:
            self._since = since
            self._measuring.set()

    def end(self, interrupted: Callable[[], bool] = lambda: False) -> None:
        """The driver has ended: have it mended, and wait until the cluster is whole, or the user wants it all to end.

        Raises RunError where it was not struck, not mended, or is not whole within its limit.
        """
        self._over.set()
        self._measuring.set()
        if self._thread.ident is not None:
            while self._thread.is_alive():
                self._thread.join(_LOOK_EVERY_S)
                if interrupted():
                    self._given_up.set()
        if self._error is not None:
            raise self._error
        if self.struck is None:
            when = f"{self.at_s:.3g} s after the measured part began"
            raise RunError(f"{self._plan.fault.kind} was not struck: the driver ended before its time, {when}")

    def _live(self) -> None:
        try:
            self._measuring.wait()
            if self._over.is_set() or self._since is None:
                return
            if self._over.wait(max(self._since + self.at_s - time.monotonic(), 0.0)):
                return
            self.struck = self._cluster.strike(self._plan.fault, self._rng)
            self._over.wait(self._plan.fault.lasts)
            self.mended_ns = time.time_ns()
            self._cluster.mend(self.struck, self._limit)
            self._see_it_whole()
        except Exception as error:  # noqa: BLE001 - it is raised where the run goes on
            self._error = error

    def _see_it_whole(self) -> None:
        deadline = time.monotonic() + self._plan.whole_s
        while True:
            # A node that has just been started may not say anything yet.
            with contextlib.suppress(RunError):
                if self._cluster.whole():
                    self.whole_ns = time.time_ns()
                    return
            if time.monotonic() > deadline:
                limit = format_duration(self._plan.whole_s)
                raise RunError(f"the cluster was not whole within {limit} (faults.{self._plan.fault.kind}.whole)")
            if self._given_up.wait(_LOOK_EVERY_S):
                raise RunError("the cluster was not whole yet as the user ended it")


def outage_of(measured: Measured, struck: Struck, late_s: float) -> Outage | None:
    """What the fault cost those who asked; None where no attempts were kept or there is nothing to go by."""
    table, since, until = measured.attempts, measured.measured_from_ns, measured.measured_to_ns
    if table is None or since is None or until is None:
        return None
    columns = table.select("due_ns", "sent_ns", "ended_ns", pl.col("outcome") == "ok")
    attempts = [Attempt(*row) for row in columns.iter_rows()]
    return outage(attempts, from_ns=since, struck_ns=struck.at_ns, until_ns=until, late_s=late_s)


def responses_of(striker: Striker, struck: Struck, found: Outage | None) -> tuple[dict[str, float], dict[str, str]]:
    """The responses of a fault; those that it did not come to, each with why not."""
    known: dict[str, float] = {}
    unknown: dict[str, str] = {}
    if striker.whole_ns is not None:
        known["redundancy"] = (striker.whole_ns - struck.at_ns) / 1e9
        if striker.mended_ns is not None:
            known["rejoin"] = (striker.whole_ns - striker.mended_ns) / 1e9
    if found is None:
        why = "nothing succeeded in the measured part before the fault, or it was struck outside of it"
        return known, dict.fromkeys(("outage", "first_success", "former_throughput", "lost_work"), why)
    known |= {
        "lost_work": found.lost_work,
        "requests_failed": float(found.failed),
        "requests_late": float(found.late),
    }
    never = f"it did not come to that until the driver ended, {found.watched_s:.3g} s after the fault"
    for name, value in (
        ("outage", found.outage_s),
        ("first_success", found.first_success_s),
        ("former_throughput", found.former_throughput_s),
    ):
        if value is None:
            unknown[name] = never
        else:
            known[name] = value
    return known, unknown


def audited(status: Mapping[str, float]) -> Audited | None:
    """A workload's count of its rows, among what its check found; None where there is none."""
    names = ("acknowledged", "present", "lost", "phantom", "duplicated", "altered")
    if any(f"ledger.{name}" not in status for name in names):
        return None
    return Audited(**{name: int(status[f"ledger.{name}"]) for name in names})


def rows_of(found: Audited) -> dict[str, float]:
    """The responses of an audit."""
    return {
        "rows_lost": float(found.lost),
        "rows_phantom": float(found.phantom),
        "rows_duplicated": float(found.duplicated),
        "rows_altered": float(found.altered),
    }


def stale_reads(measured: Measured, struck_ns: int | None) -> dict[str, float]:
    """The responses of what was looked for elsewhere in the measured part, as soon as it was acknowledged."""
    table, since = measured.reads, measured.measured_from_ns
    if table is None or since is None:
        return {}
    answered = table.filter(pl.col("acknowledged_ns") >= since, pl.col("outcome").is_in(["seen", "stale"]))
    found = _share_stale("stale_reads", answered)
    if struck_ns is not None:
        found |= _share_stale("stale_reads_after", answered.filter(pl.col("acknowledged_ns") >= struck_ns))
    took = answered.filter(pl.col("outcome") == "stale", pl.col("seen_ns").is_not_null())
    if took.height:
        longest = (took["seen_ns"] - took["acknowledged_ns"]).max()
        found["staleness_max"] = float(str(longest)) / 1e6
    return found


def _share_stale(name: str, answered: pl.DataFrame) -> dict[str, float]:
    if not answered.height:
        return {}
    return {name: answered.filter(pl.col("outcome") == "stale").height / answered.height}
