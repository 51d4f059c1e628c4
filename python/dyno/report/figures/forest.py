"""Comparisons, single ones and those of many combinations together, as forest plots about the line at 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from dyno.model import responses
from dyno.model.findings import Comparison, Findings, OverallRatio, format_ratio
from dyno.model.study import Study
from dyno.report.figures.style import (
    INK,
    MOST_ROWS,
    SOFT,
    Figure,
    Palette,
    Row,
    banded,
    capital,
    draw,
    heading,
    label,
    named,
    upon,
)
from dyno.report.text import part_of

WIDTH = 400  # with the names above their rows, a phone shows nearly all of it
ROOM_OF_MARKS = 22  # px of a row below its name
WIDEST = math.log(1000)  # an interval of two runs can span more than any axis; there it is cut, not in its text
# Round ratios about 1, from the coarsest pair to the finest.
STEPS = (
    (0.001, 1000.0), (0.01, 100.0), (0.03, 30.0), (0.1, 10.0), (0.2, 5.0), (0.3, 3.0), (0.5, 2.0), (0.7, 1.5),
    (0.8, 1.2), (0.9, 1.1), (0.95, 1.05), (0.98, 1.02), (0.99, 1.01), (0.995, 1.005), (0.998, 1.002), (0.999, 1.001),
)  # fmt: skip
LABEL_ROOM = 0.11  # of the axis: labels closer than this would touch


def forest(study: Study, findings: Findings, palette: Palette) -> Figure | None:
    """The comparisons of the deciding response; None where none has an interval."""
    found = [each for each in findings.comparisons if each.response == findings.response and each.ci][:MOST_ROWS]
    if not found:
        return None
    title = f"Comparisons between levels of {found[0].factor}"
    return _drawn(study, findings, palette, "forest", title, [_row(each, _name(each)) for each in found])


def overall(study: Study, findings: Findings, palette: Palette) -> Figure | None:
    """The ratios over many combinations together of the deciding response; None of one, which needs no figure."""
    found = [each for each in findings.overall if each.response == findings.response][:MOST_ROWS]
    if len(found) < 2:
        return None
    title = f"{capital(found[0].factor)} over {found[0].a}, many combinations together"
    rows = [_row(each, f"{part_of(each)}: {each.b} / {each.a}") for each in found]
    return _drawn(study, findings, palette, "overall", title, rows)


def _drawn(study: Study, findings: Findings, palette: Palette, figure: str, title: str, rows: Sequence[Row]) -> Figure:
    known = responses.lookup(findings.response)
    assert study.compare is not None, "only of what is compared are there ratios"
    compared = study.factor(study.compare)
    names = list(dict.fromkeys(row["name"] for row in rows))
    labels, label_rows, row_height, middle = upon(names, "name", ROOM_OF_MARKS)
    low = min(0.0, *(row["low"] for row in rows))
    high = max(0.0, *(row["high"] for row in rows))
    margin = max(0.06 * (high - low), 1e-4)
    low, high = low - margin, high + margin
    x = alt.X(
        "at:Q",
        title=f"ratio of {known.title} (log scale)",
        scale=alt.Scale(type="log", domain=[math.exp(low), math.exp(high)], nice=False),
        axis=alt.Axis(values=_ticks(low, high), format="~g", domain=False),
    )
    base = alt.Chart(named("comparisons")).encode(y=banded(names, "name", middle))
    colour = alt.Color("b:N", scale=palette.scale(compared), legend=None)
    chart = alt.layer(
        alt.Chart(named("one")).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(x=x),
        *labels,
        base.mark_rule(strokeWidth=2.5).encode(x=alt.X("from:Q"), x2="to:Q", color=colour),
        *(_arrow(base, end, shape).encode(color=colour) for end, shape in _ARROWS.items()),
        base.mark_point(size=70, filled=True, opacity=1).encode(x=x, color=colour),
        base.mark_text(align="left", fontSize=12, color=INK).encode(x=alt.value(WIDTH + 14), text="text:N"),
    ).properties(
        width=WIDTH,
        height=alt.Step(row_height),
        title=heading(
            title,
            f"Ratio of {known.title} with its {findings.confidence * 100:.4g}% interval; {known.better} is better. "
            "An interval without 1 is a difference only if the text calls it one.",
        ),
    )
    columns = ["name", "a", "b", "ratio", "ci_low", "ci_high", "n"]
    data: dict[str, Sequence[Row]] = {"comparisons": rows, "rows": label_rows, "one": [{"at": 1}]}
    return draw(chart.to_dict(), figure, title, data, rows, columns)


_ARROWS = {"from": "triangle-left", "to": "triangle-right"}


def _arrow(base: alt.Chart, end: str, shape: str) -> alt.Chart:
    """Where an interval goes on beyond the axis."""
    marked = base.transform_filter(f"datum.cut_{end}").mark_point(shape=shape, size=90, filled=True, opacity=1)
    chart: alt.Chart = marked.encode(x=alt.X(f"{end}:Q"))
    return chart


def _name(found: Comparison) -> str:
    pair = f"{found.b} / {found.a}"
    return f"{label(found.within)}: {pair}" if found.within else pair


def _row(found: Comparison | OverallRatio, name: str) -> Row:
    assert found.ci is not None
    assert found.ratio is not None
    low, at, high = (_cut(value) for value in (found.ci[0], found.ratio, found.ci[1]))
    return {
        "name": name,
        "a": found.a,
        "b": found.b,
        "ratio": found.ratio,
        "ci_low": found.ci[0],
        "ci_high": found.ci[1],
        "n": found.n,
        "low": low,
        "high": high,
        "at": math.exp(at),
        "from": math.exp(low),
        "to": math.exp(high),
        "cut_from": found.ci[0] < math.exp(-WIDEST),
        "cut_to": found.ci[1] > math.exp(WIDEST),
        "text": f"{format_ratio(found.ratio, found.ci)}  n = {found.n}",
    }


def _cut(ratio: float) -> float:
    return max(-WIDEST, min(WIDEST, math.log(ratio) if ratio > 0 else -WIDEST))


def _ticks(low: float, high: float) -> list[float]:
    """1 and the round ratios about it, coarse before fine, as far as there is room for their labels."""
    kept = [1.0]
    for tick in (tick for pair in STEPS for tick in pair):
        inside = low <= math.log(tick) <= high
        if inside and all(abs(math.log(tick / other)) > LABEL_ROOM * (high - low) for other in kept):
            kept.append(tick)
    return sorted(kept)
