"""`intervene`: what is done to a resource on purpose, as a factor that the study has besides its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dyno.model.base import level_name
from dyno.model.interventions import FACTOR, NONE, Dose, DoseOptions
from dyno.model.study import Cell, Factor, Level, Study
from dyno.study.document import Document
from dyno.study.errors import Place, Problem, not_found, shown
from dyno.study.expectations import Known
from dyno.study.tree import Branch, Entry, Leaf, Node, plain
from dyno.study.validate import validate

Doses = Sequence[tuple[str, DoseOptions]]
"""Each kind with its options."""


def read_interventions(
    root: Branch,
    kinds: Mapping[str, type[DoseOptions]],
    known: Known,
    document: Document | None,
    problems: list[Problem],
) -> Doses:
    """`{kind: {options}}`, or the name of one kind with the options that it has if left out."""
    node = root.get("intervene")
    if node is None or plain(node) is None:
        return ()
    key_place = root.entries["intervene"].key_place
    if isinstance(node, Leaf):
        node = Branch({str(plain(node)): Entry(node.place, Leaf(None, node.place))}, node.place)
    if not isinstance(node, Branch) or not node.entries:
        text = f"should map kinds to their options, such as {{sync-delay: {{}}}}, not {shown(plain(node))}"
        problems.append(Problem(node.place, "intervene", text))
        return ()
    problems.extend(_clashes(key_place, known, document, root.get("design")))
    found = []
    for name, entry in node.entries.items():
        if name not in kinds:
            text = not_found("kind", name, sorted(kinds), "kinds")
            problems.append(Problem(entry.key_place, f"intervene.{name}", text))
            continue
        given: Node = entry.node if plain(entry.node) is not None else Branch({}, entry.node.place)
        options = validate(kinds[name], root, ("intervene", name), given, problems)
        if options is not None:
            where = {factor: level_name(level) for factor, level in options.where.items()}
            known.chosen(where, root, ("intervene", name, "where"), problems)
            found.append((name, options))
    return found


def _clashes(place: Place, known: Known, document: Document | None, design: Node | None) -> list[Problem]:
    found = []
    if FACTOR in known.levels:
        text = f"a factor is called {FACTOR}, which is what the doses are called; rename it"
        found.append(Problem(place, "intervene", text))
    if document is not None and document.stages is not None:
        text = "a study of two stages is not intervened in: what it compares is known only once it is picked"
        found.append(Problem(place, "intervene", text))
    kind = design.get("kind") if isinstance(design, Branch) else design
    if kind is not None and plain(kind) == "screening":
        text = "doses are no two levels of a factor that a screening could tell from others; write design: factorial"
        found.append(Problem(place, "intervene", text))
    return found


def intervene(study: Study, doses: Doses) -> Study:
    """The study with each cell once without an intervention, then once at each dose of each kind that is for it."""
    if not doses:
        return study
    cells: list[Cell] = []

    def add(cell: Cell, dose: Dose | None) -> None:
        levels = {**cell.levels, FACTOR: NONE if dose is None else dose.level}
        cells.append(cell.model_copy(update={"index": len(cells), "levels": levels, "intervention": dose}))

    for cell in study.cells:
        add(cell, None)
        for kind, options in doses:
            where = {factor: level_name(level) for factor, level in options.where.items()}
            if all(cell.levels.get(factor) == level for factor, level in where.items()):
                for dose in options.steps(kind):
                    add(cell, dose)
    names = dict.fromkeys(cell.levels[FACTOR] for cell in cells)
    factor = Factor(name=FACTOR, levels=tuple(Level(value=name) for name in names))
    return study.model_copy(update={"factors": (*study.factors, factor), "cells": tuple(cells)})
