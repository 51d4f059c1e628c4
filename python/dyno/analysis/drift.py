"""What the order of the runs did to them: trend, changes, and runs far off the others. Shown and said, never taken out.

All of it is looked for in the runs relative to the median of their cell, which an outlier moves little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dyno import stats
from dyno.analysis.rounding import rounded, rounded_interval
from dyno.analysis.sentences import levels, listed
from dyno.analysis.table import Observation, Table, given
from dyno.model import responses
from dyno.model.findings import Change, Drift, Outlier, format_p, format_share
from dyno.model.study import Study
from dyno.model.units import counted, format_percent

FEWEST = 8  # runs, for a trend or a change to be shown by any
FEWEST_OF_OUTLIERS = 3  # runs of a cell: of two, either may be the one that is far off
MOST = 400  # places in time: more are looked at in groups, since the time taken grows with their square
LEVEL = 0.025  # of each of the two tests, so that a machine without drift is said to drift in 5 % of studies
MOST_CORRELATED = 0.95
MOST_LISTED = 20  # runs in a note

# How often intervals of means of 95 % hold the truth on a drifting machine, by cells and by the correlation of
# neighbours: AR(1) noise with a coefficient of variation of 2, 5 and 10 %, the worst of the three rounded down and at
# most what is claimed; 10,000 studies each by `dyno.selfcheck.coverage.of_means`.
HELD: Mapping[int, Mapping[float, float]] = {
    1: {0.3: 0.93, 0.5: 0.88, 0.7: 0.81, 0.9: 0.54},
    2: {0.3: 0.95, 0.5: 0.93, 0.7: 0.89, 0.9: 0.72},
    4: {0.3: 0.95, 0.5: 0.95, 0.7: 0.93, 0.9: 0.83},
}
HELD_CLAIM = 0.95  # what was claimed there
HELD_CELLS = 8  # with as many, intervals of means hold what they say


def drift(study: Study, table: Table, response: str) -> Drift:
    """Look for what the order of runs did, or say why that was not done."""
    title = responses.lookup(response).title
    several = [each for each in table.observed(response) if len(table.of(response, each.cell)) > 1]
    reason = given(table, response)
    if not reason and len(several) < FEWEST:
        reason = f"{counted(len(several), 'run')} of cells with two or more are too few; it takes {FEWEST}"
    elif not reason and min(each.value for each in several) <= 0:
        reason = "some values are not above 0, and are no share of another"
    if reason:
        return Drift(response=response, sentence=f"Drift of {title} was not looked for: {reason}.", reason=reason)
    relative = _relative(several)
    correlation, error = _correlation(study, table, response)
    places, series = _grouped(np.array([each.run for each in several], dtype=np.float64), relative)
    trend = _trend(series, places, study.replicates.confidence)
    changes = tuple(_changes(series, places))
    marked = tuple(_outliers(study, several, relative))
    trends = trend is not None and trend.p <= LEVEL
    shown = trends or bool(changes)
    last = several[-1].run - several[0].run
    return Drift(
        response=response,
        shown=shown,
        sentence=_sentence(
            title, len(several), trend if trends else None, last, changes, len(marked), correlation, error
        ),
        trend=rounded(trend.slope) if trend else None,
        trend_ci=rounded_interval((trend.lo, trend.hi)) if trend else None,
        trend_p=rounded(trend.p) if trend else None,
        correlation=rounded(correlation),
        correlation_error=rounded(error),
        changes=changes,
        outliers=marked,
        runs=tuple(each.run for each in several),
        relative=tuple(rounded(each) for each in relative),
    )


def _relative(observed: Sequence[Observation]) -> NDArray[np.float64]:
    of_cell: dict[int, list[float]] = {}
    for each in observed:
        of_cell.setdefault(each.cell, []).append(each.value)
    medians = {cell: float(np.exp(np.median(np.log(values)))) for cell, values in of_cell.items()}
    return np.array([each.value / medians[each.cell] for each in observed])


def _correlation(study: Study, table: Table, response: str) -> tuple[float, float]:
    """Between runs next to each other in time, over all cells, with its standard error."""
    found = stats.cell_means(
        *table.arrays(response, [cell.index for cell in study.cells]),
        study.replicates.confidence,
        randomised=study.order == "randomised",
        widening=1.0,
    )
    return float(found.correlation), float(found.correlation_error)


def _grouped(
    places: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first run and the median of each group of runs next to each other; each run by itself where they are few."""
    width = -(-values.size // MOST)
    groups = values.size // width
    return places[: groups * width : width], np.median(values[: groups * width].reshape(groups, width), axis=1)


def _trend(series: NDArray[np.float64], places: NDArray[np.float64], confidence: float) -> stats.Trend | None:
    """Judged by the correlation that neighbours of all cells have beside the trend, with one standard error on top.

    The correlation of the runs as they are would take a trend for correlation and hide it. With the standard error, 400
    series each of 12 to 96 runs with a correlation of 0 to 0.7 had a trend in 0 to 4 % (`LEVEL`: 2.5 %).
    """
    found = stats.trend(series, places, confidence)
    if found is None:
        return None
    error = math.sqrt((1 - found.correlation**2) / found.n)
    return stats.trend(series, places, confidence, min(found.correlation + error, MOST_CORRELATED))


def _changes(series: NDArray[np.float64], places: NDArray[np.float64]) -> Iterator[Change]:
    """Steps of the series once the correlation around them is taken out: without that, slow noise would pass for them.

    S. Chakar et al., A robust approach for estimating change-points in the mean of an AR(1) process, Bernoulli 23,
    2017.
    """
    correlation = stats.correlation_around_steps(series)
    found = stats.change_points(series[1:] - correlation * series[:-1], LEVEL) or ()
    bounds = [0, *(each.index + 1 for each in found), series.size]
    medians = [float(np.median(series[a:b])) for a, b in pairwise(bounds)]
    for each, before, after in zip(found, medians, medians[1:], strict=False):
        yield Change(run=int(places[each.index + 1]), before=rounded(before), after=rounded(after), p=each.p)


def _outliers(study: Study, observed: Sequence[Observation], relative: NDArray[np.float64]) -> Iterator[Outlier]:
    """Far from the others on the log scale, by the spread of all runs and, of five runs or more, by that of its cell.

    By one of the two alone, every study would have some: a noisy cell by the spread of all, few runs by their own. The
    run of each cell that is nearest to its median tells nothing of the spread, since the median went to it (R. A.
    Maronna, R. D. Martin, V. J. Yohai, Robust Statistics, 2006, section 4.4.2: the scale of a fit by medians is that of
    the residuals which are not 0).
    """
    logs = np.log(relative)
    of_cell: dict[int, list[int]] = {}
    for place, each in enumerate(observed):
        of_cell.setdefault(each.cell, []).append(place)
    telling, cells = [], study.numbered()
    own_scores: dict[int, float] = {}
    for places in of_cell.values():
        if len(places) < FEWEST_OF_OUTLIERS:
            continue
        telling += sorted(places, key=lambda place: abs(float(logs[place])))[1:]
        own = stats.outliers(logs[places])
        own_scores.update(zip(places, own.scores if own else [], strict=False))
    telling.sort()
    found = stats.outliers(logs[telling])
    if found is None:
        return
    marked = {telling[place]: found.scores[place] for place in found.marked}
    for place, score in marked.items():
        least = min(score, own_scores.get(place, score), key=abs)
        if abs(least) <= stats.MARK:
            continue
        each = observed[place]
        yield Outlier(
            run=each.run,
            cell=each.cell,
            levels=cells[each.cell].levels,
            relative=rounded(float(relative[place])),
            score=rounded(least),
        )


def _sentence(
    title: str,
    runs: int,
    trend: stats.Trend | None,
    last: int,
    changes: Sequence[Change],
    marked: int,
    correlation: float,
    error: float,
) -> str:
    """One sentence of verdict."""
    parts = []
    if trend:
        way = "rises" if trend.slope > 0 else "falls"
        low, high = _signed(_from_first_to_last(last * trend.lo)), _signed(_from_first_to_last(last * trend.hi))
        p = format_p(trend.p)
        parts.append(
            f"it {way} from run to run, by about {_change(_from_first_to_last(last * trend.slope))} in all "
            f"(between {low} and {high}; p {p if p.startswith('<') else f'= {p}'})"
        )
    if changes:
        steps = listed([f"at run {each.run:,} by {_signed(each.after / each.before)}" for each in changes])
        parts.append(f"it changes {steps}")
    kept = (
        f"{counted(marked, 'run')} {'lies' if marked == 1 else 'lie'} far from the others and "
        f"{'is' if marked == 1 else 'are'} kept"
        if marked
        else "no run lies far from the others"
    )
    if parts:
        return f"{title[0].upper()}{title[1:]} drifted over the {runs:,} runs: {', and '.join(parts)}; {kept}."
    resemble = "resemble" if correlation > 2 * error else "are not shown to resemble"
    return (
        f"No drift of {title} is shown over the {runs:,} runs: neither a trend nor a change; neighbours in time "
        f"{resemble} each other (correlation {correlation:.2f}, standard error {error:.2f}); {kept}."
    )


def resemblance(found: Drift) -> str:
    """What is known of neighbours in time, in figures."""
    return f"correlation {found.correlation or 0.0:.2f}, standard error {found.correlation_error or 0.0:.2f}"


def _from_first_to_last(share: float) -> float:
    """The ratio of the ends of a line that rises by this share of its middle; at most 39 times."""
    half = min(max(share / 2, -0.95), 0.95)
    return (1 + half) / (1 - half)


def _change(factor: float) -> str:
    return format_share(abs(factor - 1))


def _signed(factor: float) -> str:
    return f"{'+' if factor >= 1 else '-'}{_change(factor)}"


def notes(study: Study, found: Drift, cells: int, has_means: bool) -> Iterator[str]:
    """What a reader must know of the order of runs. `has_means` says whether intervals of means are reported."""
    if found.shown:
        yield f"{found.sentence} Ratios within blocks suffer little, since drift touches neighbours alike; means do."
    if found.outliers:
        named = [
            f"run {each.run} ({levels(each.levels) or 'the only cell'}: {each.relative:.2f}x)"
            for each in found.outliers
        ]
        yield (
            f"{counted(len(named), 'run')} far from the median of {'its' if len(named) == 1 else 'their'} cell: "
            f"{listed(named, MOST_LISTED)}. They are in all figures; a mean is sensitive to them, a median is not."
        )
    if has_means:
        yield from _held(study, found, cells)


def _held(study: Study, found: Drift, cells: int) -> Iterator[str]:
    """Where cells are few, what intervals of means hold on a machine that drifts as far as cannot be ruled out."""
    correlation, error = found.correlation, found.correlation_error
    if correlation is None or error is None or cells >= HELD_CELLS:
        return
    most = correlation + error
    row = HELD[max(known for known in HELD if known <= cells)]
    held = math.floor(100 * float(np.interp(most, [0.0, *row], [HELD_CLAIM, *row.values()])) + 1e-9) / 100
    if held >= HELD_CLAIM:
        return
    about = f"{'less than' if most > max(row) else 'about'} {format_share(held)} of simulated studies"
    asked = format_percent(study.replicates.confidence)
    told = (
        f"{about}, not {asked}" if study.replicates.confidence == HELD_CLAIM else f"less than {asked} (of 95%: {about})"
    )
    if correlation > 2 * error:
        why = (
            f"Runs next to each other in time resemble each other (correlation {correlation:.2f}): this machine drifts."
        )
    else:
        why = (
            f"So few runs do not show whether those next to each other in time resemble each other (correlation "
            f"{correlation:.2f}, with a standard error of {error:.2f})."
        )
    yield (
        f"{why} With {counted(cells, 'cell')} on a machine that drifts as far as that, intervals of means held the "
        f"truth in {told}; ratios do not suffer."
    )
