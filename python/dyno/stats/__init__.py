"""Arrays in, figures out: descriptions, intervals and ratios. Imports nothing of ours and keeps no state.

`design` asks it when to stop and `analysis` asks it what to report, so both go by one rule.
"""

from __future__ import annotations

from dyno.stats.batches import Ratios, holm_rows, paired_ratios
from dyno.stats.describe import Description, describe
from dyno.stats.equivalence import Equivalence, paired_equivalence, unpaired_equivalence
from dyno.stats.families import holm
from dyno.stats.means import mean_interval, mean_is_precise, relative_half_width
from dyno.stats.ratios import (
    Ratio,
    bootstrap_ratio,
    fieller_ratio,
    paired_ratio,
    ratio_is_precise,
    unpaired_ratio,
)

__all__ = [
    "Description",
    "Equivalence",
    "Ratio",
    "Ratios",
    "bootstrap_ratio",
    "describe",
    "fieller_ratio",
    "holm",
    "holm_rows",
    "mean_interval",
    "mean_is_precise",
    "paired_equivalence",
    "paired_ratio",
    "paired_ratios",
    "ratio_is_precise",
    "relative_half_width",
    "unpaired_equivalence",
    "unpaired_ratio",
]
