"""What explains the variation, in figures and in words."""

from __future__ import annotations

import numpy as np
import pytest
from small_studies import Runs, study

from dyno.analysis import analyse
from dyno.model.study import DesignSpec

# R. Jain, The Art of Computer Systems Performance Analysis, 1991, table 22.1: code size of five workloads on four
# processors, three times each. In logs processors explain 65.96 %, workloads 29.90 %, their interaction 3.48 % and
# errors 0.66 %.
CODE_SIZES = (
    7006, 12042, 29061, 9903, 6593, 11794, 27045, 9206, 7302, 13074, 30057, 10035,
    3207, 5123, 8960, 4153, 2883, 5632, 8064, 4257, 3523, 4608, 9677, 4065,
    4707, 9407, 19740, 7089, 4935, 8933, 19345, 6982, 4465, 9964, 21122, 6678,
    5107, 5613, 22340, 5356, 5508, 5947, 23102, 5734, 4743, 5161, 21446, 4965,
    6807, 12243, 28560, 9803, 6392, 11995, 26846, 9306, 7208, 12974, 30559, 10233,
)  # fmt: skip


def jain() -> tuple:
    plan = study({"workload": list("IJKLM"), "processor": list("WXYZ")})
    sizes = np.array(CODE_SIZES, dtype=float).reshape(5, 3, 4)  # workload, time, processor
    return plan, Runs(plan).add_cells({4 * w + p: list(sizes[w, :, p]) for w in range(5) for p in range(4)})


def explained(plan, runs):
    (found,) = analyse(plan, runs, ended="done").variation
    return found


def test_the_shares_are_those_of_jain_s_example() -> None:
    found = explained(*jain())
    shares = {each.source: each.share for each in found.sources}
    assert shares["processor"] == pytest.approx(0.6596, abs=5e-5)
    assert shares["workload"] == pytest.approx(0.2990, abs=5e-5)
    assert shares["workload x processor"] == pytest.approx(0.0348, abs=5e-5)
    # Here the three times are blocks, which take their part of what are errors there.
    assert shares["blocks"] + shares["residual"] == pytest.approx(0.0066, abs=5e-5)
    assert sum(shares.values()) == pytest.approx(1)
    assert found.adds_up
    assert [each.degrees for each in found.sources] == [2, 4, 3, 12, 38]


def test_the_sentence_names_factors_by_their_share_then_blocks_and_noise() -> None:
    sentence = explained(*jain()).sentence
    assert sentence.startswith(
        "Of throughput, processor explains 66% of the variation, workload 30%, their interplay 3.5%, blocks "
    )
    assert "(no more than noise would), noise 0." in sentence
    assert sentence.endswith("%.")


def test_an_interplay_that_outweighs_its_factors_is_named_in_full() -> None:
    plan = study({"a": ["x", "y"], "b": ["u", "v"]})
    runs = Runs(plan).add_cells({0: [10, 11], 1: [20, 21], 2: [20, 22], 3: [10, 10.5]})
    assert "the interplay of a and b explains 9" in explained(plan, runs).sentence


def test_what_a_factor_does_by_chance_is_told_as_noise() -> None:
    plan = study({"a": ["x", "y"], "b": ["u", "v"]})
    random = np.random.default_rng(3)
    runs = Runs(plan).add_cells({cell: list(np.exp((cell > 1) + 0.1 * random.standard_normal(6))) for cell in range(4)})
    found = {each.source: each for each in explained(plan, runs).sources}
    assert found["a"].p < 1e-9
    assert found["b"].p > 0.05
    assert "a explains 9" in explained(plan, runs).sentence


def test_runs_that_are_missing_make_shares_overlap_and_it_is_said() -> None:
    plan, runs = jain()
    found = explained(plan, [run for run in runs if run.run not in (3, 17, 18)])
    assert not found.adds_up
    assert "Some runs are missing, so that sources overlap and shares need not add up to 100%." in found.sentence


def test_residuals_are_what_fitted_values_miss_and_scores_keep_their_order() -> None:
    plan, runs = jain()
    found = explained(plan, runs)
    logs = [np.log(run.responses["throughput"]) for run in runs]
    assert np.add(found.fitted, found.residuals) == pytest.approx(logs)
    assert found.runs == tuple(range(1, 61))
    assert (np.argsort(found.scores) == np.argsort(found.residuals)).all()
    assert np.std(found.scores) == pytest.approx(np.std(found.residuals), rel=0.3)


@pytest.mark.parametrize(
    ("factors", "values", "reason"),
    [
        ({}, {0: [1.0, 2.0]}, "there is nothing to vary in one cell"),
        ({"a": ["x", "y"]}, {0: [1.0, 2.0], 1: [0.0, 1.0]}, "some values are not above 0, and have no logarithm"),
        ({"a": ["x", "y"]}, {0: [1.0], 1: [2.0]}, "each cell has one run, so that noise cannot be told"),
        ({"a": ["x", "y"]}, {0: [2.0, 2.0], 1: [2.0, 2.0]}, "all values are the same"),
    ],
)
def test_where_there_is_nothing_to_explain_it_says_why(factors, values, reason) -> None:
    plan = study(factors)
    found = explained(plan, Runs(plan).add_cells(values))
    assert found.reason.startswith(reason)
    assert found.reason in found.sentence
    assert found.sources == found.residuals == ()


def test_responses_are_explained_where_they_are_asked_for() -> None:
    plan = study({"a": ["x", "y"]})
    runs = Runs(plan)
    for block in range(3):
        for cell in (0, 1):
            runs.add(cell, block, responses={"throughput": 5.0 + block, "latency_p50": 1.0 + cell + 0.1 * block})
    assert [each.response for each in analyse(plan, runs, ended=None).variation] == ["throughput"]
    asked = analyse(plan, runs, ended=None, explained=["latency_p50", "throughput"])
    assert [each.response for each in asked.variation] == ["throughput", "latency_p50"]
    assert [each.response for each in asked.drift] == ["throughput", "latency_p50"]


def test_a_fraction_whose_sources_are_confounded_is_not_taken_apart() -> None:
    plan = study({name: [1, 2] for name in "abc"})
    half = [cell for cell in plan.cells if sum(level == "2" for level in cell.levels.values()) % 2]
    kept = {
        "design": DesignSpec(kind="screening", generators=("C=AB",)),
        "cells": tuple(cell.model_copy(update={"index": index}) for index, cell in enumerate(half)),
    }
    fraction = plan.model_copy(update=kept)
    noise = np.exp(0.02 * np.random.default_rng(1).standard_normal((4, 5)))
    found = explained(fraction, Runs(fraction).add_cells({cell: list(100.0 * noise[cell]) for cell in range(4)}))
    assert found.sources == ()
    assert "confounds its sources; each effect has its own share" in found.sentence
    named = fraction.model_copy(update={"design": DesignSpec(kind="cells")})
    told = explained(named, Runs(named).add_cells({cell: list(100.0 * (cell + noise[cell])) for cell in range(4)}))
    assert not told.adds_up
    assert "Some combinations are not in the design, so that sources overlap" in told.sentence


def test_a_design_that_leaves_combinations_out_has_no_runs_that_are_missing() -> None:
    """As where a fault is struck in some cells alone: of two times three combinations the last is not in the study."""
    plan = study({"a": ["x", "y"], "b": ["t", "u", "v"]})
    some = plan.model_copy(update={"cells": plan.cells[:5]})
    noise = np.exp(0.02 * np.random.default_rng(1).standard_normal((5, 4)))
    runs = Runs(some).add_cells({cell: list(100.0 * (1 + cell) * noise[cell]) for cell in range(5)})
    told = explained(some, runs)
    assert not told.adds_up
    assert "Some combinations are not in the design, so that" in told.sentence
    both = explained(some, [run for run in runs if run.run != 3])
    assert "Some combinations are not in the design and some runs are missing, so that" in both.sentence
