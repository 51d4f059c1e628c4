"""Whether a new version is slower than a base: for the CI of who builds what is measured.

Three answers, and each has to be shown. "Slower" is a slow-down of at least the limit in some cell, beyond all cells
together (Holm). "Not slower" is its absence in every cell, which needs no correction: all have to be shown (R. L.
Berger, Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 1982). Otherwise the data cannot
tell, which is no reason to let a change pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.comparisons import not_over
from dyno.analysis.folders import unlike
from dyno.analysis.table import Table, compared, tabulate
from dyno.model import responses
from dyno.model.base import UserError
from dyno.model.findings import format_ratio, format_share
from dyno.model.gate import Gate, GateCell, GateVerdict
from dyno.model.looks import looks
from dyno.model.pairs import Pair, pairs
from dyno.model.responses import Better
from dyno.model.run import RunRecord
from dyno.model.study import Study
from dyno.model.units import counted

FEWEST_SESSIONS = 5
"""Sessions of the base that tell how much one session differs from the next on a machine."""


@dataclass(frozen=True)
class _Found:
    levels: Mapping[str, str]
    shift: stats.LogShift | None
    """Of the logs of the slow-down: above 0 is slower."""
    why: str = ""


def gate_blocks(study: Study, runs: Sequence[RunRecord], *, slower: float, answers: pl.DataFrame | None = None) -> Gate:
    """Judge an interleaved study, whose compared factor has the base first. `slower` is a share.

    `answers` are what stores answered in its runs: where they answered otherwise, which is slower is not asked.
    """
    table = tabulate(study, runs, answers=answers)
    found = [
        _of_pair(study, table, pair) if study.judged else _Found(pair.within, None, sentences.NOT_JUDGED)
        for pair in pairs(study)
    ]
    return _gate(study, found, slower, interleaved=True)


def _of_pair(study: Study, table: Table, pair: Pair) -> _Found:
    response = study.replicates.of
    a, b = table.in_blocks(response, pair.a.index), table.in_blocks(response, pair.b.index)
    common = sorted(a.keys() & b.keys())
    values_a, values_b = [a[block] for block in common], [b[block] for block in common]
    if _given(response, [(table, pair.a.index), (table, pair.b.index)]):
        return _Found(pair.within, None, sentences.given(response))
    if why := table.answers.why_unlike(response, pair.a.index, table.answers, pair.b.index):
        return _Found(pair.within, None, why)
    if why := not_over(response, [(table, pair.a.index, pair.level_a), (table, pair.b.index, pair.level_b)]):
        return _Found(pair.within, None, why)
    if len(common) < 2:
        return _Found(pair.within, None, sentences.too_few(pair.level_a, len(a), pair.level_b, len(b)))
    if min([*values_a, *values_b]) <= 0:
        return _Found(pair.within, None, "a ratio needs values above 0, and some are not")
    shift = stats.paired_shift(*_towards_slower(response, values_a, values_b))
    when = looks(study)
    widening = stats.widening_of_ratios(when.comparisons, when.first, when.last)
    return _Found(pair.within, shift.widened(widening) if shift else None)


def _given(response: str, cells: Iterable[tuple[Table, int]]) -> bool:
    """Whether it is a rate that was asked for in one of the cells: that says nothing of what the system can do."""
    return responses.lookup(response).of_pace and any(table.paces.get(cell) == "rate" for table, cell in cells)


def _towards_slower(response: str, a: Sequence[float], b: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The sides in the order in which b / a above 1 is a slow-down of b."""
    return (a, b) if responses.lookup(response).better == "lower" else (b, a)


def gate_sessions(
    base: Sequence[tuple[Study, Sequence[RunRecord]]],
    new: tuple[Study, Sequence[RunRecord]],
    *,
    slower: float,
    answers: Sequence[pl.DataFrame | None] = (),
) -> Gate:
    """Judge a results folder against earlier ones of the same machine, each a session of its own.

    The runs of two folders were not interleaved: what differs between sessions of a machine, whatever is measured,
    stands in the difference. It is estimated from the sessions of the base, each of which gives one mean of logs, and
    the new session is another draw of the same kind: Student's interval of a prediction. `answers` are what stores
    answered in the runs of each of the base and then of the new one; none are looked at where they are left out.
    """
    study, runs = new
    response = study.replicates.of
    answered = list(answers) or [None] * (len(base) + 1)
    table = tabulate(study, compared(study, runs), answers=answered[-1])
    tables = [
        (each, tabulate(each, compared(each, of), answers=theirs))
        for (each, of), theirs in zip(base, answered[:-1], strict=True)
    ]
    found = []
    for cell in study.cells:
        places = [(of, other.index) for each, of in tables for other in each.cells if other.levels == cell.levels]
        sessions = [values for of, index in places if (values := of.of(response, index))]
        values = table.of(response, cell.index)
        if not study.judged:
            found.append(_Found(cell.levels, None, sentences.NOT_JUDGED))
        elif _given(response, [(table, cell.index), *places]):
            found.append(_Found(cell.levels, None, sentences.given(response)))
        elif (
            why := next(
                (
                    told
                    for of, index in places
                    if (told := of.answers.why_unlike(response, index, table.answers, cell.index))
                ),
                "",
            )
        ) or (why := not_over(response, [(table, cell.index, ""), *((of, index, "the base") for of, index in places)])):
            found.append(_Found(cell.levels, None, why))
        elif len(sessions) < FEWEST_SESSIONS:
            why = (
                f"{counted(len(sessions), 'session')} of the base: how much one session of this machine "
                f"differs from the next takes {FEWEST_SESSIONS} to know"
            )
            found.append(_Found(cell.levels, None, why))
        elif not values or min([*values, *(value for session in sessions for value in session)]) <= 0:
            found.append(_Found(cell.levels, None, "a ratio needs values above 0, and some are missing or are not"))
        else:
            sign = 1 if responses.lookup(response).better == "lower" else -1
            means = [sign * _mean_log(session) for session in sessions]
            found.append(_Found(cell.levels, stats.next_shift(means, sign * _mean_log(values))))
    return _gate(study, found, slower, interleaved=False)


def _unlike(response: str, base: Iterable[tuple[Table, int]], new: tuple[Table, int]) -> str:
    """Why the cells' answers to queries are not the same; empty where they are, or where there are none."""
    table, cell = new
    found = (of.answers.why_unlike(response, index, table.answers, cell) for of, index in base)
    return next((why for why in found if why), "")


class Session(NamedTuple):
    """A results folder, by the name that it was given by."""

    name: str
    study: Study
    runs: Sequence[RunRecord]
    answers: pl.DataFrame | None = None


def refuse_unlike(asked: Study, base: Sequence[Session], new: Session) -> None:
    """Raise UserError unless each is another session of what is asked.

    The workload and the state of the host have to be those of the study. The system's own settings are to be alike
    among the sessions of the base; those of the new one may differ, since they may be what changed.
    """
    for each in (*base, new):
        if each.study.study != asked.study:
            raise UserError(f"{each.name} is of study {each.study.study}, and the study file is of {asked.study}")
        if each.study.pilot:
            raise UserError(f"{each.name} is a pilot: a few blocks to plan by, and no session of the study")
        if differs := unlike(asked, each.study):
            raise UserError(
                f"{each.name} is not what the study file asks: they differ in {sentences.listed(differs)}; give the "
                "--scale and --set that the folders were run with"
            )
        if differs := [] if each is new else unlike(base[0].study, each.study, settings=True):
            raise UserError(f"{each.name} and {base[0].name} differ in {sentences.listed(differs)}: they are one base")
    of_run: dict[int, int] = {}
    sessions = (*base, new)
    for place, each in enumerate(sessions):
        for run in each.runs:
            other = of_run.setdefault(run.started_ns, place)
            if other != place:
                raise UserError(f"{each.name} and {sessions[other].name} hold the same runs: each session counts once")


def _mean_log(values: Sequence[float]) -> float:
    return math.fsum(map(math.log, values)) / len(values)


def cannot_tell(study: Study, why: str, *, slower: float) -> Gate:
    """For folders that say nothing of each other."""
    return _gate(study, [_Found(cell.levels, None, why) for cell in study.cells], slower, interleaved=False)


def _gate(study: Study, found: Sequence[_Found], slower: float, *, interleaved: bool) -> Gate:
    confidence, limit = study.replicates.confidence, math.log1p(slower)
    alpha = 1 - confidence
    shown = stats.holm([each.shift.p_above(limit) if each.shift else None for each in found])
    absent = [1 - each.shift.p_above(limit) if each.shift else None for each in found]
    better = responses.lookup(study.replicates.of).better
    cells = tuple(_cell(each, p, q, alpha, confidence, better) for each, p, q in zip(found, shown, absent, strict=True))
    verdicts = {cell.verdict for cell in cells}
    verdict: GateVerdict = "cannot tell"
    if "slower" in verdicts:
        verdict = "slower"
    elif verdicts == {"not slower"}:
        verdict = "not slower"
    return Gate(
        response=study.replicates.of,
        limit=slower,
        confidence=confidence,
        verdict=verdict,
        sentence=_sentence(study, cells, verdict, slower),
        interleaved=interleaved,
        cells=cells,
    )


def _cell(found: _Found, p: float | None, q: float | None, alpha: float, confidence: float, better: Better) -> GateCell:
    if found.shift is None or p is None or q is None:
        return GateCell(levels=dict(found.levels), n=0, verdict="cannot tell", why=found.why)
    slow = found.shift.ratio(confidence)
    verdict: GateVerdict = "slower" if p <= alpha else "not slower" if q <= alpha else "cannot tell"
    return GateCell(
        levels=dict(found.levels),
        slowdown=slow.ratio,
        ci=(slow.lo, slow.hi),
        ratio=slow.ratio if better == "lower" else 1 / slow.ratio,
        ratio_ci=(slow.lo, slow.hi) if better == "lower" else (1 / slow.hi, 1 / slow.lo),
        n=found.shift.n,
        p_slower=p,
        p_not_slower=q,
        verdict=verdict,
        why="the interval holds the limit" if verdict == "cannot tell" else "",
    )


def _sentence(study: Study, cells: Sequence[GateCell], verdict: GateVerdict, slower: float) -> str:
    title, limit = responses.lookup(study.replicates.of).title, format_share(slower)
    told = sentences.listed([_told(cell) for cell in cells if cell.verdict == verdict], 3)
    if verdict == "slower":
        return f"Slower by {limit} or more in {title}: {told}."
    if verdict == "not slower":
        return f"A slow-down of {limit} or more in {title} is shown to be absent in {_cells(len(cells))}: {told}."
    return f"The data cannot tell whether {title} became slower by {limit}: {told}."


def _cells(count: int) -> str:
    return "the only cell" if count == 1 else f"all {count:,} cells"


def _told(cell: GateCell) -> str:
    where = sentences.levels(cell.levels) or "the only cell"
    if cell.slowdown is None or cell.ratio is None or cell.ratio_ci is None:
        return f"{where}: {cell.why}"
    times = format_share(max(cell.slowdown, 1 / cell.slowdown) - 1)
    pace = f"{times} {'slower' if cell.slowdown > 1 else 'faster'}"
    return f"{where}: {format_ratio(cell.ratio, cell.ratio_ci)} that of the base ({pace}, n = {cell.n})"
