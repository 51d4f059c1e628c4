"""The cells as a map: one ordered factor across, the combinations of the others down."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from dyno.model import responses
from dyno.model.findings import CellSummary, Findings, format_quantity
from dyno.model.study import Factor, Study
from dyno.report.figures.measure import widths
from dyno.report.figures.style import (
    MOST_ROWS,
    ON_DARK,
    ON_LIGHT,
    SOFT,
    Figure,
    Row,
    above,
    beside,
    capital,
    combinations,
    corner,
    deciding_cells,
    draw,
    heading,
    named,
    pick,
    runs_a_cell,
    varied,
    wide,
)

BLUES = ("#e8f1fa", "#9cc4e4", "#3f8fc5", "#0a4f8a")  # light to dark, so it reads without colour as well
NO_RUN = "#b9bfc7"
STEP = 122  # px from column to column
GRADIENT = 220  # px, the length of the colours' legend
GAP = 12  # px between its labels


def heat_map(study: Study, findings: Findings) -> Figure | None:
    """Means with their half-widths; None where fewer than two factors are varied."""
    factors = varied(study)
    cells = deciding_cells(findings)
    if len(factors) < 2 or not any(cell.n for cell in cells):
        return None
    across = _across(factors, study.compare)
    down = [factor for factor in factors if factor is not across]
    of_rows = {pick(levels, down): levels for levels in combinations(study, down)[:MOST_ROWS]}
    row_names = list(of_rows)
    known = responses.lookup(findings.response)
    rows = [_row(cell, across, down, cells) for cell in cells if pick(cell.levels, down) in row_names]
    labels, label_rows, tallest = beside(of_rows, "down", down)
    levels = [level.name for level in across.levels]
    columns, column_rows, highest = above(levels, "across", STEP - 10)
    base = alt.Chart(named("cells")).encode(
        x=alt.X(
            "across:N",
            sort=levels,
            title=across.name,
            axis=alt.Axis(orient="top", labels=False, domain=False, ticks=False, titlePadding=highest + 14),
            scale=alt.Scale(paddingInner=0.02),
        ),
        y=alt.Y(
            "down:N",
            sort=row_names,
            title=None,
            axis=None,
            scale=alt.Scale(paddingInner=0.05),
        ),
    )
    means = [cell.mean for cell in cells if cell.mean is not None]
    shade = alt.Color(
        "mean:Q",
        title=f"{known.title} ({known.unit})",
        scale=alt.Scale(type="log" if wide(cells) else "linear", range=list(BLUES), zero=False, nice=False),
        legend=alt.Legend(
            orient="bottom",
            gradientLength=GRADIENT,
            gradientThickness=10,
            titleLimit=400,
            values=_round(means) if wide(cells) else alt.Undefined,
            tickCount=3,  # of thousands of operations, more would touch
        ),
    )
    measured = base.transform_filter("isValid(datum.mean)")
    layers = [
        *labels,
        columns,
        measured.mark_rect(cornerRadius=3).encode(color=shade),
        base.transform_filter("!isValid(datum.mean)").mark_rect(cornerRadius=3, color=NO_RUN, opacity=0.35),
    ]
    for ink in (ON_LIGHT, ON_DARK, SOFT):
        inked = base.transform_filter(f"datum.ink == '{ink}'")
        layers.append(inked.mark_text(dy=-7, fontSize=13, fontWeight=600, color=ink).encode(text="upper:N"))
        layers.append(inked.mark_text(dy=9, fontSize=11, color=ink).encode(text="lower:N"))
    title = f"{capital(known.title)} of each cell"
    cut = "" if len(row_names) < MOST_ROWS else f"The first {MOST_ROWS} rows."
    colour = "Colour on a log scale. " if wide(cells) else ""
    chart = alt.layer(*layers).properties(
        width=alt.Step(STEP),
        height=alt.Step(max(46, tallest + 6)),
        title=heading(
            title,
            f"{known.unit}, {known.better} is better. Mean ± half-width of its {findings.confidence * 100:.4g}% "
            f"interval, {runs_a_cell([cell.n for cell in cells])}. {colour}{cut}",
        ),
    )
    return draw(
        chart.to_dict(),
        "heat-map",
        title,
        {"cells": rows, "rows": label_rows, "columns": column_rows, "corner": corner(down)},
        rows,
        ["down", "across", "mean", "ci_low", "ci_high", "n"],
    )


def _across(factors: list[Factor], compare: str | None) -> Factor:
    """The ordered factor with the most levels; else the compared one, so that what is compared lies side by side."""
    ordered = [factor for factor in factors if factor.ordered and factor.name != compare]
    if ordered:
        return max(ordered, key=lambda factor: len(factor.levels))
    return next((factor for factor in factors if factor.name == compare), factors[-1])


def _row(cell: CellSummary, across: Factor, down: list[Factor], cells: list[CellSummary]) -> Row:
    row: Row = {
        "across": cell.levels[across.name],
        "down": pick(cell.levels, down),
        "mean": cell.mean,
        "n": cell.n,
        "ci_low": cell.ci[0] if cell.ci else None,
        "ci_high": cell.ci[1] if cell.ci else None,
    }
    if cell.mean is None:
        return {**row, "upper": "no ok run", "lower": _lost(cell), "ink": SOFT}
    means = [each.mean for each in cells if each.mean is not None]
    on_scale = math.log if wide(cells) else float
    low, high, here = on_scale(min(means)), on_scale(max(means)), on_scale(cell.mean)
    dark = high > low and (here - low) / (high - low) > 0.62
    half = f"± {format_quantity((cell.ci[1] - cell.ci[0]) / 2)}" if cell.ci else "no interval"
    ink = ON_DARK if dark else ON_LIGHT
    return {**row, "upper": format_quantity(cell.mean), "lower": f"{half}, n = {cell.n}", "ink": ink}


def _round(means: Sequence[float]) -> list[float]:
    """Labels of a log scale: powers of ten, then twice and five times these, as far as there is room for them."""
    low, high = min(means), max(means)
    tens = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    inside = [tick for times in (1, 2, 5) for ten in tens if low <= (tick := times * ten) <= high]
    wide_as = widths([(f"{tick:,.12g}", 12.0, "normal") for tick in inside])
    kept: list[tuple[float, float, float]] = []
    for tick, width in zip(inside, wide_as, strict=True):
        middle = GRADIENT * math.log(tick / low) / math.log(high / low)
        begin = min(max(middle - width / 2, 0.0), GRADIENT - width)
        if all(begin + width + GAP <= other or end + GAP <= begin for _, other, end in kept):
            kept.append((tick, begin, begin + width))
    return sorted(tick for tick, _, _ in kept)


def _lost(cell: CellSummary) -> str:
    counts = {"failed": cell.failed, "invalid": cell.invalid, "partial": cell.partial}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "not yet run"
