"""What analysis found: the values that reports, `dyno show` and other programs read. Never renamed, only extended."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from dyno.model.base import Frozen

FINDINGS_FORMAT = 1

Interval = tuple[float, float]

Verdict = Literal["higher", "lower", "no difference shown", "not enough runs"]
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
    unsteady: Annotated[int, Field(description="ok runs that slowed down or never became steady")] = 0
    remark: Annotated[str, Field(description="what must be said beside the figures; empty where nothing must")] = ""


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
    remark: Annotated[str, Field(description="in how many runs of either folder there is no steady state")] = ""


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
    notes: Annotated[tuple[str, ...], Field(description="what a reader must know before believing the figures")] = ()
