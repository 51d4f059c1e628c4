"""The one form of values: whatever a protocol gave them as, the same answer is the same."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.model.rows import NotATime, digests, in_one_form, same, shown, value_of

NEW_YEAR_NS = 1_451_606_400 * 10**9


@pytest.mark.parametrize(
    ("value", "unit_ns"),
    [
        (datetime(2016, 1, 1, tzinfo=UTC), 1),
        (datetime(2016, 1, 1), 1),
        (datetime(2016, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 1),
        ("2016-01-01T00:00:00.000000Z", 1),
        ("2016-01-01 00:00:00", 1),
        ("2016-01-01", 1),
        ("2016-01-01T01:30:00+01:30", 1),
        ("2016-01-01 02:00:00+02", 1),
        (NEW_YEAR_NS, 1),
        (NEW_YEAR_NS // 1000, 1000),
        (NEW_YEAR_NS // 10**6, 10**6),
        (1_451_606_400.0, 10**9),
        (Decimal(1_451_606_400), 10**9),
    ],
)
def test_a_time_is_one_whatever_it_was_given_as(value: object, unit_ns: int) -> None:
    assert value_of(value, "time", unit_ns) == {"t": NEW_YEAR_NS}


def test_fractions_of_a_second_are_kept_to_the_nanosecond() -> None:
    assert value_of("2016-01-01T00:00:00.123456789Z", "time") == {"t": NEW_YEAR_NS + 123_456_789}
    assert value_of("2016-01-01T00:00:00.5", "time") == {"t": NEW_YEAR_NS + 500_000_000}
    assert value_of(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "time") == {"t": -1000}


@pytest.mark.parametrize("value", ["yesterday", "2016-13-01", True, [], math.nan])
def test_what_is_no_time_is_told(value: object) -> None:
    with pytest.raises(NotATime, match="is no time"):
        value_of(value, "time")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (5.0, 5),
        (Decimal("5.000"), 5),
        (Decimal("0.5"), 0.5),
        (-0.0, 0),
        (math.nan, {"f": "nan"}),
        (math.inf, {"f": "inf"}),
        (-math.inf, {"f": "-inf"}),
        (None, None),
        (True, True),
        ("5", "5"),
        (b"\x05", {"x": "05"}),
    ],
)
def test_a_value_has_one_form(value: object, expected: object) -> None:
    found = value_of(value, None)
    assert found == expected
    assert type(found) is type(expected)


def test_a_number_that_came_as_text_is_one_where_the_query_says_so() -> None:
    assert value_of("5.50", "number") == 5.5
    assert value_of("5.50", "text") == "5.50"
    assert value_of("none", "number") == "none"


def test_null_and_nan_are_each_the_same_as_itself_and_not_as_the_other() -> None:
    null, nan = value_of(None, "number"), value_of(math.nan, "number")
    assert same(null, null, 0, 0)
    assert same(nan, nan, 0, 0)
    assert not same(null, nan, 0.5, 0.5)
    assert not same(nan, 0.0, 0.5, 0.5)


def test_the_tolerance_is_a_share_of_the_larger_one_and_ends_where_it_says() -> None:
    assert same(100.0, 100.0 + 1e-7, 1e-9, 0)
    assert not same(100.0, 100.0 + 1.1e-7, 1e-9, 0)
    assert same(0.0, 1e-12, 1e-9, 1e-12)
    assert not same(0.0, 1.1e-12, 1e-9, 1e-12)
    assert same(0.3, 0.1 + 0.2, 1e-9, 0)


def test_whole_numbers_are_exact() -> None:
    assert not same(10**12, 10**12 + 1, 1e-9, 1e-9)
    assert not same(1, True, 1, 1)
    assert same(5, 5.0, 0, 0)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_whether_two_figures_are_the_same_does_not_hang_on_which_comes_first(a: float, b: float) -> None:
    assert same(a, b, 1e-9, 1e-12) == same(b, a, 1e-9, 1e-12)
    assert same(a, a, 0, 0)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=12), st.randoms())
def test_the_digest_of_a_set_does_not_hang_on_the_order_of_rows(rows: list[tuple[object, object]], chance) -> None:  # type: ignore[no-untyped-def]
    mixed = list(rows)
    chance.shuffle(mixed)
    one, other = (digests(in_one_form(each, [None, None])) for each in (rows, mixed))
    assert one[1] == other[1]


def test_the_digest_of_a_list_hangs_on_the_order_and_both_on_how_often_a_row_comes() -> None:
    a, b = [[1, "x"], [2, "y"]], [[2, "y"], [1, "x"]]
    assert digests(a)[0] != digests(b)[0]
    assert digests([[1, "x"]])[1] != digests([[1, "x"], [1, "x"]])[1]


def test_digits_that_hang_on_the_order_of_a_sum_are_not_in_a_digest() -> None:
    assert digests([[0.1 + 0.2]]) == digests([[0.3]])
    assert digests([[0.3]]) != digests([[0.3001]])


def test_a_row_is_shown_as_a_person_would_write_it() -> None:
    assert shown([{"t": NEW_YEAR_NS}, "host_0", None, 5, 0.5, {"f": "nan"}]) == (
        "2016-01-01T00:00:00Z, host_0, NULL, 5, 0.5, nan"
    )
    assert shown([{"t": NEW_YEAR_NS + 120}]) == "2016-01-01T00:00:00.00000012Z"
