"""A fault is struck at its time, mended and waited for, whatever else happens; what was found of it is kept."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dyno.lab.faults import Found, Striker, audited, give_up_of, responses_of, stale_reads
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.model.faults import Fault, FaultKind, FaultPlan, Struck
from dyno.model.outage import Attempt, outage
from dyno.model.run import Outcome, RunRecord, Step
from dyno.model.study import KindSpec, Study
from dyno.observers.null import NullObserver
from dyno.systems.cluster import Cluster, NodeState
from dyno.systems.simulated import SimulatedOptions, SimulatedSystem
from dyno.workloads.base import Checked, Measured
from dyno.workloads.core import ATTEMPTS, READS
from dyno.workloads.simulated import SimulatedWorkload
from tests.making import make_study, until
from tests.unit.lab.laboratory import Laboratory, measured

S = 1_000_000_000
MS = 1_000_000


def plan(**rest: Any) -> FaultPlan:
    given = {"from_s": 0.05, "to_s": 0.1, "late_s": 1.0, "whole_s": 5.0, "lasts": 0.05, **rest}
    return FaultPlan(fault=Fault(kind="kill", lasts=given.pop("lasts")), **given)


class Fake:
    """A cluster that says what was done to it, and is whole after it was asked three times."""

    def __init__(self) -> None:
        self.done: list[tuple[str, float]] = []
        self.asked = 0
        self.struck: Struck | None = None
        self.mending: Exception | None = None
        self.heals = True
        self.given_up = threading.Event()

    def strike(self, fault: Fault, rng: random.Random) -> Struck:
        self.done.append(("strike", time.monotonic()))
        self.struck = Struck(fault.kind, ("n2",), time.time_ns())
        return self.struck

    def mend(self, struck: Struck, limit: float) -> None:
        assert struck is self.struck
        self.done.append(("mend", time.monotonic()))
        if self.mending is not None:
            raise self.mending

    def give_up(self) -> None:
        self.given_up.set()

    def whole(self) -> bool:
        self.asked += 1
        if self.asked == 1:
            raise RunError("a node does not answer yet")
        return self.heals and self.asked > 2


@pytest.fixture
def fake() -> Fake:
    return Fake()


def test_it_is_struck_within_its_window_and_mended_after_it_lasted(fake: Fake) -> None:
    striker = Striker(fake, plan(), seed=3, limit=5.0)
    striker.begin()
    begun = time.monotonic()
    striker.measuring(begun)
    until(lambda: striker.whole_ns is not None)
    striker.end()
    (struck, at), (mended, later) = fake.done
    assert (struck, mended) == ("strike", "mend")
    assert 0.05 <= striker.at_s <= 0.1
    assert striker.at_s <= at - begun < striker.at_s + 0.5
    assert later - at >= 0.05
    assert fake.asked == 3
    assert striker.struck is not None
    assert striker.mended_ns is not None
    assert striker.whole_ns is not None
    assert striker.struck.at_ns < striker.mended_ns < striker.whole_ns


def test_the_same_seed_strikes_at_the_same_time_and_another_at_another(fake: Fake) -> None:
    times = [Striker(fake, plan(from_s=0.0, to_s=100.0), seed=seed, limit=1.0).at_s for seed in (1, 1, 2)]
    assert times[0] == times[1] != times[2]


def test_one_that_lasts_until_the_driver_has_ended_is_mended_then(fake: Fake) -> None:
    striker = Striker(fake, plan(lasts=None), seed=3, limit=5.0)
    striker.begin()
    striker.measuring(time.monotonic())
    until(lambda: striker.struck is not None)
    time.sleep(0.05)
    assert [what for what, _ in fake.done] == ["strike"]
    striker.end()
    assert [what for what, _ in fake.done] == ["strike", "mend"]


def test_a_driver_that_ends_before_the_fault_is_told_of_and_nothing_is_struck(fake: Fake) -> None:
    striker = Striker(fake, plan(from_s=60.0, to_s=60.0), seed=3, limit=5.0)
    striker.begin()
    striker.measuring(time.monotonic())
    with pytest.raises(RunError, match="kill was not struck: the driver ended before its time, 60 s after"):
        striker.end()
    assert fake.done == []


def test_a_driver_that_never_measured_is_not_waited_for(fake: Fake) -> None:
    striker = Striker(fake, plan(), seed=3, limit=5.0)
    striker.begin()
    with pytest.raises(RunError, match="was not struck"):
        striker.end()


def test_a_cluster_that_cannot_be_mended_or_does_not_become_whole_is_an_error_at_the_end(fake: Fake) -> None:
    fake.mending = RunError("n2 does not start")
    striker = Striker(fake, plan(lasts=None), seed=3, limit=5.0)
    striker.begin()
    striker.measuring(time.monotonic())
    until(lambda: striker.struck is not None)
    with pytest.raises(RunError, match="n2 does not start"):
        striker.end()
    assert striker.not_whole_ns is not None, "until then it was not whole"
    broken = Fake()
    broken.heals = False
    striker = Striker(broken, plan(whole_s=0.3), seed=3, limit=5.0)
    striker.begin()
    striker.measuring(time.monotonic())
    until(lambda: striker.struck is not None)
    with pytest.raises(RunError, match=r"the cluster was not whole within 300 ms \(faults\.kill\.whole\)"):
        striker.end()
    assert striker.whole_ns is None


def test_a_user_who_ends_it_does_not_wait_until_the_cluster_is_whole(fake: Fake) -> None:
    fake.heals = False
    striker = Striker(fake, plan(whole_s=60.0), seed=3, limit=5.0)
    striker.begin()
    striker.measuring(time.monotonic())
    until(lambda: fake.asked > 0)
    with pytest.raises(RunError, match="not whole yet as the user ended it"):
        striker.end(lambda: True)
    assert striker.not_whole_ns is None, "how long it would have taken nobody knows"


def test_a_user_who_ends_it_during_a_fault_does_not_wait_until_it_is_mended(fake: Fake) -> None:
    """Ctrl-C while a disk was full had a minute of silence: the server was started again, and asked to join."""
    striker = Striker(fake, plan(lasts=None), seed=3, limit=5.0)
    striker.begin()
    striker.measuring(time.monotonic())
    until(lambda: striker.struck is not None)
    with pytest.raises(RunError, match="not mended, as the user ended it"):
        striker.end(lambda: True)
    assert [what for what, _ in fake.done] == ["strike"], "stop takes it back"


def test_mending_that_waits_for_a_node_is_cut_short_by_ending_what_it_waits_for(fake: Fake) -> None:
    def joins(_struck: Struck, _limit: float) -> None:
        assert fake.given_up.wait(30), "a node that never joins"
        raise RunError("n2 ended as it joined")

    fake.mend = joins  # type: ignore[method-assign]
    striker = Striker(fake, plan(), seed=3, limit=60.0)
    striker.begin()
    striker.measuring(time.monotonic())
    until(lambda: striker.mended_ns is not None)
    with pytest.raises(RunError, match="ended as it joined"):
        striker.end(lambda: True)


def test_a_time_without_a_success_that_the_end_of_the_driver_cuts_off_leaves_how_many_fail_unknown() -> None:
    """Struck at 10 s and mended at 20 s; the cluster is whole, and from 25 s to the end at 30 s nothing succeeds."""
    striker = Striker(Fake(), plan(), seed=1, limit=1.0)
    striker.mended_ns, striker.whole_ns = 20 * S, 21 * S
    attempts = [Attempt(at, at, at + MS, ok=at < 25 * S) for at in range(0, 30 * S, 10 * MS)]
    struck = Struck("kill", ("n1",), 10 * S)
    cost = outage(attempts, from_ns=0, struck_ns=10 * S, mended_ns=20 * S, until_ns=30 * S, late_s=1.0)
    found = responses_of(striker, struck, cost)
    assert found.at_least.keys() == {"rejoin_outage", "requests_failed", "requests_late"}
    assert found.unknown["rejoin_outage"] == "nothing succeeded any more when the driver ended, 20 s after the fault"
    assert not found.at_least.keys() & found.known.keys()


def test_of_a_driver_that_keeps_no_attempts_there_is_what_the_cluster_says() -> None:
    striker = Striker(Fake(), plan(), seed=1, limit=1.0)
    striker.mended_ns, striker.whole_ns = 20 * S, 21 * S
    found = responses_of(striker, Struck("kill", ("n1",), 10 * S), None, attempted=False)
    assert found.known == {"rejoin": 1, "redundancy": 11}
    assert not found.unknown


def test_what_nobody_looked_at_of_rows_is_no_figure() -> None:
    counts = {"acknowledged": 9, "present": 8, "lost": 1, "phantom": 0, "duplicated": 0}
    status = {f"ledger.{name}": float(value) for name, value in counts.items()}
    found = audited(status)
    assert found is not None
    assert found.responses == {"rows_lost": 1, "rows_phantom": 0, "rows_duplicated": 0}
    whole = audited({**status, "ledger.altered": 2.0, "ledger.foreign": 0.0})
    assert whole is not None
    assert (whole.responses["rows_altered"], whole.responses["rows_foreign"]) == (2, 0)
    assert audited({"ledger.acknowledged": 9.0}) is None


def told_of_return(whole_s: float | None) -> Found:
    """Struck at 10 s of 30 and mended at 20 s; nothing succeeds from 21 to 23 s."""
    striker = Striker(Fake(), plan(), seed=1, limit=1.0)
    striker.mended_ns = 20 * S
    striker.whole_ns = None if whole_s is None else round(whole_s * S)
    attempts = [Attempt(at, at, at + MS, ok=not 21 * S <= at < 23 * S) for at in range(0, 30 * S, 10 * MS)]
    struck = Struck("kill", ("n1",), 10 * S)
    cost = outage(attempts, from_ns=0, struck_ns=10 * S, mended_ns=20 * S, until_ns=30 * S, late_s=1.0)
    return responses_of(striker, struck, cost)


def test_what_a_return_costs_is_known_where_it_was_over_while_clients_were_there() -> None:
    found = told_of_return(whole_s=24)
    assert found.known["rejoin_outage"] == pytest.approx(2.01)
    assert (found.known["rejoin"], found.known["redundancy"]) == (4, 14)
    assert found.at_least == {}


@pytest.mark.parametrize("whole_s", [31, None])
def test_what_a_return_costs_is_at_least_what_was_seen_where_the_driver_ended_before_it(whole_s: float | None) -> None:
    found = told_of_return(whole_s)
    assert "rejoin_outage" not in found.known
    assert found.at_least == {"rejoin_outage": pytest.approx(2.01)}


# What was read elsewhere


def read(acknowledged_s: float, outcome: str, seen_after_ms: float | None) -> tuple[Any, ...]:
    at = round(acknowledged_s * S)
    seen = None if seen_after_ms is None else at + round(seen_after_ms * MS)
    return (at, at + 1000, at + 2 * MS, outcome, seen)


def test_stale_reads_are_a_share_of_those_that_were_answered() -> None:
    rows = [
        read(0.5, "stale", 900.0),  # before the measured part
        read(1.5, "seen", 2.0),
        read(2.0, "stale", 40.0),
        read(3.0, "timeout", None),
        read(4.0, "stale", 30.0),
        read(5.0, "seen", 2.0),
        read(6.0, "seen", 2.0),
    ]
    of = looked_for(rows)
    found = stale_reads(of, round(3.5 * S), 1.0)
    assert found.known == {
        "stale_reads": pytest.approx(2 / 5),
        "stale_reads_after": pytest.approx(1 / 3),
        "staleness_max": pytest.approx(40.0),
        "reads_unseen": 0,
    }
    assert found.at_least == {}
    assert stale_reads(of, None, 1.0).known.keys() == {"stale_reads", "staleness_max", "reads_unseen"}
    assert stale_reads(Measured(complete=True, responses={}), None, None).known == {}


def looked_for(rows: list[tuple[Any, ...]], until_s: float = 10.0) -> Measured:
    reads = pl.DataFrame(rows, schema=READS, orient="row")
    whole = {"measured_from_ns": S, "measured_to_ns": round(until_s * S)}
    return Measured(complete=True, responses={}, reads=reads, job={"readers": {"give_up_s": 2.0}}, **whole)


def test_where_no_read_was_stale_the_longest_staleness_is_none_at_all() -> None:
    # Without it the median of many runs was of those alone that had read something stale.
    fresh = looked_for([read(2.0, "seen", 2.0), read(3.0, "timeout", None)])
    assert stale_reads(fresh, None, 1.0).known == {"stale_reads": 0, "reads_unseen": 0, "staleness_max": 0}
    assert "staleness_max" not in stale_reads(looked_for([read(3.0, "timeout", None)]), None, 1.0).known
    cut_off = looked_for([read(2.0, "seen", 2.0), read(9.9, "stale", None)])
    assert "staleness_max" not in stale_reads(cut_off, None, 1.0).known


def test_of_a_row_that_was_never_seen_it_is_known_how_long_it_was_looked_for_and_no_more() -> None:
    """A replica 20 s behind: rows come late or not at all, and of those that come late the longest took 1.9 s."""
    rows = [read(2.0, "stale", 1900.0), read(3.0, "stale", None), read(5.0, "stale", None), read(7.0, "seen", 2.0)]
    of = looked_for(rows)
    found = stale_reads(of, None, give_up_of(of))
    assert found.known == {"stale_reads": pytest.approx(3 / 4), "reads_unseen": 2}
    assert found.at_least == {"staleness_max": pytest.approx(2000.0)}
    assert found.unknown == {"staleness_max": "2 rows had not been seen after 2.0 s (stale_reads.give_up)"}


def test_a_row_whose_search_the_end_of_the_run_cut_off_is_stale_and_neither_seen_nor_unseen() -> None:
    of = looked_for([read(2.0, "stale", 40.0), read(8.5, "stale", None), read(9.0, "seen", 2.0)])
    found = stale_reads(of, None, give_up_of(of))
    assert found.known == {"stale_reads": pytest.approx(2 / 3), "reads_unseen": 0, "staleness_max": pytest.approx(40.0)}
    assert found.at_least == {}
    # With 1.5 s to go, 1 s of looking for it was over.
    assert stale_reads(of, None, 1.0).known["reads_unseen"] == 1


def test_an_audit_is_one_only_where_all_of_it_is_there() -> None:
    counts = {"acknowledged": 9.0, "present": 8.0, "lost": 1.0, "phantom": 0.0, "duplicated": 0.0, "altered": 0.0}
    counts |= {"foreign": 2.0}
    found = audited({f"ledger.{name}": count for name, count in counts.items()})
    assert found is not None
    assert (found.acknowledged, found.lost, found.foreign) == (9, 1, 2)
    assert found.responses["rows_foreign"] == 2
    assert audited({"ledger.lost": 1.0}) is None


# In a run

_NO_OTHERS = {f"ledger.{name}": 0.0 for name in ("phantom", "duplicated", "altered", "foreign")}


class Struckable(SimulatedSystem, Cluster[SimulatedOptions]):
    """Two nodes that nobody sees."""

    now = threading.Event()
    followed = threading.Event()
    heals = True
    at_ns = 0

    def ready(self, limit: float) -> Endpoint:
        endpoint = super().ready(limit)
        Struckable.now.clear()
        Struckable.followed.clear()
        return Endpoint(endpoint.backend, endpoint.settings, others={"n1": {"node": 1}, "n2": {"node": 2}})

    def processes(self) -> dict[str, int]:
        return {"n1": TAKES_OVER} if Struckable.now.is_set() else {}

    def nodes(self) -> tuple[NodeState, ...]:
        first = NodeState("n1", "10.0.0.1", 1, "primary", "ONLINE")
        second = NodeState("n2", "10.0.0.2", 2, "secondary", "ONLINE")
        return first, second

    def carry_out(self, kind: FaultKind, node: str) -> None:
        Struckable.at_ns = self._struck[-1].at_ns
        Struckable.now.set()

    def carry_back(self, struck: Struck, limit: float) -> None:
        self.taken_back(struck)
        assert self.is_struck, "until it is mended"

    def whole(self) -> bool:
        return self.heals


TAKES_OVER = 4321
"""The process of a server that is there after the fault alone."""


class Writing(SimulatedWorkload):
    """100 requests a second, of which those of half a second after the fault fail; three rows are lost on one node."""

    outlives_failure = True
    lost = 3
    down_ms = 500
    """After the fault; the run ends 3 s after it."""
    waits_for_observers = False

    def rate(self) -> float:
        return 100.0

    def measured_seconds(self) -> float:
        return 10.0

    def drive(self, runner: Any, endpoint: Endpoint, seed: int) -> Measured:
        assert self.through_fault
        runner.on_measuring(time.monotonic())
        assert Struckable.now.wait(10)
        if self.waits_for_observers:
            assert Struckable.followed.wait(10)
        at = Struckable.at_ns
        due = [at + offset * 10 * MS for offset in range(-200, 300)]
        rows = [(t, t, t + MS, "write", "connect" if at <= t < at + self.down_ms * MS else "ok") for t in due]
        table = pl.DataFrame(rows, schema=ATTEMPTS, orient="row")
        whole = {"measured_from_ns": at - 2 * S, "measured_to_ns": at + 3 * S}
        runner.measured = measured(attempts=table, **whole)
        return runner.measured

    def check(self, runner: Any, endpoint: Endpoint, seed: int) -> Checked:
        lost = self.lost if endpoint.settings.get("node") != 2 else 0
        counts = {"acknowledged": 450, "present": 450 - lost, "lost": lost, "phantom": 1}
        counts |= {"duplicated": 0, "altered": 0, "foreign": 0}
        return Checked({f"ledger.{name}": float(count) for name, count in counts.items()}, "3 rows lost")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    monkeypatch.setattr(Struckable, "heals", True)
    return Laboratory(tmp_path, system_class=Struckable, workload_class=Writing)


def struck_study(**rest: Any) -> Study:
    study = make_study({"mean": (1000,)}, system="tried", min=2, max=2, retries=0)
    cells = tuple(cell.model_copy(update={"fault": plan(**rest)}) for cell in study.cells)
    return study.model_copy(update={"cells": cells})


def test_a_run_with_a_fault_says_what_it_cost_and_what_was_lost_on_each_node(lab: Laboratory) -> None:
    record: RunRecord = lab.records(struck_study())[0]
    assert (record.outcome, record.cause) == (Outcome.OK, None)
    assert [each.step for each in record.steps].count(Step.MEND) == 1
    assert record.responses["outage"] == pytest.approx(0.501)
    assert record.responses["first_success"] == pytest.approx(0.501)
    assert record.responses["requests_failed"] == 50
    assert record.responses["rows_lost"] == 3
    assert record.responses["rows_phantom"] == 1
    assert record.responses["redundancy"] >= record.responses["rejoin"] >= 0
    assert record.faulted is not None
    assert record.faulted.nodes == ("n1",)
    assert record.faulted.former_per_s == pytest.approx(100, rel=0.01)
    assert {name: audit.lost for name, audit in record.faulted.audits.items()} == {"clients": 3, "n1": 3, "n2": 0}
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_what_was_not_over_when_the_driver_ended_is_known_only_to_be_at_least_what_was_seen(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writing, "down_ms", 60_000)
    record = lab.records(struck_study(lasts=None))[0]
    assert record.faulted is not None
    unknown = {"outage", "first_success", "former_throughput", "lost_work", "requests_failed", "requests_late"}
    unknown |= {"rejoin_outage"}
    assert record.faulted.at_least.keys() == unknown
    assert not unknown & record.responses.keys()
    assert record.faulted.at_least["outage"] == pytest.approx(3.0)
    # What is as before is known only after two seconds.
    assert record.faulted.at_least["former_throughput"] == pytest.approx(1.0)
    assert record.faulted.at_least["requests_failed"] == 300
    assert record.faulted.at_least["lost_work"] == pytest.approx(300, rel=0.01)
    assert record.responses["interruptions"] == 1


def test_what_a_node_that_comes_back_costs_is_told_by_itself(lab: Laboratory) -> None:
    record = lab.records(struck_study())[0]
    assert record.faulted is not None
    assert record.faulted.mended_ns is not None
    mended_s = (record.faulted.mended_ns - record.faulted.at_ns) / S
    assert 0 < mended_s < 0.5
    assert record.responses["outage"] == pytest.approx(0.501)
    assert record.responses["rejoin_outage"] == pytest.approx(0.501 - mended_s)
    assert record.faulted.rejoin_outage_s == record.responses["rejoin_outage"]


def test_a_server_that_is_started_after_the_fault_is_watched_too(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(_self: NullObserver, pid: int, subject: str) -> None:
        if (pid, subject) == (TAKES_OVER, "n1"):
            Struckable.followed.set()

    monkeypatch.setattr(Writing, "waits_for_observers", True)
    monkeypatch.setattr(NullObserver, "watch", watch)
    study = struck_study().model_copy(update={"observe": (KindSpec(kind="null", options={}),)})
    assert lab.records(study)[0].outcome is Outcome.OK


def test_the_attempts_are_kept_with_the_run(lab: Laboratory) -> None:
    _, results = lab.run(struck_study())
    table = pl.read_parquet(results.folder / "runs" / "0001" / "attempts.parquet")
    assert table.height == 500
    assert table.filter(pl.col("outcome") == "connect").height == 50


def test_a_run_whose_cluster_does_not_become_whole_has_failed_and_keeps_what_was_found(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Struckable, "heals", False)
    record = lab.records(struck_study(whole_s=0.2))[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.MEND)
    assert record.cause is not None
    assert record.cause.startswith("the cluster was not whole within 200 ms")
    assert record.responses["outage"] == pytest.approx(0.501)
    assert record.faulted is not None
    assert record.faulted.whole_ns is None
    assert record.faulted.at_least["redundancy"] > record.faulted.at_least["rejoin"] > 0.2
    assert "rejoin" not in record.responses
    assert record.faulted.audits["clients"].lost == 3, "it was looked at before it was stopped"
    assert "checked as it ran on: 3 rows lost" in record.cause
    steps = [each.step for each in record.steps]
    assert steps.count(Step.START) == 1, "what another node has would be taken for what clients had"
    assert steps.index(Step.CHECK) < steps.index(Step.STOP)


def test_rows_that_clients_did_not_find_are_counted_though_a_node_cannot_be_audited(lab: Laboratory) -> None:
    """The audit of clients finds 3 lost, and no node answers: the run fails, and rows are lost all the same."""
    asked: list[Any] = []

    def once(*given: Any) -> Checked:
        asked.append(given)
        if len(asked) % 2 == 0:
            raise RunError("n1 does not answer")
        return Checked(status={"ledger.acknowledged": 9.0, "ledger.present": 6.0, "ledger.lost": 3.0, **_NO_OTHERS})

    lab.faults["workload.check"] = once
    record = lab.records(struck_study())[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.CHECK)
    assert record.faulted is not None
    assert record.faulted.audits["clients"].lost == 3
    assert record.responses["rows_lost"] == 3


def test_of_a_cluster_that_no_client_reaches_any_more_it_is_not_known_what_became_of_the_rows(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_args: Any) -> Checked:
        raise RunError("the driver could not connect")

    monkeypatch.setattr(Struckable, "heals", False)
    lab.faults["workload.check"] = unreachable
    record = lab.records(struck_study(whole_s=0.2))[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.MEND)
    assert record.cause is not None
    assert "what became of the rows is not known" in record.cause
    assert "the driver could not connect" in record.cause
    assert record.faulted is not None
    assert record.faulted.audits == {}
    assert "rows_lost" not in record.responses
    assert [each.step for each in record.steps].count(Step.START) == 1


def test_a_defect_in_what_looks_at_the_fault_is_told_of_and_leaves_the_run(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("due_ns")

    monkeypatch.setattr("dyno.lab.execution.outage_of", broken)
    records = lab.records(struck_study())
    assert [record.outcome for record in records] == [Outcome.FAILED] * 2
    for record in records:
        assert any("What the fault cost is not known: defect in dyno" in note for note in record.notes)


def test_a_user_who_ends_it_has_the_cluster_mended_all_the_same(lab: Laboratory) -> None:
    def interrupted(*_args: Any) -> Measured:
        lab.interrupt.requested = True
        return measured(complete=False)

    lab.faults["workload.drive"] = interrupted
    record = lab.records(struck_study())[0]
    assert record.outcome is Outcome.PARTIAL
    assert Step.MEND in [each.step for each in record.steps]
