"""Holm's adjusted p-values are those that other programs print."""

from __future__ import annotations

import math

import pytest

from dyno import stats

# SAS/STAT User's Guide, the MULTTEST procedure, example "Inputting Raw p-Values": column "Stepdown Bonferroni".
SAS_RAW = (
    0.28282, 0.30688, 0.71022, 0.77175, 0.78180, 0.88581, 0.54685, 0.84978, 0.24228, 0.58977, 0.03498, 0.41607,
    0.31631, 0.05254, 0.45061, 0.75758, 0.12496, 0.49485, 0.21572, 0.50505, 0.94372, 0.81260, 0.77596, 0.36889,
)  # fmt: skip


def test_adjusted_p_values_are_those_that_sas_prints() -> None:
    found = stats.holm(SAS_RAW)
    assert found[10] == pytest.approx(0.8395, abs=5e-5)
    assert [p for i, p in enumerate(found) if i != 10] == [1.0] * 23


def test_adjusted_p_values_rise_with_the_raw_ones() -> None:
    # Steps by hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 1 x 0.04, which may not fall below the one before it. R's
    # p.adjust(c(.01, .04, .03, .005), "holm") gives 0.03 0.06 0.06 0.02.
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_a_missing_p_stays_missing_and_does_not_count() -> None:
    assert stats.holm([None, 0.02, None, 0.03]) == (None, pytest.approx(0.04), None, pytest.approx(0.04))
    assert stats.holm([None]) == (None,)
    assert stats.holm([]) == ()


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(bad) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        stats.holm([0.5, bad])


# The rule of Holm 1979, section 4, by hand: p / w in rising order are 0.005 / 0.5 = 0.01, 0.02 / 0.25 = 0.08 and
# 0.03 / 0.25 = 0.12; the weights not before them are 1, 0.5 and 0.25.
def test_a_test_of_more_weight_is_raised_less() -> None:
    assert stats.holm([0.02, 0.005, 0.03], [0.25, 0.5, 0.25]) == pytest.approx((0.04, 0.01, 0.04))
    assert stats.holm([0.02, 0.005, 0.03]) == pytest.approx((0.04, 0.015, 0.04))


def test_weights_count_relative_to_those_whose_p_is_there() -> None:
    assert stats.holm([0.02, None, 0.03], [2.0, 5.0, 2.0]) == pytest.approx(stats.holm([0.02, None, 0.03]))


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        stats.holm([0.5, 0.5], weights)
