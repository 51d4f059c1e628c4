"""The study's question, answered in a sentence or two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from dyno.analysis import sentences
from dyno.model import responses
from dyno.model.findings import CellSummary, Choice, Comparison, OverallRatio, Pace, format_estimate
from dyno.model.run import Outcome, RunRecord
from dyno.model.study import Study
from dyno.model.units import counted

# What a clause begins with, else a level, whose spelling means something.
_OURS = ("no difference", "a difference", "the rate of ")
OF_UNLIKE_CPUS = (
    "Which is the fastest is open: some of the systems had CPUs that are emulated by software and others real ones, "
    "and times of the two are not compared."
)
MANY = 6  # combinations; of more, what all say together is the answer, beside how many say so by themselves
MOST_PAIRS = 3  # more clauses than this are not an answer any more but a table
MOST_OF_CAUSE = 200  # characters; the run's own record has all of it
# A command that went wrong, which may be long, and what it said; of several that called each other the last one told.
_SAID = re.compile(r".*ended with status -?\d+[^:]*: (?P<why>.+?)(; the command was `[^`]*`)?")
_COMMAND = re.compile(r"`(?P<program>[^\s`]+)[^`]*` (?P<why>.+)")


def no_ok_run(runs: Sequence[RunRecord]) -> str:
    """That there is nothing to answer by, and what went wrong most often."""
    nothing = "No answer: there is no ok run."
    causes = Counter(telling(run.cause) for run in runs if run.outcome is not Outcome.OK and run.cause)
    if not causes:
        return nothing
    cause, count = causes.most_common(1)[0]
    which = (
        "The only run" if len(runs) == 1 else f"{'All' if count == len(runs) else f'{count:,} of'} {len(runs):,} runs"
    )
    return f"{nothing} {which}: {cause}{'' if cause.endswith(('.', '!', '?', '…')) else '.'}"


def telling(cause: str) -> str:
    """The part of a cause that tells most: what a command said, not its words; in one line of a reader's length."""
    line = " ".join(cause.split())
    if found := _SAID.fullmatch(line):
        line = found["why"]
    elif found := _COMMAND.fullmatch(line):
        line = f"{found['program']} {found['why']}"
    if len(line) <= MOST_OF_CAUSE:
        return line
    return f"… {line[-MOST_OF_CAUSE:].partition(' ')[2] or line[-MOST_OF_CAUSE:]}"


def not_judged(runs: Sequence[RunRecord]) -> str:
    """The answer at scale smoke."""
    ok = sum(run.outcome is Outcome.OK for run in runs)
    number = f"All {len(runs):,} runs are ok" if ok == len(runs) > 1 else f"Ok: {ok:,} of {counted(len(runs), 'run')}"
    return f"Not judged: {sentences.NOT_JUDGED}. {number}."


def answer(
    cells: Sequence[CellSummary],
    comparisons: Sequence[Comparison],
    pooled: Sequence[OverallRatio],
    response: str,
    paces: Mapping[int, Pace],
) -> str:
    """From the comparisons of the deciding response; from its cells where nothing is compared. Some run is ok.

    `pooled` are its ratios over many combinations together.

    `paces` has the cells whose throughput was not the system's alone.
    """
    if comparisons:
        return _from_comparisons(comparisons, {each.b: each for each in pooled if not each.where})
    return _from_cells(cells, response, paces)


def staged_answer(study: Study, compared: str, chosen: Sequence[Choice], *, any_ok: bool) -> str:
    """The answer of stage two, and what was compared there."""
    assert study.stages is not None, "only a staged study has picked first"
    if not any_ok:
        return "No answer yet: what is picked in stage one has not been compared."
    tuned = [choice for choice in chosen if len(choice.candidates) > 1]
    doubtful = sum(not choice.shown and choice.could_be > 1 for choice in tuned)
    shown = "picked as its best, on other runs"
    if doubtful:
        shown = (
            f"picked in stage one, which is not shown to be the best in {doubtful} of {counted(len(tuned), 'choice')}"
        )
    # Where the answer is lines, this is one more.
    between = "\n" if "\n" in compared else " "
    return f"{compared}{between}Each {study.compare} is at the {study.stages.best} {shown}."


def _from_comparisons(comparisons: Sequence[Comparison], pooled: Mapping[str, OverallRatio]) -> str:
    """Each further level against the first that was declared; the rest stands in the table of comparisons."""
    first = comparisons[0].a
    by_level: dict[str, list[Comparison]] = {}
    for found in comparisons:
        if found.a == first:
            by_level.setdefault(found.b, []).append(found)
    clauses = [
        sentences.over_all(pooled[level], found) if level in pooled and len(found) > MANY else sentences.of_pair(found)
        for level, found in by_level.items()
    ]
    text = "; ".join(clauses[:MOST_PAIRS])
    more = len(clauses) - MOST_PAIRS
    rest = (
        f" {counted(more, 'further level')} {'stands' if more == 1 else 'stand'} in the comparisons."
        if more > 0
        else ""
    )
    return f"{sentences.capital(text) if text.startswith(_OURS) else text}.{rest}"


def _from_cells(cells: Sequence[CellSummary], response: str, paces: Mapping[int, Pace]) -> str:
    known = responses.lookup(response)
    rated = [cell for cell in cells if cell.n and paces.get(cell.cell) == "rate"] if known.of_pace else []
    if rated:
        which = "" if len(cells) == 1 else f" in {len(rated)} of {len(cells)} cells"
        sizes = [format_estimate(cell.mean, cell.ci) for cell in rated if cell.mean is not None]
        told = sentences.listed(list(dict.fromkeys(sizes)))
        return (
            f"The rate was given, and reached{which}: {known.title} {told} {known.unit} says nothing of what the "
            "system can do. Look at the latencies."
        )
    measured = [(cell.mean, cell) for cell in cells if cell.mean is not None]
    if not measured:
        return f"The mean {known.title} is known of no cell."
    choose = max if known.better == "higher" else min
    mean, best = choose(measured, key=lambda entry: entry[0])
    size = f"{format_estimate(mean, best.ci)} {known.unit} (n = {counted(best.n, 'run')})"
    unsure = "" if best.ci else " One run says nothing of its own precision."
    if len(cells) == 1:
        return f"{known.title[0].upper()}{known.title[1:]} is {size}.{unsure}"
    which = "highest" if known.better == "higher" else "lowest"
    rivals = sum(cell is not best and _overlap(cell, best) for cell in cells)
    if rivals:
        unsure += f" The intervals of {counted(rivals, 'other cell')} overlap it, so another may be the best."
    return f"The {which} mean {known.title} is that of {sentences.levels(best.levels)}: {size}.{unsure}"


def _overlap(one: CellSummary, other: CellSummary) -> bool:
    return bool(one.ci and other.ci and one.ci[0] <= other.ci[1] and other.ci[0] <= one.ci[1])
