"""What runs are turned into: figures, comparisons, verdicts and words."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import analyse
from dyno.model.findings import Findings
from dyno.model.run import MeasuredPart, Outcome, RateWithin, Step
from dyno.model.study import KindSpec

DELETE = [100.0, 104.0, 96.0, 101.0, 99.0, 103.0]
WAL = [301.0, 310.0, 290.0, 305.0, 297.0, 308.0]


def journal(**rule):
    return study({"journal": ["delete", "wal"]}, compare="journal", **rule)


def by_threads(**rule):
    return study({"threads": [1, 4], "journal": ["delete", "wal"]}, compare="journal", **rule)


def only(found, response="throughput"):
    return [each for each in found if each.response == response]


def test_a_cell_s_figures_are_those_of_its_ok_runs_alone() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: DELETE, 1: WAL}).fail(0, 6)
    for cell, outcome in ((0, Outcome.INVALID), (1, Outcome.PARTIAL)):
        runs.add(cell, 6, 5.0, outcome=outcome, step=Step.CHECK, cause="not as asked")
    delete, wal = analyse(plan, runs, ended=None).cells
    expected = stats.describe(DELETE)
    assert (delete.n, delete.mean, delete.sd, delete.mad) == (6, expected.mean, expected.sd, expected.mad)
    both, run = np.array([DELETE, WAL]).T, np.arange(12.0).reshape(6, 2)
    expected = stats.cell_means(both, run, 0.95, randomised=True, widening=stats.widening_of_means(4, 30))
    assert delete.ci == pytest.approx((100.5 - expected.half[0], 100.5 + expected.half[0]))
    assert delete.values == tuple(DELETE)
    assert (delete.failed, delete.invalid, delete.partial) == (1, 1, 0)
    assert (wal.failed, wal.invalid, wal.partial) == (0, 0, 1)


def test_values_stand_in_order_of_execution_even_when_runs_are_handed_over_shuffled() -> None:
    plan = study({})
    runs = Runs(plan).add_cells({0: [3.0, 1.0, 2.0]})
    assert analyse(plan, runs[::-1], ended=None) == analyse(plan, runs, ended=None)
    assert analyse(plan, runs[::-1], ended=None).cells[0].values == (3.0, 1.0, 2.0)


def test_each_response_has_its_unit_and_the_deciding_one_comes_first() -> None:
    plan = journal(of="latency_p99")
    runs = Runs(plan)
    for block in range(3):
        for cell in (0, 1):
            values = {"read.latency_p99": 2.0, "throughput": 5.0 + block, "cpu_per_op": 7.0, "latency_p99": 1.0}
            runs.add(cell, block, responses=values)
    found = analyse(plan, runs, ended=None)
    units = {cell.response: cell.unit for cell in found.cells}
    assert list(units.items()) == [
        ("latency_p99", "ms"),
        ("throughput", "ops/s"),
        ("cpu_per_op", "us"),
        ("read.latency_p99", "ms"),
    ]
    assert found.response == "latency_p99"


def test_a_response_of_one_operation_is_given_only_for_the_cells_that_have_it() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: [1.0, 2.0], 1: [1.0, 2.0]})
    runs.add(0, 2, responses={"throughput": 1.5, "read.latency_p50": 0.2})
    found = analyse(plan, runs, ended=None)
    assert [cell.cell for cell in only(found.cells, "read.latency_p50")] == [0]
    assert [cell.cell for cell in only(found.cells)] == [0, 1]


def test_a_response_without_a_known_unit_is_left_out_and_said() -> None:
    plan = study({})
    runs = Runs(plan).add(0, 0, responses={"throughput": 1.0, "joy": 2.0})
    found = analyse(plan, runs, ended=None)
    assert {cell.response for cell in found.cells} == {"throughput"}
    assert any("left out: joy" in note for note in found.notes)


def test_precision_of_the_mean_decides_for_each_cell_by_itself() -> None:
    plan = journal(precision="5%")
    runs = Runs(plan).add_cells({0: [100.0, 101.0, 99.0, 100.0], 1: [100.0, 150.0, 60.0, 100.0]})
    delete, wal = analyse(plan, runs, ended=None).cells
    assert delete.converged
    assert delete.precision < 0.05
    assert not wal.converged


def test_nothing_is_precise_before_the_first_look() -> None:
    plan = journal(precision="5%", min=4)
    runs = Runs(plan).add_cells({0: [100.0, 100.1, 100.0], 1: [100.0, 100.1, 100.0]})
    assert not any(cell.converged for cell in analyse(plan, runs, ended=None).cells)


def test_precision_of_the_ratio_decides_for_both_cells_of_a_comparison() -> None:
    plan = study({"journal": ["a", "b", "c"]}, compare="journal", precision_of="ratio", precision="5%", min=3)
    drift = [1.0, 2.0, 0.5]  # hopeless for a mean, gone within blocks
    runs = Runs(plan).add_cells({0: drift, 1: [1.1 * d for d in drift], 2: [1.1, 1.9, 0.7]})
    found = analyse(plan, runs, ended=None)
    assert [each.converged for each in found.comparisons] == [True, False, False]
    assert [cell.converged for cell in found.cells] == [False, False, False]
    two = journal(precision_of="ratio", precision="5%", min=3)
    runs = Runs(two).add_cells({0: drift, 1: [1.1 * d for d in drift]})
    assert [cell.converged for cell in analyse(two, runs, ended=None).cells] == [True, True]


def test_a_study_of_ratios_with_nothing_to_compare_goes_by_the_mean() -> None:
    plan = study({}, precision_of="ratio", precision="5%")
    assert not analyse(plan, Runs(plan).add_cells({0: [1.0, 2.0, 3.0]}), ended=None).cells[0].converged


def test_comparisons_are_paired_within_blocks_and_say_so() -> None:
    plan = journal(min=6, max=6)
    runs = Runs(plan).add_cells({0: DELETE, 1: WAL})
    (found,) = analyse(plan, runs, ended=None).comparisons
    expected = stats.paired_ratio(DELETE, WAL, 0.95)
    assert (found.a, found.b, found.n, found.verdict) == ("delete", "wal", 6, "higher")
    assert (found.ratio, found.ci) == (expected.ratio, (expected.lo, expected.hi))
    assert (
        found.sentence == "The throughput of journal wal is 3.00x [2.99, 3.02] that of delete (p < 0.001, n = 6 pairs)."
    )


def test_a_block_in_which_one_side_failed_is_no_pair() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: DELETE}).fail(1, 0)
    for block in range(1, 6):
        runs.add(1, block, WAL[block])
    (found,) = analyse(plan, runs, ended=None).comparisons
    assert found.n == 5
    assert found.ratio == stats.paired_ratio(DELETE[1:], WAL[1:], 0.95).ratio


def test_a_retry_takes_the_place_of_the_failed_run_in_its_block() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: DELETE[:2]}).fail(1, 0).add(1, 0, WAL[0], attempt=1).add(1, 1, WAL[1])
    found = analyse(plan, runs, ended=None)
    assert found.comparisons[0].n == 2
    assert "pairs" in found.comparisons[0].sentence
    assert (found.cells[1].n, found.cells[1].failed) == (2, 1)


def test_without_two_common_blocks_runs_are_compared_unpaired() -> None:
    plan = journal()
    runs = Runs(plan)
    for block in range(3):
        runs.add(0, block, DELETE[block])
        runs.add(1, block + 3, WAL[block])
    (found,) = analyse(plan, runs, ended=None).comparisons
    assert found.ratio == stats.unpaired_ratio(DELETE[:3], WAL[:3], 0.95).ratio
    assert ", n = 3 runs, not paired)" in found.sentence


def test_comparisons_stay_within_the_levels_of_the_other_factors() -> None:
    plan = by_threads()
    runs = Runs(plan).add_cells({0: DELETE, 1: WAL, 2: WAL, 3: DELETE})
    one, four = analyse(plan, runs, ended=None).comparisons
    assert (one.within, one.verdict) == ({"threads": "1"}, "higher")
    assert (four.within, four.verdict) == ({"threads": "4"}, "lower")
    assert four.sentence.startswith("With threads=4, journal wal has 0.33x [0.33, 0.34] the throughput of delete")


def test_all_pairs_of_levels_are_compared_the_one_declared_first_as_one() -> None:
    plan = study({"n": [10, 9, 1]}, compare="n")
    found = analyse(plan, Runs(plan).add_cells({0: DELETE, 1: DELETE, 2: DELETE}), ended=None).comparisons
    assert [(each.a, each.b) for each in found] == [("10", "9"), ("10", "1"), ("9", "1")]


def test_an_interval_that_holds_one_shows_no_difference_and_claims_none() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: DELETE, 1: DELETE[::-1]})
    found = analyse(plan, runs, ended=None)
    (lower,), (higher,) = (
        analyse(plan, Runs(plan).add_cells({0: DELETE, 1: [v + move for v in DELETE[::-1]]}), ended=None).comparisons
        for move in (-1, 1)
    )
    assert lower.ratio < 1 < higher.ratio
    assert {each.verdict for each in (*found.comparisons, lower, higher)} == {"no difference shown"}
    assert found.comparisons[0].sentence.startswith(
        "No difference in throughput is shown between journal wal and delete: "
    )
    assert "faster" not in found.answer


def test_lower_latency_is_said_as_lower_and_never_as_faster() -> None:
    plan = journal(of="latency_p99")
    runs = Runs(plan).add_cells({0: DELETE, 1: [v / 2 for v in DELETE]}, "latency_p99")
    found = analyse(plan, runs, ended=None)
    assert found.comparisons[0].sentence == (
        "The 99th percentile latency of journal wal is 0.50x [0.50, 0.50] that of delete "
        "(lower is better; p < 0.001, n = 6 pairs)."
    )
    assert found.answer == "wal has a lower 99th percentile latency than delete: 0.50x [0.50, 0.50]."


def test_an_end_of_an_interval_beside_one_is_written_so_that_its_side_is_seen() -> None:
    plan = journal(min=3, max=3)
    runs = Runs(plan).add_cells({0: [100.0, 200.0, 300.0], 1: [100.4, 200.9, 301.3]})
    assert "1.004x [1.004, 1.005]" in analyse(plan, runs, ended=None).comparisons[0].sentence


def test_a_run_of_either_side_alone_is_not_enough_and_gives_no_ratio() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: DELETE, 1: [300.0]})
    (found,) = analyse(plan, runs, ended=None).comparisons
    assert (found.verdict, found.ratio, found.ci, found.converged) == ("not enough runs", None, None, False)
    assert found.sentence == (
        "In throughput, journal wal and delete cannot be compared: "
        "delete has 6 ok runs and wal has 1, and each needs 2."
    )


def test_zero_throughput_has_a_mean_but_no_ratio_and_says_why() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: DELETE[:3], 1: [0.0, 0.0, 0.0]})
    found = analyse(plan, runs, ended=None)
    assert found.cells[1].mean == 0
    assert (found.cells[1].cov, found.cells[1].precision, found.cells[1].converged) == (None, None, False)
    assert found.comparisons[0].verdict == "not enough runs"
    assert "some values are 0, and too many for a ratio of means" in found.comparisons[0].sentence


def test_values_of_zero_have_a_ratio_of_means_within_blocks_and_it_is_said() -> None:
    plan = journal(min=6, max=6, precision_of="ratio", precision="99%")
    a, b = [0.0, 104.0, 96.0, 101.0, 99.0, 103.0], [1.0, 312.0, 290.0, 301.0, 297.0, 310.0]
    (found,) = analyse(plan, Runs(plan).add_cells({0: a, 1: b}), ended=None).comparisons
    expected = stats.fieller_ratio(a, b, 0.95, paired=True)
    assert (found.ratio, found.ci, found.p) == (expected.ratio, (expected.lo, expected.hi), expected.p)
    assert found.method == "Fieller's interval of the ratio of means within blocks"
    assert found.verdict == "higher"
    assert "n = 6 pairs, of means since 0 has no logarithm" in found.sentence
    # The rule that stops goes by logs, and such a cell is never precise to it.
    assert not found.converged
    assert (found.equivalent, found.margin) == (None, None)


def test_values_of_zero_that_are_not_of_the_same_blocks_have_a_ratio_of_means_too() -> None:
    plan = journal(min=2, max=12)
    runs = Runs(plan)
    for block in range(12):
        runs.add(block % 2, block, 0.0 if block == 2 else 100.0 + 100 * (block % 2) + block)
    (found,) = analyse(plan, runs, ended=None).comparisons
    a, b = ([run.responses["throughput"] for run in runs if run.slot.cell == cell] for cell in (0, 1))
    widening = stats.widening_of_ratios(1, 4, 12)
    expected = stats.fieller_ratio(a, b, 0.95, widening=widening)
    assert found.ci == (expected.lo, expected.hi)
    assert "not paired, of means" in found.sentence


def test_values_below_zero_have_no_ratio() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: DELETE, 1: [-1.0, *WAL[1:]]})
    (found,) = analyse(plan, runs, ended=None).comparisons
    assert found.ratio is None
    assert found.sentence.endswith("a ratio needs values of 0 and above, and some are not.")


def test_a_precision_that_was_just_missed_is_not_told_as_reached() -> None:
    def found(noise: float) -> Findings:
        plan = study({}, min=4, max=4, precision="2%")
        return analyse(plan, Runs(plan).add_cells({0: [100 - noise, 100 + noise] * 2}), ended="done")

    width = found(1.0).cells[0].precision
    notes = " ".join(found(0.0204 / width).notes)
    assert "is not reached in 1 of 1 cell: the only cell (mean to 2.04%)" in notes


def test_equal_values_have_an_interval_without_width() -> None:
    plan = journal()
    found = analyse(plan, Runs(plan).add_cells({0: [10.0] * 4, 1: [20.0] * 4}), ended=None)
    assert found.cells[0].ci == (10.0, 10.0)
    assert found.comparisons[0].ci == pytest.approx((2.0, 2.0))
    assert all(cell.converged for cell in found.cells)


def test_a_value_that_is_no_number_is_left_out_and_said_and_json_stays_json() -> None:
    plan = journal()
    runs = Runs(plan).add_cells({0: [*DELETE, math.nan], 1: [*WAL, math.inf]})
    found = analyse(plan, runs, ended=None)
    assert [cell.n for cell in found.cells] == [6, 6]
    assert any("2 values of ok runs were not finite" in note for note in found.notes)
    json.loads(found.model_dump_json(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize("factors", [{}, {"journal": ["delete", "wal"]}])
def test_a_study_without_runs_has_all_its_cells_and_no_answer(factors) -> None:
    plan = study(factors, compare=next(iter(factors), None))
    found = analyse(plan, [], ended=None)
    assert len(found.cells) == len(plan.cells)
    assert all(cell.n == 0 and cell.mean is None and cell.ci is None for cell in found.cells)
    assert found.answer == "No answer: there is no ok run."
    assert found.ended == "not ended yet"


def test_a_study_whose_runs_all_failed_names_each_cause() -> None:
    plan = journal()
    found = analyse(plan, Runs(plan).fail(0, 0).fail(1, 0, cause="disk full"), ended="out of attempts")
    assert [(f.run, f.cell, f.outcome, f.step, f.cause) for f in found.failures] == [
        (1, 0, "failed", "ready", "no answer in 60 s"),
        (2, 1, "failed", "ready", "disk full"),
    ]
    assert found.answer == "No answer: there is no ok run. 1 of 2 runs: no answer in 60 s."
    assert found.ended == "out of attempts"


def test_one_run_gives_a_figure_and_no_interval() -> None:
    plan = study({})
    found = analyse(plan, Runs(plan).add(0, 0, 123.456), ended=None)
    assert (found.cells[0].n, found.cells[0].mean, found.cells[0].ci) == (1, 123.456, None)
    assert found.answer == "Throughput is 123.5 ops/s (n = 1 run). One run says nothing of its own precision."


def test_a_run_of_a_cell_that_the_plan_has_not_is_refused() -> None:
    larger = journal()
    runs = Runs(larger).add(1, 0, 1.0)
    with pytest.raises(ValueError, match="run 1 is of cell 1, but the plan has cells 0 to 0"):
        analyse(study({}), runs, ended=None)


def test_the_answer_names_the_range_when_all_combinations_agree() -> None:
    plan = by_threads()
    runs = Runs(plan).add_cells({0: DELETE, 1: [1.2 * v for v in DELETE], 2: DELETE, 3: WAL})
    assert analyse(plan, runs, ended=None).answer == (
        "wal is faster than delete in both combinations: 1.20x [1.20, 1.20] to 3.00x [2.98, 3.02]."
    )


def test_the_answer_counts_and_places_when_combinations_disagree() -> None:
    plan = study({"threads": [1, 2, 4, 8], "journal": ["delete", "wal"]}, compare="journal")
    runs = Runs(plan).add_cells({0: DELETE, 1: WAL, 2: WAL, 3: DELETE, 4: DELETE, 5: DELETE[::-1], 6: DELETE, 7: [1.0]})
    assert analyse(plan, runs, ended=None).answer == (
        "wal is faster than delete in 1 of 4 combinations (3.00x [2.98, 3.02] with threads=1), "
        "wal is slower than delete in 1 of 4 combinations (0.33x [0.33, 0.34] with threads=2), "
        "no difference between wal and delete is shown in 1 of 4, 1 of 4 cannot be compared."
    )


def test_the_answer_without_a_compared_factor_is_the_best_cell() -> None:
    plan = study({"threads": [1, 4]})
    runs = Runs(plan).add_cells({0: DELETE, 1: WAL})
    assert analyse(plan, runs, ended=None).answer == (
        "The highest mean throughput is that of threads=4: 301.8 [289.2, 314.5] ops/s (n = 6 runs)."
    )


def test_the_answer_says_when_the_best_cell_may_not_be_the_best() -> None:
    plan = study({"threads": [1, 4, 8]})
    runs = Runs(plan).add_cells({0: DELETE, 1: WAL, 2: [v - 3 for v in WAL]})
    assert analyse(plan, runs, ended=None).answer.endswith(
        "threads=4: 301.8 [288.2, 315.5] ops/s (n = 6 runs). The intervals of 1 other cell overlap it, "
        "so another may be the best."
    )


def notes(plan, runs, ended: str | None = "precise enough") -> str:
    return "\n".join(analyse(plan, runs, ended=ended).notes)


def test_notes_tell_what_is_missing() -> None:
    plan = journal(precision="1%")
    text = notes(plan, Runs(plan).add_cells({0: DELETE[:3]}).fail(1, 0), ended=None)
    assert "has not ended" in text
    assert "Not ok, and in no figure: 1 failed of 4 runs." in text
    assert "No ok run in 1 cell: journal=wal." in text
    assert "not reached in 1 of 2 cells: journal=delete (mean to 11%)." in text
    assert "The smallest cell has 3 ok runs." in text


def test_notes_count_the_errors_of_ok_runs() -> None:
    plan = study({})
    runs = Runs(plan).add(0, 0, 1.0, errors={"update": {"busy": 3}}).add(0, 1, 1.0, errors={"update": {"busy": 0}})
    assert "errors in 1 of 2 ok runs (update busy: 3)." in notes(plan, runs)


def test_notes_warn_where_more_failed_than_a_quantile_leaves_above_it() -> None:
    """A server was away for 1.5 s; the requests that met it failed at once, and the p99 of the others looked fine."""
    plan = study({"f": ["a", "b"]})
    figures = {"throughput": 97.0, "elapsed": 10.0, "latency_p95": 1.0, "latency_p99": 2.0, "latency_p999": 3.0}
    made = Runs(plan).add(0, 0, responses=figures, errors={"read": {"lost": 30}, "warmup": {"lost": 500}})
    made.add(1, 0, responses=figures)
    told = notes(plan, made)
    assert "above these quantiles: latency_p99 (3% failed); latency_p999 (3% failed), in f=a." in told
    assert "latency_p95 (" not in told


def test_what_failed_of_one_operation_is_held_against_its_own_quantiles() -> None:
    plan = study({})
    figures = {"throughput": 1000.0, "elapsed": 1.0, "latency_p99": 1.0, "insert.throughput": 6.0}
    made = Runs(plan).add(0, 0, responses={**figures, "insert.latency_p50": 1.0}, errors={"insert": {"full": 9}})
    assert "above these quantiles: insert.latency_p50 (60% failed)." in notes(plan, made)


@pytest.mark.parametrize("failed", [0, 10])
def test_failures_that_fit_into_the_tail_are_not_warned_of(failed: int) -> None:
    plan = study({})
    figures = {"throughput": 990.0, "elapsed": 1.0, "latency_p99": 1.0}
    made = Runs(plan).add(0, 0, responses=figures, errors={"read": {"lost": failed}})
    assert "above these quantiles" not in notes(plan, made)


def mixed_loops(response: str) -> Findings:
    """A cell of a closed loop beside one of an open loop."""
    plan = study({"loop": ["closed", "open"]}, compare="loop", of=response)
    made = Runs(plan)
    for block in range(3):
        made.add(0, block, responses={"latency_p99": 1.0, "throughput": 900.0}, loop="closed")
        made.add(1, block, responses={"latency_p99": 9.0, "throughput": 500.0}, loop="open", rate_per_s=500.0)
    return analyse(plan, made, ended="done")


def test_latencies_of_a_closed_and_an_open_loop_are_not_compared() -> None:
    """A store that stalls once shows it once in the one and in every request in the other."""
    findings = mixed_loops("latency_p99")
    (found,) = [each for each in findings.comparisons if each.response == "latency_p99"]
    assert (found.ratio, found.ci, found.verdict, found.converged) == (None, None, "not enough runs", False)
    assert "closed was driven with its loop closed and open with its loop open" in found.sentence
    assert any("their latencies are not compared" in note for note in findings.notes)
    (throughput,) = [each for each in findings.comparisons if each.response == "throughput"]
    assert throughput.ratio is not None


def test_notes_say_that_throughput_of_an_open_loop_is_given() -> None:
    plan = study({"f": ["a", "b"]}, compare="f")
    made = Runs(plan)
    for block in range(2):
        for cell in (0, 1):
            made.add(cell, block, 500.0, loop="open", rate_per_s=500.0)
    told = " ".join(analyse(plan, made, ended="done").notes)
    assert "requests came at a given rate (500 a second)" in told
    assert "Throughput of an open loop is given, not measured" in told
    assert "Throughput of an open loop" not in " ".join(mixed_loops("throughput").notes)


def open_loops(rates: dict[int, float], compare: str | None, **more: Any) -> Findings:
    plan = study({"f": ["a", "b"], "threads": [1, 2]}, compare=compare)
    made = Runs(plan)
    for block in range(3):
        for cell in range(4):
            given = {"loop": "open", "rate_per_s": rates[cell]} if cell in rates else {"loop": "closed", **more}
            made.add(cell, block, rates.get(cell, 100.0 * (cell + 1)) + block / 100, **given)
    return analyse(plan, made, ended="done")


def test_a_rate_that_was_given_makes_nobody_faster() -> None:
    """Twice the rate was called twice as fast."""
    findings = open_loops(dict(enumerate([500.0, 500.0, 1000.0, 1000.0])), "f")
    assert "is faster" not in findings.answer + findings.comparisons[0].sentence
    assert findings.answer.startswith(
        "The rate of b or a was given, and reached, which shows neither as the faster (throughput 2.00x ["
    )
    assert findings.comparisons[0].sentence.startswith(
        "With threads=1, the rate of f b or a was given, and reached: throughput 2.00x ["
    )
    assert {each.pace for each in findings.comparisons} == {"rate"}


def test_a_rate_that_was_given_in_some_combinations_leaves_the_others_their_answer() -> None:
    findings = open_loops({0: 500.0, 2: 1000.0}, "f")
    assert "was given, and reached in 1 of 2 combinations" in findings.answer
    assert "b is faster than a: 2.00x" in findings.answer


def test_without_a_comparison_a_given_rate_is_no_highest_throughput() -> None:
    findings = open_loops(dict(enumerate([500.0, 500.0, 1000.0, 1000.0])), None)
    assert findings.answer.startswith("The rate was given, and reached in 4 of 4 cells: throughput ")
    assert "highest" not in findings.answer


@pytest.mark.parametrize(
    "job",
    [
        {"workload": {"keying_time": True}},
        {"workload": {"think_time": True}},
        {"loop": {"kind": "closed", "think_time_s": 0.1}},
    ],
)
def test_clients_that_wait_have_a_higher_throughput_and_are_not_faster(job: dict[str, Any]) -> None:
    findings = open_loops({}, "f", driver=job)
    assert "b has a higher throughput than a in both combinations" in findings.answer
    assert "is faster" not in findings.answer
    assert any("mostly this pace" in note for note in findings.notes)


def test_a_job_that_another_driver_wrote_as_it_likes_is_no_obstacle() -> None:
    assert "b is faster than a" in open_loops({}, "f", driver={"workload": "a", "loop": None}).answer


def test_what_the_drivers_say_of_themselves_is_said_once_and_of_which_cells() -> None:
    plan = study({"f": ["a", "b"]})
    made = Runs(plan)
    for block in range(2):
        made.add(0, block, 1.0, notes=("Both say this.", "One says that."))
        made.add(1, block, 1.0, notes=("Both say this.",))
    notes = analyse(plan, made, ended="done").notes
    assert notes.count("Both say this.") == 1
    assert "One says that (with f=a)." in notes


def test_what_the_drivers_of_many_cells_say_is_said_of_the_level_that_they_share() -> None:
    plan = study({"f": ["a", "b"], "g": [1, 2, 3]})
    made = Runs(plan)
    for block in range(2):
        for cell in range(6):
            # Cells 3 to 5 have f=b; 1 and 4 have g=2; 0 and 5 share nothing.
            said = [("f says so.", cell > 2), ("g says so.", cell in (1, 4)), ("Two say so.", cell in (0, 5))]
            made.add(cell, block, 1.0, notes=tuple(note for note, says in said if says))
    notes = analyse(plan, made, ended="done").notes
    assert "f says so (with f=b)." in notes
    assert "g says so (with g=2)." in notes
    assert "Two say so (in f=a g=1; f=b g=3)." in notes


def test_counts_of_what_went_wrong_are_shown_and_not_compared() -> None:
    plan = study({"f": ["a", "b"]}, compare="f")
    made = Runs(plan)
    for block in range(3):
        for cell in (0, 1):
            made.add(cell, block, responses={"throughput": 1.0 + block, "failed_operations": 0.0})
    findings = analyse(plan, made, ended="done")
    assert {each.response for each in findings.comparisons} == {"throughput"}
    assert {cell.response for cell in findings.cells} == {"throughput", "failed_operations"}


def test_notes_warn_of_coordinated_omission_only_where_a_closed_loop_measured_latency() -> None:
    plan = study({})
    latency = {"throughput": 1.0, "latency_p99": 2.0}
    assert "coordinated omission" in notes(plan, Runs(plan).add(0, 0, responses=latency, loop="closed"))
    assert "coordinated omission" not in notes(plan, Runs(plan).add(0, 0, responses=latency, loop="open"))
    assert "coordinated omission" not in notes(plan, Runs(plan).add(0, 0, 1.0, loop="closed"))


def test_notes_say_what_intervals_are_not_corrected_for() -> None:
    plan = by_threads()
    text = notes(plan, Runs(plan).add_cells(dict.fromkeys(range(4), DELETE)))
    assert "widened for the looks" in text
    assert "beyond all 2 comparisons of this report together" in text
    assert "at most 5%" in text


def test_what_is_looked_at_once_is_not_said_to_be_widened_for_looks() -> None:
    text = notes(by_threads(min=5, max=5), Runs(by_threads()).add_cells(dict.fromkeys(range(4), DELETE)))
    assert "Intervals are of 95% confidence each." in text
    assert "widened for the looks" not in text


def test_one_cell_of_few_runs_says_why_its_interval_is_wider_than_the_textbook_s_and_it_ends_at_nothing() -> None:
    # Student's interval of these is 100 -+ 3.182 * 66.833 / 2 (n = 4): 106.3 to either side.
    plan = study({"threads": [1]}, min=4, max=4)
    runs = Runs(plan).add_cells({0: [40.0, 50.0, 120.0, 190.0]})
    found = analyse(plan, runs, ended="max")
    cell = found.cells[0]
    assert cell.allowance > 1.5
    half = 3.1824 * np.std([40, 50, 120, 190], ddof=1) / 2
    assert cell.ci == (0.0, pytest.approx(100 + cell.allowance * half, rel=1e-4))
    assert cell.precision == pytest.approx(cell.allowance * half / 100, rel=1e-4), "of the whole width"
    told = f"up to {cell.allowance:.1f} times as wide as Student's"
    assert told in "\n".join(found.notes)
    assert "more cells in the study, or about 20 runs" in "\n".join(found.notes)


def test_many_cells_of_independent_runs_need_no_word_on_neighbours() -> None:
    plan = study({"threads": list(range(8))}, min=8, max=8)
    rng = np.random.default_rng(3)
    runs = Runs(plan).add_cells({cell: list(100 + rng.standard_normal(8)) for cell in range(8)})
    found = analyse(plan, runs, ended="max")
    assert max(cell.allowance for cell in found.cells if cell.allowance) < 1.2
    assert "times as wide as Student's" not in "\n".join(found.notes)


def test_what_else_went_on_stands_before_the_figures() -> None:
    found = analyse(by_threads(), [], ended="max", disturbed=["Another dyno ran on this machine at the start."])
    assert "Another dyno ran on this machine at the start." in found.notes


def test_a_throughput_that_was_given_is_neither_explained_nor_said_to_drift() -> None:
    plan = by_threads()
    runs = Runs(plan).add_cells(dict.fromkeys(range(4), DELETE), loop="open", rate_per_s=100.0)
    found = analyse(plan, runs, ended="max")
    assert "at a rate that was given is not measured" in (found.variation[0].reason or "")
    assert "at a rate that was given is not measured" in (found.drift[0].reason or "")


@pytest.mark.parametrize("setting", ["synchronous", "locking_mode"])
def test_notes_say_when_compared_levels_promise_different_things(setting) -> None:
    options = {"delete": {"config": {setting: "full"}}, "wal": {"config": {setting: "off"}}}
    plan = study({"journal": ["delete", "wal"]}, compare="journal", options=options)
    assert f"differ in {setting} (delete: full, wal: off)" in notes(plan, Runs(plan))
    assert setting not in notes(journal(), Runs(journal()))


def test_a_setting_that_is_null_is_as_one_that_is_not_there() -> None:
    def told(a, b):
        plan = study({"journal": ["delete", "wal"]}, compare="journal", options={"delete": a, "wal": b})
        return notes(plan, Runs(plan))

    null = {"config": {"synchronous": None}}
    assert "differ in" not in told(null, {})
    assert "differ in" not in told(null, null)
    assert "differ in synchronous (delete: not set, wal: off)" in told(null, {"synchronous": "off"})
    assert "differ in synchronous (delete: off, wal: not set)" in told({"synchronous": "off"}, {})


def test_a_setting_of_another_kind_of_system_proves_no_difference() -> None:
    """MariaDB has no synchronous_commit; it was said to differ in it from PostgreSQL."""
    options = {"delete": {"config": {"fsync": "on"}}, "wal": {"config": {"sync_binlog": 1}}}
    plan = study({"journal": ["delete", "wal"]}, compare="journal", options=options)
    first, second = plan.cells
    other = second.model_copy(update={"system": second.system.model_copy(update={"kind": "mariadb"})})
    told = notes(plan.model_copy(update={"cells": (first, other)}), Runs(plan))
    assert "differ in" not in told
    assert "Different systems are compared" in told


def test_switches_are_spelt_as_in_study_files() -> None:
    options = {"delete": {"config": {"data_checksums": False}}, "wal": {"config": {"data_checksums": True}}}
    plan = study({"journal": ["delete", "wal"]}, compare="journal", options=options)
    assert "differ in data_checksums (delete: false, wal: true)" in notes(plan, Runs(plan))


def test_one_that_was_read_back_as_null_is_judged_by_what_was_asked() -> None:
    plan = journal()
    runs = Runs(plan).add(0, 0, 1.0, settings={"fsync": None}).add(1, 0, 1.0, settings={"fsync": "on"})
    assert "differ in fsync" not in notes(plan, runs)


def test_what_the_system_read_back_outweighs_what_was_asked() -> None:
    plan = journal()
    runs = Runs(plan).add(0, 0, 1.0, settings={"synchronous": 2}).add(1, 0, 1.0, settings={"synchronous": 1})
    assert "differ in synchronous (delete: 2, wal: 1)" in notes(plan, runs)


def test_a_side_without_ok_runs_is_judged_by_what_was_asked_on_both_sides() -> None:
    options = {"delete": {"synchronous": "full"}, "wal": {"synchronous": "full"}}
    plan = study({"journal": ["delete", "wal"]}, compare="journal", options=options)
    assert "differ in" not in notes(plan, Runs(plan).add(0, 0, 1.0, settings={"synchronous": 2}).fail(1, 0))


def test_notes_tell_the_state_of_caches() -> None:
    assert "Caches were warm" in notes(study({}), [])
    unasked = notes(study({}), Runs(study({})).add(0, 0, 1.0))
    assert "No warm-up was asked for and none could be looked for: all of each run counts." in unasked
    assert "Caches were cold" in notes(study({}, caches="cold"), [])


def _lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python it takes: the same on any machine, however busy. What numpy does within is not in it."""
    count = 0

    def counting(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return counting

    before = sys.gettrace()
    sys.settrace(counting)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_four_times_as_many_runs_are_no_more_than_four_times_the_work() -> None:
    plan = study(
        {"workload": ["a", "b", "c"], "threads": [1, 2, 4, 8], "journal": ["delete", "wal"]}, compare="journal"
    )
    names = ("throughput", "latency_p50", "latency_p99", "cpu_per_op", "read.latency_p50", "read.latency_p99")
    noise = np.random.default_rng(1)
    lines = []
    for blocks in (34, 34, 136):  # the first also imports what is imported only when it is needed
        runs = Runs(plan)
        for i in range(24 * blocks):
            value = float(np.exp(0.1 * noise.standard_normal()))
            runs.add(i % 24, i // 24, responses=dict.fromkeys(names, value))
        lines.append(_lines_run(lambda runs=runs: analyse(plan, runs, ended=None)))
    assert lines[2] < 4 * lines[1]


# ---- many comparisons, equal things, noise without a bell shape


def pairs_of(ratios, n=8, **rule):
    """Cells in pairs of levels a and b, b being so many times a; the same small noise in each."""
    plan = study({"place": list(range(len(ratios))), "level": ["a", "b"]}, compare="level", **rule)
    rng = np.random.default_rng(4)
    values = {}
    for place, ratio in enumerate(ratios):
        values[2 * place] = list(100 * np.exp(0.01 * rng.standard_normal(n)))
        values[2 * place + 1] = list(100 * ratio * np.exp(0.01 * rng.standard_normal(n)))
    return analyse(plan, Runs(plan).add_cells(values), ended=None)


def test_verdicts_go_by_p_values_that_are_corrected_for_all_comparisons_of_the_report() -> None:
    found = only(pairs_of([1.0, 1.0, 1.05, 1.0], min=8, max=8).comparisons)
    adjusted = stats.holm([each.p for each in found])
    assert [each.p_adjusted for each in found] == pytest.approx(adjusted)
    assert {each.family for each in found} == {4}
    assert [each.verdict for each in found][2] == "higher"
    assert all((each.verdict in ("higher", "lower")) == (each.p_adjusted <= 0.05) for each in found)


def test_an_interval_may_leave_one_out_and_no_difference_is_called_among_many() -> None:
    alone, *_ = only(pairs_of([1.012], min=8, max=8).comparisons)
    assert alone.verdict == "higher"
    assert "p = " in alone.sentence
    assert "adjusted" not in alone.sentence
    among = only(pairs_of([1.012] + [1.0] * 39, min=8, max=8, equivalence="0.1%").comparisons)[0]
    assert among.ci == pytest.approx(alone.ci)
    assert among.ci[0] > 1
    assert among.verdict == "no difference shown"
    assert "between level b and a is shown by itself alone, not beyond all comparisons: " in among.sentence
    assert "adjusted p = " in among.sentence


def test_the_deciding_response_keeps_half_of_the_error_however_many_others_there_are() -> None:
    plan = journal(min=6, max=6)
    runs = Runs(plan)
    rng = np.random.default_rng(1)
    for block in range(6):
        for cell in (0, 1):
            others = {f"latency_{q}": 1.0 + rng.random() for q in ("p50", "p90", "p95", "p99", "p999", "max", "mean")}
            runs.add(cell, block, responses={"throughput": (DELETE if cell == 0 else WAL)[block], **others})
    (main, *rest) = analyse(plan, runs, ended=None).comparisons
    assert main.response == "throughput"
    assert len(rest) >= 6
    assert main.p_adjusted == pytest.approx(2 * main.p)


def test_what_is_shown_to_be_within_the_margin_is_called_equal() -> None:
    (found,) = only(pairs_of([1.001], n=20, min=20, max=20).comparisons)
    assert found.verdict == "equivalent"
    assert found.equivalent
    assert found.margin == 0.02
    assert "In throughput, level b and a are shown to be within 2% of each other" in found.sentence
    strict = only(pairs_of([1.001], n=20, min=20, max=20, equivalence="0.1%").comparisons)[0]
    assert strict.verdict == "no difference shown"
    assert strict.equivalent is False


def test_a_difference_may_be_real_and_within_the_margin() -> None:
    (found,) = only(pairs_of([1.008], n=40, min=40, max=40).comparisons)
    assert found.verdict == "higher"
    assert found.equivalent
    assert "a difference shown to be within 2%" in found.sentence


def test_ranks_are_asked_where_the_noise_is_far_from_normal_and_only_there() -> None:
    plan = journal(min=12, max=12)
    wal = [value * 1.1 for value in DELETE * 2]
    wal[3] /= 3
    found = analyse(plan, Runs(plan).add_cells({0: DELETE * 2, 1: wal}), ended=None).comparisons[0]
    assert found.ranks is not None
    assert found.ranks.ratio == pytest.approx(1.1, rel=0.01)
    assert "by ranks, since the noise is far from normal: 1.10x" in found.sentence
    assert only(pairs_of([1.0], n=12, min=12, max=12).comparisons)[0].ranks is None


def test_the_answer_tells_what_is_equal() -> None:
    found = pairs_of([1.001, 1.0], n=20, min=20, max=20)
    assert "b and a are within 2% of each other in throughput in both combinations" in found.answer


# ---- what the runs went through


def went(course, from_s=0.0, within=None):
    reason = None if course else "too short: 4 intervals"
    return MeasuredPart(
        course=course, reason=reason, from_s=from_s, to_s=60, seconds=60 - from_s, intervals=60, within=within
    )


def of_courses(*courses, **rule):
    plan = study({}, **rule)
    runs = Runs(plan)
    for block, course in enumerate(courses):
        runs.add(0, block, 100.0 + block, measured=course)
    return analyse(plan, runs, ended="done")


def test_a_cell_says_in_how_many_of_its_runs_there_is_no_steady_state() -> None:
    found = of_courses(went("none"), went("steady"), went("slowing down"), went("warm-up then steady", 3.0))
    (cell,) = found.cells
    assert (cell.n, cell.unsteady, cell.remark) == (4, 2, "no steady state in 2 of 4 runs")
    assert any(
        note.startswith("No steady state in 2 of 4 runs (1 slowing down, 1 going up and down or still rising)")
        for note in found.notes
    )


def test_a_failed_run_is_in_no_count_of_courses() -> None:
    plan = study({})
    runs = Runs(plan).add(0, 0, 1.0, measured=went("none")).add(0, 1, 1.0, measured=went("none"))
    runs.add(0, 2, outcome=Outcome.FAILED, step=Step.CHECK, cause="no", measured=went("none"))
    assert analyse(plan, runs, ended=None).cells[0].remark == "no steady state in 2 of 2 runs"


def test_how_much_was_left_out_is_said_by_median_and_most() -> None:
    cut = [went("warm-up then steady", seconds) for seconds in (2.0, 3.0, 30.0)]
    found = of_courses(*cut, went("steady"))
    assert "A warm-up was found and left out in 3 of 4 runs: 3.0 s at the median, 30 s at the most." in found.notes
    assert found.cells[0].remark == ""


def test_a_cold_run_that_became_steady_later_is_told_from_a_warm_one_that_was_not_cut() -> None:
    kept = went("warm-up then steady")
    cold, warm = of_courses(kept, kept, caches="cold").notes, of_courses(kept, kept).notes
    assert any("in 2 of 2 runs, which were cold" in note for note in cold)
    assert any("stays in the figures of 2 of 2 runs" in note for note in warm)
    assert not any("stays in the figures" in note for note in cold)


def test_runs_too_short_to_tell_are_said_once_and_steady_ones_not_at_all() -> None:
    short, steady = of_courses(*[went(None)] * 3).notes, of_courses(*[went("steady")] * 3).notes
    assert sum("cannot be told of 3 of 3 runs" in note for note in short) == 1
    assert not any("steady" in note for note in steady)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"interval": 1.0, "duration": 10}, "A longer run or a shorter `workload.interval` would tell."),
        ({}, "A longer run would tell."),
        ({"repeat": 2, "batch": 0, "singly": True}, "A longer run (more of `workload.repeat`) would tell."),
        ({"repeat": 2, "batch": 9, "singly": False}, "A longer run (more of `workload.batch`) would tell."),
        (
            {"repeat": 2, "batch": 9, "singly": True},
            "A longer run (more of `workload.batch` or `workload.repeat`) would tell.",
        ),
        (
            {"interval": 600.0, "length": 10, "batch": 9, "action": "load"},
            "A longer run (more of `workload.length`) would tell.",
        ),
        (
            {"interval": 600.0, "length": 10, "action": "queries"},
            "A longer run (more of `workload.query_count`) would tell.",
        ),
    ],
)
def test_what_would_tell_is_by_the_options_that_the_workload_has(options, said: str) -> None:
    plan = study({})
    cell = plan.cells[0].model_copy(update={"workload": KindSpec(kind="any", options=options)})
    plan = plan.model_copy(update={"cells": (cell,)})
    notes = analyse(plan, Runs(plan).add(0, 0, 1.0, measured=went(None)), ended=None).notes
    assert [note.endswith(said) for note in notes if "cannot be told of 1 of 1" in note] == [True]


def test_an_interval_from_within_a_run_is_said_where_that_run_stands_alone() -> None:
    within = RateWithin(mean=100.0, lo=95.0, hi=105.0, confidence=0.95, intervals=60, effective=12.3)
    alone = of_courses(went("steady", within=within))
    assert alone.cells[0].ci is None, "the run is what is repeated"
    (note,) = [note for note in alone.notes if "batch means" in note]
    assert "100.0 [95.00, 105.0] ops/s (effective sample size 12 of 60 intervals)" in note
    two = of_courses(*[went("steady", within=within)] * 2)
    assert not any("batch means" in note for note in two.notes)


def test_runs_of_an_earlier_dyno_say_nothing_of_their_course() -> None:
    found = of_courses(None, None)
    assert (found.cells[0].unsteady, found.cells[0].remark) == (0, "")
    assert not any("steady" in note for note in found.notes)


@pytest.mark.parametrize("others", [1, 9])
def test_other_responses_raise_the_p_of_the_deciding_one_to_twice_and_no_more(others) -> None:
    # Half of the error is kept for it: 1 / 0.5, however many the others are.
    plan = journal(min=6, max=6)
    names = [f"{name}.latency_p50" for name in "abcdefghi"[:others]]
    runs = Runs(plan)
    for block in range(6):
        for cell, values in enumerate((DELETE, [1.03 * value for value in DELETE[::-1]])):
            same = dict.fromkeys(names, 5.0 + (7 * block + 3 * cell) % 4)
            runs.add(cell, block, responses={"throughput": values[block], **same})
    found = analyse(plan, runs, ended=None).comparisons
    deciding = next(each for each in found if each.response == "throughput")
    assert len(found) == 1 + others
    assert all(each.p > 0.5 > deciding.p for each in found if each is not deciding)
    assert deciding.p_adjusted == pytest.approx(2 * deciding.p)
