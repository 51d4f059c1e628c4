"""Targets are met or missed by whole intervals, in each cell and in the study."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_studies import Runs, study

from dyno.analysis import analyse
from dyno.model.targets import Target

LOW, HIGH = [100.0, 104.0, 96.0, 101.0, 99.0, 103.0], [301.0, 310.0, 290.0, 305.0, 297.0, 308.0]


def judged(bound: str, values: dict[int, list[float]] | None = None, response: str = "throughput", **where):
    plan = study({"journal": ["delete", "wal"]}, compare="journal", min=6, max=6)
    target = Target.model_validate({"response": response, "bound": bound, "where": where})
    plan = plan.model_copy(update={"targets": (target,)})
    (found,) = analyse(plan, Runs(plan).add_cells({0: LOW, 1: HIGH} if values is None else values), ended=None).targets
    return found


@pytest.mark.parametrize(
    ("bound", "verdict", "cells"),
    [
        ("> 90 ops/s", "met", ("met", "met")),
        ("> 100 ops/s", "cannot tell", ("cannot tell", "met")),
        ("> 200 ops/s", "missed", ("missed", "met")),
        ("> 302 ops/s", "missed", ("missed", "cannot tell")),
        ("> 500 ops/s", "missed", ("missed", "missed")),
        ("< 30000 1/min", "met", ("met", "met")),
        ("90 to 400 ops/s", "met", ("met", "met")),
    ],
)
def test_a_study_meets_its_target_where_every_cell_does(bound, verdict, cells) -> None:
    found = judged(bound)
    assert (found.verdict, tuple(cell.verdict for cell in found.cells)) == (verdict, cells)


def test_a_target_s_interval_is_that_of_the_cell_s_mean() -> None:
    plan = study({"journal": ["delete", "wal"]}, compare="journal", min=6, max=6)
    plan = plan.model_copy(update={"targets": (Target(response="throughput", bound="> 1 ops/s"),)})
    found = analyse(plan, Runs(plan).add_cells({0: LOW, 1: HIGH}), ended=None)
    cells = [cell for cell in found.cells if cell.response == "throughput"]
    assert [(cell.mean, cell.ci, cell.n) for cell in found.targets[0].cells] == [
        (cell.mean, cell.ci, cell.n) for cell in cells
    ]


def test_a_target_of_some_cells_asks_only_those() -> None:
    found = judged("> 200 ops/s", journal="wal")
    assert (found.verdict, found.where) == ("met", {"journal": ("wal",)})
    assert [cell.levels for cell in found.cells] == [{"journal": "wal"}]
    assert found.sentence.startswith("throughput > 200 ops/s with journal=wal: met, 301.8 [290.")
    assert found.sentence.endswith("] ops/s (n = 6 runs).")


@pytest.mark.parametrize(
    ("bound", "sentence"),
    [
        ("> 90 ops/s", "throughput > 90 ops/s: met in both cells."),
        ("> 200 ops/s", "throughput > 200 ops/s: missed; of 2 cells, met in 1, missed in 1."),
        ("> 100 ops/s", "throughput > 100 ops/s: cannot tell; of 2 cells, met in 1, cannot tell in 1."),
    ],
)
def test_a_target_is_answered_in_a_sentence(bound, sentence) -> None:
    assert judged(bound).sentence == sentence


def test_one_run_tells_nothing_of_a_target() -> None:
    found = judged("> 1 ops/s", {0: LOW, 1: [1e6]})
    assert [cell.verdict for cell in found.cells] == ["met", "cannot tell"]
    assert found.verdict == "cannot tell"


def test_what_was_not_measured_is_not_met() -> None:
    found = judged("< 70 %", response="disk.util")
    assert (found.verdict, found.sentence) == (
        "cannot tell",
        "utilisation of the busiest disk < 70 %: cannot tell; it was not measured (runs may be "
        "shorter than the time between two samples; observe: [{machine: {hz: 10}}] takes more of them).",
    )


def test_a_level_that_this_scale_leaves_out_leaves_nothing_to_tell() -> None:
    found = judged("> 1 ops/s", journal="off")
    assert (found.verdict, found.cells) == ("cannot tell", ())


def test_a_response_of_one_operation_is_asked_of_the_cells_that_have_it() -> None:
    plan = study({"journal": ["delete", "wal"]}, compare="journal", min=4, max=4)
    plan = plan.model_copy(update={"targets": (Target(response="read.latency_p99", bound="< 5 ms"),)})
    runs = Runs(plan)
    for block in range(4):
        runs.add(0, block, responses={"throughput": 1.0, "read.latency_p99": 2.0 + 0.1 * block})
        runs.add(1, block, responses={"throughput": 1.0})
    (found,) = analyse(plan, runs, ended=None).targets
    assert (found.verdict, [cell.cell for cell in found.cells]) == ("met", [0])


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=6), st.integers(1, 10**6))
def test_a_target_and_its_opposite_are_never_both_met_nor_both_missed(values, bound) -> None:
    above, below = judged(f"> {bound} ops/s", {0: values}), judged(f"<= {bound} ops/s", {0: values})
    opposite = {"met": "missed", "missed": "met", "cannot tell": "cannot tell"}
    assert below.cells[0].verdict == opposite[above.cells[0].verdict]


@pytest.mark.parametrize(("response", "said"), [("cpu.util", True), ("disk.util", True), ("throughput", False)])
def test_a_target_of_the_whole_machine_says_that_neighbours_count_as_well(response, said) -> None:
    bound = "< 90 ops/s" if response == "throughput" else "< 90 %"
    plan = study({}).model_copy(update={"targets": (Target(response=response, bound=bound),)})
    found = analyse(plan, Runs(plan).add_cells({0: HIGH}, response), ended=None)
    assert any("because of neighbours" in note for note in found.notes) == said
