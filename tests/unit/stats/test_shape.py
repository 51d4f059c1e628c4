"""Crossings lie where they were planted, and saturation is claimed no more boldly than the noise allows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyno import stats
from dyno.stats.resampling import percentile_interval, resampled_means

X = (1.0, 2.0, 4.0, 8.0, 16.0)


def noisy(random, rates, noise: float = 0.05, replicates: int = 6):
    return [rate * np.exp(random.normal(0.0, noise, replicates)) for rate in rates]


def test_curves_without_noise_cross_where_school_says() -> None:
    a, b = [[10.0] * 3] * 3, [[5.0] * 3, [10 * 2**0.5] * 3, [20.0] * 3]
    # ln(b / a) is -ln 2 at 1, and ln 2 / 2 at 4: two thirds of the way
    (found,) = stats.crossings((1, 4, 16), a, b, 0.95)
    assert (found.at, found.lo, found.hi) == pytest.approx((3.0, 3.0, 3.0))
    assert (found.upward, found.without) == (True, 0.0)
    (found,) = stats.crossings((1, 4, 16), a, b, 0.95, log_x=True)
    assert found.at == pytest.approx(4 ** (2 / 3))


@pytest.mark.parametrize("paired", [False, True])
def test_the_interval_holds_a_planted_crossing_as_often_as_it_says(paired) -> None:
    # ln(b / a) = 0.3 (ln x - ln 5), straight in ln x, so that interpolation adds no error of its own
    random = np.random.default_rng(1)
    held = shown = 0
    for _ in range(300):
        block = random.normal(0.0, 0.2 if paired else 0.0, (5, 6))
        a = [100.0 * np.exp(block[i] + random.normal(0.0, 0.05, 6)) for i in range(5)]
        b = [100.0 * (x / 5) ** 0.3 * np.exp(block[i] + random.normal(0.0, 0.05, 6)) for i, x in enumerate(X)]
        (found,) = stats.crossings(X, a, b, 0.95, paired=paired, log_x=True)
        shown += found.lo is not None
        held += found.lo is not None and found.lo <= 5.0 <= found.hi
    assert shown == 300
    assert 0.92 <= held / 300 <= 0.99


def test_two_crossings_are_both_found_with_their_directions() -> None:
    random = np.random.default_rng(2)
    found = stats.crossings(X, noisy(random, [10.0] * 5), noisy(random, [5.0, 8.0, 20.0, 20.0, 5.0]), 0.95)
    assert [each.upward for each in found] == [True, False]
    assert all(each.lo <= each.at <= each.hi for each in found)
    assert 2 < found[0].at < 4
    assert 8 < found[1].at < 16


def test_curves_that_only_touch_in_the_noise_have_no_interval() -> None:
    random = np.random.default_rng(3)
    rates = [10.0, 20.0, 30.0, 40.0, 50.0]
    found = [
        crossing for _ in range(20) for crossing in stats.crossings(X, noisy(random, rates), noisy(random, rates), 0.95)
    ]
    assert found
    assert sum(each.lo is None for each in found) / len(found) > 0.8
    assert all((each.lo is None) == (each.without > 0.05 + 1e-12) for each in found)


def test_curves_apart_do_not_cross() -> None:
    random = np.random.default_rng(4)
    assert stats.crossings(X, noisy(random, [10.0] * 5), noisy(random, [20.0] * 5), 0.95) == ()


def test_two_replicates_are_too_few_to_resample() -> None:
    assert stats.crossings((1, 2), [[1.0, 2.0]] * 2, [[1.0, 2.0, 3.0]] * 2, 0.95) is None
    assert stats.crossings((1,), [[1.0] * 3], [[2.0] * 3], 0.95) is None


def test_the_widened_percentile_interval_of_a_mean_is_near_student_s() -> None:
    sample = np.random.default_rng(5).normal(10.0, 1.0, 25)
    resampled = resampled_means([sample])[:, 0]
    expected = stats.mean_interval(sample, 0.95)
    found = percentile_interval(resampled, 0.95, sample.size)
    assert found == pytest.approx(expected, abs=0.08 * (expected[1] - expected[0]))
    narrow = np.quantile(resampled, [0.025, 0.975])
    assert found[0] < narrow[0] < narrow[1] < found[1]


def test_efficiency_is_the_one_that_r_prints() -> None:
    # efficiency(usl(throughput ~ load, specsdm91)) of the package usl of R, tests/t03: normalised to the first level
    load, rates = (1, 18, 36, 72, 108, 144, 216), (64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2)
    found = stats.speedup(load, [[rate, rate] for rate in rates], 0.95)
    printed = (1.000, 0.853, 0.707, 0.397, 0.261, 0.190, 0.121)
    assert [each.efficiency for each in found] == pytest.approx(printed, abs=5e-4)
    assert found[1].ratio.ratio == pytest.approx(995.9 / 64.9)


def test_speedup_within_blocks_is_the_paired_ratio() -> None:
    random = np.random.default_rng(6)
    samples = noisy(random, [10.0, 18.0])
    one, two = stats.speedup((1, 2), samples, 0.95, paired=True)
    assert one.ratio.ratio == 1.0
    assert two.ratio == stats.paired_ratio(*samples, 0.95)
    assert two.efficiency == pytest.approx(two.ratio.ratio / 2)
    assert stats.speedup((), [], 0.95) is None


def test_a_curve_that_flattens_saturates_where_it_does() -> None:
    random = np.random.default_rng(7)
    found = [stats.saturation(X, noisy(random, [10.0, 20.0, 40.0, 40.0, 40.0], 0.03), 0.95) for _ in range(100)]
    assert sum(each.x == 4.0 for each in found) >= 95
    assert all(each.comparisons == 10 for each in found)
    assert all(each.headroom >= 1 for each in found if each.x is not None)


def test_a_curve_that_still_rises_has_not_saturated() -> None:
    found = stats.saturation(X, noisy(np.random.default_rng(8), [10.0, 20.0, 40.0, 60.0, 80.0]), 0.95)
    assert found == stats.Saturation(None, None, 10)


def test_a_flat_curve_is_called_rising_no_more_often_than_it_says() -> None:
    random = np.random.default_rng(9)
    found = [stats.saturation(X, noisy(random, [10.0] * 5), 0.95) for _ in range(400)]
    assert sum(each.x != 1.0 for each in found) / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_a_level_whose_speed_up_may_be_below_1_is_not_called_higher() -> None:
    # Two levels: t of the logs is 2.5 with 5 degrees of freedom, p 0.054. One-sided it would have been shown.
    logs = np.array([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0])
    spread = float(np.std(logs, ddof=1)) / 6**0.5
    samples = ([1.0] * 6, list(np.exp(logs + 2.5 * spread)))
    speedup = stats.speedup((1, 2), samples, 0.95, paired=True)[1].ratio
    assert speedup.p == pytest.approx(0.0545, abs=1e-4)
    assert speedup.lo < 1
    assert stats.saturation((1, 2), samples, 0.95, paired=True).x == 1.0


def test_little_noise_leaves_little_headroom_and_much_leaves_much() -> None:
    random = np.random.default_rng(10)
    quiet, loud = (stats.saturation(X, noisy(random, [10.0] * 5, noise), 0.95) for noise in (0.01, 0.3))
    assert quiet.headroom < 1.05 < 1.3 < loud.headroom


@pytest.mark.parametrize(
    ("x", "samples", "message"),
    [
        ((2, 1), [[1.0] * 3] * 2, "rise"),
        ((1, 2), [[1.0] * 3], "one sample a level"),
        ((1, 2), [[1.0] * 3, [0.0] * 3], "above 0"),
        ((1, 2), [[1.0] * 3, []], "needs values"),
    ],
)
def test_what_is_no_ordered_factor_is_refused(x, samples, message) -> None:
    for measure in (stats.speedup, stats.saturation, lambda *given: stats.crossings(given[0], *given[1:2] * 2, 0.95)):
        with pytest.raises(ValueError, match=message):
            measure(x, samples, 0.95)


def test_a_log_axis_has_no_zero_and_pairs_are_of_two() -> None:
    with pytest.raises(ValueError, match="log scale"):
        stats.crossings((0, 1), [[1.0] * 3] * 2, [[1.0] * 3] * 2, 0.95, log_x=True)
    with pytest.raises(ValueError, match="as many values"):
        stats.crossings((0, 1), [[1.0] * 3] * 2, [[1.0] * 4] * 2, 0.95, paired=True)


RATES = st.lists(st.floats(0.5, 2.0), min_size=24, max_size=24)


@settings(max_examples=40, deadline=None)
@given(RATES, st.integers(-30, 30))
def test_another_unit_moves_no_crossing_and_no_saturation(values, exponent) -> None:
    samples = [values[3 * i : 3 * i + 3] for i in range(8)]
    scaled = [[value * 2.0**exponent for value in sample] for sample in samples]
    plain, other = (stats.crossings((1, 2, 3, 4), each[:4], each[4:], 0.9) for each in (samples, scaled))
    assert [(each.at, each.upward) for each in other] == [
        (pytest.approx(each.at, rel=1e-6), each.upward) for each in plain
    ]
    assert stats.saturation((1, 2, 3, 4), scaled[:4], 0.9).x == stats.saturation((1, 2, 3, 4), samples[:4], 0.9).x


@settings(max_examples=40, deadline=None)
@given(RATES)
def test_crossings_lie_among_the_levels_and_alternate_in_direction(values) -> None:
    samples = [values[3 * i : 3 * i + 3] for i in range(8)]
    found = stats.crossings((1, 2, 3, 4), samples[:4], samples[4:], 0.9)
    assert all(1 <= each.at <= 4 and 0 <= each.without <= 1 for each in found)
    assert all(each.lo is None or 1 <= each.lo <= each.hi <= 4 for each in found)
    assert all(one.upward != other.upward for one, other in pairwise(found))
    assert found == stats.crossings((1, 2, 3, 4), samples[:4], samples[4:], 0.9)
