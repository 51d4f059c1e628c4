"""Effects of two-level designs are those of the printed examples."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dyno import stats

# R. Jain, The Art of Computer Systems Performance Analysis, 1991, chapter 18: memory (A) and cache (B) of a
# workstation, three runs a cell. Mean and effects 41, 21.5, 9.5, 5; 78.88 %, 15.40 %, 4.27 % of the variation; s = 3.57
# with 8 degrees of freedom; 90 % intervals -+ 1.92.
MEMORY_CACHE = (15, 18, 12, 45, 48, 51, 25, 28, 19, 75, 75, 81)
MEMORY_CACHE_SIGNS = {"A": [-1] * 3 + [1] * 3 + [-1] * 3 + [1] * 3, "B": [-1] * 6 + [1] * 6}

# D. C. Montgomery, Design and Analysis of Experiments, example 6.2: filtration rate, a 2^4 design run once, in standard
# order. Its effects A, C, D, AC and AD are 21.625, 9.875, 14.625, -18.125 and 16.625; Lenth's method gives PSE = 2.625,
# ME = 6.748 and SME = 13.699 (section 6.5; K. Dunn, Process Improvement Using Data, prints half of each but SME).
FILTRATION = (45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96)


def _standard_order(*factors: str) -> dict[str, list[int]]:
    runs = [run[::-1] for run in itertools.product((-1, 1), repeat=len(factors))]
    return {factor: [run[at] for run in runs] for at, factor in enumerate(factors)}


def _sizes(found: stats.Effects) -> dict[str, float]:
    return {effect.source: effect.size for effect in found.effects}


def test_effects_with_replicates_are_jain_s() -> None:
    found = stats.two_level_effects(MEMORY_CACHE, MEMORY_CACHE_SIGNS, 0.90, log=False)
    assert found.mean == pytest.approx(41)
    assert _sizes(found) == pytest.approx({"A": 21.5, "B": 9.5, "A x B": 5.0})
    assert [effect.share for effect in found.effects] == pytest.approx([0.7888, 0.1540, 0.0427], abs=5e-5)
    assert (found.noise, found.degrees) == (pytest.approx(3.57, abs=5e-3), 8)
    for effect in found.effects:
        assert (effect.hi - effect.lo) / 2 == pytest.approx(1.92, abs=5e-3)
        assert effect.p < 0.1


def test_effects_judge_as_the_analysis_of_variance_does() -> None:
    effects = stats.two_level_effects(MEMORY_CACHE, MEMORY_CACHE_SIGNS, 0.90)
    rows = stats.variation(MEMORY_CACHE, MEMORY_CACHE_SIGNS).rows
    for effect, row in zip(effects.effects, rows[:-1], strict=True):
        assert (effect.source, effect.share, effect.p) == (
            row.source,
            pytest.approx(row.share),
            pytest.approx(row.p),
        )


def test_on_logs_an_effect_is_half_the_log_of_the_ratio() -> None:
    found = stats.two_level_effects([10.0, 20.0], {"A": [-1, 1]}, 0.95)
    assert math.exp(2 * found.effects[0].size) == pytest.approx(2.0)
    assert (found.effects[0].lo, found.effects[0].p, found.noise, found.degrees) == (None, None, None, 0)


def test_a_design_run_once_has_montgomery_s_effects() -> None:
    found = stats.two_level_effects(FILTRATION, _standard_order("A", "B", "C", "D"), 0.95, log=False)
    printed = {"A": 21.625, "C": 9.875, "D": 14.625, "A x C": -18.125, "A x D": 16.625}
    assert {source: 2 * _sizes(found)[source] for source in printed} == pytest.approx(printed)


def test_a_fraction_names_what_it_cannot_tell_apart() -> None:
    # Jain 1991, chapter 19: a 2^(4-1) design with D = ABC confounds A with BCD, AB with CD, and so on.
    signs = _standard_order("A", "B", "C")
    signs["D"] = np.prod(list(signs.values()), axis=0).tolist()
    found = stats.two_level_effects(np.arange(1.0, 9.0), signs, 0.95)
    assert {effect.source: effect.aliases for effect in found.effects} == {
        "A": ("B x C x D",),
        "B": ("A x C x D",),
        "C": ("A x B x D",),
        "D": ("A x B x C",),
        "A x B": ("C x D",),
        "A x C": ("B x D",),
        "A x D": ("B x C",),
    }
    assert found.defining == ("A x B x C x D",)
    opposite = {**signs, "D": [-sign for sign in signs["D"]]}
    mirrored = stats.two_level_effects(np.arange(1.0, 9.0), opposite, 0.95)
    assert mirrored.defining == ("-A x B x C x D",)
    assert mirrored.effects[0].aliases == ("-B x C x D",)


def test_a_missing_run_is_made_up_for_by_least_squares() -> None:
    signs = {factor: column[1:] for factor, column in MEMORY_CACHE_SIGNS.items()}
    found = stats.two_level_effects(MEMORY_CACHE[1:], signs, 0.90, log=False)
    cells = [15.0, 48.0, 24.0, 77.0]  # the means of the cells; the first lost a run that was its mean
    assert found.mean == pytest.approx(np.mean(cells))
    assert _sizes(found)["A"] == pytest.approx((cells[1] + cells[3] - cells[0] - cells[2]) / 4)
    assert found.degrees == 7


def test_differences_between_blocks_are_no_noise() -> None:
    blocks = [1, 2, 3] * 4
    drifted = [value + 100 * block for value, block in zip(MEMORY_CACHE, blocks, strict=True)]
    found = stats.two_level_effects(drifted, MEMORY_CACHE_SIGNS, 0.90, blocks, log=False)
    still = stats.two_level_effects(MEMORY_CACHE, MEMORY_CACHE_SIGNS, 0.90, blocks, log=False)
    assert _sizes(found) == pytest.approx({"A": 21.5, "B": 9.5, "A x B": 5.0})
    assert (found.noise, found.degrees) == (pytest.approx(still.noise), 6)


def test_what_is_above_the_order_counts_as_noise() -> None:
    found = stats.two_level_effects(MEMORY_CACHE, MEMORY_CACHE_SIGNS, 0.90, log=False, max_order=1)
    assert found.degrees == 9
    assert found.noise == pytest.approx(math.sqrt((102 + 300) / 9))


def test_runs_that_do_not_tell_the_effects_apart_give_none() -> None:
    signs = {"A": [-1, -1, 1], "B": [-1, 1, -1]}
    assert stats.two_level_effects([1.0, 2.0, 3.0], signs, 0.95) is None
    assert stats.two_level_effects([1.0, 2.0, 3.0], signs, 0.95, max_order=1) is not None
    assert stats.two_level_effects([1.0, 2.0], {"A": [-1, 1]}, 0.95, blocks=[1, 2]) is None
    assert stats.two_level_effects([], {"A": []}, 0.95) is None


def test_without_noise_nothing_is_judged() -> None:
    found = stats.two_level_effects([0.1] * 4, {"A": [-1, -1, 1, 1]}, 0.95)
    assert (found.effects[0].size, found.effects[0].share, found.effects[0].p) == (0.0, None, None)
    assert found.noise == 0.0


@pytest.mark.parametrize(
    ("signs", "more", "message"),
    [
        ({"A": [-1, 0]}, {}, "neither -1 nor 1"),
        ({"A": [-1]}, {}, "1 signs for 2 values"),
        ({}, {}, "no factor"),
        ({"A": [-1, 1]}, {"blocks": [1]}, "1 blocks for 2 values"),
        ({"A": [-1, 1]}, {"max_order": 0}, "max_order"),
    ],
)
def test_what_makes_no_sense_is_refused(signs, more, message) -> None:
    with pytest.raises(ValueError, match=message):
        stats.two_level_effects([1.0, 2.0], signs, 0.95, **more)
