"""Counted instructions in words, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dyno.model.instructions import MOST_FUNCTIONS, Instructions, OfFunction, PerOperation
from dyno.model.units import counted

Configured = tuple[dict[str, str], tuple[str, ...]]
"""The levels of cells, and the words that valgrind needs on the command line of their server."""

_COLUMNS = ("part", "group", "function", "module", "per_operation", "share", "blocks")


def instructions_as_json(found: Sequence[Instructions], configured: Sequence[Configured]) -> str:
    """All groups and the first functions of each cell; `per_operation` is of each block."""
    rows = [
        {
            "levels": each.levels,
            "lengths": each.lengths,
            "blocks": len(each.per_operation),
            "per_operation": each.per_operation,
            "mean": each.mean,
            "groups": [{"group": part.group, **_figures(each, part)} for part in each.groups],
            "functions": [
                {"function": part.symbol, "module": part.module, "group": part.group, **_figures(each, part)}
                for part in each.functions[:MOST_FUNCTIONS]
            ],
            "for_valgrind": next(words for levels, words in configured if levels == each.levels),
        }
        for each in found
    ]
    return json.dumps({"counted_by": "valgrind --tool=callgrind", "cells": rows}, indent=1)


def _figures(of: Instructions, part: PerOperation) -> dict[str, Any]:
    return {"per_operation": part.per_operation, "mean": part.mean, "share": of.share(part)}


def instructions_as_csv(found: Sequence[Instructions]) -> str:
    """Of each cell a line for all (`part` is total), one for each group, and one for each function.

    Groups sum up to the total, and so do functions. Levels stand in columns `levels.<factor>`; figures are means over
    the blocks; what is undefined is empty.
    """
    factors = list(dict.fromkeys(factor for each in found for factor in each.levels))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(f"levels.{factor}" for factor in factors), *_COLUMNS])
    for each in found:
        levels = [each.levels.get(factor, "") for factor in factors]
        blocks = len(each.per_operation)
        writer.writerow([*levels, "total", "", "", "", each.mean, 1.0 if each.mean else "", blocks])
        for group in each.groups:
            writer.writerow([*levels, "group", group.group, "", "", group.mean, each.share(group), blocks])
        for of in each.functions:
            names = (of.group, of.symbol, of.module)
            writer.writerow([*levels, "function", *names, of.mean, each.share(of), blocks])
    return text.getvalue()


def show_instructions(found: Sequence[Instructions], configured: Sequence[Configured], console: Console) -> None:
    """For a terminal: each cell's figure, then its groups, then its first functions."""
    console.print(
        "Instructions per operation of the server in user mode, counted by valgrind's callgrind:", soft_wrap=True
    )
    for each in found:
        single = ", ".join(f"{value:,.0f}" for value in each.per_operation) or "not counted"
        told = f"{each.mean:,.0f} ({single})" if each.mean is not None and len(each.per_operation) > 1 else single
        console.print(Text(f"{each.name}: {told}"), soft_wrap=True)
        if each.groups:
            of = counted(len(each.per_operation), "block")
            console.print(Text(f"What they were spent on, mean of {of}:", style="dim"), soft_wrap=True)
            console.print(_table("spent on", each, [(part.group, part) for part in each.groups]))
            rows = [(f"{_name(part)}, {part.group}", part) for part in each.functions[:MOST_FUNCTIONS]]
            console.print(_table("function, without what it called", each, rows))
    for said in dict.fromkeys(" ".join(words) for _, words in configured if words):
        console.print(Text(f"So that valgrind can run it, the server had {said}."), soft_wrap=True)


def _table(title: str, of: Instructions, rows: Sequence[tuple[str, PerOperation]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in ("share", "per operation", title):
        table.add_column(column, justify="left" if column == title else "right", overflow="fold")
    for name, part in rows:
        table.add_row(*(Text(text) for text in (*_told(of, part), name)))
    return table


def _told(of: Instructions, part: PerOperation) -> Iterator[str]:
    share, mean = of.share(part), part.mean
    yield "" if share is None else f"{share:.1%}"
    yield "" if mean is None else f"{mean:,.0f}"


def _name(function: OfFunction) -> str:
    """As that of a hot spot: `memcpy (libc.so.6)`."""
    symbol = function.symbol or "[unknown]"
    return f"{symbol} ({function.module})" if function.module else symbol
