"""E-divisive finds the steps that others found in the same series, and none in noise more often than it says."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.stats.series import NILE

from dyno import stats

SERIES = st.lists(st.integers(-1000, 1000).map(float), min_size=8, max_size=40)

# The series of MongoDB's own test, drawn from 1-50, 60-120 and 150-250, and what it expects: the statistics (its
# "qhat") of the points 40 and 20 (signal-processing-algorithms, tests/test_detection.py, test_random_ish_data).
MONGODB = (
    *(41, 18, 23, 3, 32, 11, 40, 13, 29, 48, 47, 35, 18, 21, 6, 2, 23, 3, 4, 7),
    *(120, 103, 102, 81, 71, 62, 115, 61, 108, 63, 70, 98, 65, 96, 64, 74, 70, 113, 90, 114),
    *(208, 196, 153, 150, 225, 179, 206, 165, 177, 151, 218, 217, 244, 245, 229, 195, 225, 229, 176, 250),
)


def test_the_points_and_statistics_are_those_that_mongodb_s_implementation_prints() -> None:
    found = stats.change_points(MONGODB, level=0.01)
    assert [(point.index, pytest.approx(point.statistic)) for point in found] == [
        (20, 893.578947368421),
        (40, 2848.1169590643276),
    ]
    assert [point.p for point in found] == [0.005, 0.005]


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([50] * 2 + [100] + [50] * 12 + [100] * 15, [(15, 649.9999999999999)]),  # test_finds_simple_regression2 there
        ([50] * 14 + [74] + [100] * 15, [(15, None)]),  # test_finds_ahead there
        ([50] * 14 + [76] + [100] * 15, [(14, None)]),  # test_finds_behind there
        ([50] * 30, []),  # test_no_regressions there
    ],
)
def test_a_step_with_an_outlier_is_placed_where_mongodb_places_it(series, expected) -> None:
    found = stats.change_points(series, level=0.01)
    assert [point.index for point in found] == [index for index, _ in expected]
    for point, (_, statistic) in zip(found, expected, strict=True):
        assert statistic is None or point.statistic == pytest.approx(statistic)


@pytest.mark.parametrize("half", [4, 5, 17, 50, 99])
def test_two_levels_without_noise_part_exactly_in_the_middle(half) -> None:
    # signal-processing-algorithms, tests/test_e_divisive.py, test_default_implementation_sanity
    assert [point.index for point in stats.change_points([0] * half + [1] * half)] == [half]


def test_the_flow_of_the_nile_changes_once_after_1898() -> None:
    (point,) = stats.change_points(NILE)
    assert point.index == 28
    assert (point.before, point.after) == (np.median(NILE[:28]), np.median(NILE[28:]))
    assert point.ratio == pytest.approx(842.5 / 1130)


@pytest.mark.parametrize("length", [20, 60])
def test_independent_noise_changes_no_more_often_than_the_level_says(length) -> None:
    draws = np.random.default_rng(1).normal(100.0, 10.0, (400, length))
    alarms = sum(bool(stats.change_points(row)) for row in draws) / len(draws)
    assert 0.01 <= alarms <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_skewed_noise_with_outliers_changes_no_more_often_either() -> None:
    draws = np.random.default_rng(2).pareto(2.0, (400, 30))
    assert sum(bool(stats.change_points(row)) for row in draws) / len(draws) <= 0.083


def test_a_step_of_three_standard_deviations_is_found_where_it_is() -> None:
    random = np.random.default_rng(3)
    indices = [
        [point.index for point in stats.change_points(random.normal(100.0, 5.0, 40) + 15.0 * (np.arange(40) >= 25))]
        for _ in range(100)
    ]
    assert sum(any(abs(index - 25) <= 1 for index in found) for found in indices) >= 98


def test_a_change_of_spread_alone_is_a_change() -> None:
    random = np.random.default_rng(4)
    series = np.concatenate([random.normal(100.0, 1.0, 80), random.normal(100.0, 10.0, 80)])
    (point,) = stats.change_points(series)
    assert abs(point.index - 80) <= 5
    assert point.ratio == pytest.approx(1.0, abs=0.03)


def test_six_hundred_points_take_less_than_half_a_second() -> None:
    series = np.random.default_rng(5).normal(100.0, 5.0, 600) + 20.0 * (np.arange(600) // 150)

    def taken() -> float:
        start = time.process_time()
        assert len(stats.change_points(series)) >= 3
        return time.process_time() - start

    assert min(taken() for _ in range(3)) < 0.5


def test_a_series_too_short_for_two_segments_is_no_series_without_a_change() -> None:
    assert stats.change_points([1.0] * 7) is None
    assert stats.change_points([1.0] * 8) == ()


def test_a_step_from_zero_has_no_ratio() -> None:
    (point,) = stats.change_points([0.0] * 10 + [5.0] * 10)
    assert point.ratio is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0, np.nan]}, "not finite"),
        ({"values": [1.0], "level": 5.0}, "share"),
        ({"values": [1.0], "shortest": 1}, "2 values or more"),
    ],
)
def test_what_cannot_be_searched_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        stats.change_points(**arguments)


@settings(max_examples=50)
@given(SERIES, st.integers(-30, 30), st.sampled_from([1.0, -1.0]))
def test_another_unit_changes_no_point_and_scales_the_statistic(series, exponent, sign) -> None:
    factor = sign * 2.0**exponent
    plain, scaled = stats.change_points(series), stats.change_points([factor * value for value in series])
    assert [(point.index, point.p) for point in scaled] == [(point.index, point.p) for point in plain]
    for one, other in zip(plain, scaled, strict=True):
        assert other.statistic == pytest.approx(abs(factor) * one.statistic)


@settings(max_examples=50)
@given(st.lists(st.floats(-1e300, 1e300), min_size=8, max_size=40))
def test_points_are_in_order_and_leave_segments_of_four(series) -> None:
    found = stats.change_points(series)
    bounds = [0, *(point.index for point in found), len(series)]
    assert min(np.diff(bounds)) >= 4
    assert all(0 < point.p <= 0.05 and np.isfinite(point.statistic) for point in found)
    assert found == stats.change_points(series)
