"""Flame graphs: what is to be drawn, and what was."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dyno.model.base import Frozen


class Flame(Frozen):
    """Folded stacks of a cell, and those that they are set against where it is a difference."""

    name: Annotated[str, Field(description="of its files")]
    cell: int
    levels: dict[str, str]
    against: Annotated[str | None, Field(description="the compared level that it is set against")] = None
    stacks: tuple[str, ...]
    before: tuple[str, ...] | None = None


class DrawnFlame(Frozen):
    """A flame graph as SVG: as it stands in a page, and by itself, where it can be searched and zoomed."""

    name: str
    cell: int
    levels: dict[str, str]
    against: str | None
    page: str
    file: str
