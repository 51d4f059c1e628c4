"""The cells beside published figures. Verdicts are by intervals; a figure without one is shown and judges nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dyno import stats
from dyno.analysis.sentences import NOT_JUDGED, levels
from dyno.model import faults, responses
from dyno.model.findings import (
    Agreement,
    CellSummary,
    Comparison,
    Interval,
    Pace,
    PublishedCell,
    PublishedRatio,
    PublishedResult,
    Ranks,
    format_ratio,
)
from dyno.model.interventions import FACTOR, NONE
from dyno.model.published import PublishedFigure, PublishedTable
from dyno.model.units import counted

FEWEST_RANKED = 5  # of four cells even the same order has a p of 1 in 12

Figures = Mapping[tuple[tuple[str, str], ...], PublishedFigure]


def beside(
    table: PublishedTable,
    cells: Sequence[CellSummary],
    comparisons: Sequence[Comparison],
    confidence: float,
    paces: Mapping[int, Pace],
    *,
    judged: bool,
) -> PublishedResult:
    """A table's figures with the cells that they are of, their order, and the ratios between them.

    `cells` and `comparisons` may be of any response. `paces` has the cells whose throughput was not the system's alone:
    a rate that was given is shown and judges nothing, as does everything where the study is not `judged`.
    """
    figures: Figures = {_key(figure.levels): figure for figure in table.figures}
    both = tuple(
        PublishedCell(
            cell=cell.cell,
            levels=cell.levels,
            mean=cell.mean,
            ci=cell.ci,
            published=figure.value,
            published_ci=figure.interval,
        )
        for cell in cells
        if cell.response == table.response and (figure := figures.get(_key(cell.levels))) is not None
    )
    of_pace = responses.lookup(table.response).of_pace
    both_ways = [
        (found, ratio)
        for found in comparisons
        if found.response == table.response and (ratio := _ratio(found, figures, table, judged=judged)) is not None
    ]
    bare = [
        ratio
        for found, ratio in both_ways
        if ratio.published_ci is None
        and found.pace != "rate"
        and not any(table.why_unlike({**found.within, found.factor: level}) for level in (found.a, found.b))
    ]
    return PublishedResult(
        file=table.file,
        response=table.response,
        unit=responses.lookup(table.response).unit,
        ranks=ranks(
            [
                (cell.mean, cell.published)
                for cell in both
                if cell.mean is not None
                and (not of_pace or paces.get(cell.cell) != "rate")
                and not table.why_unlike(cell.levels)
            ],
            confidence,
            judged=judged,
        ),
        cells=both,
        ratios=tuple(ratio for _, ratio in both_ways),
        same_side=_same_side(bare) if judged else None,
        unlike=tuple(
            f"{factor} {level} is held against no published figure: {why}."
            for factor, of in table.unlike.items()
            for level, why in of.items()
            if any(cell.levels.get(factor) == level for cell in both)
        ),
    )


def _key(chosen: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    # Nobody else has intervened: what was published is beside the cells in which nothing is slowed, and nothing struck.
    without = ((FACTOR, NONE), (faults.FACTOR, faults.NONE))
    return tuple(sorted(item for item in chosen.items() if item not in without))


def ranks(pairs: Sequence[tuple[float, float]], confidence: float, *, judged: bool = True) -> Ranks:
    """Whether cells come in the same order by both of their figures."""
    n = len(pairs)
    if not judged:
        text = f"Order of the cells: cannot tell, {NOT_JUDGED}."
        return Ranks(tau=None, p=None, n=n, verdict="cannot tell", sentence=text)
    if n < FEWEST_RANKED:
        both = f"{counted(n, 'cell')} {'has' if n == 1 else 'have'} both figures"
        text = f"Order of the cells: cannot tell, {both} and {FEWEST_RANKED} are the fewest."
        return Ranks(tau=None, p=None, n=n, verdict="cannot tell", sentence=text)
    found = stats.kendall([mean for mean, _ in pairs], [value for _, value in pairs])
    if found is None:
        text = "Order of the cells: cannot tell, all figures of one side are the same."
        return Ranks(tau=None, p=None, n=n, verdict="cannot tell", sentence=text)
    verdict: Agreement = "cannot tell"
    if found.p < 1 - confidence:
        verdict = "agrees" if found.tau > 0 else "differs"
    text = f"Order of the cells: {verdict}, tau-b {found.tau:.2f} (p = {found.p:.2g}, n = {counted(n, 'cell')})."
    return Ranks(tau=found.tau, p=found.p, n=n, verdict=verdict, sentence=text)


def _ratio(found: Comparison, figures: Figures, table: PublishedTable, *, judged: bool) -> PublishedRatio | None:
    sides = [{**found.within, found.factor: level} for level in (found.a, found.b)]
    a, b = (figures.get(_key(side)) for side in sides)
    if a is None or b is None:
        return None
    ratio = b.value / a.value if a.value > 0 and b.value > 0 else None
    interval = stats.quotient_interval(b.value, b.interval, a.value, a.interval) if a.interval and b.interval else None
    which, how_much = _sides(found.ci, interval), _sizes(found, ratio, interval, table.same_within)
    unlike = any(table.why_unlike(side) for side in sides)
    if found.pace == "rate" or unlike or not judged:
        which = how_much = "cannot tell"
    return PublishedRatio(
        factor=found.factor,
        a=found.a,
        b=found.b,
        within=found.within,
        ratio=found.ratio,
        ci=found.ci,
        published=ratio,
        published_ci=interval,
        which_is_higher=which,
        by_how_much=how_much,
        sentence=_sentence(found, ratio, interval, which, how_much, unlike=unlike),
    )


def _same_side(ratios: Sequence[PublishedRatio]) -> str | None:
    """Of differences that are shown here, how many point where bare published figures do: a count, and no verdict."""
    shown = [
        (ratio.ci[0] > 1) == (ratio.published > 1)
        for ratio in ratios
        if ratio.ci is not None and not ratio.ci[0] <= 1 <= ratio.ci[1] and ratio.published not in (None, 1.0)
    ]
    if not shown:
        return None
    return (
        f"Of {counted(len(shown), 'difference')} that {'is' if len(shown) == 1 else 'are'} shown here, "
        f"{sum(shown)} {'is' if sum(shown) == 1 else 'are'} on the side on which the published figures are; these have "
        "no intervals, so that no single one is judged by them."
    )


def _sides(ours: Interval | None, theirs: Interval | None) -> Agreement:
    """Whether both show the same one to be higher."""
    sides = [None if ends is None else 1 if ends[0] > 1 else -1 if ends[1] < 1 else None for ends in (ours, theirs)]
    if None in sides:
        return "cannot tell"
    return "agrees" if sides[0] == sides[1] else "differs"


def _sizes(found: Comparison, ratio: float | None, interval: Interval | None, margin: float) -> Agreement:
    """Whether the ratio of the two ratios is shown to be near 1, or shown not to be 1."""
    if found.ratio is None or found.ci is None or ratio is None or interval is None:
        return "cannot tell"
    apart = stats.quotient_interval(found.ratio, found.ci, ratio, interval)
    if apart is None:
        return "cannot tell"
    if 1 / (1 + margin) <= apart[0] and apart[1] <= 1 + margin:
        return "agrees"
    return "differs" if apart[0] > 1 or apart[1] < 1 else "cannot tell"


def _sentence(
    found: Comparison,
    ratio: float | None,
    interval: Interval | None,
    which: Agreement,
    how_much: Agreement,
    *,
    unlike: bool,
) -> str:
    where = f"With {levels(found.within)}, " if found.within else ""
    here = format_ratio(found.ratio, found.ci) if found.ratio is not None and found.ci else "not known"
    if found.pace == "rate":
        return f"{where}{found.b} against {found.a}: {here} here, of a rate that was given: cannot tell."
    if ratio is None:
        return f"{where}{found.b} against {found.a}: {here} here; no ratio of the published figures."
    if unlike:
        theirs = f"{ratio:.3g}x published of what is not measured here: open"
    elif interval is None:
        theirs = f"{ratio:.3g}x published, without an interval: cannot tell"
    else:
        theirs = f"{format_ratio(ratio, interval)} published; which is higher: {which}; by how much: {how_much}"
    return f"{where}{found.b} against {found.a}: {here} here, {theirs}."
