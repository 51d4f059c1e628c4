"""A CSV file of published figures -> the figures of the study's cells, with every problem at its line."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dyno.model import bounds
from dyno.model.base import Frozen
from dyno.model.published import PublishedFigure
from dyno.model.targets import OneEach
from dyno.model.units import Share
from dyno.study.errors import Place, Problem, not_found, shown

Row = tuple[int, dict[str, str]]


class TableSpec(Frozen):
    """Which of a CSV file's columns hold what. A row is a cell; a figure that is left empty was not published."""

    file: Annotated[str, Field(description="a CSV file with a line of column names, by its path from the study file")]
    response: Annotated[str, Field(description="the response that the figures are of")]
    value: Annotated[str, Field(description="the column of the figures")]
    unit: Annotated[str | None, Field(description="what the column is in; the response's own unit if left out")] = None
    interval: Annotated[
        tuple[str, str] | None,
        Field(description="the columns of the lower and the upper end of each figure's interval"),
    ] = None
    precision: Annotated[
        Share | None, Field(gt=0, lt=1, description="half-width of every interval, where the publication states one")
    ] = None
    map: Annotated[dict[str, str], Field(description="factor to column")] = {}
    levels: Annotated[
        dict[str, OneEach], Field(description="factor to {level: how the file spells it}, where they differ")
    ] = {}
    at: Annotated[
        OneEach, Field(description="factors that the file has no column for: the level its figures are of")
    ] = {}
    rows: Annotated[OneEach, Field(description="column to value: only the rows that have it")] = {}
    unlike: Annotated[
        dict[str, dict[str, str]],
        Field(
            description="factor to {level: why what is measured here is not what the figures are of}: they are shown "
            "beside it, and judge nothing"
        ),
    ] = {}
    same_within: Annotated[
        Share, Field(gt=0, description="how near to each other two ratios have to be shown to be called alike")
    ] = 0.1


@dataclass(frozen=True)
class Table:
    """A CSV file, row by row."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def parse(text: str, source: str, problems: list[Problem]) -> Table | None:
    """The rows of a CSV text, each with its line; None with problems added where it is none."""
    reader = csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True), strict=True)
    before = len(problems)
    rows: list[Row] = []
    try:
        columns = [name.strip() for name in next(reader, [])]
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if not columns or not all(columns):
            problems.append(Problem(Place(source, 1), "", "should begin with a line of column names"))
        elif twice is not None:
            problems.append(Problem(Place(source, 1), twice, "this column is named twice; rename one of them"))
        if len(problems) > before:
            return None
        for fields in reader:
            line = reader.line_num
            if fields and len(fields) != len(columns):
                said = f"has {len(fields)} fields, and the first line names {len(columns)} columns"
                problems.append(Problem(Place(source, line), "", said))
            elif fields:
                rows.append((line, dict(zip(columns, (field.strip() for field in fields), strict=True))))
    except csv.Error as error:
        problems.append(Problem(Place(source, reader.line_num), "", f"not valid CSV: {error}"))
    return Table(source, tuple(columns), tuple(rows)) if len(problems) == before else None


def columns_of(spec: TableSpec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each column that is named, with where it is named."""
    yield ("value",), spec.value
    for place, column in enumerate(spec.interval or ()):
        yield ("interval", place), column
    for factor, column in spec.map.items():
        yield ("map", factor), column
    for column in spec.rows:
        yield ("rows", column), column


def figures(
    table: Table, spec: TableSpec, levels: Mapping[str, tuple[str, ...]], unit: str, problems: list[Problem]
) -> tuple[PublishedFigure, ...]:
    """The figures of cells that the study has; rows of other levels are left out. `unit` is that of the response."""
    found: dict[tuple[str, ...], tuple[int, PublishedFigure]] = {}
    for line, row in table.rows:
        if any(row[column] != value for column, value in spec.rows.items()):
            continue
        chosen = _levels_of(row, spec, levels)
        if chosen is None or not row[spec.value]:
            continue
        key = tuple(chosen.values())
        if key in found:
            name = ", ".join(f"{factor}={level}" for factor, level in chosen.items()) or "the only cell"
            text = f"gives {name} again, as line {found[key][0]}; choose rows with rows: {{column: value}}"
            problems.append(Problem(Place(table.source, line), "", text))
            continue
        figure = _figure(table.source, line, row, spec, chosen, unit, problems)
        if figure is not None:
            found[key] = (line, figure)
    return tuple(figure for _, figure in found.values())


def spelt(factor: str, level: str, spec: TableSpec) -> str:
    """How the file spells a level."""
    return spec.levels.get(factor, {}).get(level, level)


def _levels_of(row: Mapping[str, str], spec: TableSpec, levels: Mapping[str, tuple[str, ...]]) -> dict[str, str] | None:
    chosen: dict[str, str] = {}
    for factor, known in levels.items():
        if factor in spec.at:
            chosen[factor] = spec.at[factor]
            continue
        there = row[spec.map[factor]]
        level = next((level for level in known if spelt(factor, level, spec) == there), None)
        if level is None:
            return None
        chosen[factor] = level
    return chosen


def _figure(
    source: str,
    line: int,
    row: Mapping[str, str],
    spec: TableSpec,
    levels: dict[str, str],
    unit: str,
    problems: list[Problem],
) -> PublishedFigure | None:
    def number(column: str) -> float:
        try:
            value = float(row[column])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            problems.append(Problem(Place(source, line), column, f"should be a number, not {shown(row[column])}"))
        elif value < 0 and column == spec.value:  # an interval that was published may well reach below 0
            problems.append(Problem(Place(source, line), column, f"should be 0 or more, not {shown(row[column])}"))
        return bounds.convert(value, spec.unit or unit, unit)

    value = number(spec.value)
    interval = None
    if spec.interval is not None and all(row[column] for column in spec.interval):
        low, high = (number(column) for column in spec.interval)
        if math.isfinite(low + value + high) and not low <= value <= high:
            text = f"{row[spec.value]} lies outside its interval, {row[spec.interval[0]]} to {row[spec.interval[1]]}"
            problems.append(Problem(Place(source, line), spec.value, text))
        interval = (low, high)
    elif spec.precision is not None:
        half = abs(value) * spec.precision
        interval = (value - half, value + half)
    ends = (value, *(interval or ()))
    return PublishedFigure(levels=levels, value=value, interval=interval) if all(map(math.isfinite, ends)) else None


def missing_level(table: Table, spec: TableSpec, factor: str, level: str) -> str | None:
    """Why a spelling that the study gives is not that of the file; None where it is."""
    there = sorted({row[spec.map[factor]] for _, row in table.rows})
    name = spelt(factor, level, spec)
    return None if name in there else not_found("value", name, there, f"values of column {spec.map[factor]}")
