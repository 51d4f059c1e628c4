"""Verdicts in few lines: cells that were held back by the same are told together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dyno.model.findings import BOTTLENECKS, Bottleneck, BottleneckVerdict, Findings
from dyno.model.units import counted

MOST_ALONE = 6
"""Cells that get a line each; of more, those that agree share one."""
MOST_NAMED = 4


def verdict_lines(findings: Findings) -> Iterator[str]:
    """A line a cell, or where there are many a line for all those of one verdict, with the sentence of one of them."""
    found = findings.verdicts
    if len(found) <= MOST_ALONE:
        for each in found:
            yield f"{_named(each)}{each.sentence} ({_agreeing(each)}) {' '.join((*each.against, each.next))}".rstrip()
        return
    yield from verdict_groups(findings)


def verdict_groups(findings: Findings) -> Iterator[str]:
    """A line for all cells of one verdict, the most frequent first."""
    groups: dict[Bottleneck, list[BottleneckVerdict]] = {}
    for each in findings.verdicts:
        groups.setdefault(each.kind, []).append(each)
    for kind, cells in sorted(groups.items(), key=lambda group: -len(group[1])):
        name = BOTTLENECKS[kind][0].upper() + BOTTLENECKS[kind][1:]
        of = f"{len(cells)} of {counted(len(findings.verdicts), 'cell')}"
        typical = cells[len(cells) // 2]
        such = f" Such as {_named(typical)}{typical.sentence} ({_agreeing(typical)})"
        yield f"{name}: {of}, {_where(cells, findings.verdicts)}.{such}"


def _named(found: BottleneckVerdict) -> str:
    name = " ".join(f"{factor}={level}" for factor, level in found.levels.items())
    return f"{name}: " if name else ""


def _agreeing(found: BottleneckVerdict) -> str:
    return f"{found.agree} of {counted(found.runs, 'run')}"


def _where(cells: Sequence[BottleneckVerdict], of: Sequence[BottleneckVerdict]) -> str:
    """By the levels that these cells have and others have not, where these say it exactly; else by their names."""
    levels = _levels(cells)
    within = [each for each in of if all(each.levels[factor] in names for factor, names in levels.items())]
    if len(within) == len(cells):
        whole = _levels(of)
        told = [f"{factor}={' or '.join(names)}" for factor, names in levels.items() if len(names) < len(whole[factor])]
        return " ".join(told) or "all"
    names = [" ".join(f"{factor}={level}" for factor, level in each.levels.items()) for each in cells]
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return "; ".join(names[:MOST_NAMED]) + more


def _levels(cells: Sequence[BottleneckVerdict]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for each in cells:
        for factor, level in each.levels.items():
            found.setdefault(factor, {})[level] = None
    return {factor: list(names) for factor, names in found.items()}
