"""Contributions over all feasible orders: worked examples of the literature, and what holds of every game."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.stats import shapley

PARTS = ("a", "b", "c", "d")


def subsets(parts: tuple[str, ...]) -> list[frozenset[str]]:
    return [frozenset(chosen) for size in range(len(parts) + 1) for chosen in combinations(parts, size)]


def test_the_runway_is_shared_as_littlechild_and_owen_share_it() -> None:
    # S. C. Littlechild, G. Owen, A simple expression for the Shapley value in a special case, 1973: a runway as long as
    # the largest aircraft needs; each stretch is shared by those that need it.
    costs = {"small": 12.0, "middle": 28.0, "large": 30.0}
    worth = {each: max((costs[part] for part in each), default=0.0) for each in subsets(tuple(costs))}
    found = shapley(tuple(costs), worth)
    assert found["small"].mean == pytest.approx(12 / 3)
    assert found["middle"].mean == pytest.approx(12 / 3 + 16 / 2)
    assert found["large"].mean == pytest.approx(12 / 3 + 16 / 2 + 2)
    assert (found["large"].least, found["large"].most) == (2.0, 30.0)


def test_of_one_feasible_order_each_part_has_its_marginal() -> None:
    chain = {"b": {"a"}, "c": {"b"}}
    worth = {frozenset("abc"): 10.0, frozenset("bc"): 7.0, frozenset("c"): 1.0, frozenset[str](): 0.0}
    found = shapley(("a", "b", "c"), worth, chain)
    assert {part: each.mean for part, each in found.items()} == {"a": 3.0, "b": 6.0, "c": 1.0}
    assert all(each.least == each.mean == each.most for each in found.values())


def test_parts_that_wait_for_each_other_have_no_order() -> None:
    with pytest.raises(ValueError, match="no order"):
        shapley(("a", "b"), {}, {"a": {"b"}, "b": {"a"}})


@given(st.lists(st.floats(-1e6, 1e6), min_size=16, max_size=16), st.booleans())
def test_the_mean_over_all_orders_taken_one_by_one_is_the_same(values: list[float], constrained: bool) -> None:
    worth = dict(zip(subsets(PARTS), values, strict=True))
    after = {"d": frozenset({"a", "b"})} if constrained else {}
    marginals: dict[str, list[float]] = {part: [] for part in PARTS}
    for order in permutations(PARTS):
        if constrained and order.index("d") < max(order.index("a"), order.index("b")):
            continue
        left = frozenset(PARTS)
        for part in order:
            marginals[part].append(worth[left] - worth[left - {part}])
            left -= {part}
    found = shapley(PARTS, worth, after)
    for part, each in found.items():
        assert each.mean == pytest.approx(sum(marginals[part]) / len(marginals[part]), abs=1e-3)
        assert (each.least, each.most) == (min(marginals[part]), max(marginals[part]))
    total = worth[frozenset(PARTS)] - worth[frozenset()]
    assert math.isclose(sum(each.mean for each in found.values()), total, abs_tol=1e-3)
