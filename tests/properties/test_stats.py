"""What must hold of the statistics for any values, and how often their intervals hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dyno import stats

POSITIVE = st.floats(min_value=1e-3, max_value=1e6)
SAMPLES = st.lists(POSITIVE, min_size=2, max_size=30)
PAIRS = st.lists(st.tuples(POSITIVE, POSITIVE), min_size=2, max_size=30)
CONFIDENCES = st.floats(min_value=0.5, max_value=0.99)
FACTORS = st.floats(min_value=1e-3, max_value=1e3)
RATIOS = (stats.paired_ratio, stats.unpaired_ratio)


def _sides(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def _on_log_scale(ratio: stats.Ratio) -> tuple[float, float, float]:
    return math.log(ratio.lo), math.log(ratio.ratio), math.log(ratio.hi)


@given(SAMPLES, FACTORS)
def test_a_change_of_unit_scales_the_description_and_leaves_its_shares(values, factor) -> None:
    plain, scaled = stats.describe(values), stats.describe([factor * value for value in values])
    assert scaled.mean == pytest.approx(factor * plain.mean)
    assert scaled.sd == pytest.approx(factor * plain.sd, rel=1e-6, abs=1e-9 * factor * plain.mean)
    assert scaled.cov == pytest.approx(plain.cov, rel=1e-6, abs=1e-9)
    assert scaled.range == pytest.approx(factor * plain.range, rel=1e-6, abs=1e-9 * factor * plain.mean)


@given(st.data(), SAMPLES, CONFIDENCES)
def test_the_order_of_runs_does_not_matter(data, values, confidence) -> None:
    shuffled = data.draw(st.permutations(values))
    assert stats.mean_interval(shuffled, confidence) == pytest.approx(stats.mean_interval(values, confidence), rel=1e-9)


@given(SAMPLES)
def test_mad_is_never_above_sd_and_neither_is_above_the_range(values) -> None:
    found = stats.describe(values)
    slack = 1 + 1e-9
    assert found.min <= found.mean * slack
    assert found.mean <= found.max * slack
    assert found.mad <= found.sd * slack
    assert found.sd <= found.range * slack


@given(SAMPLES, CONFIDENCES)
def test_the_interval_lies_around_the_mean_and_widens_with_confidence(values, confidence) -> None:
    mean = stats.describe(values).mean
    low, high = stats.mean_interval(values, confidence)
    wider_low, wider_high = stats.mean_interval(values, confidence + 0.005)
    assert low <= mean <= high
    assert (wider_low, wider_high) == (low, high) or (wider_low < low and high < wider_high)


@pytest.mark.parametrize("measure", RATIOS)
@given(pairs=PAIRS, confidence=CONFIDENCES)
def test_swapping_the_sides_gives_the_reciprocal(measure, pairs, confidence) -> None:
    a, b = _sides(pairs)
    forth, back = measure(a, b, confidence), measure(b, a, confidence)
    assume(forth.lo > 0 and back.lo > 0 and forth.hi < 1e300 and back.hi < 1e300)
    low, middle, high = _on_log_scale(forth)
    assert _on_log_scale(back) == pytest.approx((-high, -middle, -low), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("measure", RATIOS)
@given(pairs=PAIRS, factor=FACTORS)
def test_a_side_made_twice_as_fast_doubles_the_ratio_and_keeps_its_width(measure, pairs, factor) -> None:
    a, b = _sides(pairs)
    plain, scaled = measure(a, b, 0.9), measure(a, [factor * value for value in b], 0.9)
    assume(plain.lo > 1e-290 and scaled.lo > 1e-290 and plain.hi < 1e290 and scaled.hi < 1e290)
    assert scaled.ratio == pytest.approx(factor * plain.ratio, rel=1e-6)
    assert scaled.half_width == pytest.approx(plain.half_width, rel=1e-6, abs=1e-9)


@given(PAIRS, FACTORS)
def test_what_slows_a_whole_block_cancels_in_pairs(pairs, factor) -> None:
    a, b = _sides(pairs)
    drifted = [factor ** (i % 3) for i in range(len(pairs))]
    plain = stats.paired_ratio(a, b, 0.9)
    found = stats.paired_ratio(np.multiply(a, drifted), np.multiply(b, drifted), 0.9)
    assert (found.ratio, found.half_width) == pytest.approx((plain.ratio, plain.half_width), rel=1e-6, abs=1e-9)


@given(SAMPLES, CONFIDENCES)
def test_a_system_is_one_times_itself(values, confidence) -> None:
    assert stats.paired_ratio(values, values, confidence).half_width == 0
    found = stats.unpaired_ratio(values, values, confidence)
    assert found.ratio == 1
    assert found.lo <= 1 <= found.hi


def _share_of_intervals_that_hold(truth: float, intervals: list[tuple[float, float]]) -> float:
    return sum(low <= truth <= high for low, high in intervals) / len(intervals)


# 2000 studies at 95 % put the observed share within 0.95 -+ 0.0195 (four standard errors), the seed is fixed, and an
# interval of z in place of t would hold only 0.88 of the time at n = 5.
STUDIES, CONFIDENCE, SLACK = 2000, 0.95, 0.0195


def test_the_interval_of_a_mean_holds_the_truth_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).normal(100.0, 10.0, (STUDIES, 5))
    held = _share_of_intervals_that_hold(100.0, [stats.mean_interval(row, CONFIDENCE) for row in draws])
    assert held == pytest.approx(CONFIDENCE, abs=SLACK)


@pytest.mark.parametrize("measure", RATIOS)
def test_the_interval_of_a_ratio_holds_the_truth_as_often_as_it_says(measure) -> None:
    random = np.random.default_rng(2)
    a, b = np.exp(random.normal(3.0, 0.1, (STUDIES, 6))), np.exp(random.normal(3.2, 0.2, (STUDIES, 6)))
    found = [measure(*sides, CONFIDENCE) for sides in zip(a, b, strict=True)]
    held = _share_of_intervals_that_hold(math.exp(0.2), [(each.lo, each.hi) for each in found])
    assert held == pytest.approx(CONFIDENCE, abs=SLACK)


def test_pairs_make_a_narrower_interval_where_the_machine_drifts_by_block() -> None:
    random = np.random.default_rng(3)
    drift = random.normal(0.0, 0.3, 8)
    a, b = np.exp(drift + random.normal(0, 0.02, 8)), np.exp(drift + 0.1 + random.normal(0, 0.02, 8))
    assert stats.paired_ratio(a, b, 0.95).half_width < 0.2 * stats.unpaired_ratio(a, b, 0.95).half_width
