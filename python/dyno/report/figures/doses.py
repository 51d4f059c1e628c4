"""Throughput over what interventions added to an operation, between what all and nothing of it would make it."""

from __future__ import annotations

import altair as alt

from dyno.model.findings import Findings
from dyno.report.figures.style import HUES, SOFT, WIDTH, Figure, Row, draw, heading, label, named, runs_a_cell

MOST_PANELS = 24
COLUMNS = 3
STEPS = 24  # of a drawn curve


def doses(findings: Findings) -> Figure | None:
    """None where no dose has a throughput to be shown."""
    shown = [
        each
        for each in findings.interventions
        if any(dose.ratio is not None and dose.added is not None for dose in each.doses)
    ]
    shown = shown[:MOST_PANELS]
    if not shown:
        return None
    rows: list[Row] = []
    bounds: list[Row] = []
    panels = []
    for each in shown:
        panel = f"{each.kind}{f' · {label(each.within)}' if each.within and len(shown) > 1 else ''}"
        panels.append(panel)
        at = [dose.added for dose in each.doses if dose.added is not None]
        low, high = min(at, default=0.0), max(at, default=0.0)
        for step in range(STEPS + 1):
            at_step = low + (high - low) * step / STEPS
            bounds.append({"panel": panel, "added": at_step, "full": 1 / (1 + at_step), "hidden": 1.0})
        for place, dose in enumerate(each.doses):
            if dose.added is None or (dose.ratio is None and place > 0):
                continue
            rows.append(
                {
                    "panel": panel,
                    "level": dose.level,
                    "added": dose.added,
                    "ratio": 1.0 if dose.ratio is None else dose.ratio,
                    "ci_low": dose.ci[0] if dose.ci else None,
                    "ci_high": dose.ci[1] if dose.ci else None,
                    "n": dose.n,
                }
            )
    x = alt.X("added:Q", title="added to an operation's time", axis=alt.Axis(format="%", tickCount=4, grid=False))
    title_of_y = "throughput relative to dose 0"
    y = alt.Scale(zero=False)
    curve = alt.Chart(named("bounds")).mark_line(color=SOFT, strokeDash=[4, 3], strokeWidth=1)
    dots = alt.Chart(named("doses"))
    layers = alt.layer(
        curve.encode(x=x, y=alt.Y("full:Q", title=title_of_y, scale=y)),
        curve.encode(x=x, y=alt.Y("hidden:Q", title=title_of_y, scale=y)),
        dots.mark_rule(strokeWidth=2, color=HUES[0]).encode(x=x, y=alt.Y("ci_low:Q", title=title_of_y), y2="ci_high:Q"),
        dots.mark_point(size=60, filled=True, opacity=1, color=HUES[0]).encode(
            x=x, y=alt.Y("ratio:Q", title=title_of_y)
        ),
    )
    title = "Throughput over what interventions added"
    titles = heading(
        title,
        f"Ratio to dose 0 within blocks with its {findings.confidence * 100:.4g}% interval, "
        f"{runs_a_cell([row['n'] for row in rows])}. Dashed: nothing of what is added is felt, and each operation "
        "waits for all of it. Each panel has scales of its own.",
    )
    columns = min(COLUMNS, len(panels))
    data = {"doses": rows, "bounds": bounds}
    if len(panels) == 1:
        chart: alt.FacetChart | alt.LayerChart | alt.ConcatChart = layers.properties(
            width=WIDTH, height=280, title=titles
        )
    else:
        # A facet takes one set of data, so that the panels are charts of their own, side by side.
        made = [
            layers.transform_filter(alt.FieldEqualPredicate(field="panel", equal=panel)).properties(
                width=(WIDTH - 90 * (columns - 1)) // columns,
                height=190,
                title=alt.TitleParams(text=panel, fontSize=12, fontWeight="normal"),
            )
            for panel in panels
        ]
        chart = alt.concat(*made, columns=columns, title=titles)
    columns_of_csv = ["panel", "level", "added", "ratio", "ci_low", "ci_high", "n"]
    return draw(chart.to_dict(), "interventions", title, data, rows, columns_of_csv)
