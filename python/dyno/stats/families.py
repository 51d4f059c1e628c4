"""A family of tests: p-values raised so that the chance of even one false alarm among all of them stays as claimed."""

from __future__ import annotations

import math
from collections.abc import Sequence


def holm(p_values: Sequence[float | None], weights: Sequence[float] | None = None) -> tuple[float | None, ...]:
    """Holm's adjusted p-values, in the order given; a missing one (None) stays None and is not counted.

    With the m that are there in rising order, the adjusted p of the i-th is max over j <= i of min(1, (m - j + 1) p_j)
    (S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979). It
    assumes nothing about how the tests hang together, and never claims less than Bonferroni's m p.

    With `weights` (ibid., section 4) the p_j / w_j stand in rising order, and p_j / w_j times the weight of all that
    are not before it takes the place of (m - j + 1) p_j: a test of more weight is raised less.

    Raises ValueError for a p outside [0, 1], a weight that is not above 0, or another number of weights.
    """
    given = [1.0] * len(p_values) if weights is None else list(weights)
    if len(given) != len(p_values):
        raise ValueError(f"expected {len(p_values)} weights, got {len(given)}")
    if any(not weight > 0 for weight in given):
        raise ValueError("a weight is above 0")
    if any(p is not None and not 0 <= p <= 1 for p in p_values):
        raise ValueError(f"a p-value lies between 0 and 1, got {p_values}")
    present = sorted(
        (p / weight, i) for i, (p, weight) in enumerate(zip(p_values, given, strict=True)) if p is not None
    )
    left = math.fsum(given[i] for _, i in present)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for p, i in present:
        largest = max(largest, min(1.0, p * left))
        adjusted[i] = largest
        left -= given[i]
    return tuple(adjusted)
