"""Where instructions go: what each removal leaves, what calls are made of, and what orders of removal make of it."""

from __future__ import annotations

import altair as alt

from dyno.model.assemblies import KERNEL, TITLES
from dyno.model.findings import Findings, Removal, RemovalStep
from dyno.report.figures.style import HUES, INK, SOFT, WIDTH, Figure, Row, draw, heading, label, legend, named

_PAGES = "larger pages"
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
        if found.contributions:
            drawn.append(_orders(found, f"orders-{name}"))
    return drawn


def step_name(step: RemovalStep) -> str:
    """`without logging`; the first is named as it is."""
    if not step.removed:
        return step.assembly if step.assembly == KERNEL or len(step.assembly) < len(KERNEL) else "all components"
    if step.removed == "pages":
        return _PAGES
    return f"without {' and '.join(TITLES.get(each, each) for each in step.removed.split('+'))}"


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
        if before is not None and step.assembly != KERNEL:
            rows.append({"step": named_step, "from": step.instructions, "to": before, "what": f"removed, {kind}"})
        left = step.instructions
        rows.append({"step": named_step, "from": 0, "to": left, "what": "left" if kind != "kernel" else kind})
        before = step.instructions
    domain = ["left", "removed, as published", "removed, ours", "kernel"]
    y = alt.Y("step:N", sort=[step_name(step) for step in steps], title=None, axis=alt.Axis(labelLimit=260))
    colour = alt.Color(
        "what:N", title=None, scale=alt.Scale(domain=domain, range=[HUES[0], HUES[1], HUES[3], HUES[2]]),
        legend=legend(domain),
    )  # fmt: skip
    bars = alt.Chart(named("steps")).mark_bar(cornerRadiusEnd=2, opacity=0.85)
    chart = bars.encode(
        y=y, x=alt.X("from:Q", title=_INSTRUCTIONS, axis=alt.Axis(format="~s")), x2="to:Q", color=colour
    )
    title = f"What each removal leaves of {_of(found)}"
    below = (
        "Instructions in user mode of one transaction, means over runs of the optimised builds. Counts repeat almost "
        "exactly, so that there is no interval to be drawn."
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
    colours = [HUES[place % len(HUES)] for place in range(len(components))]
    # More components than there are colours that all can tell apart: the later ones are paler.
    opacity = alt.condition(
        alt.FieldOneOfPredicate(field="component", oneOf=components[: len(HUES)]), alt.value(0.95), alt.value(0.45)
    )
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
            opacity=opacity,
        )
    )
    title = f"What the calls of {_of(found)} are made of"
    below = (
        f"All calls of one transaction together, by component, of {step_name(found.steps[0])} in the build that keeps "
        "components apart. What a component has done by libraries is its own."
    )
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    return draw(spec, name, title, {"calls": rows}, rows, ["call", "component", "instructions"])


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
