"""What was published of machines beside what was observed here, in rows: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from dyno.model.findings import (
    Findings,
    Interval,
    ObservedCell,
    ObservedFigure,
    ObservedResult,
    format_estimate,
    format_quantity,
    format_ratio,
)
from dyno.report import tables

TITLE = "What was published, and what was observed here"
ABOUT = (
    "Absolute figures are of another machine. What can be held against them is how levels stand to each other; figures "
    "that were published without intervals judge nothing."
)
NOTHING = "–"


@dataclass(frozen=True)
class Row:
    """A cell beside a published figure. `quantity` is empty where it is that of the row above."""

    quantity: str
    unit: str
    cell: str
    published: str
    here: str
    of_published: str
    relative_published: str
    relative_here: str


@dataclass(frozen=True)
class Observed:
    """A table, why parts of it are empty, and what a reader should know of its columns.

    Levels stand to `first` unless a row says otherwise; it is empty where none stands to another.
    """

    found: ObservedResult
    head: str  # of the column of cells
    first: str
    rows: tuple[Row, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


def observed_parts(findings: Findings) -> list[Observed]:
    """One for each published table."""
    return [
        Observed(each, _head(each), _first(each), tuple(_rows(each)), tuple(_reasons(each)), tuple(_notes(each)))
        for each in findings.observed
    ]


def _head(found: ObservedResult) -> str:
    """The factor where the cells differ in one alone."""
    varied = _varied(found)
    return varied[0] if len(varied) == 1 else "cell"


def _varied(found: ObservedResult) -> list[str]:
    cells = [cell for figure in found.figures for cell in figure.cells]
    factors = dict.fromkeys(factor for cell in cells for factor in cell.levels)
    return [name for name in factors if len({cell.levels.get(name) for cell in cells}) > 1]


def _cell_name(cell: ObservedCell, varied: list[str]) -> str:
    if len(varied) == 1:
        return cell.levels.get(varied[0], "")
    factors = varied or cell.levels
    return " ".join(f"{factor}={cell.levels.get(factor, '')}" for factor in factors) or "the only cell"


def _first(found: ObservedResult) -> str:
    return next((" ".join(figure.relative_to.values()) for figure in found.figures if figure.relative_to), "")


def _rows(found: ObservedResult) -> Iterator[Row]:
    before, first, varied = "", _first(found), _varied(found)
    for figure in sorted(found.figures, key=lambda each: _place(found, each)):
        to = " ".join(figure.relative_to.values())
        apart = f" (to {to})" if to not in ("", first) else ""  # where nothing was published of the first level
        for cell in figure.cells:
            yield Row(
                quantity="" if figure.title == before else figure.title,
                unit=figure.unit,
                cell=_cell_name(cell, varied),
                published=format_quantity(figure.published),
                here=NOTHING if cell.mean is None else format_estimate(cell.mean, cell.ci),
                of_published=_times(cell.of_published, cell.of_published_ci),
                relative_published=_times(figure.relative, None) + apart,
                relative_here=_times(cell.relative, cell.relative_ci),
            )
            before = figure.title


def _place(found: ObservedResult, figure: ObservedFigure) -> int:
    """Those of one quantity together, in the order in which they came first."""
    return next(place for place, each in enumerate(found.figures) if each.title == figure.title)


def _times(ratio: float | None, interval: Interval | None) -> str:
    if ratio is None:
        return NOTHING
    return format_ratio(ratio, interval) if interval else f"{ratio:.3g}x"


def _reasons(found: ObservedResult) -> Iterator[str]:
    by_reason: dict[str, dict[str, None]] = {}
    for figure in found.figures:
        if figure.reason:
            by_reason.setdefault(figure.reason, {})[figure.title] = None
    for reason, titles in by_reason.items():
        yield f"Not measured here: {'; '.join(titles)}. Why: {reason}."


def _notes(found: ObservedResult) -> Iterator[str]:
    seen = {(figure.column, figure.note): None for figure in found.figures if figure.note}
    yield from (f"{column}: {note}" for column, note in seen)
    if found.left_out:
        yield f"Columns that stand beside nothing: {', '.join(found.left_out)}."


def on_terminal(findings: Findings, *, narrow: bool) -> Iterator[RenderableType]:
    """The tables, each with what it stands for, and with what is missing and why."""
    for part in observed_parts(findings):
        yield Text()
        yield tables.heading(TITLE)
        yield Text(tables.plain(f"{part.found.sentence} {ABOUT}"), style="dim")
        if narrow:
            yield from _lines(part)
        elif part.rows:
            yield _table(part)
        yield from (Text(tables.plain(reason), style="yellow") for reason in part.reasons)
        yield from (Text(tables.plain(note), style="dim") for note in part.notes)
        yield Text(tables.plain(f"Published figures: {part.found.file}"), style="dim")


def _table(part: Observed) -> RenderableType:
    made = tables.table()
    tables.columns(made, "quantity", tables.plain(part.head))
    tables.columns(made, "published", "here", "here / published", justify="right")
    if part.first:
        tables.columns(made, f"published, to {part.first}", f"here, to {part.first}", justify="right")
    for row in part.rows:
        relative = (row.relative_published, row.relative_here) if part.first else ()
        tables.row(made, _named(row), row.cell, row.published, row.here, row.of_published, *relative)
    return made


def _lines(part: Observed) -> Iterator[RenderableType]:
    """The same where so many columns have no room."""
    for row in part.rows:
        if row.quantity:
            yield Text(tables.plain(_named(row)))
        relative = f"; to {part.first}: {row.relative_published}, here {row.relative_here}" if part.first else ""
        yield Text(tables.plain(f"  {row.cell}: {row.published}, here {row.here}{relative}"))


def _named(row: Row) -> str:
    return f"{row.quantity} ({row.unit})" if row.quantity and row.unit != "1" else row.quantity
