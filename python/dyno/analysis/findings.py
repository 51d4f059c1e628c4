"""From runs to findings, a line a stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from dyno.analysis import answers as of_queries
from dyno.analysis import claims, effects, observations, per_op, published, query_batches, targets
from dyno.analysis.answer import OF_UNLIKE_CPUS, answer, no_ok_run, not_judged, staged_answer
from dyno.analysis.cells import summarise
from dyno.analysis.choices import choose, compared_runs, of_stage, stage_notes, with_tuning
from dyno.analysis.comparisons import compare, mixes_cpus
from dyno.analysis.confounders import beside, confounders, of_pairs
from dyno.analysis.database import database
from dyno.analysis.decisions import decisions, headline
from dyno.analysis.drift import drift
from dyno.analysis.failover import failovers, not_over
from dyno.analysis.hot_spots import hot_spots
from dyno.analysis.interventions import hangs_on, probed
from dyno.analysis.laws import operational_laws
from dyno.analysis.notes import notes
from dyno.analysis.overall import overall
from dyno.analysis.removal import removals
from dyno.analysis.sentences import listed
from dyno.analysis.shape import shapes
from dyno.analysis.switches import switches
from dyno.analysis.table import Table, response_order, tabulate
from dyno.analysis.variation import explain
from dyno.analysis.verdicts import verdicts
from dyno.model.findings import (
    CellSummary,
    Choice,
    ClaimResult,
    Comparison,
    Confounder,
    DecisionTable,
    FactorEffect,
    Failure,
    Findings,
    Laws,
    OverallRatio,
    Probed,
)
from dyno.model.hot_spots import Rule
from dyno.model.run import Outcome, RunRecord
from dyno.model.stages import PICKING, comparing, picking
from dyno.model.study import Study
from dyno.model.units import counted
from dyno.model.usage import Usage, foremost

PILOT = "No answer: this is a pilot, a few blocks to plan the study by."


class _Sampled(NamedTuple):
    """Call stacks, the rules that are asked of them first, and what was counted of transactions."""

    stacks: pl.DataFrame | None
    rules: Sequence[Rule]
    counts: pl.DataFrame | None
    answers: pl.DataFrame | None


def analyse(
    study: Study,
    runs: Sequence[RunRecord],
    *,
    ended: str | None,
    explained: Sequence[str] = (),
    disturbed: Sequence[str] = (),
    used: Mapping[int, Usage] = MappingProxyType({}),
    stacks: pl.DataFrame | None = None,
    rules: Sequence[Rule] = (),
    counts: pl.DataFrame | None = None,
    answers: pl.DataFrame | None = None,
) -> Findings:
    """All that the runs of a study say. `ended` is why the study ended; None where it has not.

    `used` is what the observed ones used, by run. `stacks` are the call stacks of runs, with the run's number in `run`;
    `rules` say what their functions do, before the study's rules and dyno's own. `counts` are what was counted of
    transactions, likewise with the run's number, and `answers` what stores answered to queries.

    What explains the variation, the shape over ordered factors and drift are given of the deciding response, and of
    those that `explained` names besides. `disturbed` says what else went on on the machine.

    Raises ValueError for a run of a cell that the study has not.
    """
    found = _whole if study.stages is None else _staged
    return found(study, runs, ended, explained, disturbed, used, _Sampled(stacks, rules, counts, answers))


def _staged(
    study: Study,
    runs: Sequence[RunRecord],
    ended: str | None,
    explained: Sequence[str],
    disturbed: Sequence[str],
    used: Mapping[int, Usage],
    sampled: _Sampled,
) -> Findings:
    """Findings of stage two alone, with what stage one picked for it beside them."""
    assert study.stages is not None, "only a staged study has two stages"
    chosen = choose(study, runs)
    compared = compared_runs(runs, chosen)
    second = _without_claims_of_tuning(comparing(study, [choice.cell for choice in chosen]), study.stages.best)
    found = _whole(second, compared, ended, explained, disturbed, used, sampled)
    return found.model_copy(
        update={
            "answer": _staged_answer(study, runs, found, chosen),
            "runs": len(runs),
            "comparisons": tuple(
                each.model_copy(update={"sentence": with_tuning(study, each, chosen)}) for each in found.comparisons
            ),
            "failures": tuple(_failure(run) for run in runs if run.outcome is not Outcome.OK),
            "choices": tuple(chosen),
            "claims": tuple(_with_claims_of_tuning(study, runs, found.claims, used)),
            "notes": (*stage_notes(study, runs, chosen, ended), *found.notes),
        }
    )


def _without_claims_of_tuning(study: Study, tuned: str) -> Study:
    """Those that speak of the tuned factor, which the study of stage two has not any more, are no claims about it."""
    if study.published is None:
        return study
    left = tuple(claim for claim in study.published.findings if not claims.speaks_of(claim.predicate, tuned))
    return study.model_copy(update={"published": study.published.model_copy(update={"findings": left})})


def _with_claims_of_tuning(
    study: Study, runs: Sequence[RunRecord], found: Sequence[ClaimResult], used: Mapping[int, Usage]
) -> Iterator[ClaimResult]:
    """All claims in their order; those that speak of the tuned factor are judged by the runs of stage one."""
    first = picking(study)
    table = tabulate(first, of_stage(runs, PICKING), used)
    of_second = {claim.id: claim for claim in found}
    for claim in study.published.findings if study.published else ():
        yield of_second.get(claim.id) or claims.judge(first, table, per_op.tabulate_used(first, table), claim)


def _staged_answer(study: Study, runs: Sequence[RunRecord], found: Findings, chosen: Sequence[Choice]) -> str:
    if runs and not any(run.outcome is Outcome.OK for run in runs):
        return no_ok_run(runs)
    if runs and not study.judged and not study.pilot:
        return not_judged(runs)
    return staged_answer(study, found.answer, chosen, any_ok=any(cell.n for cell in found.cells))


def _whole(
    study: Study,
    runs: Sequence[RunRecord],
    ended: str | None,
    explained: Sequence[str],
    disturbed: Sequence[str],
    used: Mapping[int, Usage],
    sampled: _Sampled,
) -> Findings:
    table = tabulate(study, runs, used, sampled.answers)
    queries = tuple(of_queries.findings(study, table.answers))
    cells: list[CellSummary] = []
    order = response_order(study, table)
    confounding = confounders(study, table)
    confounded = of_pairs(study, table, confounding)
    compared = compare(study, table, order, confounded)
    pooled = overall(study, table, order, confounded)
    comparisons = [found for _, found in compared]
    of_factors = effects.effects(study, table, order)
    used_table = per_op.tabulate_used(study, table)
    told = per_op.told(used_table)
    resources = tuple(per_op.figures(study, table, used_table))
    sampled_runs = observations.Runs(table, used_table, sampled.stacks, sampled.rules)
    for response in order:
        of_cell: dict[int, list[Comparison]] = {}
        for pair, found in compared:
            if found.response == response:
                of_cell.setdefault(pair.a.index, []).append(found)
                of_cell.setdefault(pair.b.index, []).append(found)
        cells += summarise(study, table, response, of_cell)
    rule = study.replicates
    in_depth = [rule.of, *(name for name in dict.fromkeys(explained) if name != rule.of and name in table.values)]
    drifts = tuple(drift(study, table, response) for response in in_depth)
    laws = operational_laws(study, table)
    held_back = tuple(verdicts(study, [*table.ok_runs, *table.other_runs], used))
    deciding_cells = [cell for cell in cells if cell.response == rule.of]
    deciding = [found for found in comparisons if found.response == rule.of]
    interventions = probed(study, table)
    shaped = tuple(shape for response in in_depth for shape in shapes(study, table, response, comparisons))
    tables = tuple(decisions(study, table, compared, cells, shaped, resources))
    deciding_effects = [found for found in of_factors if found.response == rule.of]
    decided = _decided(study, tables)
    answered = _answer(
        study, deciding_cells, deciding, deciding_effects, pooled, table, confounding, interventions, decided
    )
    return Findings(
        study=study.study,
        pilot=study.pilot,
        question=study.question,
        scale=study.scale,
        answer=answered,
        response=rule.of,
        confidence=rule.confidence,
        precision=rule.precision,
        precision_of=rule.precision_of,
        compare=study.compare,
        ended=ended or "not ended yet",
        runs=len(runs),
        cells=tuple(cells),
        comparisons=tuple(comparisons),
        overall=tuple(pooled),
        effects=tuple(of_factors),
        failures=tuple(_failure(run) for run in table.other_runs),
        confounders=tuple(confounding),
        notes=(
            *_faults(laws),
            *of_queries.notes(queries),
            *notes(
                study,
                table,
                deciding_cells,
                comparisons,
                pooled,
                drifts[0],
                ended,
                disturbed,
                held_back,
                decided=any(made.response == rule.of for made in tables),
            ),
        ),
        variation=tuple(explain(study, table, response) for response in in_depth),
        shapes=shaped,
        decisions=tables,
        drift=drifts,
        targets=tuple(targets.judge(study, target, table, cells, resources) for target in study.targets),
        published=tuple(
            published.beside(each, cells, comparisons, rule.confidence, table.paces, judged=study.judged)
            for each in (study.published.tables if study.published else ())
        ),
        observed=tuple(observations.observed(study, sampled_runs)),
        claims=tuple(
            claims.judge(study, table, used_table, claim, sampled.counts)
            for claim in (study.published.findings if study.published else ())
        ),
        resources=resources,
        resource_ratios=tuple(per_op.ratios(study, table, used_table, confounded)),
        resource_overall=tuple(overall(study, used_table, told, confounded, foremost(told), sparing=True)),
        resources_reason=per_op.why_none(study, table, used_table),
        laws=laws,
        database=tuple(database(study, table)),
        verdicts=held_back,
        hot_spots=() if sampled.stacks is None else tuple(hot_spots(study, table, sampled.stacks, sampled.rules)),
        interventions=tuple(interventions),
        failovers=tuple(failovers(study, table)),
        queries=queries,
        batches=tuple(query_batches.batches(study, table, queries, cells)),
        removal=tuple(removals(study, table, sampled.counts)),
        switches=tuple(switches(study, table)),
    )


def _answer(
    study: Study,
    cells: Sequence[CellSummary],
    comparisons: Sequence[Comparison],
    of_factors: Sequence[FactorEffect],
    pooled: Sequence[OverallRatio],
    table: Table,
    confounding: Sequence[Confounder],
    interventions: Sequence[Probed],
    decided: str,
) -> str:
    if study.pilot:
        return PILOT
    if not any(cell.n for cell in cells):
        return no_ok_run(table.other_runs)
    if not study.judged:
        return not_judged([*table.ok_runs, *table.other_runs])
    if interventions and study.compare is None:
        return hangs_on(interventions)
    response = study.replicates.of
    if not comparisons and (
        why := of_queries.of_unlike(table.answers, [cell.cell for cell in cells if cell.n], response)
    ):
        return f"Which is the fastest is open: {why}, and times of unlike answers are not compared."
    if not comparisons and mixes_cpus(response, set().union(*(table.emulated[cell.cell] for cell in cells))):
        return OF_UNLIKE_CPUS
    deciding = [found for found in pooled if found.response == response]
    of_effects = effects.answer(study, of_factors)
    told = of_effects or decided or answer(cells, comparisons, deciding, response, table.paces)
    lines = bool(decided) and not of_effects
    break_ = "\n" if lines else " "
    told += f"{break_}{open_ended}" if (open_ended := not_over(study, table, response)) else ""
    if not any(each.ratio is not None for each in comparisons):
        return told
    besides = beside(confounding, briefly=lines)
    return f"{told}{break_}{besides.strip()}" if besides else told


def _decided(study: Study, tables: Sequence[DecisionTable]) -> str:
    """Of more than two levels, which is the best where, a line each: more than pairs say together."""
    if not tables or tables[0].response != study.replicates.of:
        return ""
    return headline(tables[0]) if len(study.factor(tables[0].factor).levels) > 2 else ""


def _failure(run: RunRecord) -> Failure:
    return Failure(
        run=run.run,
        cell=run.slot.cell,
        levels=run.levels,
        outcome=run.outcome.value,
        step=run.step.value if run.step else None,
        cause=run.cause,
    )


def _faults(laws: Laws) -> list[str]:
    """What comes before all else that a reader must know."""
    runs = sorted({fault.run for fault in laws.faults})
    if not runs:
        return []
    named = listed([str(run) for run in runs], most=10).replace(";", ",")
    return [
        f"The figures of {counted(len(runs), 'ok run')} contradict each other, so that the measurement is at fault "
        f"there, and not the system (laws): run {named}."
    ]
