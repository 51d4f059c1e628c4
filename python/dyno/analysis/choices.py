"""What stage one of a study picked, recomputed from its runs, and what became of the picked in stage two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dyno import stats
from dyno.analysis.sentences import levels, listed, probability
from dyno.analysis.table import Table, tabulate
from dyno.model import responses
from dyno.model.findings import Candidate, Choice, Comparison, Interval, format_ratio, format_share
from dyno.model.run import RunRecord
from dyno.model.stages import COMPARING, PICKING, choices, terms
from dyno.model.stages import Choice as Open
from dyno.model.study import Study
from dyno.model.units import counted


def of_stage(runs: Sequence[RunRecord], stage: int) -> list[RunRecord]:
    """The runs of one stage."""
    return [run for run in runs if run.slot.stage == stage]


def choose(study: Study, runs: Sequence[RunRecord]) -> list[Choice]:
    """Every choice of a staged study. Only runs of stage one choose; those of stage two say how it turned out.

    Raises ValueError for a run of a cell that the study has not.
    """
    first, second = (tabulate(study, of_stage(runs, stage)) for stage in (PICKING, COMPARING))
    # Blocks in which every run failed count too: a cell is out of the running by its last ones.
    first.blocks = max((run.slot.block + 1 for run in of_stage(runs, PICKING)), default=1)
    response = study.replicates.of
    found = choices(study)
    groups = [first.arrays(response, [cell.index for cell in each.cells])[0] for each in found if len(each.cells) > 1]
    picks = iter(stats.pick_best(groups, **terms(study)))
    alone = stats.Pick(0, (None,), {})
    return [_choice(study, each, next(picks) if len(each.cells) > 1 else alone, first, second) for each in found]


def _choice(study: Study, of: Open, pick: stats.Pick, first: Table, second: Table) -> Choice:
    response = study.replicates.of
    best = None if pick.best is None else of.cells[pick.best]
    names = [cell.levels[of.factor] for cell in of.cells]
    before = first.of(response, best.index) if best else []
    after = second.of(response, best.index) if best else []
    optimism, interval = _optimism(study, before, after)
    choice = Choice(
        factor=of.factor,
        within=of.within,
        cell=best.index if best else None,
        chosen=None if pick.best is None else names[pick.best],
        runner_up=next((names[place] for place in pick.rivals), None),
        shown=study.judged and pick.could_be == 1 and bool(pick.rivals),
        could_be=pick.could_be,
        candidates=tuple(
            _candidate(cell.index, name, len(first.of(response, cell.index)), place, pick)
            for place, (cell, name) in enumerate(zip(of.cells, names, strict=True))
        ),
        mean=None if pick.best is None else pick.means[pick.best],
        mean_compared=_geometric(after),
        optimism=optimism,
        optimism_ci=interval,
        sentence="",
    )
    return choice.model_copy(update={"sentence": _sentence(study, choice)})


def _candidate(cell: int, level: str, n: int, place: int, pick: stats.Pick) -> Candidate:
    mean, rival = pick.means[place], pick.rivals.get(place)
    if rival is None:
        chosen = place == pick.best
        standing = "chosen" if chosen else "out: its last runs failed"
        return Candidate(cell=cell, level=level, n=n, mean=mean, standing=standing)
    return Candidate(
        cell=cell,
        level=level,
        n=n,
        mean=mean,
        ratio=rival.ratio,
        pairs=rival.n,
        ci=None if rival.lo is None or rival.hi is None else (rival.lo, rival.hi),
        p_adjusted=rival.p,
        standing="shown to be worse" if rival.worse else "could be the best",
    )


def _optimism(study: Study, before: Sequence[float], after: Sequence[float]) -> tuple[float | None, Interval | None]:
    """How many times better stage one looked than stage two was, above 1 whichever way is better."""
    if not before or not after or min(*before, *after) <= 0:
        return None, None
    if responses.lookup(study.replicates.of).better == "lower":
        before, after = after, before
    ratio = stats.unpaired_ratio(after, before, study.replicates.confidence)
    if ratio is None:
        return math.exp(_mean_log(before) - _mean_log(after)), None
    return ratio.ratio, (ratio.lo, ratio.hi)


def _geometric(values: Sequence[float]) -> float | None:
    return math.exp(_mean_log(values)) if values and min(values) > 0 else None


def _mean_log(values: Sequence[float]) -> float:
    return float(np.mean(np.log(values)))


def _sentence(study: Study, choice: Choice) -> str:
    title = responses.lookup(study.replicates.of).title
    where = f"With {levels(choice.within)}, " if choice.within else ""
    factor, chosen = choice.factor, choice.chosen
    if chosen is None:
        return f"{where}nothing could be picked: no {factor} has an ok run of late."
    if len(choice.candidates) == 1:
        return f"{where}{factor} {chosen} is the only one there is."
    runner = next((each for each in choice.candidates if each.level == choice.runner_up), None)
    if runner is None:
        return f"{where}{factor} {chosen} is the only one that did not fail."
    if runner.ratio is None or runner.ci is None:
        size = f"not to be compared with the runner-up {runner.level} yet"
    else:
        p = "no p" if runner.p_adjusted is None else f"adjusted {probability(runner.p_adjusted)}"
        n = f"n = {counted(runner.pairs or 0, 'pair')}"
        size = f"{format_ratio(runner.ratio, runner.ci)} the {title} of the runner-up {runner.level} ({p}, {n})"
    if not study.judged:
        return f"{where}{factor} {chosen} was picked, and nothing is judged at scale smoke: {size}."
    if choice.shown:
        return f"{where}{factor} {chosen} is shown to be best: {size}."
    among = f"chosen among {choice.could_be} that could be"
    return f"{where}{factor} {chosen} is not shown to be best, {among}: {size}."


def with_tuning(study: Study, comparison: Comparison, found: Sequence[Choice]) -> str:
    """The sentence of a comparison, and which levels were picked for its two sides."""
    picked = {frozenset(choice.within.items()): choice for choice in found}
    sides = []
    for level in (comparison.a, comparison.b):
        choice = picked[frozenset({**comparison.within, comparison.factor: level}.items())]
        unsure = f" (one of {choice.could_be} that could be the best)" if choice.could_be > 1 else ""
        sides.append(f"{choice.chosen or 'none'}{unsure} for {level}")
    assert study.stages is not None
    return f"{comparison.sentence} Picked as best {study.stages.best}: {', '.join(sides)}."


def stage_notes(study: Study, runs: Sequence[RunRecord], found: Sequence[Choice], ended: str | None) -> Iterator[str]:
    """What a reader must know of the two stages."""
    assert study.stages is not None
    tuned, response = study.stages.best, responses.lookup(study.replicates.of)
    first, second = (len(of_stage(runs, stage)) for stage in (PICKING, COMPARING))
    if not second and ended is None:
        yield f"Stage one is not over: which {tuned} is the best may still change, and nothing was compared yet."
    else:
        yield (
            f"The best {tuned} was picked on the {counted(first, 'run')} of stage one; cells and comparisons are of "
            f"the {counted(second, 'run')} of stage two alone: no run is in both, so luck in picking decides nothing."
        )
    picked = [choice for choice in found if choice.chosen is not None and len(choice.candidates) > 1]
    unsure = sum(choice.could_be > 1 for choice in picked)
    if unsure:
        yield (
            f"The best {tuned} is not shown to be the best in {unsure} of {counted(len(picked), 'choice')}: what is "
            "compared there is one that could be, and another may be better."
        )
    lost = [levels(choice.within) for choice in found if choice.chosen is None]
    if lost:
        yield f"No {tuned} could be picked with {listed(lost)}: all failed in stage one, so none is compared."
    yield from _optimism_told(response.title, picked)
    strays = len(of_stage(runs, COMPARING)) - len(compared_runs(runs, found))
    if strays:
        yield (
            f"{counted(strays, 'run')} of stage two are of cells that stage one, as this dyno reads it, did not pick; "
            "they are in no figure."
        )


def _optimism_told(title: str, picked: Sequence[Choice]) -> Iterator[str]:
    told = [choice.optimism for choice in picked if choice.optimism is not None]
    if told:
        mean = math.exp(_mean_log(told)) - 1
        way = "better" if mean >= 0 else "worse"
        yield (
            f"In stage one the picked looked {format_share(abs(mean))} {way} in {title} than in stage two, on average "
            f"of {counted(len(told), 'choice')}. What is picked for being best was in part lucky, and a machine may "
            "change between the stages."
        )


def compared_runs(runs: Sequence[RunRecord], found: Sequence[Choice]) -> list[RunRecord]:
    """The runs of stage two, of what was picked."""
    cells = {choice.cell for choice in found}
    return [run for run in of_stage(runs, COMPARING) if run.slot.cell in cells]
