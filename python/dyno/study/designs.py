"""The key `design` -> which combinations of levels are cells, with every problem found on the way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dyno.model.base import Scalar
from dyno.model.fractions import LETTERS, MOST_BY_DEFAULT, Fraction, default_generators, most_halvings
from dyno.model.study import DesignSpec, Level
from dyno.study.document import DesignSection
from dyno.study.errors import Place, Problem, not_found, shown
from dyno.study.tree import Branch, Path, deepest, dotted
from dyno.study.validate import validate

MAX_CELLS = 10_000

Combination = tuple[int, ...]
"""A cell: of each factor the place of its level."""

_KEYS = {"factorial": ("without",), "screening": ("runs", "fraction", "generators", "levels"), "cells": ("cells",)}


@dataclass(frozen=True, slots=True)
class NamedFactor:
    """A factor as far as a design has to know it."""

    name: str
    place: Place
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The design, its cells in their order, and of each factor the places of its levels that are measured."""

    spec: DesignSpec
    cells: tuple[Combination, ...]
    levels: tuple[Combination, ...]


def read_design(root: Branch, factors: Sequence[NamedFactor], problems: list[Problem]) -> Chosen | None:
    """What the key says, or the default; None with problems added where there is one."""
    before = len(problems)
    node = root.get("design")
    section = DesignSection() if node is None else validate(DesignSection, root, ("design",), node, problems)
    if section is None:
        return None
    problems.extend(_of_another_kind(root, section))
    if len(problems) > before:
        return None
    match section.kind:
        case "factorial":
            chosen: Chosen | None = _factorial(root, section, factors, problems)
        case "screening":
            chosen = _screening(root, section, factors, problems)
        case "cells":
            chosen = _chosen(DesignSpec(kind="cells"), _named_cells(root, section, factors, problems))
    return chosen if len(problems) == before else None


def _chosen(spec: DesignSpec, cells: Sequence[Combination]) -> Chosen:
    return Chosen(spec, tuple(cells), tuple(tuple(sorted(set(places))) for places in zip(*cells, strict=True)))


def _of_another_kind(root: Branch, section: DesignSection) -> Iterator[Problem]:
    for kind, keys in _KEYS.items():
        for key in keys:
            if kind != section.kind and getattr(section, key):
                text = f"belongs to a design of kind {kind}, and this one's is {section.kind}"
                yield _problem(root, (key,), text)


def _problem(root: Branch, path: Path, text: str, *, at_key: bool = True) -> Problem:
    _, node, key_place = deepest(root, ("design", *path))
    return Problem(key_place if at_key else node.place, dotted(("design", *path)), text)


def _too_many(root: Branch, count: int, key: str = "factors") -> Problem:
    text = f"the levels make {count:,} cells, and {MAX_CELLS:,} are the most; vary less, or split the study"
    return Problem(root.entries[key].key_place, key, text)


def _all(root: Branch, factors: Sequence[NamedFactor], problems: list[Problem]) -> list[Combination]:
    count = math.prod(len(factor.levels) for factor in factors)
    if count > MAX_CELLS:
        problems.append(_too_many(root, count))
        return []
    return list(itertools.product(*(range(len(factor.levels)) for factor in factors)))


def _factorial(
    root: Branch, section: DesignSection, factors: Sequence[NamedFactor], problems: list[Problem]
) -> Chosen | None:
    """All combinations, without those that are left out."""
    before = len(problems)
    cells = _all(root, factors, problems)
    for number, without in enumerate(section.without):
        path: Path = ("without", number)
        named = _some_levels(root, path, without, factors, problems)
        if not named:
            continue
        left = [cell for cell in cells if not all(cell[factor] == level for factor, level in named)]
        if len(left) == len(cells):
            problems.append(_problem(root, path, "leaves out nothing that is not left out before; drop it"))
        cells = left
    if not cells and len(problems) == before:
        problems.append(_problem(root, ("without",), "leaves out every combination; keep some of them"))
    return _chosen(DesignSpec(), cells) if len(problems) == before else None


def _some_levels(
    root: Branch, path: Path, named: dict[str, Scalar], factors: Sequence[NamedFactor], problems: list[Problem]
) -> list[tuple[int, int]]:
    """The places of those factors and of their levels; none where one is not known."""
    names = [factor.name for factor in factors]
    found = []
    if not named:
        problems.append(_problem(root, path, "names no level; write {factor: level}"))
    for name, value in named.items():
        if name not in names:
            problems.append(_problem(root, (*path, name), not_found("factor", name, names, "factors")))
            continue
        level = _level(root, (*path, name), factors[names.index(name)], value, problems)
        if level is not None:
            found.append((names.index(name), level))
    return found if len(found) == len(named) else []


# Screening


def _screening(
    root: Branch, section: DesignSection, factors: Sequence[NamedFactor], problems: list[Problem]
) -> Chosen | None:
    before = len(problems)
    problems.extend(_unknown_factors(root, section, factors))
    if len(problems) > before:
        return None  # one that is misspelt would be missed below
    ends = tuple(_ends(root, section, factor, problems) for factor in factors)
    if not 2 <= len(factors) <= len(LETTERS):
        text = f"screening takes 2 to {len(LETTERS)} factors, and there are {len(factors)}"
        problems.append(_problem(root, ("kind",), text))
    generators = _generators(root, section, len(factors), problems) if len(problems) == before else None
    if generators is None:
        return None
    fraction = _fraction(root, generators, [factor.name for factor in factors], problems)
    if fraction is None:
        return None
    if fraction.cells > MAX_CELLS:
        problems.append(_too_many(root, fraction.cells, "design"))
        return None
    cells = (tuple(end[sign > 0] for end, sign in zip(ends, row, strict=True)) for row in fraction.signs())
    return Chosen(DesignSpec(kind="screening", generators=fraction.generators), tuple(cells), ends)


def _unknown_factors(root: Branch, section: DesignSection, factors: Sequence[NamedFactor]) -> Iterator[Problem]:
    names = [factor.name for factor in factors]
    for name in section.levels:
        if name not in names:
            yield _problem(root, ("levels", name), not_found("factor", name, names, "factors"))


def _ends(root: Branch, section: DesignSection, factor: NamedFactor, problems: list[Problem]) -> tuple[int, int]:
    """The places of the low and the high level."""
    named = section.levels.get(factor.name)
    if named is None:
        if len(factor.levels) > 2:
            example = f"design.levels: {{{factor.name}: {{low: {factor.levels[0]}, high: {factor.levels[-1]}}}}}"
            text = f"screening takes two levels of a factor, and here are {len(factor.levels)}; name them: {example}"
            problems.append(Problem(factor.place, f"factors.{factor.name}", text))
        elif len(factor.levels) < 2:
            text = "screening takes two levels of a factor, and here is one; add another, or vary something else"
            problems.append(Problem(factor.place, f"factors.{factor.name}", text))
        return 0, 1
    path: Path = ("levels", factor.name)
    low = _level(root, (*path, "low"), factor, named.low, problems)
    high = _level(root, (*path, "high"), factor, named.high, problems)
    if low is not None and low == high:
        problems.append(_problem(root, path, "low and high are the same level; a factor has to vary"))
    return low or 0, high or 0


def _level(root: Branch, path: Path, factor: NamedFactor, value: Scalar, problems: list[Problem]) -> int | None:
    name = Level(value=value).name
    if name in factor.levels:
        return factor.levels.index(name)
    problems.append(_problem(root, path, not_found("level", name, factor.levels, "levels"), at_key=False))
    return None


def _generators(root: Branch, section: DesignSection, count: int, problems: list[Problem]) -> tuple[str, ...] | None:
    """Those given, or those that make as small a fraction as is asked for; None where that cannot be."""
    if section.runs is not None and section.fraction is not None:
        problems.append(_problem(root, ("fraction",), "says the same as runs; keep one of them"))
        return None
    key, halvings = "generators", len(section.generators)
    if section.runs is not None:
        key = "runs"
        if section.runs.bit_count() > 1 or section.runs > 2**count:
            sizes = f"{2 ** max(count - most_halvings(count), 2)} to {2**count:,}"
            text = f"should be a power of two, {sizes} for {count} factors of two levels, not {section.runs}"
            problems.append(_problem(root, (key,), text, at_key=False))
            return None
        halvings = count - section.runs.bit_length() + 1
    elif section.fraction is not None:
        key, halvings = "fraction", int(section.fraction.removeprefix("1/")).bit_length() - 1
    if section.generators:
        if len(section.generators) != halvings:
            text = f"{len(section.generators)} generators make 1/{2 ** len(section.generators)} of all combinations"
            problems.append(_problem(root, (key,), f"{text}, which is not what is asked for here"))
            return None
        return section.generators
    generators = default_generators(count, halvings)
    if generators is None:
        problems.append(_problem(root, (key,), _no_generators(count), at_key=False))
    return generators


def _no_generators(count: int) -> str:
    if count > MOST_BY_DEFAULT:
        return (
            f"generators of a fraction are known for up to {MOST_BY_DEFAULT} factors, and here are {count}; name them"
        )
    most = most_halvings(count)
    if not most:
        return f"{count} factors have no fraction that tells them apart; leave this out for all {2**count} combinations"
    return (
        f"{count} factors cannot be told apart in so few cells; 1/{2**most} ({2 ** (count - most)} cells) is the least"
    )


def _fraction(
    root: Branch, generators: Sequence[str], names: Sequence[str], problems: list[Problem]
) -> Fraction | None:
    for number in range(len(generators)):
        try:
            Fraction(names, generators[: number + 1])
        except ValueError as error:
            problems.append(_problem(root, ("generators", number), str(error)))
            return None
    try:
        return Fraction(names, generators)
    except ValueError as error:  # a word that a later generator makes wrong
        problems.append(_problem(root, ("generators",), str(error)))
        return None


# Named cells


def _named_cells(
    root: Branch, section: DesignSection, factors: Sequence[NamedFactor], problems: list[Problem]
) -> list[Combination]:
    if not section.cells:
        problems.append(_problem(root, ("cells",), "has no cell; list them as {factor: level}"))
    if len(section.cells) > MAX_CELLS:
        problems.append(_too_many(root, len(section.cells), "design"))
        return []
    seen: dict[Combination, int] = {}
    for number, cell in enumerate(section.cells):
        combination = _combination(root, number, cell, factors, problems)
        if combination is None:
            continue
        if combination in seen:
            first = deepest(root, ("design", "cells", seen[combination]))[1].place
            also = f" as on line {first.line}" if first.line else ""
            problems.append(_problem(root, ("cells", number), f"is the same cell{also}; keep one of them"))
        seen.setdefault(combination, number)
    return list(seen)


def _combination(
    root: Branch,
    number: int,
    cell: dict[str, Scalar],
    factors: Sequence[NamedFactor],
    problems: list[Problem],
) -> Combination | None:
    path: Path = ("cells", number)
    before = len(problems)
    names = [factor.name for factor in factors]
    for name in cell:
        if name not in names:
            problems.append(_problem(root, (*path, name), not_found("factor", name, names, "factors")))
    places = []
    for factor in factors:
        if factor.name in cell:
            places.append(_level(root, (*path, factor.name), factor, cell[factor.name], problems))
        elif len(problems) == before:
            text = f"names no level of factor {shown(factor.name)}; a cell has one of every factor"
            problems.append(_problem(root, path, text))
    return tuple(place for place in places if place is not None) if len(problems) == before else None
