"""`faults`: what is struck in a cluster while it is driven, as a factor that the study has besides its own."""

from __future__ import annotations

from collections.abc import Sequence

from dyno.model.base import level_name
from dyno.model.faults import FACTOR, KINDS, NONE, FaultKind, FaultOptions, FaultPlan, NoFaultOptions
from dyno.model.study import Cell, Factor, Level, Study
from dyno.study.document import Document
from dyno.study.errors import Place, Problem, not_found, shown
from dyno.study.expectations import Known
from dyno.study.tree import Branch, Entry, Items, Leaf, Node, plain
from dyno.study.validate import validate

Faults = Sequence[tuple[FaultKind | None, FaultOptions | NoFaultOptions]]
"""Each kind with its options; None where nothing is struck."""


def read_faults(root: Branch, known: Known, document: Document | None, problems: list[Problem]) -> Faults:
    """`{kind: {options}}`; the kind `none` is a cell in which nothing is struck."""
    node = root.get("faults")
    if node is None or plain(node) is None:
        return ()
    if not isinstance(node, Branch) or not node.entries:
        told = "names no kind" if isinstance(node, Branch) else f"is {shown(plain(node))}"
        text = f"{told}: map kinds to their options, such as {{kill: {{at: [5 s, 10 s]}}}}, or leave it out"
        problems.append(Problem(node.place, "faults", text))
        return ()
    problems.extend(_clashes(root.entries["faults"].key_place, root, known, document))
    found: list[tuple[FaultKind | None, FaultOptions | NoFaultOptions]] = []
    for name, entry in node.entries.items():
        kind = next((kind for kind in KINDS if kind == name), None)
        if kind is None and name != NONE:
            text = not_found("kind", name, [*KINDS, NONE], "kinds")
            problems.append(Problem(entry.key_place, f"faults.{name}", text))
            continue
        given: Node = entry.node if plain(entry.node) is not None else Branch({}, entry.node.place)
        if wrong := _slips(name, kind, entry, given):
            problems.extend(wrong)
            continue
        options: FaultOptions | NoFaultOptions | None
        if kind is None:
            options = validate(NoFaultOptions, root, ("faults", name), given, problems)
        else:
            options = validate(FaultOptions, root, ("faults", name), given, problems)
        if options is not None:
            known.chosen(_where(options), root, ("faults", name, "where"), problems)
            found.append((kind, options))
    return found


def _slips(name: str, kind: FaultKind | None, entry: Entry, given: Node) -> list[Problem]:
    """A time without a window, and several levels where one is meant: what is told in terms of a type helps nobody."""
    if not isinstance(given, Branch):
        return []
    found, at, where = [], given.get("at"), given.get("where")
    form = "write from when to when it may be struck, such as at: [3 s, 3 s] for just then"
    if kind is not None and at is None:
        found.append(Problem(entry.key_place, f"faults.{name}.at", f"this required key is missing: {form}"))
    elif kind is not None and isinstance(at, Leaf):
        found.append(Problem(at.place, f"faults.{name}.at", f"{shown(plain(at))} is no window: {form}"))
    for factor, level in where.entries.items() if isinstance(where, Branch) else ():
        if isinstance(level.node, Items):
            text = (
                "one level is meant, not a list; strike all cells (no where), and leave out those that are not to be "
                "by design.without"
            )
            found.append(Problem(level.node.place, f"faults.{name}.where.{factor}", text))
    return found


def _clashes(place: Place, root: Branch, known: Known, document: Document | None) -> list[Problem]:
    found = []
    if FACTOR in known.levels:
        text = f"a factor is called {FACTOR}, which is what the kinds of faults are called; rename it"
        found.append(Problem(place, "faults", text))
    doses = root.get("intervene")
    if doses is not None and plain(doses) is not None:
        text = "what is slowed (intervene) and what is struck would not be told apart; keep one of them"
        found.append(Problem(place, "faults", text))
    if document is not None and document.stages is not None:
        text = "a study of two stages is not struck: what it compares is known only once it is picked"
        found.append(Problem(place, "faults", text))
    design = root.get("design")
    kind = design.get("kind") if isinstance(design, Branch) else design
    if kind is not None and plain(kind) == "screening":
        text = "faults are no two levels of a factor that a screening could tell from others; write design: factorial"
        found.append(Problem(place, "faults", text))
    return found


def _where(options: FaultOptions | NoFaultOptions) -> dict[str, str]:
    return {factor: level_name(level) for factor, level in options.where.items()}


def _is_for(cell: Cell, options: FaultOptions | NoFaultOptions) -> bool:
    return all(cell.levels.get(factor) == level for factor, level in _where(options).items())


def struck(study: Study, faults: Faults) -> Study:
    """The study with each cell once for each kind that is for it, and unstruck where none is."""
    if not faults:
        return study
    cells: list[Cell] = []

    def add(cell: Cell, plan: FaultPlan | None) -> None:
        levels = {**cell.levels, FACTOR: NONE if plan is None else plan.fault.kind}
        cells.append(cell.model_copy(update={"index": len(cells), "levels": levels, "fault": plan}))

    for cell in study.cells:
        own = [(kind, options) for kind, options in faults if _is_for(cell, options)]
        for kind, options in own:
            add(cell, options.plan(kind) if kind is not None and isinstance(options, FaultOptions) else None)
        if not own:
            add(cell, None)
    names = dict.fromkeys(cell.levels[FACTOR] for cell in cells)
    factor = Factor(name=FACTOR, levels=tuple(Level(value=name) for name in names))
    return study.model_copy(update={"factors": (*study.factors, factor), "cells": tuple(cells)})
