"""Picking the best of several: against scipy's t test and Holm by hand, and what must not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gmean, ttest_rel

from dyno import stats

NAN = math.nan
VALUES = np.array([[100.0, 120.0, 118.0], [104.0, 121.0, 115.0], [98.0, 117.0, 119.0], [101.0, 125.0, 116.0]])


def pick(values, *, higher=True, confidence=0.95, looks=1, out_after=2) -> stats.Pick:
    return stats.pick_best(
        [np.array(values, dtype=float)], higher=higher, confidence=confidence, looks=looks, out_after=out_after
    )[0]


def test_the_highest_geometric_mean_is_picked_and_the_runner_up_stands_first() -> None:
    found = pick(VALUES)
    assert found.best == 1
    assert found.means == pytest.approx(tuple(gmean(VALUES)))
    assert list(found.rivals) == [2, 0]


def test_p_values_are_those_of_scipys_paired_t_on_logs_and_then_holms() -> None:
    logs = np.log(VALUES)
    raw = {place: ttest_rel(logs[:, 1], logs[:, place]).pvalue for place in (0, 2)}
    found = pick(VALUES)
    assert raw[0] < raw[2]
    assert found.rivals[0].p == pytest.approx(2 * raw[0])
    assert found.rivals[2].p == pytest.approx(raw[2])
    interval = ttest_rel(logs[:, 1], logs[:, 2]).confidence_interval(0.95)
    assert (found.rivals[2].lo, found.rivals[2].hi) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))


def test_each_look_has_its_share_of_the_error() -> None:
    once, often = pick(VALUES), pick(VALUES, looks=4)
    assert often.rivals[0].p == pytest.approx(4 * once.rivals[0].p)
    interval = ttest_rel(np.log(VALUES[:, 1]), np.log(VALUES[:, 0])).confidence_interval(1 - 0.05 / 4)
    assert often.rivals[0].lo == pytest.approx(math.exp(interval.low))


def test_the_lowest_is_picked_where_lower_is_better() -> None:
    found = pick(VALUES, higher=False)
    assert (found.best, list(found.rivals)) == (0, [2, 1])
    assert found.rivals[1].ratio < 1
    assert found.could_be == 1


def test_what_is_not_shown_to_be_worse_could_be_the_best() -> None:
    found = pick(VALUES)
    assert {place: rival.worse for place, rival in found.rivals.items()} == {0: True, 2: False}
    assert found.could_be == 2


def test_holm_is_over_all_groups_together() -> None:
    alone = pick(VALUES).rivals[0].p
    both = stats.pick_best([VALUES, VALUES], higher=True, confidence=0.95, looks=1, out_after=2)
    assert both[0].rivals[0].p == pytest.approx(2 * alone)


def test_a_candidate_without_a_value_in_the_last_blocks_is_out_however_good_it_was() -> None:
    values = VALUES.copy()
    values[2:, 1] = NAN
    found = pick(values)
    assert (found.best, found.means[1], list(found.rivals)) == (2, None, [0])
    values[3, 1] = 125.0
    assert pick(values).best == 1


def test_a_candidate_with_a_value_of_0_is_out() -> None:
    values = VALUES.copy()
    values[0, 1] = 0.0
    assert pick(values).best == 2
    assert pick(np.zeros((3, 2))).best is None


def test_of_candidates_that_all_failed_none_is_picked() -> None:
    found = pick(np.full((3, 2), NAN))
    assert (found.best, found.could_be, found.rivals) == (None, 0, {})


def test_one_block_picks_and_shows_nothing() -> None:
    found = pick([[3.0, 5.0]])
    assert (found.best, found.could_be) == (1, 2)
    assert (found.rivals[0].ratio, found.rivals[0].lo, found.rivals[0].p) == (pytest.approx(5 / 3), None, None)


def test_runs_without_a_common_block_give_no_ratio() -> None:
    found = pick([[3.0, NAN], [NAN, 5.0]])
    assert (found.best, found.rivals[0].ratio, found.rivals[0].n) == (1, None, 0)


def test_a_pick_that_is_ahead_only_by_runs_that_its_rival_has_not_is_never_shown() -> None:
    # In the blocks in common the other is clearly better; the pick leads by a fast first block that it had alone.
    values = [[400.0, NAN], [100.0, 110.0], [101.0, 111.1], [99.0, 108.9], [100.0, 110.001]]
    found = pick(values)
    assert (found.best, found.rivals[1].p, found.could_be) == (0, 1.0, 2)


def test_the_first_of_equals_is_picked_and_not_shown() -> None:
    found = pick([[5.0, 5.0], [6.0, 6.0], [5.0, 5.0]])
    assert (found.best, found.could_be) == (0, 2)


POSITIVE = st.floats(1, 1000)
MATRICES = st.integers(2, 6).flatmap(
    lambda blocks: st.lists(st.lists(POSITIVE, min_size=3, max_size=3, unique=True), min_size=blocks, max_size=blocks)
)


@given(MATRICES, st.permutations(range(3)))
def test_the_order_of_the_candidates_does_not_matter(rows, order) -> None:
    values = np.array(rows)
    one, other = pick(values), pick(values[:, order])
    if len({round(mean, 9) for mean in one.means}) == 3:
        assert order[other.best] == one.best
        assert other.could_be == one.could_be


@given(MATRICES, st.floats(0.1, 10))
def test_a_block_that_is_slow_for_all_changes_neither_pick_nor_ratio(rows, factor) -> None:
    values = np.array(rows)
    one = pick(values)
    values[0] *= factor
    other = pick(values)
    if len({round(mean, 9) for mean in one.means}) == 3:
        assert other.best == one.best
        for place, rival in one.rivals.items():
            assert other.rivals[place].ratio == pytest.approx(rival.ratio)
            assert other.rivals[place].p == pytest.approx(rival.p, rel=1e-6, abs=1e-9)


@given(MATRICES)
def test_picking_the_lowest_is_picking_the_highest_of_the_reciprocals(rows) -> None:
    values = np.array(rows)
    lowest, highest = pick(values, higher=False), pick(1 / values)
    if len({round(mean, 9) for mean in lowest.means}) == 3:
        assert lowest.best == highest.best
        assert [rival.worse for rival in lowest.rivals.values()] == [rival.worse for rival in highest.rivals.values()]
