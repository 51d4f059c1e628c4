"""Two results folders, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.comparisons import verdict_of
from dyno.analysis.table import tabulate
from dyno.model import responses
from dyno.model.findings import FolderComparison, FolderVerdict
from dyno.model.run import RunRecord
from dyno.model.stages import COMPARING
from dyno.model.study import Cell, Study

Levels = frozenset[tuple[str, str]]


def compare_folders(
    study_a: Study, runs_a: Sequence[RunRecord], study_b: Study, runs_b: Sequence[RunRecord]
) -> list[FolderComparison]:
    """The first study's deciding response, second folder over first, in cells of the same levels, at its confidence.

    Cells that only one side has are listed as such: the first folder's cells in their order, then the second's own.
    Raises ValueError for a run of a cell that its study has not.
    """
    response, confidence = study_a.replicates.of, study_a.replicates.confidence
    values_a, values_b = _values(study_a, runs_a, response), _values(study_b, runs_b, response)
    levels_by_key = {_key(cell.levels): cell.levels for study in (study_a, study_b) for cell in study.cells}
    cells_a, cells_b = ({_key(cell.levels): cell for cell in study.cells} for study in (study_a, study_b))
    return [
        _compare(
            response,
            levels,
            values_a.get(key),
            values_b.get(key),
            confidence,
            _differences(cells_a.get(key), cells_b.get(key)),
        )
        for key, levels in levels_by_key.items()
    ]


def _differences(a: Cell | None, b: Cell | None) -> tuple[str, ...]:
    """The keys in which two cells of the same levels differ: they were asked for different things."""
    if a is None or b is None:
        return ()
    asked_a, asked_b = (_flat(cell.model_dump(mode="json", exclude={"index", "levels"})) for cell in (a, b))
    return tuple(key for key in sorted({**asked_a, **asked_b}) if asked_a.get(key) != asked_b.get(key))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}".replace(".options", "")
        leaves |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return leaves


def _key(levels: dict[str, str]) -> Levels:
    return frozenset(levels.items())


def _values(study: Study, runs: Sequence[RunRecord], response: str) -> dict[Levels, list[float]]:
    # Of a staged study those that were compared: runs that picked a cell look better than it is.
    table = tabulate(study, runs if study.stages is None else [run for run in runs if run.slot.stage == COMPARING])
    return {_key(cell.levels): table.of(response, cell.index) for cell in study.cells}


def _compare(
    response: str,
    levels: dict[str, str],
    a: list[float] | None,
    b: list[float] | None,
    confidence: float,
    differs: tuple[str, ...],
) -> FolderComparison:
    ratio, why_not = None, ""
    if a is None:
        why_not = "only the second folder has this cell"
    elif b is None:
        why_not = "only the first folder has this cell"
    elif min([*a, *b], default=1.0) <= 0:
        why_not = "a ratio needs values above 0, and some are not"
    elif len(a) < 2 or len(b) < 2:
        why_not = sentences.too_few("the first folder", len(a), "the second", len(b))
    else:
        ratio = stats.unpaired_ratio(a, b, confidence)
    verdict: FolderVerdict = verdict_of(ratio)
    if a is None or b is None:
        verdict = "only in the second" if a is None else "only in the first"
    return FolderComparison(
        response=response,
        unit=responses.lookup(response).unit,
        levels=levels,
        n_a=len(a or ()),
        n_b=len(b or ()),
        mean_a=stats.describe(a or ()).mean,
        mean_b=stats.describe(b or ()).mean,
        ratio=ratio.ratio if ratio else None,
        ci=(ratio.lo, ratio.hi) if ratio else None,
        method=ratio.method if ratio else "none",
        verdict=verdict,
        differs=differs,
        sentence=sentences.folder_comparison(response, levels, ratio, verdict, why_not),
    )
