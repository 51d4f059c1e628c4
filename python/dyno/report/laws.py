"""Operational laws on a terminal, and forecasts made by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from dyno.model.findings import CellLaws, Findings, Forecast, Laws, format_share
from dyno.report import tables

MOST_CELLS = 12
MOST_FAULTS = 20


def laws_in_words(laws: Laws) -> Iterator[RenderableType]:
    """What contradicts itself first; then what each cell could do, what load changes, and what forecasts are worth."""
    if laws.faults:
        yield from (Text(), tables.heading("Measuring faults"))
        yield from (_line(fault.sentence, "red") for fault in laws.faults[:MOST_FAULTS])
        yield from _more(len(laws.faults) - MOST_FAULTS)
    if laws.cells:
        yield from (Text(), tables.heading("What the resources allow"))
        yield from (_line(cell.sentence) for cell in laws.cells[:MOST_CELLS])
        yield from _more(len(laws.cells) - MOST_CELLS)
        changes = [change for change in laws.changes if change.shown]
        yield from (_line(change.sentence) for change in changes[:MOST_CELLS])
        yield from _more(len(changes) - MOST_CELLS)
        if laws.changes and not changes:
            yield _line("No change of the CPU time of an operation with the number of clients is shown.", "dim")
        yield from (_line(found.sentence) for found in laws.forecasting[:MOST_CELLS])
        if laws.left_out:
            yield _line(f"Not computed: {'; '.join(laws.left_out)}.", "dim")
    if laws.checks:
        runs = max(check.runs for check in laws.checks)
        kept = f"{len(laws.checks)} laws looked at in up to {runs:,} runs"
        yield _line(f"The measurement itself: {kept}, {len(laws.faults):,} times broken.", "dim")


def reached(cell: CellLaws) -> str:
    """The share of the bound; no share of more than there is, and none of what is not known."""
    if cell.reached is None:
        return "not told"
    if cell.beyond:
        return "no bound"
    return format_share(cell.reached) if cell.reached <= 1 else "not below"


def runs_observed(findings: Findings) -> dict[int, str]:
    """By cell, of how many of its ok runs samples tell: `1 of 2`. Empty where that is of all of them in all cells."""
    ok = {each.cell: each.n for each in findings.cells if each.response == "throughput"}
    seen = {each.cell: (each.n, ok.get(each.cell, each.n)) for each in findings.laws.cells}
    return {cell: f"{n} of {of}" for cell, (n, of) in seen.items()} if any(n < of for n, of in seen.values()) else {}


def forecasts_in_words(forecasts: Sequence[Forecast]) -> Iterator[RenderableType]:
    """Each with the error made on levels that it was not told of."""
    yield from (_line(each.sentence) for each in forecasts)


def _line(text: str, style: str = "") -> Text:
    return Text(tables.plain(text), style=style)


def _more(left: int) -> Iterator[RenderableType]:
    if left > 0:
        yield Text(f"and {left:,} more (--format json)", style="dim")
