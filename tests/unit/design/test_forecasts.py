"""What a pilot foretells is what studies of that noise come to, through the very rule that stops them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from dyno import stats
from dyno.design import POWER, Prospect, Rule, Runs, of_pilot
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.study import DesignSpec, Study
from tests.making import make_record, make_study

TWO_LEVELS: Mapping[str, tuple[Any, ...]] = {"a": (1, 2), "b": (1, 2)}


def pilot_of(study: Study, blocks: int, sd: float, seed: int = 1, seconds: float = 2.0) -> list[RunRecord]:
    """A pilot whose runs have exactly that standard deviation of their logs in every cell."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(blocks, len(study.cells)))
    logs = sd * (logs - logs.mean(axis=0)) / logs.std(axis=0, ddof=1)
    return [
        make_record(
            1 + block * len(study.cells) + place,
            Slot(cell=cell.index, block=block),
            value=1000 * math.exp(logs[block, place]),
            seconds=seconds,
        )
        for block in range(blocks)
        for place, cell in enumerate(study.cells)
    ]


def ends(study: Study, sd: float, studies: int = 200) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """After how many blocks studies of that noise stop, by the rule itself."""
    rule, most = Rule.of(study), study.replicates.max
    rng = np.random.default_rng(5)
    values = np.exp(sd * rng.standard_normal((studies, most, len(study.cells))))
    order = rng.permuted(np.broadcast_to(np.arange(len(study.cells)), values.shape), axis=-1)
    times = (order + len(study.cells) * np.arange(most)[:, None]).astype(np.float64)
    tried = np.ones(len(study.cells), dtype=np.bool_)
    found = np.full(studies, float(most))
    for block in range(most - 1, rule.looks.first - 1, -1):
        precise = rule.reached(values[:, :block], times[:, :block], tried) <= study.replicates.precision
        found[precise] = block
    return found


@pytest.mark.parametrize(
    ("factors", "asked", "sd"),
    [
        ({"a": (1, 2)}, {"precision_of": "mean"}, 0.05),
        ({"a": (1, 2, 3), "b": (1, 2)}, {"precision_of": "mean"}, 0.10),
        ({"a": (1, 2)}, {"precision_of": "ratio"}, 0.05),
        ({"a": (1, 2), "b": (1, 2, 3, 4)}, {"precision_of": "ratio"}, 0.05),
        ({"a": (1, 2, 3), "b": (1, 2, 3)}, {"precision_of": "ratio"}, 0.03),
    ],
)
def test_the_blocks_foretold_are_those_after_which_studies_of_that_noise_end(
    factors: Mapping[str, tuple[Any, ...]], asked: dict[str, Any], sd: float
) -> None:
    study = make_study(factors, compare="a", max=60, precision="5%", **{"min": 5, **asked})
    prospect = of_pilot(study, pilot_of(study, 40, sd))
    assert prospect.blocks is not None
    assert prospect.ends is not None
    assert prospect.ends_by == "precision"
    assert prospect.ends.expected == pytest.approx(float(ends(study, sd).mean()), rel=0.25)


def test_the_effect_asked_for_is_found_as_often_as_promised_with_the_correction_for_all_comparisons() -> None:
    study = make_study({"a": (1, 2), "b": (1, 2, 3, 4)}, compare="a", max=60, min=5, precision="5%")
    sd, effect = 0.05, 0.06
    prospect = of_pilot(study, pilot_of(study, 40, sd), effect)
    (n,) = {pair.for_effect.expected for pair in prospect.pairs if pair.for_effect}
    assert n is not None
    rng = np.random.default_rng(3)
    logs = sd * rng.standard_normal((4000, n, 8))
    logs[..., 1] += math.log1p(effect)
    pairs = Rule.of(study).pairs
    planted = [place for place, pair in enumerate(pairs) if 1 in pair]
    widening = stats.widening_of_ratios(len(pairs), 5, 60)
    differences = logs[..., pairs[:, 1]] - logs[..., pairs[:, 0]]
    p = stats.block_ratios(differences, 0.95, widening=widening).p[:, planted]
    found = float((p <= prospect.alpha).any(axis=1).mean())  # Bonferroni: Holm finds what this finds and more
    assert prospect.alpha == pytest.approx(0.05 / 2 / 4)  # half is for the other responses of a report
    assert POWER - 0.02 <= found <= POWER + 0.08


def test_the_least_effect_is_found_when_the_study_ends_as_foretold() -> None:
    study = make_study({"a": (1, 2)}, compare="a", max=60, min=5, precision="5%", precision_of="ratio")
    prospect = of_pilot(study, pilot_of(study, 40, 0.04))
    (pair,) = prospect.pairs
    assert pair.sd is not None
    assert pair.detectable is not None
    assert prospect.ends is not None
    assert prospect.ends.expected is not None
    wide = pair.sd.value * stats.widening_of_ratios(1, 5, 60)
    power = stats.paired_power(prospect.ends.expected, wide, pair.detectable, 0.05 / 2, pair.sd.degrees)
    assert power == pytest.approx(POWER)


def test_the_worse_a_pilot_knows_the_spread_the_more_runs_find_the_effect() -> None:
    study = make_study({"a": (1, 2)}, compare="a", max=60, min=5, precision="5%", precision_of="ratio")
    few, many = (of_pilot(study, pilot_of(study, blocks, 0.05), 0.05).pairs[0] for blocks in (4, 60))
    assert few.sd is not None
    assert many.sd is not None
    assert few.for_effect is not None
    assert many.for_effect is not None
    scale = (many.sd.value / few.sd.value) ** 2
    assert few.for_effect.expected * scale > 1.5 * many.for_effect.expected  # type: ignore[operator]
    assert few.for_effect.low < few.for_effect.expected < few.for_effect.high  # type: ignore[operator]


def screening(generators: tuple[str, ...] = ()) -> Study:
    study = make_study({"a": (1, 2), "b": (1, 2), "c": (1, 2)}, max=30, min=4, precision="5%")
    return study.model_copy(update={"design": DesignSpec(kind="screening", generators=generators)})


def test_of_a_screening_design_the_effect_of_a_factor_is_found_as_often_as_promised() -> None:
    study, effect, sd = screening(), 0.05, 0.05
    prospect = of_pilot(study, pilot_of(study, 40, sd), effect)
    assert prospect.pairs == ()
    assert prospect.alpha == pytest.approx(0.05 / 6)  # three factors, three interactions of two
    assert prospect.factors is not None
    assert prospect.factors.for_effect is not None
    blocks = prospect.factors.for_effect.expected
    assert blocks is not None
    signs = {name: [int(cell.levels[name]) * 2 - 3 for cell in study.cells] * blocks for name in "abc"}
    rng = np.random.default_rng(4)
    widening, found = stats.widening_of_means(4, 30), 0
    for _ in range(400):
        logs = sd * rng.standard_normal(8 * blocks) + math.log1p(effect) / 2 * np.array(signs["a"])
        seen = stats.two_level_effects(
            np.exp(logs), signs, 1 - prospect.alpha, [place // 8 for place in range(8 * blocks)], max_order=2
        )
        assert seen is not None
        first = seen.effects[0]
        assert first.hi is not None
        found += first.size > widening * (first.hi - first.size)
    assert POWER - 0.05 <= found / 400 <= POWER + 0.09  # three standard errors, and blocks come in whole


def test_a_pilot_of_few_blocks_says_how_little_it_knows() -> None:
    study = make_study(TWO_LEVELS, max=60, min=4, precision="5%")
    few, many = (of_pilot(study, pilot_of(study, blocks, 0.05)) for blocks in (3, 40))
    assert few.blocks is not None
    assert many.blocks is not None
    assert few.blocks.low is not None
    assert few.blocks.high is not None
    assert few.blocks.low < few.blocks.expected < few.blocks.high  # type: ignore[operator]
    assert few.blocks.high - few.blocks.low > many.blocks.high - many.blocks.low  # type: ignore[operator]


def test_the_truth_lies_within_the_interval_of_most_pilots() -> None:
    study = make_study(TWO_LEVELS, max=60, min=4, precision="5%")
    held = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        runs = [
            make_record(1 + i, Slot(cell=i % 4, block=i // 4), value=float(1000 * (1 + 0.05 * rng.standard_normal())))
            for i in range(16)
        ]
        cov = of_pilot(study, runs).cells[0].cov
        assert cov is not None
        held += cov.low <= 0.05 <= cov.high
    assert held >= 180  # of 190 expected; four standard errors are 12


def test_a_study_that_could_only_end_by_max_or_budget_is_told_so() -> None:
    study = make_study(TWO_LEVELS, max=12, min=4, precision="1%")
    by_max = of_pilot(study, pilot_of(study, 5, 0.1))
    assert (by_max.ends, by_max.ends_by) == (Runs(12, 12, 12), "max")
    short = make_study(TWO_LEVELS, max=12, min=4, precision="1%", budget="50 s")
    by_budget = of_pilot(short, pilot_of(short, 5, 0.1, seconds=2.0))
    assert by_budget.seconds_of_block == 8.0
    assert (by_budget.ends, by_budget.ends_by) == (Runs(6, 6, 6), "budget")


def test_a_cell_that_failed_in_the_pilot_leaves_the_study_unknown_and_the_others_known() -> None:
    study = make_study(TWO_LEVELS, max=12, min=4, precision="5%")
    runs = [
        run if run.slot.cell else make_record(run.run, run.slot, Outcome.FAILED) for run in pilot_of(study, 4, 0.05)
    ]
    prospect = of_pilot(study, runs)
    assert [cell.cov is None for cell in prospect.cells] == [True, False, False, False]
    assert (prospect.blocks, prospect.ends) == (None, None)
    assert prospect.cells[1].runs is not None


def test_without_noise_the_first_look_is_the_last() -> None:
    study = make_study(TWO_LEVELS, max=12, min=4, precision="5%", compare="a")
    prospect: Prospect = of_pilot(study, pilot_of(study, 3, 0.0))
    assert (prospect.ends, prospect.ends_by) == (Runs(4, 4, 4), "precision")
    assert [pair.detectable for pair in prospect.pairs] == [0.0, 0.0]


def test_a_value_of_0_has_no_ratio_and_is_no_error() -> None:
    study = make_study(TWO_LEVELS, max=12, min=4, precision="5%", compare="a")
    runs = [run if run.slot.cell else make_record(run.run, run.slot, value=0.0) for run in pilot_of(study, 4, 0.05)]
    prospect = of_pilot(study, runs)
    assert [pair.n for pair in prospect.pairs] == [0, 4]
    assert prospect.pairs[0].sd is None
    assert prospect.cells[0].cov is None
