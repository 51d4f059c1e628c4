"""The p of a ratio, and ratios of means, agree with other programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dyno import stats

# The data set `sleep` of R (see test_reference_values), and the p-values of its help page's t.test calls.
DRUG_1 = np.exp([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
DRUG_2 = np.exp([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])

# Two samples of five drawn in R by set.seed(12345); rnorm(5, 1, 1); rnorm(5, 2, 1), and what t.test.ratio of its
# package mratios prints for them (a note of 2012 at mikuhatsune.hatenadiary.com): the first over the second.
NUMERATOR = np.add(1.0, [0.5855288, 0.7094660, -0.1093033, -0.4534972, 0.6058875])
DENOMINATOR = np.add(2.0, [-1.8179560, 0.6300986, -0.2761841, -0.2841597, -0.9193220])
MRATIOS = (0.8643849, 0.4056763, 2.6170008)


def test_p_of_pairs_is_that_which_r_prints() -> None:
    found = stats.paired_ratio(DRUG_1, DRUG_2, 0.95)
    assert found is not None
    assert (found.p, found.degrees) == (pytest.approx(0.002833, abs=5e-7), 9)


def test_p_without_pairs_is_that_which_r_prints() -> None:
    found = stats.unpaired_ratio(DRUG_1, DRUG_2, 0.95)
    assert found is not None
    assert (found.p, found.degrees) == (pytest.approx(0.07939, abs=5e-6), pytest.approx(17.776, abs=5e-4))


@pytest.mark.parametrize("measure", [stats.paired_ratio, stats.unpaired_ratio, stats.fieller_ratio])
def test_the_interval_of_confidence_1_less_p_ends_at_1(measure) -> None:
    a, b = [10.0, 11.0, 10.4, 9.7, 10.2], [10.9, 11.4, 10.6, 10.3, 10.1]
    p = measure(a, b, 0.5).p
    assert measure(a, b, 1 - p).lo == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("measure", [stats.paired_ratio, stats.unpaired_ratio, stats.fieller_ratio])
def test_without_any_noise_the_interval_and_p_say_what_was_seen(measure) -> None:
    twice, same = measure([2.0, 2.0], [4.0, 4.0], 0.95), measure([2.0, 2.0], [2.0, 2.0], 0.95)
    assert (twice.ratio, twice.lo, twice.hi) == pytest.approx((2.0, 2.0, 2.0))
    assert (twice.p, same.p) == (0.0, 1.0)
    assert twice.degrees is same.degrees is None


def test_fieller_s_interval_is_that_which_mratios_prints() -> None:
    found = stats.fieller_ratio(DENOMINATOR, NUMERATOR, 0.95)
    assert found is not None
    assert (found.ratio, found.lo, found.hi) == pytest.approx(MRATIOS, abs=2e-7)


def test_fieller_gives_no_interval_where_the_denominator_may_be_0() -> None:
    near_0 = [0.0, 0.0, 0.0, 1.0]
    assert stats.mean_interval(near_0, 0.95)[0] < 0
    assert stats.fieller_ratio(near_0, [1.0, 1.1, 0.9], 0.95) is None
    assert stats.fieller_ratio([1.0, 1.1, 0.9], near_0, 0.95).lo == 0.0  # held there: no ratio of them is below
    assert stats.fieller_ratio([0.0, 0.0], [1.0, 2.0], 0.95) is None
    assert stats.fieller_ratio([1.0, 2.0], [0.0, 0.0], 0.95) is None
    assert stats.fieller_ratio([1.0], [1.0, 2.0], 0.95) is None


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_fieller_refuses_what_is_below_0_or_not_finite(bad) -> None:
    with pytest.raises(ValueError, match=r"0 and above|not finite"):
        stats.fieller_ratio([1.0, 2.0], [1.0, bad], 0.95)


@pytest.mark.parametrize("widening", [1.0, 1.4])
def test_the_ends_of_fieller_s_interval_are_the_ratios_that_a_t_test_just_refuses(widening) -> None:
    random = np.random.default_rng(8)
    a = random.poisson(6.0, 9).astype(float)
    b = 1.5 * a + random.poisson(2.0, 9)
    a[2] = b[2] = 0.0
    found = stats.fieller_ratio(a, b, 0.95, paired=True, widening=widening)
    assert found.ratio == pytest.approx(b.mean() / a.mean())
    edge = widening * scipy_stats.t.ppf(0.975, 8)
    for end, sign in ((found.lo, 1), (found.hi, -1)):
        assert scipy_stats.ttest_rel(b, end * a).statistic == pytest.approx(sign * edge)
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(scipy_stats.ttest_rel(b, a).statistic / widening, 8))
    # What both sides of a pair share cancels: without pairs the interval is far wider.
    apart = stats.fieller_ratio(a, b, 0.95, widening=widening)
    assert apart is None or apart.hi - apart.lo > 2 * (found.hi - found.lo)


def test_pairs_without_noise_between_them_have_a_ratio_of_means_without_width() -> None:
    a = [0.0, 1.0, 2.0, 3.0]
    same = stats.fieller_ratio(a, a, 0.8, paired=True)
    assert (same.ratio, same.lo, same.hi, same.p) == (1.0, pytest.approx(1.0), pytest.approx(1.0), 1.0)
    twice = stats.fieller_ratio(a, [2 * value for value in a], 0.8, paired=True)
    assert (twice.lo, twice.hi) == pytest.approx((2.0, 2.0))


def test_pairs_for_fieller_are_as_many_on_each_side() -> None:
    with pytest.raises(ValueError, match="as many values on each side, got 2 and 3"):
        stats.fieller_ratio([1.0, 2.0], [1.0, 2.0, 3.0], 0.95, paired=True)
