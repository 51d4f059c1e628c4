"""What the runs of a fault say together: how long outages were, and what became of the rows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.making import make_record, make_study

from dyno.analysis import analyse
from dyno.model.faults import Fault, FaultPlan
from dyno.model.findings import Failover
from dyno.model.run import Audited, Faulted, Outcome, RunRecord, Slot
from dyno.model.study import Study


def study() -> Study:
    plan = FaultPlan(fault=Fault(kind="kill"), from_s=5, to_s=10, late_s=1, whole_s=60)
    made = make_study({"mode": ("async",)}, max=100)
    return made.model_copy(update={"cells": tuple(cell.model_copy(update={"fault": plan}) for cell in made.cells)})


def audit(lost: int = 0, **rest: int) -> Audited:
    return Audited(
        **{
            "acknowledged": 1000,
            "present": 1000 - lost,
            "lost": lost,
            "phantom": 0,
            "duplicated": 0,
            "altered": 0,
            **rest,
        }
    )


def run(number: int, outage: float | None, outcome: Outcome = Outcome.OK, **rest: Any) -> RunRecord:
    given = {
        "kind": "kill",
        "role": "primary",
        "nodes": ("n1",),
        "at_ns": 1,
        "interrupted": True,
        "outage_s": outage,
        "at_least_s": 25.0 if outage is None else None,
        "first_success_s": outage,
        "resolution_s": number / 1000,
        "audits": {"clients": audit()},
        **rest,
    }
    return make_record(number, Slot(cell=0, block=number - 1), outcome, 100.0, faulted=Faulted.model_validate(given))


def failover(*runs: RunRecord) -> Failover:
    (found,) = analyse(study(), runs, ended="done").failovers
    return found


def test_thirty_failovers_have_a_median_with_the_interval_of_published_ranks_and_a_bound_where_nothing_was_lost() -> (
    None
):
    found = failover(*(run(number, float(number)) for number in range(1, 31)))
    assert found.median == 15.5
    assert found.median_ci == (10.0, 21.0)
    assert found.loss_bound == pytest.approx(0.1)
    assert found.loss_bound_exact == pytest.approx(0.0950, abs=5e-5)
    assert (found.audited, found.acknowledged, found.lost) == (30, 30_000, 0)
    assert found.resolution_s == 0.03
    assert found.sentence == (
        "kill of the primary, 30 runs: median outage 15.5 s [10 s, 21 s], longest 30 s. "
        "0 of 30,000 acknowledged rows lost in 30 faults: at 95 % confidence at most 10% of them lose any (3/n)."
    )


def test_where_rows_were_lost_there_is_a_share_of_faults_and_no_bound() -> None:
    lossy = {"audits": {"clients": audit(3, phantom=2), "n1": audit(3, phantom=2)}}
    found = failover(run(1, 1.0), run(2, 1.2, **lossy), run(3, 1.1), run(4, 1.3))
    assert (found.lost, found.with_loss, found.loss_bound) == (3, 1, None)
    assert found.loss_share_ci is not None
    assert found.loss_share_ci[0] < 0.25 < found.loss_share_ci[1]
    assert "3 of 4,000 acknowledged rows lost, in 1 of 4 faults (" in found.sentence
    assert found.sentence.endswith("2 there and never acknowledged.")


def test_an_outage_that_did_not_end_is_longer_than_all_that_did() -> None:
    found = failover(run(1, 1.0), run(2, None, Outcome.INVALID), run(3, 2.0))
    assert found.outages == (1.0, 2.0)
    assert found.unended == (25.0,)
    assert found.median == 2.0
    assert found.not_ok == 1
    most = failover(run(1, 1.0), run(2, None, Outcome.INVALID), run(3, None, Outcome.INVALID))
    assert most.median is None
    assert "median outage beyond what was seen" in most.sentence


def test_a_run_that_failed_after_it_was_struck_is_counted_with_what_was_found_of_it() -> None:
    failed = run(2, 3.0, Outcome.FAILED, audits={"clients": audit(7)})
    found = failover(run(1, 1.0), failed)
    assert (found.runs, found.not_ok, found.lost, found.with_loss) == (2, 1, 7, 1)


def test_a_run_whose_rows_were_not_counted_makes_no_bound_smaller() -> None:
    found = failover(run(1, 1.0), run(2, 1.0, audits={}), run(3, 1.0, Outcome.FAILED, audits={}))
    assert found.audited == 1
    assert found.loss_bound == 1.0


def test_a_node_with_other_rows_than_clients_found_is_told_of() -> None:
    found = failover(run(1, 1.0, audits={"clients": audit(), "n2": audit(2)}), run(2, 1.0))
    assert found.nodes_apart == 1
    assert found.sentence.endswith("In 1 run a node had other rows than clients found.")


def test_a_study_without_faults_has_none() -> None:
    made = make_study()
    records = [make_record(1, Slot(cell=0, block=0), value=1.0)]
    assert analyse(made, records, ended="done").failovers == ()
