"""Where instructions go, in words and tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dyno.model.assemblies import COMPONENTS, PAGES, TITLES, parse
from dyno.model.findings import ComponentShare, Findings, Removal, RemovalStep

HEADING = "Where the instructions go"


def of_removal(findings: Findings) -> list[RenderableType]:
    """For a terminal: of each kind of transaction its steps, and both ways of counting a component."""
    parts: list[RenderableType] = []
    for found in findings.removal:
        parts += [
            Text(),
            Text(f"{HEADING}: {found.transaction}{_within(found)}", style="bold"),
            Text(found.sentence),
            _steps(found),
        ]
        if found.shares:
            parts += [Text(), _shares(found)]
        parts += [Text(said, style="dim") for said in (found.beside, found.agreement, found.repeatability) if said]
        if found.contributions_reason:
            parts.append(Text(f"Orders of removal: {found.contributions_reason}.", style="dim"))
    return parts


def _within(found: Removal) -> str:
    return f" ({' '.join(f'{factor}={level}' for factor, level in found.within.items())})" if found.within else ""


def step_name(step: RemovalStep) -> str:
    """`without logging`; the first is named as it is."""
    if not step.removed:
        return "all components" if parse(step.assembly).components == set(COMPONENTS) else step.assembly
    if step.removed == PAGES:
        return TITLES[PAGES]
    return f"without {' and '.join(TITLES.get(each, each) for each in step.removed.split('+'))}"


def title_of(component: str) -> str:
    """For people."""
    return TITLES.get(component, component)


def number(value: float | None) -> str:
    """`12,345`."""
    return "–" if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """`12.3%`."""
    return "–" if share is None else f"{share:.1%}"


def points(share: float | None) -> str:
    """`+1.2`: per cent of the same whole, one less the other."""
    return "–" if share is None else f"{share * 100:+.1f}"


def spread(share: float | None) -> str:
    """`0.012%`."""
    return "–" if share is None else f"{share:.3%}"


def share_name(share: ComponentShare) -> str:
    """Larger pages are within the buffer manager's share."""
    return f"of which {title_of(share.component)}" if share.component == PAGES else title_of(share.component)


def _steps(found: Removal) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("step")
    for name in (
        "instructions",
        "+-",
        "saved",
        "of the first",
        "counted twice",
        "kept apart",
        "cycles",
        "tx/s of the mix",
    ):
        table.add_column(name, justify="right")
    for step in (*found.steps, *((found.kernel,) if found.kernel else ())):
        figures = (
            number(step.instructions), percent(step.precision), number(step.saved), percent(step.share),
            spread(step.spread), number(step.outlined), number(step.cycles), number(step.throughput),
        )  # fmt: skip
        table.add_row(Text(step_name(step)), *map(Text, figures))
    return table


def _shares(found: Removal) -> Table:
    orders = {each.component: each for each in found.contributions}
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("component")
    for name in ("published", "(a) by removal", "(b) attributed", "(a) - published", "(a) - (b)"):
        table.add_column(name, justify="right")
    for name in ("over all orders", "least", "most") if orders else ():
        table.add_column(name, justify="right")
    for each in found.shares:
        figures = [percent(each.published), percent(each.removed), percent(each.attributed)]
        figures += [points(each.since), points(each.apart)]
        if orders:
            of = orders.get(each.component)
            figures += [percent(of.share), number(of.least), number(of.most)] if of else ["–"] * 3
        table.add_row(Text(f"{share_name(each)}{' (ours)' if each.ours else ''}"), *map(Text, figures))
    return table
