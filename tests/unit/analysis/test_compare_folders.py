"""Two results folders, cell by cell."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import agreement, compare_folders
from dyno.model.run import MeasuredPart
from dyno.model.study import KindSpec
from dyno.report.terminal import show_folders

OLD, NEW = [100.0, 104.0, 96.0], [120.0, 126.0, 118.0, 121.0]


def test_cells_are_matched_by_their_levels_wherever_they_stand() -> None:
    first, second = study({"threads": [1, 4]}), study({"threads": [4, 1]})
    one, four = compare_folders(
        first, Runs(first).add_cells({0: OLD, 1: NEW}), second, Runs(second).add_cells({0: NEW, 1: NEW})
    )
    expected = stats.unpaired_ratio(OLD, NEW, 0.95)
    assert (one.levels, one.n_a, one.n_b) == ({"threads": "1"}, 3, 4)
    assert (one.ratio, one.ci, one.verdict) == (expected.ratio, (expected.lo, expected.hi), "higher")
    assert (four.levels, four.ratio, four.verdict) == ({"threads": "4"}, 1.0, "no difference shown")


def test_a_difference_between_folders_is_never_called_fast_or_slow() -> None:
    plan = study({})
    (found,) = compare_folders(plan, Runs(plan).add_cells({0: OLD}), plan, Runs(plan).add_cells({0: NEW}))
    assert found.sentence == (
        "The only cell: the second folder has 1.21x [1.12, 1.31] the throughput of the first "
        "(n = 3 runs; not interleaved: a difference may be the machine's drift)."
    )


def test_runs_without_a_steady_state_are_said_of_either_folder() -> None:
    plan = study({})
    none = MeasuredPart(course="none", to_s=60, seconds=60, intervals=60)
    unsteady = Runs(plan).add(0, 0, 100.0, measured=none).add(0, 1, 104.0)
    (found,) = compare_folders(plan, unsteady, plan, Runs(plan).add_cells({0: NEW}))
    assert found.remark == "first: no steady state in 1 of 2 runs"
    (found,) = compare_folders(plan, Runs(plan).add_cells({0: NEW}), plan, unsteady)
    assert found.remark == "second: no steady state in 1 of 2 runs"
    out = io.StringIO()
    show_folders([found], Console(file=out), "a", "b")
    assert found.remark in out.getvalue()


def test_cells_of_one_side_alone_are_listed() -> None:
    first, second = study({"threads": [1, 2]}), study({"threads": [2, 3]})
    found = compare_folders(first, Runs(first), second, Runs(second).add_cells({1: OLD}))
    assert [(each.levels["threads"], each.verdict) for each in found] == [
        ("1", "only in the first"),
        ("2", "not enough runs"),
        ("3", "only in the second"),
    ]
    assert (found[2].n_b, found[2].mean_b) == (3, 100.0)


def test_a_cell_at_zero_gives_no_ratio_and_says_why() -> None:
    plan = study({})
    (found,) = compare_folders(plan, Runs(plan).add_cells({0: [0.0, 0.0]}), plan, Runs(plan).add_cells({0: NEW}))
    assert (found.ratio, found.verdict) == (None, "not enough runs")
    assert "some values are 0, and too many for a ratio of means" in found.sentence


def test_a_cell_with_a_zero_has_a_ratio_of_means_and_says_so() -> None:
    plan = study({})
    old = [0.0, *[100.0] * 9]
    (found,) = compare_folders(plan, Runs(plan).add_cells({0: old}), plan, Runs(plan).add_cells({0: NEW}))
    assert found.ratio == pytest.approx(sum(NEW) / len(NEW) / 90.0)
    assert found.ci[0] < found.ratio < found.ci[1]
    assert ", of means since 0 has no logarithm; not interleaved" in found.sentence


@pytest.mark.parametrize("response", ["latency_p99", "read.latency_p50"])
def test_latencies_of_a_closed_and_an_open_loop_are_not_compared(response: str) -> None:
    plan = study({"threads": [1, 4]}, of=response)
    values = {0: OLD, 1: NEW}
    closed = Runs(plan).add_cells(values, response, loop="closed")
    opened = Runs(plan).add_cells(values, response, loop="open", rate_per_s=100.0)
    for found in compare_folders(plan, closed, plan, opened):
        assert (found.ratio, found.ci, found.verdict) == (None, None, "not enough runs")
        assert "the first folder was driven with its loop closed and the second with its loop open." in found.sentence
        assert found.mean_a == found.mean_b  # they stand side by side, without a verdict
    assert all(found.ratio == 1.0 for found in compare_folders(plan, opened, plan, opened))


def test_throughput_of_a_closed_and_an_open_loop_is_compared() -> None:
    plan = study({})
    closed, opened = (Runs(plan).add_cells({0: OLD}, loop=loop) for loop in ("closed", "open"))
    (found,) = compare_folders(plan, closed, plan, opened)
    assert found.ratio == 1.0


SIX = {"deployment": ["native", "layered"], "threads": [1, 4, 8]}
BLOCKS = (0.98, 1.0, 1.03, 0.99)


def six(rates: list[float], blocks: tuple[float, ...] = BLOCKS, kind: str = "ycsb"):
    plan = study(SIX)
    workload = KindSpec(kind=kind)
    plan = plan.model_copy(
        update={"cells": tuple(cell.model_copy(update={"workload": workload}) for cell in plan.cells)}
    )
    return plan, Runs(plan).add_cells({cell: [rate * block for block in blocks] for cell, rate in enumerate(rates)})


RATES = [900.0, 1700.0, 2200.0, 850.0, 1600.0, 2000.0]


def test_two_drivers_that_rank_the_cells_alike_agree_however_far_apart_their_figures_are() -> None:
    ours, theirs = six(RATES), six([0.71 * rate for rate in RATES], (1.01, 0.97, 1.0, 1.02), "go-ycsb")
    found = agreement(*ours, *theirs)
    assert (found.a, found.b) == ("ycsb", "go-ycsb")
    assert (found.ranks.tau, found.ranks.verdict, found.ranks.n) == (1.0, "agrees", 6)
    assert (found.cells, found.of) == (6, 6)
    expected = stats.unpaired_ratio(BLOCKS, [0.71 * each for each in (1.01, 0.97, 1.0, 1.02)], 0.95)
    assert (found.ratio, *found.ci) == pytest.approx((expected.ratio, expected.lo, expected.hi))
    assert found.sentence.startswith("go-ycsb measured 0.71x [0.68, 0.74] the throughput of ycsb over all 6 cells")
    assert "faster" not in found.sentence


def test_drivers_that_rank_the_cells_the_other_way_differ() -> None:
    found = agreement(*six(RATES), *six([1e6 / rate for rate in RATES]))
    assert (found.ranks.tau, found.ranks.verdict) == (-1.0, "differs")
    assert (found.a, found.b) == ("the first folder", "the second folder")
    assert found.sentence.startswith("The second folder measured ")


def test_few_cells_have_no_order_and_a_cell_of_one_side_alone_is_in_no_ratio() -> None:
    first, second = study({"threads": [1, 2, 4]}), study({"threads": [2, 4]})
    found = agreement(
        first, Runs(first).add_cells({0: OLD, 1: OLD, 2: OLD}), second, Runs(second).add_cells({0: NEW, 1: NEW})
    )
    assert (found.ranks.verdict, found.cells, found.of) == ("cannot tell", 2, 2)
    assert found.ratio == pytest.approx(stats.unpaired_ratio(OLD, NEW, 0.95).ratio)


def test_a_cell_with_too_few_runs_on_one_side_is_left_out_on_both() -> None:
    plan = study(SIX)
    whole = six(RATES)
    lacking = Runs(plan).add_cells({cell: [rate, rate] for cell, rate in enumerate(RATES) if cell != 2}).add(2, 0, 9e9)
    found = agreement(*whole, plan, lacking)
    assert (found.cells, found.of) == (5, 6)
    assert found.ratio == pytest.approx(1.0, abs=0.01)
    assert "over 5 of the 6 cells together" in found.sentence


def test_without_two_runs_on_a_side_there_is_no_ratio_and_the_reason_is_said() -> None:
    plan = study({})
    found = agreement(plan, Runs(plan).add(0, 0, 100.0), plan, Runs(plan).add_cells({0: NEW}))
    assert (found.ratio, found.ci, found.cells) == (None, None, 0)
    assert "no ratio of throughput" in found.sentence


def test_the_agreement_of_two_folders_stands_under_their_table() -> None:
    ours, theirs = six(RATES), six([0.71 * rate for rate in RATES], kind="go-ycsb")
    out = io.StringIO()
    show_folders(compare_folders(*ours, *theirs), Console(file=out), "a", "b", agreement(*ours, *theirs))
    assert "go-ycsb measured 0.71x" in out.getvalue()
    assert "Order of the cells: agrees, tau-b 1.00" in out.getvalue()
    assert "faster" not in out.getvalue()
