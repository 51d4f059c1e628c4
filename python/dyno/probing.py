"""`dyno probe`: from a study, a small one of a single cell, with each intervention that can be made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from dyno.lab import Rooms
from dyno.model.base import UserError
from dyno.model.interventions import FACTOR as INTERVENTION
from dyno.model.interventions import NONE, DoseOptions
from dyno.model.study import Cell, DesignSpec, Factor, Replicates, Study
from dyno.model.units import format_duration
from dyno.study import intervene
from dyno.study.errors import listed, not_found

_LEAST_BLOCKS, _MOST_BLOCKS = 4, 60
_PRECISION = "1%"
"""Of each mean. A slope is the surer the more blocks there are, so that the budget is what usually ends a probe."""


@dataclass(frozen=True)
class Probe:
    """The study to be run, and which interventions are not in it, each with the reason."""

    study: Study
    left_out: tuple[tuple[str, str], ...]


def build_probe(
    study: Study,
    rooms: Rooms,
    *,
    cell: str | None,
    only: Sequence[str],
    doses: Mapping[str, str],
    budget: float,
    blocks: int | None = None,
) -> Probe:
    """The study of one cell.

    `cell` chooses it as `factor=level,factor=level`; it may be left out where there is one. `only` names the kinds, all
    that can be made if empty; `doses` has those of a kind, as `1 ms,2 ms,4 ms`. `budget` is in seconds; `blocks` are
    run whatever they take, where they are given. Raises UserError.
    """
    if study.stages is not None:
        raise UserError("stages: probe a cell of a study without stages; set the tuning that was picked with --set")
    chosen = _cell(study, cell)
    if "" in only:
        raise UserError(f"--only {','.join(only)}: a comma stands where no kind is before or after it")
    unknown = next((name for name in (*only, *doses) if name not in rooms.interventions), None)
    if unknown is not None:
        raise UserError(f"--only, --doses: {not_found('kind', unknown, sorted(rooms.interventions), 'kinds')}")
    if only and (idle := next((name for name in doses if name not in only), None)):
        raise UserError(f"--doses {idle}={doses[idle]}: {idle} is not among --only {','.join(only)}")
    kinds: list[tuple[str, DoseOptions]] = []
    left_out = []
    for name in sorted(rooms.interventions):
        if only and name not in only:
            continue
        kind = rooms.interventions[name]
        why = rooms.unfit(chosen, name) or kind.missing()
        if why is None and not only and (doubt := kind.doubtful(rooms.lives(chosen))):
            why = f"{doubt}; ask for it with --only {name}"
        if why is None:
            options = _options(kind.Options, name, doses.get(name))
            why = kind.refuses(options.doses[-1], rooms.lives(chosen))
        if why is not None:
            left_out.append((name, why))
        else:
            kinds.append((name, options))
    if not kinds:
        whys = "; ".join(f"{name}: {why}" for name, why in left_out)
        raise UserError(f"no intervention can be made in this cell here: {whys}")
    levels = {name: level for name, level in chosen.levels.items() if name != INTERVENTION}
    factors = [
        Factor(name=factor.name, levels=tuple(level for level in factor.levels if level.name == levels[factor.name]))
        for factor in study.factors
        if factor.name in levels
    ]
    rule = {
        "min": blocks or _LEAST_BLOCKS,
        "max": blocks or _MOST_BLOCKS,
        "precision": _PRECISION,
        "budget": None if blocks else f"{budget:.3f} s",
        "retries": study.replicates.retries,
    }
    bare = study.model_copy(
        update={
            "study": f"{study.study[:58]}-probe",
            "question": f"What does throughput hang on, with {_told(levels)}?"
            if levels
            else "What does throughput hang on?",
            "factors": tuple(factors),
            "cells": (chosen.model_copy(update={"index": 0, "levels": levels}),),
            "compare": None,
            "design": DesignSpec(),
            "replicates": Replicates.model_validate(rule),
            "targets": (),
            "published": None,
        }
    )
    return Probe(intervene(bare, kinds), tuple(left_out))


def _cell(study: Study, text: str | None) -> Cell:
    cells = [cell for cell in study.cells if cell.levels.get(INTERVENTION, NONE) == NONE]
    if text is None:
        if len(cells) > 1:
            raise UserError(f"--cell: choose one of {len(cells)}, such as --cell {_written(cells[0])}")
        return cells[0]
    wanted: dict[str, str] = {}
    for part in text.split(","):
        name, equals, level = part.partition("=")
        if not equals:
            raise UserError(f"--cell {text}: write factor=level, with commas between, such as {_written(cells[0])}")
        wanted[name.strip()] = level.strip()
    for name, level in wanted.items():
        factor = next((each for each in study.factors if each.name == name and name != INTERVENTION), None)
        if factor is None:
            known = [each.name for each in study.factors if each.name != INTERVENTION]
            raise UserError(f"--cell {text}: {not_found('factor', name, known, 'factors')}")
        names = [each.name for each in factor.levels]
        if level not in names:
            raise UserError(f"--cell {text}: {not_found('level', level, names, f'levels of {name}')}")
    found = [cell for cell in cells if wanted.items() <= cell.levels.items()]
    if not found:
        raise UserError(f"--cell {text}: this design has no such cell")
    if len(found) > 1:
        open_factors = [
            factor.name for factor in study.factors
            if factor.name not in (*wanted, INTERVENTION) and len({cell.levels[factor.name] for cell in found}) > 1
        ]  # fmt: skip
        raise UserError(f"--cell {text}: {len(found)} cells are like that; say also {listed(open_factors)}")
    return found[0]


def _written(cell: Cell) -> str:
    return ",".join(f"{name}={level}" for name, level in cell.levels.items() if name != INTERVENTION)


def _told(levels: Mapping[str, str]) -> str:
    return " ".join(f"{name}={level}" for name, level in levels.items())


def _options(options: type[DoseOptions], kind: str, doses: str | None) -> DoseOptions:
    if doses is None:
        return options()  # type: ignore[call-arg]  # each kind has doses of its own if none are given
    try:
        return options.model_validate({"doses": [dose.strip() for dose in doses.split(",")]})
    except ValidationError as error:
        said = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise UserError(f"--doses {kind}={doses}: {said}") from None


def told(probe: Probe) -> list[str]:
    """What is going to be run, in lines."""
    kinds = list(dict.fromkeys(cell.intervention.kind for cell in probe.study.cells if cell.intervention))
    budget = probe.study.replicates.budget
    within = f" within {format_duration(budget)}" if budget is not None else ""
    lines = [f"{', '.join(kinds)}: {len(probe.study.cells)} runs a block{within}"]
    return lines + [f"{name} is left out: {why}" for name, why in probe.left_out]
