"""What each step of an engine's own switches leaves of a transaction."""

from __future__ import annotations

import altair as alt

from dyno.model.findings import Findings, Switches
from dyno.report.figures.style import HUES, WIDTH, Figure, Row, draw, heading, label, legend, named
from dyno.report.switches import figure_name

_STEP = 30  # px of a row
_HUES = {"left": HUES[0], "saved against the step before": HUES[1], "added to the step before": HUES[3]}


def switches(findings: Findings) -> list[Figure]:
    """A waterfall for each kind of transaction on each system."""
    return [_waterfall(found, figure_name(place, found)) for place, found in enumerate(findings.switches)]


def _waterfall(found: Switches, name: str) -> Figure:
    rows: list[Row] = []
    left, saved, added = _HUES
    before: float | None = None
    for step in found.steps:
        rows.append({"step": step.level, "from": 0, "to": step.instructions, "what": left})
        if before is not None and before != step.instructions:
            what = saved if before > step.instructions else added
            low, high = sorted((before, step.instructions))
            if what == added:
                rows[-1]["to"] = low
            rows.append({"step": step.level, "from": low, "to": high, "what": what})
        before = step.instructions
    kinds = {what: hue for what, hue in _HUES.items() if any(row["what"] == what for row in rows)}
    scale = alt.Scale(domain=list(kinds), range=list(kinds.values()))
    colour = alt.Color("what:N", title=None, scale=scale, legend=legend(list(kinds)))
    bars = alt.Chart(named("steps")).mark_bar(cornerRadiusEnd=2, opacity=0.85)
    y = alt.Y("step:N", sort=[step.level for step in found.steps], title=None, axis=alt.Axis(labelLimit=260))
    x = alt.X("from:Q", title="instructions of a transaction", axis=alt.Axis(format="~s"))
    chart = bars.encode(y=y, x=x, x2="to:Q", color=colour)
    of = f"{found.transaction} on {found.system}{f' ({label(found.within)})' if found.within else ''}"
    title = f"What each switch leaves of {of}"
    below = "Instructions in user mode of one transaction, means over runs. Each step keeps what those before it set."
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    return draw(spec, name, title, {"steps": rows}, rows, ["step", "what", "from", "to"])
