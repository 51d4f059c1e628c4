"""What stores said of themselves, arranged to be read: cells that are compared stand beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dyno.model.findings import (
    CounterFigure,
    DatabaseCell,
    Findings,
    GaugeFigure,
    WaitFigure,
    format_estimate,
    format_quantity,
)
from dyno.report import tables

FOREMOST = 12  # counters that are to be read; the others are there to be looked up
MOST_GROUPS = 3  # on a terminal
MOST_COLUMNS = 4
MOST_APART = 1000  # beyond it the smaller one is next to nothing, and how far it is from it says nothing

# Where none is far from another, those that most questions are about.
_TELLING = (
    "innodb_data_fsyncs", "innodb_os_log_written", "innodb_buffer_pool_reads", "innodb_pages_written",
    "innodb_buffer_pool_read_requests", "innodb_row_lock_waits", "innodb_row_lock_time", "innodb_rows_read",
    "innodb_rows_updated", "innodb_rows_inserted", "handler_commit", "bytes_sent", "bytes_received", "wal.wal_bytes",
    "wal.wal_sync", "database.blks_read", "database.blks_hit", "database.xact_commit", "cache_misses", "cache_hits",
    "cache_writes", "cache_spills",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A counter in each column, and how many times more of it one has than another; None where none is apart."""

    name: str
    figures: tuple[CounterFigure | None, ...]
    apart: float | None

    @property
    def times(self) -> str:
        """`3.2x`; a dash where none is apart."""
        if self.apart is None:
            return "–"
        return f"{self.apart:.3g}x" if self.apart < MOST_APART else f">{MOST_APART:,}x"


@dataclass(frozen=True)
class Waits:
    """A class of waits in each column."""

    name: str
    figures: tuple[WaitFigure | None, ...]


@dataclass(frozen=True)
class Gauges:
    """What goes up and down in each column."""

    name: str
    figures: tuple[GaugeFigure | None, ...]


@dataclass(frozen=True)
class Group:
    """Cells that differ in the compared factor alone. `most` is the longest wait, in us an operation."""

    within: dict[str, str]
    columns: tuple[str, ...]
    foremost: tuple[Row, ...]
    others: tuple[Row, ...]
    waits: tuple[Waits, ...]
    most: float
    gauges: tuple[Gauges, ...]
    remarks: tuple[str, ...]


def groups(findings: Findings) -> list[Group]:
    """In the order of the cells. All in one where nothing is compared."""
    found: dict[tuple[tuple[str, str], ...], list[DatabaseCell]] = {}
    for cell in findings.database:
        others = ((name, level) for name, level in cell.levels.items() if name != findings.compare)
        found.setdefault(tuple(others) if findings.compare else (), []).append(cell)
    return [_group(dict(within), cells, findings.compare) for within, cells in found.items()]


def _group(within: dict[str, str], cells: Sequence[DatabaseCell], compare: str | None) -> Group:
    rows = sorted(_rows(cells), key=_foremost_first)
    waits = [
        Waits(name, tuple(next((wait for wait in cell.waits if wait.name == name), None) for cell in cells))
        for name in dict.fromkeys(wait.name for cell in cells for wait in cell.waits if wait.us_per_op)
    ]
    return Group(
        within=within,
        columns=tuple(cell.levels[compare] if compare else _name(cell) for cell in cells),
        foremost=tuple(rows[:FOREMOST]),
        others=tuple(sorted(rows[FOREMOST:], key=lambda row: row.name)),
        waits=tuple(waits),
        gauges=tuple(
            Gauges(name, tuple(next((each for each in cell.gauges if each.name == name), None) for cell in cells))
            for name in sorted({gauge.name for cell in cells for gauge in cell.gauges})
        ),
        most=max((wait.us_per_op for cell in cells for wait in cell.waits), default=0.0),
        remarks=tuple(dict.fromkeys(cell.remark for cell in cells if cell.remark)),
    )


def _rows(cells: Sequence[DatabaseCell]) -> Iterator[Row]:
    by_name = [{figure.name: figure for figure in cell.counters} for cell in cells]
    for name in dict.fromkeys(name for figures in by_name for name in figures):
        figures = tuple(each.get(name) for each in by_name)
        if any(figure is not None and figure.per_op for figure in figures):
            apart = [figure.apart for figure in figures if figure is not None and figure.apart is not None]
            yield Row(name, figures, max(apart, default=None))


def _foremost_first(row: Row) -> tuple[float, int, str]:
    return -(row.apart or 0.0), _TELLING.index(row.name) if row.name in _TELLING else len(_TELLING), row.name


def _name(cell: DatabaseCell) -> str:
    return " ".join(f"{factor}={level}" for factor, level in cell.levels.items()) or "the only cell"


def on_terminal(findings: Findings) -> Iterator[RenderableType]:
    """A table for each of the first combinations; nothing where no store was asked."""
    found = groups(findings)
    for group in found[:MOST_GROUPS]:
        where = " ".join(f"{factor}={level}" for factor, level in group.within.items())
        title = "What the store said of itself, for each operation" + (f": {where}" if where else "")
        yield from (Text(), tables.heading(tables.plain(title)), _table(group))
        if len(group.columns) > MOST_COLUMNS:
            yield Text(f"and {len(group.columns) - MOST_COLUMNS:,} more columns (--format json)", style="dim")
        yield from (Text(tables.plain(f"{remark}."), style="dim") for remark in group.remarks)
    if len(found) > MOST_GROUPS:
        yield Text(f"and {len(found) - MOST_GROUPS:,} more combinations (--format json)", style="dim")


def _table(group: Group) -> Table:
    table = tables.table()
    tables.columns(table, "counter")
    tables.columns(table, *group.columns[:MOST_COLUMNS], "apart", justify="right")
    for row in group.foremost:
        figures = (format_estimate(each.per_op, each.ci) if each else "-" for each in row.figures[:MOST_COLUMNS])
        tables.row(table, row.name, *figures, row.times)
    if group.waits:
        table.add_section()
    for waits in group.waits:
        figures = (f"{format_quantity(each.us_per_op)} us" if each else "-" for each in waits.figures[:MOST_COLUMNS])
        tables.row(table, waits.name, *figures, "")
    if group.gauges:
        table.add_section()
    for gauge in group.gauges[:FOREMOST]:
        figures = (format_estimate(each.mean, each.ci) if each else "-" for each in gauge.figures[:MOST_COLUMNS])
        tables.row(table, f"{gauge.name}, mean", *figures, "")
    return table
