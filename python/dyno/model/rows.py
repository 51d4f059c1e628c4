"""The rows of an answer in one form, whatever the store and its protocol gave them as; and when two rows are the same.

A value becomes null, a truth value, a text, a number (whole where it is, as 5.0 and 5 are one), a time `{"t": ns}` in
UTC, or what JSON has no number for, `{"f": "nan"}`. NULL is no NaN: a store that keeps one as the other answers
otherwise.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from dyno.model.answers import ColumnKind, Rows

UNITS_NS: Final = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
_EXACT = 2**53
_DIGITS = 12  # of a figure in a digest: what is beyond them differs with the order in which a store adds up
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?")


class NotATime(ValueError):
    """What stands in a column of times and is none."""


def in_one_form(rows: Sequence[Sequence[Any]], kinds: Sequence[ColumnKind | None], *, time_unit: str = "ns") -> Rows:
    """Rows with every value in its one form; `time_unit` is of whole numbers in a column of times. Raises NotATime."""
    unit = UNITS_NS[time_unit]
    return [[value_of(value, kind, unit) for value, kind in zip(row, kinds, strict=True)] for row in rows]


def value_of(value: Any, kind: ColumnKind | None, unit_ns: int = 1) -> Any:
    """One value; `kind` is what its column is said to hold. Raises NotATime."""
    if value is None:
        return None
    if kind == "time" or isinstance(value, (datetime, date)):
        return {"t": _ns(value, unit_ns)}
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float, Decimal)):
        return _number(value)
    if isinstance(value, timedelta):
        return _number(value.total_seconds())
    if isinstance(value, str):
        return _number_in(value) if kind == "number" else value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"x": bytes(value).hex()}
    return {"j": json.dumps(value, sort_keys=True, default=str)}


def dumped(rows: Rows) -> str:
    """As text, to be kept."""
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)


def digests(rows: Rows) -> tuple[str, str]:
    """Of the rows in their order, and of the same in any order; figures count to 12 digits."""
    in_order = hashlib.sha256()
    of_set = 0
    for row in rows:
        text = json.dumps([_rounded(value) for value in row], separators=(",", ":"), ensure_ascii=False).encode()
        in_order.update(text + b"\n")
        of_set = (of_set + int.from_bytes(hashlib.sha256(text).digest()[:16], "big")) % 2**128
    return in_order.hexdigest(), f"{of_set:032x}"


def same(a: Any, b: Any, relative: float, absolute: float) -> bool:
    """Whether two values in their one form are one: figures within a tolerance, all else exactly.

    Whole numbers are exact among themselves: a count that is off by one is off.
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if not (isinstance(a, (int, float)) and isinstance(b, (int, float))):
        return bool(a == b) and type(a) is type(b)
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return abs(a - b) <= max(relative * max(abs(a), abs(b)), absolute)


def shown(row: Sequence[Any]) -> str:
    """A row for people: `2016-01-01T00:00:00Z, host_0, 58`."""
    return ", ".join(map(_shown, row))


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Mapping):
        (key, inner), *_ = value.items()
        if key == "t":
            seconds, rest = divmod(int(inner), 10**9)
            fraction = f".{rest:09d}".rstrip("0").rstrip(".") if rest else ""
            return f"{(_EPOCH + timedelta(seconds=seconds)):%Y-%m-%dT%H:%M:%S}{fraction}Z"
        return str(inner)
    return repr(value) if isinstance(value, float) else str(value)


def _ns(value: Any, unit_ns: int) -> int:
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        past = aware - _EPOCH
        return (past.days * 86400 + past.seconds) * 10**9 + past.microseconds * 1000
    if isinstance(value, date):
        return (value - _EPOCH.date()).days * 86400 * 10**9
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise NotATime(f"{value!r} is no time")
    if isinstance(value, str):
        return _ns_in(value)
    if isinstance(value, int):
        return value * unit_ns
    if not math.isfinite(value):
        raise NotATime(f"{value!r} is no time")
    # In whole numbers: a float of nanoseconds since 1970 is off by a hundred of them.
    return int(Decimal(str(value)) * unit_ns)


def _ns_in(text: str) -> int:
    found = _ISO.fullmatch(text.strip())
    if found is None:
        raise NotATime(f"{text!r} is no time")
    day, clock, fraction, zone = found.groups()
    try:
        offset = "+00:00" if zone in (None, "Z") else zone if ":" in zone else f"{zone[:3]}:{zone[3:] or '00'}"
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{offset}")
    except ValueError as error:
        raise NotATime(f"{text!r} is no time: {error}") from None
    return _ns(moment, 1) + int((fraction or "0").ljust(9, "0"))


def _number(value: int | float | Decimal) -> Any:
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        return {"f": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if value == int(value) and (isinstance(value, Decimal) or abs(value) < _EXACT):
        return int(value)
    return float(value)


def _number_in(text: str) -> Any:
    try:
        return _number(Decimal(text.strip()))
    except ArithmeticError:
        return text


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < _EXACT else rounded
