"""The statistics give the figures that others published for the same data."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dyno import stats
from dyno.stats.arrays import t_quantile

# "Student", The probable error of a mean, Biometrika 6 (1908): additional hours of sleep under two drugs; the data set
# `sleep` of R, whose help page gives the two intervals below (t.test, Welch by default, and paired = TRUE).
DRUG_1 = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
DRUG_2 = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
R_WELCH = (-0.2054832, 3.3654832)
R_PAIRED = (0.7001142, 2.4598858)


def test_t_quantiles_are_those_of_the_printed_tables() -> None:
    # R. Jain, The Art of Computer Systems Performance Analysis, 1991, appendix A: quantiles of the t distribution
    assert t_quantile(0.95, 1) == pytest.approx(12.706, abs=5e-4)
    assert t_quantile(0.95, 4) == pytest.approx(2.776, abs=5e-4)
    assert t_quantile(0.99, 9) == pytest.approx(3.250, abs=5e-4)
    assert t_quantile(0.95, 30) == pytest.approx(2.042, abs=5e-4)


def test_mean_interval_is_that_of_student_for_his_own_data() -> None:
    differences = [b - a for a, b in zip(DRUG_1, DRUG_2, strict=True)]
    assert stats.mean_interval(differences, 0.95) == pytest.approx(R_PAIRED, abs=1e-7)
    # Of one cell without neighbours in time and without looks, the interval of reports is nothing but that.
    found = stats.cell_means(np.array(differences)[:, None], None, 0.95, randomised=False, widening=1.0)
    assert (found.mean[0] - found.half[0], found.mean[0] + found.half[0]) == pytest.approx(R_PAIRED, abs=1e-7)


def test_paired_ratio_is_exp_of_the_paired_interval_of_the_logs() -> None:
    found = stats.paired_ratio(np.exp(DRUG_1), np.exp(DRUG_2), 0.95)
    assert found is not None
    assert (math.log(found.lo), math.log(found.hi)) == pytest.approx(R_PAIRED, abs=1e-7)
    assert math.log(found.ratio) == pytest.approx(1.58)
    assert found.n == 10


def test_unpaired_ratio_is_exp_of_welch_s_interval_of_the_logs() -> None:
    found = stats.unpaired_ratio(np.exp(DRUG_1), np.exp(DRUG_2), 0.95)
    assert found is not None
    assert (math.log(found.lo), math.log(found.hi)) == pytest.approx(R_WELCH, abs=1e-7)


def test_unpaired_ratio_agrees_with_scipy_where_sizes_and_variances_differ() -> None:
    a, b = np.exp(DRUG_1[:4]), np.exp(np.multiply(DRUG_2, 3.0))
    found = stats.unpaired_ratio(a, b, 0.9)
    expected = scipy_stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(0.9)
    assert found is not None
    assert (math.log(found.lo), math.log(found.hi)) == pytest.approx((expected.low, expected.high))
    assert found.n == 4


def test_description_is_that_of_a_sample_worked_out_by_hand() -> None:
    found = stats.describe([2.0, 4.0, 4.0, 6.0])
    assert found == stats.Description(
        n=4,
        mean=4.0,
        variance=pytest.approx(8 / 3),
        sd=pytest.approx(math.sqrt(8 / 3)),
        cov=pytest.approx(math.sqrt(8 / 3) / 4),
        mad=1.0,
        min=2.0,
        max=6.0,
        range=4.0,
    )


def test_one_value_has_a_mean_but_no_variance_and_no_interval() -> None:
    found = stats.describe([3.0])
    assert (found.n, found.mean, found.mad, found.range) == (1, 3.0, 0.0, 0.0)
    assert found.variance is found.sd is found.cov is None
    assert stats.mean_interval([3.0], 0.95) is None


def test_no_value_has_no_figure_at_all() -> None:
    assert stats.describe([]) == stats.Description(n=0)
    assert stats.mean_interval([], 0.95) is None


def test_equal_values_have_no_variance_at_all_even_where_their_sum_rounds() -> None:
    found = stats.describe([0.1] * 3)
    assert (found.mean, found.variance) == (0.1, 0.0)
    assert stats.mean_interval([0.1] * 3, 0.95) == (0.1, 0.1)
    assert stats.unpaired_ratio([0.1] * 3, [0.1] * 2, 0.95) == stats.Ratio(
        1.0, 1.0, 1.0, 2, stats.ratios.UNPAIRED, p=1.0
    )


def test_a_mean_of_zero_has_no_coefficient_of_variation() -> None:
    assert stats.describe([-1.0, 1.0]).cov is None
    assert stats.relative_half_width((-1.0, 1.0), 0.0) == math.inf


def test_precision_of_a_ratio_is_judged_on_the_log_scale() -> None:
    within_five_percent = stats.Ratio(2.0, 2.0 / 1.0499, 2.0 * 1.0499, 5, "by hand")
    beyond = stats.Ratio(2.0, 2.0 / 1.0501, 2.0 * 1.0501, 5, "by hand")
    assert stats.ratio_is_precise(within_five_percent, 0.05)
    assert not stats.ratio_is_precise(beyond, 0.05)
    assert not stats.ratio_is_precise(None, 0.05)
    assert not stats.ratio_is_precise(stats.Ratio(1.0, 0.0, 1e300, 2, "by hand"), 0.05)


def test_fewer_than_two_of_a_side_give_no_ratio() -> None:
    assert stats.paired_ratio([1.0], [2.0], 0.95) is None
    assert stats.unpaired_ratio([1.0], [2.0, 2.1, 2.2], 0.95) is None


@pytest.mark.parametrize("measure", [stats.paired_ratio, stats.unpaired_ratio])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_ratio_of_what_has_no_log_is_refused(measure, bad) -> None:
    with pytest.raises(ValueError, match=r"above 0|not finite"):
        measure([1.0, 2.0], [1.0, bad], 0.95)


def test_sides_of_different_length_are_not_pairs() -> None:
    with pytest.raises(ValueError, match="got 2 and 3"):
        stats.paired_ratio([1.0, 2.0], [1.0, 2.0, 3.0], 0.95)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_that_is_no_share_is_refused(confidence) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        stats.mean_interval([1.0, 2.0], confidence)


def test_values_that_are_not_finite_are_refused_rather_than_passed_on() -> None:
    for measure in (stats.describe, lambda values: stats.mean_interval(values, 0.95)):
        with pytest.raises(ValueError, match="not finite"):
            measure([1.0, math.nan])


def test_a_table_is_not_a_row_of_values() -> None:
    with pytest.raises(ValueError, match="2 dimensions"):
        stats.describe(np.ones((2, 2)))


def test_an_interval_beyond_the_largest_float_stays_a_number() -> None:
    found = stats.paired_ratio([1.0, 1e300], [1e300, 1.0], 0.99)
    assert found is not None
    assert found.hi == pytest.approx(sys.float_info.max, rel=1e-10)
    assert found.lo == 0.0
    assert found.half_width == math.inf


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's interval of a proportion at 95 %."""
    z, p = 1.959964, successes / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def test_the_interval_of_a_quotient_of_estimates_is_that_of_newcombe() -> None:
    # R. G. Newcombe, Interval estimation for the difference between independent proportions, Statistics in Medicine 17,
    # 1998, table II, method 10: 56/70 - 48/80 is 0.2000 [0.0524, 0.3339]. Differences of logs are put in by exp.
    def both(ends):
        return tuple(math.exp(end) for end in ends)

    found = stats.quotient_interval(math.exp(56 / 70), both(wilson(56, 70)), math.exp(48 / 80), both(wilson(48, 80)))
    assert [math.log(end) for end in found] == pytest.approx([0.0524, 0.3339], abs=5e-5)


def test_the_interval_of_a_quotient_is_that_of_the_normal_distribution_where_both_are_normal_on_the_logs() -> None:
    a, b = 2.0, 3.0
    around = [(value * math.exp(-half), value * math.exp(half)) for value, half in ((a, 0.03), (b, 0.04))]
    found = stats.quotient_interval(b, around[1], a, around[0])
    assert found == pytest.approx((1.5 * math.exp(-0.05), 1.5 * math.exp(0.05)))
    assert stats.quotient_interval(b, (0.0, 4.0), a, around[0]) is None
