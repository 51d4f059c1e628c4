"""What all figures share: colours, type, and the way to SVG, PNG and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from textwrap import wrap
from typing import Any

import altair as alt
import vl_convert

from dyno.model.findings import CellSummary, Findings
from dyno.model.study import Factor, Study

# The page restyles exactly these colours for its dark side (templates/report.css), so nothing else may use them.
INK, SOFT, GRID, PAPER = "#1c2229", "#5a6472", "#e3e7ed", "#ffffff"
ON_LIGHT, ON_DARK = "#0a1a2b", "#fdfdfe"  # text upon a coloured ground, which stays as it is

# M. Okabe, K. Ito, Color universal design, 2008: told apart by all common kinds of colour vision. Yellow and black are
# left out, since they vanish on paper and on a dark screen.
HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")

# Bundled with the renderer, so text is measured alike on every machine; the others have the same widths.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

WIDTH = 620  # of the plot itself, in px
MOST_ROWS = 120  # a figure longer than this is not looked at any more
PNG_SCALE = 2

Row = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A figure in all its forms. `name` is that of its files; `svg` is drawn on a white ground."""

    name: str
    title: str
    svg: str
    png: bytes
    csv: str


class Palette:
    """One colour for each level of each factor, the compared factor's first."""

    def __init__(self, study: Study) -> None:
        ordered = sorted(study.factors, key=lambda factor: factor.name != study.compare)
        levels = [(factor.name, level.name) for factor in ordered for level in factor.levels]
        self._colours = {key: HUES[place % len(HUES)] for place, key in enumerate(levels)}

    def of(self, factor: str, level: str) -> str:
        """The colour of a level."""
        return self._colours[factor, level]

    def scale(self, factor: Factor) -> alt.Scale:
        """The scale that gives each level of a factor its colour."""
        names = [level.name for level in factor.levels]
        return alt.Scale(domain=names, range=[self.of(factor.name, name) for name in names])


def varied(study: Study) -> list[Factor]:
    """The factors that have more than one level."""
    return [factor for factor in study.factors if len(factor.levels) > 1]


def combinations(factors: Sequence[Factor]) -> list[dict[str, str]]:
    """Every combination of the factors' levels, in their declared order; one empty one for no factor."""
    names = [[level.name for level in factor.levels] for factor in factors]
    return [dict(zip((factor.name for factor in factors), chosen, strict=True)) for chosen in product(*names)]


def label(levels: Mapping[str, str]) -> str:
    """`workload=a threads=4`."""
    return " ".join(f"{factor}={level}" for factor, level in levels.items())


def pick(levels: Mapping[str, str], factors: Sequence[Factor]) -> str:
    """The label of those factors alone."""
    return label({factor.name: levels[factor.name] for factor in factors})


def deciding_cells(findings: Findings) -> list[CellSummary]:
    """The cells' summaries of the response that decides."""
    return [cell for cell in findings.cells if cell.response == findings.response]


def runs_a_cell(counts: Sequence[int]) -> str:
    """`n = 5 to 6 runs a cell`."""
    low, high = min(counts, default=0), max(counts, default=0)
    return f"n = {low} runs a cell" if low == high else f"n = {low} to {high} runs a cell"


def capital(text: str) -> str:
    """With a capital in front, and the others left as they are (CPU)."""
    return text[:1].upper() + text[1:]


def heading(title: str, *subtitles: str) -> alt.TitleParams:
    """A title with its lines below; what is empty is left out, what is long is wrapped."""
    below = [line for text in subtitles if text for line in wrap(text, 105)]
    return alt.TitleParams(text=wrap(title, 80), subtitle=below)


def draw(chart: Any, name: str, title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Figure:
    """Render a chart. `rows` and `columns` are the data for those who want to plot them anew."""
    svg = _own_ids(vl_convert.vegalite_to_svg({**chart.to_dict(), "config": _CONFIG}), name)
    return Figure(name, title, svg, vl_convert.svg_to_png(svg, scale=PNG_SCALE), _csv(rows, columns))


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.get(column) for column in columns] for row in rows)
    return text.getvalue()


_ID = re.compile(r'\bid="([^"]+)"')


def _own_ids(svg: str, name: str) -> str:
    """Give the ids (of clip paths and gradients) the figure's name.

    The renderer counts them over the life of the process, so they would differ from call to call and clash in a page.
    """
    for place, old in enumerate(dict.fromkeys(_ID.findall(svg))):
        new = f"{name}-{place}"
        svg = svg.replace(f'id="{old}"', f'id="{new}"').replace(f"url(#{old})", f"url(#{new})")
        svg = svg.replace(f'href="#{old}"', f'href="#{new}"')
    return svg


_CONFIG: dict[str, Any] = {
    "background": PAPER,
    "font": FONT,
    "padding": 6,
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "frame": "bounds",
        "fontSize": 15,
        "fontWeight": 600,
        "color": INK,
        "subtitleColor": SOFT,
        "subtitleFontSize": 12,
        "subtitlePadding": 5,
        "subtitleLineHeight": 16,
        "offset": 16,
    },
    "axis": {
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 300,
        "titleColor": SOFT,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 240,
        "titleColor": SOFT,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titleLimit": 240,
    },
    "header": {"labelColor": INK, "labelFontSize": 12, "titleColor": SOFT, "labelLimit": 300},
}
