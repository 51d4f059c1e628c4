"""What the runs of a fault say together: how long outages were, and what became of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from tests.making import make_record, make_study

from dyno.analysis import analyse
from dyno.analysis.folders import compare_folders
from dyno.analysis.gate import gate_blocks
from dyno.model.faults import Fault, FaultPlan
from dyno.model.findings import Failover, FaultFigure, Findings, TargetResult
from dyno.model.run import Audited, Faulted, Outcome, RunRecord, Slot
from dyno.model.study import Study
from dyno.model.targets import Target


def study(levels: tuple[str, ...] = ("async",), **rest: Any) -> Study:
    plan = FaultPlan(fault=Fault(kind="kill", lasts=10), from_s=5, to_s=10, late_s=1, whole_s=60)
    made = make_study({"mode": levels}, max=100, **rest)
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


def run(
    number: int,
    outage: float | None,
    outcome: Outcome = Outcome.OK,
    *,
    cell: int = 0,
    responses: Mapping[str, float] = MappingProxyType({}),
    errors: Mapping[str, dict[str, int]] = MappingProxyType({}),
    **rest: Any,
) -> RunRecord:
    """One in which something was struck; its outage was over unless it is None, and 25 s of it were seen then."""
    audits = rest.pop("audits", {"clients": audit()})
    unended = {"outage": 25.0, "first_success": 25.0} if outage is None else {}
    given = {
        "kind": "kill",
        "role": "primary",
        "nodes": ("n1",),
        "at_ns": 1,
        "interrupted": True,
        "interruptions": [(0.0, outage or 25.0)],
        "outage_s": outage,
        "first_success_s": outage,
        "resolution_s": number / 1000,
        "audits": audits,
        **rest,
        "at_least": {**unended, **rest.get("at_least", {})},
    }
    known = {} if outage is None else {"outage": outage, "first_success": outage}
    known |= {"rows_lost": float(audits["clients"].lost)} if "clients" in audits else {}
    record = make_record(
        number, Slot(cell=cell, block=number - 1), outcome, 100.0, faulted=Faulted.model_validate(given)
    )
    return record.model_copy(update={"responses": {**record.responses, **known, **responses}, "errors": dict(errors)})


def failover(*runs: RunRecord, confidence: str = "95%") -> Failover:
    (found,) = analyse(study(confidence=confidence), runs, ended="done").failovers
    return found


def figure(found: Failover, response: str) -> FaultFigure:
    of = found.figure(response)
    assert of is not None
    return of


def test_thirty_failovers_have_a_median_with_the_interval_of_published_ranks_and_a_bound_where_nothing_was_lost() -> (
    None
):
    found = failover(*(run(number, float(number)) for number in range(1, 31)))
    assert (figure(found, "outage").median, figure(found, "outage").ci) == (15.5, (10.0, 21.0))
    assert found.loss_bound == pytest.approx(0.0950, abs=5e-5)
    assert (found.audited, found.acknowledged, found.lost) == (30, 30_000, 0)
    assert found.resolution_s == 0.03
    assert found.sentence == (
        "kill of the primary, 30 runs: median outage 15.5 s [10 s, 21 s], longest 30 s. "
        "0 of 30,000 acknowledged rows lost in 30 faults: at 95% confidence at most 9.5% of such faults lose any."
    )


def test_where_rows_were_lost_there_is_a_share_of_faults_and_no_bound() -> None:
    lossy = {"audits": {"clients": audit(3, phantom=2), "n1": audit(3, phantom=2)}}
    found = failover(run(1, 1.0), run(2, 1.2, **lossy), run(3, 1.1), run(4, 1.3))
    assert (found.lost, found.with_loss, found.loss_bound) == (3, 1, None)
    assert found.loss_share_ci is not None
    assert found.loss_share_ci[0] < 0.25 < found.loss_share_ci[1]
    assert "3 of 4,000 acknowledged rows lost, in 1 of 4 faults (" in found.sentence
    assert found.sentence.endswith("2 there and never acknowledged, which is allowed.")


@pytest.mark.parametrize(
    ("runs", "confidence", "said"),
    [
        # 1 - 0.05^(1/n) and 1 - 0.1^(1/n).
        (1, "95%", "at 95% confidence at most 95% of such faults lose any"),
        (2, "95%", "at 95% confidence at most 78% of such faults lose any"),
        (3, "90%", "at 90% confidence at most 54% of such faults lose any"),
    ],
)
def test_the_bound_is_exact_and_at_the_studys_confidence(runs: int, confidence: str, said: str) -> None:
    found = failover(*(run(number, 1.0) for number in range(1, runs + 1)), confidence=confidence)
    assert said in found.sentence


def test_rows_that_were_never_acknowledged_stand_beside_the_requests_that_nobody_waited_for() -> None:
    errors = {"write": {"timeout": 16, "connection_lost": 8, "connect": 90}}
    found = failover(run(1, 1.0, audits={"clients": audit(phantom=16)}, errors=errors), run(2, 1.0))
    assert (found.timeouts, found.broken) == (16, 8)
    assert found.sentence.endswith(
        "16 there and never acknowledged, which is allowed: 16 requests timed out and the connection of 8 requests "
        "broke, and what they asked for may be carried out all the same."
    )


def test_rows_that_no_client_can_have_written_are_told() -> None:
    found = failover(run(1, 1.0, audits={"clients": audit(foreign=2)}), run(2, 1.0))
    assert found.foreign == 2
    assert "2 there that no client can have written" in found.sentence


def test_an_outage_that_did_not_end_is_longer_than_all_that_did() -> None:
    found = failover(run(1, 1.0), run(2, None, Outcome.INVALID), run(3, 2.0))
    assert found.outages == (1.0, 2.0)
    assert found.unended == (25.0,)
    assert figure(found, "outage").median == 2.0
    assert found.not_ok == 1
    most = failover(run(1, 1.0), run(2, None, Outcome.INVALID), run(3, None, Outcome.INVALID))
    assert figure(most, "outage").median is None
    assert (figure(most, "outage").beyond, figure(most, "outage").at_least) == (2, 25.0)
    assert "median outage at least 25 s" in most.sentence


def censored(outages: list[float], seen: list[float]) -> Failover:
    runs = [run(number, outage) for number, outage in enumerate(outages, 1)]
    for number, least in enumerate(seen, len(outages) + 1):
        runs.append(run(number, None, Outcome.INVALID, at_least={"outage": least, "first_success": least}))
    return failover(*runs)


def test_a_median_between_one_that_was_over_and_one_that_was_not_is_at_least_their_mean() -> None:
    """With half of six not over, infinity as the fourth said that it was longer than all: it may be 5.5 s."""
    found = censored([1.0, 2.0, 5.0], [6.0, 6.0, 7.0])
    outage = figure(found, "outage")
    assert (outage.median, outage.median_least, outage.median_most) == (None, 5.5, None)
    assert outage.ci == (1.0, None)
    assert "median outage at least 5.5 s [1 s or more]" in found.sentence


def test_what_was_hardly_seen_is_not_longer_than_all_that_was_over() -> None:
    outage = figure(censored([5.1, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7], [0.02] * 6), "outage")
    assert (outage.median, outage.median_least, outage.median_most) == (None, 5.1, 5.7)
    assert (outage.n, outage.beyond) == (13, 6)
    assert outage.ci == (0.02, None)


def test_a_record_of_an_earlier_dyno_says_of_an_unended_outage_what_it_did_then() -> None:
    kept = {"kind": "kill", "role": "primary", "nodes": ["n1"], "at_ns": 1, "watched_s": 30.0}
    assert Faulted.model_validate({**kept, "at_least_s": 25.0}).at_least == {"outage": 25.0, "first_success": 30.0}
    assert Faulted.model_validate({**kept, "at_least_s": None}).at_least == {}


def test_a_run_that_failed_after_it_was_struck_is_counted_with_what_was_found_of_it() -> None:
    failed = run(2, 3.0, Outcome.FAILED, audits={"clients": audit(7)})
    found = failover(run(1, 1.0), failed)
    assert (found.runs, found.not_ok, found.lost, found.with_loss) == (2, 1, 7, 1)


def test_a_run_that_the_user_cut_off_says_nothing_of_how_long_an_outage_would_have_been() -> None:
    found = failover(run(1, 1.0), run(2, None, Outcome.PARTIAL))
    assert (found.runs, found.unended) == (1, ())


def test_a_run_whose_rows_were_not_counted_makes_no_bound_smaller() -> None:
    found = failover(run(1, 1.0), run(2, 1.0, audits={}), run(3, 1.0, Outcome.FAILED, audits={}))
    assert found.audited == 1
    assert found.loss_bound == pytest.approx(0.95)
    assert found.sentence.endswith("What became of the rows is not known of 2 of 3 faults.")


def test_a_node_with_other_rows_than_clients_found_is_told_of() -> None:
    found = failover(run(1, 1.0, audits={"clients": audit(), "n2": audit(2)}), run(2, 1.0))
    assert found.nodes_apart == 1
    assert found.sentence.endswith("In 1 run a node had other rows than clients found.")


def test_the_report_leads_with_rejoin_and_what_it_cost_those_who_asked() -> None:
    back = {"rejoin": 12.4, "redundancy": 22.4, "rejoin_outage": 0.5}
    found = failover(*(run(number, 1.0, responses=back) for number in range(1, 7)))
    assert figure(found, "rejoin").ci == (12.4, 12.4)
    assert found.figure("redundancy") is None, "it is what the study lets the fault last, and rejoin"
    assert (
        "It was whole again 12.4 s [12.4 s, 12.4 s] after mending began; from then on nothing succeeded for up to "
        "500 ms [500 ms, 500 ms] (median)." in found.sentence
    )


def test_a_driver_that_ended_before_the_cluster_was_whole_is_no_store_that_answered_nobody() -> None:
    """The summary had said that nothing succeeded until the driver ended, of a cluster that served all the while."""
    cut = {"whole_ns": 1 + 31 * 10**9, "watched_s": 30.0, "at_least": {"rejoin_outage": 0.4}}
    kept = {"whole_ns": 1 + 29 * 10**9, "watched_s": 30.0}
    back = {"rejoin": 21.0}
    found = failover(run(1, 1.0, responses={**back, "rejoin_outage": 0.5}, **kept), run(2, 1.0, responses=back, **cut))
    assert found.cut_short == 1
    assert (
        "; in 1 of 2 it was not whole before the driver ended, so that this time is not known but to be at least "
        "400 ms: lengthen workload.duration."
    ) in found.sentence
    assert "not over" not in found.sentence
    all_cut = failover(*(run(number, 1.0, responses=back, **cut) for number in (1, 2)))
    assert "nothing succeeded for at least 400 ms (median); in 2 of 2 it was not whole" in all_cut.sentence


def test_a_cluster_that_did_not_become_whole_rejoins_later_than_all_that_did() -> None:
    never = {"at_least": {"rejoin": 300.0}}
    found = failover(
        run(1, 1.0, responses={"rejoin": 2.0}),
        run(2, 1.0, responses={"rejoin": 4.0}),
        run(3, 1.0, Outcome.FAILED, **never),
    )
    assert (figure(found, "rejoin").median, figure(found, "rejoin").beyond) == (4.0, 1)
    assert "4 s after mending began, in 1 of 3 not at all." in found.sentence


def test_a_service_that_is_interrupted_more_than_once_before_mending_is_told_of() -> None:
    found = failover(run(1, 3.0, interruptions=[(0.0, 1.4), (4.0, 3.0)]), run(2, 3.0))
    assert found.interrupted_again == 1
    assert "; in 1 there was more than one before mending" in found.sentence


def test_an_outage_that_clients_saw_only_coarsely_is_told_of() -> None:
    assert not failover(run(1, 6.0, resolution_s=1.2), run(2, 6.0)).coarse, "a fifth of it"
    assert failover(run(1, 6.0, resolution_s=1.21), run(2, 6.0)).coarse


# Where the outage did not end in some fault, what is left of the others speaks for nothing


def compared(unended: int) -> Findings:
    """Those of six faults."""
    return analyse(*two_solutions(unended), ended="done")


def two_solutions(unended: int) -> tuple[Study, list[RunRecord]]:
    """Six faults of two solutions: b is back after 1 s and a after 2 s, but that b never was in `unended` of them."""
    runs = []
    for block in range(6):
        runs.append(run(block + 1, 2.0 + block / 100, cell=0))
        ended = block >= unended
        back = run(block + 1, 1.0 + block / 100 if ended else None, Outcome.OK if ended else Outcome.INVALID, cell=1)
        runs.append(back.model_copy(update={"run": 100 + block}))
    of = study(("a", "b"), of="first_success", compare="mode")
    targets = ({"response": "first_success", "bound": "< 30 s"}, {"response": "rows_lost", "bound": "< 1"})
    return of.model_copy(update={"targets": tuple(Target.model_validate(each) for each in targets)}), runs


def test_a_solution_that_is_always_back_sooner_is_said_to_be() -> None:
    found = compared(0)
    (pair,) = [each for each in found.comparisons if each.response == "first_success"]
    assert pair.verdict == "lower"
    assert found.targets[0].verdict == "met"


def test_one_that_is_back_sooner_but_for_once_when_it_never_is_has_no_ratio_no_mean_and_meets_no_target() -> None:
    found = compared(1)
    (pair,) = [each for each in found.comparisons if each.response == "first_success"]
    assert (pair.ratio, pair.verdict) == (None, "not enough runs")
    assert "in 1 of 6 faults of b it was not over when the watch ended" in pair.sentence
    of_b = next(each for each in found.cells if each.response == "first_success" and each.levels["mode"] == "b")
    assert (of_b.n, of_b.mean, of_b.ci, of_b.converged) == (5, None, None, False)
    assert of_b.remark == "in 1 of 6 faults it was not over when the watch ended, so that there is no mean"
    assert "mode=b in 1 of 6 faults it was not over" in found.answer
    target = found.targets[0]
    assert [cell.verdict for cell in target.cells] == ["met", "cannot tell"]
    assert target.verdict == "cannot tell"
    assert "in 1 of 6 faults it was not over when the watch ended" in target.sentence
    assert found.variation[0].reason == "in 1 of 12 faults it was not over when the watch ended"


def test_a_target_is_missed_where_every_fault_is_seen_to_last_longer_than_it_allows() -> None:
    of = study(of="first_success")
    of = of.model_copy(update={"targets": (Target.model_validate({"response": "first_success", "bound": "< 20 s"}),)})
    (target,) = analyse(of, [run(number, None, Outcome.INVALID) for number in (1, 2)], ended="done").targets
    assert target.verdict == "missed"


def test_a_gate_does_not_pass_one_that_once_never_was_back() -> None:
    assert gate_blocks(*two_solutions(0), slower=0.1).verdict == "not slower"
    found = gate_blocks(*two_solutions(1), slower=0.1)
    assert found.verdict == "cannot tell"
    assert found.cells[0].why == "in 1 of 6 faults of b it was not over when the watch ended"


def test_two_folders_are_not_compared_in_what_once_was_not_over() -> None:
    a, b = compare_folders(*two_solutions(0), *two_solutions(1))
    assert a.ratio == pytest.approx(1.0)
    assert (b.ratio, b.mean_b) == (None, None)
    assert "in 1 of 6 faults it was not over" in b.sentence


def decided(unended: int, *, struck: bool = True) -> Findings:
    """Three solutions, c being the slowest, and a the fastest but for faults in which it was not back."""
    runs = []
    for block in range(6):
        for cell, back in enumerate((1.0, 2.0, 3.0)):
            ended = cell or block >= unended
            responses = {"elapsed": 60.0 + cell, "latency_p99": 3.0 - cell / 2, "latency_mean": 1.0 + cell}
            made = run(
                block + 1,
                back + block / 100 if ended else None,
                Outcome.OK if ended else Outcome.INVALID,
                cell=cell,
                responses=responses,
            )
            runs.append(made.model_copy(update={"run": 10 * block + cell + 1}))
    of = study(("a", "b", "c"), of="first_success", compare="mode")
    if not struck:
        of = of.model_copy(update={"cells": tuple(cell.model_copy(update={"fault": None}) for cell in of.cells)})
    return analyse(of, runs, ended="done")


def test_no_table_says_which_solution_has_the_shortest_runs_or_the_lowest_latency_of_what_succeeded() -> None:
    assert [table.response for table in decided(0).decisions] == ["first_success"]
    others = {table.response for table in decided(0, struck=False).decisions}
    assert others == {"first_success", "elapsed", "latency_mean", "latency_p99"}


def test_a_solution_that_was_not_back_once_is_not_the_best_nor_held_against_any() -> None:
    (combination,) = decided(0).decisions[0].combinations
    assert combination.best == "a"
    (combination,) = decided(1).decisions[0].combinations
    assert combination.best == "b"
    assert combination.apart == ("a",)
    assert "mode=a in 1 of 6 faults it was not over when the watch ended" in decided(1).answer


# Targets on losses


def of_losses(*lost: int, bound: str = "< 1") -> TargetResult:
    of = study().model_copy(update={"targets": (Target.model_validate({"response": "rows_lost", "bound": bound}),)})
    runs = [run(number, 1.0, audits={"clients": audit(rows)}) for number, rows in enumerate(lost, 1)]
    (found,) = analyse(of, runs, ended="done").targets
    return found


def test_that_nothing_was_lost_in_three_faults_does_not_meet_a_target() -> None:
    found = of_losses(0, 0, 0)
    assert found.verdict == "cannot tell"
    # 1 - 0.05^(1/3), and 1 - 0.05^(1/29) = 0.098 is the first that is at most 0.1.
    assert found.sentence == (
        "acknowledged rows lost < 1: cannot tell; 0 in 3 faults: at 95% confidence at most 63% of such faults have "
        "any, and to say 10% takes 29 faults."
    )


@pytest.mark.parametrize(("faults", "verdict"), [(28, "cannot tell"), (29, "met")])
def test_it_is_met_from_29_faults_on_of_which_none_loses_any(faults: int, verdict: str) -> None:
    assert of_losses(*[0] * faults).verdict == verdict


def test_one_fault_of_many_that_loses_a_row_misses_it_however_low_the_mean_is() -> None:
    found = of_losses(*[0] * 29, 1)
    assert found.verdict == "missed"
    assert found.cells[0].mean == pytest.approx(1 / 30)
    assert "it does not hold in 1 of 30 faults" in found.sentence


def test_a_run_that_failed_after_it_had_lost_rows_misses_it_too() -> None:
    of = study().model_copy(update={"targets": (Target.model_validate({"response": "rows_lost", "bound": "< 1"}),)})
    runs = [run(1, 1.0), run(2, 1.0, Outcome.FAILED, audits={"clients": audit(3)})]
    assert analyse(of, runs, ended="done").targets[0].verdict == "missed"


def judged(response: str, bound: str, runs: list[RunRecord]) -> TargetResult:
    of = study().model_copy(update={"targets": (Target.model_validate({"response": response, "bound": bound}),)})
    return analyse(of, runs, ended="done").targets[0]


def test_faults_of_whose_rows_nothing_is_known_do_not_let_a_target_be_met() -> None:
    known = [run(number, 1.0) for number in range(1, 30)]
    unknown = [run(number, 1.0, Outcome.FAILED, audits={}) for number in range(30, 60)]
    found = judged("rows_lost", "< 1", [*known, *unknown])
    assert found.verdict == "cannot tell"
    assert "0 in 29 faults" in found.sentence
    assert "30 of 59 faults were not audited" in found.sentence


def test_a_loss_that_only_the_audit_has_misses_a_target() -> None:
    lost = run(30, 1.0, Outcome.FAILED, audits={"clients": audit(3)})
    lost = lost.model_copy(update={"responses": {}})
    assert judged("rows_lost", "< 1", [*(run(number, 1.0) for number in range(1, 30)), lost]).verdict == "missed"


def test_ok_runs_do_not_meet_a_target_on_times_for_those_that_failed() -> None:
    quick = [run(number, 1.0) for number in range(1, 11)]
    slow = [run(number, 110.0, Outcome.FAILED) for number in range(11, 21)]
    assert judged("first_success", "< 5 s", quick).verdict == "met"
    found = judged("first_success", "< 5 s", [*quick, *slow])
    assert found.verdict == "cannot tell"
    assert "10 of 20 faults are in no mean, as their runs are not ok" in found.sentence


def test_a_row_that_was_never_seen_elsewhere_keeps_a_target_on_staleness_from_being_met() -> None:
    # The longest staleness of the others would be the figure otherwise, and the row that never came in none.
    fresh = [run(number, 1.0, responses={"staleness_max": 10.0 + number % 3}) for number in range(1, 11)]
    assert judged("staleness_max", "< 20 ms", fresh).verdict == "met"
    never = run(11, 1.0, at_least={"staleness_max": 5000.0})
    found = judged("staleness_max", "< 20 ms", [*fresh, never])
    assert found.verdict == "cannot tell"
    assert "in 1 of 11 faults it was not over" in found.sentence


def test_what_is_to_be_more_than_a_bound_is_not_said_to_be_something_at_most() -> None:
    found = judged("interruptions", "> 0", [run(n, 1.0, responses={"interruptions": 1.0}) for n in range(1, 31)])
    assert "it is 1.000 in 30 faults: at 95% confidence at most 9.5% of such faults break it" in found.sentence


def test_no_more_than_a_few_rows_is_asked_of_each_fault_too() -> None:
    assert of_losses(*[0] * 28, 4, bound="< 5").verdict == "met"
    assert of_losses(*[0] * 28, 5, bound="< 5").verdict == "missed"


def test_other_counts_that_are_alike_in_a_few_faults_meet_nothing_either() -> None:
    target = Target.model_validate({"response": "requests_late", "bound": "< 1"})
    of = study().model_copy(update={"targets": (target,)})
    runs = [run(number, 1.0, responses={"requests_late": 0.0}) for number in (1, 2, 3)]
    assert analyse(of, runs, ended="done").targets[0].verdict == "cannot tell"


def test_cells_in_which_nothing_is_struck_are_not_asked_what_a_fault_costs() -> None:
    of = study(("a", "b"))
    unstruck = of.cells[1].model_copy(update={"fault": None})
    target = Target.model_validate({"response": "rows_lost", "bound": "< 1"})
    of = of.model_copy(update={"cells": (of.cells[0], unstruck), "targets": (target,)})
    records = [*(run(number, 1.0) for number in range(1, 30)), make_record(99, Slot(cell=1, block=0), value=1.0)]
    (found,) = analyse(of, records, ended="done").targets
    assert [cell.cell for cell in found.cells] == [0]
    assert found.verdict == "met"


def test_a_study_without_faults_has_none() -> None:
    made = make_study()
    records = [make_record(1, Slot(cell=0, block=0), value=1.0)]
    assert analyse(made, records, ended="done").failovers == ()
