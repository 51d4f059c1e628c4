"""Quantities a person writes with a unit, held as plain numbers in base units.

`Size` is bytes, `Bandwidth` is bytes a second, `Duration` is seconds, `Share` is a fraction of one. A bare number is
refused, since its unit would be a guess; 0 needs none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%]*(?:/s)?)")
_MAX_LENGTH = 400  # of the text; the smallest float takes 345 when written out, longer ones are only costly to look at

# Decimal prefixes are powers of 1000 and binary ones of 1024 (IEC 80000-13); the bare K, M, G, T of servers' own
# configuration files are not taken, since programs disagree on what they mean.
SIZE_UNITS = {
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}
DURATION_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _parse(value: object, units: dict[str, float] | dict[str, int], what: str, example: str) -> float:
    known = ", ".join(units)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{what} is a number with a unit, such as {example}")
    text = str(value).strip()
    match = _NUMBER.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(f"{value!r} is not {what}: write a number with a unit, such as {example} (units: {known})")
    number, unit = match.groups()
    if unit in units:
        # In decimal, so that 700 ms is 0.7 and 95% is 0.95 and nothing near them.
        amount = float(Decimal(number) * Decimal(str(units[unit])))
        if not math.isfinite(amount):
            raise ValueError(f"{value!r} is too large")
        return amount
    if not unit:
        if float(number) == 0:
            return 0.0
        raise ValueError(f"{value!r} has no unit: write it as {_with_unit(number, units)} (units: {known})")
    raise ValueError(f"{value!r} has an unknown unit {unit!r} (units: {known})")


def _with_unit(number: str, units: Mapping[str, object]) -> str:
    """The number with the units that were most likely meant."""
    if "%" in units:
        return f"{Decimal(number) * 100 if Decimal(number) <= 1 else Decimal(number):f}%"
    if "MiB/s" in units:
        return f"{number} MiB/s"
    return f"{number} s or {number} ms" if "ms" in units else f"{number} B or {number} MiB"


def parse_size(value: object) -> int:
    """Bytes of a size such as `8 GiB`. Raises ValueError."""
    return round(_parse(value, SIZE_UNITS, "a size", "8 GiB"))


def parse_bandwidth(value: object) -> int:
    """Bytes a second of a bandwidth such as `4 MiB/s`. Raises ValueError."""
    units = {f"{unit}/s": factor for unit, factor in SIZE_UNITS.items()}
    return round(_parse(value, units, "a bandwidth", "4 MiB/s"))


def parse_duration(value: object) -> float:
    """Seconds of a duration such as `60 min`. Raises ValueError."""
    return _parse(value, DURATION_UNITS, "a duration", "60 min")


def parse_share(value: object) -> float:
    """The fraction of a share such as `5%` (0.05). Raises ValueError."""
    return _parse(value, {"%": 0.01}, "a share", "5%")


def counted(n: int, what: str) -> str:
    """`1 run`, `6 runs`."""
    return f"{n} {what}" if n == 1 else f"{n:,} {what}s"


def format_percent(share: float) -> str:
    """A share that was asked for, in per cent: as it was written, and never with an exponent."""
    return f"{Decimal(f'{share * 100:.6g}'):,f}%"


def format_size(size: float) -> str:
    """Bytes in the largest binary unit that leaves at least 1, three significant digits."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{amount:.3g} {unit}" if abs(amount) < 999.5 else f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB" if abs(amount) < 999.5 else f"{amount:.0f} TiB"


def format_duration(duration: float) -> str:
    """Seconds as a person says them: `850 ms`, `42 s`, `12 min 5 s`, `3 h 20 min`."""
    if duration < 1:
        return f"{duration * 1000:.0f} ms"
    whole = round(duration)
    if whole < 60:
        return f"{duration:.1f} s" if duration < 10 else f"{whole} s"
    hours, rest = divmod(whole, 3600)
    minutes, seconds = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"


def _written_size(size: int) -> str:
    return f"{size} B"


def _written_bandwidth(bandwidth: int) -> str:
    return f"{bandwidth} B/s"


def _written_duration(duration: float) -> str:
    return f"{Decimal(repr(duration)):f} s"


def _written_share(share: float) -> str:
    return f"{Decimal(repr(share)) * 100:f}%"


def _schema(what: str, pattern: str, examples: list[str]) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": ["string", "integer"], "pattern": pattern, "description": what, "examples": examples}
    )


Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(_written_size, when_used="json"),
    _schema("a size with a unit", r"^\s*([0-9.]+\s*(B|[kKMGT]B|[KMGT]iB)|0)\s*$", ["8 GiB", "512 MiB"]),
]
Bandwidth = Annotated[
    int,
    BeforeValidator(parse_bandwidth),
    PlainSerializer(_written_bandwidth, when_used="json"),
    _schema("a bandwidth with its unit", r"^\s*([0-9.]+\s*(B|[kKMGT]B|[KMGT]iB)/s)\s*$", ["4 MiB/s", "200 MB/s"]),
]
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(_written_duration, when_used="json"),
    _schema("a duration with a unit", r"^\s*([0-9.]+\s*(us|ms|s|min|h|d)|0)\s*$", ["60 min", "500 ms"]),
]
Share = Annotated[
    float,
    BeforeValidator(parse_share),
    PlainSerializer(_written_share, when_used="json"),
    _schema("a share in per cent", r"^\s*([0-9.]+\s*%|0)\s*$", ["5%", "95%"]),
]
PositiveDuration = Annotated[Duration, Field(gt=0)]
