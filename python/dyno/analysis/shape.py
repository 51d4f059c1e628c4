"""A response over each ordered factor: speed-up, saturation, the scalability law, and where compared curves cross."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

from dyno import stats
from dyno.analysis.comparisons import mixes_cpus, mixes_loops, widening_between_cells
from dyno.analysis.rounding import maybe_rounded, rounded, rounded_interval
from dyno.analysis.sentences import levels
from dyno.analysis.table import Table, given
from dyno.model import responses
from dyno.model.findings import (
    Comparison,
    Crossing,
    Curve,
    Interval,
    ScalabilityLaw,
    Shape,
    ShapePoint,
    Verdict,
    format_ratio,
    format_share,
)
from dyno.model.study import Cell, Factor, Study
from dyno.model.units import counted

MOST_CURVES = 24  # of a factor; more are neither drawn nor read
MOST_LAWS = 8  # of a factor: each is a bootstrap of 2,000 fits
FEWEST_OF_LAW = 6  # levels
FEWEST_OF_CROSSING = 3  # runs of each cell
BY_MULTIPLES = 8  # levels that grow so many times are looked at on a log scale

# What the scalability law counts, as factors or as settings of a workload are called.
CLIENTS = ("thread", "client", "connection", "session", "terminal", "user", "worker")


class _At(NamedTuple):
    """A level of the ordered factor with what was measured there."""

    x: float
    cell: Cell
    values: list[float]
    in_blocks: Mapping[int, float]


_Curves = dict[tuple[tuple[str, str], ...], list[_At]]


_Verdicts = Mapping[tuple[frozenset[tuple[str, str]], str, str], Verdict]
"""Of the comparisons of a response: by the levels of all else, and the two compared."""


def shapes(study: Study, table: Table, response: str, comparisons: Sequence[Comparison]) -> Iterator[Shape]:
    """One for each ordered factor with two levels that were measured. `comparisons` are those of the report."""
    verdicts = {
        (frozenset(each.within.items()), each.a, each.b): each.verdict
        for each in comparisons
        if each.response == response
    }
    for factor in study.factors:
        curves = _curves(study, table, response, factor) if factor.ordered else {}
        if curves:
            yield _shape(study, table, response, factor, curves, verdicts)


def _curves(study: Study, table: Table, response: str, factor: Factor) -> _Curves:
    """The levels in their order, for each combination of the other factors.

    Those without an ok run are left out, and those whose runs do not say all (`Table.beyond`).
    """
    found: _Curves = {}
    for cell in study.cells:
        values = table.of(response, cell.index)
        if values and not table.beyond(response, cell.index):
            within = tuple((name, level) for name, level in cell.levels.items() if name != factor.name)
            at = _At(float(cell.levels[factor.name]), cell, values, table.in_blocks(response, cell.index))
            found.setdefault(within, []).append(at)
    return {within: sorted(curve, key=lambda at: at.x) for within, curve in found.items() if len(curve) > 1}


def _shape(study: Study, table: Table, response: str, factor: Factor, curves: _Curves, verdicts: _Verdicts) -> Shape:
    left_out: list[str] = []
    positive = {within: curve for within, curve in curves.items() if all(min(at.values) > 0 for at in curve)}
    if len(positive) < len(curves):
        lost = counted(len(curves) - len(positive), "curve")
        left_out.append(f"{lost} with values that are not above 0, which have no ratios")
    if len(positive) > MOST_CURVES:
        left_out.append(f"{counted(len(positive) - MOST_CURVES, 'curve')} beyond the first {MOST_CURVES}")
    shown = dict(list(positive.items())[:MOST_CURVES])
    not_a_rate = _not_a_rate(table, response)
    counts = counts_clients(study, factor)
    no_law = not_a_rate or _no_law(factor, counts, shown)
    if not_a_rate:
        left_out.append(f"speed-up, saturation and the Universal Scalability Law, since {not_a_rate}")
    elif no_law and study.judged:
        left_out.append(f"the Universal Scalability Law, since {no_law}")
    elif len(shown) > MOST_LAWS and study.judged:
        left_out.append(f"the Universal Scalability Law beyond the first {MOST_LAWS} curves")
    confidence, widening = study.replicates.confidence, widening_between_cells(study)
    raised = _raised(confidence, widening)
    no_crossings = _no_crossings(table, response)
    if not study.judged:
        left_out.append("saturation, the Universal Scalability Law and crossings, since scale smoke is not judged")
    compared_curves = shown if study.judged and not no_crossings else {}
    crossings, compared, too_few, unlike = _crossings(study, factor, compared_curves, table, response, raised, verdicts)
    if no_crossings and study.compare not in (None, factor.name):
        left_out.append(f"crossings, since {no_crossings}")
    if unlike:
        left_out.append(
            f"crossings of {counted(unlike, 'pair')} of curves on CPUs of which some are emulated by software"
        )
    if too_few:
        left_out.append(
            f"crossings of {counted(too_few, 'pair')} of curves, which take {FEWEST_OF_CROSSING} runs a cell"
        )
    return Shape(
        response=response,
        factor=factor.name,
        log_x=_by_multiples([at.x for curve in shown.values() for at in curve]),
        curves=tuple(
            _curve(
                response,
                factor.name,
                dict(within),
                curve,
                confidence,
                widening,
                counts,
                not not_a_rate,
                judged=study.judged,
                fitted=not no_law and i < MOST_LAWS,
            )
            for i, (within, curve) in enumerate(shown.items())
        ),
        crossings=tuple(crossings),
        sentence=_of_crossings(study, crossings, compared),
        left_out=tuple(left_out),
    )


def _not_a_rate(table: Table, response: str) -> str | None:
    """Why a response cannot speed up."""
    known = responses.lookup(response)
    if known.better != "higher" or known.counted:
        return f"{known.title} is not a rate"
    return given(table, response)


def _no_crossings(table: Table, response: str) -> str | None:
    """Why curves are not held against each other, as their cells are not."""
    if mixes_loops(response, set().union(*table.loops.values())):
        return f"{responses.lookup(response).title} of a closed and of an open loop do not compare"
    return given(table, response)


def counts_clients(study: Study, factor: Factor) -> bool:
    """Whether its levels are numbers of clients: by its name, or by the workload's setting that follows it."""
    if is_clients(factor.name):
        return True
    names = [name for name in study.cells[0].workload.options if is_clients(name)]
    return any(
        all(str(cell.workload.options.get(name)) == cell.levels[factor.name] for cell in study.cells) for name in names
    )


def is_clients(name: str) -> bool:
    """Whether a factor or a setting of that name is a number of clients."""
    return name.lower().removesuffix("s") in CLIENTS


def _no_law(factor: Factor, counts: bool, curves: _Curves) -> str | None:
    """Why no curve has a fit of the law."""
    if not counts:
        return f"{factor.name} is no number of clients or threads"
    most = max((len(curve) for curve in curves.values()), default=0)
    if most < FEWEST_OF_LAW:
        return (
            f"{factor.name} has {counted(most, 'level')} with ok runs, and the law is fitted to {FEWEST_OF_LAW} or more"
        )
    if any(at.x < 1 for curve in curves.values() for at in curve):
        return f"{factor.name} has a level below 1, where the law begins"
    return None


def _raised(confidence: float, widening: float) -> float:
    """The confidence at which a bootstrap's interval is so much wider."""
    normal = NormalDist()
    return 2 * normal.cdf(widening * normal.inv_cdf((1 + confidence) / 2)) - 1


def _by_multiples(places: Sequence[float]) -> bool:
    return min(places, default=0.0) > 0 and max(places) / min(places) >= BY_MULTIPLES


def _together(curve: Sequence[_At], fewest: int) -> tuple[list[list[float]], bool]:
    """The values of each level: of the blocks that all of them have, where those are enough, so that they are pairs."""
    common = sorted(set.intersection(*(set(at.in_blocks) for at in curve)))
    if len(common) >= fewest:
        return [[at.in_blocks[block] for block in common] for at in curve], True
    return [at.values for at in curve], False


def _curve(
    response: str,
    factor: str,
    within: dict[str, str],
    curve: Sequence[_At],
    confidence: float,
    widening: float,
    counts: bool,
    rate: bool,
    *,
    judged: bool,
    fitted: bool,
) -> Curve:
    places = [at.x for at in curve]
    if not rate:
        points = tuple(ShapePoint(cell=at.cell.index, x=at.x, n=len(at.values)) for at in curve)
        return Curve(within=within, points=points, sentence="")
    samples, paired = _together(curve, 2)
    sped_up = stats.speedup(places, samples, confidence, paired=paired, widening=widening)
    points = tuple(
        ShapePoint(
            cell=at.cell.index,
            x=at.x,
            n=len(at.values),
            speedup=found.ratio.ratio if found.ratio else None,
            speedup_ci=(found.ratio.lo, found.ratio.hi) if found.ratio else None,
            efficiency=found.efficiency if counts else None,
        )
        for at, found in zip(curve, sped_up or (), strict=True)
    )
    if not judged:
        told = _of_speedup(response, factor, within, points, len(samples[0]), paired)
        return Curve(within=within, points=points, paired=paired, sentence=f"{told}; not judged." if told else "")
    saturated = stats.saturation(places, samples, confidence, paired=paired, widening=widening)
    law = _law([at.x for at in curve], [at.values for at in curve], _raised(confidence, widening)) if fitted else None
    told = _of_speedup(response, factor, within, points, len(samples[0]), paired)
    return Curve(
        within=within,
        points=points,
        paired=paired,
        saturation=saturated.x if saturated else None,
        headroom=saturated.headroom if saturated else None,
        law=law,
        sentence=f"{told}{_of_saturation(factor, saturated, places)}.{_of_law(factor, law, places)}",
    )


def _law(places: Sequence[float], samples: Sequence[Sequence[float]], confidence: float) -> ScalabilityLaw | None:
    found = stats.fit_usl(places, samples, confidence)
    if found.rate is None or found.contention is None or found.coherency is None or found.error is None:
        return None
    digits = 6  # of what iterations come to
    return ScalabilityLaw(
        rate=rounded(found.rate, digits),
        rate_ci=rounded_interval(found.rate_interval, digits),
        contention=rounded(found.contention, digits),
        contention_ci=rounded_interval(found.contention_interval, digits),
        coherency=rounded(found.coherency, digits),
        coherency_ci=rounded_interval(found.coherency_interval, digits),
        peak=maybe_rounded(found.peak, digits),
        peak_ci=rounded_interval(found.peak_interval, digits),
        error=rounded(found.error, digits),
    )


def _crossings(
    study: Study,
    factor: Factor,
    curves: _Curves,
    table: Table,
    response: str,
    confidence: float,
    verdicts: _Verdicts,
) -> tuple[list[Crossing], int, int, int]:
    """Where the curves of each two levels of the compared factor cross.

    And how many pairs were looked at, had too few runs, and are not to be held against each other.
    """
    found: list[Crossing] = []
    compared = too_few = unlike = 0
    if study.compare is None or study.compare == factor.name:
        return found, compared, too_few, unlike
    groups: dict[tuple[tuple[str, str], ...], dict[str, list[_At]]] = {}
    for within, curve in curves.items():
        others = tuple(item for item in within if item[0] != study.compare)
        groups.setdefault(others, {})[dict(within)[study.compare]] = curve
    order = [level.name for level in study.factor(study.compare).levels]
    for others, of_level in groups.items():
        for a, b in combinations([name for name in order if name in of_level], 2):
            at_a, at_b = ({at.x: at for at in of_level[name]} for name in (a, b))
            both = sorted(at_a.keys() & at_b.keys())
            cells = [at[x].cell.index for at in (at_a, at_b) for x in both]
            if mixes_cpus(response, set().union(*(table.emulated[cell] for cell in cells))):
                unlike += 1
                continue
            together = [_together([at_a[x], at_b[x]], FEWEST_OF_CROSSING) for x in both]
            paired = all(each for _, each in together)
            samples_a, samples_b = (
                [samples[side] if paired else at[x].values for x, (samples, _) in zip(both, together, strict=True)]
                for side, at in enumerate((at_a, at_b))
            )
            log_x = _by_multiples(both)
            passed = stats.crossings(both, samples_a, samples_b, confidence, paired=paired, log_x=log_x)
            if passed is None:
                too_few += 1
                continue
            compared += 1
            told = [(x, verdicts.get((_all_else(at_a[x].cell, study.compare), a, b))) for x in both]
            places = [-math.inf, *(each.at for each in passed), math.inf]
            found += [
                _crossing(response, factor.name, dict(others), a, b, each, _sides_not_shown(each, bounds, told))
                for each, *bounds in zip(passed, places, places[2:], strict=False)
            ]
    return found, compared, too_few, unlike


def _all_else(cell: Cell, compare: str) -> frozenset[tuple[str, str]]:
    return frozenset(item for item in cell.levels.items() if item[0] != compare)


def _sides_not_shown(
    found: stats.Crossing, bounds: Sequence[float], told: Sequence[tuple[float, Verdict | None]]
) -> str:
    """On which sides, up to the next crossings, no level is shown to differ as the crossing says; empty where some do.

    Of few replicates the bootstrap alone is too bold: of two equal curves with six levels and 5 runs of each, it shows
    a crossing in 16 to 20 % of studies (150 simulated of noise 10 and 40 %), and in 5 % with 10 runs.
    """
    before, after = bounds
    first, then = ("lower", "higher") if found.upward else ("higher", "lower")
    below = any(verdict == first for x, verdict in told if before < x <= found.at)
    beyond = any(verdict == then for x, verdict in told if found.at <= x < after)
    if below and beyond:
        return ""
    return "beyond it" if below else "before it" if beyond else "on either side"


def _crossing(
    response: str, factor: str, within: dict[str, str], a: str, b: str, found: stats.Crossing, not_shown: str
) -> Crossing:
    ci = (found.lo, found.hi) if found.lo is not None and found.hi is not None else None
    where = f"With {levels(within)}, " if within else ""
    title = responses.lookup(response).title
    first, then = ("lower", "higher") if found.upward else ("higher", "lower")
    if ci is None:
        sentence = (
            f"{where}{b} and {a} seem to cross at {factor} {_place(found.at)}, but the runs do not show it: "
            f"{format_share(found.without)} of resamples have no such crossing."
        )
    elif not_shown:
        ci = None
        sentence = (
            f"{where}the means of {b} and {a} cross at {factor} {_place(found.at)}, but no single level {not_shown} "
            "shows a difference."
        )
    else:
        place = f"{factor} {_estimate(found.at, ci)}"
        sentence = f"{where}{b} has a {first} {title} than {a} up to {place}, and a {then} one beyond."
    at = rounded(found.at)
    return Crossing(within=within, a=a, b=b, at=at, ci=rounded_interval(ci), upward=found.upward, sentence=sentence)


def _of_crossings(study: Study, crossings: Sequence[Crossing], compared: int) -> str:
    """How many curves cross; empty where none were looked at."""
    if not compared:
        return ""
    shown = len({(*each.within.items(), each.a, each.b) for each in crossings if each.ci})
    pairs = "the two curves" if compared == 1 else f"{compared} pairs of curves"
    if not shown:
        return f"No crossing of {pairs} of {study.compare} is shown between the levels measured."
    if compared == 1:
        return f"The two curves of {study.compare} cross."
    return f"Of {pairs} of {study.compare}, {shown} {'is' if shown == 1 else 'are'} shown to cross."


def _of_speedup(
    response: str, factor: str, within: Mapping[str, str], points: Sequence[ShapePoint], n: int, paired: bool
) -> str:
    first, last = points[0], points[-1]
    where = f"With {levels(within)}, " if within else ""
    title = responses.lookup(response).title
    if last.speedup is None or last.speedup_ci is None:
        return f"{where}{factor} {last.x:g} has too few runs for its speed-up over {first.x:g}"
    basis = f"n = {counted(n, 'pair')}" if paired else "not paired"
    promise = ""
    if last.efficiency is not None:
        promise = f", {format_share(last.efficiency)} of what {last.x / first.x:.4g} times as many promise"
    size = format_ratio(last.speedup, last.speedup_ci)
    return f"{where}{factor} {last.x:g} has {size} the {title} of {factor} {first.x:g} ({basis}){promise}"


def _of_saturation(factor: str, found: stats.Saturation | None, places: Sequence[float]) -> str:
    if found is None:
        return ""
    if found.x is None or found.headroom is None:
        return f"; it still rises at {factor} {places[-1]:g}, the last level"
    return f"; no level above {factor} {found.x:g} is shown to be higher; if one is, by at most {found.headroom:.3g}x"


def _of_law(factor: str, law: ScalabilityLaw | None, places: Sequence[float]) -> str:
    if law is None:
        return ""
    contention, coherency = (
        _share(value, ci) for value, ci in ((law.contention, law.contention_ci), (law.coherency, law.coherency_ci))
    )
    if law.peak is not None and law.peak_ci is not None:
        beyond = ", beyond what was measured" if law.peak > places[-1] else ""
        peak = f"a peak at {factor} {_estimate(law.peak, law.peak_ci)}{beyond}"
    elif law.coherency_ci is None:
        peak = "no peak is claimed, since a level has fewer than 3 runs"
    else:
        peak = "no peak is claimed, since the interval of coherency holds 0"
    off = format_share(math.expm1(law.error))
    return (
        f" By the Universal Scalability Law, contention is {contention} and coherency {coherency}: {peak}. "
        f"Levels lie about {off} off that law."
    )


def _share(value: float, interval: Interval | None) -> str:
    told = format_share(value)
    return f"{told} [{format_share(interval[0])}, {format_share(interval[1])}]" if interval else told


def _estimate(value: float, interval: Interval) -> str:
    return f"{_place(value)} [{_place(interval[0])}, {_place(interval[1])}]"


def _place(x: float) -> str:
    """Three significant digits, written out."""
    return f"{float(f'{x:.3g}'):,g}"
