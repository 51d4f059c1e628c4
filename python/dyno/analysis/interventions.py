"""Whether throughput hangs on what was slowed on purpose: the slope of its log at dose 0. See docs/probes.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, geometric_mean

from dyno import stats
from dyno.analysis.table import Table
from dyno.model.findings import DoseEffect, FeltVerdict, Interval, Probed, format_quantity, format_ratio, format_share
from dyno.model.interventions import FACTOR, Dose
from dyno.model.run import Intervened
from dyno.model.study import Cell, Study
from dyno.model.units import format_percent

_RESPONSE = "throughput"
_MISFIT = 0.05
"""Below such a p the fitted curve is not the law that throughput follows, and its slope is none that was seen."""
_LEAST_ADDED = 0.1
"""Of an operation's time: where the highest dose adds less, no number of runs that anybody makes shows what it does."""


@dataclass
class _Series:
    """One kind of intervention in one cell: the cells of its doses, and that without the instrument."""

    within: dict[str, str]
    kind: str
    cells: list[Cell] = field(default_factory=list)
    bare: Cell | None = None

    @property
    def control(self) -> Cell:
        return self.cells[0]


def probed(study: Study, table: Table) -> list[Probed]:
    """Each kind in each cell that it was done to, in the order of the study."""
    series = _series(study)
    done = _done(table)
    # Of several slopes each may be wrong: all intervals are to hold at once (Bonferroni).
    confidence = 1 - (1 - study.replicates.confidence) / max(len(series), 1)
    return [_probed(study, table, each, done, confidence) for each in series]


def hangs_on(found: Sequence[Probed]) -> str:
    """The answer of a study that compares nothing: what throughput hangs on, and on what not."""
    parts = []
    for words, verdicts in _ANSWERS:
        told = [_named(each, found) for each in found if each.verdict in verdicts]
        if told:
            parts.append(f"{words} {', '.join(told)}.")
    return " ".join(parts)


_ANSWERS: Sequence[tuple[str, tuple[FeltVerdict, ...]]] = (
    ("Throughput falls as operations take longer by", ("felt in full", "felt in part", "more than in full")),
    ("It rises with", ("the other way",)),
    ("It is not shown to fall, and at most by a part of what is added, by", ("not in full",)),
    ("It cannot hang on calls that are not made:", ("no such calls",)),
    ("It differs as soon as enough is taken by", ("differs from a dose on",)),
    ("It is not seen to differ at any dose of", ("no difference seen",)),
    ("Nothing can be told of", ("cannot tell",)),
)


def _named(each: Probed, found: Sequence[Probed]) -> str:
    several = len({tuple(other.within.items()) for other in found}) > 1
    where = f" with {' '.join(f'{name}={level}' for name, level in each.within.items())}" if several else ""
    slope = "" if each.differs_from is None else f" (from {format_percent(each.differs_from)} on)"
    if each.slope is not None and each.slope_ci is not None:
        slope = f" (slope {each.slope:.2f} [{each.slope_ci[0]:.2f}, {each.slope_ci[1]:.2f}])"
    return f"{each.kind}{where}{slope}"


def _series(study: Study) -> list[_Series]:
    found: dict[tuple[tuple[tuple[str, str], ...], str], _Series] = {}
    bare: dict[tuple[tuple[str, str], ...], Cell] = {}
    for cell in study.cells:
        within = {name: level for name, level in cell.levels.items() if name != FACTOR}
        key = tuple(within.items())
        if cell.intervention is None:
            bare[key] = cell
            continue
        kind = cell.intervention.kind
        found.setdefault((key, kind), _Series(within, kind)).cells.append(cell)
    for (key, _), series in found.items():
        series.cells.sort(key=lambda cell: _dose(cell).dose)
        series.bare = bare.get(key)
    return list(found.values())


def _dose(cell: Cell) -> Dose:
    assert cell.intervention is not None, "only such cells are in a series"
    return cell.intervention


def _done(table: Table) -> dict[int, list[Intervened]]:
    """What was done in the ok runs, by cell."""
    found: dict[int, list[Intervened]] = {}
    for run in table.ok_runs:
        if run.intervened is not None:
            found.setdefault(run.slot.cell, []).append(run.intervened)
    return found


def _probed(
    study: Study, table: Table, series: _Series, done: Mapping[int, Sequence[Intervened]], confidence: float
) -> Probed:
    of_control = done.get(series.control.index, ())
    calls = _mean([each.calls_per_op for each in of_control])
    rates = table.of(_RESPONSE, series.control.index)
    clients = of_control[0].clients if of_control else None
    positive = [rate for rate in rates if rate > 0]
    time_s = clients / geometric_mean(positive) if clients and positive else None
    added = _added(series, done, calls, time_s)
    own = _ratio(table, series.bare, series.control, study.replicates.confidence)
    dose = _dose(series.control)
    if of_control and all(each.added_s is None and each.slowed is None for each in of_control):
        # Nothing takes longer by a known part, so there is nothing that a slope could be of.
        each_at = 1 - (1 - confidence) / max(len(series.cells) - 1, 1)
        effects = tuple(_effect(table, series, cell, added, each_at) for cell in series.cells)
        slope, interval = None, None
        differs = next((effect for effect in effects if effect.ci and not effect.ci[0] <= 1 <= effect.ci[1]), None)
        verdict, sentence = _without_slope(study, dose.title, effects, differs)
    else:
        effects = tuple(_effect(table, series, cell, added, study.replicates.confidence) for cell in series.cells)
        slope, differs = _slope(table, series, added, clients / time_s if clients and time_s and calls else None), None
        interval = slope.interval(confidence) if slope else None
        verdict = _verdict(study, calls, slope, interval)
        sentence = _sentence(series, verdict, slope, interval, calls, added)
    return Probed(
        within=series.within,
        kind=series.kind,
        title=dose.title,
        unit=dose.unit,
        clients=clients,
        calls_per_op=calls,
        time_per_op_s=time_s,
        doses=effects,
        own_cost=own.ratio if own else None,
        own_cost_ci=(own.lo, own.hi) if own else None,
        slope=slope.slope if slope else None,
        slope_ci=interval,
        confidence=confidence if interval else None,
        differs_from=differs.dose if differs else None,
        verdict=verdict,
        sentence=sentence,
        notes=tuple(
            dict.fromkeys(note for cell in series.cells for each in done.get(cell.index, ()) for note in each.notes)
        ),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _added(
    series: _Series, done: Mapping[int, Sequence[Intervened]], calls: float | None, time_s: float | None
) -> dict[int, float]:
    """Cell -> time that its dose adds to an operation, relative to the mean time of one in the control.

    Of a capacity: by how much what is left of it makes each use of it longer, beyond what the control does.
    """
    found = {}
    slowed_control = _mean([each.slowed for each in done.get(series.control.index, ())])
    for cell in series.cells:
        runs = done.get(cell.index, ())
        added_s, slowed = _mean([each.added_s for each in runs]), _mean([each.slowed for each in runs])
        if added_s is not None and calls is not None and time_s is not None:
            found[cell.index] = added_s * calls / time_s
        elif slowed is not None and slowed_control is not None:
            found[cell.index] = (1 + slowed) / (1 + slowed_control) - 1
    return found


def _ratio(table: Table, a: Cell | None, b: Cell, confidence: float) -> stats.Ratio | None:
    if a is None:
        return None
    ours, theirs = (table.in_blocks(_RESPONSE, cell.index) for cell in (a, b))
    shared = [block for block in ours if block in theirs and ours[block] > 0 and theirs[block] > 0]
    return stats.paired_ratio([ours[block] for block in shared], [theirs[block] for block in shared], confidence)


def _effect(table: Table, series: _Series, cell: Cell, added: Mapping[int, float], confidence: float) -> DoseEffect:
    found = None
    if cell is not series.control:
        found = _ratio(table, series.control, cell, confidence)
    return DoseEffect(
        cell=cell.index,
        level=_dose(cell).level,
        dose=_dose(cell).dose,
        added=added.get(cell.index),
        n=len(table.of(_RESPONSE, cell.index)),
        ratio=found.ratio if found else None,
        ci=(found.lo, found.hi) if found else None,
    )


def _slope(table: Table, series: _Series, added: Mapping[int, float], reference: float | None) -> stats.Onset | None:
    """`reference` is the rate of the control, where what is added is a time relative to that of an operation there."""
    rows = [
        (added[cell.index], rate, block)
        for cell in series.cells
        if cell.index in added
        for block, rate in table.in_blocks(_RESPONSE, cell.index).items()
        if rate > 0
    ]
    if not rows:
        return None
    doses, rates, blocks = zip(*rows, strict=True)
    return stats.onset(doses, rates, blocks, reference)


def _verdict(study: Study, calls: float | None, slope: stats.Onset | None, interval: Interval | None) -> FeltVerdict:
    if not study.judged:
        return "not judged"
    if calls == 0:
        return "no such calls"
    if slope is None or interval is None or _is_bent_otherwise(slope):
        return "cannot tell"
    low, high = -interval[1], -interval[0]  # the share of what is added that is felt
    if high < 0:
        return "the other way"
    if low > 0:
        return "more than in full" if low > 1 else "felt in part" if high < 1 else "felt in full"
    return "not in full" if high < 1 else "cannot tell"


def _is_bent_otherwise(slope: stats.Onset) -> bool:
    return slope.misfit is not None and slope.misfit < _MISFIT


def _without_slope(
    study: Study, title: str, effects: Sequence[DoseEffect], differs: DoseEffect | None
) -> tuple[FeltVerdict, str]:
    """Of what is not shared in time: up to which dose nothing is seen, by intervals that hold at once."""
    known = [effect for effect in effects if effect.ci is not None]
    if not known:
        return "cannot tell", f"{title}: cannot tell; too few ok runs at too few doses"
    last = differs or known[-1]
    figure = f"{format_ratio(last.ratio or 1.0, last.ci or (1.0, 1.0))} at {format_percent(last.dose)}"
    if not study.judged:
        return "not judged", f"{title}: throughput is {figure}; at scale smoke nothing is judged"
    if differs is None and last.ci and last.ci[0] <= 1 - last.dose:
        return "cannot tell", f"{title}: cannot tell ({figure} holds both 1 and the share that is left)"
    if differs is None:
        return (
            "no difference seen",
            f"{title}: at no dose is throughput seen to differ from the control ({figure})",
        )
    before = max((effect.dose for effect in known if effect.dose < differs.dose), default=None)
    so_far = (
        "already at the smallest dose; look at smaller ones"
        if before is None
        else f"{format_percent(before)} of it can be taken before that is seen"
    )
    return (
        "differs from a dose on",
        f"{title}: throughput differs from {format_percent(differs.dose)} on ({figure}); {so_far}",
    )


_SAYS: Mapping[FeltVerdict, str] = {
    "felt in full": "all of it is felt: operations wait for this",
    "felt in part": "a part of it is felt: the rest is hidden behind what else goes on, or few operations wait for it",
    "more than in full": "more than all of it is felt: while one operation waits, others wait in line behind it",
    "the other way": "throughput rises with it",
}


def _sentence(
    series: _Series,
    verdict: FeltVerdict,
    slope: stats.Onset | None,
    interval: Interval | None,
    calls: float | None,
    added: Mapping[int, float],
) -> str:
    what = f"{_dose(series.control).title}{f' ({format_quantity(calls)} an operation)' if calls else ''}"
    if verdict == "no such calls":
        return f"{what}: no such call was made, so throughput cannot hang on them"
    if slope is None or interval is None:
        return f"{what}: cannot tell; too few ok runs at too few doses"
    figure = f"slope {slope.slope:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"
    if verdict in _SAYS:
        return f"{what}: {_SAYS[verdict]} ({figure})"
    if verdict == "not in full":
        most = format_share(max(-interval[0], 0.0))
        return f"{what}: not shown to be felt at all, and at most {most} of it is ({figure})"
    if verdict == "not judged":
        return f"{what}: {figure}; at scale smoke nothing is judged"
    if _is_bent_otherwise(slope):
        return (
            f"{what}: cannot tell; throughput follows the doses neither in a line nor in one even bend, so that the "
            f"slope at dose 0 cannot be drawn from them ({figure}); look at each dose, and take smaller ones"
        )
    highest = max(map(abs, added.values()), default=0.0)
    small = f"; even the highest dose adds only {format_share(highest)} of an operation's time, so take higher ones"
    return f"{what}: cannot tell ({figure} holds both 0 and -1){small if highest < _LEAST_ADDED else ''}"
