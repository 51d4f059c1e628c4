"""Comparisons by ranks agree with the published examples and with scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dyno import stats

# M. Hollander, D. A. Wolfe, Nonparametric Statistical Methods, 1973, page 29: Hamilton depression scale factor before
# and after; R's help page of wilcox.test gives V = 40 and p = 0.01953 for the one side. The book's estimate is -0.46
# with the interval from -0.786 to -0.010.
BEFORE = np.exp([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
AFTER = np.exp([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])

# The same, page 69: permeability constants of the human chorioamnion; R's page gives W = 35 and p = 0.1272 for the one
# side. The book's estimate of the shift is 0.305 with the interval from -0.15 to 0.76.
TERM = np.exp([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
WEEKS_12_TO_26 = np.exp([1.15, 0.88, 0.90, 0.74, 1.21])


def _on_log_scale(found: stats.RankRatio) -> tuple[float, float, float]:
    assert found.lo is not None
    assert found.hi is not None
    return math.log(found.ratio), math.log(found.lo), math.log(found.hi)


def test_signed_ranks_are_those_of_hollander_and_wolfe() -> None:
    found = stats.paired_ranks(BEFORE, AFTER, 0.95)
    assert found.p == pytest.approx(2 * 0.01953, abs=1e-5)
    assert _on_log_scale(found) == pytest.approx((-0.46, -0.786, -0.010), abs=1e-9)
    assert found.n == 9
    assert found.method == "Wilcoxon's signed ranks of the logs of ratios within blocks, p counted out"


def test_rank_sums_are_those_of_hollander_and_wolfe() -> None:
    found = stats.unpaired_ranks(WEEKS_12_TO_26, TERM, 0.95)
    assert found.p == pytest.approx(2 * 0.1272, abs=1e-4)
    assert _on_log_scale(found) == pytest.approx((0.305, -0.15, 0.76), abs=1e-9)
    assert found.n == 5


def test_signed_ranks_with_ties_are_counted_out_over_all_signs() -> None:
    differences = np.array([1.0, -1.0, 2.0, 2.0, 2.0, 3.0, -4.0, 5.0]) / 8
    ranks = scipy_stats.rankdata(np.abs(differences))
    signs = np.array(np.meshgrid(*[[0, 1]] * 8)).reshape(8, -1).T
    sums, seen = signs @ ranks, ranks[differences > 0].sum()
    expected = 2 * min((sums <= seen).mean(), (sums >= seen).mean())
    found = stats.paired_ranks(np.ones(8), np.exp(differences), 0.95)
    assert found.p == pytest.approx(expected)
    assert found.method.endswith("ties at their mean rank")


def test_pairs_without_difference_are_left_out_of_p_and_that_is_said() -> None:
    a, b = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    found = stats.paired_ranks(a, b, 0.95)
    assert found.p == pytest.approx(2 / 2**6)
    assert "1 without difference left out of p" in found.method
    nothing = stats.paired_ranks(a, a, 0.9)
    assert (nothing.p, nothing.ratio, nothing.lo, nothing.hi) == (1.0, 1.0, 1.0, 1.0)


def test_equal_ratios_are_ties_whatever_their_logs_round_to() -> None:
    a, b = [3.0, 7.0, 1e6, 11.0, 1e-3], [3.3, 7.7, 1.1e6, 12.1, 1.1e-3]
    assert len(set(np.log(b) - np.log(a))) > 1
    assert "ties at their mean rank" in stats.paired_ranks(a, b, 0.95).method


def test_rank_sums_with_ties_are_counted_out_over_all_choices() -> None:
    a, b = [1.0, 2.0, 2.0, 3.0, 5.0], [2.0, 3.0, 4.0, 4.0]
    expected = scipy_stats.permutation_test(
        (b, a),
        lambda x, y: scipy_stats.rankdata(np.concatenate([x, y]))[: len(x)].sum(),
        permutation_type="independent",
        n_resamples=math.inf,
        alternative="two-sided",
    ).pvalue
    found = stats.unpaired_ranks(a, b, 0.9)
    assert found.p == pytest.approx(expected)
    assert found.method.endswith("ties at their mean rank")


def test_beyond_the_exact_sizes_the_normal_approximation_is_that_of_scipy() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(0.0, 1.0, 220), random.normal(0.15, 1.0, 220)
    paired = scipy_stats.wilcoxon(b - a, method="asymptotic", correction=True).pvalue
    unpaired = scipy_stats.mannwhitneyu(b, a, method="asymptotic").pvalue
    assert stats.paired_ranks(np.exp(a), np.exp(b), 0.95).p == pytest.approx(paired)
    assert stats.unpaired_ranks(np.exp(a), np.exp(b), 0.95).p == pytest.approx(unpaired)


@pytest.mark.parametrize(("measure", "name"), [(stats.paired_ranks, "PAIRS"), (stats.unpaired_ranks, "VALUES")])
def test_counted_out_and_approximated_they_hardly_differ(measure, name, monkeypatch) -> None:
    random = np.random.default_rng(2)
    a, b = random.lognormal(0.0, 0.3, 45), random.lognormal(0.1, 0.3, 45)
    exact = measure(a, b, 0.95)
    monkeypatch.setattr(f"dyno.stats.ranks.EXACT_{name}", 10)
    near = measure(a, b, 0.95)
    assert near.method != exact.method
    assert near.p == pytest.approx(exact.p, rel=0.03)
    assert (near.lo, near.hi) == pytest.approx((exact.lo, exact.hi), rel=0.003)


def test_too_few_values_bound_no_interval() -> None:
    rising = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert stats.paired_ranks([1.0] * 5, rising[1:], 0.95).lo is None  # 2 / 2^5 is above 5 %
    assert stats.paired_ranks([1.0] * 6, rising, 0.95).lo is not None
    assert stats.unpaired_ranks(rising[:3], rising[:3], 0.95).hi is None  # 2 / 20 is above 5 %
    assert stats.unpaired_ranks(rising[:4], rising[:4], 0.95).hi is not None
    assert stats.paired_ranks([1.0], [2.0], 0.95) is None
    assert stats.unpaired_ranks([1.0], [2.0, 3.0], 0.95) is None


def test_one_outlier_counts_by_its_rank_alone() -> None:
    a, b = [100.0] * 8, [101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0, 108.0]
    wild = [*b[:-1], 10_000.0]
    assert stats.paired_ranks(a, wild, 0.95).p == stats.paired_ranks(a, b, 0.95).p
    assert stats.unpaired_ranks(a, wild, 0.95).p == stats.unpaired_ranks(a, b, 0.95).p


def test_normality_is_that_of_shapiro_and_wilk_for_their_own_example() -> None:
    # Weights of eleven men, in S. S. Shapiro, M. B. Wilk, Biometrika 52 (1965), example 1: W = 0.79, and in scipy's
    # documentation of `shapiro`, which prints the figures below.
    found = stats.normality([148, 154, 158, 160, 161, 162, 166, 170, 182, 195, 236])
    assert (found.w, found.p) == pytest.approx((0.7888146948631716, 0.006703814061898823))
    assert found.n == 11


def test_far_from_normal_needs_enough_residuals_a_small_p_and_a_large_departure() -> None:
    outlier = [0.1, -0.1, 0.2, -0.2, 0.05, -0.05, 0.15, -0.15, 0.0, 3.0]
    assert stats.far_from_normal(outlier)
    assert not stats.far_from_normal(outlier[-7:])  # seven can show nothing, however odd
    assert not stats.far_from_normal(np.random.default_rng(1).normal(size=30))
    # Student's t with 8 degrees of freedom, 3000 times: told from normal by p, but harmless.
    heavy = np.random.default_rng(1).standard_t(8, 3000)
    assert stats.normality(heavy).p < 1e-6
    assert not stats.far_from_normal(heavy)


def test_what_has_no_shape_is_not_judged() -> None:
    assert stats.normality([1.0, 2.0]) is None
    assert stats.normality([1.0] * 20) is None
    assert not stats.far_from_normal([1.0] * 20)
