"""Where a transaction's instructions go: by removing components one by one, by attribution, and over all orders."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from dyno import stats
from dyno.analysis.sentences import joined
from dyno.analysis.table import Table
from dyno.model.assemblies import (
    COMPONENTS,
    KERNEL,
    LEFT,
    ONLY_AFTER,
    ORDER,
    OURS,
    PAGES,
    TITLES,
    Assembly,
    feasible,
    parse,
)
from dyno.model.findings import CallCost, ComponentCost, ComponentShare, Contributed, Removal, RemovalStep
from dyno.model.published import PublishedShare
from dyno.model.study import Cell, Study

AGREE = 0.1
"""Of the first assembly's instructions: farther apart the two ways of counting a component do not agree."""

REPEAT = 0.001
"""Of the mean: counts of the same transactions of the same assembly differ by less."""

_ALIKE = 0.05  # of all instructions: nearer to what was published it is what was published
_MOST_TOLD = 3  # components in a sentence
_SUFFIX = ".instructions"
_OUTLINED = "outlined"
_Levels = tuple[tuple[str, str], ...]


def removals(study: Study, table: Table, counts: pl.DataFrame | None) -> Iterator[Removal]:
    """Of each kind of transaction that was counted, in each group of cells that differ in their assembly alone.

    `counts` are those of runs (`counts.parquet`), with the run's number in `run`.
    """
    kinds = [name.removesuffix(_SUFFIX) for name in table.values if name.endswith(_SUFFIX)]
    cell_of = {run.run: run.slot.cell for run in table.ok_runs}
    if counts is not None and counts.height and "again" not in counts.columns:
        counts = counts.with_columns(again=pl.lit(value=False))  # a folder of an earlier dyno
    spreads = _spreads(counts, cell_of)
    profiled, metered = (_Profiled(counts, cell_of, by) for by in ("callgrind", "hardware"))
    published = study.published.removal.shares if study.published and study.published.removal else ()
    for (within, _), cells in _groups(study).items():
        for kind in sorted(kinds):
            beside = {each.component: each for each in published if each.transaction == kind}
            found = _Of(
                kind, dict(within), cells, table, profiled, metered, spreads, beside, study.replicates.confidence
            ).removal()
            if found is not None:
                yield found


@dataclass(frozen=True)
class Chain:
    """Cells on the way from the first assembly on, each without something that the one before it has."""

    cells: tuple[int, ...]
    removed: tuple[str, ...]

    def steps(self, component: str) -> tuple[tuple[int, int], ...]:
        """The cells before and after each of the steps by which it goes; none where it does not."""
        return tuple((self.cells[place - 1], self.cells[place]) for place in places(component, self.removed))


def chains(study: Study) -> list[Chain]:
    """One for each combination of what is not the assembly, where there is a step at all."""
    found = (_chain(cells) for cells in _groups(study).values())
    return [Chain(tuple(cell.index for _, cell in chain), _all_removed(chain)) for chain in found if len(chain) > 1]


def places(component: str, removed: Sequence[str]) -> list[int]:
    """Of the steps by which it goes: larger pages are of the buffer manager. None where it stays."""
    of = [at for at, each in enumerate(removed) if each == component or (component == "buffer" and each == PAGES)]
    return of if of and removed[of[-1]] == component else []


def _groups(study: Study) -> dict[tuple[_Levels, _Levels], list[tuple[Assembly, Cell]]]:
    """In the order of the study, by the levels of other factors than those of the assembly, and by other options."""
    telling = _telling(study)
    found: dict[tuple[_Levels, _Levels], list[tuple[Assembly, Cell]]] = {}
    for cell in study.cells:
        if cell.system.kind != "glass":
            continue
        within = tuple(item for item in cell.levels.items() if item[0] not in telling)
        others = tuple(sorted((name, str(value)) for name, value in cell.system.options.items() if name != "assembly"))
        found.setdefault((within, others), []).append((_assembly(cell), cell))
    return found


def _assembly(cell: Cell) -> Assembly:
    return parse(str(cell.system.options.get("assembly", "full")))


def _telling(study: Study) -> set[str]:
    """The factors that say which assembly it is: with each of their levels one alone, and not with all the same."""
    found = set()
    for factor in study.factors:
        of_levels: dict[str, set[Assembly]] = {}
        for cell in study.cells:
            if cell.system.kind == "glass":
                of_levels.setdefault(cell.levels[factor.name], set()).add(_assembly(cell))
        each = list(of_levels.values())
        if all(len(assemblies) == 1 for assemblies in each) and len(set.union(*each, set())) > 1:
            found.add(factor.name)
    return found


class _Profiled:
    """Means over runs of what was counted in the builds that keep components apart, by callgrind or hardware."""

    def __init__(self, counts: pl.DataFrame | None, cell_of: Mapping[int, int], by: str) -> None:
        self._rows: dict[tuple[int, str], dict[tuple[str, str, str], list[float]]] = {}
        self._runs: dict[int, set[int]] = {}
        if counts is None or not counts.height:
            return
        wanted = ("run", "transaction", "call", "component", "event", "value")
        for run, kind, call, component, event, value in (
            counts.filter(pl.col("build") == _OUTLINED, pl.col("by") == by, ~pl.col("again")).select(wanted).iter_rows()
        ):
            if run in cell_of:
                self._runs.setdefault(cell_of[run], set()).add(run)
                of_kind = self._rows.setdefault((cell_of[run], kind), {})
                of_kind.setdefault((event, call, component), []).append(value)

    def of(self, cell: int, kind: str, event: str) -> dict[tuple[str, str], float]:
        """By call and component; a run that has none of one counts as 0 there."""
        runs = len(self._runs.get(cell, ()))
        return {
            (call, component): sum(values) / runs
            for (which, call, component), values in self._rows.get((cell, kind), {}).items()
            if which == event
        }


@dataclass(frozen=True)
class _Of:
    """One kind of transaction in one group of cells."""

    kind: str
    within: dict[str, str]
    cells: Sequence[tuple[Assembly, Cell]]
    table: Table
    profiled: _Profiled
    metered: _Profiled
    spreads: Mapping[tuple[int, str], float]
    published: Mapping[str, PublishedShare]
    confidence: float

    def removal(self) -> Removal | None:
        chain = _chain(self.cells)
        steps = tuple(self._steps(chain))
        if len(steps) < 2 or steps[0].instructions is None:
            return None
        kernel = next((self._step(cell, assembly, "") for assembly, cell in self.cells if assembly.kernel), None)
        contributions, reason = self._contributions()
        components = tuple(self._components(chain, steps))
        shares = tuple(self._shares(steps, components))
        counted = (*steps, *((kernel,) if kernel else ()))
        repeats = max((step.spread for step in counted if step.spread is not None), default=None)
        return Removal(
            transaction=self.kind,
            within=self.within,
            steps=steps,
            kernel=kernel,
            components=components,
            shares=shares,
            repeats=repeats,
            cycles=any(step.cycles is not None for step in counted),
            beside=_beside(shares),
            agreement=_agreement(shares),
            repeatability=_repeatability(repeats),
            calls=tuple(self._calls(chain[0][1])),
            contributions=contributions,
            contributions_reason=reason,
            sentence=_sentence(self.kind, steps, kernel),
        )

    def _steps(self, chain: Sequence[tuple[Assembly, Cell]]) -> Iterator[RemovalStep]:
        before: RemovalStep | None = None
        original: float | None = None
        for (assembly, cell), removed in zip(chain, _all_removed(chain), strict=True):
            step = self._step(cell, assembly, removed)
            original = original or step.instructions
            if before and before.instructions is not None and step.instructions is not None and original:
                saved = before.instructions - step.instructions
                step = step.model_copy(update={"saved": saved, "share": saved / original})
            yield step
            before = step

    def _step(self, cell: Cell, assembly: Assembly, removed: str) -> RemovalStep:
        outlined = self.profiled.of(cell.index, self.kind, "instructions")
        found = self.table.of(f"{self.kind}{_SUFFIX}", cell.index)
        interval = stats.mean_interval(found, self.confidence)
        return RemovalStep(
            assembly=assembly.name,
            removed=removed,
            ours=removed in OURS,
            cell=cell.index,
            instructions=statistics.fmean(found) if found else None,
            precision=stats.relative_half_width(interval, statistics.fmean(found)) if interval else None,
            cycles=self._mean(f"{self.kind}.cycles", cell),
            spread=self.spreads.get((cell.index, self.kind)),
            outlined=sum(outlined.values()) if outlined else None,
            throughput=self._mean("throughput", cell),
        )

    def _mean(self, response: str, cell: Cell) -> float | None:
        values = self.table.of(response, cell.index)
        return statistics.fmean(values) if values else None

    def _components(
        self, chain: Sequence[tuple[Assembly, Cell]], steps: Sequence[RemovalStep]
    ) -> Iterator[ComponentCost]:
        """In the order of removal; larger pages are of the buffer manager."""
        original = steps[0].instructions or 0.0
        for component in ORDER:
            of = places(component, [step.removed for step in steps])
            if not of:
                continue
            saved = [steps[place].saved for place in of]
            removed = sum(each for each in saved if each is not None) if None not in saved else None
            before, after = (self._by_component(chain[place][1]) for place in (of[0] - 1, of[-1]))
            own = before.get(component, 0.0) if before else None
            left = after.get(component, 0.0) if after else None
            # What is absent has another form, of which something may be left: keys are compared as words then.
            attributed = own - left if own is not None and left is not None else None
            apart = (removed - attributed) / original if removed is not None and attributed is not None else None
            yield ComponentCost(
                component=component,
                removed=removed,
                own=own,
                left=left,
                attributed=attributed,
                apart=apart,
                agree=None if apart is None else abs(apart) <= AGREE,
                elsewhere={} if attributed is None else _elsewhere(component, before, after),
                builds=None if removed is None or attributed is None else removed - _saved(before, after),
            )

    def _by_component(self, cell: Cell) -> dict[str, float]:
        found: dict[str, float] = {}
        for (_, name), value in self.profiled.of(cell.index, self.kind, "instructions").items():
            found[name] = found.get(name, 0.0) + value
        return found

    def _shares(self, steps: Sequence[RemovalStep], components: Sequence[ComponentCost]) -> Iterator[ComponentShare]:
        """Each component in the order of removal, larger pages below the buffer manager, and what is left."""
        original = steps[0].instructions or 0.0
        for each in components:
            by_removal = None if each.removed is None else each.removed / original
            attributed = None if each.attributed is None else each.attributed / original
            yield self._share(each.component, by_removal, attributed, each)
            pages = next((step for step in steps if step.removed == PAGES), None)
            if each.component == "buffer" and pages is not None:
                yield self._share(PAGES, pages.share, None)
        theirs = [step for step in steps if not step.ours]
        left = theirs[-1].instructions
        if len(theirs) > 1:
            yield self._share(LEFT, None if left is None else left / original, None)

    def _share(
        self, component: str, removed: float | None, attributed: float | None, cost: ComponentCost | None = None
    ) -> ComponentShare:
        there = self.published.get(component)
        return ComponentShare(
            component=component,
            ours=component in OURS,
            published=there.share if there else None,
            note=there.note if there else "",
            removed=removed,
            attributed=attributed,
            since=removed - there.share if there and removed is not None else None,
            apart=cost.apart if cost else None,
            agree=cost.agree if cost else None,
            why=_why(cost, removed, attributed) if cost else "",
        )

    def _calls(self, cell: Cell) -> Iterator[CallCost]:
        """The most costly first; what is in no call comes last."""
        by_call: dict[str, dict[str, float]] = {}
        for (call, component), value in self.profiled.of(cell.index, self.kind, "instructions").items():
            by_call.setdefault(call, {})[component] = value
        times = {call: value for (call, _), value in self.profiled.of(cell.index, self.kind, "calls").items()}
        events = ("instructions", "cycles")
        by_counters = {event: self.metered.of(cell.index, self.kind, event) for event in events}
        for call, components in sorted(by_call.items(), key=lambda item: (not item[0], -sum(item[1].values()))):
            ordered = sorted(components.items(), key=lambda item: (_place(item[0]), item[0]))
            yield CallCost(
                call=call,
                calls=times.get(call),
                instructions=sum(components.values()),
                components=dict(ordered),
                retired=by_counters["instructions"].get((call, "")),
                cycles=by_counters["cycles"].get((call, "")),
            )

    def _contributions(self) -> tuple[tuple[Contributed, ...], str]:
        known: dict[frozenset[str], float] = {}
        for assembly, cell in self.cells:
            value = self._mean(f"{self.kind}{_SUFFIX}", cell)
            if value is not None and not (assembly.kernel or assembly.large_pages):
                known[assembly.components] = value
        every = [each.components for each in feasible()]
        missing = sum(1 for each in every if each not in known)
        if missing:
            return (), f"{missing} of the {len(every)} assemblies that there are were not counted"
        whole = known[frozenset(COMPONENTS)]
        found = stats.shapley(ORDER, known, ONLY_AFTER)
        return tuple(
            Contributed(component=name, mean=each.mean, least=each.least, most=each.most, share=each.mean / whole)
            for name, each in found.items()
        ), ""


def _chain(cells: Sequence[tuple[Assembly, Cell]]) -> list[tuple[Assembly, Cell]]:
    """From the first on, each that is the one before without something."""
    found: list[tuple[Assembly, Cell]] = []
    for assembly, cell in cells:
        if assembly.kernel:
            continue
        if not found or _removed(found[-1][0], assembly):
            found.append((assembly, cell))
    return found


def _all_removed(chain: Sequence[tuple[Assembly, Cell]]) -> tuple[str, ...]:
    """Of each of them what the one before it has more; empty for the first."""
    return ("", *(_removed(before, after) for (before, _), (after, _) in pairwise(chain)))


def _spreads(counts: pl.DataFrame | None, cell_of: Mapping[int, int]) -> dict[tuple[int, str], float]:
    """By cell and kind: the largest difference of the same transactions counted twice, relative to their mean."""
    if counts is None or not counts.height:
        return {}
    twice = (
        counts.filter(pl.col("build") != _OUTLINED, pl.col("by") == "callgrind", pl.col("event") == "instructions")
        .group_by("run", "transaction", maintain_order=True)
        .agg(
            pl.col("value").filter(~pl.col("again")).sum().alias("first"),
            pl.col("value").filter("again").sum().alias("second"),
            pl.col("again").any(),
        )
        .filter("again")
    )
    found: dict[tuple[int, str], float] = {}
    for run, kind, first, second in twice.select("run", "transaction", "first", "second").iter_rows():
        if run in cell_of:
            place = (cell_of[run], kind)
            found[place] = max(found.get(place, 0.0), abs(first - second) / ((first + second) / 2))
    return found


def _saved(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    return sum(before.values()) - sum(after.values())


def _elsewhere(component: str, before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What all others have less of their own once it is gone: with that and what was its own, all is told."""
    others = sorted((before.keys() | after.keys()) - {component}, key=_place)
    found = {name: before.get(name, 0.0) - after.get(name, 0.0) for name in others}
    return {name: value for name, value in found.items() if value}


def _beside(shares: Sequence[ComponentShare]) -> str:
    """Which shares are still what was published, and which are not."""
    known = [(each, each.since) for each in shares if each.since is not None]
    kinds = (
        (f"Within {_ALIKE * 100:.0f} points of what was published", [each for each, by in known if abs(by) <= _ALIKE]),
        ("More than was published", [each for each, by in known if by > _ALIKE]),
        ("Less than was published", [each for each, by in known if by < -_ALIKE]),
    )
    return " ".join(
        f"{said}: {joined([TITLES[each.component] for each in some], most=len(some))}." for said, some in kinds if some
    )


def _agreement(shares: Sequence[ComponentShare]) -> str:
    judged = [each for each in shares if each.agree is not None]
    if not judged:
        return "Of (b) nothing is known, so that (a) stands alone."
    if all(each.agree for each in judged):
        return f"(a) and (b) agree within {AGREE:.0%} of all instructions for each component."
    reasons = " ".join(f"{each.why[:1].upper()}{each.why[1:]}." for each in judged if not each.agree)
    return f"(a) and (b) do not agree within {AGREE:.0%} of all instructions for each component. {reasons}"


def _repeatability(repeats: float | None) -> str:
    if repeats is None:
        return ""
    verdict = "as they should" if repeats < REPEAT else f"which is not below the {REPEAT:.1%} that they should be"
    return f"Counts of the same transactions of the same assembly differ by at most {repeats:.3%}, {verdict}."


def _why(cost: ComponentCost, removed: float | None, attributed: float | None) -> str:
    """Of one whose two figures do not agree: where the difference is, which is told in full by two terms."""
    if cost.agree is not False or not cost.removed or not removed or attributed is None or cost.builds is None:
        return ""
    original = cost.removed / removed
    ranked = sorted(cost.elsewhere.items(), key=lambda item: -abs(item[1]))[:_MOST_TOLD]
    others = sum(cost.elsewhere.values())
    named = ", ".join(f"{TITLES.get(name, name)} {value / original:+.1%}" for name, value in ranked)
    title = TITLES[cost.component]
    return (
        f"{title}: its removal saves {removed:.1%} of all instructions, {attributed:.1%} are attributed to it. "
        f"Of the difference {others / original:+.1%} is what others do less once it is gone ({named}); the rest, "
        f"{cost.builds / original:+.1%}, is between the optimised builds and those that keep components apart"
    )


def _removed(before: Assembly, after: Assembly) -> str:
    """What the second has not that the first has; empty where it is no step from there."""
    if before.components == after.components and after.large_pages and not before.large_pages:
        return PAGES
    if after.components < before.components and after.large_pages <= before.large_pages:
        return "+".join(each for each in ORDER if each in before.components - after.components)
    return ""


def _place(component: str) -> int:
    return list(TITLES).index(component) if component in TITLES else len(TITLES)


def _called(step: RemovalStep) -> str:
    return "all components" if parse(step.assembly).components == set(COMPONENTS) else step.assembly


def _sentence(kind: str, steps: Sequence[RemovalStep], kernel: RemovalStep | None) -> str:
    first, last = steps[0], steps[-1]
    if first.instructions is None or last.instructions is None:
        return f"Of {kind} not all steps were counted."
    said = (
        f"{kind}: {first.instructions:,.0f} instructions with {_called(first)}, "
        f"{last.instructions:,.0f} ({last.instructions / first.instructions:.1%}) with {last.assembly}"
    )
    if kernel is not None and kernel.instructions:
        times = last.instructions / kernel.instructions
        said += f", which is {times:.1f} times the {kernel.instructions:,.0f} of the {KERNEL}"
    largest = max((step for step in steps if step.share is not None), key=lambda step: step.share or 0.0, default=None)
    if len(steps) > 2 and largest is not None and largest.share is not None:
        title = TITLES.get(largest.removed, largest.removed)
        said += f". The largest single step is {title}: {largest.share:.1%}"
    return f"{said}."
