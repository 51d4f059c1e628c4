"""The scalability law has the coefficients that the package usl of R prints, and claims a peak only where one is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from dyno import stats

# Data sets of the package usl of R, and the coefficients alpha, beta, gamma that its vignette "Analyze system
# scalability in R with the Universal Scalability Law" prints (S. Moeding): a ray tracer on 1 to 64 processors,
# used in Gunther's book too; and SPEC SDM91 on a Sun SPARCcenter 2000, whose peak it prints as 96.5.
RAYTRACER = (
    (1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64),
    (20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310),
)
SDM91 = ((1, 18, 36, 72, 108, 144, 216), (64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2))

CLIENTS = (1, 2, 4, 8, 16, 32, 64)


def single(values) -> list[list[float]]:
    return [[value] for value in values]


def planted(random, contention: float, coherency: float, noise: float = 0.05, replicates: int = 6):
    law = [stats.usl_throughput(n, 1000.0, contention, coherency) for n in CLIENTS]
    return [rate * np.exp(random.normal(0.0, noise, replicates)) for rate in law]


@pytest.mark.parametrize(
    ("data", "alpha", "beta", "gamma", "error"),
    [(RAYTRACER, 0.057771, 0.0, 21.848843, 9.34), (SDM91, 0.0277285, 0.0001044, 89.9952330, 82.8)],
)
def test_on_the_linear_scale_the_coefficients_are_those_of_r(data, alpha, beta, gamma, error) -> None:
    found = stats.fit_usl(data[0], single(data[1]), 0.95, scale="linear")
    assert found.contention == pytest.approx(alpha, rel=2e-5)
    assert found.coherency == pytest.approx(beta, abs=5e-8)
    assert found.rate == pytest.approx(gamma, rel=1e-6)
    assert found.error == pytest.approx(error, rel=2e-3)
    if beta:
        assert math.sqrt((1 - found.contention) / found.coherency) == pytest.approx(96.5, abs=0.05)


@pytest.mark.parametrize("data", [RAYTRACER, SDM91])
def test_on_the_log_scale_the_fit_is_that_of_scipy(data) -> None:
    n, logs = np.array(data[0], dtype=float), np.log(data[1])
    found = stats.fit_usl(data[0], single(data[1]), 0.95)

    def left(parameters):
        return logs - parameters[0] - np.log(n) + np.log1p(parameters[1] * (n - 1) + parameters[2] * n * (n - 1))

    expected = least_squares(
        left, [logs[0], 0.01, 1e-4], bounds=([-50, 0, 0], [50, 5, 5]), x_scale=[1, 0.01, 1e-4], xtol=1e-14, ftol=1e-14
    )
    assert (math.log(found.rate), found.contention) == pytest.approx(expected.x[:2], rel=1e-4)
    assert found.coherency == pytest.approx(expected.x[2], abs=1e-8)
    assert found.error == pytest.approx(math.sqrt(2 * expected.cost / (n.size - 3)), rel=1e-6)


def test_points_on_the_law_give_the_law_back() -> None:
    # The package's own test of coef: sigma and kappa are 0.02 (usl, tests/t02)
    found = stats.fit_usl((1, 2, 4, 6, 8, 10), single((1, 1.8868, 3.0769, 3.5294, 3.5398, 3.3557)), 0.95)
    assert (found.rate, found.contention, found.coherency) == pytest.approx((1, 0.02, 0.02), rel=1e-3)


def test_intervals_hold_the_planted_parameters_and_the_peak() -> None:
    random = np.random.default_rng(1)
    held = np.zeros(4)
    for _ in range(60):
        found = stats.fit_usl(CLIENTS, planted(random, 0.03, 0.0005), 0.95)
        truths = (1000.0, 0.03, 0.0005, math.sqrt(0.97 / 0.0005))
        bounds = (found.rate_interval, found.contention_interval, found.coherency_interval, found.peak_interval)
        held += [low <= truth <= high for truth, (low, high) in zip(truths, bounds, strict=True)]
    assert (held >= 54).all()


def test_no_peak_is_claimed_where_nothing_is_spent_on_coherency() -> None:
    random = np.random.default_rng(2)
    found = [stats.fit_usl(CLIENTS, planted(random, 0.03, 0.0), 0.95) for _ in range(60)]
    assert sum(each.peak is not None for each in found) <= 3
    assert "no peak" in next(each.reason for each in found if each.peak is None)


def test_a_rate_that_only_rises_linearly_sits_at_both_bounds() -> None:
    found = stats.fit_usl(CLIENTS, single([7.0 * n for n in CLIENTS]), 0.95)
    assert (found.rate, found.contention, found.coherency) == pytest.approx((7.0, 0.0, 0.0), abs=1e-9)


def test_better_than_linear_is_held_at_the_bounds_rather_than_called_less_than_nothing() -> None:
    found = stats.fit_usl(CLIENTS, single([n**1.2 for n in CLIENTS]), 0.95)
    assert found.contention == found.coherency == 0.0


def test_single_values_have_a_fit_but_no_interval_and_no_peak() -> None:
    found = stats.fit_usl(SDM91[0], single(SDM91[1]), 0.95)
    assert found.rate_interval is found.coherency_interval is found.peak is None
    assert "fewer than 3 replicates" in found.reason


def test_five_levels_have_no_fit() -> None:
    found = stats.fit_usl(CLIENTS[:5], single(CLIENTS[:5]), 0.95)
    assert found == stats.Usl(reason="5 levels, and the law is fitted to 6 or more")


@pytest.mark.parametrize(
    ("n", "samples", "message"),
    [
        ((0.5, 1, 2, 3, 4, 5), single([1.0] * 6), "one client"),
        ((1, 2, 2, 3, 4, 5), single([1.0] * 6), "rise"),
        ((1, 2, 3, 4, 5, 6), single([1.0] * 5), "one sample a level"),
        ((1, 2, 3, 4, 5, 6), single([1.0] * 5 + [0.0]), "above 0"),
    ],
)
def test_what_is_no_scaling_experiment_is_refused(n, samples, message) -> None:
    with pytest.raises(ValueError, match=message):
        stats.fit_usl(n, samples, 0.95)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.1, 10.0), min_size=21, max_size=21), st.integers(-20, 20))
def test_another_unit_scales_the_rate_alone(values, exponent) -> None:
    samples = [values[3 * i : 3 * i + 3] for i in range(7)]
    plain = stats.fit_usl(CLIENTS, samples, 0.9)
    scaled = stats.fit_usl(CLIENTS, [[value * 2.0**exponent for value in sample] for sample in samples], 0.9)
    assert scaled.rate == pytest.approx(plain.rate * 2.0**exponent, rel=1e-4)
    assert (scaled.contention, scaled.coherency) == pytest.approx(
        (plain.contention, plain.coherency), rel=1e-3, abs=1e-6
    )
    figures = (*plain.rate_interval, *plain.contention_interval, *plain.coherency_interval, plain.error)
    assert all(np.isfinite(figures))
