"""Arrays in, figures out: descriptions, intervals and ratios. Imports nothing of ours and keeps no state.

`design` asks it when to stop and `analysis` asks it what to report, so both go by one rule.
"""

from __future__ import annotations

from dyno.stats.agreement import Agreement, kendall
from dyno.stats.batches import BatchMeans, batch_means
from dyno.stats.best import Best, best_of
from dyno.stats.changes import ChangePoint, change_points
from dyno.stats.choice import Pick, Rival, pick_best
from dyno.stats.describe import Description, describe
from dyno.stats.doses import Onset, onset
from dyno.stats.drift import MARK, Autocorrelation, Outliers, Trend, autocorrelation, outliers, trend
from dyno.stats.effects import Effect, Effects, two_level_effects
from dyno.stats.equivalence import Equivalence, equivalence_of
from dyno.stats.failures import bound_of_none, median_interval
from dyno.stats.families import holm
from dyno.stats.looking import (
    Means,
    Ratios,
    block_ratios,
    cell_means,
    moderate,
    relative_widths,
    stands_out,
    t_quantiles,
    widening_of_means,
    widening_of_ratios,
)
from dyno.stats.means import mean_interval, relative_half_width
from dyno.stats.pooled import PooledMean, difference_of_pooled, pooled_mean
from dyno.stats.power import (
    detectable_effect,
    paired_power,
    runs_for_effect,
    runs_for_effects,
    runs_for_mean_precision,
    runs_for_ratio_precision,
)
from dyno.stats.queueing import (
    FEWEST_OF_FORECAST,
    Centre,
    LoadDependent,
    Solved,
    asymptotic_throughput,
    interpolated,
    least_response,
    mean_value_analysis,
    nearest,
    on_a_line,
    saturation_clients,
)
from dyno.stats.ranks import Normality, RankRatio, far_from_normal, normality, paired_ranks, unpaired_ranks
from dyno.stats.ratios import (
    LogShift,
    Ratio,
    fieller_ratio,
    next_shift,
    paired_ratio,
    paired_shift,
    quotient_interval,
    ratio_is_precise,
    unpaired_ratio,
    unpaired_shift,
)
from dyno.stats.shape import Crossing, Saturation, Speedup, crossings, saturation, speedup
from dyno.stats.shapley import Contribution, shapley
from dyno.stats.shares import share_interval
from dyno.stats.spread import half_normal_quantiles, largest_sd, sd_interval
from dyno.stats.steady import Phases, Segment, correlation_around_steps, phases
from dyno.stats.usl import Usl, fit_usl, usl_throughput
from dyno.stats.variation import Variation, VariationRow, variation

__all__ = [
    "FEWEST_OF_FORECAST",
    "MARK",
    "Agreement",
    "Autocorrelation",
    "BatchMeans",
    "Best",
    "Centre",
    "ChangePoint",
    "Contribution",
    "Crossing",
    "Description",
    "Effect",
    "Effects",
    "Equivalence",
    "LoadDependent",
    "LogShift",
    "Means",
    "Normality",
    "Onset",
    "Outliers",
    "Phases",
    "Pick",
    "PooledMean",
    "RankRatio",
    "Ratio",
    "Ratios",
    "Rival",
    "Saturation",
    "Segment",
    "Solved",
    "Speedup",
    "Trend",
    "Usl",
    "Variation",
    "VariationRow",
    "asymptotic_throughput",
    "autocorrelation",
    "batch_means",
    "best_of",
    "block_ratios",
    "bound_of_none",
    "cell_means",
    "change_points",
    "correlation_around_steps",
    "crossings",
    "describe",
    "detectable_effect",
    "difference_of_pooled",
    "equivalence_of",
    "far_from_normal",
    "fieller_ratio",
    "fit_usl",
    "half_normal_quantiles",
    "holm",
    "interpolated",
    "kendall",
    "largest_sd",
    "least_response",
    "mean_interval",
    "mean_value_analysis",
    "median_interval",
    "moderate",
    "nearest",
    "next_shift",
    "normality",
    "on_a_line",
    "onset",
    "outliers",
    "paired_power",
    "paired_ranks",
    "paired_ratio",
    "paired_shift",
    "phases",
    "pick_best",
    "pooled_mean",
    "quotient_interval",
    "ratio_is_precise",
    "relative_half_width",
    "relative_widths",
    "runs_for_effect",
    "runs_for_effects",
    "runs_for_mean_precision",
    "runs_for_ratio_precision",
    "saturation",
    "saturation_clients",
    "sd_interval",
    "shapley",
    "share_interval",
    "speedup",
    "stands_out",
    "t_quantiles",
    "trend",
    "two_level_effects",
    "unpaired_ranks",
    "unpaired_ratio",
    "unpaired_shift",
    "usl_throughput",
    "variation",
    "widening_of_means",
    "widening_of_ratios",
]
