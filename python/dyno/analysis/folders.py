"""Two results folders, cell by cell."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.answers import Answers
from dyno.analysis.comparisons import no_means, not_over, unlike_cpus, unlike_loops, verdict_of
from dyno.analysis.published import ranks
from dyno.analysis.table import Table, compared, tabulate
from dyno.model import responses
from dyno.model.findings import FolderAgreement, FolderComparison, FolderVerdict
from dyno.model.run import Outcome, RunRecord
from dyno.model.study import Cell, Study

Levels = frozenset[tuple[str, str]]
BothAnswers = tuple[pl.DataFrame | None, pl.DataFrame | None]
NO_ANSWERS: BothAnswers = (None, None)


@dataclass(frozen=True)
class Side:
    """A cell in one of the folders: its values in ok runs, the loops that those were driven in, and on which CPUs.

    `not_over` says why these are not all that there is to say.
    """

    values: list[float]
    loops: Set[str]
    emulated: Set[bool]
    not_over: str
    answers: Answers
    cell: int


def compare_folders(
    study_a: Study,
    runs_a: Sequence[RunRecord],
    study_b: Study,
    runs_b: Sequence[RunRecord],
    answers: BothAnswers = NO_ANSWERS,
) -> list[FolderComparison]:
    """The first study's deciding response, second folder over first, in cells of the same levels, at its confidence.

    `answers` are what stores answered, of the first folder's runs and of the second's.

    Cells that only one side has are listed as such: the first folder's cells in their order, then the second's own.
    Raises ValueError for a run of a cell that its study has not.
    """
    response, confidence = study_a.replicates.of, study_a.replicates.confidence
    table_a, table_b = _tables(study_a, runs_a, study_b, runs_b, answers)
    sides_a, sides_b = _sides(study_a, table_a, response), _sides(study_b, table_b, response)
    remarks = [("first", _remarks(study_a, table_a)), ("second", _remarks(study_b, table_b))]
    levels_by_key = {_key(cell.levels): cell.levels for study in (study_a, study_b) for cell in study.cells}
    cells_a, cells_b = ({_key(cell.levels): cell for cell in study.cells} for study in (study_a, study_b))
    return [
        _compare(
            response,
            levels,
            sides_a.get(key),
            sides_b.get(key),
            confidence,
            differences(cells_a.get(key), cells_b.get(key)),
            "; ".join(f"{which}: {found[key]}" for which, found in remarks if found.get(key)),
            judged=study_a.judged and study_b.judged,
        )
        for key, levels in levels_by_key.items()
    ]


def agreement(
    study_a: Study,
    runs_a: Sequence[RunRecord],
    study_b: Study,
    runs_b: Sequence[RunRecord],
    answers: BothAnswers = NO_ANSWERS,
) -> FolderAgreement:
    """Of the first study's deciding response: the order of the cells, and the ratio of the figures over all of them.

    The folders' blocks are what is repeated on either side: the ratio is unpaired, over the cells that both have and
    whose runs in both are two or more and above 0. It is never called faster: the runs were not interleaved, and two
    drivers do not ask in the same way. Raises ValueError for a run of a cell that its study has not.
    """
    response, confidence = study_a.replicates.of, study_a.replicates.confidence
    table_a, table_b = _tables(study_a, runs_a, study_b, runs_b, answers)
    cells_a, cells_b = ({_key(cell.levels): cell for cell in study.cells} for study in (study_a, study_b))
    both = [(cells_a[key], cells_b[key]) for key in cells_a if key in cells_b]
    alike = [
        (a, b)
        for a, b in both
        if not unlike_loops(response, "", table_a.loops[a.index], "", table_b.loops[b.index])
        and not unlike_cpus(response, "", table_a.emulated[a.index], "", table_b.emulated[b.index])
        and not table_a.answers.why_unlike(response, a.index, table_b.answers, b.index)
        and not not_over(response, [(table_a, a.index, ""), (table_b, b.index, "")])
    ]
    measured = [(a, b) for a, b in alike if table_a.of(response, a.index) and table_b.of(response, b.index)]
    means = [
        (statistics.fmean(table_a.of(response, a.index)), statistics.fmean(table_b.of(response, b.index)))
        for a, b in measured
    ]
    above = [(a, b) for a, b in measured if min(*table_a.of(response, a.index), *table_b.of(response, b.index)) > 0]
    logs = [
        np.log(table.arrays(response, cells)[0])
        for table, cells in ((table_a, [a.index for a, _ in above]), (table_b, [b.index for _, b in above]))
    ]
    ratio, used = _over_all(logs[0], logs[1], confidence)
    ranked = ranks(means, confidence)
    name_a, name_b = _names(both)
    return FolderAgreement(
        response=response,
        a=name_a,
        b=name_b,
        ranks=ranked,
        ratio=ratio.ratio if ratio else None,
        ci=(ratio.lo, ratio.hi) if ratio else None,
        cells=used,
        of=len(both),
        sentence=sentences.folder_agreement(response, (name_a, name_b), ratio, used, len(both)),
    )


def _over_all(
    logs_a: NDArray[np.float64], logs_b: NDArray[np.float64], confidence: float
) -> tuple[stats.Ratio | None, int]:
    """The ratio over the cells that have enough runs on both sides, and how many these are."""
    found = [stats.pooled_mean(logs) for logs in (logs_a, logs_b)]
    common = sorted(set.intersection(*(set(side.columns) if side else set() for side in found)))
    a, b = (stats.pooled_mean(logs[:, common]) for logs in (logs_a, logs_b))
    if a is None or b is None:
        return None, 0
    return stats.difference_of_pooled(a, b).ratio(confidence), len(common)


def _tables(
    study_a: Study, runs_a: Sequence[RunRecord], study_b: Study, runs_b: Sequence[RunRecord], answers: BothAnswers
) -> tuple[Table, Table]:
    return (
        tabulate(study_a, compared(study_a, runs_a), answers=answers[0]),
        tabulate(study_b, compared(study_b, runs_b), answers=answers[1]),
    )


_TELLING = ("workload.driver", "workload.kind", "system.kind", "deployment")


def _names(both: Sequence[tuple[Cell, Cell]]) -> tuple[str, str]:
    """By what all cells of the one were asked for and all of the other otherwise, such as the driver."""
    for key in _TELLING:
        asked = [{str(_asked(side[place]).get(key)) for side in both} for place in (0, 1)]
        if len(asked[0]) == len(asked[1]) == 1 and asked[0] != asked[1] and "None" not in asked[0] | asked[1]:
            return asked[0].pop(), asked[1].pop()
    return "the first folder", "the second folder"


def unlike(a: Study, b: Study, *, settings: bool = False) -> list[str]:
    """In which keys two studies asked for different things; those of the system itself only with `settings`."""
    cells_a, cells_b = ({_key(cell.levels): cell for cell in study.cells} for study in (a, b))
    if cells_a.keys() != cells_b.keys():
        return ["their cells"]
    found = {key for levels in cells_a for key in differences(cells_a[levels], cells_b[levels])}
    if not settings:
        found = {key for key in found if not key.startswith("system.") or key == "system.kind"}
    return sorted(found | ({"observe"} if a.observe != b.observe else set()))


def differences(a: Cell | None, b: Cell | None) -> tuple[str, ...]:
    """The keys in which two cells of the same levels differ: they were asked for different things."""
    if a is None or b is None:
        return ()
    asked_a, asked_b = _asked(a), _asked(b)
    return tuple(key for key in sorted({**asked_a, **asked_b}) if asked_a.get(key) != asked_b.get(key))


def _asked(cell: Cell) -> dict[str, Any]:
    return _flat(cell.model_dump(mode="json", exclude={"index", "levels"}))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        # As a study file spells them.
        name = f"{prefix}{key}".replace("system.options.tables", "system.tables")
        name = name.replace("system.options", "system.config").replace(".options", "")
        leaves |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return leaves


def _key(levels: dict[str, str]) -> Levels:
    return frozenset(levels.items())


def _sides(study: Study, table: Table, response: str) -> dict[Levels, Side]:
    return {
        _key(cell.levels): Side(
            table.of(response, cell.index),
            table.loops[cell.index],
            table.emulated[cell.index],
            not_over(response, [(table, cell.index, "")]),
            table.answers,
            cell.index,
        )
        for cell in study.cells
    }


def _remarks(study: Study, table: Table) -> dict[Levels, str]:
    return {
        _key(cell.levels): sentences.unsteady(table.unsteady[cell.index], table.outcomes[cell.index][Outcome.OK])
        for cell in study.cells
    }


def _unlike(response: str, a: Side, b: Side) -> str:
    """Why no ratio of two cells would mean anything; empty where one does."""
    one, other = "the first folder", "the second"
    return (
        unlike_loops(response, one, a.loops, other, b.loops)
        or unlike_cpus(response, one, a.emulated, other, b.emulated)
        or a.answers.why_unlike(response, a.cell, b.answers, b.cell)
    )


def _mean(side: Side | None) -> float | None:
    return None if side is None or side.not_over else stats.describe(side.values).mean


def _compare(
    response: str,
    levels: dict[str, str],
    side_a: Side | None,
    side_b: Side | None,
    confidence: float,
    differs: tuple[str, ...],
    remark: str,
    *,
    judged: bool,
) -> FolderComparison:
    ratio, of_means = None, False
    a, b = (side.values if side else [] for side in (side_a, side_b))
    if side_a is None:
        why_not = "only the second folder has this cell"
    elif side_b is None:
        why_not = "only the first folder has this cell"
    elif unlike := _unlike(response, side_a, side_b):
        why_not = unlike
    elif side_a.not_over or side_b.not_over:
        why_not = side_a.not_over or side_b.not_over
    elif len(a) < 2 or len(b) < 2:
        why_not = sentences.too_few("the first folder", len(a), "the second", len(b))
    elif min([*a, *b]) <= 0:
        why_not = no_means(a, b, confidence)
        of_means = not why_not
        ratio = stats.fieller_ratio(a, b, confidence) if of_means else None
    else:
        why_not, ratio = "", stats.unpaired_ratio(a, b, confidence)
    verdict: FolderVerdict = verdict_of(ratio, judged=judged)
    if side_a is None or side_b is None:
        verdict = "only in the second" if side_a is None else "only in the first"
    return FolderComparison(
        response=response,
        unit=responses.lookup(response).unit,
        levels=levels,
        n_a=len(a),
        n_b=len(b),
        mean_a=_mean(side_a),
        mean_b=_mean(side_b),
        ratio=ratio.ratio if ratio else None,
        ci=(ratio.lo, ratio.hi) if ratio else None,
        method=ratio.method if ratio else "none",
        verdict=verdict,
        differs=differs,
        sentence=sentences.folder_comparison(response, levels, ratio, verdict, why_not, of_means=of_means),
        remark=remark,
    )
