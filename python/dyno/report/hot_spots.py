"""Hot spots as the page and the terminal show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dyno.model.findings import Findings, HotGroup, HotSpots, HotSymbol, format_share
from dyno.model.flames import DrawnFlame
from dyno.model.hot_spots import OTHER

MOST_IN_PAGE = 6_000_000  # bytes of drawings; what is beyond them is beside the page alone
MOST_ROWS = 12  # of a cell in the page
MOST_GROUPS = 6  # of a cell on a terminal


@dataclass
class Drawing:
    """A flame graph; without `svg` where the page has no room for it."""

    title: str
    file: str
    svg: Markup | None


@dataclass
class HotCell:
    """A cell, with its flame graph and those of what changed."""

    found: HotSpots
    drawings: list[Drawing] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Its levels."""
        return name_of(self.found)

    @property
    def groups(self) -> tuple[HotGroup, ...]:
        """Those worth a row: the largest, and what no rule knows."""
        known = [group for group in self.found.groups if group.group != OTHER]
        return (*known[:MOST_ROWS], *(group for group in self.found.groups if group.group == OTHER))

    @property
    def rest(self) -> tuple[HotGroup, ...]:
        """The small ones."""
        return tuple(group for group in self.found.groups if group not in self.groups)


def hot_spots_part(findings: Findings, flames: Sequence[DrawnFlame]) -> list[HotCell]:
    """The cells in their order."""
    cells = {each.cell: HotCell(each) for each in findings.hot_spots}
    known = [flame for flame in flames if flame.cell in cells]
    left = MOST_IN_PAGE
    fits = set()
    # Differences first: what a whole cell does, its table tells too.
    for flame in sorted(known, key=lambda each: each.against is None):
        left -= len(flame.page)
        if left >= 0:
            fits.add(flame.name)
    for flame in known:
        title = "Flame graph" if flame.against is None else f"What changed against {flame.against}"
        # The drawing escapes what it shows, and has neither scripts nor styles.
        svg = Markup(flame.page) if flame.name in fits else None
        cells[flame.cell].drawings.append(Drawing(title, f"figures/{flame.name}.svg", svg))
    return list(cells.values())


def show_hot_spots(findings: Findings) -> Iterator[RenderableType]:
    """For a terminal: the first groups of each cell, with their first functions."""
    if not findings.hot_spots:
        return
    yield Text()
    yield Text("What CPU time was spent on", style="bold")
    yield Text(about(findings), style="dim")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in ("cell", "spent on", "share", "mostly in"):
        table.add_column(column, justify="right" if column == "share" else "left", overflow="fold")
    for each in findings.hot_spots:
        first = name_of(each)
        for group in each.groups[:MOST_GROUPS]:
            mostly = ", ".join(symbol_name(symbol) for symbol in group.symbols[:2])
            table.add_row(*(Text(_plain(text)) for text in (first, group.group, share_of(group), mostly)))
            first = ""
    yield table


def about(findings: Findings) -> str:
    """What the samples are, and of how many nothing more is known, in a sentence."""
    events = sorted({each.event for each in findings.hot_spots})
    samples = sum(each.samples for each in findings.hot_spots)
    unknown = max(each.unknown for each in findings.hot_spots)
    other = max(
        (group.share for each in findings.hot_spots for group in each.groups if group.group == OTHER), default=0.0
    )
    return (
        f"{samples:,} samples of call stacks ({', '.join(events)}) while a CPU ran the system: waiting is not in them. "
        f"In at most {format_share(unknown)} of a cell's samples the innermost function has no known name, and at most "
        f"{format_share(other)} are of functions that no rule knows (other)."
    )


def share_of(group: HotGroup) -> str:
    """`31% [28%, 34%]`."""
    if group.ci is None:
        return format_share(group.share)
    return f"{format_share(group.share)} [{format_share(group.ci[0])}, {format_share(group.ci[1])}]"


def symbol_name(symbol: HotSymbol) -> str:
    """`memcpy (libc.so.6)`."""
    return f"{symbol.symbol or '[unknown]'} ({symbol.module})" if symbol.module else symbol.symbol or "[unknown]"


def name_of(found: HotSpots) -> str:
    """`deployment=native threads=4`."""
    return " ".join(f"{factor}={level}" for factor, level in found.levels.items()) or "the only cell"


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
