"""The p of a ratio, and ratios of means and of medians, agree with other programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dyno import stats
from dyno.stats import ratios

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


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_the_bootstrap_interval_is_that_of_scipy(statistic, monkeypatch) -> None:
    # Skewed, so that the corrections move the ends of the mean's interval by a tenth of its width. Both programs draw
    # at random; with so many draws the ends scatter by less than a hundredth of it.
    monkeypatch.setattr(ratios, "RESAMPLES", 200_000)
    random = np.random.default_rng(3)
    a, b = random.lognormal(0.0, 0.2, 11), random.lognormal(0.2, 1.2, 11)
    centre = getattr(np, statistic)
    expected = scipy_stats.bootstrap(
        (b, a),
        lambda above, below, axis: np.log(centre(above, axis=axis) / centre(below, axis=axis)),
        n_resamples=200_000,
        method="BCa",
        rng=1,
    ).confidence_interval
    found = stats.bootstrap_ratio(a, b, 0.95, seed=1, statistic=statistic)
    assert found is not None
    assert found.ratio == pytest.approx(centre(b) / centre(a))
    width = expected.high - expected.low
    assert math.log(found.lo) == pytest.approx(expected.low, abs=0.02 * width)
    assert math.log(found.hi) == pytest.approx(expected.high, abs=0.02 * width)
    assert found.method == f"BCa bootstrap of the ratio of {statistic}s, not paired"


def test_the_bootstrap_hangs_on_the_seed_alone() -> None:
    a, b = [1.0, 2.0, 3.0, 5.0, 8.0], [2.0, 3.0, 5.0, 7.0, 11.0]
    assert stats.bootstrap_ratio(a, b, 0.9, seed=7) == stats.bootstrap_ratio(a, b, 0.9, seed=7)
    assert stats.bootstrap_ratio(a, b, 0.9, seed=7, statistic="mean") != stats.bootstrap_ratio(
        a, b, 0.9, seed=8, statistic="mean"
    )


def test_the_bootstrap_interval_of_confidence_1_less_p_ends_near_1() -> None:
    random = np.random.default_rng(4)
    a, b = random.lognormal(0.0, 0.2, 20), random.lognormal(0.1, 0.2, 20)
    p = stats.bootstrap_ratio(a, b, 0.5, seed=1, statistic="mean").p
    assert 0.01 < p < 0.5
    assert stats.bootstrap_ratio(a, b, 1 - p, seed=1, statistic="mean").lo == pytest.approx(1.0, abs=1e-3)


def test_a_difference_that_no_resample_bridges_has_the_smallest_p() -> None:
    found = stats.bootstrap_ratio([1.0, 1.1, 1.2], [100.0, 101.0, 102.0], 0.95, seed=1)
    assert found is not None
    assert 1 / ratios.RESAMPLES <= found.p <= 2 / ratios.RESAMPLES
    equal = stats.bootstrap_ratio([2.0, 2.0], [2.0, 2.0], 0.95, seed=1)
    assert (equal.ratio, equal.lo, equal.hi, equal.p) == (1.0, 1.0, 1.0, 1.0)
    assert stats.bootstrap_ratio([1.0], [1.0, 2.0], 0.95, seed=1) is None


def test_the_bootstrap_knows_its_statistics() -> None:
    with pytest.raises(ValueError, match="median, mean, got mode"):
        stats.bootstrap_ratio([1.0, 2.0], [1.0, 2.0], 0.95, seed=1, statistic="mode")


def test_the_rounding_of_equal_values_does_not_pass_for_skewness() -> None:
    # Leaving out any one value moves no median here; what its logarithm rounds to once made the interval in other
    # units another one.
    a, b = [1.0] * 6, [1.0, 1.0, 1.0, 1.0, 1.0, 221.125]
    plain = stats.bootstrap_ratio(a, b, 0.9, seed=1)
    scaled = stats.bootstrap_ratio([2.0 * x for x in a], [2.0 * x for x in b], 0.9, seed=1)
    assert (scaled.lo, scaled.hi) == pytest.approx((plain.lo, plain.hi))
