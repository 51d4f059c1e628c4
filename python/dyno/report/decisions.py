"""The decision table, in rows: for the terminal, for the page and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from dyno.model.findings import (
    Decided,
    DecidedRange,
    DecidedTogether,
    DecisionRow,
    DecisionTable,
    Findings,
    format_quantity,
    format_ratio,
)
from dyno.model.responses import lookup
from dyno.report import tables

NOTHING = "–"
_OPEN = {"cannot tell": "cannot tell", "not judged": "not judged", "alike": "alike"}


@dataclass(frozen=True)
class Line:
    """A range of the ordered factor, in words. `within` is empty where it is that of the line above."""

    within: tuple[str, ...]
    range: str
    best: str
    is_open: bool
    """Whether none is shown to be the best."""
    ahead: str
    """By how much what is ahead is, where that is least; where none is shown to be, so much is said."""
    of: str
    """The runner-up there."""
    apart: str
    together: bool = False
    """Whether it is of all levels of the ordered factor, by ratios pooled over them."""


@dataclass(frozen=True)
class CostLine:
    """What one level of the compared factor takes."""

    within: tuple[str, ...]
    level: str
    figures: tuple[str, ...]


@dataclass(frozen=True)
class Shown:
    """A decision table in words. `factors` head the columns of `within`, `costs` those of the figures, `brief` too."""

    table: DecisionTable
    title: str
    ahead: str
    """Over the ratios: what is best has at least so many times the response, or at the most, whichever is better."""
    factors: tuple[str, ...]
    lines: tuple[Line, ...]
    costs: tuple[str, ...]
    brief: tuple[str, ...]
    cost_lines: tuple[CostLine, ...]
    changes: tuple[str, ...]
    """Where what could be the best changes, of the crossings that are shown."""
    some_apart: bool


def shown(findings: Findings) -> list[Shown]:
    """Each table of the findings."""
    return [_shown(table) for table in findings.decisions]


def _shown(table: DecisionTable) -> Shown:
    known = lookup(table.response)
    factors = tuple(dict.fromkeys(name for row in table.rows for name in row.within))
    # A unit of 1 is no unit.
    units = {each.resource: f" ({each.unit})".replace(" (1)", "") for row in table.rows for each in row.costs}
    titles = {each.resource: each.title for row in table.rows for each in row.costs}
    lines = [line for row in table.rows for line in _lines(row, factors)]
    return Shown(
        table=table,
        title=f"Which {table.factor} has the {'highest' if known.better == 'higher' else 'lowest'} {known.title}",
        ahead="ahead by at least" if known.better == "higher" else "has at most",
        factors=factors,
        lines=tuple(lines),
        costs=tuple(f"{titles[name]}{unit}" for name, unit in units.items()),
        brief=tuple(f"{name}{unit}" for name, unit in units.items()),
        cost_lines=tuple(line for row in table.rows for line in _cost_lines(row, factors, list(units))),
        changes=tuple(crossing.sentence for row in table.rows for crossing in row.crossings),
        some_apart=any(line.apart for line in lines),
    )


def _lines(row: DecisionRow, factors: Sequence[str]) -> Iterator[Line]:
    """What the row rests on, and below it the ranges by themselves."""
    first = True

    def within() -> tuple[str, ...]:
        return tuple(row.within.get(name, "") if first else "" for name in factors)

    if row.together is not None:
        yield Line(
            within=within(),
            range=f"{row.together.span} together",
            best=_best(row.together),
            is_open=row.together.best is None,
            ahead=_size(row.together),
            of=row.together.runner_up or NOTHING,
            apart=_apart(row.together),
            together=True,
        )
        first = False
    for each in row.ranges:
        where = f" at {each.at}" if each.at is not None and len(each.levels) > 1 else ""
        yield Line(
            within=within(),
            range=_range(each),
            best=_best(each),
            is_open=each.best is None,
            ahead=f"{_size(each)}{where}",
            of=each.runner_up or NOTHING,
            apart=_apart(each),
        )
        first = False


def _size(of: DecidedRange | DecidedTogether) -> str:
    if isinstance(of, DecidedTogether) and of.unlike and of.ratio is None:
        return "not pooled"
    if of.ratio is None or of.ci is None:
        return NOTHING
    size = format_ratio(of.ratio, of.ci)
    return f"not shown: {size}" if of.verdict == "cannot tell" else size


def _apart(of: DecidedRange | DecidedTogether) -> str:
    return ", ".join([*of.apart, *(f"{level} (not measured)" for level in of.unmeasured)])


def _range(of: DecidedRange) -> str:
    if not of.levels:
        return NOTHING
    return of.levels[0] if len(of.levels) == 1 else f"{of.levels[0]} to {of.levels[-1]}"


def _best(of: DecidedRange | DecidedTogether) -> str:
    if of.best is not None:
        return f"{of.best} of those measured" if of.unmeasured else of.best
    return f"{_OPEN[of.verdict]}: {', '.join(of.could_be)}" if of.could_be else _OPEN[of.verdict]


def _cost_lines(row: DecisionRow, factors: Sequence[str], resources: Sequence[str]) -> Iterator[CostLine]:
    levels = dict.fromkeys(each.level for each in row.costs)
    for place, level in enumerate(levels):
        own = {each.resource: each for each in row.costs if each.level == level}
        yield CostLine(
            within=tuple("" if place else row.within.get(name, "") for name in factors),
            level=level,
            figures=tuple(_span(own[name].low, own[name].high) if name in own else NOTHING for name in resources),
        )


def _span(low: float, high: float) -> str:
    one, other = map(_figure, (low, high))
    return one if one == other else f"{one} to {other}"


def _figure(value: float) -> str:
    """Three servers are not 3.000 of them."""
    return f"{value:,.0f}" if value.is_integer() else format_quantity(value)


def on_terminal(findings: Findings, responses: Sequence[str]) -> Iterator[RenderableType]:
    """Those of the responses that are shown."""
    for each in shown(findings):
        if each.table.response not in responses:
            continue
        yield Text()
        yield tables.heading(tables.plain(each.title))
        yield Text(tables.plain(each.table.sentence))
        yield _ranges(each)
        yield from (Text(tables.plain(change)) for change in each.changes)
        if each.cost_lines:
            yield Text()
            about = f"What each {each.table.factor} takes (lowest to highest mean of its cells)"
            yield tables.heading(tables.plain(about))
            yield _costs(each)


def _ranges(of: Shown) -> RenderableType:
    made = tables.table()
    over = [of.table.over] if of.table.over else []
    tables.columns(made, *of.factors, *over, f"best {of.table.factor}", of.ahead, "of")
    if of.some_apart:
        tables.columns(made, "not held against it")
    for line in of.lines:
        tables.row(
            made,
            *line.within,
            *([line.range] if over else []),
            Text(tables.plain(line.best), style=_style(line)),
            line.ahead,
            line.of,
            *([line.apart] if of.some_apart else []),
        )
    return made


def _style(of: Line) -> str:
    return f"{'bold ' if of.together else ''}{'yellow' if of.is_open else 'green'}"


def _costs(of: Shown) -> RenderableType:
    made = tables.table()
    tables.columns(made, *of.factors, of.table.factor)
    tables.columns(made, *of.brief, justify="right")
    for line in of.cost_lines:
        tables.row(made, *line.within, line.level, *line.figures)
    return made


def decisions_to_csv(table: DecisionTable) -> str:
    """A line for each combination, decided by itself."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    factors = list(dict.fromkeys(name for each in table.combinations for name in each.levels))
    figures = ("runner_up", "ratio", "ci_low", "ci_high", "n", "p_adjusted")
    writer.writerow(
        [
            "response",
            *(f"levels.{name}" for name in factors),
            "verdict",
            "best",
            "could_be",
            "apart",
            "unmeasured",
            *figures,
        ]
    )
    for each in table.combinations:
        writer.writerow(
            [
                table.response,
                *(each.levels.get(name, "") for name in factors),
                each.verdict,
                each.best,
                "; ".join(each.could_be),
                "; ".join(each.apart),
                "; ".join(each.unmeasured),
                each.runner_up,
                each.ratio,
                *(each.ci or ("", "")),
                each.n,
                each.p_adjusted,
            ]
        )
    return text.getvalue()


def standings(findings: Findings) -> dict[tuple[str, int], str]:
    """How a cell stands among those that differ from it in the compared factor alone, by response and cell."""
    found: dict[tuple[str, int], str] = {}
    for table in findings.decisions:
        by_levels = {tuple(sorted(each.levels.items())): each for each in table.combinations}
        for cell in findings.cells:
            others = tuple(sorted(item for item in cell.levels.items() if item[0] != table.factor))
            if cell.response == table.response and (decided := by_levels.get(others)):
                found[table.response, cell.cell] = _standing(cell.levels[table.factor], decided)
    return found


def _standing(level: str, decided: Decided) -> str:
    if decided.verdict == "not judged":
        return "not judged"
    if level in decided.apart:
        return "not held against others"
    if level == decided.best:
        return "best"
    return "could be the best" if level in decided.could_be else "shown not to be the best"
