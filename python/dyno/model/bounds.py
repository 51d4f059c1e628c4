"""Bounds that a person writes, such as `< 5 ms` or `0.94 to 0.96`, and which intervals keep to them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_NUMBER = r"([0-9]{1,30}(?:\.[0-9]{1,30})?)"
_UNIT = r"([A-Za-z0-9/%]{0,20})"
_ONE_SIDE = re.compile(rf"(<=|>=|<|>)\s*{_NUMBER}\s*{_UNIT}")
_BETWEEN = re.compile(rf"{_NUMBER}\s+to\s+{_NUMBER}\s*{_UNIT}")
_BARE = re.compile(rf"=?\s*{_NUMBER}\s*{_UNIT}")

_BYTES = {
    "B": Fraction(1),
    "kB": Fraction(10**3),
    "MB": Fraction(10**6),
    "GB": Fraction(10**9),
    "KiB": Fraction(2**10),
    "MiB": Fraction(2**20),
    "GiB": Fraction(2**30),
}

# Units that measure the same, each in the first of its family. As fractions, so that 700 ms is 0.7 s and nothing near.
_FAMILIES: tuple[Mapping[str, Fraction], ...] = (
    {
        "s": Fraction(1),
        "ms": Fraction(1, 10**3),
        "us": Fraction(1, 10**6),
        "ns": Fraction(1, 10**9),
        "min": Fraction(60),
    },
    {
        "ops/s": Fraction(1),
        "requests/s": Fraction(1),
        "1/s": Fraction(1),
        "ops/min": Fraction(1, 60),
        "1/min": Fraction(1, 60),
    },
    {"1": Fraction(1), "%": Fraction(1, 100)},
    _BYTES,
    {f"{unit}/s": size for unit, size in _BYTES.items()},
)


@dataclass(frozen=True)
class Bound:
    """The values from `low` to `high`, in the unit that was asked for; an end that is not `closed` is not in it."""

    low: float
    high: float
    closed: bool
    text: str

    def holds(self, interval: tuple[float, float]) -> bool | None:
        """True where all of the interval is within the bound, False where none of it is, None where some is."""
        low, high = interval
        if self._above_low(low) and self._below_high(high):
            return True
        if not self._above_low(high) or not self._below_high(low):
            return False
        return None

    def _above_low(self, value: float) -> bool:
        return value >= self.low if self.closed else value > self.low

    def _below_high(self, value: float) -> bool:
        return value <= self.high if self.closed else value < self.high


def parse(text: object, unit: str) -> Bound:
    """A bound in `unit`, whatever unit of the same kind it was written in. Raises ValueError with the remedy."""
    said = " ".join(text.split()) if isinstance(text, str) else text
    example = f"< 5{_written(unit)}"
    if isinstance(said, str) and (side := _ONE_SIDE.fullmatch(said)):
        sign, number, given = side.groups()
        end = _converted(number, given, unit, said)
        low, high = (-math.inf, end) if sign.startswith("<") else (end, math.inf)
        return Bound(low, high, sign.endswith("="), said)
    if isinstance(said, str) and (both := _BETWEEN.fullmatch(said)):
        first, second, given = both.groups()
        low, high = _converted(first, given, unit, said), _converted(second, given, unit, said)
        if low >= high:
            raise ValueError(f"{said!r} is empty; write the smaller number first")
        return Bound(low, high, True, said)
    bare = _BARE.fullmatch(str(said)) if isinstance(said, (str, int, float)) and not isinstance(said, bool) else None
    if bare:
        number, given = bare.groups()
        plain = f"{number}{f' {given}' if given else _written(unit)}"
        raise ValueError(f"{said!r} says no side; write < {plain} or >= {plain}")
    raise ValueError(f"{said!r} is no bound; write <, <=, > or >= and a number with its unit, such as {example}")


def convert(value: float, given: str, unit: str) -> float:
    """A figure in `unit` that was given in another unit of its kind. Raises ValueError."""
    if given == unit:
        return value
    family = _family(unit)
    if given not in family:
        raise ValueError(f"unknown unit {given!r} (units: {', '.join(family)})")
    return value * float(family[given] / family[unit])


def _family(unit: str) -> Mapping[str, Fraction]:
    return next((family for family in _FAMILIES if unit in family), {unit: Fraction(1)})


def _written(unit: str) -> str:
    """How the unit stands behind a number: that of a plain number is not written."""
    return "" if unit == "1" else f" {unit}"


def _converted(number: str, given: str, unit: str, said: str) -> float:
    family = _family(unit)
    if not given and (unit == "1" or Fraction(number) == 0):
        return float(Fraction(number))
    if not given:
        raise ValueError(f"{said!r} has no unit; write it as {said} {unit}")
    if given not in family or given == "1":
        others = [name for name in family if name != "1"]
        raise ValueError(f"{said!r} is not in a unit of what it bounds (units: {', '.join(others)})")
    return float(Fraction(number) * family[given] / family[unit])
