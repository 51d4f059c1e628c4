"""One figure over many columns that were measured in the same blocks."""

from __future__ import annotations

import numpy as np
import pytest

from dyno import stats

MISSING = float("nan")


def test_whole_blocks_give_students_interval_of_their_means() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.05, (6, 5))
    found = stats.pooled_mean(values)
    of_blocks = values.mean(axis=1)
    assert (found.n, found.degrees, found.columns) == (6, 5.0, (0, 1, 2, 3, 4))
    low, high = found.shift().interval(0.95)
    assert (np.log(low), np.log(high)) == pytest.approx(stats.mean_interval(of_blocks, 0.95))


def test_what_hits_a_whole_block_counts_once_and_not_once_a_column() -> None:
    of_block = np.array([[-0.1], [0.0], [0.1], [0.05]])
    one, many = (stats.pooled_mean(np.repeat(of_block, columns, axis=1)) for columns in (1, 20))
    assert many.error == pytest.approx(one.error)


def test_each_column_weighs_alike_however_many_blocks_it_has() -> None:
    values = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, MISSING], [0.0, MISSING]])
    found = stats.pooled_mean(values)
    assert (found.centre, found.error, found.n) == (0.5, 0.0, 2)


def test_a_column_with_hardly_a_block_is_left_out() -> None:
    values = np.zeros((5, 3))
    values[2:, 1] = MISSING  # two of five
    values[1:, 2] = MISSING  # one
    assert stats.pooled_mean(values).columns == (0,)
    assert stats.pooled_mean(values[:1]) is None


@pytest.mark.parametrize(("missing", "shared"), [(0.0, 0.0), (0.0, 1.0), (0.1, 0.0), (0.1, 1.0), (0.3, 0.5)])
def test_intervals_hold_the_truth_as_often_as_they_claim(missing: float, shared: float) -> None:
    """With values missing at random, and with a part of the noise that all columns of a block share."""
    random = np.random.default_rng(7)
    held = counted = 0
    for _ in range(2000):
        noise = random.normal(size=(6, 8)) + shared * random.normal(size=(6, 1))
        noise[random.random(noise.shape) < missing] = MISSING
        found = stats.pooled_mean(noise + 0.3 + np.arange(8) / 10)
        truth = 0.3 + np.mean([column / 10 for column in found.columns])
        low, high = found.shift().interval(0.95)
        held += low <= np.exp(truth) <= high
        counted += 1
    assert held / counted > 0.938  # 2.5 standard errors below 0.95


def test_values_without_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="blocks, columns"):
        stats.pooled_mean(np.zeros(3))
