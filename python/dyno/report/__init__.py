"""Findings as tables, figures and one page. Computes no statistic."""

from __future__ import annotations

from dyno.report.text import to_csv, to_json

__all__ = ["to_csv", "to_json"]
