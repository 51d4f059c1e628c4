"""Every figure, drawn once: the same SVG stands in the page and in the file beside it.

No estimate is drawn without its interval, units and n stand in the titles, and a level has one colour throughout.
"""

from __future__ import annotations

from dyno.report.figures.bars import bars
from dyno.report.figures.bounds import bounds
from dyno.report.figures.doses import doses
from dyno.report.figures.drift import drift
from dyno.report.figures.failover import around_faults, outages
from dyno.report.figures.forest import forest, overall
from dyno.report.figures.half_normal import half_normal
from dyno.report.figures.heat import heat_map
from dyno.report.figures.lines import lines
from dyno.report.figures.removal import removal
from dyno.report.figures.residuals import residuals
from dyno.report.figures.shape import shapes
from dyno.report.figures.style import Figure, Palette
from dyno.report.figures.switches import switches
from dyno.report.figures.timeline import timeline

__all__ = [
    "Figure",
    "Palette",
    "around_faults",
    "bars",
    "bounds",
    "doses",
    "drift",
    "forest",
    "half_normal",
    "heat_map",
    "lines",
    "outages",
    "overall",
    "removal",
    "residuals",
    "shapes",
    "switches",
    "timeline",
]
