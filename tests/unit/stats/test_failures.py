"""Bounds where nothing failed, and intervals of medians, against scipy and against what was published."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, quantile_test

from dyno import stats


@pytest.mark.parametrize("n", [1, 5, 14, 30, 100, 300])
def test_the_exact_bound_is_the_limit_of_clopper_and_pearson(n: int) -> None:
    # One-sided at 95 %: the upper limit of a two-sided interval at 90 %.
    reference = binomtest(0, n).proportion_ci(confidence_level=0.9, method="exact").high
    assert stats.bound_of_none(n, 0.95) == pytest.approx(reference, rel=1e-9)


@pytest.mark.parametrize(("n", "per_cent"), [(14, 21.4), (30, 10.0), (100, 3.0), (300, 1.0)])
def test_the_bound_is_a_little_below_the_published_rule_of_three(n: int, per_cent: float) -> None:
    """Hanley and Lippman-Hand 1983, at 95 %: none of 14 patients, at most 21 %; 3/100 and 3/300 likewise."""
    assert per_cent / 1.12 < stats.bound_of_none(n, 0.95) * 100 < per_cent


def test_the_rule_is_above_the_exact_bound_and_near_it_from_16_on() -> None:
    for n in range(1, 500):
        exact = stats.bound_of_none(n, 0.95)
        assert exact < 3 / n
        assert n < 16 or 3 / n < 1.1 * exact


def test_nothing_can_be_said_of_no_trial() -> None:
    with pytest.raises(ValueError, match="0 trials"):
        stats.bound_of_none(0, 0.95)


@pytest.mark.parametrize("n", [6, 10, 20, 30, 31, 60])
def test_the_interval_of_a_median_is_that_of_scipy(n: int) -> None:
    values = np.random.default_rng(n).exponential(size=n)
    reference = quantile_test(values, q=0.5, p=0.5).confidence_interval(confidence_level=0.95)
    assert stats.median_interval(list(values), 0.95) == pytest.approx((reference.low, reference.high))


@pytest.mark.parametrize(("n", "ranks"), [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (50, (18, 33))])
def test_the_ranks_are_those_of_published_tables(n: int, ranks: tuple[int, int]) -> None:
    """M. J. Campbell, M. J. Gardner, Calculating confidence intervals for some non-parametric analyses, BMJ 296, 1988
    (their table of ranks for a median).
    """
    assert stats.median_interval([float(k) for k in range(1, n + 1)], 0.95) == ranks


def test_too_few_values_have_no_interval_and_infinite_ones_are_the_longest() -> None:
    assert stats.median_interval([1.0] * 5, 0.95) is None
    assert stats.median_interval([3, 1, 2, 4, np.inf, np.inf], 0.95) == (1, np.inf)
