"""Quantities with units: what is written is read again as the same, and nothing without a unit is taken."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from dyno.model.units import (
    DURATION_UNITS,
    SIZE_UNITS,
    Duration,
    PositiveDuration,
    Share,
    Size,
    format_duration,
    format_percent,
    format_size,
    parse_bandwidth,
    parse_duration,
    parse_share,
    parse_size,
)

QUANTITIES = {"size": parse_size, "bandwidth": parse_bandwidth, "duration": parse_duration, "share": parse_share}
FINITE = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


@given(st.integers(min_value=0, max_value=2**53))
def test_a_size_that_was_written_to_json_is_read_as_the_same(size: int) -> None:
    adapter = TypeAdapter(Size)
    assert adapter.validate_json(adapter.dump_json(adapter.validate_python(f"{size} B"))) == size


@given(FINITE)
def test_a_duration_that_was_written_to_json_is_read_as_the_same(seconds: float) -> None:
    # The smallest floats take hundreds of digits; one study with `0.000...1 us` wrote a plan that it then refused.
    adapter = TypeAdapter(Duration)
    assert adapter.validate_json(adapter.dump_json(seconds)) == seconds


@given(st.floats(min_value=0, max_value=1e6))
def test_a_share_that_was_written_to_json_is_read_as_the_same(share: float) -> None:
    adapter = TypeAdapter(Share)
    assert adapter.validate_json(adapter.dump_json(share)) == pytest.approx(share, rel=1e-15, abs=0)


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from(sorted(SIZE_UNITS)), st.sampled_from(["", " ", "  "]))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str, between: str) -> None:
    assert parse_size(f"{number}{between}{unit}") == number * SIZE_UNITS[unit]


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from(sorted(DURATION_UNITS)))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert parse_duration(f"{number} {unit}") == pytest.approx(number * DURATION_UNITS[unit], rel=1e-12)


@given(st.sampled_from(sorted(QUANTITIES)), st.one_of(st.integers(min_value=1), FINITE.filter(bool)))
def test_a_bare_number_other_than_zero_is_refused(what: str, number: float) -> None:
    with pytest.raises(ValueError, match="write"):
        QUANTITIES[what](number)
    with pytest.raises(ValueError, match="write"):
        QUANTITIES[what](str(number))


@pytest.mark.parametrize("what", sorted(QUANTITIES))
@pytest.mark.parametrize("zero", [0, "0", 0.0, "0.0"])
def test_zero_needs_no_unit(what: str, zero: object) -> None:
    assert QUANTITIES[what](zero) == 0


@pytest.mark.parametrize("what", sorted(QUANTITIES))
@pytest.mark.parametrize(
    "wrong", [True, None, [], {}, "", "x", "-1 B", "-1 s", "-1%", "1 parsec", "1e3 s", "nan s", "inf B", "٣ s", "1 B B"]
)
def test_what_is_no_quantity_is_refused(what: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=r"number with a unit|unknown unit"):
        QUANTITIES[what](wrong)


@pytest.mark.parametrize("bare", ["8K", "8M", "8G", "8T", "8 k", "8 Mb", "8 gib"])
def test_a_unit_that_programs_disagree_on_is_refused_with_those_that_exist(bare: str) -> None:
    with pytest.raises(ValueError, match=r"unknown unit.*GiB"):
        parse_size(bare)


@pytest.mark.parametrize(("text", "exact"), [("700 ms", 0.7), ("0.1 s", 0.1), ("1 us", 1e-6), ("1.5 min", 90.0)])
def test_a_duration_is_the_decimal_that_was_written_and_nothing_near_it(text: str, exact: float) -> None:
    assert parse_duration(text) == exact


@pytest.mark.parametrize(("text", "exact"), [("95%", 0.95), ("5 %", 0.05), ("0.1%", 0.001), ("100%", 1.0)])
def test_a_share_is_the_decimal_that_was_written_and_nothing_near_it(text: str, exact: float) -> None:
    assert parse_share(text) == exact


def test_a_quantity_beyond_all_numbers_is_refused_and_not_infinite() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_duration("9" * 309 + " d")


def test_an_endless_text_is_refused_without_being_looked_at() -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size("1" * 1_000_000 + " B")


def test_a_duration_that_must_be_positive_refuses_zero() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(PositiveDuration).validate_python("0 s")


@given(st.integers(min_value=0, max_value=10**18))
@example(round(999.7 * 1024))
def test_a_formatted_size_has_no_exponent_and_is_near_the_truth(size: int) -> None:
    # 999.7 KiB was once shown as `1e+03 KiB`.
    said = format_size(size)
    assert "e" not in said
    assert parse_size(said) == pytest.approx(size, rel=0.01)


@given(st.floats(min_value=0.001, max_value=1e7))
def test_a_formatted_duration_is_near_the_truth(seconds: float) -> None:
    said = format_duration(seconds).split()
    total = sum(float(number) * DURATION_UNITS[unit] for number, unit in zip(said[::2], said[1::2], strict=True))
    # Hours are said to the minute, minutes to the second.
    assert math.isclose(total, seconds, rel_tol=0.01, abs_tol=0.0006 if seconds < 1 else 1)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.85, "850 ms"),
        (2.34, "2.3 s"),
        (42, "42 s"),
        (59.7, "1 min"),
        (725, "12 min 5 s"),
        (12000, "3 h 20 min"),
        (3600, "1 h"),
    ],
)
def test_durations_are_said_as_a_person_says_them(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said


@pytest.mark.parametrize(
    ("share", "text"), [(0.05, "5%"), (0.999, "99.9%"), (100.0, "10,000%"), (1e-6, "0.0001%"), (0.975, "97.5%")]
)
def test_a_share_is_shown_as_it_was_asked_for_and_without_exponents(share: float, text: str) -> None:
    # `1e+04%` stood in reports.
    assert format_percent(share) == text
