"""Arrays in, figures out: descriptions, intervals and ratios. Imports nothing of ours and keeps no state.

`design` asks it when to stop and `analysis` asks it what to report, so both go by one rule.
"""

from __future__ import annotations

from dyno.stats.describe import Description, describe
from dyno.stats.effects import Effect, Effects, Lenth, lenth, two_level_effects
from dyno.stats.looking import (
    Means,
    Ratios,
    block_ratios,
    cell_means,
    moderate,
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
from dyno.stats.ratios import Ratio, paired_ratio, ratio_is_precise, unpaired_ratio
from dyno.stats.spread import half_normal_quantiles, largest_sd, sd_interval
from dyno.stats.variation import Variation, VariationRow, variation

__all__ = [
    "Description",
    "Effect",
    "Effects",
    "Lenth",
    "Means",
    "Ratio",
    "Ratios",
    "Variation",
    "VariationRow",
    "block_ratios",
    "cell_means",
    "describe",
    "detectable_effect",
    "half_normal_quantiles",
    "largest_sd",
    "lenth",
    "mean_interval",
    "mean_is_precise",
    "moderate",
    "paired_power",
    "paired_ratio",
    "ratio_is_precise",
    "relative_half_width",
    "relative_widths",
    "runs_for_effect",
    "runs_for_mean_precision",
    "runs_for_ratio_precision",
    "sd_interval",
    "t_quantiles",
    "two_level_effects",
    "unpaired_ratio",
    "variation",
    "widening_of_means",
    "widening_of_ratios",
]
