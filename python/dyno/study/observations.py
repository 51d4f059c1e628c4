"""`published.observed`: columns of published tables that hold what a machine did, and what is measured of that here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from dyno.model import bounds, measures, usage
from dyno.model.base import Frozen
from dyno.model.published import ObservedTable, PublishedObservation, Quantity
from dyno.model.sampled import SAMPLED
from dyno.model.targets import Chosen, OneEach
from dyno.study.errors import Place, Problem, listed, not_found, shown
from dyno.study.expectations import Known, said
from dyno.study.figures import Row, Table
from dyno.study.tree import Branch, Leaf, Path, deepest, dotted, plain
from dyno.study.validate import validate

_KINDS = ("of", "group", "symbol", "symbols_in", "module")
_EXAMPLE = "such as {of: server.instructions, over: server.cycles}"


class ColumnSpec(Quantity):
    """What a column holds, and what it is in."""

    per_column: Annotated[
        str | None, Field(description="instead of per: the column that has how many operations a figure is of")
    ] = None
    symbols_in: Annotated[str | None, Field(description="the column that names the function which a row is of")] = None
    unit: Annotated[
        str | None, Field(description="what the column is in; the unit of what is measured here if left out")
    ] = None
    times: Annotated[float, Field(gt=0, description="1e9 where it counts in thousands of millions")] = 1.0
    note: Annotated[str | None, Field(description="what a reader should know of it")] = None


class ObservedSpec(Frozen):
    """Which of a CSV file's columns hold what. A figure that is left empty was not published."""

    file: Annotated[str, Field(description="a CSV file with a line of column names, by its path from the study file")]
    columns: Annotated[Any, Field(description="column to what is measured of it here: a name, or a mapping as below")]
    map: Annotated[dict[str, str], Field(description="factor to column")] = {}
    levels: Annotated[
        dict[str, OneEach], Field(description="factor to {level: how the file spells it}, where they differ")
    ] = {}
    where: Annotated[
        Chosen,
        Field(description="the levels of factors without a column that its figures are of; of all levels if left out"),
    ] = {}
    rows: Annotated[OneEach, Field(description="column to value: only the rows that have it")] = {}


@dataclass(frozen=True)
class Observations:
    """Reads such tables. `groups` are those of hot spots that rules know; `strict` refuses a table without figures."""

    root: Branch
    known: Known
    groups: tuple[str, ...]
    problems: list[Problem]
    strict: bool

    def table(self, spec: ObservedSpec, name: str, table: Table, path: Path) -> ObservedTable | None:
        """The figures of cells that the study has; None with problems where something is wrong."""
        before = len(self.problems)
        columns = dict(self._columns(path))
        self._factors(spec, path)
        for where, column in _named(spec, columns):
            if column not in table.columns:
                at_key = where[0] in ("rows", "columns") and len(where) == 2
                text = not_found("column", column, table.columns, f"columns of {spec.file}")
                self._add((*path, *where), text, at_key=at_key)
        if len(self.problems) > before:
            return None
        self._spellings(spec, table, path)
        figures = tuple(self._figures(spec, table, columns))
        if not figures and self.strict and len(self.problems) == before:
            text = f"no row of {spec.file} is of a cell of this study; say how it spells the levels, with levels"
            self._add(path, text)
        read = {column for _, column in _named(spec, columns)}
        return ObservedTable(
            file=name,
            where=spec.where,
            notes={column: each.note for column, each in columns.items() if each.note},
            figures=figures,
            left_out=tuple(column for column in table.columns if column not in read),
        )

    def _add(self, path: Path, text: str, *, at_key: bool = False) -> None:
        _, node, place = deepest(self.root, path)
        self.problems.append(Problem(place if at_key else node.place, dotted(path), text))

    # What a column holds

    def _columns(self, path: Path) -> Iterator[tuple[str, ColumnSpec]]:
        here = (*path, "columns")
        _, node, _ = deepest(self.root, here)
        if not isinstance(node, Branch) or not node.entries:
            self._add(here, f"should map columns to what is measured of them here, {_EXAMPLE}")
            return
        for column, entry in node.entries.items():
            at = (*here, column)
            given = entry.node
            if isinstance(given, Leaf) and isinstance(given.value, str):
                made: ColumnSpec | None = ColumnSpec(of=given.value)
            elif isinstance(given, Branch):
                made = validate(ColumnSpec, self.root, at, given, self.problems)
            else:
                made = None
                self._add(
                    at,
                    f"should be the name of what is measured here or a mapping, {_EXAMPLE}; not {shown(plain(given))}",
                )
            if made is not None and self._sound(made, at):
                yield column, made

    def _sound(self, spec: ColumnSpec, path: Path) -> bool:
        """That it says of one thing what it is, and that this is measured here; problems where not."""
        before = len(self.problems)
        kinds = [kind for kind in _KINDS if getattr(spec, kind) is not None]
        if len(kinds) != 1:
            have = f"it has {listed(kinds)}" if kinds else "it has none"
            self._add(path, f"should have one of {listed(_KINDS)}; {have}")
        elif spec.of is not None:
            self._of(spec, spec.of, path)
        else:
            for key in ("over", "per", "per_column"):
                if getattr(spec, key) is not None:
                    self._add((*path, key), f"a share of the samples has no {key}; leave it out")
            if spec.group is not None and spec.group not in self.groups:
                self._add((*path, "group"), not_found("group", spec.group, self.groups, "groups of hot spots"))
        if len(self.problems) == before and spec.unit is not None:
            given, unit = spec.unit, spec.measured_in
            _, node, _ = deepest(self.root, (*path, "unit"))
            said(lambda: bounds.convert(1.0, given, unit), node.place, (*path, "unit"), self.problems)
        return len(self.problems) == before

    def _of(self, spec: ColumnSpec, name: str, path: Path) -> None:
        of = (*path, "of")
        if not measures.is_one(name) and name not in SAMPLED:
            kinds = "responses, each also as read.latency_p99, what was used, and metrics of samples"
            self._add(of, not_found("measure", name, (*measures.names(), *SAMPLED), kinds))
            return
        if spec.over is not None and spec.over not in usage.resources():
            self._add((*path, "over"), not_found("resource", spec.over, usage.resources(), "what was used"))
        elif spec.over is not None and (name not in usage.resources() or spec.per is not None):
            text = "only what was used is divided by what was used, such as server.instructions; and it has no per"
            self._add((*path, "over"), text)
        elif spec.per is not None and name not in usage.resources():
            self._add(
                (*path, "per"), f"only what was used is of an operation or of a second, and {name} is not; leave it out"
            )
        elif spec.per_column is not None and (spec.per is not None or name not in usage.resources()):
            text = "is of what was used, and stands instead of per; leave one of them out"
            self._add((*path, "per_column"), text)
        elif isinstance(spec.per, float) and not (spec.per > 0 and math.isfinite(spec.per)):
            self._add((*path, "per"), "should be s, or a number of operations above 0")

    # Of which cells

    def _factors(self, spec: ObservedSpec, path: Path) -> None:
        for factor in spec.map:
            self.known.factor(factor, self.root, (*path, "map", factor), self.problems)
        self.known.chosen(spec.where, self.root, (*path, "where"), self.problems)
        for factor in spec.map:
            if factor in spec.where:
                self._add(
                    (*path, "where", factor), f"{factor} stands under map already; leave it out here", at_key=True
                )
        for factor, names in spec.levels.items():
            here = (*path, "levels", factor)
            if not self.known.factor(factor, self.root, here, self.problems):
                continue
            if factor not in spec.map:
                self._add(here, f"no column holds {factor}; name it under map", at_key=True)
            for level in names:
                if level not in self.known.levels[factor]:
                    text = not_found("level", level, self.known.levels[factor], f"levels of {factor}")
                    self._add((*here, level), text, at_key=True)

    def _spellings(self, spec: ObservedSpec, table: Table, path: Path) -> None:
        for factor, names in spec.levels.items():
            column = spec.map[factor]
            there = sorted({row[column] for _, row in table.rows})
            for level, name in names.items():
                if name not in there:
                    text = not_found("value", name, there, f"values of column {column}")
                    self._add((*path, "levels", factor, level), text)

    # Its figures

    def _figures(
        self, spec: ObservedSpec, table: Table, columns: Mapping[str, ColumnSpec]
    ) -> Iterator[PublishedObservation]:
        seen: dict[tuple[object, ...], int] = {}
        for line, row in _chosen(table.rows, spec.rows):
            levels = self._levels(spec, row)
            if levels is None:
                continue
            for column, of in columns.items():
                if not row[column]:
                    continue
                quantity = _quantity(of, row)
                key = (column, quantity.symbol, *levels.items())
                if key in seen:
                    name = ", ".join(f"{factor}={level}" for factor, level in levels.items()) or "all cells"
                    text = f"gives {name} again, as line {seen[key]}; choose rows with rows: {{column: value}}"
                    self.problems.append(Problem(Place(table.source, line), column, text))
                    continue
                seen[key] = line
                if (value := self._value(of, row, table.source, line, column)) is not None:
                    unit = of.unit or of.measured_in
                    yield PublishedObservation(column=column, quantity=quantity, levels=levels, value=value, unit=unit)

    def _levels(self, spec: ObservedSpec, row: Mapping[str, str]) -> dict[str, str] | None:
        """None for a row of levels that the study has not."""
        found = {}
        for factor, column in spec.map.items():
            spelt = spec.levels.get(factor, {})
            level = next((each for each in self.known.levels[factor] if spelt.get(each, each) == row[column]), None)
            if level is None:
                return None
            found[factor] = level
        return found

    def _value(self, spec: ColumnSpec, row: Mapping[str, str], source: str, line: int, column: str) -> float | None:
        text = row[column]
        try:
            value = float(text) * spec.times
        except ValueError:
            value = math.nan
        if isinstance(spec.per, float):
            value /= spec.per
        elif spec.per_column is not None:
            value /= _count(row[spec.per_column])
        if not math.isfinite(value):
            self.problems.append(Problem(Place(source, line), column, f"should be a number, not {shown(text)}"))
        elif value < 0:
            self.problems.append(Problem(Place(source, line), column, f"should be 0 or more, not {shown(text)}"))
        return value if math.isfinite(value) and value >= 0 else None


def _count(text: str) -> float:
    """How many operations; not a number where it is none above 0."""
    try:
        return max(float(text), 0.0) or math.nan
    except ValueError:
        return math.nan


def _named(spec: ObservedSpec, columns: Mapping[str, ColumnSpec]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each column that is named, with where it is named."""
    for column, of in columns.items():
        yield ("columns", column), column
        if of.symbols_in is not None:
            yield ("columns", column, "symbols_in"), of.symbols_in
        if of.per_column is not None:
            yield ("columns", column, "per_column"), of.per_column
    for factor, column in spec.map.items():
        yield ("map", factor), column
    for column in spec.rows:
        yield ("rows", column), column


def _chosen(rows: Iterable[Row], wanted: Mapping[str, str]) -> Iterator[Row]:
    return ((line, row) for line, row in rows if all(row[column] == value for column, value in wanted.items()))


def _quantity(spec: ColumnSpec, row: Mapping[str, str]) -> Quantity:
    """As it is measured here: for an operation, whatever number of them the figure is of."""
    symbol = row[spec.symbols_in] if spec.symbols_in is not None else spec.symbol
    per = "s" if spec.per == "s" else None
    return Quantity(of=spec.of, over=spec.over, per=per, group=spec.group, symbol=symbol, module=spec.module)
