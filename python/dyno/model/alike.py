"""Rows of two answers held against each other: within a tolerance, and in their order only where it was asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from dyno.model.answers import Alike, Rows
from dyno.model.rows import same, shown
from dyno.model.units import counted

_MOST_MATCHED = 400
"""Rows alike but for their figures, among which pairs are looked for; of more, those of one rank are held together."""


class Difference(NamedTuple):
    """What is found between two answers; `told` says it in words, empty where they are equal."""

    kind: Alike
    told: str = ""


EQUAL = Difference("equal")


def compare_rows(
    a: Rows, b: Rows, relative: float, absolute: float, *, ordered: bool, keys: Sequence[int] = ()
) -> Difference:
    """What is found between all rows of two answers, the same either way round.

    `relative` and `absolute` say how far figures may be apart. With `keys` rows alike in these columns may change
    places.
    """
    within = relative, absolute
    if ordered and not keys:
        place = first_unlike(a, b, within)
        if place is None:
            return EQUAL
        if len(a) == len(b) and _unmatched(a, b, within) is None:
            return Difference("order", f"the same {counted(len(a), 'row')} in another order: {at(a, b, place)}")
        return _unequal(a, b, place)
    if ordered:
        return _in_groups(a, b, within, keys)
    if len(a) != len(b):
        left = _unmatched(a, b, within)
        return Difference("rows", f"{counted(len(a), 'row')} against {counted(len(b), 'row')}{_left(left)}")
    left = _unmatched(a, b, within)
    return EQUAL if left is None else Difference("values", _left(left).removeprefix("; "))


def _in_groups(a: Rows, b: Rows, within: tuple[float, float], keys: Sequence[int]) -> Difference:
    """Ordered by some columns: those in their order, and among rows alike in them any."""
    keys_a, keys_b = ([[row[key] for key in keys] for row in rows] for rows in (a, b))
    place = first_unlike(keys_a, keys_b, within)
    if place is not None:
        if len(a) == len(b) and _unmatched(a, b, within) is None:
            return Difference("order", f"the same {counted(len(a), 'row')} in another order: {at(a, b, place)}")
        return _unequal(a, b, place)
    start = 0
    while start < len(a):
        end = start + 1
        while end < len(a) and _rows_same(keys_a[start], keys_a[end], within):
            end += 1
        left = _unmatched(a[start:end], b[start:end], within)
        if left is not None:
            if end == len(a) and end - start >= 1 and _open_to_ties(a, b, start, within):
                return Difference(
                    "ties", f"rows alike in what they are ordered by, of which each has others{_left(left)}"
                )
            return Difference("values", _left(left).removeprefix("; "))
        start = end
    return EQUAL


def _open_to_ties(a: Rows, b: Rows, start: int, within: tuple[float, float]) -> bool:
    """Whether a last group that a LIMIT may have cut differs by rows, not by figures of the same rows."""
    texts = [[[value for value in row if not isinstance(value, float)] for row in rows[start:]] for rows in (a, b)]
    return _unmatched(texts[0], texts[1], within) is not None


def _unequal(a: Rows, b: Rows, place: int) -> Difference:
    if len(a) != len(b):
        return Difference("rows", f"{counted(len(a), 'row')} against {counted(len(b), 'row')}; {at(a, b, place)}")
    return Difference("values", at(a, b, place))


def first_unlike(a: Rows, b: Rows, within: tuple[float, float]) -> int | None:
    """The place of the first rows that differ; None where there are none."""
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if not _rows_same(one, other, within):
            return place
    return None if len(a) == len(b) else min(len(a), len(b))


def _rows_same(a: Sequence[Any], b: Sequence[Any], within: tuple[float, float]) -> bool:
    return len(a) == len(b) and all(same(one, other, *within) for one, other in zip(a, b, strict=True))


def _unmatched(a: Rows, b: Rows, within: tuple[float, float]) -> tuple[list[Any] | None, list[Any] | None] | None:
    """A row of each side, in no order, that has none like it on the other; None where each has its own."""
    inexact = {place for rows in (a, b) for row in rows for place, value in enumerate(row) if isinstance(value, float)}
    groups: dict[str, tuple[Rows, Rows]] = {}
    for side, rows in enumerate((a, b)):
        for row in rows:
            exact = json.dumps([_token(value, place in inexact) for place, value in enumerate(row)])
            groups.setdefault(exact, ([], []))[side].append(row)
    lone: tuple[list[Any] | None, list[Any] | None] | None = None
    for of_a, of_b in groups.values():
        left = _match(of_a, of_b, within)
        if left is None:
            continue
        # Of a row that only its figures tell apart both sides are there; that says most.
        if left[0] is not None and left[1] is not None:
            return left
        lone = left if lone is None else (lone[0] or left[0], lone[1] or left[1])
    return lone


def _token(value: Any, inexact: bool) -> Any:
    """What a row is known by besides its figures: of a column with figures whether there is one."""
    is_figure = isinstance(value, (int, float)) and not isinstance(value, bool)
    return ["figure"] if inexact and is_figure else value


def _match(a: Rows, b: Rows, within: tuple[float, float]) -> tuple[list[Any] | None, list[Any] | None] | None:
    """Of rows alike but for their figures, those that are left when as many pairs as can be are made; None if none."""
    a, b = sorted(a, key=_figures), sorted(b, key=_figures)
    if len(a) == len(b) and all(_rows_same(one, other, within) for one, other in zip(a, b, strict=True)):
        return None
    if max(len(a), len(b)) > _MOST_MATCHED:
        place = first_unlike(a, b, within)
        assert place is not None, "they were seen to differ"
        return (a[place] if place < len(a) else None, b[place] if place < len(b) else None)
    partner: dict[int, int] = {}  # of b -> of a
    for place in range(len(a)):
        _find_partner(place, a, b, within, partner, set())
    taken = set(partner.values())
    of_a = next((row for place, row in enumerate(a) if place not in taken), None)
    of_b = next((row for place, row in enumerate(b) if place not in partner), None)
    return None if of_a is None and of_b is None else (of_a, of_b)


def _find_partner(
    one: int, a: Rows, b: Rows, within: tuple[float, float], partner: dict[int, int], tried: set[int]
) -> bool:
    """A step of bipartite matching (H. W. Kuhn, 1955): whoever is in the way looks for another."""
    for other in range(len(b)):
        if other in tried or not _rows_same(a[one], b[other], within):
            continue
        tried.add(other)
        if other not in partner or _find_partner(partner[other], a, b, within, partner, tried):
            partner[other] = one
            return True
    return False


def _figures(row: Sequence[Any]) -> tuple[float, ...]:
    return tuple(
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0 for value in row
    )


def at(a: Rows, b: Rows, place: int) -> str:
    """The rows at a place, of each side, in words."""
    told = [f"({shown(rows[place])})" if place < len(rows) else "no row" for rows in (a, b)]
    return f"row {place + 1} is {told[0]} against {told[1]}"


def _left(left: tuple[list[Any] | None, list[Any] | None] | None) -> str:
    if left is None:
        return ""
    told = [f"({shown(row)})" if row is not None else "no such row" for row in left]
    return f"; {told[0]} against {told[1]}"
