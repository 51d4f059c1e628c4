"""Over each ordered factor: speed-up, the fitted scalability law, and where the compared curves cross."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from dyno.model import responses
from dyno.model.findings import CellSummary, Curve, Findings, Shape
from dyno.model.study import Factor, Study
from dyno.report.figures.style import (
    HUES,
    SOFT,
    WIDTH,
    Figure,
    Palette,
    Row,
    capital,
    combinations,
    draw,
    heading,
    named,
    pick,
    varied,
)

MOST_FACETS = 12
COLUMNS = 2
POINTS = 40  # of a drawn law
RED = HUES[5]


def shapes(study: Study, findings: Findings, palette: Palette) -> list[Figure]:
    """Of the deciding response; none where no factor is ordered."""
    drawn = []
    for place, shape in enumerate(each for each in findings.shapes if each.response == findings.response):
        suffix = f"-{place + 1}" if place else ""
        drawn += [
            figure
            for figure in (
                _curves(study, findings, shape, palette, f"shape{suffix}"),
                _speedups(study, findings, shape, palette, f"speed-up{suffix}"),
            )
            if figure
        ]
    return drawn


class Layout:
    """Which factor has the colours, and which have a panel for each of their combinations."""

    def __init__(self, study: Study, shape: Shape, palette: Palette) -> None:
        others = [factor for factor in varied(study) if factor.name != shape.factor]
        self.series: Factor | None = min(others, key=lambda factor: factor.name != study.compare, default=None)
        self.rest = [factor for factor in others if factor is not self.series]
        self.facets = [pick(levels, self.rest) for levels in combinations(study, self.rest)][:MOST_FACETS]
        self._shape = shape
        self._palette = palette
        self._colour = palette.of(shape.factor, study.factor(shape.factor).levels[0].name)

    def place(self, within: dict[str, str]) -> Row:
        """In which panel and colour a curve is."""
        return {"facet": pick(within, self.rest), "series": within[self.series.name] if self.series else ""}

    def colour(self) -> Any:
        """Of a level of the other factor."""
        if self.series is None:
            return alt.value(self._colour)
        legend = alt.Legend(orient="top")
        return alt.Color("series:N", title=self.series.name, scale=self._palette.scale(self.series), legend=legend)

    def x(self, field: str = "x") -> alt.X:
        """The levels, by multiples where they grow that way."""
        ticks = sorted({point.x for curve in self._shape.curves for point in curve.points})
        low, high, margin = ticks[0], ticks[-1], 0.04
        scale = (
            alt.Scale(type="log", base=2, domain=[low * (low / high) ** margin, high * (high / low) ** margin])
            if self._shape.log_x
            else alt.Scale(domain=[low - margin * (high - low), high + margin * (high - low)], nice=False, zero=False)
        )
        axis = alt.Axis(values=ticks, grid=False, format=",.12~g")  # 1,800, not 2e+3
        return alt.X(f"{field}:Q", title=self._shape.factor, scale=scale, axis=axis)

    def figure(
        self, layers: list[alt.Chart], rows: list[Row], name: str, title: str, below: str, columns: list[str]
    ) -> Figure:
        """In panels where there are several."""
        rows = [row for row in rows if row["facet"] in self.facets]
        if len(self.facets) > 1:
            width = (WIDTH - 50) // COLUMNS
            whole: alt.FacetChart | alt.LayerChart = (
                alt.layer(*layers)
                .properties(width=width, height=220)
                .facet(facet=alt.Facet("facet:N", title=None, sort=self.facets), columns=COLUMNS, data=named("curves"))
                .properties(title=heading(title, below))
            )
        else:
            whole = alt.layer(*layers).properties(
                width=WIDTH, height=300, data=named("curves"), title=heading(title, below)
            )
        return draw(whole.to_dict(), name, title, {"curves": rows}, rows, ["facet", "series", "kind", "x", *columns])


def _curves(study: Study, findings: Findings, shape: Shape, palette: Palette, name: str) -> Figure | None:
    """The means with the law and the crossings; None where there are neither, since `lines` shows the means."""
    crossings = [each for each in shape.crossings if each.ci]
    laws = any(curve.law for curve in shape.curves)
    if not crossings and not laws:
        return None
    layout, known = Layout(study, shape, palette), responses.lookup(shape.response)
    cells = {cell.cell: cell for cell in findings.cells if cell.response == shape.response}
    rows = [row for curve in shape.curves for row in _of_curve(curve, cells, layout)]
    for each in crossings:
        assert each.ci is not None
        place = {"kind": "crossing", "series": None, "facet": pick(each.within, layout.rest)}
        rows.append({**place, "x": each.at, "ci_low": each.ci[0], "ci_high": each.ci[1]})
    y_title = f"{known.title} ({known.unit}, log scale)"
    x = layout.x()
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(type="log", nice=False, padding=12), axis=alt.Axis(format="~s"))
    base = alt.Chart().encode(x=x, color=layout.colour())
    means, crossed = base.transform_filter("datum.kind == 'mean'"), "datum.kind == 'crossing'"
    band = alt.Chart().transform_filter(crossed)
    layers = [
        band.mark_rect(color=RED, opacity=0.14).encode(x=layout.x("ci_low"), x2="ci_high:Q"),
        band.mark_rule(color=RED, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x),
        means.mark_line(strokeWidth=1.5, opacity=0.5).encode(y=y),
        base.transform_filter("datum.kind == 'law'").mark_line(strokeWidth=2, strokeDash=[6, 4]).encode(y=y),
        means.mark_rule(strokeWidth=2).encode(y=alt.Y("ci_low:Q", title=y_title), y2="ci_high:Q"),
        means.mark_point(size=55, filled=True, opacity=1).encode(y=y),
    ]
    title = f"{capital(known.title)} over {shape.factor}, and what follows from it"
    below = f"{known.unit}, {known.better} is better. Mean with its {findings.confidence * 100:.4g}% interval."
    if laws:
        below += " Dashed: the Universal Scalability Law fitted to it."
    if crossings:
        below += " Band: where the curves cross, with its interval."
    return layout.figure(layers, rows, name, title, below, ["value", "ci_low", "ci_high", "n"])


def _of_curve(curve: Curve, cells: dict[int, CellSummary], layout: Layout) -> Iterator[Row]:
    place = layout.place(curve.within)
    for point in curve.points:
        cell = cells[point.cell]
        # The axis has no 0, which an interval may reach.
        low, high = (max(cell.ci[0], 0.5 * min(cell.values)), cell.ci[1]) if cell.ci else (None, None)
        yield {**place, "kind": "mean", "x": point.x, "value": cell.mean, "ci_low": low, "ci_high": high, "n": cell.n}
    if curve.law:
        for x in _between(curve.points[0].x, curve.points[-1].x):
            yield {**place, "kind": "law", "x": x, "value": curve.law.at(x)}


def _between(low: float, high: float) -> list[float]:
    """Closer where the law bends: by equal factors."""
    return [low * (high / low) ** (place / (POINTS - 1)) for place in range(POINTS)]


def _speedups(study: Study, findings: Findings, shape: Shape, palette: Palette, name: str) -> Figure | None:
    """None where nothing speeds up."""
    layout, known = Layout(study, shape, palette), responses.lookup(shape.response)
    rows: list[Row] = []
    for curve in shape.curves:
        place, first = layout.place(curve.within), curve.points[0]
        for point in curve.points:
            if point.speedup is None or point.speedup_ci is None:
                continue
            ci = {"ci_low": point.speedup_ci[0], "ci_high": point.speedup_ci[1]}
            rows.append({**place, "kind": "speed-up", "x": point.x, "value": point.speedup, **ci, "n": point.n})
            if point.x == curve.saturation:
                rows.append({**place, "kind": "saturation", "x": point.x, "value": point.speedup})
            if point.efficiency is not None:
                rows.append({**place, "kind": "promise", "x": point.x, "value": point.x / first.x})
    if len(rows) < 2:
        return None
    scale = alt.Scale(type="log", nice=False, padding=12) if shape.log_x else alt.Scale(zero=False)
    y_title = f"{known.title}, times that of the first level"
    y = alt.Y("value:Q", title=y_title, scale=scale, axis=alt.Axis(format="~g"))
    base = alt.Chart().encode(x=layout.x())
    coloured = base.encode(color=layout.colour())
    found = coloured.transform_filter("datum.kind == 'speed-up'")
    layers = [
        base.transform_filter("datum.kind == 'promise'")
        .mark_line(color=SOFT, strokeDash=[4, 3], strokeWidth=1)
        .encode(y=y),
        found.mark_line(strokeWidth=2, opacity=0.75).encode(y=y),
        found.mark_rule(strokeWidth=2).encode(y=alt.Y("ci_low:Q", title=y_title), y2="ci_high:Q"),
        found.mark_point(size=45, filled=True, opacity=1).encode(y=y),
        coloured.transform_filter("datum.kind == 'saturation'")
        .mark_point(size=190, strokeWidth=2, opacity=1)
        .encode(y=y),
    ]
    title = f"Speed-up over {shape.factor}"
    below = f"Ratio to the first level with its {findings.confidence * 100:.4g}% interval."
    if any(row["kind"] == "promise" for row in rows):
        below += f" Dotted: as many times as {shape.factor}."
    if any(row["kind"] == "saturation" for row in rows):
        below += " Ring: from here on no level is shown to be higher."
    return layout.figure(layers, rows, name, title, below, ["value", "ci_low", "ci_high", "n"])
