"""Strikes a node of a cluster while it is driven, mends it, and waits until the cluster is whole."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import polars as pl

from dyno.model.base import RunError
from dyno.model.faults import Fault, FaultPlan, Struck
from dyno.model.outage import Attempt, Outage, outage
from dyno.model.run import AUDITED, Audited
from dyno.model.units import counted, format_duration
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

    def give_up(self) -> None:
        """End what mending may wait for: nobody wants the cluster any more."""
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
        self.not_whole_ns: int | None = None
        """When that was given up: it could not be mended, or had been waited for long enough."""

    def begin(self) -> None:
        """Just before driving."""
        self._thread.start()

    def measuring(self, since: float) -> None:
        """The measured part began then, by the monotonic clock; it is told more than once."""
        if self._since is None:
            self._since = since
            self._measuring.set()

    def end(self, interrupted: Callable[[], bool] = lambda: False) -> None:
        """The driver has ended: have it mended, and wait until the cluster is whole.

        Where the user wants it all to end neither is waited for: what was struck is taken back as the cluster stops.
        Raises RunError where it was not struck, not mended, or is not whole within its limit.
        """
        if interrupted():
            self._given_up.set()
        self._over.set()
        self._measuring.set()
        if self._thread.ident is not None:
            while self._thread.is_alive():
                self._thread.join(_LOOK_EVERY_S)
                if interrupted():
                    self._given_up.set()
                    self._cluster.give_up()  # again and again: a node may just be about to be started
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
            if self._given_up.is_set():
                raise RunError("the fault was not mended, as the user ended it")
            self.mended_ns = time.time_ns()
            self._cluster.mend(self.struck, self._limit)
            self._see_it_whole()
        except Exception as error:  # noqa: BLE001 - it is raised where the run goes on
            self._error = error
            if self.mended_ns is not None and not self._given_up.is_set():
                self.not_whole_ns = time.time_ns()

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


@dataclass
class Found:
    """Responses of a run, and those that are not known because they were not over: what was seen of them, and why."""

    known: dict[str, float] = field(default_factory=dict)
    at_least: dict[str, float] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: float | None, at_least: float | None, why: str) -> None:
        """One of them; neither known nor seen where it did not come to it."""
        if value is not None:
            self.known[name] = value
            return
        self.unknown[name] = why
        if at_least is not None:
            self.at_least[name] = at_least

    def update(self, other: Found) -> None:
        """Those too."""
        self.known |= other.known
        self.at_least |= other.at_least
        self.unknown |= other.unknown


def outage_of(measured: Measured, struck: Struck, mended_ns: int | None, late_s: float) -> Outage | None:
    """What the fault cost those who asked; None where no attempts were kept or there is nothing to go by."""
    table, since, until = measured.attempts, measured.measured_from_ns, measured.measured_to_ns
    if table is None or since is None or until is None:
        return None
    columns = table.select("due_ns", "sent_ns", "ended_ns", pl.col("outcome") == "ok")
    attempts = [Attempt(*row) for row in columns.iter_rows()]
    return outage(attempts, from_ns=since, struck_ns=struck.at_ns, mended_ns=mended_ns, until_ns=until, late_s=late_s)


def responses_of(striker: Striker, struck: Struck, found: Outage | None, *, attempted: bool = True) -> Found:
    """The responses of a fault; what was not over when it was last looked at is no value of them.

    Of a driver that keeps no attempts (`attempted`) there are only those of the cluster.
    """
    told = _wholeness(striker, struck)
    if not attempted:
        return told
    if found is None:
        why = "nothing succeeded in the measured part before the fault, or it was struck outside of it"
        told.unknown |= dict.fromkeys(("outage", "first_success", "former_throughput", "lost_work"), why)
        return told
    then = f"the driver ended, {found.watched_s:.3g} s after the fault"
    never, cut_off = f"it did not come to that until {then}", f"nothing succeeded any more when {then}"
    # Where nothing succeeds at the end, as many more requests fail as others are made.
    ended = found.at_least_s is None and found.rejoin_at_least_s is None
    told.known["interruptions"] = float(len(found.interruptions))
    told.add("outage", found.outage_s, found.at_least_s, never)
    told.add("first_success", found.first_success_s, found.first_success_at_least_s, never)
    told.add("former_throughput", found.former_throughput_s, found.former_throughput_at_least_s, never)
    back = found.former_throughput_s is not None
    told.add("lost_work", found.lost_work if back else None, found.lost_work, never)
    told.add("requests_failed", float(found.failed) if ended else None, float(found.failed), cut_off)
    told.add("requests_late", float(found.late) if ended else None, float(found.late), cut_off)
    # A donor may stand still until all is whole: what was seen of a return that was cut short is not all of it.
    to_the_end = striker.whole_ns is not None and striker.whole_ns <= struck.at_ns + found.watched_s * 1e9
    seen = [each for each in (found.rejoin_outage_s, found.rejoin_at_least_s) if each is not None]
    told.add(
        "rejoin_outage",
        found.rejoin_outage_s if to_the_end else None,
        max(seen, default=None),
        cut_off if to_the_end else "the driver ended before the cluster was whole",
    )
    return told


def _wholeness(striker: Striker, struck: Struck) -> Found:
    """How long it took until the cluster was whole, or at the least where it had not become so."""
    found, mended = Found(), striker.mended_ns
    if mended is None:
        return found
    until = striker.whole_ns or striker.not_whole_ns
    for name, since in (("redundancy", struck.at_ns), ("rejoin", mended)):
        took = None if until is None else (until - since) / 1e9
        found.add(name, took if striker.whole_ns else None, took, "the cluster did not become whole")
    return found


def audited(status: Mapping[str, float]) -> Audited | None:
    """A workload's count of its rows, among what its check found; None where there is none."""
    found = {name: status.get(f"ledger.{name}") for name in ("acknowledged", "present", *AUDITED)}
    if any(value is None and name not in ("altered", "foreign") for name, value in found.items()):
        return None
    return Audited.model_validate({name: value if value is None else int(value) for name, value in found.items()})


def stale_reads(measured: Measured, struck_ns: int | None, give_up_s: float | None) -> Found:
    """The responses of what was looked for elsewhere in the measured part, as soon as it was acknowledged.

    A row was looked for again for `give_up_s`, or until the driver ended: that it was not seen says something only
    where it had all that time.
    """
    table, since = measured.reads, measured.measured_from_ns
    if table is None or since is None:
        return Found()
    answered = table.filter(pl.col("acknowledged_ns") >= since, pl.col("outcome").is_in(["seen", "stale"]))
    found = Found(known=_share_stale("stale_reads", answered))
    if struck_ns is not None:
        found.known |= _share_stale("stale_reads_after", answered.filter(pl.col("acknowledged_ns") >= struck_ns))
    stale = answered.filter(pl.col("outcome") == "stale")
    took = stale.filter(pl.col("seen_ns").is_not_null()).select(pl.col("seen_ns") - pl.col("acknowledged_ns"))
    longest = None if not took.height else float(str(took.to_series().max())) / 1e6
    if give_up_s is None or measured.measured_to_ns is None:
        return found
    given_up = pl.col("seen_ns").is_null() & (pl.col("ended_ns") + round(give_up_s * 1e9) <= measured.measured_to_ns)
    unseen = stale.filter(given_up).height
    if answered.height:
        found.known["reads_unseen"] = float(unseen)
    if unseen:
        why = f"{counted(unseen, 'row')} had not been seen after {format_duration(give_up_s)} (stale_reads.give_up)"
        found.add("staleness_max", None, max(longest or 0.0, give_up_s * 1e3), why)
    elif longest is not None:
        found.known["staleness_max"] = longest
    elif answered.height and not stale.height:
        found.known["staleness_max"] = 0.0  # else the median would be of those runs alone that read something stale
    return found


def give_up_of(measured: Measured) -> float | None:
    """How long its readers looked for a row; None where it had none."""
    readers = measured.job.get("readers")
    return float(readers["give_up_s"]) if readers else None


def _share_stale(name: str, answered: pl.DataFrame) -> dict[str, float]:
    if not answered.height:
        return {}
    return {name: answered.filter(pl.col("outcome") == "stale").height / answered.height}
