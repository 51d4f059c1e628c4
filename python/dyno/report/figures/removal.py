"""Where instructions go: what each removal leaves, what calls are made of, and what orders of removal make of it."""

from __future__ import annotations

from itertools import pairwise

import altair as alt

from dyno.model.assemblies import KERNEL, TITLES
from dyno.model.findings import Findings, Removal, RemovalStep
from dyno.report.figures.style import HUES, INK, SOFT, WIDTH, Figure, Row, draw, heading, label, legend, named
from dyno.report.removal import step_name

_MORE = "more than before"
_INSTRUCTIONS = "instructions of a transaction"
_STEP = 30  # px of a row


def removal(findings: Findings) -> list[Figure]:
    """A waterfall for each kind of transaction, and of each its calls and its orders where they are known."""
    drawn: list[Figure] = []
    for place, found in enumerate(findings.removal):
        name = (
            f"{found.transaction}-{place}"
            if len({each.transaction for each in findings.removal}) < len(findings.removal)
            else found.transaction
        )
        drawn.append(_waterfall(found, f"removal-{name}"))
        if found.calls:
            drawn.append(_calls(found, f"calls-{name}"))
        if found.cycles:
            drawn.append(_cycles(found, f"cycles-{name}"))
        if not any(each.within == found.within for each in findings.removal[:place]):
            drawn.append(_throughput(found, f"throughput-{name}"))
        if found.contributions:
            drawn.append(_orders(found, f"orders-{name}"))
    return drawn


def _of(found: Removal) -> str:
    return f"{found.transaction}{f' ({label(found.within)})' if found.within else ''}"


def _waterfall(found: Removal, name: str) -> Figure:
    rows: list[Row] = []
    before: float | None = None
    steps = [*found.steps, *([found.kernel] if found.kernel else [])]
    for step in steps:
        if step.instructions is None:
            continue
        kind = "kernel" if step.assembly == KERNEL else "ours" if step.ours else "as published"
        named_step = step_name(step)
        # What is left ends where the removed part begins; where a removal costs something, that is at its end.
        left = step.instructions if before is None else min(step.instructions, before)
        rows.append({"step": named_step, "from": 0, "to": left, "what": "left" if kind != "kernel" else kind})
        if before is not None and step.assembly != KERNEL:
            what = f"removed, {kind}" if step.instructions <= before else _MORE
            rows.append({"step": named_step, "from": left, "to": max(step.instructions, before), "what": what})
        before = step.instructions if step.assembly != KERNEL else before
    domain = ["left", "removed, as published", "removed, ours", _MORE, "kernel"]
    domain = [each for each in domain if any(row["what"] == each for row in rows)]
    hues = {"left": HUES[0], "removed, as published": HUES[1], "removed, ours": HUES[3], _MORE: HUES[5]}
    y = alt.Y("step:N", sort=[step_name(step) for step in steps], title=None, axis=alt.Axis(labelLimit=260))
    colour = alt.Color(
        "what:N", title=None, scale=alt.Scale(domain=domain, range=[hues.get(each, HUES[2]) for each in domain]),
        legend=legend(domain),
    )  # fmt: skip
    bars = alt.Chart(named("steps")).mark_bar(cornerRadiusEnd=2, opacity=0.85)
    chart = bars.encode(
        y=y, x=alt.X("from:Q", title=_INSTRUCTIONS, axis=alt.Axis(format="~s")), x2="to:Q", color=colour
    )
    title = f"What each removal leaves of {_of(found)}"
    below = (
        "Instructions in user mode of one transaction, means over blocks of the optimised builds. Their "
        "intervals, too narrow to be drawn, stand in the table."
    )
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    return draw(spec, name, title, {"steps": rows}, rows, ["step", "what", "from", "to"])


def _calls(found: Removal, name: str) -> Figure:
    rows: list[Row] = []
    order = []
    for call in found.calls:
        times = "" if call.calls is None else f" ({call.calls:,.4g})"
        told = f"{call.call}{times}" if call.call else "in no call"
        order.append(told)
        rows += [
            {"call": told, "component": TITLES.get(component, component), "instructions": value}
            for component, value in call.components.items()
        ]
    components = [title for title in TITLES.values() if any(row["component"] == title for row in rows)]
    # More components than there are colours that all can tell apart: the later ones are paler.
    colours = [*HUES, *map(_paler, HUES)][: len(components)]
    chart = (
        alt.Chart(named("calls"))
        .mark_bar()
        .encode(
            y=alt.Y("call:N", sort=order, title="call (how often)", axis=alt.Axis(labelLimit=220)),
            x=alt.X("sum(instructions):Q", title=_INSTRUCTIONS, axis=alt.Axis(format="~s")),
            color=alt.Color(
                "component:N",
                title=None,
                sort=components,
                scale=alt.Scale(domain=components, range=colours),
                legend=legend(components),
            ),
        )
    )
    title = f"What the calls of {_of(found)} are made of"
    below = (
        f"All calls of one transaction together, by component, of {step_name(found.steps[0])} in the build that keeps "
        "components apart. What a component has done by libraries is its own."
    )
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    return draw(spec, name, title, {"calls": rows}, rows, ["call", "component", "instructions"])


def _throughput(found: Removal, name: str) -> Figure:
    steps = [*found.steps, *([found.kernel] if found.kernel else [])]
    rows: list[Row] = [
        {"step": step_name(step), "throughput": step.throughput} for step in steps if step.throughput is not None
    ]
    base = alt.Chart(named("throughput")).encode(
        y=alt.Y("step:N", sort=[step_name(step) for step in steps], title=None, axis=alt.Axis(labelLimit=260)),
        x=alt.X("throughput:Q", title="transactions a second, of the mix", axis=alt.Axis(format="~s")),
    )
    chart = alt.layer(
        base.mark_bar(cornerRadiusEnd=2, opacity=0.85, color=HUES[0]),
        base.mark_text(align="left", dx=4, color=INK).encode(text=alt.Text("throughput:Q", format=",.3s")),
    )
    title = f"Throughput by step{f' ({label(found.within)})' if found.within else ''}"
    below = (
        "Of the whole mix, measured before anything was counted; means over runs, whose intervals stand in the table "
        "of cells."
    )
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    return draw(spec, name, title, {"throughput": rows}, rows, ["step", "throughput"])


def _cycles(found: Removal, name: str) -> Figure:
    """Of each step what it saves of either, and of the last what is left, in shares of the first."""
    first, rows = found.steps[0], list[Row]()
    for before, step in pairwise(found.steps):
        rows += _shares_of(step_name(step), before, step, first)
    rows += _shares_of("what is left", found.steps[-1], None, first)
    events = ["instructions", "cycles"]
    chart = (
        alt.Chart(named("shares"))
        .mark_bar(cornerRadiusEnd=2, opacity=0.85)
        .encode(
            y=alt.Y("step:N", sort=list(dict.fromkeys(row["step"] for row in rows)), title=None),
            yOffset=alt.YOffset("event:N", sort=events),
            x=alt.X("share:Q", title="share of the first step's", axis=alt.Axis(format="%")),
            color=alt.Color(
                "event:N", title=None, scale=alt.Scale(domain=events, range=list(HUES[:2])), legend=legend(events)
            ),
        )
    )
    title = f"Instructions beside cycles of {_of(found)}"
    below = "What each removal saves of either, by the optimised builds; cycles by the machine's own counters."
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    return draw(spec, name, title, {"shares": rows}, rows, ["step", "event", "share"])


def _shares_of(name: str, before: RemovalStep, after: RemovalStep | None, first: RemovalStep) -> list[Row]:
    found: list[Row] = []
    for event in ("instructions", "cycles"):
        had, has, whole = (None if each is None else getattr(each, event) for each in (before, after, first))
        if had is not None and whole and (after is None or has is not None):
            found.append({"step": name, "event": event, "share": (had - (has or 0.0)) / whole})
    return found


def _paler(hue: str) -> str:
    """Half way to a grey that can be seen on light and on dark."""
    return "#" + "".join(f"{(int(hue[at : at + 2], 16) + 0xD8) // 2:02x}" for at in (1, 3, 5))


def _orders(found: Removal, name: str) -> Figure:
    rows: list[Row] = [
        {
            "component": TITLES.get(each.component, each.component),
            "mean": each.mean,
            "least": each.least,
            "most": each.most,
        }
        for each in sorted(found.contributions, key=lambda each: -each.mean)
    ]
    removed = {each.component: each.removed for each in found.components}
    for row, each in zip(rows, sorted(found.contributions, key=lambda each: -each.mean), strict=True):
        row["study"] = removed.get(each.component)
    y = alt.Y("component:N", sort=[row["component"] for row in rows], title=None)
    base = alt.Chart(named("orders")).encode(y=y)
    x = alt.X("least:Q", title=_INSTRUCTIONS, axis=alt.Axis(format="~s"))
    chart = alt.layer(
        base.mark_rule(strokeWidth=3, color=SOFT).encode(x=x, x2="most:Q"),
        base.mark_point(size=110, filled=True, opacity=1, color=HUES[0]).encode(x="mean:Q"),
        base.transform_filter("datum.study != null")
        .mark_point(size=60, shape="diamond", color=INK, strokeWidth=2)
        .encode(x="study:Q"),
    )
    title = f"What each component of {_of(found)} takes, over all orders of removal"
    below = (
        "Line: the least and the most that its removal saves in any order. Dot: the mean over all orders (Shapley "
        "value). Diamond: in the order of the study."
    )
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    return draw(spec, name, title, {"orders": rows}, rows, ["component", "mean", "least", "most", "study"])
