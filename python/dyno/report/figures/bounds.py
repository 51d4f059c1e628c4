"""Throughput over clients under the two asymptotes of operational laws: what its demands allow at the most."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from dyno.model.findings import CellLaws, Curve, Findings, Shape, ShapePoint
from dyno.model.study import Study
from dyno.report.figures.shape import Layout
from dyno.report.figures.style import Figure, Palette, Row


def bounds(study: Study, findings: Findings, palette: Palette) -> Figure | None:
    """None where clients are no ordered factor, or fewer than two of its levels were observed."""
    curves = _curves(study, findings.laws.cells)
    if not curves:
        return None
    factor, of_within = curves
    places = [float(cell.levels[factor]) for cells in of_within.values() for cell in cells]
    shape = Shape(
        response="throughput",
        factor=factor,
        log_x=max(places) >= 8 * min(places),
        curves=tuple(
            Curve(
                within=dict(within),
                points=tuple(ShapePoint(cell=cell.cell, x=float(cell.levels[factor]), n=cell.n) for cell in cells),
                sentence="",
            )
            for within, cells in of_within.items()
        ),
    )
    layout = Layout(study, shape, palette)
    rows = [
        row
        for curve, cells in zip(shape.curves, of_within.values(), strict=True)
        for row in _rows(layout, curve, cells)
    ]
    y_title = "throughput (ops/s, log scale)"
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(type="log", nice=False, padding=12), axis=alt.Axis(format="~s"))
    base = alt.Chart().encode(x=layout.x(), color=layout.colour())
    means = base.transform_filter("datum.kind == 'measured'")
    layers = [
        base.transform_filter("datum.kind == 'demand'").mark_line(strokeWidth=1.5, strokeDash=[6, 4]).encode(y=y),
        base.transform_filter("datum.kind == 'clients'").mark_line(strokeWidth=1.5, strokeDash=[2, 3]).encode(y=y),
        means.mark_line(strokeWidth=2, opacity=0.75).encode(y=y),
        means.mark_rule(strokeWidth=2).encode(y=alt.Y("ci_low:Q", title=y_title), y2="ci_high:Q"),
        means.mark_point(size=55, filled=True, opacity=1).encode(y=y),
    ]
    below = (
        f"ops/s, higher is better. Mean of observed runs with its {findings.confidence * 100:.4g}% interval. Dashed: "
        "all servers of the resource with the largest demand busy. Dotted: so many clients, and nothing waits. Both by "
        "the demands measured at each level."
    )
    title = f"Throughput over {factor}, and what its demands allow"
    return layout.figure(layers, rows, "bounds", title, below, ["value", "ci_low", "ci_high", "n"])


def _curves(
    study: Study, cells: tuple[CellLaws, ...]
) -> tuple[str, dict[tuple[tuple[str, str], ...], list[CellLaws]]] | None:
    """The factor that is the number of clients, and for each combination of the others its cells in that order."""
    known = [cell for cell in cells if cell.clients is not None]
    factor = next(
        (
            each.name
            for each in study.factors
            if each.ordered and known and all(float(cell.levels[each.name]) == cell.clients for cell in known)
        ),
        None,
    )
    if factor is None:
        return None
    found: dict[tuple[tuple[str, str], ...], list[CellLaws]] = {}
    for cell in known:
        found.setdefault(tuple(item for item in cell.levels.items() if item[0] != factor), []).append(cell)
    several = {
        within: sorted(of, key=lambda cell: float(cell.levels[factor])) for within, of in found.items() if len(of) > 1
    }
    return (factor, several) if several else None


def _rows(layout: Layout, curve: Curve, cells: list[CellLaws]) -> Iterator[Row]:
    place = layout.place(curve.within)
    for point, cell in zip(curve.points, cells, strict=True):
        at = {**place, "x": point.x}
        low, high = cell.throughput_ci or (None, None)
        # The axis has no 0, which an interval may reach.
        low = None if low is None else max(low, cell.throughput / 2)
        yield {**at, "kind": "measured", "value": cell.throughput, "ci_low": low, "ci_high": high, "n": cell.n}
        if (by_demand := cell.demands[0].bound_ops_s) is not None:
            yield {**at, "kind": "demand", "value": by_demand}
        yield {**at, "kind": "clients", "value": point.x / cell.alone_s}
