"""The interval from within a run holds the truth as often as it says, however much neighbours resemble each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.stats.series import autoregression

from dyno import stats

SERIES = st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=200)


@pytest.mark.parametrize("length", [60, 300])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 0.9])
def test_the_interval_holds_the_mean_of_an_autoregression_as_often_as_it_says(length, rho) -> None:
    draws = 100.0 + autoregression(np.random.default_rng(1), (1000, length), rho, 10.0)
    found = [stats.batch_means(row, 0.95) for row in draws]
    held = sum(each.lo <= 100.0 <= each.hi for each in found) / len(found)
    # Student's interval over the values themselves holds it 0.36 of the time at rho 0.9
    assert 0.925 <= held <= 0.985


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_the_effective_size_is_that_of_the_theory(rho) -> None:
    # Var(mean) of a first-order autoregression is sd^2 (1 + rho) / (1 - rho) / n for large n (G. E. P. Box,
    # G. M. Jenkins, Time Series Analysis, 1976, chapter 2), so that n values are worth n (1 - rho) / (1 + rho).
    draws = autoregression(np.random.default_rng(2), (300, 2000), rho, 1.0)
    found = np.median([stats.batch_means(row, 0.95).effective for row in draws])
    assert found == pytest.approx(2000 * (1 - rho) / (1 + rho), rel=0.12)


def test_the_half_width_is_that_of_the_theory_too() -> None:
    draws = autoregression(np.random.default_rng(3), (300, 2000), 0.8, 1.0)
    widths = [each.hi - each.lo for each in (stats.batch_means(row, 0.95) for row in draws)]
    assert np.median(widths) / 2 == pytest.approx(
        2.09 * (9 / 2000) ** 0.5, rel=0.1
    )  # t for 10 to 30 batches: 2.05-2.26


def test_delays_of_a_busy_queue_are_covered_where_plain_values_are_not() -> None:
    # M/M/1 with utilisation 0.5, service 1: mean delay in queue 1 (L. Kleinrock, Queueing Systems 1, 1975), whose
    # delays are correlated and skewed; Lindley's recursion W' = max(0, W + S - A), started 500 customers earlier.
    random = np.random.default_rng(4)
    step = random.exponential(1.0, (300, 2500)) - random.exponential(2.0, (300, 2500))
    delays = np.zeros((300, 2500))
    for i in range(1, 2500):
        delays[:, i] = np.maximum(0.0, delays[:, i - 1] + step[:, i - 1])
    found = [stats.batch_means(row, 0.95) for row in delays[:, 500:]]
    plain = [stats.mean_interval(row, 0.95) for row in delays[:, 500:]]
    assert sum(each.lo <= 1.0 <= each.hi for each in found) / 300 >= 0.9
    assert sum(low <= 1.0 <= high for low, high in plain) / 300 <= 0.7


def test_independent_batches_by_hand() -> None:
    # 60 values in 30 batches of 2, whose means are 1, 3, 1, 3, ...: mean 2, variance 30 / 29
    found = stats.batch_means([0.0, 2.0, 2.0, 4.0] * 15, 0.95)
    assert (found.mean, found.n, found.batches) == (2.0, 60, 30)
    assert found.lag1 == -1.0
    assert found.hi - found.mean == pytest.approx(2.0452 * (30 / 29 / 30) ** 0.5, rel=1e-4)


def test_the_values_left_out_are_the_first() -> None:
    found = stats.batch_means([1e6] * 3 + [1.0, 2.0] * 30, 0.95)
    assert (found.mean, found.n) == (1.5, 60)


def test_the_mean_of_a_rate_is_not_said_to_be_below_nothing() -> None:
    # A run that stood still but for one batch of ten: mean 10, sd of the batches 31.6, t(9) = 2.262, so -12.6 to 32.6
    stalled = [0.0] * 8 + [100.0] * 2 + [0.0] * 10
    found = stats.batch_means(stalled, 0.95)
    assert (found.mean, found.lo) == (10.0, 0.0)
    assert found.hi == pytest.approx(32.62, abs=0.01)
    shifted = stats.batch_means([value - 1.0 for value in stalled], 0.95)
    assert shifted.lo == pytest.approx(9.0 - 22.62, abs=0.01), "what may be below 0 keeps its interval"


def test_what_is_left_of_the_correlation_of_batches_takes_its_degrees_of_freedom() -> None:
    # A run of 40 that comes up slowly: its 10 batches of 4 have the means 1 to 10, whose sum of products of neighbours
    # over squares is 57.75 / 82.5 = 0.7; mended (0.7 + 0.1) / (1 - 0.4) is beyond 0.9, which is the most that is left.
    # So 19 times the variance 82.5 / 9 / 10, and t with the one degree of freedom that there is at least, 12.706.
    found = stats.batch_means([float(batch) for batch in range(1, 11) for _ in range(4)], 0.95)
    assert (found.mean, found.batches) == (5.5, 10)
    assert found.hi - found.mean == pytest.approx(12.706 * (19 * 82.5 / 9 / 10) ** 0.5, rel=1e-4)
    assert found.effective == pytest.approx(np.var(np.repeat(np.arange(1, 11), 4), ddof=1) / (19 * 82.5 / 90))


def test_a_run_of_fewer_than_twenty_intervals_has_no_batches() -> None:
    assert stats.batch_means([1.0] * 19, 0.95) is None
    assert stats.batch_means([1.0] * 20, 0.95).batches == 10


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = stats.batch_means([0.1] * 100, 0.95)
    assert (found.lo, found.hi) == (pytest.approx(0.1), pytest.approx(0.1))
    assert found.effective == found.n


@pytest.mark.parametrize(("values", "confidence"), [([1.0, np.inf], 0.95), ([1.0], 95.0)])
def test_bad_input_is_refused_even_where_it_is_too_short(values, confidence) -> None:
    with pytest.raises(ValueError, match=r"not finite|share"):
        stats.batch_means(values, confidence)


@given(SERIES, st.integers(-30, 30))
def test_another_unit_scales_the_interval_alone(values, exponent) -> None:
    factor = 2.0**exponent
    plain, scaled = stats.batch_means(values, 0.9), stats.batch_means([factor * value for value in values], 0.9)
    assert (scaled.mean, scaled.lo, scaled.hi) == pytest.approx(
        (factor * plain.mean, factor * plain.lo, factor * plain.hi)
    )
    assert (scaled.effective, scaled.lag1, scaled.batches) == (plain.effective, plain.lag1, plain.batches)


@given(SERIES)
def test_the_mean_lies_in_its_interval_and_nothing_is_worth_more_than_it_is(values) -> None:
    found = stats.batch_means(values, 0.95)
    assert found.lo <= found.mean <= found.hi
    assert found.lo >= 0 or min(values) < 0
    assert 0 < found.effective <= found.n <= len(values)
    assert -1 <= found.lag1 <= 1
