"""Intervals of a standard deviation are those that tables of chi-squared give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dyno import stats


def test_the_interval_of_a_standard_deviation_is_that_of_printed_quantiles() -> None:
    # Printed quantiles of chi-squared with 14 degrees of freedom: 5.629 and 26.119 (NIST/SEMATECH e-Handbook 1.3.6.7.4)
    low, high = stats.sd_interval(1.7, 14, 0.95)
    assert low == pytest.approx(1.7 * math.sqrt(14 / 26.119), rel=1e-5)
    assert high == pytest.approx(1.7 * math.sqrt(14 / 5.629), rel=1e-4)


def test_it_holds_the_truth_as_often_as_it_says() -> None:
    sds = np.random.default_rng(1).normal(size=(20_000, 4)).std(axis=1, ddof=1)
    held = sum(low <= 1 <= high for low, high in (stats.sd_interval(float(sd), 3, 0.9) for sd in sds[:4000]))
    assert held / 4000 == pytest.approx(0.9, abs=0.02)  # four standard errors


def test_the_largest_of_several_is_as_large_as_simulated() -> None:
    sds = np.random.default_rng(1).normal(size=(4000, 6, 10)).std(axis=2, ddof=1).max(axis=1)
    assert stats.largest_sd(1.0, 9, 6) == pytest.approx(float(np.median(sds)), rel=0.02)
    assert stats.largest_sd(2.0, 9, 1) == pytest.approx(2 * math.sqrt(8.343 / 9), rel=1e-4)  # printed median: 8.343


def test_quantiles_of_the_half_normal_plot_are_those_of_two_sided_normal_shares() -> None:
    # P(|Z| < 0.6745) = 0.5, P(|Z| < 0.2104) = 1/6, P(|Z| < 1.3830) = 5/6
    assert stats.half_normal_quantiles(3) == pytest.approx([0.2104, 0.6745, 1.3830], abs=5e-5)


@pytest.mark.parametrize(("sd", "degrees", "confidence"), [(-1, 3, 0.95), (1, 0, 0.95), (1, math.inf, 0.95), (1, 3, 1)])
def test_what_makes_no_sense_is_refused(sd: float, degrees: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="got"):
        stats.sd_interval(sd, degrees, confidence)
