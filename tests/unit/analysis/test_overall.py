"""A level against the first, over many combinations together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import analyse
from dyno.model.study import KindSpec
from dyno.report.text import part_of

FACTORS = {"deployment": ["native", "layered"], "workload": ["a", "b"], "threads": [1, 4, 8, 16]}
COST = {"a": 0.8, "b": 0.95}  # of layered


def plan_of(factors: Any = FACTORS, **rule: Any):
    return study(factors, compare="deployment", **{"min": 6, "max": 6, **rule})


def measured(plan, *, blocks: int = 6, noise: float = 0.02, cost=COST, seed: int = 5, **fields: Any) -> Runs:
    """Throughputs of which layered has the share of native that its workload costs."""
    random = np.random.default_rng(seed)
    runs = Runs(plan)
    for block in range(blocks):
        slow = random.lognormal(0, 0.1)
        for cell in plan.cells:
            share = 1.0 if cell.levels["deployment"] == "native" else cost[cell.levels["workload"]]
            value = 1000.0 * int(cell.levels["threads"]) * slow * share * random.lognormal(0, noise)
            runs.add(cell.index, block, value, **fields)
    return runs


def analysed(plan, runs):
    return analyse(plan, runs, ended="all blocks are done")


def test_all_combinations_weigh_alike_and_the_block_is_what_is_repeated() -> None:
    plan = plan_of()
    runs = measured(plan)
    found = analysed(plan, runs).overall
    first = found[0]
    logs = {(run.slot.cell, run.slot.block): math.log(run.responses["throughput"]) for run in runs}
    of_blocks = [np.mean([logs[8 + cell, block] - logs[cell, block] for cell in range(8)]) for block in range(6)]
    low, high = stats.mean_interval(of_blocks, 0.95)
    assert (first.a, first.b, first.where, first.combinations, first.of, first.n) == ("native", "layered", {}, 8, 8, 6)
    assert first.ratio == pytest.approx(math.exp(np.mean(of_blocks)))
    assert first.ci == pytest.approx((math.exp(low), math.exp(high)))
    assert first.ci[0] < math.sqrt(COST["a"] * COST["b"]) < first.ci[1]


def test_a_figure_over_unlike_tasks_says_of_how_many_it_is() -> None:
    plan = plan_of()
    actions = {"a": "load", "b": "queries"}
    cells = [
        cell.model_copy(
            update={"workload": KindSpec(kind="tsbs", options={"action": actions[cell.levels["workload"]]})}
        )
        for cell in plan.cells
    ]
    plan = plan.model_copy(update={"cells": tuple(cells)})
    found = {tuple(each.where.items()): each for each in analysed(plan, measured(plan)).overall}
    whole, of_load = found[()], found[(("workload", "a"),)]
    assert (whole.tasks, part_of(whole)) == (2, "all 8, of 2 unlike tasks")
    assert "all 8 combinations together (of 2 unlike tasks)" in whole.sentence
    assert (of_load.tasks, part_of(of_load)) == (1, "workload=a (4)")
    assert part_of(found[(("threads", "4"),)]) == "threads=4 (2, of 2 unlike tasks)"


def test_it_is_told_of_each_level_of_each_other_factor_too_and_corrected_for_all_of_them() -> None:
    plan = plan_of()
    found = analysed(plan, measured(plan)).overall
    assert [each.where for each in found] == [
        {},
        {"workload": "a"},
        {"workload": "b"},
        *({"threads": level} for level in ("1", "4", "8", "16")),
    ]
    adjusted = stats.holm([each.p for each in found])
    assert [each.p_adjusted for each in found] == pytest.approx(list(adjusted))
    assert {each.family for each in found} == {7}
    assert found[1].sentence.startswith(
        "Over the 4 combinations with workload=a together, deployment layered has 0.80x ["
    )


def test_of_many_combinations_the_answer_is_what_they_say_together_and_how_many_say_so_alone() -> None:
    plan = plan_of()
    found = analysed(plan, measured(plan, noise=0.03, cost={"a": 0.8, "b": 1.0}))
    singles = [each.verdict for each in found.comparisons]
    assert singles == ["lower"] * 4 + ["no difference shown"] * 4
    assert found.answer.startswith("layered is slower than native over all 8 combinations together: 0.")
    assert found.answer.endswith(" (alone, 4 are slower and 4 show no difference).")


def test_levels_that_are_alike_over_all_are_called_equal_or_not_told_apart_and_never_slower() -> None:
    plan = plan_of()
    alike = analysed(plan, measured(plan, noise=0.005, cost={"a": 1.0, "b": 1.0}))
    assert alike.overall[0].verdict == "equivalent"
    assert "layered and native are within 2% of each other in throughput over all 8" in alike.answer
    noisy = analysed(plan, measured(plan, noise=0.3, cost={"a": 1.0, "b": 1.0}))
    assert noisy.overall[0].verdict == "no difference shown"
    assert "slower" not in noisy.answer
    assert "faster" not in noisy.answer


def test_a_combination_that_has_no_pairs_is_left_out_and_it_is_said() -> None:
    plan = plan_of()
    runs = Runs(plan)
    for run in measured(plan):
        if run.slot.cell == 15:
            runs.fail(15, run.slot.block)
        else:
            runs.add(run.slot.cell, run.slot.block, run.responses["throughput"])
    first = analysed(plan, runs).overall[0]
    assert (first.combinations, first.of, first.n) == (7, 8, 6)
    assert first.sentence.startswith("Over 7 of the 8 combinations together, ")


def test_a_single_combination_is_a_comparison_and_no_more() -> None:
    plan = study({"deployment": ["native", "layered"]}, compare="deployment")
    assert analysed(plan, Runs(plan).add_cells({0: [1.0, 2.0, 3.0], 1: [1.0, 2.0, 3.0]})).overall == ()
    assert analysed(study({"threads": [1, 4]}), Runs(plan)).overall == ()


def test_a_level_with_a_single_combination_is_no_part_beside_the_comparison_that_it_is() -> None:
    plan = plan_of({"deployment": ["native", "layered"], "threads": [1, 4]})
    found = analysed(plan, Runs(plan).add_cells({cell: [1.0 + cell, 2.0 + cell, 3.0 + cell] for cell in range(4)}))
    assert [each.where for each in found.overall] == [{}]


def test_a_rate_that_was_given_has_no_overall_ratio() -> None:
    plan = plan_of()
    assert analysed(plan, measured(plan, loop="open", rate_per_s=100.0)).overall == ()


def test_values_of_0_give_none_rather_than_one_of_the_other_combinations() -> None:
    plan = plan_of()
    runs = Runs(plan)
    for run in measured(plan):
        read = 0.0 if run.slot.cell == 3 else 100.0
        runs.add(run.slot.cell, run.slot.block, responses={**run.responses, "device_read_per_op": read})
    found = [each for each in analysed(plan, runs).overall if each.response == "device_read_per_op"]
    assert {"workload": "b"} in [each.where for each in found]  # cell 3 is of workload a
    assert {} not in [each.where for each in found]
    assert {"workload": "a"} not in [each.where for each in found]


def test_what_differs_besides_is_told_beside_the_overall_ratio() -> None:
    plan = plan_of()
    runs = Runs(plan)
    for run in measured(plan):
        engine = "io_uring" if run.levels["deployment"] == "native" else "libaio"
        runs.add(run.slot.cell, run.slot.block, run.responses["throughput"], deployed={"io_engine": engine})
    found = analysed(plan, runs)
    assert found.overall[0].sentence.endswith("; io_engine differs too.")
    assert " Besides deployment, io_engine (native: io_uring; layered: libaio) differs." in found.answer
