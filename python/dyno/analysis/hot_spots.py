"""What CPU time was spent on: call stacks, grouped by what their functions are known to do.

Of each stack the innermost frame that a rule knows decides; a stack that no rule knows stays `other`, with its share.
Each run weighs alike: its shares are of its own samples, so that a run with more of them says no more than others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from dyno import stats
from dyno.analysis.choices import choose, compared_runs
from dyno.analysis.table import Table
from dyno.model.findings import HotGroup, HotSpots, HotSymbol
from dyno.model.flames import Flame
from dyno.model.hot_spots import OTHER, Rule, built_in, rules_in
from dyno.model.pairs import pairs
from dyno.model.run import Outcome, RunRecord
from dyno.model.stages import comparing
from dyno.model.study import Cell, Study

KERNEL, JIT = "kernel", "jit"
MOST_SYMBOLS: Final = 12  # of a cell
MOST_OF_GROUP: Final = 4  # symbols of a group


class Frame(NamedTuple):
    """A function of a stack; `symbol` is None where it is not known."""

    symbol: str | None
    module: str


class Kind(NamedTuple):
    """What a stack is counted as."""

    group: str
    symbol: str | None
    module: str


Spent = dict[Kind, float]
"""The share of a run's samples that is of each."""


class _Compiled(NamedTuple):
    """A rule, its patterns ready to be searched for."""

    group: str
    symbol: re.Pattern[str] | None
    module: re.Pattern[str] | None
    caller: re.Pattern[str] | None


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    return None if pattern is None else re.compile(pattern)


def frame(text: str) -> Frame:
    """A frame as the observer writes it: `symbol_[k]`, `symbol_[j]`, `symbol@file` or `[file]`."""
    for mark, module in (("_[k]", KERNEL), ("_[j]", JIT)):
        if text.endswith(mark):
            symbol = text.removesuffix(mark).removesuffix("_[i]")
            return Frame(None if symbol.startswith("[") else symbol, module)
    if text.startswith("[") and text.endswith("]"):
        return Frame(None, text[1:-1])
    # Of a library's symbol the version stands between: `memcpy@@GLIBC_2.14@libc.so.6`.
    symbol, _, module = text.rpartition("@")
    return Frame(symbol.partition("@")[0] or symbol, module) if symbol else Frame(module, "")


class Grouping:
    """Rules, ready to be asked of many stacks."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Of several rules that know a frame the first counts."""
        self._rules = [
            _Compiled(rule.group, _compiled(rule.symbol), _compiled(rule.module), _compiled(rule.caller))
            for rule in rules
        ]
        self._known: dict[str, tuple[tuple[str, re.Pattern[str] | None], ...]] = {}

    def group(self, stack: str) -> str:
        """What was being done. The first part of a stack is its thread's name and no function."""
        _, *frames = stack.split(";")
        for place in range(len(frames) - 1, -1, -1):
            for group, caller in self._of(frames[place]):
                if caller is None or any(caller.search(frame(each).symbol or "") for each in frames[:place]):
                    return group
        return OTHER

    def of_function(self, function: Frame) -> str:
        """Of one whose callers are not known: rules that want a caller are none for it."""
        return next((group for group, caller in self._that_know(function) if caller is None), OTHER)

    def _of(self, text: str) -> tuple[tuple[str, re.Pattern[str] | None], ...]:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = tuple(self._that_know(frame(text)))
        return known

    def _that_know(self, function: Frame) -> Iterator[tuple[str, re.Pattern[str] | None]]:
        """The groups of the rules that know a function, each with what it wants of the callers."""
        symbol, module = function
        for rule in self._rules:
            if (rule.symbol is None or (symbol is not None and rule.symbol.search(symbol))) and (
                rule.module is None or rule.module.search(module)
            ):
                yield rule.group, rule.caller


def hot_spots(study: Study, table: Table, stacks: pl.DataFrame, rules: Sequence[Rule] = ()) -> Iterator[HotSpots]:
    """Of each cell of which call stacks were taken. `rules` come before those of the study and dyno's own.

    `stacks` are those of a results folder, with the run's number in `run`.
    """
    if not stacks.height:
        return
    grouping = _grouping(study, rules)
    kinds = {stack: _kind(grouping, stack) for stack in stacks["stack"].unique()}
    by_run = {int(str(run)): rows for (run,), rows in stacks.group_by("run", maintain_order=True)}
    for cell in study.cells:
        runs = [by_run[run.run] for run in table.ok_runs if run.slot.cell == cell.index and run.run in by_run]
        if runs:
            yield _of_cell(cell, runs, kinds, study.replicates.confidence)


def shares_by_block(
    study: Study, table: Table, stacks: pl.DataFrame, rules: Sequence[Rule] = ()
) -> dict[int, dict[int, Spent]]:
    """Cell -> block -> the shares of that run's samples; arguments as of `hot_spots`."""
    if not stacks.height:
        return {}
    grouping = _grouping(study, rules)
    by_run = {int(str(run)): rows for (run,), rows in stacks.group_by("run", maintain_order=True)}
    kinds = {stack: _kind(grouping, stack) for stack in stacks["stack"].unique()}
    found: dict[int, dict[int, Spent]] = {}
    for run in table.ok_runs:
        if run.run in by_run:
            found.setdefault(run.slot.cell, {})[run.slot.block] = _shares(by_run[run.run], kinds)
    return found


def _grouping(study: Study, rules: Sequence[Rule]) -> Grouping:
    return Grouping((*rules, *rules_in(study.observe), *built_in()))


def flames_of(study: Study, runs: Sequence[RunRecord], stacks: pl.DataFrame) -> Iterator[Flame]:
    """The graphs to draw: of each cell's ok runs, and of what changed against the first of the compared levels.

    Of a staged study they are of stage two, as all its figures are.
    """
    if not stacks.height:
        return
    if study.stages is not None:
        chosen = choose(study, runs)
        runs = compared_runs(runs, chosen)
        study = comparing(study, [choice.cell for choice in chosen])
    cell_of = {run.run: run.slot.cell for run in runs if run.outcome is Outcome.OK}
    with_cells = pl.DataFrame(
        {"run": list(cell_of), "cell": list(cell_of.values())}, schema={"run": pl.Int32, "cell": pl.Int32}
    )
    counted = (
        stacks.join(with_cells, on="run", how="inner", maintain_order="left")
        .group_by("cell", "stack", maintain_order=True)
        .agg(pl.col("samples").sum())
        .sort("cell", "stack")
    )
    folded = {
        int(str(cell)): tuple(f"{stack} {count}" for stack, count in rows.select("stack", "samples").iter_rows())
        for (cell,), rows in counted.group_by("cell", maintain_order=True)
    }
    for cell in study.cells:
        if cell.index in folded:
            yield Flame(name=f"flame-{cell.index}", cell=cell.index, levels=cell.levels, stacks=folded[cell.index])
    first = study.factor(study.compare).levels[0].name if study.compare else None
    for pair in pairs(study):
        a, b = pair.a.index, pair.b.index
        if pair.level_a == first and a in folded and b in folded:
            yield Flame(
                name=f"flame-{b}-against-{a}",
                cell=b,
                levels=pair.b.levels,
                against=pair.level_a,
                stacks=folded[b],
                before=folded[a],
            )


def _kind(grouping: Grouping, stack: str) -> Kind:
    innermost = frame(stack.rpartition(";")[2])
    return Kind(grouping.group(stack), innermost.symbol, innermost.module)


def _of_cell(cell: Cell, runs: Sequence[pl.DataFrame], kinds: Mapping[str, Kind], confidence: float) -> HotSpots:
    shares = [_shares(rows, kinds) for rows in runs]
    of_kinds: dict[Kind, float] = {}
    for run in shares:
        for kind, share in run.items():
            of_kinds[kind] = of_kinds.get(kind, 0.0) + share / len(shares)
    groups = dict.fromkeys(kind.group for kind in of_kinds)
    found = [_group(group, shares, of_kinds, confidence) for group in groups]
    symbols = _symbols(of_kinds, MOST_SYMBOLS)
    return HotSpots(
        cell=cell.index,
        levels=cell.levels,
        event=str(runs[0]["event"][0]),
        runs=len(runs),
        samples=sum(int(rows["samples"].sum()) for rows in runs),
        groups=tuple(sorted(found, key=lambda each: (each.group == OTHER, -each.share, each.group))),
        symbols=tuple(symbols),
        unknown=sum(share for kind, share in of_kinds.items() if kind.symbol is None),
    )


def _shares(rows: pl.DataFrame, kinds: Mapping[str, Kind]) -> dict[Kind, float]:
    """Of one run's samples."""
    total = float(rows["samples"].sum())
    found: dict[Kind, float] = {}
    for stack, samples in rows.select("stack", "samples").iter_rows():
        kind = kinds[stack]
        found[kind] = found.get(kind, 0.0) + samples / total
    return found


def _group(
    group: str, runs: Sequence[Mapping[Kind, float]], of_kinds: Mapping[Kind, float], confidence: float
) -> HotGroup:
    values = [sum(share for kind, share in run.items() if kind.group == group) for run in runs]
    interval = stats.mean_interval(values, confidence)
    return HotGroup(
        group=group,
        share=sum(values) / len(values),
        ci=None if interval is None else (max(interval[0], 0.0), min(interval[1], 1.0)),
        symbols=tuple(
            _symbols({kind: share for kind, share in of_kinds.items() if kind.group == group}, MOST_OF_GROUP)
        ),
    )


def _symbols(of_kinds: Mapping[Kind, float], most: int) -> list[HotSymbol]:
    ranked = sorted(of_kinds.items(), key=lambda item: (-item[1], str(item[0])))
    return [
        HotSymbol(symbol=kind.symbol, module=kind.module, group=kind.group, share=share)
        for kind, share in ranked[:most]
    ]
