"""Every cell as a bar with its interval, and its runs as rings, which the interval does not hide."""

from __future__ import annotations

import altair as alt

from dyno.model import responses
from dyno.model.findings import CellSummary, Findings
from dyno.model.study import Study
from dyno.report.figures.style import (
    INK,
    MOST_ROWS,
    WIDTH,
    Figure,
    Palette,
    Row,
    beside,
    capital,
    corner,
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

MOST_DOTS = 60  # a cell; more would be a smear


def bars(study: Study, findings: Findings, palette: Palette) -> Figure | None:
    """None where there is no ok run."""
    every = deciding_cells(findings)
    cells = [cell for cell in every if cell.mean is not None][:MOST_ROWS]
    if not cells:
        return None
    factors = varied(study)
    hue = next((factor for factor in factors if factor.name == study.compare), None)
    groups = [factor for factor in factors if factor is not hue]
    known = responses.lookup(findings.response)
    on_log = wide(cells)
    floor = _lowest(cells) if on_log else min(0.0, *(value for cell in cells for value in cell.values))
    rows: list[Row] = [
        {
            "group": pick(cell.levels, groups),
            "level": cell.levels[hue.name] if hue else "",
            "mean": cell.mean,
            "ci_low": cell.ci[0] if cell.ci else None,
            "ci_high": cell.ci[1] if cell.ci else None,
            "n": cell.n,
            **_drawn(cell, floor),
        }
        for cell in cells
    ]
    step = max(map(_thinning, cells))
    dots = [
        {"group": row["group"], "level": row["level"], "value": value}
        for row, cell in zip(rows, cells, strict=True)
        for value in cell.values[:: _thinning(cell)]
    ]
    named_groups = {pick(cell.levels, groups): cell.levels for cell in cells}
    names = list(named_groups)
    x_title = f"{known.title} ({known.unit})"
    labels, label_rows, tallest = beside(named_groups, "group", groups)
    y = alt.Y("group:N", sort=names, title=None, axis=None, scale=alt.Scale(paddingInner=0.25))
    base = alt.Chart(named("cells")).encode(y=y)
    points = alt.Chart(named("runs")).encode(y=y)
    if hue:
        levels = [level.name for level in hue.levels]
        offset = alt.YOffset("level:N", sort=levels)
        base, points = base.encode(yOffset=offset), points.encode(yOffset=offset)
        colour = alt.Color("level:N", title=hue.name, scale=palette.scale(hue), legend=legend(levels))
        filled = base.encode(color=colour)
        height = alt.Step(max(20, tallest / len(levels)))
    else:
        filled = base.encode(color=alt.value("#0072b2"))
        height = alt.Step(max(28, tallest))
    # A bar's length means nothing on a log scale, which has no 0 for it to begin at.
    means = (
        filled.mark_point(size=90, filled=True, opacity=0.9)
        if on_log
        else filled.mark_bar(opacity=0.55, cornerRadiusEnd=2)
    )
    scale = alt.Scale(type="log", domainMin=floor, clamp=True) if on_log else alt.Undefined
    chart = alt.layer(
        means.encode(
            x=alt.X(
                "mean:Q",
                title=x_title,
                scale=scale,
                axis=alt.Axis(tickCount=6, labelFlush=False, format=",.12~g" if on_log else ",f"),
            )
        ),
        base.mark_rule(strokeWidth=2, color=INK).encode(x=alt.X("from:Q", title=x_title), x2="ci_high:Q"),
        # An interval that goes on beyond the axis ends in an arrow, and the runs stay visible above it.
        base.transform_filter("datum.cut")
        .mark_point(shape="triangle-left", size=60, filled=True, opacity=1, color=INK)
        .encode(x="from:Q"),
        points.mark_point(size=26, color=INK, fill="white", strokeWidth=1, opacity=0.75).encode(x="value:Q"),
        *labels,
    )
    title = f"{capital(known.title)} of each cell, and each run"
    thinned = f"One in {step} runs is shown as a ring." if step > 1 else "Each ring is a run."
    lost = len(every) - len(cells)
    chart = chart.properties(
        width=WIDTH,
        height=height,
        title=heading(
            title,
            f"{known.unit}, {known.better} is better. Mean with its {findings.confidence * 100:.4g}% interval, "
            f"{runs_a_cell([cell.n for cell in cells])}. {'Log scale. ' if on_log else ''}{thinned}",
            f"Cells not shown: {lost} (no ok run, or beyond the first {MOST_ROWS})." if lost else "",
        ),
    )
    columns = ["group", "level", "mean", "ci_low", "ci_high", "n"]
    data = {"cells": rows, "runs": dots, "rows": label_rows, "corner": corner(groups)}
    return draw(chart.to_dict(), "bars", title, data, rows, columns)


def _drawn(cell: CellSummary, floor: float) -> Row:
    """Where the interval's line begins: no response is below 0, though Student's interval may be."""
    if cell.ci is None:
        return {"from": None, "cut": False}
    return {"from": max(cell.ci[0], floor), "cut": cell.ci[0] < floor}


def _thinning(cell: CellSummary) -> int:
    """Show every so manieth run."""
    return -(-cell.n // MOST_DOTS)


def _lowest(cells: list[CellSummary]) -> float:
    """Where a log axis begins: an interval may reach below 0, its axis cannot."""
    return 0.8 * min(value for cell in cells for value in cell.values)
