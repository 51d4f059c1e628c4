"""Where the time of runs goes, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dyno.model.findings import StepTiming, Timing
from dyno.model.run import Outcome, RunRecord, Step
from dyno.model.study import Study

NOT_AROUND = (Step.DRIVE, Step.MEND, Step.PREPARE)  # the run itself, and what is done once for many


def timing(study: Study, runs: Sequence[RunRecord]) -> list[Timing]:
    """The steps of ok runs, of each level of the compared factor; of all together where nothing is compared.

    Of a staged study those of both stages. A level without an ok run is left out.
    """
    ok = [run for run in runs if run.outcome is Outcome.OK]
    if study.compare is None:
        return [_timing(None, ok)] if ok else []
    levels = [level.name for level in study.factor(study.compare).levels]
    of_level = [(level, [run for run in ok if run.levels.get(study.compare) == level]) for level in levels]
    return [_timing(level, of) for level, of in of_level if of]


def _timing(level: str | None, runs: Sequence[RunRecord]) -> Timing:
    seconds = [_by_step(run) for run in runs]
    steps = [(step, [of[step] for of in seconds if step in of]) for step in Step]
    around = [sum(taken for step, taken in of.items() if step not in NOT_AROUND) for of in seconds]
    return Timing(
        level=level,
        runs=len(runs),
        steps=tuple(_summary(step.value, taken) for step, taken in steps if taken),
        around=_summary("around the run", around),
    )


def _by_step(run: RunRecord) -> dict[Step, float]:
    """A step may have been taken several times."""
    taken: dict[Step, float] = {}
    for each in run.steps:
        taken[each.step] = taken.get(each.step, 0.0) + each.seconds
    return taken


def _summary(step: str, seconds: Sequence[float]) -> StepTiming:
    """Quantiles by linear interpolation between the values next to them (R. J. Hyndman, Y. Fan 1996, type 7)."""
    median, high = np.quantile(np.array(seconds), [0.5, 0.95])
    return StepTiming(step=step, n=len(seconds), median_s=float(median), p95_s=float(high))
