"""What interventions say, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dyno.model.findings import DoseEffect, Probed, format_quantity, format_ratio, format_share
from dyno.model.interventions import told

_WIDTH_OF_FILES = 1000
_STYLES = {
    "felt in full": "green", "felt in part": "green", "more than in full": "green", "not in full": "green",
    "differs from a dose on": "green", "no difference seen": "green",
    "cannot tell": "yellow", "not judged": "yellow",
}  # fmt: skip
HEADING = "What throughput hangs on, by slowing it on purpose"


def show_interventions(found: Sequence[Probed], console: Console) -> None:
    """A table of slopes, then a sentence each; nothing where nothing was intervened in."""
    if not found:
        return
    if not console.is_terminal:
        console = Console(file=console.file, width=_WIDTH_OF_FILES, highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0))
    names = list(dict.fromkeys(name for each in found for name in each.within))
    for name in (*names, "intervention", "doses"):
        table.add_column(Text(name), overflow="fold")
    for name in ("n", "calls/op", "highest adds", "throughput there", "slope at dose 0", "instrument's own cost"):
        table.add_column(Text(name), justify="right")
    for each in found:
        fields = (
            *(each.within.get(name, "-") for name in names),
            each.kind,
            doses(each),
            runs(each),
            "-" if each.calls_per_op is None else format_quantity(each.calls_per_op),
            adds(each),
            effect(each.doses[-1]) if each.doses else "-",
            slope(each),
            own_cost(each),
        )
        table.add_row(*(Text(field) for field in fields))
    console.print()
    console.print(Text(HEADING, style="bold"))
    console.print(table)
    for each in found:
        where = " ".join(f"{name}={level}" for name, level in each.within.items())
        sentence = f"{each.sentence}{f' ({where})' if len(names) and len(found) > 1 else ''}"
        console.print(Text(f"- {sentence}", style=_STYLES.get(each.verdict, "")), soft_wrap=True)
        for note in each.notes:
            console.print(Text(f"  {note}", style="yellow"), soft_wrap=True)


def doses(each: Probed) -> str:
    """`0, 250 us, 500 us`."""
    return ", ".join(told(dose.dose, each.unit) for dose in each.doses)


def runs(each: Probed) -> str:
    """How many ok runs a dose has."""
    counts = [dose.n for dose in each.doses]
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"


def adds(each: Probed) -> str:
    """What the highest dose adds to an operation's time."""
    last = each.doses[-1].added if each.doses else None
    if last is None:
        return "-"
    return f"{'-' if last < 0 else ''}{format_share(abs(last))}"


def effect(dose: DoseEffect) -> str:
    """The throughput at a dose, relative to the control."""
    return format_ratio(dose.ratio, dose.ci) if dose.ratio is not None and dose.ci else "-"


def slope(each: Probed) -> str:
    """With its interval."""
    if each.slope is None or each.slope_ci is None:
        return "-"
    return f"{each.slope:.2f} [{each.slope_ci[0]:.2f}, {each.slope_ci[1]:.2f}]"


def own_cost(each: Probed) -> str:
    """The throughput with the instrument at dose 0, relative to runs without it."""
    if each.own_cost is None or each.own_cost_ci is None:
        return "-"
    return format_ratio(each.own_cost, each.own_cost_ci)
