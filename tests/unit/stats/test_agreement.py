"""Kendall's tau is that of the published examples and of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dyno import stats
from dyno.stats import agreement

# M. Hollander, D. A. Wolfe, Nonparametric Statistical Methods, 1973, page 187: lightness of canned tuna and a panel's
# scores; R's help page of cor.test gives T = 26, p = 0.1194 and tau = 0.4444444.
LIGHTNESS = (44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1)
PANEL = (2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8)


def test_tau_and_p_are_those_that_r_prints() -> None:
    found = stats.kendall(LIGHTNESS, PANEL)
    assert found.tau == pytest.approx(0.4444444, abs=5e-8)
    assert found.p == pytest.approx(0.1194, abs=5e-5)
    assert (found.n, found.method) == (9, agreement.EXACT)


def test_tau_with_ties_is_that_of_scipy_s_documentation() -> None:
    # scipy.stats.kendalltau prints 0.2827 for p, which is the approximation; five items can be counted out.
    found = stats.kendall([12, 2, 1, 12, 2], [1, 4, 7, 1, 0])
    assert found.tau == pytest.approx(-0.47140452079103173)
    signs = [np.sign(np.subtract.outer(side, side)) for side in ([12, 2, 1, 12, 2], [1, 4, 7, 1, 0])]
    expected = scipy_stats.permutation_test(
        ([12, 2, 1, 12, 2],),
        lambda x: abs((np.sign(np.subtract.outer(x, x)) * signs[1]).sum()),
        permutation_type="pairings",
        n_resamples=np.inf,
        alternative="greater",
    ).pvalue
    assert found.p == pytest.approx(expected)


def test_many_items_with_ties_get_the_p_of_scipy() -> None:
    random = np.random.default_rng(1)
    x, y = random.integers(0, 8, 30), random.integers(0, 12, 30)
    expected = scipy_stats.kendalltau(x, y, method="asymptotic")
    found = stats.kendall(x, y)
    assert (found.tau, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.method == agreement.NORMAL


def test_counted_out_p_is_that_of_scipy_for_every_score() -> None:
    for seed in range(20):
        x, y = np.random.default_rng(seed).permuted(np.tile(np.arange(12.0), (2, 1)), axis=1)
        expected = scipy_stats.kendalltau(x, y, method="exact")
        assert stats.kendall(x, y).p == pytest.approx(expected.pvalue)


def test_two_items_can_agree_but_show_nothing() -> None:
    assert stats.kendall([1.0, 2.0], [3.0, 4.0]) == stats.Agreement(1.0, 1.0, 2, agreement.EXACT)


def test_what_has_no_order_has_no_agreement() -> None:
    assert stats.kendall([1.0], [1.0]) is None
    assert stats.kendall([], []) is None
    assert stats.kendall([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    with pytest.raises(ValueError, match="got 2 and 3"):
        stats.kendall([1.0, 2.0], [1.0, 2.0, 3.0])
