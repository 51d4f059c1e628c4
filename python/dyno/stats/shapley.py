"""What each of several parts contributes to a whole, over all orders in which they can be taken away.

The Shapley value (L. S. Shapley, A value for n-person games, 1953) of a cooperative game under precedence constraints
(U. Faigle, W. Kern, The Shapley value for cooperative games under precedence constraints, Int. J. Game Theory 21,
1992): the mean of a part's marginal contributions over all orders that are feasible, each as likely as any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Contribution:
    """Of one part: its Shapley value, and the least and the most that it contributes in any feasible order."""

    mean: float
    least: float
    most: float


def shapley(
    parts: Sequence[str],
    worth: Mapping[frozenset[str], float],
    only_after: Mapping[str, Set[str]] | None = None,
) -> dict[str, Contribution]:
    """Of each of the `parts`, which are taken away one by one from the whole until none is left.

    `worth` is of each set of parts that can be left on a way; `only_after` says of a part which others must have gone
    before. The means add up to what the whole is worth more than nothing. Raises ValueError where no order is feasible,
    KeyError where the worth of a set is missing.
    """
    before = {part: frozenset(only_after.get(part, frozenset()) if only_after else frozenset()) for part in parts}
    whole = frozenset(parts)

    def removable(left: frozenset[str]) -> list[str]:
        return [part for part in parts if part in left and not before[part] & left]

    @cache
    def ways_down(left: frozenset[str]) -> int:
        """Orders in which what is left can be taken away."""
        return 1 if not left else sum(ways_down(left - {part}) for part in removable(left))

    orders = ways_down(whole)
    if not orders:
        raise ValueError("there is no order in which all parts can be taken away")
    # How many orders come to what is left; from the whole on, a size at a time.
    arriving: dict[frozenset[str], int] = {whole: 1}
    means = dict.fromkeys(parts, 0.0)
    found: dict[str, list[float]] = {part: [] for part in parts}
    for _ in parts:
        after: dict[frozenset[str], int] = {}
        for left, ways in arriving.items():
            for part in removable(left):
                rest = left - {part}
                through = ways * ways_down(rest)
                if not through:
                    continue  # a way that ends before all is gone
                after[rest] = after.get(rest, 0) + ways
                marginal = worth[left] - worth[rest]
                means[part] += marginal * (through / orders)
                found[part].append(marginal)
        arriving = after
    return {part: Contribution(means[part], min(found[part]), max(found[part])) for part in parts}
