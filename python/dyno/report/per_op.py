"""What an operation costs, in rows: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from dyno.model.findings import Findings, OverallRatio, ResourceFigure, ResourceRatio, format_quantity, format_ratio
from dyno.model.usage import Resource, foremost, resource
from dyno.report import tables
from dyno.report.text import part_of

MOST_NARROW = 2  # resources beside each other on a narrow terminal
MOST_RATIOS = 24  # of single cells on a terminal; JSON and the page have them all


@dataclass(frozen=True)
class Entry:
    """What a cell used, and how many times what the cell of the first level did, where there is such a cell."""

    figure: ResourceFigure
    ratio: ResourceRatio | None


@dataclass(frozen=True)
class Pooled:
    """A resource over many combinations together, and a ratio a level: over `part` of them, all where it is empty."""

    resource: Resource
    part: str
    ratios: tuple[OverallRatio | None, ...]
    read: bool
    """Whether it is one that a reader looks at first."""


@dataclass(frozen=True)
class Costs:
    """Cells by resources. `foremost` are those to be read; each of the others has a table of its own."""

    first: str | None
    foremost: tuple[Resource, ...]
    others: tuple[Resource, ...]
    cells: tuple[tuple[ResourceFigure, ...], ...]
    entries: dict[tuple[int, str], Entry]
    levels: tuple[str, ...]
    pooled: tuple[Pooled, ...]
    within_driver: bool
    """Whether processes of all cells were looked at, and none is the system's own."""


def costs(findings: Findings) -> Costs | None:
    """None where nothing is known of what was used."""
    if not findings.resources:
        return None
    names = list(dict.fromkeys(each.resource for each in findings.resources))
    used = {each.resource for each in findings.resources if any(each.values)}
    first_read = foremost(used)
    others = [name for name in names if name not in first_read]
    first = next((each.a for each in findings.resource_ratios), None)
    to_first = {(each.cells[1], each.resource): each for each in findings.resource_ratios if each.a == first}
    of_cells: dict[int, list[ResourceFigure]] = {}
    for figure in findings.resources:
        of_cells.setdefault(figure.cell, []).append(figure)
    levels = tuple(dict.fromkeys(each.b for each in findings.resource_overall))
    return Costs(
        first=first,
        foremost=tuple(map(resource, first_read)),
        others=tuple(map(resource, others)),
        cells=tuple(map(tuple, of_cells.values())),
        entries={
            (figure.cell, figure.resource): Entry(figure, to_first.get((figure.cell, figure.resource)))
            for figure in findings.resources
        },
        levels=levels,
        within_driver=_within_driver(findings.resources, used),
        pooled=tuple(
            row for name in (*first_read, *others) for row in _pooled(findings, name, levels, read=name in first_read)
        ),
    )


def _within_driver(figures: Sequence[ResourceFigure], used: Collection[str]) -> bool:
    """That no process of a system was seen says nothing where runs were too short for the driver's to be seen."""
    seen = {figure.cell for figure in figures if figure.n and figure.resource.startswith("driver.")}
    return seen == {figure.cell for figure in figures} and not any(name.startswith("server.") for name in used)


def _pooled(findings: Findings, name: str, levels: Sequence[str], *, read: bool) -> Iterator[Pooled]:
    """Over all combinations; over parts of them where some combination has no ratio, and all therefore none."""
    of_resource = [each for each in findings.resource_overall if each.response == name]
    whole = [each for each in of_resource if not each.where]
    parts: dict[str, dict[str, OverallRatio]] = {}
    for each in whole or of_resource:
        parts.setdefault(part_of(each) if each.where else each.unlike, {})[each.b] = each
    for part, of_level in parts.items():
        ratios = tuple(of_level.get(level) for level in levels)
        yield Pooled(resource(name), part, ratios, read or resource(name).relative)


def on_terminal(findings: Findings, *, narrow: bool) -> Iterator[RenderableType]:
    """The foremost resources of each cell, and their ratios to the first level; why there are none where so."""
    found = costs(findings)
    if found is None:
        if findings.resources_reason and any(cell.n for cell in findings.cells):
            yield Text()
            yield Text(tables.plain(f"What an operation costs is not known: {findings.resources_reason}."), style="dim")
        return
    if found.foremost:
        yield Text()
        yield tables.heading("What an operation costs (means; --format json has intervals and all else that was used)")
        yield _cells(found, narrow=narrow)
    if found.pooled:
        yield Text()
        title = f"Each {findings.compare} over {found.first}, many combinations together"
        yield tables.heading(tables.plain(title))
        yield _overall(found)
    elif found.first is not None:
        yield Text()
        yield from _ratios(found)


def _cells(found: Costs, *, narrow: bool) -> RenderableType:
    shown = found.foremost[:MOST_NARROW] if narrow else found.foremost
    made = tables.table()
    all_levels = [figures[0].levels for figures in found.cells]
    varied = [] if narrow else [name for name in all_levels[0] if len({each.get(name) for each in all_levels}) > 1]
    tables.columns(made, *(varied or ["cell"]))
    tables.columns(made, *(f"{each.name} ({each.unit})" for each in shown), justify="right")
    for figures, levels in zip(found.cells, all_levels, strict=True):
        name = " ".join(f"{factor}={level}" for factor, level in levels.items()) or "the only cell"
        means = (found.entries[figures[0].cell, each.name].figure.mean for each in shown)
        tables.row(
            made,
            *([levels.get(factor, "") for factor in varied] or [name]),
            *("-" if mean is None else format_quantity(mean) for mean in means),
        )
    return made


def _overall(found: Costs) -> RenderableType:
    made = tables.table()
    tables.columns(made, "resource", *found.levels)
    for each in found.pooled:
        if each.read:
            name = f"{each.resource.name}, {each.part}" if each.part else each.resource.name
            tables.row(made, name, *map(_with_verdict, each.ratios))
    return made


def _with_verdict(found: OverallRatio | None) -> Text:
    if found is None:
        return Text("-")
    shown = found.verdict in ("higher", "lower")
    text = f"{format_ratio(found.ratio, found.ci)} {found.verdict}"
    return Text(text, style="bold" if shown else "dim")


def _ratios(found: Costs) -> Iterator[RenderableType]:
    entries = [
        entry.ratio
        for each in found.foremost
        for figures in found.cells
        if (entry := found.entries[figures[0].cell, each.name]).ratio is not None
    ]
    told: Sequence[ResourceRatio] = [ratio for ratio in entries if ratio is not None and ratio.ratio is not None]
    for ratio in told[:MOST_RATIOS]:
        yield Text(tables.plain(ratio.sentence))
    if len(told) > MOST_RATIOS:
        yield Text(f"and {len(told) - MOST_RATIOS:,} more (--format json)", style="dim")
    without: dict[str, list[ResourceRatio]] = {}
    for one in entries:
        if one is not None and one.ratio is None:
            without.setdefault(one.reason, []).append(one)
    for reason, some in without.items():
        yield Text(tables.plain(_without(reason, some)), style="dim")


def _without(reason: str, some: Sequence[ResourceRatio]) -> str:
    """One line for all that have no ratio for the same reason."""
    if len(some) == 1:
        return some[0].sentence
    names = ", ".join(dict.fromkeys(each.resource for each in some))
    return f"No ratio in {len(some):,} comparisons ({names}), since {reason}."
