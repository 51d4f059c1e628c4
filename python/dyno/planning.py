"""A study's plan on a terminal, and what a pilot says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dyno.design import POWER, Forecast, OfPair, Prospect, Rule, Runs, Spread, block_order
from dyno.model.findings import format_share
from dyno.model.fractions import LETTERS, Fraction, fraction_of
from dyno.model.looks import looks
from dyno.model.pairs import Gap, gaps, pairs
from dyno.model.stages import choices, comparing, looks_at_picks, picking
from dyno.model.study import Study
from dyno.model.units import counted, format_duration, format_percent

ORDER_IS_FIXED = (
    "order: fixed: a drift of the machine can pose as a difference between cells; leave order out, and each block has "
    "an order of its own"
)
_MOST_WORDS = 3  # halvings up to which the defining relation is short enough to read
_MOST_GAPS = 8
_WIDTH_OF_FILES = 1000

_RESOLUTIONS = {
    3: "main effects are confounded with interactions of two factors: it finds the few factors that matter",
    4: "no main effect is confounded with another or with an interaction of two factors; such interactions are with "
    "each other",
}
_CLEAR = "no main effect and no interaction of two factors is confounded with another"


def show_plan(study: Study, time: Forecast, basis: str, blocks: int, console: Console) -> None:
    """The design, its cells, what is confounded, the order of the first `blocks`, when it stops, how long it takes.

    `basis` says what that time is made of.
    """
    console = _as_wide_as_needed(console)
    _print(console, Text(study.question, style="bold"))
    for line in _design(study):
        _print(console, line)
    for table in (_factors(study), _cells(study)):
        console.print(table)
    fraction = fraction_of(study)
    if fraction and fraction.generators:
        console.print(_aliases(fraction))
    if study.stages is None:
        lines = (
            *_compared(study),
            _blocks(*_fewest_and_most(study), study),
            *_order(study, blocks, study.replicates.max),
            *_rule(study),
        )
    else:
        second = comparing(study, [None] * len(choices(study)))
        lines = (
            *_picks(study),
            *_order(picking(study), blocks, looks_at_picks(study)[-1]),
            *_compares(second),
            *_rule(second),
        )
    for line in (*lines, *_time(study, time, basis)):
        _print(console, line)


def _as_wide_as_needed(console: Console) -> Console:
    """Where there is no terminal, a line of a table is a line of the file."""
    return console if console.is_terminal else Console(file=console.file, width=_WIDTH_OF_FILES, highlight=False)


def _print(console: Console, line: str | Text) -> None:
    console.print(line, soft_wrap=True, markup=False)


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(Text(name), overflow="fold")
    return table


def _row(table: Table, *fields: str) -> None:
    table.add_row(*(Text(field) for field in fields))


# The design


def _design(study: Study) -> Iterator[str]:
    cells, fraction = len(study.cells), fraction_of(study)
    combinations = 1
    for factor in study.factors:
        combinations *= len(factor.levels)
    if study.design.kind == "cells":
        yield f"design: cells, {cells} named of {combinations} combinations"
    elif fraction is None and cells < combinations:
        yield f"design: factorial, {cells} of {combinations} combinations of {len(study.factors)} factors"
    elif fraction is None:
        of = f"{_all(cells)} of {counted(len(study.factors), 'factor')}"
        yield f"design: factorial, {of}" if study.factors else "design: the only cell"
    elif not fraction.generators:
        yield f"design: screening, 2^{len(study.factors)}: {_all(cells)} of two levels a factor"
    else:
        halvings, resolution = len(fraction.generators), fraction.resolution or 0
        numeral = {3: "III", 4: "IV", 5: "V", 6: "VI", 7: "VII", 8: "VIII"}.get(resolution, str(resolution))
        size = f"2^({len(study.factors)}-{halvings}): {cells} of {combinations} combinations of two levels a factor"
        yield f"design: screening, {size}"
        relation = ""
        if halvings <= _MOST_WORDS:
            relation = f"; defining relation: I = {' = '.join(fraction.defining_relation())}"
        yield f"generators: {', '.join(fraction.generators)}{relation}"
        yield f"resolution {numeral}: {_RESOLUTIONS.get(resolution, _CLEAR)}"


def _factors(study: Study) -> Table:
    if study.design.kind == "screening":
        table = _table("factor", "", "low", "high")
        for letter, factor in zip(LETTERS, study.factors, strict=False):
            _row(table, letter, factor.name, *(level.name for level in factor.levels))
        return table
    table = _table("factor", "levels")
    for factor in study.factors:
        _row(table, factor.name, ", ".join(level.name for level in factor.levels))
    return table


def _cells(study: Study) -> Table:
    factors = [factor.name for factor in study.factors]
    # A factor may be called system, and its levels otherwise than the kinds.
    kinds = [f"kind of {name}" if name in factors else name for name in ("system", "workload")]
    table = _table("cell", *factors, *kinds)
    for cell in study.cells:
        _row(table, str(cell.index), *cell.levels.values(), cell.system.kind, cell.workload.kind)
    return table


def _aliases(fraction: Fraction) -> Table:
    """What is added up in each figure that the design gives."""
    table = _table("effect", "cannot be told from")
    for alias in fraction.aliases():
        effect, *others = alias.told().split(" = ")
        _row(table, effect, ", ".join(others) or "-")
    return table


def _compared(study: Study) -> Iterator[str]:
    compared = pairs(study)
    if study.compare is None:
        yield "compared: nothing"
        return
    if compared:
        yield f"compared: the levels of {study.compare}, all else equal: {counted(len(compared), 'comparison')}"
    else:
        yield f"compared: nothing, since no two cells differ in {study.compare} alone"
    missing = gaps(study)
    if study.design.kind == "screening" and missing:
        yield "effects of factors come from all cells together"
        return
    for gap in missing[:_MOST_GAPS]:
        yield f"not compared: {_gap(study.compare, gap)}"
    if len(missing) > _MOST_GAPS:
        yield f"not compared: levels of {study.compare} at {len(missing) - _MOST_GAPS} more combinations"


def _gap(factor: str, gap: Gap) -> str:
    within = " ".join(f"{name}={level}" for name, level in gap.within.items()) or "here"
    return f"{factor} {', '.join(gap.missing)} with {', '.join(gap.there)} at {within}: no such cell"


# Blocks, and when they end


def _fewest_and_most(study: Study) -> tuple[int, int]:
    when = looks(study)
    return when.first, when.last


def _blocks(least: int, most: int, study: Study) -> str:
    runs, raised = len(study.cells), ""
    if least > study.replicates.min:
        raised = f" (min: {study.replicates.min} is too early to call a {looks(study).at} precise)"
    if least == most:
        return f"blocks: {least} of {counted(runs, 'run')} each = {counted(least * runs, 'run')}{raised}"
    each = f"{counted(runs, 'run')} each"
    return f"blocks: {least} to {most} of {each} = {least * runs} to {most * runs} runs{raised}"


def _all(combinations: int) -> str:
    return "both combinations" if combinations == 2 else f"all {counted(combinations, 'combination')}"


def _picks(study: Study) -> Iterator[str]:
    """What stage one of a staged study picks from, and what ends it."""
    assert study.stages is not None, "only a staged study picks"
    stages, asked, when, found = study.stages, study.replicates, looks_at_picks(study), choices(study)
    yield f"stage one picks the best {stages.best} for each of {counted(len(found), 'combination')}:"
    for choice in found:
        yield f"  {choice.name}: {', '.join(cell.levels[stages.best] for cell in choice.cells)}"
    yield _blocks(when[0], when[-1], picking(study))
    budget = f", or {format_duration(stages.share * asked.budget)} have passed" if asked.budget is not None else ""
    yield f"until each is shown to be the best, looked at after blocks {', '.join(map(str, when))}{budget}"


def _compares(second: Study) -> Iterator[str]:
    """What stage two does; which cells it is of is known once they are picked."""
    yield f"stage two compares what was picked between levels of {second.compare}, on runs of its own:"
    yield _blocks(*_fewest_and_most(second), second)


def _order(study: Study, blocks: int, most: int) -> Iterator[str]:
    for block in range(min(blocks, most)):
        how = f" ({study.order}, seed {study.seed})" if block == 0 else ""
        yield f"order of block {block + 1}{how}: {', '.join(map(str, block_order(study, block)))}"
    if blocks < most:
        yield "`--blocks N` shows the order of more blocks"


def _rule(study: Study) -> Iterator[str]:
    asked, rule = study.replicates, Rule.of(study)
    wanted = "the ratio of each comparison" if rule.looks.at == "ratio" else "each cell's mean"
    ends = [f"after {counted(asked.max, 'block')}"]
    if asked.budget is not None:
        ends.append(f"before a block that would pass {format_duration(asked.budget)}")
    yield (
        f"until {wanted} of {asked.of} is within {format_percent(asked.precision)} at "
        f"{format_percent(asked.confidence)} confidence, else {' or '.join(ends)}"
    )
    number = rule.looks.comparisons
    many = f", {counted(number, 'comparison')} together" if rule.looks.at == "ratio" else ""
    if rule.looks.first >= rule.looks.last:
        yield f"looked at once, after block {rule.looks.last}{many}: intervals need not be widened"
    else:
        yield (
            f"looked at after block {rule.looks.first} and after each later one{many}: because of these repeated "
            f"looks, the intervals are made {rule.widening:.3g} times as wide"
        )


def _time(study: Study, time: Forecast, basis: str) -> Iterator[str]:
    least = "not known before the first block" if time.least is None else f"from {format_duration(time.least)}"
    most = "" if time.most is None else f", at most {format_duration(time.most)}"
    yield f"estimated time: {least}{most}"
    if time.fewest is not None:
        yield f"  of {basis}"
    if (why := why_too_short(study, time)) is not None:
        yield why


def why_too_short(study: Study, time: Forecast) -> str | None:
    """Why the budget will end a study before it has its fewest blocks; None where it is not known to."""
    budget = study.replicates.budget
    if budget is None or time.fewest is None or time.fewest <= budget:
        return None
    return (
        f"replicates.budget: {format_duration(budget)} are too short for min {study.replicates.min}, which takes about "
        f"{format_duration(time.fewest)}: raise the budget, or the study ends before"
    )


# What a pilot says


def show_prospect(study: Study, prospect: Prospect, effect: float | None, console: Console) -> None:
    """How much runs vary, and what follows for the study."""
    console = _as_wide_as_needed(console)
    asked = study.replicates
    wanted = f"{format_percent(asked.precision)} at {format_percent(asked.confidence)} confidence"
    cells = _table("cell", "n", f"variation of {asked.of}", f"runs until its mean is within {wanted}")
    for each in prospect.cells:
        _row(cells, each.cell.name, str(each.n), _spread(each.cov), _runs(each.runs))
    console.print(cells)
    if prospect.pairs:
        ends = "?" if prospect.ends is None else str(prospect.ends.expected)
        names = [
            "comparison", "n", "variation of the ratio", f"runs until it is within {wanted}",
            f"least effect found with {POWER:.0%} power in {ends} blocks",
        ]  # fmt: skip
        if effect is not None:
            names.append(f"runs until an effect of {format_share(effect)} is")
        table = _table(*names)
        for pair in prospect.pairs:
            fields = [_pair(pair), str(pair.n), _spread(pair.sd), _runs(pair.runs), _effect(pair.detectable)]
            _row(table, *fields, *([_runs(pair.for_effect)] if effect is not None else []))
        console.print(table)
    for line in _outlook(study, prospect, effect):
        _print(console, line)


def _pair(of: OfPair) -> str:
    within = " ".join(f"{name}={level}" for name, level in of.pair.within.items())
    return f"{of.pair.level_b} / {of.pair.level_a}" + (f" at {within}" if within else "")


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "not known"
    return f"{format_share(spread.value)} [{format_share(spread.low)}, {format_share(spread.high)}]"


def _runs(runs: Runs | None) -> str:
    if runs is None:
        return "not known"
    return f"{_number(runs.expected)} [{_number(runs.low)}, {_number(runs.high)}]"


def _number(count: int | None) -> str:
    return "over a million" if count is None else f"{count:,}"


def _effect(effect: float | None) -> str:
    return "not known" if effect is None else format_share(effect)


def _outlook(study: Study, prospect: Prospect, effect: float | None) -> Iterator[str]:
    if prospect.blocks is None or prospect.ends is None:
        yield "runs expected: not known; of some cells the pilot has fewer than two ok runs"
        return
    blocks, cells = prospect.blocks, len(study.cells)
    what = "every ratio" if Rule.of(study).looks.at == "ratio" else "every mean"
    yield f"blocks until {what} is precise: {_runs(blocks)}, of {counted(cells, 'run')} each"
    why = {
        "precision": "with the precision asked for",
        "max": f"by max ({study.replicates.max} blocks), without the precision asked for",
        "budget": "by its budget, without the precision asked for",
    }[prospect.ends_by]
    yield f"the study is expected to end after block {prospect.ends.expected}, {why}"
    if prospect.seconds_of_block is not None:
        yield f"expected time: {_expected_time(prospect.ends, prospect.seconds_of_block)}"
    if prospect.factors is not None:
        found = f"found with {POWER:.0%} power"
        yield f"least effect of a factor {found} by then: {_effect(prospect.factors.detectable)} (high to low)"
        if prospect.factors.for_effect is not None and effect is not None:
            yield f"blocks until one of {format_share(effect)} is: {_runs(prospect.factors.for_effect)}"
    if prospect.pairs or prospect.factors is not None:
        several = len(prospect.pairs) or round((1 - study.replicates.confidence) / prospect.alpha)
        number = counted(several, "comparison" if prospect.pairs else "effect")
        besides = " and what else the report compares" if prospect.pairs else ""
        yield f"found means: its p is below {prospect.alpha:.3g}, which provides for {number}{besides}"
    if effect is not None:
        yield from _to_find(prospect, effect)
    yield "a drift that outlasts a block is not foreseen: a pilot is too short to show it"


def _to_find(prospect: Prospect, effect: float) -> Iterator[str]:
    """How the number of runs for an effect is meant, and how to have so many."""
    of_factors = prospect.factors.for_effect if prospect.factors else None
    wanted = [runs for runs in (of_factors, *(pair.for_effect for pair in prospect.pairs)) if runs is not None]
    yield (
        f"runs until an effect of {format_share(effect)} is found are so many that {POWER:.0%} of such studies find it "
        "although the pilot knows the spread only so well; in brackets, were the spread known to be at its ends"
    )
    most = [runs.expected for runs in wanted if runs.expected is not None]
    if wanted and len(most) == len(wanted):
        yield f"to have them, set min and max to {max(most)}: a study that is precise earlier ends earlier"


def _expected_time(ends: Runs, seconds: float) -> str:
    """At what the pilot's blocks took."""
    expected, low, high = (format_duration(seconds * (blocks or 0)) for blocks in (ends.expected, ends.low, ends.high))
    return f"{expected} [{low}, {high}], at {format_duration(seconds)} a block"


def prospect_as_json(study: Study, prospect: Prospect, folder: str) -> dict[str, Any]:
    """The same for other programs: cells by their number, shares and seconds as numbers."""
    return {
        "folder": folder,
        "cells": [
            {"cell": each.cell.index, "levels": each.cell.levels, "n": each.n}
            | {"cov": _values(each.cov), "runs": _values(each.runs)}
            for each in prospect.cells
        ],
        "comparisons": [
            {"factor": each.pair.factor, "a": each.pair.level_a, "b": each.pair.level_b, "within": each.pair.within}
            | {"n": each.n, "sd": _values(each.sd), "runs": _values(each.runs)}
            | {"detectable": each.detectable, "runs_for_effect": _values(each.for_effect)}
            for each in prospect.pairs
        ],
        "alpha": prospect.alpha,
        "power": POWER,
        "blocks": _values(prospect.blocks),
        "ends": _values(prospect.ends),
        "ends_by": prospect.ends_by,
        "seconds_of_block": prospect.seconds_of_block,
        "factors": prospect.factors
        and {
            "detectable": prospect.factors.detectable,
            "runs_for_effect": _values(prospect.factors.for_effect),
        },
        "plan": study.model_dump(mode="json"),
    }


def _values(of: Spread | Runs | None) -> dict[str, Any] | None:
    if of is None:
        return None
    if isinstance(of, Spread):
        return {"value": of.value, "low": of.low, "high": of.high, "degrees": of.degrees}
    return {"expected": of.expected, "low": of.low, "high": of.high}


def cells_without_spread(prospect: Prospect) -> Sequence[str]:
    """The cells of which the pilot has too few ok runs to say anything."""
    return [each.cell.name for each in prospect.cells if each.cov is None]
