"""Findings as tables, figures and one page. Computes no statistic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dyno.model.findings import Findings
from dyno.model.flames import DrawnFlame
from dyno.report.source import Source
from dyno.report.text import to_csv, to_json

__all__ = ["Source", "to_csv", "to_json", "write"]


def write(results: Source, findings: Findings, out_dir: Path, flames: Sequence[DrawnFlame] = ()) -> Path:
    """Write report.html and figures/*.{svg,png,csv} into `out_dir`, each file whole or not at all.

    `flames` are the flame graphs of its cells. Gives the path of report.html. Raises OSError.
    """
    from dyno.report import html  # the plotting library takes longer to load than most commands take to run

    return html.write(results, findings, out_dir, flames)
