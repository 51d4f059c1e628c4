"""Bounds are what a person means by them, in any unit of their kind, and judge whole intervals."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.model import bounds, responses

NUMBER = st.decimals(min_value=0, max_value=10**9, places=4).map(lambda number: f"{number:f}")


@pytest.mark.parametrize(
    ("text", "unit", "low", "high", "closed"),
    [
        ("< 5 ms", "ms", -math.inf, 5.0, False),
        ("<5ms", "ms", -math.inf, 5.0, False),
        ("<= 0.7 s", "ms", -math.inf, 700.0, True),
        ("> 250 us", "ms", 0.25, math.inf, False),
        ("< 2 min", "s", -math.inf, 120.0, False),
        (">= 12000 ops/s", "ops/s", 12000.0, math.inf, True),
        (">= 12000 requests/s", "ops/s", 12000.0, math.inf, True),
        (">= 600 1/min", "ops/s", 10.0, math.inf, True),
        (">= 10 1/s", "1/min", 600.0, math.inf, True),
        ("< 70 %", "%", -math.inf, 70.0, False),
        ("> 99.9%", "1", 0.999, math.inf, False),
        ("< 3", "1", -math.inf, 3.0, False),
        ("< 0", "ms", -math.inf, 0.0, False),
        ("0.94 to 0.95", "1", 0.94, 0.95, True),
        ("4  to 6 ms", "us", 4000.0, 6000.0, True),
    ],
)
def test_a_bound_is_taken_in_the_unit_of_what_it_bounds(text, unit, low, high, closed) -> None:
    found = bounds.parse(text, unit)
    assert (found.low, found.high, found.closed) == (low, high, closed)


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("5 ms", "ms", "'5 ms' says no side; write < 5 ms or >= 5 ms"),
        (5, "ms", "5 says no side; write < 5 ms or >= 5 ms"),
        ("= 5 ms", "ms", "'= 5 ms' says no side; write < 5 ms or >= 5 ms"),
        (2, "1", "2 says no side; write < 2 or >= 2"),
        ("< 5", "ms", "'< 5' has no unit; write it as < 5 ms"),
        ("< 5 ops/s", "ms", "'< 5 ops/s' is not in a unit of what it bounds (units: s, ms, us, ns, min)"),
        ("< 70 1", "%", "'< 70 1' is not in a unit of what it bounds (units: %)"),
        ("quick", "ms", "'quick' is no bound; write <, <=, > or >= and a number with its unit, such as < 5 ms"),
        (None, "1", "None is no bound; write <, <=, > or >= and a number with its unit, such as < 5"),
        (True, "1", "True is no bound; write <, <=, > or >= and a number with its unit, such as < 5"),
        (">= 12,000 ops/s", "ops/s", "'>= 12,000 ops/s' is no bound; write <, <=, > or >= and a number with its unit"),
        ("0.95 to 0.94", "1", "'0.95 to 0.94' is empty; write the smaller number first"),
    ],
)
def test_what_is_no_bound_is_answered_with_what_would_be_one(text, unit, message) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        bounds.parse(text, unit)


@given(st.text(max_size=60), st.sampled_from(sorted({responses.lookup(name).unit for name in responses.names()})))
def test_any_text_is_a_bound_or_a_value_error_in_one_line(text: str, unit: str) -> None:
    try:
        found = bounds.parse(text, unit)
    except ValueError as error:
        said = str(error)
        found = None
    assert found.low <= found.high if found else re.search("write|units:", said)


@given(NUMBER, st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from(["s", "ms", "us", "ns", "min"]))
def test_a_bound_means_the_same_whatever_unit_the_response_has(number: str, sign: str, unit: str) -> None:
    in_ms, in_us = bounds.parse(f"{sign} {number} {unit}", "ms"), bounds.parse(f"{sign} {number} {unit}", "us")
    assert in_us.low == pytest.approx(1000 * in_ms.low)
    assert in_us.high == pytest.approx(1000 * in_ms.high)


FINITE = st.floats(-1e6, 1e6)


@given(FINITE, FINITE, FINITE, st.sampled_from(["<", "<=", ">", ">="]))
def test_an_interval_holds_only_as_a_whole(one: float, other: float, end: float, sign: str) -> None:
    low, high = sorted((one, other))
    bound = bounds.Bound(*((-math.inf, end) if sign[0] == "<" else (end, math.inf)), sign.endswith("="), "")
    inside = {"<": lambda v: v < end, "<=": lambda v: v <= end, ">": lambda v: v > end, ">=": lambda v: v >= end}[sign]
    expected = {(True, True): True, (False, False): False}.get((inside(low), inside(high)))
    assert bound.holds((low, high)) is expected


def test_an_interval_around_a_range_is_neither_within_nor_outside_it() -> None:
    bound = bounds.parse("0.9 to 1.1", "1")
    assert bound.holds((0.5, 2.0)) is None
    assert bound.holds((0.9, 1.1)) is True
    assert bound.holds((1.11, 2.0)) is False
    assert bound.holds((0.5, 0.89)) is False


@pytest.mark.parametrize(("value", "given", "unit", "expected"), [(1.5, "s", "ms", 1500), (3, "ops/s", "ops/s", 3)])
def test_published_figures_are_taken_in_the_unit_of_the_response(value, given, unit, expected) -> None:
    assert bounds.convert(value, given, unit) == pytest.approx(expected)


def test_a_figure_in_a_unit_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown unit 'kg' \(units: s, ms"):
        bounds.convert(1, "kg", "ms")
