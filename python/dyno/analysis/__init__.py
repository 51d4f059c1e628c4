"""Runs in, findings out. Pure: reads no file, draws nothing, and the same runs give the same findings."""

from __future__ import annotations

from dyno.analysis.findings import analyse
from dyno.analysis.folders import agreement, compare_folders
from dyno.analysis.forecasting import forecast as forecast_throughput
from dyno.analysis.gate import Session, cannot_tell, gate_blocks, gate_sessions, refuse_unlike
from dyno.analysis.hot_spots import flames_of
from dyno.analysis.instructions import instructions
from dyno.analysis.timing import timing
from dyno.analysis.unmeasured import why_unmeasured
from dyno.analysis.usage import usages

__all__ = [
    "Session",
    "agreement",
    "analyse",
    "cannot_tell",
    "compare_folders",
    "flames_of",
    "forecast_throughput",
    "gate_blocks",
    "gate_sessions",
    "instructions",
    "refuse_unlike",
    "timing",
    "usages",
    "why_unmeasured",
]
