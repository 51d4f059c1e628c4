"""Whether an analysis of variance may be believed: what it misses, over what it says and over what noise would give."""

from __future__ import annotations

import altair as alt

from dyno.model import responses
from dyno.model.findings import Findings
from dyno.report.figures.style import HUES, SOFT, WIDTH, Figure, Row, draw, heading, named

MOST_DOTS = 300  # a panel; more would be a smear


def residuals(findings: Findings) -> Figure | None:
    """Residuals over fitted values, and over normal quantiles; None where nothing was explained."""
    found = next((each for each in findings.variation if each.response == findings.response and each.runs), None)
    if found is None or not any(found.residuals):
        return None
    known = responses.lookup(found.response)
    rows: list[Row] = [
        {"run": run, "fitted": round(fitted, 5), "residual": round(residual, 5), "score": round(score, 5)}
        for run, fitted, residual, score in zip(found.runs, found.fitted, found.residuals, found.scores, strict=True)
    ]
    step = -(-len(rows) // MOST_DOTS)
    shown = rows[::step]
    ends = [{"at": min(found.scores)}, {"at": max(found.scores)}]
    y = alt.Y("residual:Q", title="residual (ln)", axis=alt.Axis(tickCount=6))
    dots = alt.Chart(named("residuals")).mark_point(size=22, filled=True, opacity=0.55, color=HUES[0])
    none = alt.Chart(named("zero")).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(y=alt.Y("at:Q"))
    few = alt.Axis(tickCount=6, labelFlush=False)
    width = (WIDTH - 70) // 2
    over_fitted = alt.layer(
        none,
        dots.encode(
            x=alt.X("fitted:Q", title=f"fitted {known.title} (ln {known.unit})", scale=alt.Scale(zero=False), axis=few),
            y=y,
        ),
    ).properties(width=width, height=230)
    normal = alt.Chart(named("ends")).mark_line(color=SOFT, strokeDash=[4, 3], strokeWidth=1)
    over_normal = alt.layer(
        normal.encode(x=alt.X("at:Q"), y=alt.Y("at:Q")),
        dots.encode(
            x=alt.X("score:Q", title="what normal noise would give (ln)", scale=alt.Scale(zero=False), axis=few), y=y
        ),
    ).properties(width=width, height=230)
    title = "What the factors leave unexplained"
    verdict = (
        "They are far from normal: p is not to be trusted."
        if found.far_from_normal
        else "Dots beside the line on the right would mean noise that is not normal."
    )
    thinned = f"One in {step} runs is shown." if step > 1 else "Each dot is a run."
    chart = alt.hconcat(over_fitted, over_normal, spacing=30).properties(
        title=heading(
            title,
            f"Residuals on the log scale, 0.05 is about 5%. A funnel on the left would mean that noise grows with "
            f"{known.title}. {verdict} {thinned}",
        ),
    )
    data: dict[str, list[Row]] = {"residuals": shown, "zero": [{"at": 0}], "ends": ends}
    return draw(chart.to_dict(), "residuals", title, data, shown, ["run", "fitted", "residual", "score"])
