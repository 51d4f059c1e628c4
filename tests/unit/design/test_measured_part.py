"""What counts of a run, by what it went through."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyno import stats
from dyno.design import measured_part
from dyno.model.run import MeasuredPart

NOISE = np.random.default_rng(1).normal(0.0, 4.0, 120)
STEP_UP = np.where(np.arange(120) < 24, 70.0, 100.0) + NOISE


def part(rates, *, may_cut=True, interval_s=0.5) -> MeasuredPart:
    values = [float(rate) for rate in rates]
    return measured_part(values, interval_s, len(values) * interval_s, may_cut=may_cut, confidence=0.9)


def test_a_warm_up_is_cut_where_that_may_be() -> None:
    found = part(STEP_UP)
    assert (found.course, found.from_s, found.to_s, found.seconds) == ("warm-up then steady", 12.0, 60.0, 48.0)
    assert (found.intervals, found.steady_from_s) == (96, 12.0)
    assert [change.at_s for change in found.change_points] == [12.0]
    assert found.change_points[0].before == pytest.approx(STEP_UP[:24].mean())


def test_a_warm_up_is_said_and_kept_where_nothing_may_be_cut() -> None:
    found = part(STEP_UP, may_cut=False)
    assert (found.course, found.from_s, found.intervals, found.steady_from_s) == ("warm-up then steady", 0, 120, 12.0)
    assert len(found.change_points) == 1
    assert found.within is None, "a mean over a warm-up is of no steady rate"


@pytest.mark.parametrize(
    ("rates", "course"),
    [
        (100 + NOISE, "steady"),
        (np.linspace(100, 50, 120) + NOISE, "slowing down"),
        (np.linspace(50, 100, 120) + NOISE, "none"),
        (100 + NOISE[:9], None),
        ([], None),
    ],
)
def test_any_other_course_stays_whole(rates, course) -> None:
    found = part(rates)
    assert (found.course, found.from_s, found.intervals) == (course, 0, len(rates))
    assert (found.reason is None) == (course is not None)
    assert (found.within is None) == (course != "steady")


def test_the_interval_within_a_run_is_that_of_batch_means_over_the_measured_part() -> None:
    expected = stats.batch_means(STEP_UP[24:], 0.9)
    found = part(STEP_UP).within
    assert found is not None
    assert (found.mean, found.lo, found.hi) == pytest.approx((expected.mean, expected.lo, expected.hi))
    assert (found.effective, found.intervals, found.confidence) == (expected.effective, expected.n, 0.9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1e9), max_size=60), st.floats(0.01, 60), st.booleans())
def test_it_is_a_part_of_the_run_and_comes_back_from_json(rates, interval_s, may_cut) -> None:
    found = part(rates, may_cut=may_cut, interval_s=interval_s)
    assert 0 <= found.from_s <= found.to_s
    assert found.from_s == 0 or (may_cut and found.course == "warm-up then steady")
    assert found.intervals + round(found.from_s / interval_s) == len(rates)
    text = found.model_dump_json()
    assert json.loads(text)["class"] == found.course
    assert MeasuredPart.model_validate_json(text) == found
