"""Where instructions go, in words and tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dyno.model.assemblies import TITLES
from dyno.model.findings import Findings, Removal
from dyno.report.figures.removal import step_name

HEADING = "Where the instructions go"
__all__ = ["HEADING", "number", "of_removal", "percent", "step_name", "title_of"]


def of_removal(findings: Findings) -> list[RenderableType]:
    """For a terminal: of each kind of transaction its steps, and both ways of counting a component."""
    parts: list[RenderableType] = []
    for found in findings.removal:
        parts += [Text(), Text(f"{HEADING}: {found.transaction}", style="bold"), Text(found.sentence), _steps(found)]
        if found.components:
            parts += [Text(), _components(found)]
        if found.contributions_reason:
            parts.append(Text(f"Orders of removal: {found.contributions_reason}.", style="dim"))
    return parts


def title_of(component: str) -> str:
    """For people."""
    return TITLES.get(component, component)


def number(value: float | None) -> str:
    """`12,345`."""
    return "–" if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """`12.3%`."""
    return "–" if share is None else f"{share:.1%}"


def _steps(found: Removal) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("step")
    for name in ("instructions", "saved", "of all", "kept apart", "cycles", "tx/s of the mix"):
        table.add_column(name, justify="right")
    for step in (*found.steps, *((found.kernel,) if found.kernel else ())):
        figures = (
            number(step.instructions), number(step.saved), percent(step.share), number(step.outlined),
            number(step.cycles), number(step.throughput),
        )  # fmt: skip
        table.add_row(Text(step_name(step)), *map(Text, figures))
    return table


def _components(found: Removal) -> Table:
    shares = {each.component: each for each in found.contributions}
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("component")
    for name in ("by removal", "attributed", "apart, of all", "over all orders", "least", "most"):
        table.add_column(name, justify="right")
    for each in found.components:
        orders = shares.get(each.component)
        figures = [number(each.removed), number(each.attributed), percent(each.apart)]
        figures += [number(orders.mean), number(orders.least), number(orders.most)] if orders else ["–"] * 3
        table.add_row(Text(title_of(each.component)), *map(Text, figures))
    return table
