"""Published findings held against the runs: confirmed, contradicted, or open with the reason.

A finding is made of parts: means and ratios, each with a bound. A part is shown to hold where its whole interval is
within the bound, and shown not to hold where its whole interval is outside.

Where one part of several decides (one that contradicts "in every cell", one that confirms "in some cell"), luck has as
many chances as there are parts: such a part counts only by an interval of confidence 1 - alpha / parts (Bonferroni;
R. G. Miller, Simultaneous Statistical Inference, 2nd edition 1981). Where all parts have to agree, each is asked at the
study's own confidence, since all of them together are right by luck at most as often as one (R. L. Berger,
Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 1982).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import polars as pl

from dyno.analysis.cells import intervals
from dyno.analysis.comparisons import NO_MEANS, Measured, between
from dyno.analysis.derived import Made, Over, Removed
from dyno.analysis.overall import Part, pool
from dyno.analysis.removal import chains
from dyno.analysis.sentences import NOT_JUDGED, capital, levels
from dyno.analysis.table import Table
from dyno.analysis.targets import is_chosen
from dyno.analysis.unmeasured import why_unmeasured
from dyno.model import bounds, measures
from dyno.model.assemblies import ORDER, OURS, TITLES
from dyno.model.findings import ClaimResult, ClaimVerdict, Evidence, Interval, format_estimate, format_ratio
from dyno.model.pairs import Pair
from dyno.model.published import (
    CANNOT_JUDGE,
    LARGEST,
    TOGETHER,
    AllOf,
    AnyOf,
    CallsAre,
    CallsOf,
    Claim,
    MeanIs,
    MeanOf,
    Peak,
    Predicate,
    RatioIs,
    RatioOf,
    RemovalIs,
    TrendIs,
    WithinIs,
)
from dyno.model.study import Cell, Study
from dyno.model.units import counted
from dyno.model.usage import is_resource

RATIO = "1"  # the unit of a ratio
_NO_CELL = "no cell has these levels"
_LAST_DIGIT = 1e-6


@dataclass(frozen=True)
class _Part:
    """The mean of cell number `b`, or the ratio b / a, and its bound; of what is `made` of responses where it is.

    Where there are `others`, of the same factors, it is the geometric mean of their ratios and this one.
    """

    response: str
    b: int
    a: int | None
    bound: bounds.Bound
    made: Over | Removed | Made | None = None
    others: tuple[_Part, ...] = ()

    @property
    def pairs(self) -> tuple[_Part, ...]:
        """All that its figure is of: itself, where there are no others."""
        return (self, *self.others)

    @property
    def title(self) -> str:
        """What its figures are of."""
        return self.made.title if self.made else measures.lookup(self.response).title

    @property
    def unit(self) -> str:
        """Of its figures, where they are no ratios."""
        return self.made.unit if self.made else measures.lookup(self.response).unit

    @property
    def needed(self) -> tuple[str, ...]:
        """The responses that runs must have."""
        match self.made:
            case Over():
                return self.made.of, self.made.over
            case Removed():
                events = (self.made.event, *((self.made.over,) if self.made.over else ()))
                return tuple(f"{self.made.transaction}.{event}" for event in events)
            case Made():
                return ()
        return (self.response,)


@dataclass(frozen=True)
class _Missing:
    """A part that this study cannot have, and why."""

    why: str


@dataclass(frozen=True)
class _Group:
    how: Literal["all", "any"]
    parts: tuple[_Node, ...]


@dataclass(frozen=True)
class _Tables:
    """The runs by their responses, by what they used, and what was counted of their transactions."""

    responses: Table
    used: Table
    counts: pl.DataFrame | None

    def of(self, measure: str) -> Table:
        return self.used if is_resource(measure) else self.responses

    def holding(self, part: _Part) -> Table:
        """That which has the part's figures, under the name of its response."""
        match part.made:
            case Over():
                return part.made.table(self.of(part.made.of), self.of(part.made.over))
            case Removed():
                return part.made.table(self.responses)
            case Made():
                return part.made.table(self.responses, self.counts)
        return self.of(part.response)


_Node = _Part | _Missing | _Group
Estimate = tuple[float, Interval] | str
"""A figure with its interval, or why there is none."""
Found = Mapping[_Part, Estimate]
Held = Mapping[_Part, bool | None]


def judge(study: Study, table: Table, used: Table, claim: Claim, counts: pl.DataFrame | None = None) -> ClaimResult:
    """What the runs say of a published finding; nothing at scale smoke.

    `used` is the table of what they used, `counts` what was counted of their transactions, with the run's number.
    """
    if not study.judged:
        return _result(claim, "open", f"{capital(NOT_JUDGED)}.")
    if claim.here != "yes":
        return _result(claim, "open", f"This kind of machine cannot judge it: {CANNOT_JUDGE[claim.here]}.")
    if claim.predicate is None:
        return _result(claim, "open", "The study does not say how it could be checked.")
    cells = study.numbered()
    tree = _lowered(study, claim.predicate)
    parts = list(dict.fromkeys(_parts(tree)))
    confidence = study.replicates.confidence
    tables = _Tables(table, used, counts)
    plain = _measured(study, tables, parts, confidence)
    counting = sum(not isinstance(found, str) for found in plain.values())
    strict_confidence = 1 - (1 - confidence) / max(counting, 1)
    strict = _measured(study, tables, parts, strict_confidence) if counting > 1 else plain
    truth = _truth(tree, _held(plain), _held(strict))
    verdict: ClaimVerdict = "open" if truth is None else "confirmed" if truth else "contradicted"
    reason = _Reason(cells, tree, plain, strict, strict_confidence).of(truth)
    return _result(claim, verdict, reason, tuple(_evidence(cells, part, plain[part]) for part in parts))


def speaks_of(predicate: Predicate | None, factor: str) -> bool:
    """Whether it names levels of a factor, which the cells that it is held against must then have."""
    match predicate:
        case AllOf():
            return any(speaks_of(part, factor) for part in predicate.all)
        case AnyOf():
            return any(speaks_of(part, factor) for part in predicate.any)
        case RatioIs():
            return factor in {*predicate.ratio.a, *predicate.ratio.b, *predicate.ratio.where}
        case WithinIs():
            return factor in {*predicate.within.a, *predicate.within.b, *predicate.within.where}
        case MeanIs():
            return factor in predicate.mean.where
        case TrendIs():
            return factor in {predicate.trend.over, *predicate.trend.where}
        case CallsAre():
            return factor in predicate.calls.where
    return False


def _result(claim: Claim, verdict: ClaimVerdict, reason: str, evidence: tuple[Evidence, ...] = ()) -> ClaimResult:
    return ClaimResult(
        id=claim.id,
        says=claim.says,
        here=claim.here,
        needs=claim.needs,
        note=claim.note,
        verdict=verdict,
        reason=reason,
        evidence=evidence,
    )


# From what is said to means and ratios of cells


def _lowered(study: Study, predicate: Predicate) -> _Node:
    match predicate:
        case AllOf():
            return _Group("all", tuple(_lowered(study, part) for part in predicate.all))
        case AnyOf():
            return _Group("any", tuple(_lowered(study, part) for part in predicate.any))
        case RatioIs():
            bound = bounds.parse(predicate.wanted, RATIO)
            return _over(predicate.cells, _ratios(study, predicate.ratio, bound))
        case WithinIs():
            margin = predicate.within.margin
            bound = bounds.Bound(1 / (1 + margin), 1 + margin, True, f"within {margin * 100:.3g}%")
            return _over(predicate.cells, _ratios(study, predicate.within, bound))
        case MeanIs():
            bound = bounds.parse(predicate.wanted, measures.unit_over(predicate.mean.of, predicate.mean.over))
            return _over(predicate.cells, _means(study, predicate, bound))
        case TrendIs():
            return _over(predicate.cells, _trends(study, predicate))
        case RemovalIs():
            return _over(predicate.cells, _removals(study, predicate))
        case CallsAre():
            return _over(predicate.cells, _calls(study, predicate.calls))


def _over(cells: str, parts: Sequence[_Node]) -> _Node:
    if cells == TOGETHER:
        pairs = tuple(each for each in parts if isinstance(each, _Part))
        return replace(pairs[0], others=pairs[1:]) if pairs else parts[0]
    return _Group("all" if cells == "every cell" else "any", tuple(parts))


def _absent(study: Study, *chosen: Mapping[str, str | Sequence[str]]) -> list[_Node]:
    """A level that is named and that no cell has, as at a scale with fewer of them."""
    for each in chosen:
        for factor, some in each.items():
            there = {cell.levels.get(factor) for cell in study.cells}
            for level in [some] if isinstance(some, str) else some:
                if level not in there:
                    return [_Missing(f"no cell has {factor}={level} at scale {study.scale}")]
    return []


def _ratios(study: Study, ratio: RatioOf, bound: bounds.Bound) -> list[_Node]:
    if missing := _absent(study, ratio.a, ratio.b, ratio.where):
        return missing
    below = {_others(cell, ratio.a): cell.index for cell in study.cells if _has(cell, ratio.a)}
    return [
        _Part(ratio.of, cell.index, a, bound, _quotient(ratio))
        for cell in study.cells
        if _has(cell, ratio.b) and is_chosen(cell, ratio.where) and (a := below.get(_others(cell, ratio.a))) is not None
    ] or [_Missing("no two cells differ in this alone")]


def _means(study: Study, predicate: MeanIs, bound: bounds.Bound) -> list[_Node]:
    where = predicate.mean.where
    if missing := _absent(study, where):
        return missing
    mean = predicate.mean
    return [
        _Part(mean.of, cell.index, None, bound, _quotient(mean)) for cell in study.cells if is_chosen(cell, where)
    ] or [_Missing(_NO_CELL)]


def _quotient(said: MeanOf | RatioOf) -> Over | None:
    return None if said.over is None else Over(said.of, said.over)


def _removals(study: Study, predicate: RemovalIs) -> list[_Node]:
    """For each chain of removals, each component's share, or what it has more than each other component."""
    said = predicate.removal
    parts: list[_Node] = []
    for chain in chains(study):
        for component in said.component:
            steps = chain.steps(component)
            if not steps:
                parts.append(_Missing(f"{TITLES[component]} is not removed at scale {study.scale}"))
                continue
            made = Removed(said.transaction, component, said.of, said.over, chain.cells[0], steps)
            if predicate.wanted != LARGEST:
                bound = bounds.parse(predicate.wanted, made.unit)
                parts.append(_Part(made.name, steps[-1][1], None, bound, made))
                continue
            more = bounds.parse("> 0", made.unit)
            others = [each for each in ORDER if each not in (component, *OURS) and chain.steps(each)]
            parts += [
                _Part(made.name, steps[-1][1], None, more, replace(made, other=each, against=chain.steps(each)))
                for each in others
            ] or [_Missing(f"nothing but {TITLES[component]} is removed at scale {study.scale}")]
    return parts or [_Missing("no two cells differ in a component of the engine alone")]


def _calls(study: Study, said: CallsOf) -> list[_Node]:
    if missing := _absent(study, said.where):
        return missing
    return [
        _Group("all", tuple(_Part(made.name, cell.index, None, _just(times), made) for made, times in wanted))
        for wanted in [[(Made(said.transaction, call), times) for call, times in said.made.items()]]
        for cell in study.cells
        if is_chosen(cell, said.where)
    ] or [_Missing(_NO_CELL)]


def _just(times: int) -> bounds.Bound:
    """No call more or less; a mean of whole numbers may be a last digit off."""
    return bounds.Bound(times - _LAST_DIGIT, times + _LAST_DIGIT, True, str(times))


def _trends(study: Study, predicate: TrendIs) -> list[_Node]:
    """Each step of a rise or fall, or the peak against each other level, for each combination of the other factors."""
    trend, wanted = predicate.trend, predicate.wanted
    peak = {trend.over: wanted.at} if isinstance(wanted, Peak) else {}
    if missing := _absent(study, trend.where, peak):
        return missing
    place = {level.name: i for i, level in enumerate(study.factor(trend.over).levels)}
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in study.cells:
        if is_chosen(cell, trend.where):
            groups.setdefault(_others(cell, {trend.over: ""}), []).append(cell)
    rises, falls = bounds.parse("> 1", RATIO), bounds.parse("< 1", RATIO)
    nodes: list[_Node] = []
    for group in groups.values():
        ordered = sorted(group, key=lambda cell: place[cell.levels[trend.over]])
        if isinstance(wanted, Peak):
            top = next((cell for cell in ordered if cell.levels[trend.over] == wanted.at), None)
            steps = [(cell, top) for cell in ordered if top is not None and cell is not top]
        else:
            steps = list(pairwise(ordered))
        bound = falls if wanted == "falls" else rises
        if steps:
            nodes.append(_Group("all", tuple(_Part(trend.of, b.index, a.index, bound) for a, b in steps)))
        else:
            nodes.append(_Missing(f"{trend.over} has a single level at scale {study.scale}"))
    return nodes or [_Missing(_NO_CELL)]


def _has(cell: Cell, chosen: Mapping[str, str]) -> bool:
    return all(cell.levels.get(factor) == level for factor, level in chosen.items())


def _others(cell: Cell, but: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(item for item in cell.levels.items() if item[0] not in but)


def _parts(node: _Node) -> Iterator[_Part]:
    if isinstance(node, _Part):
        yield node
    elif isinstance(node, _Group):
        for part in node.parts:
            yield from _parts(part)


# From runs to truth


def _measured(study: Study, tables: _Tables, parts: Sequence[_Part], confidence: float) -> Found:
    of_means = {(part.response, part.made): part for part in parts if part.a is None}
    means = {key: intervals(study, tables.holding(part), part.response, confidence) for key, part in of_means.items()}
    found: dict[_Part, Estimate] = {}
    cells = study.numbered()
    for part in parts:
        title, b, table = part.title, cells[part.b], tables.holding(part)
        if part.response not in table.values:
            reasons = (why_unmeasured(study, table.ok_runs, each) for each in part.needed)
            why = next(filter(None, reasons), "")
            found[part] = f"{title} was not measured{f', since {why}' if why else ''}"
        elif part.a is not None:
            ratios = [_ratio_of(study, table, each, confidence) for each in part.pairs]
            unknown = next((each for each in ratios if isinstance(each, str)), None)
            alone = ratios[0] if len(ratios) == 1 else None
            found[part] = unknown or alone or _together(study, table, part, confidence)
        else:
            runs = counted(len(table.of(part.response, part.b)), "ok run")
            found[part] = means[part.response, part.made].get(part.b, f"{b.name} has {runs} with {title}, and needs 2")
    return found


def _ratio_of(study: Study, table: Table, part: _Part, confidence: float) -> Estimate:
    assert part.a is not None, "a mean is no ratio"
    a, b = study.numbered()[part.a], study.numbered()[part.b]
    return _ratio(between(study, table, part.response, a, b, _names(a, b)), part.title, a, b, confidence)


def _ratio(measured: Measured, title: str, a: Cell, b: Cell, confidence: float) -> Estimate:
    if measured.pace == "rate":
        first, second = _names(a, b)
        return f"the rate of {first} or {second} was given, and {title} says nothing of what they can do"
    ratio = measured.ratio(confidence)
    if ratio is None:
        return measured.why_not or NO_MEANS
    return ratio.ratio, (ratio.lo, ratio.hi)


def _together(study: Study, table: Table, part: _Part, confidence: float) -> Estimate:
    """The geometric mean over all pairs, each of which has a ratio."""
    cells, pairs = study.numbered(), []
    for each in part.pairs:
        assert each.a is not None, "means are not taken together"
        a, b = cells[each.a], cells[each.b]
        pairs.append(Pair(next(name for name, level in a.levels.items() if b.levels.get(name) != level), a, b))
    pooled = pool(study, table, part.response, Part({}, tuple(pairs)))
    if pooled is None or pooled.used < len(pairs):
        return f"{part.title} of {counted(len(pairs), 'pair')} together takes two blocks in which each of them is"
    ratio = pooled.shift.ratio(confidence)
    return ratio.ratio, (ratio.lo, ratio.hi)


def _names(a: Cell, b: Cell) -> tuple[str, str]:
    """Two cells by the levels in which they differ."""
    differ = [factor for factor, level in a.levels.items() if b.levels.get(factor) != level]
    first, second = (" ".join(cell.levels[factor] for factor in differ) for cell in (a, b))
    return first, second


def _held(found: Found) -> Held:
    return {part: None if isinstance(each, str) else part.bound.holds(each[1]) for part, each in found.items()}


def _truth(node: _Node, plain: Held, strict: Held) -> bool | None:
    """Whether it is shown to hold, shown not to, or neither. One that decides alone has to do so by `strict`."""
    if isinstance(node, _Missing):
        return None
    if isinstance(node, _Part):
        return plain[node]
    together = [_truth(part, plain, strict) for part in node.parts]
    alone = [_truth(part, strict, strict) for part in node.parts]
    enough, all_of = (False, True) if node.how == "all" else (True, False)
    if all(each is all_of for each in together):
        return all_of
    return enough if any(each is enough for each in alone) else None


# In words


def _evidence(cells: Mapping[int, Cell], part: _Part, found: Estimate) -> Evidence:
    value, interval = (None, None) if isinstance(found, str) else found
    return Evidence(
        response=part.response,
        unit=part.unit if part.a is None else RATIO,
        b=_shared(cells[each.b].levels for each in part.pairs),
        a=None if part.a is None else _shared(cells[each.a].levels for each in part.pairs if each.a is not None),
        value=value,
        ci=interval,
        wanted=part.bound.text,
        holds=part.bound.holds(interval) if interval else None,
    )


@dataclass(frozen=True)
class _Reason:
    """Why a finding stands as it does, in a sentence or two."""

    cells: Mapping[int, Cell]
    tree: _Node
    plain: Found
    strict: Found
    strict_confidence: float

    def of(self, truth: bool | None) -> str:
        if truth is None:
            return self._open()
        held, strictly = _held(self.plain), _held(self.strict)
        alike = [part for part, each in held.items() if each is truth]
        verb = "keeps to" if truth else "is outside"
        if len(held) == 1:
            return f"{self._shown(alike[0])} {verb} “{alike[0].bound.text}”."
        if len(alike) == len(held):
            words, part = "the nearest to its bound", (min if truth else max)(alike, key=self._room)
        else:
            decisive = [part for part in alike if strictly[part] is truth] or alike
            words, part = "the clearest", (max if truth else min)(decisive, key=self._room)
        count = f"All {len(held)}" if len(alike) == len(held) else f"{len(alike)} of {len(held)}"
        return f"{count} intervals are {'as' if truth else 'not as'} it says; {words}: {self._whole(part)}."

    def _open(self) -> str:
        missing = [found for found in self.plain.values() if isinstance(found, str)]
        missing += [node.why for node in _missing(self.tree)]
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            return f"Not known: {missing[0]}{more}."
        held = _held(self.plain)
        if len(held) == 1:
            return f"The interval is too wide to tell: {self._whole(next(iter(held)))}."
        yes, no, wide = ([part for part, each in held.items() if each is kind] for kind in (True, False, None))
        said = ((yes, "as it says"), (no, "not as it says"), (wide, "too wide to tell"))
        counts = [f"{len(some)} {'is' if len(some) == 1 else 'are'} {what}" for some, what in said if some]
        text = f"Of {len(held)} intervals {', '.join(counts)}"
        if wide:
            text = f"{text}: {self._whole(min(wide, key=self._room))}"
        if yes if isinstance(self.tree, _Group) and self.tree.how == "any" else no:
            share = f"{self.strict_confidence * 100:.4g}%"
            return f"{text}. One of {len(held)} counts alone only at {share} confidence, which it does not reach."
        return f"{text}."

    def _room(self, part: _Part) -> float:
        """How far the interval is within the bound, relative to the value; negative where it reaches beyond."""
        found = self.plain[part]
        assert not isinstance(found, str), "only what was measured is ranked"
        (low, high), bound = found[1], part.bound
        return min(low - bound.low, bound.high - high) / (abs(found[0]) or 1.0)

    def _whole(self, part: _Part) -> str:
        return f"{self._shown(part)}, where it says “{part.bound.text}”"

    def _shown(self, part: _Part) -> str:
        found, b = self.plain[part], self.cells[part.b]
        assert not isinstance(found, str), "only what was measured is shown"
        value, interval = found
        if part.a is None:
            where = f" with {levels(b.levels)}" if b.levels else ""
            return f"{part.title}{where}: {format_estimate(value, interval)}{_written(part.unit)}"
        a = self.cells[part.a]
        first, second = _names(a, b)
        of_all = (self.cells[each].levels for some in part.pairs for each in (some.a, some.b) if each is not None)
        shared = _shared(of_all)
        where = f" with {levels(shared)}" if shared else ""
        if part.others:
            where = f"{where} over {len(part.others) + 1} combinations together"
        return f"{part.title} of {second} against {first}{where}: {format_ratio(value, interval)}"


def _shared(each: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The levels that all have."""
    first, *rest = each
    return {factor: level for factor, level in first.items() if all(other.get(factor) == level for other in rest)}


def _written(unit: str) -> str:
    return "" if unit == RATIO else f" {unit}"


def _missing(node: _Node) -> Iterator[_Missing]:
    if isinstance(node, _Missing):
        yield node
    elif isinstance(node, _Group):
        for part in node.parts:
            yield from _missing(part)
