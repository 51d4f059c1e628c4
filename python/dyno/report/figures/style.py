"""What all figures share: colours, type, and the way to SVG, PNG and CSV."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any, Literal

import altair as alt
import vl_convert

from dyno.model.findings import CellSummary, Findings
from dyno.model.study import Factor, Study
from dyno.report.figures.measure import FONT, drawable, held, widths, wrapped

# The page restyles exactly these colours for its dark side (templates/report.css), so nothing else may use them.
INK, SOFT, GRID, WASH, PAPER = "#1c2229", "#5a6472", "#e3e7ed", "#f6f8fa", "#ffffff"
ON_LIGHT, ON_DARK = "#0a1a2b", "#fdfdfe"  # text upon a coloured ground, which stays as it is

# M. Okabe, K. Ito, Color universal design, 2008: told apart by all common kinds of colour vision. Yellow and black are
# left out, since they vanish on paper and on a dark screen.
HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")

WIDTH = 760  # of the plot itself, in px
MOST_ROWS = 120  # a figure longer than this is not looked at any more
PNG_SCALE = 2
ROOM_OF_NAMES = 360  # px, of the names of rows
LONG_NAMES = 220  # px, beyond which the names of rows are of levels alone
BETWEEN = " · "
LINE = 15  # px from one line of a name to the next

Row = dict[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A figure in all its forms. `name` is that of its files; `svg` is drawn on a white ground."""

    name: str
    title: str
    svg: str
    csv: str
    png_scale: float
    """Pixels of the PNG to one of the drawing, each way."""

    @cached_property
    def png(self) -> bytes:
        """Made when it is asked for, which a page by itself does not do: it takes longer than the drawing."""
        return _smaller(vl_convert.svg_to_png(self.svg, scale=self.png_scale))


class Palette:
    """One colour for each level of each factor, the compared factor's first."""

    def __init__(self, study: Study) -> None:
        ordered = sorted(study.factors, key=lambda factor: factor.name != study.compare)
        levels = [(factor.name, level.name) for factor in ordered for level in factor.levels]
        self._colours = {key: HUES[place % len(HUES)] for place, key in enumerate(levels)}

    def of(self, factor: str, level: str) -> str:
        """The colour of a level."""
        return self._colours[factor, level]

    def scale(self, factor: Factor, some: Sequence[str] | None = None) -> alt.Scale:
        """The scale that gives each level of a factor its colour; a legend shows `some` alone, where given."""
        names = [level.name for level in factor.levels] if some is None else list(some)
        return alt.Scale(domain=names, range=[self.of(factor.name, name) for name in names])


def varied(study: Study) -> list[Factor]:
    """The factors that have more than one level."""
    return [factor for factor in study.factors if len(factor.levels) > 1]


def combinations(study: Study, factors: Sequence[Factor]) -> list[dict[str, str]]:
    """Every combination of these factors' levels that a cell has, in their declared order; an empty one for none."""
    places = [{level.name: place for place, level in enumerate(factor.levels)} for factor in factors]
    names = {tuple(cell.levels[factor.name] for factor in factors) for cell in study.cells}
    ordered = sorted(names, key=lambda chosen: [of[name] for of, name in zip(places, chosen, strict=True)])
    return [dict(zip((factor.name for factor in factors), chosen, strict=True)) for chosen in ordered]


def label(levels: Mapping[str, str]) -> str:
    """`workload=a threads=4`."""
    return " ".join(f"{factor}={level}" for factor, level in levels.items())


def pick(levels: Mapping[str, str], factors: Sequence[Factor]) -> str:
    """The label of those factors alone."""
    return label({factor.name: levels[factor.name] for factor in factors})


def deciding_cells(findings: Findings) -> list[CellSummary]:
    """The cells' summaries of the response that decides."""
    return [cell for cell in findings.cells if cell.response == findings.response]


def wide(cells: Sequence[CellSummary]) -> bool:
    """Whether the means lie so far apart that one linear scale would press the small ones flat."""
    means = [cell.mean for cell in cells if cell.mean is not None]
    return bool(means) and min(means) > 0 and max(means) > 20 * min(means)


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


def named(name: str) -> alt.NamedData:
    """Data that `draw` is handed beside the chart: within it, the library would copy them at every step."""
    return alt.NamedData(name=name)


def beside(
    names: Mapping[str, Mapping[str, str]], field: str, factors: Sequence[Factor]
) -> tuple[list[alt.Chart], list[Row], int]:
    """The names of rows, left of the plot; their data, which `draw` takes as `rows`; the px that the tallest takes.

    `names` have the levels of `factors` that each is of. Where they are so long that a narrow screen would show nothing
    else, each is of the levels alone, and the factors stand above them once. One that is still long goes over several
    lines: an axis would cut it, and then two may read alike.
    """
    shorter = len(factors) > 1 and max(widths([(name, 12, "normal") for name in names]), default=0) > LONG_NAMES
    told = [
        BETWEEN.join(levels[factor.name] for factor in factors) if shorter else name for name, levels in names.items()
    ]
    # Moved up by half of what it is taller, a name is about the middle of its row.
    rows, tallest = _in_lines(list(names), field, ROOM_OF_NAMES, moved=0.5, told=told)
    y = alt.Y(f"{field}:N", sort=list(names), title=None, axis=None)
    layers = [_names("rows", "right").encode(x=alt.value(-8), y=y, text="lines:N")]
    if shorter:
        head = alt.Chart(named("corner")).mark_text(align="right", fontSize=12, color=SOFT)
        layers.append(head.encode(x=alt.value(-8), y=alt.value(-12), text="factors:N"))
    return layers, rows, tallest


def corner(factors: Sequence[Factor]) -> list[Row]:
    """The data of what stands above the names of rows, which `draw` takes as `corner`."""
    return [{"factors": BETWEEN.join(factor.name for factor in factors)}]


def above(names: Sequence[str], field: str, room: float) -> tuple[alt.Chart, list[Row], int]:
    """The same of columns, whose names stand on the plot's upper edge; `draw` takes their data as `columns`."""
    rows, tallest = _in_lines(names, field, room, moved=1)
    x = alt.X(f"{field}:N", sort=names)
    return _names("columns", "center").encode(x=x, y=alt.value(-12), text="lines:N"), rows, tallest


def upon(names: Sequence[str], field: str, room: float) -> tuple[list[alt.Chart], list[Row], float, float]:
    """The same of rows whose names stand above what they name, so that on a narrow screen the plot comes first.

    With them the height of a row, `room` px of it below its name, and where in it the middle of that room is.
    """
    rows, tallest = _in_lines(names, field, ROOM_OF_NAMES, moved=0)
    strip = tallest + 4
    height = strip + room
    first = banded(names, field, (2 + LINE / 2) / height)
    ground = alt.Chart(named("rows")).mark_bar(orient="horizontal", size=strip, yOffset=-room / 2, color=WASH)
    layers = [
        # Without a ground of their own, the lines of the axis would run through them.
        ground.encode(x=alt.value(0), x2=alt.value("width"), y=banded(names, field)),
        _names("rows", "left").encode(x=alt.value(6), y=first, text="lines:N"),
    ]
    return layers, rows, height, (strip + room / 2) / height


def banded(names: Sequence[str], field: str, at: float = 0.5) -> alt.Y:
    """Rows that touch, and where in them something is: 0 at their top, 1 at their bottom."""
    scale = alt.Scale(type="band", padding=0)
    return alt.Y(f"{field}:N", sort=names, title=None, axis=None, scale=scale, bandPosition=at)


def _names(data: str, align: Literal["left", "right", "center"]) -> alt.Chart:
    chart: alt.Chart = alt.Chart(named(data)).mark_text(
        align=align, fontSize=12, color=INK, lineBreak="\n", lineHeight=LINE, dy=alt.expr("datum.up")
    )
    return chart


def _in_lines(
    names: Sequence[str], field: str, room: float, moved: float, told: Sequence[str] | None = None
) -> tuple[list[Row], int]:
    lines = wrapped(names if told is None else told, room, 12)
    rows = [
        {field: name, "lines": "\n".join(each), "up": -LINE * (len(each) - 1) * moved}
        for name, each in zip(names, lines, strict=True)
    ]
    return rows, LINE * max(map(len, lines))


def legend(names: Sequence[str]) -> alt.Legend:
    """Above the plot: in a line where there is room for it, else one below the other."""
    room = sum(width + 40 for width in widths([(name, 12, "normal") for name in names]))
    return alt.Legend(orient="top", columns=0 if room <= WIDTH else 1, labelLimit=0)


def draw(
    spec: Spec,
    name: str,
    title: str,
    data: Mapping[str, Sequence[Row]],
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    png_scale: float = PNG_SCALE,
) -> Figure:
    """Render a Vega-Lite chart over `data`. `rows` and `columns` are for those who want to plot it anew."""
    whole = drawable({**spec, "$schema": alt.SCHEMA_URL, "datasets": dict(data), "config": _CONFIG})
    svg = held(_shorter(_own_ids(vl_convert.vegalite_to_svg(whole), name)))
    return Figure(name, title, svg, _csv(rows, columns), png_scale)


_PLACES = re.compile(r' d="[^"]+"|\btranslate\([^)]+\)')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")


def _shorter(svg: str) -> str:
    """Round the coordinates of paths and where marks stand to a tenth of a pixel: curves and rings fill a page."""
    return _PLACES.sub(lambda place: _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.1f}", place[0]), svg)


def _smaller(png: bytes) -> bytes:
    """Compress a PNG's pixels anew: the renderer is quick about it and leaves two to four times as much.

    Chunks are length, type, content, checksum (W3C, PNG specification, section 5.3).
    """
    kept, pixels, at = [png[:8]], b"", 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b"IDAT":
            pixels += content
        else:
            if kind == b"IEND":
                kept.append(_chunk(b"IDAT", zlib.compress(zlib.decompress(pixels), 6)))
            kept.append(_chunk(kind, content))
        at += 12 + length
    return b"".join(kept)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")


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
    "aria": False,  # a description of every mark would double the page; each figure is described as a whole
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
