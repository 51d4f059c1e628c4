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
    draw,
    heading,
    label,
    named,
    upon,
)

WIDTH = 400  # with the names above their rows, a phone shows nearly all of it
MOST_ALONE = 24  # comparisons with a row of their own; of more, those of a combination share one
ROOM_OF_LINE = 17  # px of each of several lines in a row
ROOM_OF_MARKS = 22  # px of a row below its name
WIDEST = math.log(1000)  # an interval of two runs can span more than any axis; there it is cut, not in its text
# Round ratios about 1, from the coarsest pair to the finest.
STEPS = (
    (0.001, 1000.0), (0.01, 100.0), (0.03, 30.0), (0.1, 10.0), (0.2, 5.0), (0.3, 3.0), (0.5, 2.0), (0.7, 1.5),
    (0.8, 1.2), (0.9, 1.1), (0.95, 1.05), (0.98, 1.02), (0.99, 1.01), (0.995, 1.005), (0.998, 1.002), (0.999, 1.001),
)  # fmt: skip
LABEL_ROOM = 0.11  # of the axis: labels closer than this would touch


def forest(study: Study, findings: Findings, palette: Palette) -> Figure | None:
    """The comparisons of the deciding response; None where none has an interval.

    Of many, those with the first level alone, which share the row of their combination.
    """
    found = [each for each in findings.comparisons if each.response == findings.response and each.ci]
    if not found:
        return None
    title, more = f"Comparisons between levels of {found[0].factor}", ""
    grouped = len(found) > MOST_ALONE and bool(found[0].within)
    if grouped:
        to_first = [each for each in found if each.a == found[0].a]
        others = len(found) - len(to_first)
        more = f"{others:,} between the other levels are not shown." if others else ""
        title = f"Each {found[0].factor} over {found[0].a}"
        rows = [_row(each, label(each.within)) for each in to_first]
    else:
        rows = [_row(each, _name(each)) for each in found]
    return _drawn(study, findings, palette, "forest", title, rows[:MOST_ROWS], more, grouped=grouped)


def overall(study: Study, findings: Findings, palette: Palette) -> Figure | None:
    """The ratios over many combinations together of the deciding response; None of one, which needs no figure."""
    found = [each for each in findings.overall if each.response == findings.response][:MOST_ROWS]
    if len(found) < 2:
        return None
    title = f"Each {found[0].factor} over {found[0].a}, many combinations together"
    rows = [_row(each, _part(each)) for each in found]
    return _drawn(study, findings, palette, "overall", title, rows, "", grouped=True)


def _part(found: OverallRatio) -> str:
    unlike = f", {found.unlike}" if found.unlike else ""
    return f"{label(found.where)} ({found.of}{unlike})" if found.where else f"all {found.of}{unlike}"


def _drawn(
    study: Study,
    findings: Findings,
    palette: Palette,
    figure: str,
    title: str,
    rows: Sequence[Row],
    more: str,
    *,
    grouped: bool,
) -> Figure:
    """`grouped`: a row of the figure has a line of each level, told by its colour; else each ratio has its own row."""
    known = responses.lookup(findings.response)
    assert study.compare is not None, "only of what is compared are there ratios"
    compared = study.factor(study.compare)
    shown = [level.name for level in compared.levels if level.name in {row["b"] for row in rows}] if grouped else []
    for row in rows:
        row["line"] = shown.index(row["b"]) if grouped else 0
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = max(1, len(shown))
    room = lines * ROOM_OF_LINE if lines > 1 else ROOM_OF_MARKS
    labels, label_rows, row_height, middle = upon(names, "name", room)
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
    told = alt.Legend(orient="top", labelLimit=0, columns=1) if grouped else None
    colour = alt.Color("b:N", title=compared.name, scale=palette.scale(compared, shown or None), legend=told)
    layers = []
    for line in range(lines):
        at = middle + (line - (lines - 1) / 2) * ROOM_OF_LINE / row_height
        base = alt.Chart(named("comparisons")).encode(y=banded(names, "name", at))
        base = base.transform_filter(f"datum.line == {line}") if lines > 1 else base
        layers += [
            base.mark_rule(strokeWidth=2.5).encode(x=alt.X("from:Q"), x2="to:Q", color=colour),
            *(_arrow(base, end, shape).encode(color=colour) for end, shape in _ARROWS.items()),
            base.mark_point(size=70, filled=True, opacity=1).encode(x=x, color=colour),
            base.mark_text(align="left", fontSize=12, color=INK).encode(x=alt.value(WIDTH + 14), text="text:N"),
        ]
    chart = alt.layer(
        alt.Chart(named("one")).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(x=x),
        *labels,
        *layers,
    ).properties(
        width=WIDTH,
        height=alt.Step(row_height),
        title=heading(
            title,
            f"Ratio of {known.title} with its {findings.confidence * 100:.4g}% interval; {known.better} is better. "
            "An interval without 1 is a difference only if the text calls it one.",
            more,
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
