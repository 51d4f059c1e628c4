"""What analysis found: the values that reports, `dyno show` and other programs read. Never renamed, only extended."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from dyno.model.base import Frozen

FINDINGS_FORMAT = 1

Interval = tuple[float, float]

Verdict = Literal["higher", "lower", "equivalent", "no difference shown", "not enough runs"]
FolderVerdict = Verdict | Literal["only in the first", "only in the second"]


def format_quantity(value: float) -> str:
    """A measured value as a person reads it: four significant digits, thousands set apart."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 1e15 or size < 1e-4:
        return f"{value:.3e}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{3 - math.floor(math.log10(size))}f}"


def format_estimate(value: float, interval: Interval | None) -> str:
    """`12,340 [12,010, 12,670]`; the value alone where there is no interval."""
    if interval is None:
        return format_quantity(value)
    return f"{format_quantity(value)} [{format_quantity(interval[0])}, {format_quantity(interval[1])}]"


def format_share(share: float) -> str:
    """A share in per cent, two significant digits below 100 %."""
    return f"{share * 100:.2g}%" if share < 0.995 else f"{share * 100:,.0f}%"


def format_ratio(ratio: float, interval: Interval) -> str:
    """`3.21x [2.90, 3.55]`, with as many digits as it takes to see on which side of 1 each end lies."""
    low, high = interval
    digits = next((d for d in range(2, 7) if all(end == 1 or round(end, d) != 1 for end in interval)), 7)
    return f"{_factor(ratio, digits)}x [{_factor(low, digits)}, {_factor(high, digits)}]"


def _factor(value: float, digits: int) -> str:
    if value >= 1e6 or 0 < value < 1e-4:
        return f"{value:.2g}"
    if value < 0.1:
        return f"{value:.3g}"
    return f"{value:,.{digits if value < 10 else 1 if value < 100 else 0}f}"


class CellSummary(Frozen):
    """One response of one cell over its ok runs. Figures that need more runs than there are, are None."""

    cell: int
    levels: dict[str, str]
    response: str
    unit: str
    n: Annotated[int, Field(description="ok runs: those in the figures")]
    failed: int
    invalid: int
    partial: int
    mean: float | None
    sd: float | None
    variance: float | None
    cov: Annotated[float | None, Field(description="coefficient of variation, sd / mean")]
    mad: Annotated[float | None, Field(description="mean absolute deviation from the mean")]
    min: float | None
    max: float | None
    range: float | None
    ci: Annotated[Interval | None, Field(description="of the mean, at the study's confidence")]
    precision: Annotated[float | None, Field(description="half-width of ci / mean: what was reached")]
    converged: Annotated[bool, Field(description="whether the precision asked for was reached")]
    reached: Annotated[
        float | None,
        Field(description="what converged goes by: the precision of the mean, or of the widest of the cell's ratios"),
    ] = None
    values: Annotated[tuple[float, ...], Field(description="each ok run, in order of execution")] = ()


class RankFigures(Frozen):
    """The same ratio by ranks, which an outlier cannot move far."""

    ratio: float
    ci: Annotated[Interval | None, Field(description="None where so few values bound no interval")]
    p: float
    method: str


class Comparison(Frozen):
    """The ratio between two levels of a factor, all else equal."""

    response: str
    factor: str
    a: Annotated[str, Field(description="the level that is 1")]
    b: str
    within: Annotated[dict[str, str], Field(description="the levels of the other factors")]
    ratio: Annotated[float | None, Field(description="b / a")]
    ci: Interval | None
    n: Annotated[int, Field(description="pairs, or runs of the smaller side where unpaired")]
    method: Annotated[str, Field(description="how the interval was made")]
    verdict: Verdict
    sentence: str
    precision: Annotated[
        float | None, Field(description="half-width of the interval as a factor, less 1: 0.05 is a factor of 1.05")
    ] = None
    converged: Annotated[bool, Field(description="whether the precision asked for was reached")] = False
    p: Annotated[float | None, Field(description="of a ratio of 1, both sides together, by itself")] = None
    p_adjusted: Annotated[
        float | None, Field(description="Holm's over all comparisons of the report; the verdict goes by it")
    ] = None
    family: Annotated[int | None, Field(description="comparisons of the report that have a p")] = None
    margin: Annotated[float | None, Field(description="ratios between 1 / (1 + margin) and 1 + margin are equal")] = (
        None
    )
    equivalent: Annotated[bool | None, Field(description="whether the ratio is shown to lie within the margin")] = None
    p_equivalent: Annotated[float | None, Field(description="Holm's over all comparisons of the report")] = None
    ranks: Annotated[
        RankFigures | None, Field(description="beside the ratio where its residuals are far from normal")
    ] = None


class Candidate(Frozen):
    """One of those that stage one picked from, by its runs alone."""

    cell: int
    level: str
    n: Annotated[int, Field(description="ok runs of stage one")]
    mean: Annotated[
        float | None, Field(description="geometric mean; None without a value, or where too many runs failed")
    ]
    ratio: Annotated[float | None, Field(description="the chosen one / this one, within blocks")] = None
    pairs: Annotated[int | None, Field(description="blocks behind that ratio")] = None
    ci: Annotated[Interval | None, Field(description="of that ratio, for this look among those that were planned")] = (
        None
    )
    p_adjusted: Annotated[
        float | None, Field(description="of a ratio of 1: over all looks, and Holm's over all of stage one")
    ] = None
    standing: Literal["chosen", "shown to be worse", "could be the best", "out: its last runs failed"]


class Choice(Frozen):
    """What stage one picked for one combination of the other factors, and what became of it in stage two."""

    factor: str
    within: dict[str, str]
    cell: Annotated[int | None, Field(description="what was picked, by its number in the plan; None: all failed")]
    chosen: str | None
    runner_up: str | None
    shown: Annotated[bool, Field(description="whether the chosen one is shown to be the best")]
    could_be: Annotated[int, Field(description="how many could be the best, the chosen one included")]
    candidates: tuple[Candidate, ...]
    mean: Annotated[float | None, Field(description="geometric mean of the chosen one's runs of stage one")]
    mean_compared: Annotated[float | None, Field(description="the same of its runs of stage two")]
    optimism: Annotated[
        float | None,
        Field(description="how many times better the chosen one looked in stage one than it was in stage two"),
    ]
    optimism_ci: Interval | None
    sentence: str


class FolderComparison(Frozen):
    """The same cell in two results folders. The runs were not interleaved, so a ratio is not yet a difference."""

    response: str
    unit: str
    levels: dict[str, str]
    n_a: int
    n_b: int
    mean_a: float | None
    mean_b: float | None
    ratio: Annotated[float | None, Field(description="second folder / first folder")]
    ci: Interval | None
    method: str
    verdict: FolderVerdict
    differs: Annotated[
        tuple[str, ...],
        Field(description="what the two cells were asked for that is not the same, such as workload.mix"),
    ] = ()
    sentence: str


class Failure(Frozen):
    """A run that is not ok."""

    run: int
    cell: int
    levels: dict[str, str]
    outcome: str
    step: str | None
    cause: str | None


class Findings(Frozen):
    """All that a results folder says."""

    format: int = FINDINGS_FORMAT
    study: str
    question: str
    scale: str
    answer: Annotated[str, Field(description="the question answered in a sentence or two")]
    response: Annotated[str, Field(description="the response that the study's precision is of")]
    confidence: float
    precision: Annotated[float, Field(description="the relative half-width asked for")]
    precision_of: Annotated[Literal["mean", "ratio"], Field(description="what that half-width is of")] = "mean"
    compare: Annotated[str | None, Field(description="the factor whose levels are compared")] = None
    ended: Annotated[str, Field(description="why the study ended, or that it has not")]
    runs: int
    cells: tuple[CellSummary, ...]
    comparisons: tuple[Comparison, ...]
    failures: tuple[Failure, ...]
    choices: Annotated[
        tuple[Choice, ...], Field(description="of a staged study; its cells and comparisons are of stage two alone")
    ] = ()
    notes: Annotated[tuple[str, ...], Field(description="what a reader must know before believing the figures")] = ()
