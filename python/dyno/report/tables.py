"""Tables of plain text on a terminal: what all that is shown there is made of."""

from __future__ import annotations

from typing import Literal

from rich import box
from rich.table import Table
from rich.text import Text


def table() -> Table:
    """An empty one, in the style of all."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")


def columns(made: Table, *names: str, justify: Literal["left", "right"] = "left") -> None:
    """Add columns; what stands to the right is numbers, which are never broken."""
    for name in names:
        made.add_column(Text(plain(name)), justify=justify, overflow="fold", no_wrap=justify == "right")


def row(made: Table, *fields: str | Text) -> None:
    """Add a row of plain text: a level such as `[red]` is not markup here."""
    made.add_row(*(field if isinstance(field, Text) else Text(plain(field)) for field in fields))


def plain(text: str) -> str:
    """Without what would steer the terminal: causes and levels may come from anywhere."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def heading(text: str) -> Text:
    """What stands above a table."""
    return Text(text, style="bold")
