"""What a fault cost those who asked, on attempts whose outage is known by how they were made."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.model.outage import Attempt, Outage, outage

MS = 1_000_000
S = 1000 * MS
STRUCK = 10 * S


def steady(start_ms: int, end_ms: int, *, takes_ms: int = 2, every_ms: int = 10, ok: bool = True) -> list[Attempt]:
    """A request every so often, each sent when it is due."""
    times = range(start_ms * MS, end_ms * MS, every_ms * MS)
    return [Attempt(at, at, at + takes_ms * MS, ok) for at in times]


def found(attempts: list[Attempt], *, until_s: float = 30, late_s: float = 1.0) -> Outage:
    said = outage(attempts, from_ns=0, struck_ns=STRUCK, until_ns=round(until_s * S), late_s=late_s)
    assert said is not None
    return said


def test_an_outage_is_from_the_fault_to_the_success_that_ends_it() -> None:
    """100 requests a second; from the fault on each fails for 4 s, and then all is as before."""
    said = found([*steady(0, 10_000), *steady(10_000, 14_000, ok=False), *steady(14_000, 30_000)])
    assert said.interrupted
    assert said.outage_s == pytest.approx(4.002)
    assert said.first_success_s == pytest.approx(4.002)
    assert said.former_throughput_s == pytest.approx(4.002)
    assert said.former_per_s == pytest.approx(100)
    assert said.failed == 400
    assert said.late == 0
    # 4.002 s at 100 a second, and the success at its very end is not among what was done before.
    assert said.lost_work == pytest.approx(400.2)
    assert said.resolution_s == pytest.approx(0.010), "a request was sent every 10 ms"
    assert said.at_least_s is None


def test_what_goes_on_for_a_while_after_the_fault_is_no_part_of_the_outage_but_of_the_first_success() -> None:
    said = found([*steady(0, 13_000), *steady(13_000, 15_000, ok=False), *steady(15_000, 30_000)])
    assert said.outage_s == pytest.approx(2.010), "from the last success at 12.992 s to the first at 15.002 s"
    assert said.first_success_s == pytest.approx(5.002)


def test_requests_that_were_held_up_and_then_answered_are_late_and_did_not_fail() -> None:
    """A process that stands still for 3 s: what was due meanwhile is answered at its end."""
    held = [Attempt(at, at, 13_000 * MS, True) for at in range(10_000 * MS, 13_000 * MS, 10 * MS)]
    said = found([*steady(0, 10_000), *held, *steady(13_000, 30_000)])
    assert said.outage_s == pytest.approx(3.0)
    assert said.failed == 0
    assert said.late == 200, "those due in the first 2 s waited for more than 1 s"
    assert found([*steady(0, 10_000), *held, *steady(13_000, 30_000)], late_s=2.5).late == 50


def test_a_throughput_that_comes_back_by_and_by_is_back_when_a_second_has_95_in_100_of_it() -> None:
    slow = steady(12_000, 16_000, every_ms=20)
    said = found([*steady(0, 10_000), *slow, *steady(16_000, 30_000)])
    assert said.first_success_s == pytest.approx(2.002)
    # In the second from t on there are 95 once it begins 0.1 s before the full rate: 5 of the slow, 90 of the others.
    assert said.former_throughput_s == pytest.approx(5.902, abs=0.011)
    assert said.lost_work == pytest.approx(100 * said.former_throughput_s - 195, abs=2)


def test_an_outage_that_does_not_end_has_a_length_that_was_seen_and_no_other() -> None:
    said = found([*steady(0, 10_000), *steady(10_000, 30_000, ok=False)])
    assert (said.outage_s, said.first_success_s, said.former_throughput_s) == (None, None, None)
    assert said.interrupted
    assert said.at_least_s == pytest.approx(20.0)
    assert said.lost_work == pytest.approx(2000)


def test_nothing_stands_out_where_a_fault_is_not_felt() -> None:
    said = found(steady(0, 30_000))
    assert not said.interrupted
    assert said.outage_s == pytest.approx(0.010)
    assert said.first_success_s == pytest.approx(0.002), "of the request that was sent just then"
    assert said.former_throughput_s == pytest.approx(0.0)
    assert said.lost_work == pytest.approx(0, abs=1)


def test_the_drive_may_end_between_two_successes_without_that_being_an_outage() -> None:
    assert not found(steady(0, 29_500), until_s=29.9).interrupted


@pytest.mark.parametrize(
    ("attempts", "struck_ns"),
    [([], STRUCK), (steady(0, 10_000, ok=False), STRUCK), (steady(0, 9_000), 0), (steady(0, 9_000), 40 * S)],
)
def test_without_successes_before_the_fault_there_is_nothing_to_go_by(attempts: list[Attempt], struck_ns: int) -> None:
    assert outage(attempts, from_ns=0, struck_ns=struck_ns, until_ns=30 * S, late_s=1.0) is None


@given(
    gap_ms=st.integers(min_value=50, max_value=8000),
    after_ms=st.integers(min_value=0, max_value=2000),
    every_ms=st.sampled_from([1, 5, 10, 20]),
)
def test_a_gap_of_any_length_is_found_where_it_was_put(gap_ms: int, after_ms: int, every_ms: int) -> None:
    begin, end = 10_000 + after_ms, 10_000 + after_ms + gap_ms
    attempts = [*steady(0, begin, every_ms=every_ms, takes_ms=1), *steady(end, 25_000, every_ms=every_ms, takes_ms=1)]
    said = found(attempts, until_s=25)
    assert said.outage_s is not None
    assert math.isclose(said.outage_s, gap_ms / 1000, abs_tol=(every_ms + 1) / 1000)
    assert said.first_success_s == pytest.approx((end - 10_000 + 1) / 1000)
