"""What a fault cost those who asked, on attempts whose outage is known by how they were made."""

from __future__ import annotations

import math
import random

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


def found(
    attempts: list[Attempt], *, mended_s: float | None = None, until_s: float = 30, late_s: float = 1.0
) -> Outage:
    said = outage(
        attempts,
        from_ns=0,
        struck_ns=STRUCK,
        mended_ns=None if mended_s is None else round(mended_s * S),
        until_ns=round(until_s * S),
        late_s=late_s,
    )
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


def half_served(start_ms: int, end_ms: int) -> list[Attempt]:
    """100 requests a second, every other of which fails."""
    return [*steady(start_ms, end_ms, every_ms=20), *steady(start_ms + 10, end_ms, every_ms=20, ok=False)]


def test_a_service_that_comes_back_by_and_by_is_back_when_95_of_100_requests_of_a_second_are_answered_in_time() -> None:
    said = found([*steady(0, 10_000), *half_served(12_000, 16_000), *steady(16_000, 30_000)])
    assert said.first_success_s == pytest.approx(2.002)
    # Of 100 requests due in the second from 15.9 s on the 5 that fail are among the 10 of its first 0.1 s.
    assert said.former_throughput_s == pytest.approx(5.9)
    # Done by then: 3.9 s of 50 a second, of which the last is at 15.882 s.
    assert said.lost_work == pytest.approx(590 - 195)


def test_a_backlog_that_is_worked_off_in_a_burst_is_no_throughput_that_came_back() -> None:
    """400 requests that were due in the outage are answered at its end; those that are due then fail for 3 s more."""
    burst = [Attempt(at, 14_000 * MS, 14_001 * MS + at % 1000, True) for at in range(10_000 * MS, 14_000 * MS, 10 * MS)]
    said = found([*steady(0, 10_000), *burst, *half_served(14_000, 17_000), *steady(17_000, 30_000)])
    assert said.first_success_s == pytest.approx(4.001)
    assert said.former_throughput_s == pytest.approx(6.9)


def test_a_second_that_is_as_before_by_luck_is_not_enough() -> None:
    """From 12 s on all is served for 1.5 s, and then every other fails for 2.5 s."""
    lucky = [*steady(12_000, 13_500), *half_served(13_500, 16_000)]
    said = found([*steady(0, 10_000), *lucky, *steady(16_000, 30_000)])
    assert said.first_success_s == pytest.approx(2.002)
    assert said.former_throughput_s == pytest.approx(5.9)


def test_requests_that_are_answered_later_than_late_are_not_served_as_before() -> None:
    slow = steady(10_000, 14_000, takes_ms=700)
    attempts = [*steady(0, 10_000), *slow, *steady(14_000, 30_000)]
    assert found(attempts, late_s=1.0).former_throughput_s == pytest.approx(0.702, abs=0.011)
    # With 5 of 100 that are late, the second from 13.95 s on is the first that is as before.
    assert found(attempts, late_s=0.5).former_throughput_s == pytest.approx(3.95)


def test_a_service_that_never_is_as_before_has_lost_as_much_as_was_seen_at_the_least() -> None:
    said = found([*steady(0, 10_000), *half_served(12_000, 30_000)])
    assert said.first_success_s == pytest.approx(2.002)
    assert said.former_throughput_s is None
    assert said.lost_work == pytest.approx(2000 - 900)


def two_gaps(first_ms: tuple[int, int], second_ms: tuple[int, int]) -> list[Attempt]:
    """100 requests a second for 30 s, of which those in two times fail."""
    (a, b), (c, d) = first_ms, second_ms
    served = [*steady(0, a), *steady(b, c), *steady(d, 30_000)]
    return [*served, *steady(a, b, ok=False), *steady(c, d, ok=False)]


def test_an_interruption_after_mending_is_that_of_the_node_that_comes_back() -> None:
    """1.4 s until another took over, and 5 s at 22 s as the node is given its data again."""
    said = found(two_gaps((10_000, 11_400), (22_000, 27_000)), mended_s=20)
    assert said.outage_s == said.first_success_s == pytest.approx(1.402)
    assert said.rejoin_outage_s == pytest.approx(5.010), "from the last success at 21.992 s to 27.002 s"
    assert said.rejoin_at_least_s is None
    assert [length for _, length in said.interruptions] == pytest.approx([1.402])


def test_of_two_interruptions_before_mending_the_longest_is_the_outage_and_both_are_told() -> None:
    said = found(two_gaps((10_000, 11_400), (14_000, 17_000)), mended_s=20)
    assert said.outage_s == pytest.approx(3.010)
    assert said.first_success_s == pytest.approx(7.002)
    assert said.interruptions == (
        (pytest.approx(0), pytest.approx(1.402)),
        (pytest.approx(3.992), pytest.approx(3.010)),
    )
    assert said.rejoin_outage_s == pytest.approx(0.010)


def test_an_interruption_that_only_mending_ends_is_the_outage_and_what_is_left_of_it_that_of_the_return() -> None:
    """A primary that stands still from 10 s to 14 s and that nobody replaces; it answers 0.5 s later."""
    said = found([*steady(0, 10_000), *steady(10_000, 14_500, ok=False), *steady(14_500, 30_000)], mended_s=14)
    assert said.outage_s == pytest.approx(4.502)
    assert said.rejoin_outage_s == pytest.approx(0.502)


def test_a_hiccup_before_a_fault_bites_is_not_taken_for_the_outage() -> None:
    """A full disk is noticed 3 s later; 50 ms without a success come before, and are more than twice the usual 10."""
    said = found(two_gaps((11_000, 11_050), (13_000, 19_000)), mended_s=25)
    assert said.outage_s == pytest.approx(6.010)
    assert said.first_success_s == pytest.approx(9.002)
    assert len(said.interruptions) == 2


def test_the_driver_may_end_while_nothing_succeeds_after_mending() -> None:
    said = found(two_gaps((10_000, 11_400), (22_000, 30_000)), mended_s=20)
    assert said.outage_s == pytest.approx(1.402)
    assert said.rejoin_outage_s is None
    assert said.rejoin_at_least_s == pytest.approx(8.008)


def test_what_is_mended_when_the_driver_has_ended_cost_nobody_anything_by_coming_back() -> None:
    said = found(two_gaps((10_000, 11_400), (22_000, 27_000)), mended_s=31)
    assert said.outage_s == pytest.approx(5.010)
    assert (said.rejoin_outage_s, said.rejoin_at_least_s) == (None, None)


def test_an_outage_that_does_not_end_has_a_length_that_was_seen_and_no_other() -> None:
    said = found([*steady(0, 10_000), *steady(10_000, 30_000, ok=False)])
    assert (said.outage_s, said.first_success_s, said.former_throughput_s) == (None, None, None)
    assert said.interrupted
    assert said.at_least_s == pytest.approx(20.0)
    assert said.lost_work == pytest.approx(2000)


def down_again(*, from_ms: int, until_ms: int) -> list[Attempt]:
    """Nothing from 10 s to 20 s, service until `from_ms`, and then nothing until the driver ends."""
    served = [*steady(0, 10_000), *steady(20_000, from_ms)]
    return [*served, *steady(10_000, 20_000, ok=False), *steady(from_ms, until_ms, ok=False)]


def test_an_outage_that_was_not_over_at_the_end_is_not_known_though_an_earlier_one_was_longer() -> None:
    said = found(down_again(from_ms=21_000, until_ms=30_900), until_s=30.9)
    assert (said.outage_s, said.first_success_s, said.former_throughput_s) == (None, None, None)
    assert said.at_least_s == pytest.approx(10.002), "the longest that was seen"
    assert said.first_success_at_least_s == pytest.approx(10.002), "the first may be the longest after all"
    assert said.interruptions == (
        (pytest.approx(0), pytest.approx(10.002)),
        (pytest.approx(10.992), pytest.approx(9.908)),
    )


def test_one_that_is_seen_to_be_the_longest_has_its_end_after_all_that_was_watched() -> None:
    said = found(down_again(from_ms=21_000, until_ms=35_000), until_s=35)
    assert said.at_least_s == pytest.approx(14.008)
    assert said.first_success_at_least_s == pytest.approx(25)
    assert said.former_throughput_at_least_s == pytest.approx(23)


def test_a_short_one_at_the_end_stands_out_as_it_would_before_it_where_somebody_asked() -> None:
    said = found([*steady(0, 29_500), *steady(29_500, 29_900, ok=False)], until_s=29.9)
    assert said.interrupted
    assert said.outage_s is None


def test_what_a_return_costs_is_not_known_where_it_was_down_again_at_the_end() -> None:
    """5 s from 20 s on, 1 s of service and 4 s of nothing: it may have become more than 5 s."""
    said = found(two_gaps((20_000, 25_000), (26_000, 30_000)), mended_s=15)
    assert said.outage_s == pytest.approx(0.010)
    assert said.rejoin_outage_s is None
    assert said.rejoin_at_least_s == pytest.approx(5.010)


@pytest.mark.parametrize("most_per_s", [500, 250, 200, 150, 125])
def test_the_slower_a_backlog_is_worked_off_the_more_work_is_lost(most_per_s: int) -> None:
    """100 requests a second, of which those of 4 s and those behind them are answered one after the other."""
    each_ms = 1000 / most_per_s
    lost = [found(worked_off(each), until_s=60).lost_work for each in (each_ms, each_ms * 0.9)]
    assert lost[0] > lost[1] > 400 - 100, "those that are due in the last second of the outage are in time"


def worked_off(each_ms: float) -> list[Attempt]:
    attempts, free_ms = steady(0, 10_000), 14_000.0
    for due_ms in range(10_000, 60_000, 10):
        free_ms = max(free_ms, due_ms) + each_ms
        attempts.append(Attempt(due_ms * MS, due_ms * MS, round(free_ms * MS), True))
    return attempts


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
    assert outage(attempts, from_ns=0, struck_ns=struck_ns, mended_ns=None, until_ns=30 * S, late_s=1.0) is None


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


def test_a_service_that_is_interrupted_again_before_mending_is_not_as_before_until_after_that() -> None:
    # It counted as back after the first: what the second cost was in no figure but that of failed requests.
    attempts = two_gaps((10_000, 15_000), (18_000, 22_900))
    said = found(attempts, mended_s=26)
    assert said.outage_s == pytest.approx(5.002)
    assert said.former_throughput_s == pytest.approx(12.9, abs=0.06)
    assert said.lost_work == pytest.approx(990, abs=6)


@pytest.mark.parametrize("takes_s", [0.20, 0.22])
def test_a_service_that_is_slowed_down_is_not_as_before_while_its_queue_still_grows(takes_s: float) -> None:
    """50 requests a second by 8 clients, each of which takes so long from the fault on until mending, 20 s later."""
    free = [0.0] * 8
    attempts = []
    for number in range(3000):
        due = number / 50
        client = min(range(8), key=free.__getitem__)
        sent = max(due, free[client])
        free[client] = sent + (takes_s if 10 <= sent < 30 else 0.002)
        attempts.append(Attempt(round(due * S), round(sent * S), round(free[client] * S), ok=True))
    said = found(attempts, mended_s=30, until_s=60)
    assert said.former_throughput_s is not None
    assert 17 < said.former_throughput_s < 25
    assert said.lost_work > 500


def test_what_mending_does_to_requests_is_not_of_the_fault() -> None:
    """Back after 2 s; the node that comes back holds everybody up for a second from mending on."""
    held = [Attempt(at, at, 21_500 * MS, True) for at in range(20_000 * MS, 21_500 * MS, 10 * MS)]
    attempts = [*steady(0, 10_000), *steady(12_000, 20_000), *held, *steady(21_500, 30_000)]
    assert found(attempts, mended_s=20).former_throughput_s == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize(("rate", "late_share"), [(20, 0.03), (50, 0.01), (50, 0.1), (200, 0.1)])
def test_a_service_that_the_fault_does_not_touch_is_as_before_at_once_though_some_of_its_answers_are_late(
    rate: int, late_share: float
) -> None:
    # The last second that fell short by chance had decided, which with some late answers is one just before mending.
    found_s = []
    for seed in range(20):
        drawn = random.Random(seed)
        every = S // rate
        attempts = [
            Attempt(at, at, at + (1500 if drawn.random() < late_share else 5) * MS, ok=True)
            for at in range(0, 60 * S, every)
        ]
        said = outage(attempts, from_ns=0, struck_ns=20 * S, mended_ns=40 * S, until_ns=60 * S, late_s=1.0)
        assert said is not None
        assert said.former_throughput_s is not None
        found_s.append(said.former_throughput_s)
    assert sorted(found_s)[17] < 1.0, "of twenty, eighteen"


def test_what_is_in_hand_at_the_end_is_no_relapse_where_mending_comes_later() -> None:
    attempts = [*steady(0, 30_000), Attempt(29_995 * MS, 29_995 * MS, 31_000 * MS, ok=False)]
    assert found(attempts, mended_s=32, late_s=0.5).former_throughput_s == pytest.approx(0.0, abs=0.02)
