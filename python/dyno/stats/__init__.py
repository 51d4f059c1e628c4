"""Arrays in, figures out: descriptions, intervals and ratios. Imports nothing of ours and keeps no state.

`design` asks it when to stop and `analysis` asks it what to report, so both go by one rule.
"""

from __future__ import annotations

from dyno.stats.batches import BatchMeans, batch_means
from dyno.stats.changes import ChangePoint, change_points
from dyno.stats.describe import Description, describe
from dyno.stats.drift import Autocorrelation, Outliers, Trend, autocorrelation, outliers, trend
from dyno.stats.means import mean_interval, mean_is_precise, relative_half_width
from dyno.stats.ratios import Ratio, paired_ratio, ratio_is_precise, unpaired_ratio
from dyno.stats.shape import Crossing, Saturation, Speedup, crossings, saturation, speedup
from dyno.stats.steady import Phases, Segment, phases
from dyno.stats.usl import Usl, fit_usl, usl_throughput

__all__ = [
    "Autocorrelation",
    "BatchMeans",
    "ChangePoint",
    "Crossing",
    "Description",
    "Outliers",
    "Phases",
    "Ratio",
    "Saturation",
    "Segment",
    "Speedup",
    "Trend",
    "Usl",
    "autocorrelation",
    "batch_means",
    "change_points",
    "crossings",
    "describe",
    "fit_usl",
    "mean_interval",
    "mean_is_precise",
    "outliers",
    "paired_ratio",
    "phases",
    "ratio_is_precise",
    "relative_half_width",
    "saturation",
    "speedup",
    "trend",
    "unpaired_ratio",
    "usl_throughput",
]
