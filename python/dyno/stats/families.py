"""A family of tests: p-values raised so that the chance of even one false alarm among all of them stays as claimed."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's adjusted p-values, in the order given; a missing one (None) stays None and is not counted.

    With the m that are there in rising order, the adjusted p of the i-th is max over j <= i of min(1, (m - j + 1) p_j)
    (S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979). It
    assumes nothing about how the tests hang together, and never claims less than Bonferroni's m p.

    Raises ValueError for a p outside [0, 1].
    """
    present = [(p, i) for i, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(sorted(present)):
        if not 0 <= p <= 1:
            raise ValueError(f"a p-value lies between 0 and 1, got {p}")
        largest = max(largest, min(1.0, (len(present) - rank) * p))
        adjusted[i] = largest
    return tuple(adjusted)
