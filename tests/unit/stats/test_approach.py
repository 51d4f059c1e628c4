"""A smooth rise is told from noise with memory, by the likelihood that an independent computation gives too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.linalg import toeplitz
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import multivariate_normal
from tests.unit.stats.series import autoregression

from dyno.stats.approach import GAIN, approach_from_below

N = 60
T = np.arange(N)
RISE = 100.0 - 60.0 * np.exp(-T / 8)


def log_likelihood(values, mean, sd, rho) -> float:
    return float(multivariate_normal.logpdf(values, mean, sd**2 * toeplitz(rho**T)))


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_the_gain_is_that_of_the_exact_normal_likelihoods(rho) -> None:
    values = RISE + autoregression(np.random.default_rng(1), N, rho, 10.0)

    def of_constant(at) -> float:
        return -log_likelihood(values, np.full(N, at[0]), np.exp(at[1]), expit(at[2]))

    def of_curve(at) -> float:
        mean = at[3] - at[4] * np.exp(-T / np.exp(at[2]))
        return -log_likelihood(values, mean, np.exp(at[0]), expit(at[1]))

    options = {"method": "Nelder-Mead", "options": {"maxiter": 8000, "maxfev": 8000, "xatol": 1e-5, "fatol": 1e-7}}
    constant = minimize(of_constant, [90.0, 2.5, 1.0], **options).fun
    curve = minimize(of_curve, [2.3, -1.0, 2.0, 100.0, 60.0], **options).fun
    found = approach_from_below(values)
    # Its correlations and times are of a grid, whose best curve is a little less likely than the best of all.
    assert found.gain == pytest.approx(2 * (constant - curve), abs=0.5)


def test_a_curve_without_noise_to_speak_of_is_recovered() -> None:
    found = approach_from_below(RISE + 1e-3 * np.random.default_rng(2).standard_normal(N))
    assert found.level == pytest.approx(100.0, abs=1.5)
    assert found.shortfall == pytest.approx(60.0, abs=3.0)
    assert found.time == pytest.approx(8.0, rel=0.16)  # half a step of the grid
    assert found.curve(N) == pytest.approx(RISE, abs=3.5)


def test_the_rise_is_over_where_the_curve_is_within_the_share_of_its_level() -> None:
    found = approach_from_below(RISE + np.random.default_rng(3).normal(0.0, 2.0, N))
    end = found.reached(0.05)
    short = found.level - found.curve(N)
    assert short[end] <= 0.05 * found.level < short[end - 1]
    assert found.reached(2.0) == 0, "it was never that far away"


@pytest.mark.parametrize(("length", "rho", "most"), [(20, 0.7, 10), (30, 0.0, 2), (30, 0.7, 9), (60, 0.7, 6)])
def test_noise_with_memory_is_seldom_a_rise(length, rho, most) -> None:
    # Of 1,000; what is claimed, and three standard errors of a share of so many.
    noise = autoregression(np.random.default_rng(4), (1000, length), rho, 5.0)
    assert sum(approach_from_below(100.0 + row) is not None for row in noise) <= most


def test_a_fall_is_no_rise() -> None:
    assert approach_from_below(200.0 - RISE + np.random.default_rng(5).normal(0.0, 2.0, N)) is None


@pytest.mark.parametrize("values", [[1.0] * 19, [1.0] * 60, [0.0] * 60])
def test_nothing_is_found_in_a_few_values_or_in_equal_ones(values) -> None:
    assert approach_from_below(values) is None


def test_a_value_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        approach_from_below([float("nan")] * 5)


@given(st.lists(st.floats(0, 1e300), max_size=80), st.integers(-10, 10))
@example(list(RISE + np.random.default_rng(6).normal(0.0, 2.0, N)), 3)
def test_another_unit_scales_the_curve_alone(values, exponent) -> None:
    plain, scaled = approach_from_below(values), approach_from_below([value * 2.0**exponent for value in values])
    assert (plain is None) == (scaled is None)
    if plain is not None and scaled is not None:
        assert plain.gain >= GAIN
        assert plain.shortfall > 0
        assert plain.time <= 0.25 * len(values)
        assert scaled.level == pytest.approx(plain.level * 2.0**exponent)
        assert (scaled.time, scaled.correlation) == (plain.time, plain.correlation)
