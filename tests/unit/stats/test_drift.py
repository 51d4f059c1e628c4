"""Trends, correlated neighbours and outliers: the figures of others for published series, and planted truths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from tests.unit.stats.series import NILE, autoregression

from dyno import stats
from dyno.stats.drift import unbiased_correlation

YEARS = range(1871, 1971)
SERIES = st.lists(st.integers(1, 10**6).map(float), min_size=8, max_size=40)

# Luteinizing hormone in blood samples at 10-minute intervals: data set `lh` of R, for which acf(lh) prints 0.576 at
# lag 1 (P. J. Diggle, Time Series, 1990; W. N. Venables, B. D. Ripley, Modern Applied Statistics with S, chapter 14).
LH = (
    *(2.4, 2.4, 2.4, 2.2, 2.1, 1.5, 2.3, 2.3, 2.5, 2.0, 1.9, 1.7, 2.2, 1.8, 3.2, 3.2, 2.7, 2.2, 2.2, 1.9, 1.9, 1.8),
    *(2.7, 3.0, 2.3, 2.0, 2.0, 2.9, 2.9, 2.7, 2.7, 2.3, 2.6, 2.4, 1.8, 1.7, 1.5, 1.4, 2.1, 3.3, 3.5, 3.5, 3.1, 2.6),
    *(2.1, 3.4, 3.0, 2.9),
)


def test_the_trend_of_the_nile_is_that_of_pymannkendall() -> None:
    # pymannkendall 1.4.3: original_test(Nile) prints p=3.658262921657496e-05, s=-1387, slope=-2.6
    found = stats.trend(NILE, YEARS, 0.95, correlation=0.0)
    assert found.p == pytest.approx(3.658262921657496e-05, rel=1e-9)
    assert found.slope * np.mean(NILE) == pytest.approx(-2.6)


def test_the_interval_of_the_slope_is_that_of_scipy_up_to_its_rounding_of_ranks() -> None:
    expected = scipy_stats.theilslopes(NILE, YEARS, 0.95)
    found = stats.trend(NILE, YEARS, 0.95, correlation=0.0)
    assert (found.lo * np.mean(NILE), found.hi * np.mean(NILE)) == pytest.approx((expected[2], expected[3]), rel=1e-3)


def test_correlation_widens_the_interval_and_raises_p() -> None:
    plain, allowed = (stats.trend(NILE, YEARS, 0.95, correlation=rho) for rho in (0.0, 0.4))
    # For long series the variance of S grows by (1 + rho) / (1 - rho), the sum of 1 + 2 rho^lag: z shrinks by 0.65
    z = [scipy_stats.norm.isf(each.p / 2) for each in (plain, allowed)]
    assert z[1] / z[0] == pytest.approx((0.6 / 1.4) ** 0.5, rel=0.03)
    assert allowed.lo < plain.lo < plain.slope < plain.hi < allowed.hi
    assert allowed.slope == plain.slope


@pytest.mark.parametrize(("rho", "most"), [(0.0, 0.07), (0.3, 0.09), (0.5, 0.12)])
def test_noise_with_memory_has_a_trend_hardly_more_often_than_it_should(rho, most) -> None:
    draws = 100.0 + autoregression(np.random.default_rng(1), (600, 30), rho, 5.0)
    assert sum(stats.trend(row, range(30), 0.95).p < 0.05 for row in draws) / 600 <= most
    assert sum(stats.trend(row, range(30), 0.95, correlation=rho).p < 0.05 for row in draws) / 600 <= 0.07
    unaware = sum(stats.trend(row, range(30), 0.95, correlation=0.0).p < 0.05 for row in draws) / 600
    assert unaware >= {0.0: 0.02, 0.3: 0.1, 0.5: 0.2}[rho]


def test_a_planted_trend_is_found_with_its_slope_in_spite_of_an_outlier() -> None:
    random = np.random.default_rng(2)
    for _ in range(30):
        values = 100.0 - 0.5 * np.arange(40) + random.normal(0.0, 2.0, 40)
        values[20] *= 3
        found = stats.trend(values, range(40), 0.95)
        assert found.p < 0.01
        assert found.slope * values.mean() == pytest.approx(-0.5, abs=0.15)
        assert found.lo <= found.slope <= found.hi


def test_gaps_in_the_order_count() -> None:
    order = [0, 1, 2, 10, 11, 12, 20, 21, 22, 30]
    found = stats.trend([100.0 + place for place in order], order, 0.95)
    assert found.slope * np.mean([100.0 + place for place in order]) == pytest.approx(1.0)


def test_too_few_runs_or_runs_without_any_noise_have_no_trend() -> None:
    assert stats.trend([1.0] * 7, range(7), 0.95) is None
    assert stats.trend([1.0] * 9, range(9), 0.95) is None
    assert stats.trend([-1.0, 1.0] * 4, range(8), 0.95) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [0, 0], 0.95), "rise"),
        (([1.0, 2.0], [0], 0.95), "got 2 and 1"),
        (([1.0, 2.0], [0, 1], 95.0), "share"),
        (([1.0, 2.0], [0, 1], 0.95, 1.0), "below 1"),
        (([1.0, np.nan], [0, 1], 0.95), "not finite"),
    ],
)
def test_what_has_no_order_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        stats.trend(*arguments)


def test_the_raw_correlation_is_the_one_that_r_prints() -> None:
    found = stats.autocorrelation([LH])
    assert found.raw == pytest.approx(0.576, abs=5e-4)
    assert found.pairs == 47
    assert found.rho == pytest.approx((found.raw + 1 / 48) / (1 - 4 / 48))  # Kendall 1954, for one series


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_short_series_pooled_give_the_true_correlation_once_mended(rho) -> None:
    random = np.random.default_rng(3)
    levels = np.array([[10.0], [100.0], [1000.0], [50.0]] * 500)  # each series has a mean of its own
    found = stats.autocorrelation(list(levels + autoregression(random, (2000, 15), rho, 5.0)))
    assert found.rho == pytest.approx(rho, abs=0.04)
    assert found.raw < rho - 0.05  # what the mending is for
    assert found.standard_error == pytest.approx(((1 - found.rho**2) / (2000 * 14)) ** 0.5)


def test_series_too_short_for_it_have_no_correlation() -> None:
    assert stats.autocorrelation([]) is None
    assert stats.autocorrelation([[1.0, 2.0, 3.0, 5.0]] * 10) is None
    assert stats.autocorrelation([[2.0] * 10]) is None
    with pytest.raises(ValueError, match="more than 4"):
        unbiased_correlation(0.5, 4)


def test_scores_are_distances_in_normal_consistent_mads() -> None:
    found = stats.outliers(NILE)
    mad = scipy_stats.median_abs_deviation(NILE, scale="normal")
    assert found.scores == pytest.approx((np.array(NILE) - np.median(NILE)) / mad, rel=1e-4)
    assert found.marked == ()


def test_values_far_from_the_others_are_marked_however_many_hide_each_other() -> None:
    # median 2.45, distances 0.05 to 0.35 and 5.75, 5.85, their median 0.15: 0.6745 * 5.75 / 0.15 = 25.86
    values = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]
    found = stats.outliers(values)
    assert found.marked == (8, 9)
    assert found.scores[8:] == pytest.approx((25.86, 26.31), abs=0.01)
    assert np.abs(scipy_stats.zscore(values)).max() < 3  # each inflates the spread that would show the other


def test_where_most_values_are_equal_the_mean_distance_is_the_yardstick() -> None:
    found = stats.outliers([5.0] * 30 + [6.0])
    assert found.marked == (30,)
    assert found.scores[30] == pytest.approx(31 / 1.253314, rel=1e-6)
    assert stats.outliers([5.0] * 30) == stats.Outliers((0.0,) * 30, ())
    assert stats.outliers([1.0] * 4) is None


@given(SERIES, st.integers(-30, 30))
def test_another_unit_changes_no_verdict(values, exponent) -> None:
    scaled = [value * 2.0**exponent for value in values]
    order = range(len(values))
    assert stats.trend(scaled, order, 0.9) == stats.trend(values, order, 0.9)
    assert stats.outliers(scaled).marked == stats.outliers(values).marked
    one, other = stats.autocorrelation([values]), stats.autocorrelation([scaled])
    assert (one is None) == (other is None)
    assert one is None or other.rho == pytest.approx(one.rho, abs=1e-9)


@given(SERIES)
def test_the_order_turned_round_turns_the_trend_round(values) -> None:
    order = range(len(values))
    forth, back = stats.trend(values, order, 0.9, 0.3), stats.trend(values[::-1], order, 0.9, 0.3)
    assume(forth is not None)
    assert (back.slope, back.lo, back.hi) == pytest.approx((-forth.slope, -forth.hi, -forth.lo), rel=1e-6, abs=1e-12)
    assert back.p == pytest.approx(forth.p)
    assert 0 <= forth.p <= 1
