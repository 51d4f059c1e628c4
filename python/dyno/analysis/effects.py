"""What each factor of a screening design changes, over all cells together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dyno import stats
from dyno.analysis.answers import of_unlike
from dyno.analysis.comparisons import mixes_cpus, mixes_loops, shares_of_error
from dyno.analysis.table import Table
from dyno.model import responses
from dyno.model.findings import FactorEffect, Verdict, format_ratio
from dyno.model.fractions import fraction_of
from dyno.model.looks import looks
from dyno.model.study import Study
from dyno.model.units import counted

TO_NAME = 3  # effects that an answer tells; the rest stands in their table


def effects(study: Study, table: Table, names: Sequence[str]) -> list[FactorEffect]:
    """Of factors and of interactions of two, on the log scale; none where a cell has no ok run.

    Their intervals hold together, those of all responses: all of them hold the truth as often as the study's confidence
    says. As of comparisons, half of the error that this allows is kept for the deciding response.
    """
    fraction = fraction_of(study)
    if fraction is None:
        return []
    measured = [response for response in names if _has_effects(study, table, response)]
    # Of a dozen effects that are nothing, one would else be shown in every second study (Bonferroni).
    shares = shares_of_error([response == study.replicates.of for response in measured])
    alpha = (1 - study.replicates.confidence) / len(fraction.aliases())
    return [
        effect
        for response, share in zip(measured, shares, strict=True)
        for effect in _of_response(study, table, response, 1 - share * alpha)
    ]


def _has_effects(study: Study, table: Table, response: str) -> bool:
    known = responses.lookup(response)
    if known.counted and response != study.replicates.of:
        return False
    # As of comparisons: a rate that was given is nobody's effect, and the two kinds of loop have no latency in common.
    if (known.of_pace and "rate" in table.paces.values()) or mixes_loops(response, set().union(*table.loops.values())):
        return False
    if mixes_cpus(response, set().union(*table.emulated.values())):
        return False
    if of_unlike(table.answers, [cell.index for cell in study.cells], response):
        return False
    # Without a cell it is another fraction, of other aliases, or none at all.
    return all(values and min(values) > 0 for values in (table.of(response, cell.index) for cell in study.cells))


def _of_response(study: Study, table: Table, response: str, confidence: float) -> Iterator[FactorEffect]:
    runs = [
        (cell, block, value)
        for cell in study.cells
        for block, value in sorted(table.in_blocks(response, cell.index).items())
    ]
    values = [value for _, _, value in runs]
    signs = {
        factor.name: [1 if cell.levels[factor.name] == factor.levels[1].name else -1 for cell, _, _ in runs]
        for factor in study.factors
    }
    found = stats.two_level_effects(values, signs, confidence, [block for _, block, _ in runs], max_order=2)
    if found is None:
        return
    when = looks(study)
    widening = stats.widening_of_means(when.first, when.last)
    by_size = sorted(range(len(found.effects)), key=lambda place: abs(found.effects[place].size))
    quantiles = dict(zip(by_size, stats.half_normal_quantiles(len(by_size)), strict=True))
    for place, effect in enumerate(found.effects):
        yield _effect(study, response, effect, widening, len(values), quantiles[place])


def _effect(
    study: Study, response: str, effect: stats.Effect, widening: float, n: int, quantile: float
) -> FactorEffect:
    factors = tuple(effect.source.split(" x "))
    interval = None
    if effect.lo is not None and effect.hi is not None:
        half = widening * (effect.hi - effect.lo) / 2
        interval = (_ratio(effect.size - half), _ratio(effect.size + half))
    ratio = _ratio(effect.size)
    return FactorEffect(
        response=response,
        factors=factors,
        aliases=effect.aliases,
        ratio=ratio,
        ci=interval,
        share=effect.share,
        n=n,
        quantile=quantile,
        verdict=_verdict(study, interval),
        sentence=_sentence(study, response, factors, effect.aliases, ratio, interval, n),
    )


def _ratio(size: float) -> float:
    """High to low. An interval may be uselessly wide, but JSON has no word for infinity."""
    return math.exp(min(2 * size, 700.0))


def _verdict(study: Study, interval: tuple[float, float] | None) -> Verdict:
    if interval is None:
        return "not enough runs"
    if not study.judged:
        return "not judged"
    if interval[0] > 1:
        return "higher"
    return "lower" if interval[1] < 1 else "no difference shown"


def _sentence(
    study: Study,
    response: str,
    factors: Sequence[str],
    aliases: Sequence[str],
    ratio: float,
    interval: tuple[float, float] | None,
    n: int,
) -> str:
    title = responses.lookup(response).title
    name = " x ".join(factors)
    if interval is None:
        return f"The effect of {name} on {title} has no interval: too few runs."
    size = format_ratio(ratio, interval)
    besides = f"; or {', '.join(aliases)}, which this design cannot tell from it" if aliases else ""
    basis = f"n = {counted(n, 'run')}{besides}"
    verdict = _verdict(study, interval)
    if verdict == "not judged":
        return f"The effect of {name} on {title} is not judged at scale smoke: {size} ({basis})."
    if verdict == "no difference shown":
        return f"No effect of {name} on {title} is shown: {size} ({basis})."
    if len(factors) == 1:
        low, high = (level.name for level in study.factor(factors[0]).levels)
        return f"{name} {high} has {size} the {title} of {low} ({basis})."
    first, second = factors
    where = "where both are high or both low"
    return f"{first} and {second} interact: {where}, {title} is {size} that where one is ({basis})."


def answer(study: Study, found: Sequence[FactorEffect]) -> str | None:
    """The largest effects, in a sentence or two; None where there is none to tell of."""
    measured = [effect for effect in found if effect.ci is not None]
    if not measured:
        return None
    shown = sorted(
        (effect for effect in measured if effect.verdict in ("higher", "lower")),
        key=lambda effect: -abs(math.log(effect.ratio)),
    )
    title = responses.lookup(measured[0].response).title
    if not shown:
        return f"No effect on {title} is shown of any factor or interaction of two."
    told = [
        f"{_against(study, effect)}: {format_ratio(effect.ratio, effect.ci)}{_or_alias(effect)}"
        for effect in shown[:TO_NAME]
        if effect.ci
    ]
    more = len(shown) - len(told)
    rest = f", and {counted(more, 'further effect')}" if more else ""
    return (
        f"Largest effects on {title} (high level / low level): {'; '.join(told)}{rest}. "
        f"No effect is shown of {len(measured) - len(shown)} of {len(measured)}."
    )


def _against(study: Study, effect: FactorEffect) -> str:
    """`mix, c against a`; of an interaction, which has no levels, the factors."""
    if len(effect.factors) > 1:
        return " x ".join(effect.factors)
    low, high = study.factor(effect.factors[0]).levels
    return f"{effect.factors[0]}, {high.name} against {low.name}"


def _or_alias(effect: FactorEffect) -> str:
    return f" (may instead be {', '.join(effect.aliases)})" if effect.aliases else ""
