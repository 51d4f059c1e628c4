"""The interval of a counted share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno import stats


# R. G. Newcombe, Two-sided confidence intervals for the single proportion: comparison of seven methods, Statistics in
# Medicine 17, 1998, table I, method 3.
@pytest.mark.parametrize(
    ("hits", "of", "interval"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_it_is_that_of_newcombes_examples(hits: int, of: int, interval: tuple[float, float]) -> None:
    assert stats.share_interval(hits, of, 0.95) == pytest.approx(interval, abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))), st.floats(0.5, 0.999))
def test_it_holds_the_share_lies_between_0_and_1_and_mirrors(counted: tuple[int, int], confidence: float) -> None:
    hits, of = counted
    low, high = stats.share_interval(hits, of, confidence)
    assert 0 <= low <= hits / of <= high <= 1
    assert stats.share_interval(of - hits, of, confidence) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize(("hits", "of"), [(-1, 5), (6, 5), (0, 0)])
def test_a_count_that_is_none_is_refused(hits: int, of: int) -> None:
    with pytest.raises(ValueError, match="counted"):
        stats.share_interval(hits, of, 0.95)
