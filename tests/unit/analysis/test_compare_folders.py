"""Two results folders, cell by cell."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import compare_folders
from dyno.model.run import MeasuredPart
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
