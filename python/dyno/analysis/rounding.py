"""Figures that are the same on every machine.

The last digits of what linear algebra and iteration give depend on the processor's instructions, and a results folder
has to give the same findings byte for byte wherever it is copied to.
"""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[float, float]


def rounded(value: float, digits: int = 10) -> float:
    """To so many significant digits."""
    return float(f"{value:.{digits}g}")


def maybe_rounded(value: float | None, digits: int = 10) -> float | None:
    """To so many significant digits, where there is a value."""
    return None if value is None else rounded(value, digits)


def rounded_interval(interval: Interval | None, digits: int = 10) -> Interval | None:
    """Both ends to so many significant digits, where there are any."""
    return None if interval is None else (rounded(interval[0], digits), rounded(interval[1], digits))


def in_logs(values: Iterable[float]) -> tuple[float, ...]:
    """Differences of logs to a millionth, which is 0.0001 % of the value; 0 has no sign."""
    return tuple(round(float(value), 6) + 0.0 for value in values)
