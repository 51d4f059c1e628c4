"""Effects of a screening design as a half-normal plot: those that stand out of the line are no noise."""

from __future__ import annotations

import math

import altair as alt

from dyno.model import responses
from dyno.model.findings import FactorEffect, Findings, format_ratio
from dyno.report.figures.style import HUES, INK, Figure, Row, draw, heading, named

WIDTH, HEIGHT = 560, 340
LARGEST = 3  # effects that are named though they are not shown to be any; more names would lie upon each other
_TITLE = "Effects, against what noise alone would give"


def half_normal(findings: Findings) -> Figure | None:
    """The sizes of the effects on the deciding response over the quantiles of half a normal distribution.

    None for fewer than three effects.
    """
    effects = [each for each in findings.effects if each.response == findings.response]
    if len(effects) < 3:
        return None
    known = responses.lookup(findings.response)
    ordered = sorted(effects, key=lambda each: each.quantile)
    rows: list[Row] = [
        {
            "quantile": each.quantile,
            "size": math.exp(abs(math.log(each.ratio))),
            "effect": " x ".join(each.factors),
            "ratio": each.ratio,
            "shown": "shown" if each.verdict in ("higher", "lower") else "not shown",
            "text": _text(each, place >= len(ordered) - LARGEST),
        }
        for place, each in enumerate(ordered)
    ]
    colour = alt.Color("shown:N", title=None, scale=alt.Scale(domain=["shown", "not shown"], range=[HUES[0], HUES[6]]))
    x = alt.X("quantile:Q", title="quantile of the half-normal distribution", scale=alt.Scale(domainMin=0, nice=True))
    top = max(1.01, rows[-1]["size"]) ** 1.1
    y = alt.Y(
        "size:Q",
        title=f"factor by which {known.title} changes (log scale)",
        scale=alt.Scale(type="log", domain=[1, top], nice=False),
        axis=alt.Axis(values=_ticks(top), format="~g"),
    )
    base = alt.Chart(named("effects")).encode(x=x, y=y)
    chart = alt.layer(
        base.mark_point(size=70, filled=True, opacity=1).encode(color=colour),
        base.mark_text(align="right", dx=-9, fontSize=12, color=INK).encode(text="text:N"),
    ).properties(
        width=WIDTH,
        height=HEIGHT,
        title=heading(
            _TITLE,
            "High to low or low to high, whichever is above 1. Effects that are noise lie on a line from the lower "
            "left; a name stands for all that it is confounded with.",
        ),
    )
    columns = ["effect", "ratio", "size", "quantile", "shown"]
    return draw(chart.to_dict(), "half-normal", _TITLE, {"effects": rows}, rows, columns)


def _text(effect: FactorEffect, large: bool) -> str:
    name = " x ".join(effect.factors)
    if effect.verdict in ("higher", "lower") and effect.ci:
        return f"{name} {format_ratio(effect.ratio, effect.ci)}"
    return name if large else ""


def _ticks(top: float) -> list[float]:
    """1, and about five round steps on from it; as many factors of a round number where the way is long."""
    if top > 10:
        return [float(10**power) for power in range(math.ceil(math.log10(top)))]
    size = 10 ** math.floor(math.log10(top - 1))
    step = next(size * of for of in (0.2, 0.5, 1, 2, 5) if size * of * 5 >= top - 1)
    return [1 + step * place for place in range(math.floor((top - 1) / step) + 1)]
