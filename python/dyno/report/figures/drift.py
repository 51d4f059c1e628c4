"""Every run over the order of execution, relative to its cell: what the machine did to all of them."""

from __future__ import annotations

from itertools import pairwise

import altair as alt

from dyno.model import responses
from dyno.model.findings import Drift, Findings
from dyno.report.figures.style import HUES, INK, SOFT, WIDTH, Figure, Row, capital, draw, heading, named

MOST_DOTS = 500  # more would be a smear
MOST_LABELS = 20
BLUE, ORANGE, RED = HUES[0], HUES[1], HUES[5]


def drift(findings: Findings) -> Figure | None:
    """Runs with changes marked and outliers ringed; None where drift was not looked for."""
    found = next((each for each in findings.drift if each.response == findings.response and each.runs), None)
    if found is None:
        return None
    known = responses.lookup(found.response)
    far = {each.run for each in found.outliers}
    rows: list[Row] = [
        {"run": run, "relative": round(relative, 5), "outlier": run in far}
        for run, relative in zip(found.runs, found.relative, strict=True)
    ]
    step = -(-len(rows) // MOST_DOTS)
    for place, row in enumerate(row for row in rows if row["outlier"]):
        row["side"] = 1 if place % 2 else -1  # of the label: outliers next to each other would cover each other's
    shown = [row for place, row in enumerate(rows) if place % step == 0 or row["outlier"]]
    x = alt.X(
        "run:Q",
        title="run, in order of execution",
        scale=alt.Scale(domain=[found.runs[0], found.runs[-1]], nice=False, padding=12),
        axis=alt.Axis(grid=False, format=",d", tickMinStep=1),
    )
    title_y = "relative to its cell (log scale)"
    y = alt.Y(
        "relative:Q", title=title_y, scale=alt.Scale(type="log", nice=False, padding=14), axis=alt.Axis(format="~g")
    )
    base = alt.Chart(named("runs")).encode(x=x, y=y)
    ringed = base.transform_filter("datum.outlier")
    levels = alt.Chart(named("levels")).encode(x=x, x2="until:Q", y=alt.Y("level:Q", title=title_y))
    chart = alt.layer(
        alt.Chart(named("one")).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(y=alt.Y("at:Q", title=title_y)),
        base.mark_point(size=20, filled=True, opacity=0.6, color=BLUE),
        alt.Chart(named("changes")).mark_rule(color=ORANGE, strokeWidth=1.5, strokeDash=[2, 2]).encode(x=x),
        levels.mark_rule(color=ORANGE, strokeWidth=3),
        ringed.mark_point(size=130, color=RED, strokeWidth=2, opacity=1),
        *(
            ringed.transform_filter(f"datum.side == {side if len(far) <= MOST_LABELS else 0}")
            .mark_text(dy=18 * side, fontSize=11, color=INK)
            .encode(text="run:Q")
            for side in (-1, 1)
        ),
    )
    title = "Each run over the order of execution"
    thinned = f"One in {step} runs is shown, and all outliers." if step > 1 else "Each dot is a run."
    marks = " ".join(
        (
            "Thick lines are the medians between changes." if found.changes else "",
            f"Rings are outliers{', with their run' if len(far) <= MOST_LABELS else ''}." if far else "",
        )
    )
    chart = chart.properties(
        width=WIDTH,
        height=280,
        title=heading(
            title, f"{capital(known.title)} of each run, relative to the median of its cell. {thinned} {marks}"
        ),
    )
    data: dict[str, list[Row]] = {
        "runs": shown,
        "one": [{"at": 1}],
        "changes": [{"run": each.run} for each in found.changes],
        "levels": _levels(found),
    }
    return draw(chart.to_dict(), "drift", title, data, shown, ["run", "relative", "outlier"])


def _levels(found: Drift) -> list[Row]:
    if not found.changes:
        return []
    bounds = [found.runs[0], *(each.run for each in found.changes), found.runs[-1]]
    medians = [found.changes[0].before, *(each.after for each in found.changes)]
    return [{"run": a, "until": b, "level": median} for (a, b), median in zip(pairwise(bounds), medians, strict=True)]
