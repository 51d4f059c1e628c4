"""Numbers of runs are those that R prints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import nct, norm, ttest_1samp

from dyno import stats

# P. Dalgaard, Introductory Statistics with R, section 8.3: power.t.test(delta = 10, sd = 10 * sqrt(2), power = 0.85,
# type = "paired") prints n = 19.96892. Here in hundredths of a log.
DALGAARD_SD, DALGAARD_EFFECT = 0.1 * math.sqrt(2), math.expm1(0.1)


def test_runs_for_an_effect_are_those_that_r_prints() -> None:
    assert stats.runs_for_effect(DALGAARD_SD, DALGAARD_EFFECT, 0.05, 0.85) == 20
    assert stats.paired_power(20, DALGAARD_SD, DALGAARD_EFFECT, 0.05) == pytest.approx(0.85, abs=2e-3)
    assert stats.paired_power(19, DALGAARD_SD, DALGAARD_EFFECT, 0.05) < 0.85


def test_power_is_that_which_r_prints() -> None:
    # power.t.test(delta = 0.5, sd = 0.3088401, n = 10, type = "paired") prints power = 0.9947832 (Power
    # analysis for a paired-sample t-test, rpubs 192099).
    assert stats.paired_power(10, 0.3088401, math.expm1(0.5), 0.05) == pytest.approx(0.9947832, abs=1e-7)


def test_power_is_how_often_the_effect_is_found() -> None:
    random = np.random.default_rng(1)
    found = sum(
        stats.paired_ratio(np.ones(8), np.exp(logs), 0.95).p < 0.05 for logs in random.normal(0.05, 0.05, (4000, 8))
    )
    # Four standard errors of a share near 0.68 among 4000
    assert found / 4000 == pytest.approx(stats.paired_power(8, 0.05, math.expm1(0.05), 0.05), abs=0.03)


@pytest.mark.parametrize(("degrees", "power"), [(3, 0.9), (5, 0.8), (5, 0.9), (17.5, 0.9), (60, 0.95)])
def test_runs_for_a_spread_that_is_known_roughly_are_those_of_julious_and_owen(degrees: float, power: float) -> None:
    # S. A. Julious, R. J. Owen, Pharmaceutical Statistics 5, 2006: n = (tinv(power, degrees, z) sd / effect)^2 with the
    # quantile of noncentral t, for so many runs that the test's own t is z. scipy.stats has that quantile.
    known = (nct.ppf(power, degrees, norm.ppf(0.975)) / 0.01) ** 2
    assert stats.runs_for_effect(1.0, math.expm1(0.01), 0.05, power, degrees) == pytest.approx(known, rel=2e-3)


def test_runs_for_a_spread_that_is_known_are_no_other_however_it_is_told() -> None:
    for degrees in (math.inf, 1e7):
        assert stats.runs_for_effect(DALGAARD_SD, DALGAARD_EFFECT, 0.05, 0.85, degrees) == 20


def test_power_is_how_often_the_effect_is_found_over_all_pilots() -> None:
    # A pilot of 6 pairs, a study of as many as it asks for: on average they find the effect as promised, while those
    # for the spread that was seen do not (R. H. Browne, Statistics in Medicine 14, 1995).
    random = np.random.default_rng(2)
    seen = np.sqrt(random.chisquare(5, 4000) / 5)
    found = []
    for degrees in (5.0, math.inf):
        asked = stats.runs_for_effects(seen, np.full(4000, degrees), math.expm1(0.7), 0.05, 0.9).astype(int)
        shown = [ttest_1samp(random.normal(0.7, 1.0, n), 0.0).pvalue < 0.05 for n in asked]
        found.append(sum(shown) / 4000)
    # Three standard errors of a share near 0.9 among 4000 are 0.014.
    assert found[0] == pytest.approx(0.9, abs=0.015)
    assert found[1] < 0.85


def test_many_spreads_at_once_are_each_as_one_alone_and_the_fewest() -> None:
    sd, degrees = np.array([0.0, 0.01, 0.05, 0.3, 2.0, 4.0]), np.array([5.0, math.inf, 3.0, 20.0, 7.5, 4.0])
    found = stats.runs_for_effects(sd, degrees, 0.1, 0.01, 0.9)
    for n, spread, freedom in zip(found, sd, degrees, strict=True):
        assert stats.runs_for_effect(spread, 0.1, 0.01, 0.9, freedom) == n
        assert stats.paired_power(int(n), spread, 0.1, 0.01, freedom) >= 0.9
        assert n == 2 or stats.paired_power(int(n) - 1, spread, 0.1, 0.01, freedom) < 0.9
    assert stats.runs_for_effects(np.array([400.0]), np.array([4.0]), 0.1, 0.01, 0.9)[0] == math.inf


def test_a_spread_next_to_nothing_is_no_error() -> None:
    assert stats.runs_for_effect(1e-200, 0.1, 0.05, 0.9, 5) == 2


def test_the_detectable_effect_is_what_that_number_of_runs_finds() -> None:
    effect = stats.detectable_effect(12, 0.07, 0.05 / 6, 0.9)
    assert stats.paired_power(12, 0.07, effect, 0.05 / 6) == pytest.approx(0.9)
    assert stats.runs_for_effect(0.07, effect * 1.0001, 0.05 / 6, 0.9) == 12
    rough = stats.detectable_effect(12, 0.07, 0.05 / 6, 0.9, 5)
    assert rough > 1.2 * effect
    assert stats.paired_power(12, 0.07, rough, 0.05 / 6, 5) == pytest.approx(0.9)
    assert stats.detectable_effect(12, 0.0, 0.05, 0.9) == 0.0
    assert stats.detectable_effect(2, 5.0, 0.001, 0.99) is None  # e to the power of thousands


def test_runs_for_precision_are_the_fewest_whose_interval_is_narrow_enough() -> None:
    # By the printed quantiles of t (Jain 1991, appendix A): at n = 6, 2.571 x 0.05 / sqrt(6) = 0.0525; at n = 7,
    # 2.447 x 0.05 / sqrt(7) = 0.0462.
    assert stats.runs_for_mean_precision(0.05, 0.05, 0.95) == 7
    # At n = 6, 2.571 x 0.0465 / sqrt(6) = 0.04881, just above ln 1.05 = 0.04879; the plain share would let it pass.
    assert stats.runs_for_ratio_precision(0.0465, 0.05, 0.95) == 7
    assert stats.runs_for_mean_precision(0.0465, 0.05, 0.95) == 6
    assert stats.runs_for_mean_precision(0.0, 0.05, 0.95) == 2
    assert stats.runs_for_mean_precision(1e6, 0.05, 0.95) is None


def test_runs_for_precision_agree_with_the_rule_that_stops() -> None:
    n = stats.runs_for_ratio_precision(0.08, 0.05, 0.95)
    for runs, precise in ((n - 1, False), (n, True)):
        logs = np.random.default_rng(1).normal(size=runs)
        logs = 0.08 * (logs - logs.mean()) / logs.std(ddof=1)
        assert stats.ratio_is_precise(stats.paired_ratio(np.ones(runs), np.exp(logs), 0.95), 0.05) is precise


def test_an_effect_too_small_for_a_million_runs_says_so() -> None:
    assert stats.runs_for_effect(0.5, 1e-6, 0.05, 0.9) is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda: stats.paired_power(1, 0.1, 0.1, 0.05),
        lambda: stats.paired_power(5, -0.1, 0.1, 0.05),
        lambda: stats.paired_power(5, math.nan, 0.1, 0.05),
        lambda: stats.paired_power(5, 0.1, 0.0, 0.05),
        lambda: stats.paired_power(5, 0.1, -1.0, 0.05),
        lambda: stats.paired_power(5, 0.1, 0.1, 1.0),
        lambda: stats.paired_power(5, 0.1, 0.1, 0.05, 0.0),
        lambda: stats.runs_for_effect(0.1, 0.1, 0.05, 1.0),
        lambda: stats.runs_for_effect(0.1, 0.1, 0.05, 0.9, math.nan),
        lambda: stats.detectable_effect(5, 0.1, 0.05, 0.9, -1.0),
        lambda: stats.detectable_effect(5, 0.1, 0.05, 0.05),
        lambda: stats.detectable_effect(1, 0.1, 0.05, 0.9),
        lambda: stats.runs_for_mean_precision(0.1, 0.0, 0.95),
        lambda: stats.runs_for_ratio_precision(0.1, 0.05, 95.0),
    ],
)
def test_what_makes_no_sense_is_refused(ask) -> None:
    with pytest.raises(ValueError, match="got"):
        ask()
