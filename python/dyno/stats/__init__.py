"""Arrays in, figures out: descriptions, intervals and ratios. Imports nothing of ours and keeps no state.

`design` asks it when to stop and `analysis` asks it what to report, so both go by one rule.
"""

from __future__ import annotations

from dyno.stats.agreement import Agreement, kendall
from dyno.stats.describe import Description, describe
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
from dyno.stats.ratios import Ratio, paired_ratio, quotient_interval, ratio_is_precise, unpaired_ratio

__all__ = [
    "Agreement",
    "Description",
    "Means",
    "Ratio",
    "Ratios",
    "block_ratios",
    "cell_means",
    "describe",
    "kendall",
    "mean_interval",
    "mean_is_precise",
    "paired_ratio",
    "quotient_interval",
    "ratio_is_precise",
    "relative_half_width",
    "relative_widths",
    "t_quantiles",
    "unpaired_ratio",
    "widening_of_means",
    "widening_of_ratios",
]
