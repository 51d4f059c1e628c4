"""Queries: who answered the same, how long they took, and by which plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from dyno.model.answers import IN_BATCH, SINGLY, BatchCell, QueryAnswer, QueryFinding
from dyno.model.findings import CellSummary, Findings, format_estimate, format_share
from dyno.report import tables

HEADING = "Queries: answers, times and plans"
BATCHES = "Queries asked at once"
BEST_AND_WORST = f"{BATCHES}: the best and the worst configuration"


def of_queries(findings: Findings) -> Iterator[RenderableType]:
    """For a terminal: a line a query and cell, and in words what is not answered the same."""
    if not findings.queries:
        return
    names = factors(findings, SINGLY)
    made = tables.table()
    tables.columns(made, "query", *names)
    tables.columns(made, "cold, ms", "warm, ms", "rows", justify="right")
    tables.columns(made, "answer")
    singly = of_part(findings, SINGLY)
    for each in singly:
        for one in each.answers:
            shown = [time_of(findings, each, one, name) for name in ("cold", "warm")]
            tables.row(made, name_of(each), *levels(one, names), *shown, rows(one), verdict(each, one))
    if singly:
        yield from (Text(), tables.heading(HEADING), made)
    yield from (Text(tables.plain(f"- {each.sentence}")) for each in findings.queries if not each.equal)
    if findings.batches:
        batches = tables.table()
        tables.columns(batches, "query", "workers", "best", "worst", "of")
        for found in findings.batches:
            apart = "" if found.apart else " (not apart)"
            best, worst = told(findings, found.best), told(findings, found.worst)
            tables.row(batches, found.query, str(found.workers), best, f"{worst}{apart}", str(found.of))
        yield from (Text(), tables.heading(f"{BEST_AND_WORST} (queries a second)"), batches)


def of_part(findings: Findings, part: str) -> list[QueryFinding]:
    """Those that are asked by themselves (q), or in batches (b)."""
    return [each for each in findings.queries if each.query.startswith(f"{part}.")]


def in_batches(findings: Findings) -> list[QueryFinding]:
    """Those of batches."""
    return of_part(findings, IN_BATCH)


def singly(findings: Findings) -> list[QueryFinding]:
    """Those that are asked by themselves."""
    return of_part(findings, SINGLY)


def name_of(each: QueryFinding) -> str:
    """As the file calls it."""
    return each.query.partition(".")[2]


def all_answered_the_same(findings: Findings) -> str:
    """How many they are, by name: the same query is asked by itself and in batches."""
    number = len({name_of(each) for each in findings.queries})
    which = "The query" if number == 1 else f"Each of the {number} queries"
    both = len({each.query.partition(".")[0] for each in findings.queries}) > 1
    how = ", by itself and in batches," if both else ""
    return f"{which} is answered the same{how} by all cells that were asked the same."


def factors(findings: Findings, part: str) -> list[str]:
    """That tell the cells apart which were asked by themselves (q), or in batches (b)."""
    found: dict[str, set[str]] = {}
    for each in of_part(findings, part):
        for one in each.answers:
            for name, level in one.levels.items():
                found.setdefault(name, set()).add(level)
    return [name for name, several in found.items() if len(several) > 1]


def levels(one: QueryAnswer, names: Sequence[str]) -> list[str]:
    """A cell's own, in that order."""
    return [one.levels.get(name, "-") for name in names]


def rows(one: QueryAnswer) -> str:
    """How many, or that there was an error."""
    return "error" if one.rows is None else f"{one.rows:,}"


def verdict(each: QueryFinding, one: QueryAnswer) -> str:
    """`equal`; `as group B` where it is not what the first cell answered; `varies` from run to run."""
    if one.error is not None:
        return "error"
    if one.varies:
        return "varies"
    if each.equal:
        return "equal"
    return "as the first" if one.group == 0 else f"differs ({letter(one.group)})"


def letter(group: int) -> str:
    """A, B, ..."""
    return chr(ord("A") + group) if group < 26 else str(group + 1)


def time_of(findings: Findings, each: QueryFinding, one: QueryAnswer, base: str) -> str:
    """A mean with its interval; a dash where it has none."""
    found = summary(findings, f"{each.query}.{base}", one.cell)
    return "-" if found is None or found.mean is None else format_estimate(found.mean, found.ci)


def summary(findings: Findings, response: str, cell: int) -> CellSummary | None:
    """What a cell has of a response."""
    return next((each for each in findings.cells if each.response == response and each.cell == cell), None)


def client(one: QueryAnswer) -> str:
    """The share of the time that was the driver's."""
    return "-" if one.client_share is None else format_share(one.client_share)


def told(findings: Findings, cell: BatchCell) -> str:
    """`system=questdb shards=3: 410 [380, 440]`."""
    where = " ".join(f"{name}={cell.levels[name]}" for name in factors(findings, IN_BATCH) if name in cell.levels)
    return f"{where or 'the only cell'}: {format_estimate(cell.mean, cell.ci)}"
