"""Many studies at once are judged as each of them alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dyno import stats


def test_every_row_has_the_figures_of_the_study_alone() -> None:
    random = np.random.default_rng(1)
    a, b = random.lognormal(0, 0.1, (5, 3, 6)), random.lognormal(0.05, 0.1, (5, 3, 6))
    b[0, 0] = 2 * a[0, 0]  # no noise at all, up to rounding
    b[0, 1] = a[0, 1]  # nor any difference
    found = stats.paired_ratios(a, b, 0.95)
    assert found is not None
    for at in np.ndindex(5, 3):
        alone = stats.paired_ratio(a[at], b[at], 0.95)
        assert (found.ratio[at], found.lo[at], found.hi[at]) == pytest.approx((alone.ratio, alone.lo, alone.hi))
        assert found.p[at] == pytest.approx(alone.p, rel=1e-9, abs=1e-30)
    assert found.p[0, 1] == 1.0


def test_every_row_is_adjusted_as_the_family_alone() -> None:
    p_values = np.random.default_rng(1).uniform(0, 0.3, (7, 2, 5)).round(2)  # with ties
    found = stats.holm_rows(p_values)
    for at in np.ndindex(7, 2):
        assert tuple(found[at]) == pytest.approx(stats.holm(p_values[at].tolist()))


def test_one_pair_has_no_interval_in_any_row() -> None:
    assert stats.paired_ratios([[1.0], [2.0]], [[1.0], [2.0]], 0.95) is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_what_has_no_log_is_refused(bad) -> None:
    with pytest.raises(ValueError, match="above 0"):
        stats.paired_ratios([[1.0, 2.0]], [[1.0, bad]], 0.95)
    with pytest.raises(ValueError, match="same shape"):
        stats.paired_ratios([[1.0, 2.0]], [1.0, 2.0], 0.95)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(bad) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        stats.holm_rows([0.5, bad])
