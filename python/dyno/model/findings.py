"""What analysis found: the values that reports, `dyno show` and other programs read. Never renamed, only extended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from dyno.model.answers import BatchFinding, QueryFinding
from dyno.model.base import Frozen

FINDINGS_FORMAT = 1
_FAR_OFF, _LEAST_SHOWN = 10, 0.0001  # shares beyond which digits say nothing

Interval = tuple[float, float]

Verdict = Literal["higher", "lower", "equivalent", "no difference shown", "not enough runs", "not judged"]
Pace = Literal["rate", "waits"]
"""What set a throughput besides the system: requests came at a given rate, or clients waited between them."""
DecisionVerdict = Literal["best", "alike", "cannot tell", "not judged"]
"""Best: one is shown to be. Alike: those that could be are shown to be equal. Smoke is not judged."""
TargetVerdict = Literal["met", "missed", "cannot tell"]
Agreement = Literal["agrees", "differs", "cannot tell"]
ClaimVerdict = Literal["confirmed", "contradicted", "open"]
ResourceVerdict = Verdict | Literal["no ratio"]
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
    """A share in per cent, two significant digits below 100 %; where it is far off, no more than that it is."""
    if share >= 0.995:
        return f"{share * 100:,.0f}%" if share <= _FAR_OFF else f">{_FAR_OFF * 100:,}%"
    return f"{share * 100:.2g}%" if share >= _LEAST_SHOWN else "<0.01%" if share else "0%"


def format_reached(share: float, asked: float) -> str:
    """A precision reached, with as many digits as it takes to see that it missed what was asked, where it did."""
    for digits in range(2, 7):
        text = f"{share * 100:.{digits}g}"
        if not asked < share < 0.995 or float(text) > round(asked * 100, 6):
            break
    else:
        return f"just over {format_share(share)}"
    return f"{text}%" if digits > 2 else format_share(share)


def format_p(p: float) -> str:
    """`0.043`; what is smaller than anybody needs to know is told as such."""
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def format_ratio(ratio: float, interval: Interval) -> str:
    """`3.21x [2.90, 3.55]`, with as many digits as it takes to see on which side of 1 each end lies."""
    low, high = interval
    digits = next((d for d in range(2, 7) if all(end == 1 or round(end, d) != 1 for end in interval)), 7)
    if 1e-3 <= low <= ratio < 0.1 and high < 1:
        digits = max(digits, 2 - math.floor(math.log10(ratio)))  # three that mean something, and as many at each end
    return f"{_factor(ratio, digits)}x [{_factor(low, digits)}, {_factor(high, digits)}]"


def _factor(value: float, digits: int) -> str:
    if value >= 1e6 or 0 < value < 1e-4:
        return f"{value:.2g}"
    if value < 0.1 and digits == 2:
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
    ci: Annotated[Interval | None, Field(description="of the mean, at the study's confidence; ends at 0")]
    allowance: Annotated[
        float | None, Field(description="times ci is as wide for neighbours in time that may be alike")
    ] = None
    precision: Annotated[float | None, Field(description="half of ci, before it ends at 0, / mean: what was reached")]
    converged: Annotated[bool, Field(description="whether the precision asked for was reached")]
    reached: Annotated[
        float | None,
        Field(description="what converged goes by: the precision of the mean, or of the widest of the cell's ratios"),
    ] = None
    values: Annotated[tuple[float, ...], Field(description="each ok run, in order of execution")] = ()
    unsteady: Annotated[int, Field(description="ok runs that slowed down or never became steady")] = 0
    remark: Annotated[str, Field(description="what must be said beside the figures; empty where nothing must")] = ""


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
    pace: Annotated[
        Pace | None,
        Field(description="of throughputs: rate where one was given and reached, waits where clients waited as asked"),
    ] = None
    confounded: Annotated[
        tuple[str, ...], Field(description="the keys of the confounders in which the two cells differ besides")
    ] = ()


class OverallRatio(Frozen):
    """The ratio of a level to the one declared first, over many combinations of the other factors' levels together."""

    response: str
    factor: str
    a: Annotated[str, Field(description="the level that is 1, the one declared first")]
    b: str
    where: Annotated[dict[str, str], Field(description="the level that all these combinations have; empty for all")]
    combinations: Annotated[int, Field(description="in the figure")]
    of: Annotated[int, Field(description="combinations that there are; others had too few runs in common blocks")]
    tasks: Annotated[
        int, Field(description="kinds of workload, and actions of one kind, in the figure: above 1 they are unlike")
    ] = 1
    ratio: Annotated[float, Field(description="b / a: the geometric mean of the ratios within blocks")]
    ci: Interval
    n: Annotated[int, Field(description="blocks; of the combination that has the fewest")]
    method: Annotated[str, Field(description="how the interval was made")]
    verdict: Verdict
    p: Annotated[float | None, Field(description="of a ratio of 1, both sides together, by itself")]
    p_adjusted: Annotated[
        float | None, Field(description="Holm's over all such figures of the report; the verdict goes by it")
    ]
    family: Annotated[int, Field(description="such figures of the report")]
    margin: float
    equivalent: bool | None
    p_equivalent: float | None
    pace: Pace | None = None
    confounded: Annotated[tuple[str, ...], Field(description="the keys of the confounders of these combinations")] = ()
    sentence: str

    @property
    def unlike(self) -> str:
        """`of 2 unlike tasks`; empty where all of them do the same work."""
        return f"of {self.tasks} unlike tasks" if self.tasks > 1 else ""


class Confounder(Frozen):
    """In what levels of the compared factor differ besides, though nobody asked for it: found while they ran."""

    factor: str
    key: Annotated[str, Field(description="as run.json has it: deployed.io_engine, settings.innodb_flush_method")]
    values: Annotated[dict[str, tuple[str, ...]], Field(description="level -> what was found, all else equal")]
    pairs: Annotated[int, Field(description="comparisons of two cells that differ in it")]
    of: Annotated[int, Field(description="comparisons of which both sides told how they were deployed")]
    note: Annotated[str, Field(description="why it may matter; empty where that is not known")] = ""
    sentence: str


class FactorEffect(Frozen):
    """What a factor of two levels changes, or an interaction of two, over all cells of a screening design."""

    response: str
    factors: Annotated[tuple[str, ...], Field(description="one, or the two that interact")]
    aliases: Annotated[
        tuple[str, ...],
        Field(description="effects that the design cannot tell from it, which is their sum; - for opposite sign"),
    ] = ()
    ratio: Annotated[
        float, Field(description="high / low; of an interaction: where both are high or both low / where one is")
    ]
    ci: Interval | None
    share: Annotated[float | None, Field(description="of the variation of the log of the response")]
    n: Annotated[int, Field(description="ok runs, of all cells")]
    quantile: Annotated[
        float, Field(description="where its size would be among as many of noise alone; of the half-normal plot")
    ]
    verdict: Verdict
    sentence: str


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
    remark: Annotated[str, Field(description="in how many runs of either folder there is no steady state")] = ""


class FolderAgreement(Frozen):
    """Whether two results folders rank their cells alike, and how far apart their figures are over all of them."""

    response: str
    a: Annotated[str, Field(description="the first folder, by what it was asked for where that tells the two apart")]
    b: str
    ranks: Ranks
    ratio: Annotated[
        float | None, Field(description="b / a: the geometric mean over the cells in it, each weighing alike")
    ]
    ci: Interval | None
    cells: Annotated[int, Field(description="in the ratio")]
    of: Annotated[int, Field(description="cells that both folders have")]
    sentence: str


class StepTiming(Frozen):
    """How long one step of a run took, over the runs that have it."""

    step: Annotated[str, Field(description="as run.json has it")]
    n: Annotated[int, Field(description="runs that have it")]
    median_s: float
    p95_s: Annotated[float, Field(description="95th percentile")]


class Timing(Frozen):
    """Where the time of ok runs goes, at one level of the compared factor."""

    level: Annotated[str | None, Field(description="None where nothing is compared")]
    runs: int
    steps: Annotated[tuple[StepTiming, ...], Field(description="in the order in which they are taken")]
    around: Annotated[StepTiming, Field(description="of each run, all steps but drive and prepare together")]


class TargetCell(Frozen):
    """What one cell says of a target."""

    cell: int
    levels: dict[str, str]
    n: int
    mean: float | None
    ci: Annotated[Interval | None, Field(description="of the mean, at the study's confidence")]
    verdict: Annotated[TargetVerdict, Field(description="by the whole interval: met within the bound, missed outside")]
    remark: Annotated[str, Field(description="what it was judged by instead of the mean; empty where by that")] = ""


class TargetResult(Frozen):
    """Whether a target was reached: in every cell that it is asked of, or not."""

    response: str
    unit: str
    bound: Annotated[str, Field(description="as the study says it")]
    where: Annotated[dict[str, tuple[str, ...]], Field(description="the cells it is asked of; empty for all")] = {}
    verdict: Annotated[TargetVerdict, Field(description="met in every cell, or missed in one")]
    sentence: str
    cells: tuple[TargetCell, ...]


class PublishedCell(Frozen):
    """A cell's mean beside the figure that was published of it."""

    cell: int
    levels: dict[str, str]
    mean: float | None
    ci: Interval | None
    published: float
    published_ci: Interval | None


class PublishedRatio(Frozen):
    """A comparison beside the ratio of the figures that were published."""

    factor: str
    a: Annotated[str, Field(description="the level that is 1")]
    b: str
    within: Annotated[dict[str, str], Field(description="the levels of the other factors")]
    ratio: Annotated[float | None, Field(description="b / a")]
    ci: Interval | None
    published: float | None
    published_ci: Interval | None
    which_is_higher: Annotated[
        Agreement, Field(description="whether both intervals lie above 1, or both below; cannot tell where one holds 1")
    ]
    by_how_much: Annotated[
        Agreement,
        Field(description="agrees: shown to be alike within the table's margin; differs: shown to differ at all"),
    ]
    sentence: str


class Ranks(Frozen):
    """Whether the cells come in the order of the published figures."""

    tau: Annotated[float | None, Field(description="Kendall's tau-b: 1 the same order, -1 the reverse")]
    p: Annotated[float | None, Field(description="of orders that have nothing to do with each other")]
    n: Annotated[int, Field(description="cells that have both figures")]
    verdict: Agreement
    sentence: str


class PublishedResult(Frozen):
    """A published table beside the results."""

    file: str
    response: str
    unit: str
    ranks: Ranks
    cells: tuple[PublishedCell, ...]
    ratios: tuple[PublishedRatio, ...]
    same_side: Annotated[
        str | None,
        Field(
            description="how many of the differences that are shown here are on the side of published figures without "
            "intervals; None where there are none"
        ),
    ] = None
    unlike: Annotated[
        tuple[str, ...], Field(description="whose figures are shown and judge nothing, and why, in sentences")
    ] = ()


class ObservedCell(Frozen):
    """A cell beside a figure of a machine that was published."""

    cell: int
    levels: dict[str, str]
    n: Annotated[int, Field(description="ok runs that tell of it")]
    mean: float | None
    ci: Annotated[Interval | None, Field(description="of the mean, at the study's confidence")]
    of_published: Annotated[float | None, Field(description="mean / published: how many times what was published")]
    of_published_ci: Annotated[Interval | None, Field(description="of the mean's interval alone")]
    relative: Annotated[
        float | None, Field(description="times the cell of the first level, all else equal; null where it is of none")
    ] = None
    relative_ci: Interval | None = None


class ObservedFigure(Frozen):
    """A published figure of a machine, and each cell that it stands for."""

    column: str
    quantity: Annotated[str, Field(description="what is measured of it here, by its name")]
    title: str
    unit: str
    levels: Annotated[dict[str, str], Field(description="those that the publication tells")]
    published: Annotated[float, Field(description="in unit")]
    relative: Annotated[
        float | None, Field(description="times the published figure of the first level; null where it is of none")
    ] = None
    relative_to: Annotated[dict[str, str], Field(description="the factor, and the level that is 1")] = {}
    cells: tuple[ObservedCell, ...]
    reason: Annotated[str, Field(description="why nothing was measured; empty where something was")] = ""
    note: Annotated[str, Field(description="what a reader should know of it")] = ""


class ObservedResult(Frozen):
    """A published table of what a machine did, beside what was observed here."""

    file: str
    sentence: Annotated[str, Field(description="which cells the published figures stand for")]
    figures: tuple[ObservedFigure, ...]
    left_out: Annotated[tuple[str, ...], Field(description="columns of the file that stand beside nothing")] = ()


class Evidence(Frozen):
    """One mean, or one ratio, that a published finding says something of."""

    response: str
    unit: str
    b: Annotated[dict[str, str], Field(description="the cell, or that above the line of a ratio")]
    a: Annotated[dict[str, str] | None, Field(description="the cell below the line; null for a mean")]
    value: Annotated[float | None, Field(description="the mean in unit, or the ratio b / a")]
    ci: Interval | None
    wanted: Annotated[str, Field(description="the bound that the finding sets")]
    holds: Annotated[bool | None, Field(description="whether all of ci is within it, or none of it; null for neither")]


class ClaimResult(Frozen):
    """What became of a published finding."""

    id: str
    says: str
    here: Annotated[str, Field(description="yes, or what a machine must have to judge it")]
    needs: Annotated[str | None, Field(description="under which condition it was said")]
    note: str | None
    verdict: ClaimVerdict
    reason: Annotated[str, Field(description="a sentence with the figures, or why it stays open")]
    evidence: tuple[Evidence, ...]


class Failure(Frozen):
    """A run that is not ok."""

    run: int
    cell: int
    levels: dict[str, str]
    outcome: str
    step: str | None
    cause: str | None


class VariationSource(Frozen):
    """What one source explains of the variation: a factor, an interplay of factors, the blocks, or noise."""

    source: Annotated[str, Field(description="factors of an interplay are joined by ` x `; noise is `residual`")]
    sum_of_squares: float
    degrees: Annotated[int, Field(description="of freedom")]
    share: Annotated[float | None, Field(description="of the total sum of squares")]
    mean_square: float | None = None
    f: Annotated[float | None, Field(description="mean square over that of the residual")] = None
    p: Annotated[float | None, Field(description="how often noise alone would give so large an f")] = None


class Variation(Frozen):
    """What explains the variation of a response. Without `sources` there is a `reason`."""

    response: str
    log: Annotated[bool, Field(description="whether sums of squares are of natural logs")] = True
    sentence: str
    reason: Annotated[str | None, Field(description="why nothing was computed")] = None
    sources: tuple[VariationSource, ...] = ()
    sum_of_squares: float | None = None
    degrees: int | None = None
    adds_up: Annotated[
        bool, Field(description="whether shares add up to 1: not where runs are missing, since sources then overlap")
    ] = True
    far_from_normal: Annotated[bool, Field(description="whether the residuals are too far from normal to trust p")] = (
        False
    )
    runs: Annotated[tuple[int, ...], Field(description="the runs of the residuals")] = ()
    fitted: Annotated[tuple[float, ...], Field(description="what the sources say of each run, in logs")] = ()
    residuals: Annotated[tuple[float, ...], Field(description="what they miss, in logs")] = ()
    scores: Annotated[tuple[float, ...], Field(description="where each residual would lie, were they normal")] = ()


class ShapePoint(Frozen):
    """A level of an ordered factor: what it brings over the first level."""

    cell: int
    x: Annotated[float, Field(description="the level as a number")]
    n: Annotated[int, Field(description="ok runs")]
    speedup: Annotated[float | None, Field(description="times the rate at the first level")] = None
    speedup_ci: Interval | None = None
    efficiency: Annotated[float | None, Field(description="speedup as a share of what the level promises")] = None


class ScalabilityLaw(Frozen):
    """A fit of the Universal Scalability Law, N rate / (1 + contention (N - 1) + coherency N (N - 1))."""

    rate: Annotated[float, Field(description="of one client")]
    rate_ci: Interval | None
    contention: Annotated[float, Field(description="share of work that waits in line")]
    contention_ci: Interval | None
    coherency: Annotated[float, Field(description="what each pair of clients spends on agreeing, as a share of work")]
    coherency_ci: Interval | None
    peak: Annotated[float | None, Field(description="clients of the highest rate; only where coherency is shown")]
    peak_ci: Interval | None
    error: Annotated[float, Field(description="standard deviation of the levels around the law, in logs")]

    def at(self, clients: float) -> float:
        """The rate of so many clients."""
        pairs = clients * (clients - 1)
        return self.rate * clients / (1 + self.contention * (clients - 1) + self.coherency * pairs)


class Curve(Frozen):
    """A response over an ordered factor, all else equal."""

    within: Annotated[dict[str, str], Field(description="the levels of the other factors")]
    points: tuple[ShapePoint, ...]
    paired: Annotated[bool, Field(description="whether levels were compared within blocks")] = False
    saturation: Annotated[
        float | None, Field(description="the smallest level from which no further one is shown to be higher")
    ] = None
    headroom: Annotated[
        float | None, Field(description="how many times higher a level beyond may still be: an upper bound")
    ] = None
    law: ScalabilityLaw | None = None
    sentence: Annotated[str, Field(description="speed-up, saturation and law in words; empty where there are none")]


class Crossing(Frozen):
    """Where the curves of two levels of the compared factor cross."""

    within: dict[str, str]
    a: str
    b: str
    at: Annotated[float, Field(description="in the unit of the ordered factor")]
    ci: Annotated[Interval | None, Field(description="null where the crossing is not shown")]
    upward: Annotated[bool, Field(description="whether b is the lower one before, and the higher one after")]
    sentence: str


class Shape(Frozen):
    """A response over one ordered factor."""

    response: str
    factor: str
    log_x: Annotated[bool, Field(description="whether levels grow by multiples: between them, lines are over ln x")] = (
        False
    )
    curves: tuple[Curve, ...]
    crossings: tuple[Crossing, ...] = ()
    sentence: Annotated[str, Field(description="how many curves cross; empty where none are compared")] = ""
    left_out: Annotated[tuple[str, ...], Field(description="what was not computed, and why")] = ()


class Decided(Frozen):
    """Which level of the compared factor is best at one combination of the others.

    Decision tables are a family of tests of their own: with the confidence that the study asks for, the table of the
    deciding response names none that is not the best, and the best is one of `could_be`, everywhere in it at once. The
    tables of other responses share one such error.
    """

    levels: Annotated[dict[str, str], Field(description="of the other factors")]
    verdict: DecisionVerdict
    best: Annotated[str | None, Field(description="the one that is shown to be better than each it is held against")]
    could_be: Annotated[
        tuple[str, ...],
        Field(description="those that are not shown to be worse than another; what is ahead by its mean first"),
    ]
    apart: Annotated[
        tuple[str, ...],
        Field(description="levels that are not held against these: too few ok runs, or they do not compare"),
    ] = ()
    unmeasured: Annotated[
        tuple[str, ...], Field(description="levels that the study does not have here, though it has them elsewhere")
    ] = ()
    runner_up: Annotated[str | None, Field(description="by its mean the next to what is ahead")] = None
    ratio: Annotated[float | None, Field(description="what is ahead / the runner-up")] = None
    ci: Annotated[Interval | None, Field(description="of that ratio by itself")] = None
    n: Annotated[int, Field(description="pairs behind it, or runs of the smaller side")] = 0
    p_adjusted: Annotated[
        float | None,
        Field(
            description="of what is ahead not being the best, for all of the table; none where none leads all others"
        ),
    ] = None
    sentence: str


class DecidedTogether(Frozen):
    """Which level is the best over all levels of the ordered factor together, by ratios pooled over them."""

    levels: Annotated[tuple[str, ...], Field(description="of the ordered factor, rising")]
    left_out: Annotated[
        tuple[str, ...],
        Field(description="levels of the ordered factor that are not pooled: fewer were measured there"),
    ] = ()
    verdict: DecisionVerdict
    best: str | None
    could_be: tuple[str, ...]
    apart: tuple[str, ...] = ()
    unmeasured: Annotated[tuple[str, ...], Field(description="at all of these levels, as of a combination")] = ()
    unlike: Annotated[
        tuple[tuple[str, str], ...],
        Field(description="of those that could be the best: two that are not in one order at all levels, not pooled"),
    ] = ()
    alone: Annotated[
        tuple[str, ...], Field(description="levels of the ordered factor at which the best is shown by itself")
    ] = ()
    runner_up: str | None = None
    ratio: Annotated[float | None, Field(description="geometric mean, of what is ahead to the runner-up")] = None
    ci: Annotated[Interval | None, Field(description="of that ratio by itself")] = None
    n: Annotated[int, Field(description="blocks behind it")] = 0
    p_adjusted: Annotated[float | None, Field(description="as of a combination")] = None
    sentence: str

    @property
    def span(self) -> str:
        """`1 to 32`; `1 and 32` where what lies between is left out."""
        *before, last = self.levels
        if not before:
            return last
        return f"{', '.join(before)} and {last}" if self.left_out else f"{before[0]} to {last}"


class DecidedRange(Frozen):
    """Neighbouring levels of an ordered factor at which the decision is the same."""

    levels: Annotated[tuple[str, ...], Field(description="of the ordered factor, rising; empty where there is none")]
    verdict: DecisionVerdict
    best: str | None
    could_be: tuple[str, ...]
    apart: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    at: Annotated[str | None, Field(description="the level whose ratio to the runner-up is nearest to 1")] = None
    runner_up: Annotated[str | None, Field(description="there")] = None
    ratio: Annotated[float | None, Field(description="there, of what is ahead to the runner-up")] = None
    ci: Interval | None = None


class LevelCost(Frozen):
    """What one level of the compared factor takes of a resource, over the combinations of a row."""

    level: str
    resource: Annotated[str, Field(description="a resource or share, or a response: system_cpu_per_op")]
    title: str
    unit: str
    low: Annotated[float, Field(description="the lowest of the means of its cells")]
    high: Annotated[float, Field(description="the highest")]
    cells: Annotated[int, Field(description="that tell of it")]


class DecisionRow(Frozen):
    """What is decided at one combination of all factors but the compared and the ordered one."""

    within: dict[str, str]
    together: Annotated[
        DecidedTogether | None, Field(description="over several levels of the ordered factor; what the row rests on")
    ] = None
    ranges: tuple[DecidedRange, ...]
    crossings: Annotated[
        tuple[Crossing, ...],
        Field(description="those of `shapes` that are shown, of two levels that could be the best there"),
    ] = ()
    costs: Annotated[
        tuple[LevelCost, ...], Field(description="each level by what it occupies and takes, as far as runs tell")
    ] = ()
    sentence: str


class DecisionTable(Frozen):
    """Which level of the compared factor is the best where: a response, decided at each combination of the others."""

    response: str
    unit: str
    better: Literal["higher", "lower"]
    factor: Annotated[str, Field(description="the compared one")]
    over: Annotated[str | None, Field(description="the ordered factor whose levels are joined to ranges")]
    rows: tuple[DecisionRow, ...]
    combinations: Annotated[tuple[Decided, ...], Field(description="each by itself")]
    sentence: str


class Change(Frozen):
    """A step of the machine: the median of the runs before and after, relative to their cells."""

    run: Annotated[int, Field(description="the first after it")]
    before: float
    after: float
    p: float


class Outlier(Frozen):
    """A run far from the others; it is in all figures."""

    run: int
    cell: int
    levels: dict[str, str]
    relative: Annotated[float, Field(description="to the median of its cell")]
    score: Annotated[float, Field(description="modified z-score: beyond 3.5 to either side")]


class Drift(Frozen):
    """What the order of the runs did to them. Without `runs` there is a `reason`."""

    response: str
    shown: Annotated[bool, Field(description="whether a trend or a change is shown")] = False
    sentence: str
    reason: Annotated[str | None, Field(description="why it was not looked for")] = None
    trend: Annotated[float | None, Field(description="what one run later adds, as a share")] = None
    trend_ci: Interval | None = None
    trend_p: float | None = None
    correlation: Annotated[float | None, Field(description="between runs next to each other in time")] = None
    correlation_error: Annotated[float | None, Field(description="its standard error")] = None
    changes: tuple[Change, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    runs: Annotated[tuple[int, ...], Field(description="in order of execution")] = ()
    relative: Annotated[tuple[float, ...], Field(description="each run relative to the median of its cell")] = ()


class ResourceFigure(Frozen):
    """What one cell used of one resource for an operation, or a share, over its ok runs."""

    cell: int
    levels: dict[str, str]
    resource: str
    title: str
    unit: str
    relative: Annotated[bool, Field(description="whether it is one use over another, and not of an operation")] = False
    n: Annotated[int, Field(description="ok runs that tell of it: those in the figures")]
    mean: Annotated[float | None, Field(description="for an operation, or the share itself")]
    sd: float | None
    ci: Annotated[
        Interval | None, Field(description="of the mean, at the study's confidence, made as those of responses")
    ]
    per_s: Annotated[float | None, Field(description="mean use in a second, in unit; null for shares")] = None
    values: Annotated[tuple[float, ...], Field(description="each such run, in order of execution")] = ()
    reason: Annotated[str, Field(description="why there is no mean, or no interval; empty where there are both")] = ""


class ResourceRatio(Frozen):
    """The ratio of what two levels of a factor used of a resource for an operation, all else equal."""

    resource: str
    factor: str
    a: Annotated[str, Field(description="the level that is 1")]
    b: str
    within: Annotated[dict[str, str], Field(description="the levels of the other factors")]
    cells: Annotated[tuple[int, int], Field(description="the numbers of the two cells in the plan, that of a first")]
    ratio: Annotated[float | None, Field(description="b / a")]
    ci: Interval | None
    n: Annotated[int, Field(description="pairs, or runs of the smaller side where unpaired")]
    method: Annotated[str, Field(description="how the interval was made")]
    verdict: ResourceVerdict
    reason: Annotated[str, Field(description="why there is no ratio; empty where there is one")] = ""
    p: Annotated[float | None, Field(description="of a ratio of 1, both sides together, by itself")] = None
    p_adjusted: Annotated[
        float | None, Field(description="Holm's over all ratios of resources; the verdict goes by it")
    ] = None
    family: Annotated[int | None, Field(description="ratios of resources that have a p")] = None
    margin: Annotated[float | None, Field(description="ratios between 1 / (1 + margin) and 1 + margin are equal")] = (
        None
    )
    equivalent: Annotated[bool | None, Field(description="whether the ratio is shown to lie within the margin")] = None
    p_equivalent: Annotated[float | None, Field(description="Holm's over all ratios of resources")] = None
    confounded: Annotated[
        tuple[str, ...], Field(description="the keys of the confounders in which the two cells differ besides")
    ] = ()
    sentence: str


class Demand(Frozen):
    """What an operation of a cell takes of one resource, at the load of that cell."""

    resource: Annotated[Literal["cpu", "disk", "network", "limit"], Field(description="what all operations share")]
    of: Annotated[
        str, Field(description="whose use it is: machine.cpu, or that which a limit or a pin holds back; limit.reads")
    ]
    name: Annotated[str, Field(description="in words: 2 CPUs, the disk")]
    seconds_per_op: Annotated[float, Field(description="of one server's time: the service demand")]
    ci: Interval | None
    servers: Annotated[float, Field(description="alike: CPUs, or as many as a quota makes of them")]
    utilisation: Annotated[float, Field(description="share of all servers' time, by the resource's own reading")]
    bound_ops_s: Annotated[
        float | None,
        Field(
            description="servers / seconds_per_op: no throughput is higher; null of CPUs of which others used too much"
        ),
    ]
    bound_ci: Interval | None
    n: Annotated[int, Field(description="runs")]


_OF_A_BOUND = 0.05
"""A single run that is no further above a bound is not told from one that reaches it."""


class CellLaws(Frozen):
    """The operational laws of one cell: what it could reach at the most, and how close it came."""

    cell: int
    levels: dict[str, str]
    n: Annotated[int, Field(description="ok runs that were observed")]
    clients: Annotated[float | None, Field(description="of a closed loop; null where that is not known")]
    alone_s: Annotated[
        float,
        Field(
            description="of an operation that waits for nothing: CPU of system and driver, disk, network, think time"
        ),
    ]
    throughput: float
    throughput_ci: Interval | None
    demands: Annotated[tuple[Demand, ...], Field(description="the resource with the lowest bound first")]
    bound: Annotated[
        float | None,
        Field(description="min(servers / demand, clients / alone_s), ops/s; null where others used the resource too"),
    ]
    bound_ci: Interval | None
    saturation: Annotated[
        float | None, Field(description="N*: with more clients, some stand in line; null where not told, as bound")
    ]
    saturation_ci: Interval | None
    reached: Annotated[float | None, Field(description="throughput as a share of bound; null where that is not told")]
    reached_ci: Interval | None
    sentence: str

    @property
    def beyond(self) -> bool:
        """Whether throughput is above the bound, by its interval or, of a single run, by more than little."""
        if self.reached is None:
            return False
        return self.reached_ci[0] > 1 if self.reached_ci else self.reached > 1 + _OF_A_BOUND


class DemandChange(Frozen):
    """What a level of an ordered number of clients does to the CPU time of an operation."""

    factor: str
    within: dict[str, str]
    of: Annotated[str, Field(description="whose CPU time, as in a demand")]
    a: Annotated[str, Field(description="the lowest level, which is 1")]
    b: str
    ratio: float
    ci: Interval
    n: Annotated[int, Field(description="pairs within blocks, or runs of the smaller side")]
    p: float | None
    p_adjusted: Annotated[float | None, Field(description="Holm's over all changes of the report")]
    shown: Annotated[bool, Field(description="whether it is shown to change")]
    sentence: str


class LawCheck(Frozen):
    """A law that every measurement keeps, whatever was measured: in how many runs it was looked at, and the worst."""

    law: Annotated[str, Field(description="its name")]
    says: Annotated[str, Field(description="what has to hold")]
    tolerance: Annotated[str, Field(description="how far from it a sound measurement may be, and why")]
    runs: Annotated[int, Field(description="in which it could be looked at")]
    broken: Annotated[int, Field(description="of them, beyond the tolerance")]
    worst: Annotated[float | None, Field(description="found / expected of the run that is the furthest off")]
    worst_run: int | None


class LawFault(Frozen):
    """A run whose figures contradict each other beyond what is tolerated: a fault of the measurement."""

    law: str
    run: int
    cell: int
    levels: dict[str, str]
    found: float
    expected: float
    unit: str
    sentence: str


class ForecastError(Frozen):
    """How one way of forecasting did at one level that it was not told of."""

    level: str
    ratio: Annotated[float, Field(description="forecast / measured")]
    ci: Interval | None


class ForecastWay(Frozen):
    """One way of forecasting, judged by levels that it was not told of."""

    way: Annotated[Literal["demands", "nearest", "line", "usl"], Field(description="how it is made")]
    error: Annotated[float, Field(description="mean size of ln(forecast / measured) over levels, then blocks")]
    error_ci: Annotated[Interval | None, Field(description="over blocks; ends at 0")]
    levels: Annotated[tuple[ForecastError, ...], Field(description="each level between the first and the last")]
    against: Annotated[
        float | None, Field(description="error of the demands' forecast less this one's; below 0 it does better")
    ] = None
    against_ci: Interval | None = None


class Forecasting(Frozen):
    """What forecasts for numbers of clients that were not measured are worth, on one curve."""

    factor: str
    within: dict[str, str]
    measured: Annotated[tuple[float, ...], Field(description="levels")]
    blocks: Annotated[int, Field(description="that have all levels")]
    ways: tuple[ForecastWay, ...]
    sentence: str


class Forecast(Frozen):
    """A throughput that was not measured, with the error made on those that were."""

    factor: str
    at: float
    within: dict[str, str]
    throughput: Annotated[float, Field(description="ops/s")]
    ci: Annotated[Interval | None, Field(description="over blocks: of noise alone")]
    error: Annotated[float, Field(description="mean size of ln(forecast / measured) on levels left out")]
    error_ci: Interval | None
    worst: Annotated[float, Field(description="the largest of them, of the means of a level")]
    worst_at: str
    nearest: Annotated[float, Field(description="the throughput of the level that is nearest by ratio")]
    sentence: str


class Laws(Frozen):
    """Operational laws: demands, bounds, what contradicts itself, and what forecasts are worth."""

    cells: Annotated[tuple[CellLaws, ...], Field(description="those that were observed")] = ()
    changes: tuple[DemandChange, ...] = ()
    checks: tuple[LawCheck, ...] = ()
    faults: Annotated[tuple[LawFault, ...], Field(description="of the measurement itself, by run")] = ()
    forecasting: tuple[Forecasting, ...] = ()
    left_out: Annotated[tuple[str, ...], Field(description="what was not computed, and why")] = ()


class CounterFigure(Frozen):
    """A counter of a store in one cell."""

    name: Annotated[str, Field(description="as the store has it, in lower case")]
    per_op: Annotated[float, Field(description="for each operation, mean over the runs")]
    ci: Annotated[Interval | None, Field(description="of that mean, at the study's confidence; ends at 0")]
    per_s: Annotated[float, Field(description="growth per second")]
    apart: Annotated[
        float | None,
        Field(
            description="the cell compared with this one that differs most: how many times more the one has than the "
            "other, where their intervals do not meet"
        ),
    ] = None


class GaugeFigure(Frozen):
    """What goes up and down in a store, such as memory that it holds, in one cell."""

    name: Annotated[str, Field(description="as the store has it, in lower case; of a node `n1.` stands before it")]
    mean: Annotated[float, Field(description="over time and those runs in which it moved, in the store's own unit")]
    ci: Annotated[Interval | None, Field(description="of that mean, at the study's confidence")]
    n: Annotated[int, Field(description="those runs")]


class WaitFigure(Frozen):
    """What clients of a server waited for in one cell."""

    name: Annotated[str, Field(description="the class, as the server has it; `wait/none` of those that did not wait")]
    clients: Annotated[float, Field(description="that waited for it at a time, mean over time and runs")]
    ci: Annotated[Interval | None, Field(description="of that mean, at the study's confidence; ends at 0")]
    us_per_op: Annotated[float, Field(description="microseconds for each operation")]


class DatabaseCell(Frozen):
    """What the store of one cell said of itself, over the ok runs in which it was asked."""

    cell: int
    levels: dict[str, str]
    n: Annotated[int, Field(description="those runs")]
    counters: Annotated[tuple[CounterFigure, ...], Field(description="those that moved in some cell, by name")]
    waits: Annotated[tuple[WaitFigure, ...], Field(description="the most waited for first")] = ()
    gauges: Annotated[tuple[GaugeFigure, ...], Field(description="those that moved in some run, by name")] = ()
    remark: Annotated[str, Field(description="what could not be told, and why; empty where nothing was missing")] = ""


Bottleneck = Literal[
    "cpu-quota",
    "cpu-all",
    "cpu-thread",
    "cpu-path",
    "disk-bandwidth",
    "disk-operations",
    "disk-sync",
    "locks",
    "memory",
    "network",
    "driver",
    "unexplained",
    "undecided",
]
"""What held a cell back (docs/verdicts.md). `unexplained`: nothing that was observed; `undecided`: runs disagree."""

BOTTLENECKS: Mapping[Bottleneck, str] = {
    "cpu-quota": "CPU-bound by its quota",
    "cpu-all": "CPU-bound (all CPUs)",
    "cpu-thread": "CPU-bound (one core)",
    "cpu-path": "bound by CPU time on the way of each operation",
    "disk-bandwidth": "disk-bound (bandwidth)",
    "disk-operations": "disk-bound (operations)",
    "disk-sync": "disk-bound (sync latency)",
    "locks": "lock-bound",
    "memory": "memory-bound",
    "network": "network-bound",
    "driver": "waiting on the driver",
    "unexplained": "not explained by what was observed",
    "undecided": "undecided, since runs disagree",
}
"""Each in words."""


class VerdictEvidence(Frozen):
    """One figure that a verdict rests on: the mean over the runs that agree."""

    name: str
    value: float
    threshold: Annotated[float | None, Field(description="from which on it counts; null where it only stands beside")]
    unit: str


class BottleneckVerdict(Frozen):
    """What held one cell back, and by what it is shown."""

    cell: int
    levels: dict[str, str]
    kind: Bottleneck
    sentence: str
    evidence: tuple[VerdictEvidence, ...]
    agree: Annotated[int, Field(description="runs that say so, each by itself")]
    runs: Annotated[int, Field(description="runs that were observed and judged")]
    against: Annotated[tuple[str, ...], Field(description="what was observed and does not fit, in sentences")] = ()
    next: Annotated[str, Field(description="what would hold it back next; empty where that is not known")] = ""
    limited: Annotated[
        str | None, Field(description="by which of the study's own limits of the disk, as `reads`; null if by none")
    ] = None


class HotSymbol(Frozen):
    """Where CPU time was spent: the innermost function of call stacks."""

    symbol: Annotated[str | None, Field(description="null where it is not known")]
    module: Annotated[str, Field(description="program or library; kernel, and jit for code made at run time")]
    group: str
    share: Annotated[float, Field(description="of the samples; mean over the runs")]


class HotGroup(Frozen):
    """What CPU time was spent on, by the functions of call stacks."""

    group: Annotated[str, Field(description="`other` is what no rule knows")]
    share: Annotated[float, Field(description="of the samples; mean over the runs")]
    ci: Annotated[Interval | None, Field(description="over the runs, at the study's confidence; null for one run")]
    symbols: Annotated[tuple[HotSymbol, ...], Field(description="the first of it")]


class HotSpots(Frozen):
    """What the system's CPU time was spent on in one cell, of samples of its measured parts."""

    cell: int
    levels: dict[str, str]
    event: Annotated[str, Field(description="what was sampled by: cycles, or cpu-clock, which is a timer")]
    runs: Annotated[int, Field(description="ok runs that were sampled")]
    samples: int
    groups: Annotated[tuple[HotGroup, ...], Field(description="the largest first, and `other` last")]
    symbols: Annotated[tuple[HotSymbol, ...], Field(description="the largest of all")]
    unknown: Annotated[float, Field(description="share of samples whose innermost function is not known")]


class DoseEffect(Frozen):
    """A dose, and what it did to the throughput."""

    cell: int
    level: str
    dose: Annotated[float, Field(description="in seconds, or as a share of a capacity")]
    added: Annotated[
        float | None,
        Field(description="time that it adds per operation, relative to the control's mean time of one"),
    ] = None
    n: Annotated[int, Field(description="ok runs")]
    ratio: Annotated[float | None, Field(description="throughput relative to dose 0, within blocks")] = None
    ci: Interval | None = None


FeltVerdict = Literal[
    "felt in full", "felt in part", "more than in full", "not in full", "the other way", "no such calls",
    "differs from a dose on", "no difference seen", "cannot tell", "not judged",
]  # fmt: skip


class Probed(Frozen):
    """What an intervention says of a cell: whether throughput hangs on what was slowed."""

    within: Annotated[dict[str, str], Field(description="the levels of the cell")]
    kind: str
    title: Annotated[str, Field(description="what was done")]
    unit: Annotated[Literal["s", "share"], Field(description="of the doses")]
    clients: int | None = None
    calls_per_op: Annotated[float | None, Field(description="calls that were delayed, in the control")] = None
    time_per_op_s: Annotated[float | None, Field(description="mean in the control: clients / throughput")] = None
    doses: Annotated[tuple[DoseEffect, ...], Field(description="the control first")] = ()
    own_cost: Annotated[
        float | None, Field(description="throughput of the control relative to runs without the instrument")
    ] = None
    own_cost_ci: Interval | None = None
    slope: Annotated[
        float | None,
        Field(description="d ln(throughput) / d added at dose 0: -1 if all that is added is waited for, 0 if none"),
    ] = None
    slope_ci: Annotated[Interval | None, Field(description="holds with those of the other interventions at once")] = (
        None
    )
    confidence: Annotated[float | None, Field(description="of that interval by itself")] = None
    differs_from: Annotated[
        float | None,
        Field(description="of what is not shared in time: the first dose at which throughput differs from the control"),
    ] = None
    verdict: FeltVerdict
    sentence: str
    notes: Annotated[tuple[str, ...], Field(description="what passes the instrument by")] = ()


class RemovalStep(Frozen):
    """An assembly of the engine on the way from all components to none, after one was removed."""

    assembly: str
    removed: Annotated[str, Field(description="the component, pages (larger ones), or empty for the first")]
    ours: Annotated[bool, Field(description="no removal of the publication")] = False
    cell: int
    instructions: Annotated[float | None, Field(description="of a transaction, mean over ok runs")] = None
    saved: Annotated[float | None, Field(description="instructions that the removal saved")] = None
    share: Annotated[float | None, Field(description="of what the first assembly has")] = None
    cycles: float | None = None
    spread: Annotated[
        float | None,
        Field(
            description="the difference of instructions of the same transactions counted twice, relative to their mean"
        ),
    ] = None
    precision: Annotated[
        float | None,
        Field(description="half the width of the interval of `instructions` over blocks, relative to it"),
    ] = None
    outlined: Annotated[
        float | None, Field(description="instructions of the build that keeps components apart in profiles")
    ] = None
    throughput: Annotated[float | None, Field(description="of the mix, mean over ok runs")] = None


class ComponentCost(Frozen):
    """What a component takes of a transaction: by removing it, and as attributed just before that."""

    component: str
    removed: Annotated[float | None, Field(description="(a): instructions that its removal saved")] = None
    own: Annotated[float | None, Field(description="instructions of its own just before, as attributed")] = None
    left: Annotated[float | None, Field(description="what its absent form has of its own just after")] = None
    attributed: Annotated[float | None, Field(description="(b): the first less the second")] = None
    apart: Annotated[
        float | None, Field(description="(a) less (b), as a share of the first assembly's instructions")
    ] = None
    agree: Annotated[bool | None, Field(description="within 10 % of the first assembly's instructions")] = None
    elsewhere: Annotated[
        dict[str, float],
        Field(description="what other components have less of their own after its removal, by the build kept apart"),
    ] = {}
    builds: Annotated[
        float | None,
        Field(description="(a) less what the build kept apart saved: with `elsewhere` all of (a) less (b)"),
    ] = None


class ComponentShare(Frozen):
    """A component's share of what the first assembly takes, in three ways."""

    component: Annotated[str, Field(description="or pages (larger ones, within buffer), or left (what remains)")]
    ours: Annotated[bool, Field(description="no removal of the publication")] = False
    published: Annotated[float | None, Field(description="what was published")] = None
    note: Annotated[str, Field(description="of the published figure")] = ""
    removed: Annotated[float | None, Field(description="(a), by removal")] = None
    attributed: Annotated[float | None, Field(description="(b), by attribution")] = None
    since: Annotated[float | None, Field(description="(a) less what was published")] = None
    apart: Annotated[float | None, Field(description="(a) less (b)")] = None
    agree: Annotated[bool | None, Field(description="(a) and (b) within 10 % of the first assembly")] = None
    why: Annotated[str, Field(description="where they do not agree: what the difference is made of")] = ""


class CallCost(Frozen):
    """A call of the engine, of the first assembly's build that keeps components apart."""

    call: Annotated[str, Field(description="empty for what is in none")]
    calls: Annotated[float | None, Field(description="in a transaction")] = None
    instructions: Annotated[float, Field(description="of all of them in a transaction")]
    components: Annotated[dict[str, float], Field(description="those instructions by component")]
    retired: Annotated[
        float | None, Field(description="instructions by the machine's counters, where it has some that can be read")
    ] = None
    cycles: Annotated[float | None, Field(description="likewise")] = None


class Contributed(Frozen):
    """What a component contributes over all orders of removal: its Shapley value under precedence."""

    component: str
    mean: float
    least: float
    most: float
    share: Annotated[float, Field(description="of the mean in the instructions of the full assembly")]


class Removal(Frozen):
    """Where the instructions of one kind of transaction go, in cells that differ in their assembly alone."""

    transaction: str
    within: Annotated[dict[str, str], Field(description="the levels that those cells share")] = {}
    steps: tuple[RemovalStep, ...]
    kernel: Annotated[RemovalStep | None, Field(description="trees and rows by hand, without an engine")] = None
    repeats: Annotated[
        float | None, Field(description="the largest `spread` of the steps and the kernel: the bar is 0.1 %")
    ] = None
    components: tuple[ComponentCost, ...] = ()
    shares: Annotated[tuple[ComponentShare, ...], Field(description="the same beside what was published")] = ()
    calls: tuple[CallCost, ...] = ()
    contributions: tuple[Contributed, ...] = ()
    contributions_reason: Annotated[str, Field(description="why there are none; empty where there are some")] = ""
    cycles: Annotated[bool, Field(description="whether the machine's counters told cycles of some step")] = False
    beside: Annotated[str, Field(description="(a) and what was published, in words; empty where nothing was")] = ""
    agreement: Annotated[str, Field(description="whether (a) and (b) agree, in words")] = ""
    repeatability: Annotated[str, Field(description="how near counts of the same transactions are, in words")] = ""
    sentence: str


class SwitchStep(Frozen):
    """A system with something more set than in the step before."""

    level: str
    switched: Annotated[str, Field(description="the options that are others than before; empty for the first")] = ""
    cell: int
    instructions: Annotated[float, Field(description="of a transaction, mean over ok runs")]
    saved: Annotated[
        float | None,
        Field(description="instructions fewer than in the step before; mean over blocks, where inputs are alike"),
    ] = None
    least: Annotated[float | None, Field(description="of what blocks saved, where there are several")] = None
    most: Annotated[float | None, Field(description="likewise")] = None
    share: Annotated[float | None, Field(description="of what the first step has")] = None
    throughput: Annotated[float | None, Field(description="of the mix, mean over ok runs")] = None


class Switches(Frozen):
    """What each step of a system's own switches takes of one kind of transaction."""

    transaction: str
    system: Annotated[str, Field(description="kind of the system")]
    within: Annotated[dict[str, str], Field(description="the levels that those cells share")] = {}
    steps: tuple[SwitchStep, ...]
    sentence: str


class FaultFigure(Frozen):
    """One response over the faults of a cell. Of what was not over in some, only the least that it was is known."""

    response: str
    title: str
    unit: str
    n: Annotated[int, Field(description="faults that say something of it")]
    beyond: Annotated[int, Field(description="of these, those in which it was not over when the watch ended")] = 0
    at_least: Annotated[float | None, Field(description="the least that was seen of it in one of those")] = None
    median: Annotated[float | None, Field(description="None where only its bounds are known")] = None
    median_least: Annotated[float, Field(description="the median, where what was not over is as much as was seen")]
    median_most: Annotated[
        float | None, Field(description="likewise where it goes on without end; None: so does the median")
    ] = None
    ci: Annotated[
        tuple[float, float | None] | None,
        Field(
            description="two of the values (order statistics): the lower where what was not over is as much as was "
            "seen, the upper where it goes on without end, and None where that is without end; None where there are "
            "too few"
        ),
    ] = None


class Failover(Frozen):
    """What a fault cost, over the runs of a cell in which it was struck: those that are not ok are among them.

    Times in seconds. Of an outage that did not end until the driver did, only the least that it can have been is known.
    """

    cell: int
    levels: dict[str, str]
    kind: str
    node: Annotated[str, Field(description="its role when it was struck: primary, secondary or any")]
    title: Annotated[str, Field(description="what was done")]
    lasts: Annotated[
        float | None, Field(description="seconds until mending begins; None: when the driver has ended")
    ] = None
    runs: Annotated[int, Field(description="in which it was struck")]
    not_ok: Annotated[int, Field(description="those of them that are not ok")]
    outages: Annotated[tuple[float, ...], Field(description="of those that ended, the shortest first")] = ()
    unended: Annotated[tuple[float, ...], Field(description="how long those were seen that did not end")] = ()
    uninterrupted: Annotated[
        int, Field(description="runs without a time that is more than twice the longest without a success before")
    ] = 0
    interrupted_again: Annotated[
        int, Field(description="runs with more than one such time before mending began; the outage is the longest")
    ] = 0
    cut_short: Annotated[
        int, Field(description="runs in which the cluster became whole, but not before the driver ended")
    ] = 0
    figures: Annotated[tuple[FaultFigure, ...], Field(description="the responses of the fault, the outage first")] = ()
    resolution_s: Annotated[
        float | None, Field(description="the longest that a first success may have been possible before it was seen")
    ] = None
    coarse: Annotated[
        bool, Field(description="whether that is so much of some outage that its length is that of clients' waits")
    ] = False
    audited: Annotated[int, Field(description="runs whose rows were counted")] = 0
    acknowledged: Annotated[int, Field(description="rows, over these runs, as are those below")] = 0
    lost: int = 0
    phantom: int = 0
    duplicated: int = 0
    altered: int = 0
    foreign: int = 0
    timeouts: Annotated[int, Field(description="requests whose answer the client did not wait for any longer")] = 0
    broken: Annotated[int, Field(description="requests whose connection broke before their answer came")] = 0
    with_loss: Annotated[int, Field(description="runs that lost a row")] = 0
    loss_share_ci: Annotated[
        Interval | None, Field(description="of the share of faults that lose a row (Wilson), where some did")
    ] = None
    loss_bound: Annotated[
        float | None, Field(description="where none did: at the study's confidence at most this share does (exact)")
    ] = None
    nodes_apart: Annotated[int, Field(description="runs in which some node had other rows than clients found")] = 0
    confidence: float
    sentence: str

    def figure(self, response: str) -> FaultFigure | None:
        """None where no run says anything of it."""
        return next((each for each in self.figures if each.response == response), None)


class Findings(Frozen):
    """All that a results folder says."""

    format: int = FINDINGS_FORMAT
    study: str
    pilot: Annotated[bool, Field(description="a few blocks to plan by: no answer to the question")] = False
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
    overall: Annotated[
        tuple[OverallRatio, ...], Field(description="each level over the first, over many combinations together")
    ] = ()
    effects: Annotated[tuple[FactorEffect, ...], Field(description="of screening designs alone")] = ()
    failures: tuple[Failure, ...]
    choices: Annotated[
        tuple[Choice, ...], Field(description="of a staged study; its cells and comparisons are of stage two alone")
    ] = ()
    confounders: Annotated[
        tuple[Confounder, ...], Field(description="in what the compared levels differ besides, what weighs most first")
    ] = ()
    notes: Annotated[tuple[str, ...], Field(description="what a reader must know before believing the figures")] = ()
    variation: Annotated[
        tuple[Variation, ...], Field(description="of the deciding response, and of those asked for")
    ] = ()
    shapes: Annotated[tuple[Shape, ...], Field(description="one for each ordered factor and such response")] = ()
    decisions: Annotated[
        tuple[DecisionTable, ...],
        Field(description="which level of the compared factor is the best where, of the deciding response first"),
    ] = ()
    drift: Annotated[tuple[Drift, ...], Field(description="one for each such response")] = ()
    targets: Annotated[tuple[TargetResult, ...], Field(description="what was to be reached")] = ()
    published: Annotated[tuple[PublishedResult, ...], Field(description="published figures beside the results")] = ()
    observed: Annotated[
        tuple[ObservedResult, ...], Field(description="published figures of machines beside what was observed")
    ] = ()
    claims: Annotated[tuple[ClaimResult, ...], Field(description="published findings, held against the results")] = ()
    resources: Annotated[
        tuple[ResourceFigure, ...], Field(description="what each cell used for an operation, and shares")
    ] = ()
    resource_ratios: Annotated[
        tuple[ResourceRatio, ...], Field(description="the same, of each two cells that are compared")
    ] = ()
    resource_overall: Annotated[
        tuple[OverallRatio, ...],
        Field(description="the same, each level over the first, over many combinations together"),
    ] = ()
    resources_reason: Annotated[str, Field(description="why there are none; empty where there are some")] = ""
    laws: Annotated[Laws, Field(description="operational laws, where runs were observed")] = Laws()
    database: Annotated[
        tuple[DatabaseCell, ...], Field(description="what stores said of themselves, where they were asked")
    ] = ()
    verdicts: Annotated[
        tuple[BottleneckVerdict, ...], Field(description="what held each cell back, of those that were observed")
    ] = ()
    hot_spots: Annotated[tuple[HotSpots, ...], Field(description="of the cells whose call stacks were taken")] = ()
    interventions: Annotated[
        tuple[Probed, ...],
        Field(description="what slowing a resource on purpose says of each cell that it was done to"),
    ] = ()
    failovers: Annotated[
        tuple[Failover, ...], Field(description="what a fault cost, of each cell in which one was struck")
    ] = ()
    queries: Annotated[
        tuple[QueryFinding, ...],
        Field(description="of each query, which cells answered the same, and how others differ"),
    ] = ()
    batches: Annotated[
        tuple[BatchFinding, ...], Field(description="of queries asked at once, the best and the worst configuration")
    ] = ()
    removal: Annotated[
        tuple[Removal, ...], Field(description="where instructions go, of an engine whose components are removed")
    ] = ()
    switches: Annotated[
        tuple[Switches, ...], Field(description="what each step of other systems' own switches takes")
    ] = ()
