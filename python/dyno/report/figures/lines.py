"""The response over an ordered factor: a line for each level of another, small multiples for the rest."""

from __future__ import annotations

import altair as alt

from dyno.model import responses
from dyno.model.findings import Findings
from dyno.model.study import Factor, Study
from dyno.report.figures.style import (
    WIDTH,
    Figure,
    Palette,
    Row,
    capital,
    combinations,
    deciding_cells,
    draw,
    heading,
    legend,
    named,
    pick,
    runs_a_cell,
    varied,
    wide,
)

MOST_FACETS = 24
COLUMNS = 3
DODGE = 0.015  # of the axis, between the marks of two lines at one level


def lines(study: Study, findings: Findings, palette: Palette) -> Figure | None:
    """Means with intervals; None where no factor is ordered."""
    factors = varied(study)
    over = _over(factors, study.compare)
    cells = [cell for cell in deciding_cells(findings) if cell.mean is not None]
    if over is None or not cells:
        return None
    series = _series(factors, over, study.compare)
    rest = [factor for factor in factors if factor is not over and factor is not series]
    facets = [pick(levels, rest) for levels in combinations(study, rest)][:MOST_FACETS]
    known = responses.lookup(findings.response)
    ticks = [float(level.name) for level in over.levels]
    names = [level.name for level in series.levels] if series else []
    rows: list[Row] = [
        {
            "x": float(cell.levels[over.name]),
            "at": _dodged(float(cell.levels[over.name]), ticks, names.index(cell.levels[series.name]), len(names))
            if series
            else float(cell.levels[over.name]),
            "series": cell.levels[series.name] if series else "",
            "facet": pick(cell.levels, rest),
            "mean": cell.mean,
            "ci_low": cell.ci[0] if cell.ci else None,
            "ci_high": cell.ci[1] if cell.ci else None,
            "n": cell.n,
            "sure": bool(cell.ci),
        }
        for cell in cells
        if pick(cell.levels, rest) in facets
    ]
    x = alt.X("at:Q", title=over.name, scale=_scale(ticks), axis=alt.Axis(values=ticks, grid=False, format="~g"))
    y_title = f"{known.title} ({known.unit})"
    base = alt.Chart().encode(x=x)
    if series:
        both = legend(names)  # the renderer joins legends that are alike
        colour = alt.Color("series:N", title=series.name, scale=palette.scale(series), legend=both)
        shape = alt.Shape("series:N", title=series.name, scale=alt.Scale(domain=names), legend=both)
        base = base.encode(color=colour)
        marks = base.encode(shape=shape)
    else:
        base = base.encode(color=alt.value(palette.of(over.name, over.levels[0].name)))
        marks = base
    y = alt.Y("mean:Q", title=y_title, scale=alt.Scale(zero=True))
    layers = alt.layer(
        base.mark_line(strokeWidth=2, opacity=0.75).encode(y=y),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("ci_low:Q", title=y_title), y2="ci_high:Q"),
        marks.mark_point(size=60, filled=True).encode(
            y=y, opacity=alt.condition("datum.sure", alt.value(1), alt.value(0.35))
        ),
    )
    title = f"{capital(known.title)} over {over.name}"
    unsure = "" if all(row["sure"] for row in rows) else "A pale mark is a single run, which has no interval."
    own_scales = len(facets) > 1 and wide(cells)
    scales = "Each panel has a scale of its own." if own_scales else ""
    titles = heading(
        title,
        f"{known.unit}, {known.better} is better. Mean with its {findings.confidence * 100:.4g}% interval, "
        f"{runs_a_cell([cell.n for cell in cells])}. {scales} {unsure}",
    )
    data = named("cells")
    if len(facets) > 1:
        columns = min(COLUMNS, len(facets))
        chart: alt.FacetChart | alt.LayerChart = (
            layers.properties(width=(WIDTH - (90 if own_scales else 40) * (columns - 1)) // columns, height=190)
            .facet(facet=alt.Facet("facet:N", title=None, sort=facets), columns=columns, data=data)
            .properties(title=titles)
            .resolve_scale(y="independent" if own_scales else "shared")
        )
    else:
        chart = layers.properties(width=WIDTH, height=280, data=data, title=titles)
    return draw(
        chart.to_dict(),
        "lines",
        title,
        {"cells": rows},
        rows,
        ["facet", "series", "x", "mean", "ci_low", "ci_high", "n"],
    )


def _over(factors: list[Factor], compare: str | None) -> Factor | None:
    ordered = [factor for factor in factors if factor.ordered]
    return max(ordered, key=lambda factor: (factor.name != compare, len(factor.levels)), default=None)


def _series(factors: list[Factor], over: Factor, compare: str | None) -> Factor | None:
    others = sorted((factor for factor in factors if factor is not over), key=lambda factor: factor.name != compare)
    return others[0] if others else None


def _dodged(x: float, ticks: list[float], place: int, of: int) -> float:
    """Where one of several lines has its mark: beside the others, so that no interval hides another."""
    low, high = min(ticks), max(ticks)
    aside = DODGE * (place - (of - 1) / 2)
    if _by_doublings(ticks):
        return float(x * (high / low) ** aside)
    return x + aside * (high - low)


def _by_doublings(ticks: list[float]) -> bool:
    return min(ticks) > 0 and max(ticks) / min(ticks) >= 8


def _scale(ticks: list[float]) -> alt.Scale:
    """By doublings where the levels grow that way; where they are spread more evenly, as plain numbers."""
    low, high = min(ticks), max(ticks)
    margin = 0.06
    if _by_doublings(ticks):
        return alt.Scale(type="log", base=2, domain=[low * (low / high) ** margin, high * (high / low) ** margin])
    return alt.Scale(domain=[low - margin * (high - low), high + margin * (high - low)], nice=False, zero=False)
