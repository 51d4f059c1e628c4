"""Figures that are made of those of runs, before their means are taken: quotients, shares of removals, calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from dyno.analysis.table import Table
from dyno.model import measures
from dyno.model.assemblies import TITLES

ByBlock = Mapping[int, float]


@dataclass(frozen=True)
class Over:
    """Each run's figure divided by another of its figures."""

    of: str
    over: str

    @property
    def title(self) -> str:
        """For people."""
        of, over = measures.lookup(self.of).title, measures.lookup(self.over).title
        # Of single operations the title says nothing of which; here that is all the difference.
        if measures.lookup(self.of).title == over:
            of, over = (f"{title} ({name.partition('.')[0]})" for title, name in ((of, self.of), (over, self.over)))
        return f"{of} over {over}"

    @property
    def unit(self) -> str:
        """Of the quotient."""
        return measures.unit_over(self.of, self.over)

    def table(self, above: Table, below: Table) -> Table:
        """The first one, of the quotients alone, under the name that stands above the line."""
        if self.over not in below.values:
            return replace(above, values={}, by_block={})
        cells = above.by_block.get(self.of, {})
        found = {cell: _divided(of, below.in_blocks(self.over, cell)) for cell, of in cells.items()}
        return _only(above, self.of, found)


@dataclass(frozen=True)
class Removed:
    """What removing a component saves: the cells of the whole, and before and after each of its steps.

    `against` has the steps of another component, whose share is taken off.
    """

    transaction: str
    component: str
    event: str
    over: str | None
    whole: int
    steps: tuple[tuple[int, int], ...]
    other: str = ""
    against: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """Of the response that it is made of."""
        return f"{self.transaction}.{self.event}"

    @property
    def title(self) -> str:
        """For people."""
        said = f"share of {TITLES[self.component]} in {self.event} of {self.transaction}"
        if self.other:
            return f"{said}, less that of {TITLES[self.other]}"
        return f"{said}, over its share in {self.over}" if self.over else said

    @property
    def unit(self) -> str:
        """Of the share, or of the quotient of two."""
        return "1" if self.over else "%"

    def table(self, table: Table) -> Table:
        """Shares, of the cell that comes after the last of its steps; in per cent where they are no quotients."""
        shares = self._shares(table, self.event, self.steps)
        if self.over:
            shares = _divided(shares, self._shares(table, self.over, self.steps))
        elif self.against:
            less = self._shares(table, self.event, self.against)
            shares = {block: 100 * (share - less[block]) for block, share in shares.items() if block in less}
        else:
            shares = {block: 100 * share for block, share in shares.items()}
        return _only(table, self.name, {self.steps[-1][1]: shares})

    def _shares(self, table: Table, event: str, steps: Sequence[tuple[int, int]]) -> ByBlock:
        name = f"{self.transaction}.{event}"
        whole = table.in_blocks(name, self.whole)
        pairs = [(table.in_blocks(name, before), table.in_blocks(name, after)) for before, after in steps]
        blocks = set(whole).intersection(*(set(each) for pair in pairs for each in pair))
        return {
            block: sum(before[block] - after[block] for before, after in pairs) / whole[block]
            for block in sorted(blocks)
            if whole[block]
        }


@dataclass(frozen=True)
class Made:
    """How often a call is made in a transaction, as the build says that keeps calls apart."""

    transaction: str
    call: str

    @property
    def name(self) -> str:
        """Of its figures."""
        return f"{self.transaction}.{self.call}"

    @property
    def title(self) -> str:
        """For people."""
        return f"calls of {self.call} in {self.transaction}"

    @property
    def unit(self) -> str:
        """They are counted."""
        return "1"

    def table(self, table: Table, counts: pl.DataFrame | None) -> Table:
        """Of each run whose profile has transactions of the kind; 0 where it has not that call."""
        if counts is None or not counts.height:
            return replace(table, values={}, by_block={})
        made = counts.filter(pl.col("transaction") == self.transaction, pl.col("event") == "calls")
        of_call = made.filter(pl.col("call") == self.call)
        times = dict(zip(of_call["run"].to_list(), of_call["value"].to_list(), strict=True))
        runs = set(made["run"].to_list())
        found: dict[int, dict[int, float]] = {}
        for run in table.ok_runs:
            if run.run in runs:
                found.setdefault(run.slot.cell, {})[run.slot.block] = times.get(run.run, 0.0)
        return _only(table, self.name, found)


def _divided(above: ByBlock, below: ByBlock) -> dict[int, float]:
    return {block: value / below[block] for block, value in above.items() if below.get(block)}


def _only(table: Table, name: str, found: Mapping[int, ByBlock]) -> Table:
    cells = {cell: dict(blocks) for cell, blocks in found.items() if blocks}
    values = {cell: list(blocks.values()) for cell, blocks in cells.items()}
    if not cells:
        return replace(table, values={}, by_block={})
    # As tables are: asking for a cell that has none gives none.
    return replace(table, values={name: defaultdict(list, values)}, by_block={name: defaultdict(dict, cells)})
