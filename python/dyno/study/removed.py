"""`published.removal`: a published table of what removing components saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from dyno.model import bounds
from dyno.model.assemblies import LEFT, ORDER, PAGES
from dyno.model.base import Frozen
from dyno.model.published import PublishedRemoval, PublishedShare
from dyno.model.targets import OneEach
from dyno.study.errors import Place, Problem, not_found, shown
from dyno.study.expectations import said
from dyno.study.figures import Table
from dyno.study.tree import Branch, Path, deepest, dotted

KNOWN = (*ORDER, PAGES, LEFT)
"""Of what there may be figures."""


class RemovalSpec(Frozen):
    """Which of a CSV file's columns hold what. A row is a component of a kind of transaction."""

    file: Annotated[str, Field(description="a CSV file with a line of column names, by its path from the study file")]
    transaction: Annotated[str, Field(description="the column of kinds of transactions")] = "transaction"
    component: Annotated[str, Field(description="the column of components")] = "component"
    value: Annotated[str, Field(description="the column of shares in what the transaction took with all components")]
    unit: Annotated[str, Field(description="what they are in: % or 1")] = "1"
    note: Annotated[str | None, Field(description="the column of what a reader should know of a figure")] = None
    transactions: Annotated[
        OneEach, Field(description="transaction as counted to how the file spells it, where they differ")
    ] = {}
    components: Annotated[
        OneEach,
        Field(description="component, pages (larger ones) or left (what remains) to how the file spells it"),
    ] = {}


@dataclass(frozen=True)
class Removals:
    """Reads such a table."""

    root: Branch
    problems: list[Problem]

    def table(self, spec: RemovalSpec, table: Table, path: Path) -> PublishedRemoval | None:
        """Its rows of components that are known; None with problems where something is wrong."""
        before = len(self.problems)
        columns = {key: getattr(spec, key) for key in ("transaction", "component", "value", "note")}
        for key, column in columns.items():
            if column is not None and column not in table.columns:
                self._add((*path, key), not_found("column", column, table.columns, f"columns of {spec.file}"))
        _, node, _ = deepest(self.root, (*path, "unit"))
        said(lambda: bounds.convert(1.0, spec.unit, "1"), node.place, (*path, "unit"), self.problems)
        for name in spec.components:
            if name not in KNOWN:
                text = not_found("component", name, KNOWN, "components of glass, and what may be published of them")
                self._add((*path, "components", name), text, at_key=True)
        if len(self.problems) > before:
            return None
        for key, column in (("transactions", spec.transaction), ("components", spec.component)):
            there = sorted({row[column] for _, row in table.rows})
            for name, spelt in getattr(spec, key).items():
                if spelt not in there:
                    text = not_found("value", spelt, there, f"values of column {column}")
                    self._add((*path, key, name), text)
        shares = tuple(share for line, row in table.rows if (share := self._share(spec, table.source, line, row)))
        if len(self.problems) > before:
            return None
        return PublishedRemoval(file=PurePosixPath(spec.file).name, shares=shares)

    def _share(self, spec: RemovalSpec, source: str, line: int, row: Mapping[str, str]) -> PublishedShare | None:
        component = _name(row[spec.component], spec.components)
        if component not in KNOWN or not row[spec.value]:
            return None
        try:
            value = float(row[spec.value])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            text = f"should be a number, not {shown(row[spec.value])}"
            self.problems.append(Problem(Place(source, line), spec.value, text))
            return None
        return PublishedShare(
            transaction=_name(row[spec.transaction], spec.transactions),
            component=component,
            share=bounds.convert(value, spec.unit, "1"),
            note=row[spec.note] if spec.note else "",
        )

    def _add(self, path: Path, text: str, *, at_key: bool = False) -> None:
        _, node, place = deepest(self.root, path)
        self.problems.append(Problem(place if at_key else node.place, dotted(path), text))


def _name(spelt: str, names: Mapping[str, str]) -> str:
    return next((name for name, how in names.items() if how == spelt), spelt)
