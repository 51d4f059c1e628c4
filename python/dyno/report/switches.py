"""What each step of an engine's own switches takes, in words and tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dyno.model.findings import Findings, Switches, SwitchStep
from dyno.report.removal import number, percent

HEADING = "What each switch takes"
__all__ = ["HEADING", "between", "figure_name", "number", "of_switches", "percent"]


def of_switches(findings: Findings) -> list[RenderableType]:
    """For a terminal: of each kind of transaction on each system its steps."""
    parts: list[RenderableType] = []
    for found in findings.switches:
        heading = f"{HEADING}: {found.transaction} on {found.system}"
        parts += [Text(), Text(heading, style="bold"), Text(found.sentence), _steps(found)]
    return parts


def figure_name(place: int, found: Switches) -> str:
    """Of the figure of what stands at that place among all."""
    return f"switches-{found.system}-{found.transaction}{f'-{place}' if found.within else ''}"


def between(step: SwitchStep) -> str:
    """`1,079 to 1,134`."""
    return "–" if step.least is None or step.most is None else f"{step.least:,.0f} to {step.most:,.0f}"


def _steps(found: Switches) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("step")
    table.add_column("switched")
    for name in ("instructions", "saved", "in blocks", "of the first", "tx/s of the mix"):
        table.add_column(name, justify="right")
    for step in found.steps:
        figures = (
            number(step.instructions), number(step.saved), between(step), percent(step.share),
            number(step.throughput),
        )  # fmt: skip
        table.add_row(Text(step.level), Text(step.switched), *map(Text, figures))
    return table
