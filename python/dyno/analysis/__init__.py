"""Runs in, findings out. Pure: reads no file, draws nothing, and the same runs give the same findings."""

from __future__ import annotations

from dyno.analysis.findings import analyse
from dyno.analysis.folders import compare_folders

__all__ = ["analyse", "compare_folders"]
