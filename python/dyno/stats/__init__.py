"""Arrays in, figures out: descriptions, intervals and ratios. Imports nothing of ours and keeps no state.

`design` asks it when to stop and `analysis` asks it what to report, so both go by one rule.
"""

from __future__ import annotations

from dyno.stats.agreement import Agreement, kendall
from dyno.stats.describe import Description, describe
from dyno.stats.effects import Effect, Effects, Lenth, lenth, two_level_effects
from dyno.stats.equivalence import Equivalence, equivalence_of, paired_equivalence, unpaired_equivalence
from dyno.stats.families import holm
from dyno.stats.looking import (
    Means,
    Ratios,
    block_ratios,
    cell_means,
    relative_widths,
    t_quantiles,
    widening_of_means,
    widening_of_ratios,
)
from dyno.stats.means import mean_interval, mean_is_precise, relative_half_width
from dyno.stats.power import (
    detectable_effect,
    paired_power,
    runs_for_effect,
    runs_for_mean_precision,
    runs_for_ratio_precision,
)
from dyno.stats.ranks import Normality, RankRatio, far_from_normal, normality, paired_ranks, unpaired_ranks
from dyno.stats.ratios import (
    LogShift,
    Ratio,
    bootstrap_ratio,
    fieller_ratio,
    paired_ratio,
    paired_shift,
    ratio_is_precise,
    unpaired_ratio,
    unpaired_shift,
)
from dyno.stats.variation import Variation, VariationRow, variation

__all__ = [
    "Agreement",
    "Description",
    "Effect",
    "Effects",
    "Equivalence",
    "Lenth",
    "LogShift",
    "Means",
    "Normality",
    "RankRatio",
    "Ratio",
    "Ratios",
    "Variation",
    "VariationRow",
    "block_ratios",
    "bootstrap_ratio",
    "cell_means",
    "describe",
    "detectable_effect",
    "equivalence_of",
    "far_from_normal",
    "fieller_ratio",
    "holm",
    "kendall",
    "lenth",
    "mean_interval",
    "mean_is_precise",
    "normality",
    "paired_equivalence",
    "paired_power",
    "paired_ranks",
    "paired_ratio",
    "paired_shift",
    "ratio_is_precise",
    "relative_half_width",
    "relative_widths",
    "runs_for_effect",
    "runs_for_mean_precision",
    "runs_for_ratio_precision",
    "t_quantiles",
    "two_level_effects",
    "unpaired_equivalence",
    "unpaired_ranks",
    "unpaired_ratio",
    "unpaired_shift",
    "variation",
    "widening_of_means",
    "widening_of_ratios",
]
