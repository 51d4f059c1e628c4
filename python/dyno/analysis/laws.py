"""Operational laws: what the demands of each cell allow at the most, how close it came, and what contradicts itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dyno import stats
from dyno.analysis.comparisons import widening_between_cells
from dyno.analysis.consistency import consistency
from dyno.analysis.demands import (
    LIMIT,
    LIMITED,
    Estimate,
    Use,
    alone,
    cells_over,
    clients_factor,
    closed_loop,
    estimate,
    in_all,
    observed,
    tightest,
    uses,
    widening_of_means,
)
from dyno.analysis.forecasting import forecastings
from dyno.analysis.rounding import rounded, rounded_interval
from dyno.analysis.sentences import capital, levels, probability
from dyno.analysis.table import Table
from dyno.model.findings import (
    CellLaws,
    Demand,
    DemandChange,
    Interval,
    Laws,
    format_estimate,
    format_quantity,
    format_ratio,
    format_share,
)
from dyno.model.study import Cell, Factor, Study
from dyno.model.units import counted
from dyno.model.usage import Usage

_NAMES = {
    "disk": "the disk",
    "network": "the network",
    **{f"{LIMIT}{name}": f"its limit of {title}" for name, title in LIMITED.items()},
}
MUCH_OF_STRANGERS = 1 / 4
"""Of the machine's CPU time: with more, its CPUs bound nothing that can be told.

Of a quiet machine the kernel's own threads and interrupts had up to a quarter.
"""

_OF = {"machine.cpu": "", "server.cpu": " of the system", "driver.cpu": " of the driver"}


def operational_laws(study: Study, table: Table) -> Laws:
    """All of them, for the cells of which ok runs were observed."""
    checks, faults = consistency(study, table)
    cells = [found for cell in study.cells if (found := _cell(study, table, cell)) is not None]
    left_out: list[str] = []
    changes: tuple[DemandChange, ...] = ()
    if cells:
        forecasting, why_not = forecastings(study, table)
        left_out += why_not
        if study.judged:
            changes = tuple(_changes(study, table))
    else:
        forecasting = ()
    return Laws(
        cells=tuple(cells),
        changes=changes,
        checks=checks,
        faults=faults,
        forecasting=forecasting,
        left_out=tuple(left_out),
    )


def demands(study: Study, table: Table, cell: Cell) -> list[Demand]:
    """What an operation of a cell takes of each resource, that with the lowest bound first; empty if not observed."""
    shared = in_all([list(uses(cell, used)) for _, used in observed(table, cell)])
    columns = [list(column) for column in zip(*shared, strict=True)]
    others = _of_others(observed(table, cell))
    found = [_demand(study, column, others) for column in columns]
    # One without a bound stands where its demand would have put it: more may be possible there, and that is not known.
    return sorted(found, key=lambda each: each.servers / each.seconds_per_op)


def _of_others(seen: Sequence[tuple[int, Usage]]) -> float:
    """The share of the machine's CPU time that neither the system nor the driver used."""
    whole = sum(used.per_op.get("machine.cpu", 0.0) for _, used in seen)
    return sum(used.per_op.get("rest.cpu", 0.0) for _, used in seen) / whole if whole else 0.0


def _estimate(study: Study, values: Sequence[float]) -> Estimate:
    found = estimate(values, study.replicates.confidence, widening_of_means(study))
    return Estimate(rounded(found.mean), rounded_interval(found.ci), found.n)


def _demand(study: Study, runs: Sequence[Use], others: float) -> Demand:
    """`others` is the share of the machine's CPU time that neither the system nor the driver used."""
    per_op = _estimate(study, [use.per_op for use in runs])
    first = runs[0]
    # What others used for reasons of their own is no demand of the operations, and would be booked as theirs.
    bounds = first.of != "machine.cpu" or others <= MUCH_OF_STRANGERS
    return Demand(
        resource=first.resource,
        of=first.of,
        name=_in_words(first),
        seconds_per_op=per_op.mean,
        ci=per_op.ci,
        servers=first.servers,
        utilisation=_estimate(study, [use.per_s / use.servers for use in runs]).mean,
        bound_ops_s=rounded(first.servers / per_op.mean) if bounds else None,
        # Without an upper end where the demand may be nothing.
        bound_ci=_reciprocal(per_op.ci, first.servers) if bounds else None,
        n=per_op.n,
    )


def _reciprocal(ci: Interval | None, servers: float) -> Interval | None:
    return (rounded(servers / ci[1]), rounded(servers / ci[0])) if ci is not None and ci[0] > 0 else None


def _cell(study: Study, table: Table, cell: Cell) -> CellLaws | None:
    found = demands(study, table, cell)
    if not found:
        return None
    known = found[0].bound_ops_s is not None
    seen = observed(table, cell)
    shared = in_all([list(uses(cell, used)) for _, used in seen])
    clients, think = closed_loop(study, table, cell)
    throughputs = table.in_blocks("throughput", cell.index)
    values = [throughputs[block] for block, _ in seen]
    alone_s = [alone(of_run, used, think) for of_run, (_, used) in zip(shared, seen, strict=True)]
    # With more clients than anybody has, the demands alone bound it.
    by_clients = [math.inf if clients is None or not each else clients / each for each in alone_s]
    slowest = [min(use.servers / use.per_op for use in of_run) for of_run in shared]
    bounds = [min(each) if known else each[1] for each in zip(slowest, by_clients, strict=True)]
    throughput, of_one = _estimate(study, values), _estimate(study, alone_s)
    most = rounded(found[0].servers / found[0].seconds_per_op)
    of_clients = clients / of_one.mean if clients is not None and of_one.mean else math.inf
    bound = min(most, of_clients)
    knees = [max(one * each, 1.0) for one, each in zip(alone_s, slowest, strict=True)]
    knee = max(of_one.mean * most, 1.0)
    reached = [value / each for value, each in zip(values, bounds, strict=True)]
    # Of a resource that others used the true bound is above `most`: with so few clients, theirs is the lower one still.
    told = known or of_clients < most
    laws = CellLaws(
        cell=cell.index,
        levels=cell.levels,
        n=throughput.n,
        clients=clients,
        alone_s=of_one.mean,
        throughput=throughput.mean,
        throughput_ci=throughput.ci,
        demands=tuple(found),
        bound=rounded(bound) if told else None,
        bound_ci=_around(study, bound, bounds) if told else None,
        saturation=rounded(knee) if known else None,
        saturation_ci=_around(study, knee, knees) if known else None,
        reached=rounded(throughput.mean / bound) if told else None,
        reached_ci=_around(study, throughput.mean / bound, reached) if told else None,
        sentence="",
    )
    ok = len(table.in_blocks("throughput", cell.index))
    return laws.model_copy(update={"sentence": _of_cell(study, table, laws, _of_others(seen), ok)})


def _around(study: Study, value: float, of_runs: Sequence[float]) -> Interval | None:
    """The interval of a figure of means, as wide for its size as that of the mean of the runs' own figures."""
    found = _estimate(study, of_runs)
    if found.ci is None:
        return None
    scale = value / found.mean
    return rounded_interval((found.ci[0] * scale, found.ci[1] * scale))


def _in_words(use: Use) -> str:
    """`2 CPUs`, `1.5 CPUs of the system`, `the disk`, `its limit of reads`."""
    if use.resource != "cpu":
        return _NAMES.get(use.of) or _NAMES[use.resource]
    number = f"{use.servers:g}"
    return f"{number} CPU{'' if number == '1' else 's'}{_OF[use.of]}"


def _of_cell(study: Study, table: Table, laws: CellLaws, others: float, ok: int) -> str:
    """`others` is the share of the machine's CPU time that neither the system nor the driver used; `ok` is of runs."""
    told = study.telling(laws.levels)
    where = f"With {levels(told)}, " if told else ""
    first, *rest = laws.demands
    of_limit = first.resource == "limit"
    took = f"{format_quantity(first.seconds_per_op * 1e6)} us an operation, {format_share(first.utilisation)} "
    took += "used" if of_limit else "busy"
    whole = "" if laws.n == ok else f" in the {laws.n} of {counted(ok, 'ok run')} that samples tell of"
    came = f"{where}throughput is {format_quantity(laws.throughput)} ops/s{whole}"
    not_told = f"what {first.name} could do is not told: {format_share(others)} of the CPU time was of others"
    if table.paces.get(laws.cell) == "rate":
        could = not_told
        if first.bound_ops_s is not None:
            could = f"{first.name} could do {format_estimate(first.bound_ops_s, first.bound_ci)}"
        return capital(f"{came}, as given; {could} ({took}).")
    if laws.bound is None:
        return capital(f"{came}; {not_told} ({took}).")
    by_clients = laws.clients is not None and laws.bound < 0.999 * first.servers / first.seconds_per_op
    share = "more than" if laws.beyond else _share(laws)
    if by_clients:
        assert laws.clients is not None
        clients = counted(int(laws.clients), "client")
        text = f"{came}, {share} the {format_quantity(laws.bound)} that {clients} could get if nothing ever waited; "
        if first.bound_ops_s is None:
            text += f"{not_told} ({took})"
        else:
            text += f"{first.name} ({took}) would bound it at {format_quantity(first.bound_ops_s)}"
    else:
        text = f"{came}, {share} the {format_quantity(laws.bound)} that {first.name} "
        text += f"{'allows' if of_limit else 'could do'} ({took})"
    if laws.saturation is not None and laws.clients is not None:
        if laws.saturation <= 1:
            text += ", and one client fills it"
        else:
            text += f", and from {laws.saturation:.3g} clients on some stand in line"
    if laws.beyond:
        text += "; parts of an operation overlap in time, then, and that is no bound"
    following = next((each for each in rest if each.bound_ops_s is not None), None)
    if following is not None and following.bound_ops_s is not None and first.bound_ops_s is not None:
        times = following.bound_ops_s / first.bound_ops_s
        text += (
            f". Next would be {following.name}, at {format_quantity(following.bound_ops_s)} ({times:.3g} times that)"
        )
    return capital(f"{text}.")


def _share(laws: CellLaws) -> str:
    """`84% [80%, 88%] of`, but no share of more than there is, which is the noise of both figures."""
    assert laws.reached is not None
    value, ci = laws.reached, laws.reached_ci
    if value > 1:
        return "not shown to be less than"
    interval = f" [{format_share(ci[0])}, {format_share(min(ci[1], 1.0))}]" if ci else ""
    return f"{format_share(value)}{interval} of"


def _changes(study: Study, table: Table) -> list[DemandChange]:
    """The CPU time of an operation at each number of clients against that at the lowest, all else equal."""
    factor = clients_factor(study)
    if factor is None:
        return []
    found: list[tuple[dict[str, str], str, str, str, bool, stats.Ratio]] = []
    for within, curve in cells_over(study, table, factor):
        first, *rest = curve
        for cell in rest:
            of, at_first, at_cell = _cpu(table, first, cell)
            common = sorted(at_first.keys() & at_cell.keys())
            paired = len(common) >= 2
            a, b = ([of_cell[block] for block in (common if paired else of_cell)] for of_cell in (at_first, at_cell))
            shift = (stats.paired_shift if paired else stats.unpaired_shift)(a, b) if a and b else None
            if shift is not None:
                ratio = shift.widened(widening_between_cells(study)).ratio(study.replicates.confidence)
                a_name, b_name = first.levels[factor.name], cell.levels[factor.name]
                found.append((within, of, a_name, b_name, paired, ratio))
    adjusted = stats.holm([ratio.p for *_, ratio in found])
    return [_change(study, factor, *each, p_adjusted=p) for each, p in zip(found, adjusted, strict=True)]


def _cpu(table: Table, *cells: Cell) -> tuple[str, dict[int, float], dict[int, float]]:
    """Whose CPU time is looked at, and that of an operation in each block of both cells."""
    seen = [observed(table, cell) for cell in cells]
    pools = [
        [use for use in uses(cell, used) if use.resource == "cpu"]
        for cell, of in zip(cells, seen, strict=True)
        for _, used in of
    ]
    chosen = tightest(pools)
    of = chosen[0][0].of if chosen and chosen[0] else "machine.cpu"
    at_first, at_second = (
        {block: used.per_op[of] for block, used in each if used.per_op.get(of, 0.0) > 0} for each in seen
    )
    return of, at_first, at_second


def _change(
    study: Study,
    factor: Factor,
    within: dict[str, str],
    of: str,
    a: str,
    b: str,
    paired: bool,
    ratio: stats.Ratio,
    *,
    p_adjusted: float | None,
) -> DemandChange:
    shown = p_adjusted is not None and p_adjusted < 1 - study.replicates.confidence
    told = {name: level for name, level in study.telling(within).items() if name in within}
    where = f"With {levels(told)}, " if told else ""
    size = format_ratio(ratio.ratio, (ratio.lo, ratio.hi))
    basis = f"adjusted {probability(p_adjusted)}" if p_adjusted is not None else "no p"
    basis += f", n = {counted(ratio.n, 'pair')}" if paired else f", n = {counted(ratio.n, 'run')}, not paired"
    whose = f"CPU time{_OF[of] or ' of the machine'}"
    if shown:
        sentence = f"{where}an operation takes {size} the {whose} with {factor.name} {b} as with {a} ({basis})."
    else:
        sentence = (
            f"{where}no change in the {whose} of an operation is shown from {factor.name} {a} to {b}: {size} ({basis})."
        )
    return DemandChange(
        factor=factor.name,
        within=within,
        of=of,
        a=a,
        b=b,
        ratio=rounded(ratio.ratio),
        ci=(rounded(ratio.lo), rounded(ratio.hi)),
        n=ratio.n,
        p=None if ratio.p is None else rounded(ratio.p),
        p_adjusted=None if p_adjusted is None else rounded(p_adjusted),
        shown=shown,
        sentence=capital(sentence),
    )
