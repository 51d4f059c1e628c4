"""Which of several is the best: named only beyond all others, and never left out but with the error that is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from dyno import stats

NAN = float("nan")


def square(size: int, ahead: dict[tuple[int, int], float]) -> np.ndarray:
    """One-sided p of the first being no better than the second; of the second the rest."""
    made = np.full((size, size), NAN)
    for (one, other), p in ahead.items():
        made[one, other], made[other, one] = p, 1 - p
    return made


def test_one_that_beats_each_other_is_named_by_the_weakest_of_its_tests() -> None:
    unit = square(3, {(0, 1): 0.006, (0, 2): 0.0001, (1, 2): 0.2})
    (found,) = stats.best_of([unit], [1.0], 0.05)
    # By hand: 0.006, twice for two sides, and twice since naming has one half of the error.
    assert (found.best, found.could_be) == (0, (0,))
    assert found.p == pytest.approx(0.024)


def test_no_more_tests_are_paid_for_however_many_are_beaten() -> None:
    several = square(5, {(0, other): 0.006 for other in range(1, 5)} | {(1, 2): 0.3, (1, 3): 0.3, (1, 4): 0.3})
    assert stats.best_of([several], [1.0], 0.05)[0].p == pytest.approx(0.024)


def test_what_is_not_named_keeps_all_that_are_not_shown_to_be_worse() -> None:
    unit = square(3, {(0, 1): 0.2, (0, 2): 0.001, (1, 2): 0.002})
    (found,) = stats.best_of([unit], [1.0], 0.05)
    assert (found.best, found.could_be) == (None, (0, 1))
    # Of the last: two tests speak of it, and leaving out has one half of the error.
    assert stats.best_of([unit], [1.0], 0.0041)[0].could_be == (0, 1)
    assert stats.best_of([unit], [1.0], 0.0039)[0].could_be == (0, 1, 2)


def test_each_of_several_units_has_its_share_and_what_is_named_leaves_more_to_the_others() -> None:
    sure, close = square(2, {(0, 1): 1e-6}), square(2, {(1, 0): 0.02})
    alone, both = stats.best_of([close], [1.0], 0.2), stats.best_of([sure, close], [0.5, 0.5], 0.2)
    assert alone[0].p == pytest.approx(0.04)  # of two, the other is left when one is out: 2 x 0.02
    assert both[1].p == pytest.approx(0.08)
    assert (both[0].best, both[1].best) == (0, 1)
    heavier = stats.best_of([sure, close], [0.2, 0.8], 0.2)
    assert heavier[1].p == pytest.approx(0.05)


def test_one_that_is_not_held_against_all_is_not_named_but_may_be_all_that_is_left() -> None:
    chain = square(3, {(0, 1): 1e-6, (1, 2): 1e-6})
    assert stats.best_of([chain], [1.0], 0.05)[0].best == 0
    apart = square(3, {(0, 1): 1e-6})
    assert stats.best_of([apart], [1.0], 0.05)[0].could_be == (0, 2)


def test_a_circle_leaves_all() -> None:
    circle = square(3, {(0, 1): 1e-6, (1, 2): 1e-6, (2, 0): 1e-6})
    (found,) = stats.best_of([circle], [1.0], 0.05)
    assert (found.best, found.p, found.could_be) == (None, None, (0, 1, 2))


def test_nothing_to_decide_decides_nothing() -> None:
    assert stats.best_of([], [], 0.05) == []
    (empty,) = stats.best_of([np.empty((0, 0))], [1.0], 0.05)
    assert (empty.best, empty.could_be) == (None, ())


@pytest.mark.parametrize(("units", "weights"), [([np.zeros((2, 3))], [1.0]), ([np.zeros((2, 2))], [])])
def test_what_is_no_unit_is_refused(units, weights) -> None:
    with pytest.raises(ValueError, match=r"square|weights"):
        stats.best_of(units, weights, 0.05)
