"""Instructions per operation, of runs that were counted at two lengths, and what they were spent on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from dyno.analysis.hot_spots import Frame, Grouping
from dyno.model.hot_spots import OTHER, Rule, built_in
from dyno.model.instructions import Instructions, OfFunction, OfGroup
from dyno.model.run import Outcome, RunRecord

Lengths = Mapping[int, RunRecord]
"""A block's counted runs, by their number of operations."""


def instructions(
    runs: Sequence[RunRecord],
    factor: str,
    count: str,
    functions: pl.DataFrame | None = None,
    rules: Sequence[Rule] = (),
) -> Iterator[Instructions]:
    """Of each combination of the other levels. Levels of `factor` are the lengths; a run's `status` has its `count`.

    Of two lengths, what the longer run took more is that of the operations that it has more. `functions` are those of a
    results folder (symbol, module, instructions), with the run's number in `run`; `rules` come before dyno's own.
    """
    of_cells: dict[tuple[tuple[str, str], ...], dict[int, dict[int, RunRecord]]] = {}
    for run in runs:
        others = tuple((name, level) for name, level in run.levels.items() if name != factor)
        blocks = of_cells.setdefault(others, {})
        if run.outcome is Outcome.OK and count in run.status:
            blocks.setdefault(run.slot.block, {})[int(run.levels[factor])] = run
    lengths = sorted({int(run.levels[factor]) for run in runs})
    if len(lengths) != 2:
        return
    short, long = lengths
    grouping = Grouping((*rules, *built_in()))
    spent = _by_run(functions)
    for others, blocks in of_cells.items():
        pairs = [(of[short], of[long]) for _, of in sorted(blocks.items()) if short in of and long in of]
        kept = bool(pairs) and all(run.run in spent for pair in pairs for run in pair)
        found = _of_functions(pairs, spent, long - short, grouping) if kept else []
        yield Instructions(
            levels=dict(others),
            per_operation=tuple((more.status[count] - less.status[count]) / (long - short) for less, more in pairs),
            lengths=(short, long),
            groups=_of_groups(found),
            functions=tuple(found),
        )


def _by_run(functions: pl.DataFrame | None) -> dict[int, dict[Frame, int]]:
    if functions is None or not functions.height:
        return {}
    found: dict[int, dict[Frame, int]] = {}
    for run, symbol, module, count in functions.select("run", "symbol", "module", "instructions").iter_rows():
        found.setdefault(run, {})[Frame(symbol, module)] = count
    return found


def _of_functions(
    pairs: Sequence[tuple[RunRecord, RunRecord]],
    spent: Mapping[int, Mapping[Frame, int]],
    operations: int,
    grouping: Grouping,
) -> list[OfFunction]:
    """The largest first. One that took as many at either length is left out: it has nothing to do with operations."""
    known = dict.fromkeys(each for pair in pairs for run in pair for each in spent[run.run])
    found = []
    for each in known:
        more = [spent[long.run].get(each, 0) - spent[short.run].get(each, 0) for short, long in pairs]
        if any(more):
            of_blocks = tuple(count / operations for count in more)
            found.append(OfFunction(of_blocks, each.symbol, each.module, grouping.of_function(each)))
    return sorted(found, key=lambda each: (-(each.mean or 0.0), each.symbol or "", each.module))


def _of_groups(functions: Sequence[OfFunction]) -> tuple[OfGroup, ...]:
    """The largest first; what no rule knows comes last."""
    members: dict[str, list[OfFunction]] = {}
    for each in functions:
        members.setdefault(each.group, []).append(each)
    found = [
        OfGroup(tuple(map(sum, zip(*(each.per_operation for each in of), strict=True))), group)
        for group, of in members.items()
    ]
    return tuple(sorted(found, key=lambda each: (each.group == OTHER, -(each.mean or 0.0), each.group)))
