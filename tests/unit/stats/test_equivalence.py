"""Two one-sided tests agree with what other programs print."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dyno import stats

# The data set `sleep` of R as logs, and what the vignette "An Introduction to t_TOST" of its package TOSTER (A. R.
# Caldwell) prints for it with bounds of 0.5 to either side: the larger p is 0.890 unpaired and 0.989 paired.
DRUG_1 = np.exp([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
DRUG_2 = np.exp([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
MARGIN = math.expm1(0.5)


def paired(a, b, margin: float, alpha: float) -> stats.Equivalence | None:
    return stats.equivalence_of(stats.paired_shift(a, b), margin, alpha)


def unpaired(a, b, margin: float, alpha: float) -> stats.Equivalence | None:
    return stats.equivalence_of(stats.unpaired_shift(a, b), margin, alpha)


def test_p_is_the_larger_one_that_toster_prints() -> None:
    assert unpaired(DRUG_1, DRUG_2, MARGIN, 0.05).p == pytest.approx(0.890, abs=5e-4)
    assert paired(DRUG_1, DRUG_2, MARGIN, 0.05).p == pytest.approx(0.989, abs=5e-4)


def test_p_is_the_larger_of_scipy_s_one_sided_tests() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(0.0, 0.02, 12), random.normal(0.004, 0.03, 12)
    margin = math.log(1.02)
    of_pairs = max(
        scipy_stats.ttest_1samp(b - a, -margin, alternative="greater").pvalue,
        scipy_stats.ttest_1samp(b - a, margin, alternative="less").pvalue,
    )
    of_sides = max(
        scipy_stats.ttest_ind(b + margin, a, equal_var=False, alternative="greater").pvalue,
        scipy_stats.ttest_ind(b - margin, a, equal_var=False, alternative="less").pvalue,
    )
    assert paired(np.exp(a), np.exp(b), 0.02, 0.05).p == pytest.approx(of_pairs)
    assert unpaired(np.exp(a), np.exp(b), 0.02, 0.05).p == pytest.approx(of_sides)


def test_the_interval_is_that_of_twice_alpha() -> None:
    expected = scipy_stats.ttest_ind(np.log(DRUG_2), np.log(DRUG_1), equal_var=False).confidence_interval(0.9)
    found = unpaired(DRUG_1, DRUG_2, MARGIN, 0.05)
    assert (math.log(found.lo), math.log(found.hi)) == pytest.approx((expected.low, expected.high))


def test_the_margin_is_as_wide_to_either_side_on_the_log_scale() -> None:
    a = [100.0, 100.1, 99.9, 100.05, 99.95]
    just_within, just_beyond = [1.019 * value for value in a], [1.021 * value for value in a]
    for forth, back in ((a, just_within), (just_within, a)):
        assert paired(forth, back, 0.02, 0.05).shown
    for forth, back in ((a, just_beyond), (just_beyond, a)):
        assert not paired(forth, back, 0.02, 0.05).shown


def test_no_difference_shown_is_not_equivalence_shown() -> None:
    a, b = [100.0, 110.0, 95.0, 105.0], [104.0, 98.0, 107.0, 101.0]
    assert stats.paired_ratio(a, b, 0.95).p > 0.5
    assert not paired(a, b, 0.02, 0.05).shown


def test_without_any_noise_the_ratio_itself_decides() -> None:
    assert paired([1.0, 1.0], [1.01, 1.01], 0.02, 0.05).p == 0.0
    assert unpaired([1.0, 1.0], [1.03, 1.03], 0.02, 0.05).p == 1.0
    assert paired([1.0], [1.0], 0.02, 0.05) is None


@pytest.mark.parametrize(("margin", "alpha"), [(0.0, 0.05), (-0.02, 0.05), (math.inf, 0.05), (0.02, 0.5), (0.02, 0.0)])
def test_a_margin_or_alpha_that_makes_no_sense_is_refused(margin, alpha) -> None:
    with pytest.raises(ValueError, match=r"margin is|alpha is"):
        paired([1.0, 2.0], [1.0, 2.0], margin, alpha)
