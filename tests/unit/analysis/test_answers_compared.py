"""Times of unlike answers are compared nowhere: not in a report, not between folders, and by no gate."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from answered import answers, row
from small_studies import Runs, study

from dyno.analysis import agreement, analyse, compare_folders, gate_blocks, gate_sessions
from dyno.model.run import RunRecord
from dyno.model.study import KindSpec, Study

RIGHT, WRONG = [["host_0", 97], ["host_1", 99]], [["host_0", 97], ["host_1", 199]]


def asked(wrong_cells: tuple[int, ...], plan: Study, *, blocks: int = 6) -> tuple[Runs, pl.DataFrame]:
    """Runs of two queries; in some cells one is answered otherwise, and the second side is twice as fast in both."""
    runs = Runs(plan)
    for block in range(blocks):
        for cell in range(len(plan.cells)):
            slow = (20 if cell % 2 == 0 else 10) * (1 + 0.01 * (block % 3))
            runs.add(cell, block, responses={"q.point.warm": slow, "q.scan.warm": slow, "warm": slow})

    def of_run(run: RunRecord) -> list[dict[str, Any]]:
        point = WRONG if run.slot.cell in wrong_cells else RIGHT
        return [row(point, run.run), row(RIGHT, run.run, "scan")]

    return runs, answers(runs, of_run)


def two_stores(**rule: Any) -> Study:
    return study({"store": ["one", "two"]}, compare="store", of="warm", min=6, max=6, **rule)


def test_one_that_has_not_run_answers_nothing_and_not_otherwise() -> None:
    plan = two_stores()
    runs = Runs(plan)
    for block in range(3):
        runs.add(0, block, responses={"q.point.warm": 20 + block, "warm": 20 + block})
    given = answers(runs, lambda run: [row(RIGHT, run.run)])
    found = analyse(plan, runs, ended="interrupted", answers=given)
    told = [each.sentence for each in found.comparisons]
    assert told
    assert not any("otherwise" in each for each in told)
    assert all("0" in each for each in told)


def test_a_planted_wrong_answer_stops_the_comparison_of_its_query_and_of_means_with_it() -> None:
    plan = two_stores()
    runs, given = asked((1,), plan)
    found = analyse(plan, runs, ended="done", answers=given)
    by_response = {each.response: each for each in found.comparisons}
    for response in ("q.point.warm", "warm"):
        assert by_response[response].ratio is None
        assert by_response[response].verdict == "not enough runs"
        assert "they answer point otherwise: (host_1, 99) against (host_1, 199)" in by_response[response].sentence
    assert by_response["q.scan.warm"].verdict == "lower"
    assert "faster" not in found.answer
    assert found.notes[0].startswith("1 of 2 queries are not answered the same by all cells")
    point, scan = found.queries
    assert (point.query, point.equal, [each.group for each in point.answers]) == ("q.point", False, [0, 1])
    assert point.differences == ("store=one against store=two: (host_1, 99) against (host_1, 199)",)
    assert (scan.query, scan.equal) == ("q.scan", True)
    assert scan.answers[0].plan == "Scan of scan"


def test_a_query_that_is_asked_in_batches_too_is_told_of_as_two() -> None:
    plan = two_stores()
    runs, _ = asked((1,), plan)

    def of_run(run: RunRecord) -> list[dict[str, Any]]:
        return [row(WRONG if run.slot.cell else RIGHT, run.run, part=part) for part in ("q", "b")]

    found = analyse(plan, runs, ended="done", answers=answers(runs, of_run))
    alone, in_batches_too = (each.sentence.partition(" is not")[0] for each in found.queries)
    assert in_batches_too == alone.replace(")", ", in batches)")
    assert found.notes[0].endswith(f"are not compared: {alone}; {in_batches_too}.")


def test_the_same_answers_are_compared_as_ever() -> None:
    plan = two_stores()
    runs, given = asked((), plan)
    found = analyse(plan, runs, ended="done", answers=given)
    assert {each.verdict for each in found.comparisons} == {"lower"}
    assert all(each.equal for each in found.queries)
    assert not any("not answered" in note for note in found.notes)
    # Without any answers the comparison stands as well: other workloads have none.
    assert [each.ratio for each in analyse(plan, runs, ended="done").comparisons] == [
        each.ratio for each in found.comparisons
    ]


def test_without_a_compared_factor_no_cell_of_unlike_answers_is_called_the_lowest() -> None:
    plan = study({"store": ["one", "two"]}, of="warm", min=6, max=6)
    runs, given = asked((1,), plan)
    found = analyse(plan, runs, ended="done", answers=given)
    assert found.answer.startswith("Which is the fastest is open: they answer point otherwise")
    assert "lowest" in analyse(plan, runs, ended="done").answer


def test_a_gate_between_two_sides_cannot_tell_of_unlike_answers() -> None:
    plan = two_stores()
    runs, given = asked((1,), plan)
    told = gate_blocks(plan, runs, slower=0.03, answers=given)
    assert told.verdict == "cannot tell"
    assert "they answer point otherwise" in told.cells[0].why
    assert gate_blocks(plan, runs, slower=0.03).verdict == "not slower"


@pytest.mark.parametrize(("wrong", "verdict"), [((0,), "cannot tell"), ((), "not slower")])
def test_a_gate_between_sessions_cannot_tell_of_unlike_answers(wrong: tuple[int, ...], verdict: str) -> None:
    plan = study({}, of="warm", min=6, max=6)
    base = [asked((), plan) for _ in range(6)]
    new, given = asked(wrong, plan)
    told = gate_sessions(
        [(plan, runs) for runs, _ in base],
        (plan, new),
        slower=0.03,
        answers=[*(answered for _, answered in base), given],
    )
    assert told.verdict == verdict


def test_two_folders_of_unlike_answers_have_no_ratio() -> None:
    plan = study({}, of="warm", min=6, max=6)
    (old, of_old), (new, of_new) = asked((), plan), asked((0,), plan)
    (found,) = compare_folders(plan, old, plan, new, (of_old, of_new))
    assert found.ratio is None
    assert "they answer point otherwise" in found.sentence
    assert agreement(plan, old, plan, new, (of_old, of_new)).cells == 0
    (same,) = compare_folders(plan, old, plan, old, (of_old, of_old))
    assert same.ratio == pytest.approx(1.0)
    assert agreement(plan, old, plan, old, (of_old, of_old)).cells == 1


@pytest.mark.parametrize("apart", ["answer", "durability", "durability of one kind"])
def test_in_batches_the_best_is_of_those_that_compare(apart: str) -> None:
    plan = study({"store": ["one", "two", "three"]}, compare="store", of="throughput", min=6, max=6)
    cells = tuple(
        cell.model_copy(
            update={
                "workload": cell.workload.model_copy(update={"options": {"workers": 4}}),
                "system": KindSpec(kind="other" if cell.index == 2 and apart == "durability" else "questdb"),
            }
        )
        for cell in plan.cells
    )
    plan = plan.model_copy(update={"cells": cells})
    runs = Runs(plan)
    for block in range(6):
        for cell, rate in enumerate((100.0, 200.0, 900.0)):
            value = rate * (1 + 0.01 * (block % 3))
            mode = "nosync" if cell == 2 and apart != "answer" else "sync"
            responses = {"throughput": value, "b.point.throughput": value}
            runs.add(cell, block, responses=responses, settings={"cairo.commit.mode": mode})

    def answered(run: RunRecord) -> list[dict[str, Any]]:
        return [row(WRONG if run.slot.cell == 2 and apart == "answer" else RIGHT, run.run, part="b")]

    given = answers(runs, answered)
    (found,) = analyse(plan, runs, ended="done", answers=given).batches
    left_out = 0 if apart == "durability of one kind" else 1
    assert (found.query, found.workers, found.of, found.left_out) == ("point", 4, 3 - left_out, left_out)
    best = "two" if left_out else "three"
    assert (found.best.levels, found.worst.levels) == ({"store": best}, {"store": "one"})
    assert found.apart


def in_batches(offset: float) -> tuple[Study, Runs, pl.DataFrame]:
    """Eight stores, the last of which has so many queries a second more than the others."""
    plan = study({"store": [f"s{number}" for number in range(8)]}, compare="store", of="throughput", min=6, max=6)
    cells = tuple(
        cell.model_copy(update={"workload": cell.workload.model_copy(update={"options": {"workers": 4}})})
        for cell in plan.cells
    )
    plan = plan.model_copy(update={"cells": cells})
    runs = Runs(plan)
    for block in range(6):
        for cell in range(8):
            value = 100 + ((block * 5 + cell * 3) % 7) + (offset if cell == 7 else 0)
            runs.add(cell, block, responses={"throughput": value, "b.point.throughput": value})
    return plan, runs, answers(runs, lambda run: [row(RIGHT, run.run, part="b")])


def test_the_best_and_the_worst_of_many_are_apart_only_where_all_pairs_could_be_told_at_once() -> None:
    # Two that are picked by what was measured are apart by luck more often than two that were named before.
    told = []
    for offset in (2.0, 4.0, 6.0, 8.0, 20.0):
        plan, runs, given = in_batches(offset)
        (found,) = analyse(plan, runs, ended="done", answers=given).batches
        assert found.best.ci is not None
        assert found.worst.ci is not None
        told.append((found.worst.ci[1] < found.best.ci[0], found.apart))
    assert (True, False) in told
    assert (False, True) not in told
    assert told[-1] == (True, True)


@pytest.mark.parametrize("erring", [range(3), range(3, 6)])
def test_a_query_that_one_store_answers_in_some_runs_and_not_in_others_is_not_compared(erring: range) -> None:
    # By the times of those runs alone in which it was answered the store that gives up was the faster.
    plan = two_stores()
    runs, given = asked((), plan)
    numbers = [run.run for run in runs if run.slot.cell == 1 and run.slot.block in erring]
    failed = pl.col("run").is_in(numbers) & (pl.col("query") == "point")
    given = given.with_columns(
        pl.when(failed).then(pl.lit("timed out")).otherwise(pl.col("error")).alias("error"),
        *(
            pl.when(failed).then(None).otherwise(pl.col(name)).alias(name)
            for name in ("columns", "rows", "digest", "digest_of_set", "first", "whole")
        ),
    )
    found = analyse(plan, runs, ended="done", answers=given)
    by_response = {each.response: each for each in found.comparisons}
    for response in ("q.point.warm", "warm"):
        assert by_response[response].ratio is None
        assert "does not answer the same each time" in by_response[response].sentence
    assert by_response["q.scan.warm"].ratio is not None
