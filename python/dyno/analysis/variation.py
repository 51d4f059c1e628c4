"""What explains the variation of a response over all ok runs of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.comparisons import widening_between_cells
from dyno.analysis.rounding import in_logs, maybe_rounded, rounded
from dyno.analysis.table import Observation, Table, given
from dyno.model import responses
from dyno.model.findings import Variation, VariationSource, format_share
from dyno.model.fractions import fraction_of
from dyno.model.study import Study
from dyno.model.units import counted

MOST_ORDER = 3  # an interplay of more factors than this is one row with its like: nobody reads it by itself
LEAST_SHARE = 0.01  # what explains less is not told in the sentence
NOISE_P = 0.05
MOST_TESTED = 5000  # residuals: Shapiro and Wilk's test is made for no more
BETWEEN = " x "  # as `stats.variation` joins the factors of an interplay


def explain(study: Study, table: Table, response: str) -> Variation:
    """Give the analysis of variance on the log scale, or the reason why there is none."""
    observed, cells = table.observed(response), study.numbered()
    factors = [
        factor.name for factor in study.factors if len({cells[each.cell].levels[factor.name] for each in observed}) > 1
    ]
    values = [each.value for each in observed]
    reason = (
        given(table, response)
        or _confounded(study)
        or _not_over(study, table, response)
        or _nothing_to_explain(factors, values, len({each.cell for each in observed}))
    )
    if reason:
        return Variation(response=response, sentence=_sentence_without(response, reason), reason=reason)
    levels = {name: [cells[each.cell].levels[name] for each in observed] for name in factors}
    found = stats.variation(
        values,
        levels,
        [each.block for each in observed],
        max_order=MOST_ORDER,
        widening=widening_between_cells(study),
    )
    assert found is not None  # only of fewer than two values
    noise = found.rows[-1]
    if not noise.degrees:
        reason = "each cell has one run, so that noise cannot be told from the interplay of the factors"
    elif not found.sum_of_squares:
        reason = "all values are the same"
    if reason:
        return Variation(response=response, sentence=_sentence_without(response, reason), reason=reason)
    sources = tuple(
        VariationSource(
            source=row.source,
            sum_of_squares=rounded(row.sum_of_squares),
            degrees=row.degrees,
            share=maybe_rounded(row.share),
            mean_square=maybe_rounded(row.mean_square),
            f=maybe_rounded(row.f),
            p=maybe_rounded(row.p),
        )
        for row in found.rows
        if row.degrees
    )
    residuals = in_logs(found.residuals)
    return Variation(
        response=response,
        sentence=_sentence(response, sources, "" if found.adds_up else _overlap(study, observed), len(factors)),
        sources=sources,
        sum_of_squares=rounded(found.sum_of_squares),
        degrees=found.degrees,
        adds_up=found.adds_up,
        far_from_normal=stats.far_from_normal(residuals[:: -(-len(residuals) // MOST_TESTED)]),
        runs=tuple(each.run for each in observed),
        fitted=in_logs(found.fitted),
        residuals=residuals,
        scores=in_logs(_scores(residuals, math.sqrt(noise.mean_square or 0.0))),
    )


def _confounded(study: Study) -> str | None:
    fraction = fraction_of(study)
    if fraction is None or not fraction.generators:
        return None
    return "a fraction of the combinations confounds its sources; each effect has its own share"


def _not_over(study: Study, table: Table, response: str) -> str | None:
    beyond = sum(len(table.beyond(response, cell.index)) for cell in study.cells)
    struck = sum(len(table.struck.get(cell.index, ())) for cell in study.cells)
    return sentences.not_over(beyond, struck) if beyond else None


def _nothing_to_explain(factors: Sequence[str], values: Sequence[float], cells: int) -> str | None:
    if not factors:
        return "there is nothing to vary in one cell" if cells else "there is no ok run"
    if min(values) <= 0:
        return "some values are not above 0, and have no logarithm"
    if len(values) == cells:
        return "each cell has one run, so that noise cannot be told from the interplay of the factors"
    return None


def _scores(residuals: Sequence[float], spread: float) -> list[float]:
    """Where each residual would lie, had a normal noise of that spread been drawn as often.

    The i-th of n lies at the normal quantile of (i - 3/8) / (n + 1/4) (G. Blom, Statistical Estimates and Transformed
    Beta-Variables, 1958).
    """
    n, normal = len(residuals), NormalDist()
    scores = [0.0] * n
    for rank, place in enumerate(sorted(range(n), key=lambda place: residuals[place]), 1):
        scores[place] = spread * normal.inv_cdf((rank - 0.375) / (n + 0.25))
    return scores


def _sentence_without(response: str, reason: str) -> str:
    return f"What explains the variation of {responses.lookup(response).title} is not told: {reason}."


def _overlap(study: Study, observed: Sequence[Observation]) -> str:
    """Why sources overlap: a design that leaves combinations out does so without a run that is missing."""
    full = len(study.cells) == math.prod(len(factor.levels) for factor in study.factors)
    blocks = len({each.block for each in observed})
    missing = [] if full else ["combinations are not in the design"]
    if full or len(observed) < blocks * len(study.cells):
        missing.append("runs are missing")
    return f" Some {' and some '.join(missing)}, so that sources overlap and shares need not add up to 100%."


def _sentence(response: str, sources: Sequence[VariationSource], overlap: str, factors: int) -> str:
    """`threads explains 71% of the variation, journal_mode 12%, their interplay 9%, blocks 3%, noise 5%.`"""
    title = responses.lookup(response).title
    *explaining, noise = sources
    blocks = [each for each in explaining if each.source == "blocks"]
    of_factors = sorted((each for each in explaining if each not in blocks), key=lambda each: -(each.share or 0.0))
    told = [each for each in of_factors if (each.share or 0.0) >= LEAST_SHARE] or of_factors[:1]
    parts: list[str] = []
    seen: set[str] = set()
    for each in [*told, *blocks, noise]:
        share = f"{format_share(each.share or 0.0)}{'' if parts else ' of the variation'}"
        doubt = " (no more than noise would)" if each.p is not None and each.p > NOISE_P else ""
        parts.append(f"{_name(each.source, seen, factors)}{'' if parts else ' explains'} {share}{doubt}")
        seen.add(each.source)
    small = len(of_factors) - len(told)
    rest = f"; {counted(small, 'further source')} less than {format_share(LEAST_SHARE)} each" if small else ""
    return f"Of {title}, {', '.join(parts)}{rest}.{overlap}"


def _name(source: str, seen: set[str], factors: int) -> str:
    if source.startswith("residual"):
        return "noise"
    names = source.split(BETWEEN)
    if len(names) == 1:
        return source
    if factors == len(names) == 2 and set(names) <= seen:
        return "their interplay"
    return f"the interplay of {', '.join(names[:-1])} and {names[-1]}"
