"""What must hold of variation and effects for any values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyno import stats

# A 2 x 3 design in three blocks, every cell once a block; and which of its 18 runs are missing.
A, B, BLOCKS = "112233" * 3, "121212" * 3, "1" * 6 + "2" * 6 + "3" * 6
VALUES = st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=18, max_size=18)
FACTORS = st.floats(min_value=1e-3, max_value=1e3)
MISSING = st.sets(st.integers(min_value=0, max_value=17), max_size=8)

FOUR = st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=8, max_size=8)
SIGNS = {"x": [-1, 1] * 4, "y": [-1, -1, 1, 1] * 2}


def _without(missing: set[int], *columns: object) -> list[list[object]]:
    return [[each for at, each in enumerate(column) if at not in missing] for column in columns]


@given(VALUES)
def test_shares_of_whole_blocks_add_up_and_residuals_sum_to_nothing(values) -> None:
    found = stats.variation(values, {"a": A, "b": B}, BLOCKS)
    assert found.adds_up
    if found.sum_of_squares:
        assert sum(row.share for row in found.rows) == pytest.approx(1)
    assert sum(row.degrees for row in found.rows) == found.degrees == 17
    assert found.residuals.sum() == pytest.approx(0, abs=1e-9)


@settings(deadline=None)
@given(VALUES, MISSING)
def test_every_figure_is_a_number_whatever_is_missing(values, missing) -> None:
    kept, a, b, blocks = _without(missing, values, A, B, BLOCKS)
    found = stats.variation(kept, {"a": a, "b": b}, blocks)
    for row in found.rows:
        figures = (row.sum_of_squares, row.share, row.mean_square, row.f, row.p)
        assert all(figure is None or (math.isfinite(figure) and figure >= 0) for figure in figures)
        assert row.share is None or row.share <= 1 + 1e-9
        assert row.degrees >= 0
        assert row.p is None or row.p <= 1
    assert np.isfinite(found.fitted).all()


@given(VALUES, MISSING, FACTORS)
def test_another_unit_changes_nothing_on_logs(values, missing, factor) -> None:
    kept, a, b, blocks = _without(missing, values, A, B, BLOCKS)
    plain = stats.variation(kept, {"a": a, "b": b}, blocks)
    scaled = stats.variation([factor * value for value in kept], {"a": a, "b": b}, blocks)
    for one, other in zip(plain.rows, scaled.rows, strict=True):
        assert other.sum_of_squares == pytest.approx(one.sum_of_squares, rel=1e-6, abs=1e-9)
        assert other.degrees == one.degrees


@given(VALUES, MISSING, st.lists(FACTORS, min_size=3, max_size=3))
def test_what_slows_a_whole_block_is_put_down_to_the_block_alone(values, missing, drifts) -> None:
    kept, a, b, blocks = _without(missing, values, A, B, BLOCKS)
    drifted = [value * drifts[int(block) - 1] for value, block in zip(kept, blocks, strict=True)]
    still = stats.variation(kept, {"a": a, "b": b}, blocks)
    moved = stats.variation(drifted, {"a": a, "b": b}, blocks)
    for one, other in zip(still.rows[1:], moved.rows[1:], strict=True):
        assert other.sum_of_squares == pytest.approx(one.sum_of_squares, rel=1e-6, abs=1e-8)


@given(st.data(), VALUES, MISSING)
def test_the_order_of_runs_does_not_matter(data, values, missing) -> None:
    kept, a, b, blocks = _without(missing, values, A, B, BLOCKS)
    order = data.draw(st.permutations(range(len(kept))))
    shuffled = [[column[at] for at in order] for column in (kept, a, b, blocks)]
    found = stats.variation(kept, {"a": a, "b": b}, blocks)
    other = stats.variation(shuffled[0], {"a": shuffled[1], "b": shuffled[2]}, shuffled[3])
    for one, two in zip(found.rows, other.rows, strict=True):
        assert two.sum_of_squares == pytest.approx(one.sum_of_squares, rel=1e-6, abs=1e-9)


@given(FOUR)
def test_calling_low_high_turns_an_effect_and_keeps_its_p(values) -> None:
    found = stats.two_level_effects(values, SIGNS, 0.9)
    turned = stats.two_level_effects(values, {**SIGNS, "x": [-sign for sign in SIGNS["x"]]}, 0.9)
    for effect, other in zip(found.effects, turned.effects, strict=True):
        sign = -1 if "x" in effect.source.split(" x ")[0] else 1
        assert other.size == pytest.approx(sign * effect.size, abs=1e-9)
        assert (other.p is None) == (effect.p is None)
        if effect.p is not None:
            assert other.p == pytest.approx(effect.p, rel=1e-5, abs=1e-9)


@given(FOUR, FACTORS)
def test_another_unit_moves_the_mean_of_logs_and_no_effect(values, factor) -> None:
    plain = stats.two_level_effects(values, SIGNS, 0.9)
    scaled = stats.two_level_effects([factor * value for value in values], SIGNS, 0.9)
    assert scaled.mean == pytest.approx(plain.mean + math.log(factor), abs=1e-9)
    for effect, other in zip(plain.effects, scaled.effects, strict=True):
        assert other.size == pytest.approx(effect.size, abs=1e-9)


@given(FOUR)
def test_effects_and_variation_agree(values) -> None:
    effects = stats.two_level_effects(values, SIGNS, 0.9)
    rows = stats.variation(values, SIGNS).rows
    for effect, row in zip(effects.effects, rows[:-1], strict=True):
        assert 8 * effect.size**2 == pytest.approx(row.sum_of_squares, rel=1e-6, abs=1e-12)
