"""Throughputs for numbers of clients that were not measured, and how far off such forecasts were where it is known.

A forecast is only ever between measured numbers of clients, of four or more. What it is worth is found by leaving out
each level but the first and the last, and forecasting it from the others: by demands that depend on load, by the
level that is nearest, on a straight line, and by the Universal Scalability Law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dyno import stats
from dyno.analysis.comparisons import widening_between_cells
from dyno.analysis.demands import (
    Use,
    cells_over,
    clients_factor,
    closed_loop,
    elsewhere,
    estimate,
    observed,
    tightest,
    uses,
    widening_of_means,
)
from dyno.analysis.rounding import rounded, rounded_interval
from dyno.analysis.sentences import capital, listed
from dyno.analysis.sentences import levels as named_levels
from dyno.analysis.shape import FEWEST_OF_LAW
from dyno.analysis.table import Table, compared, given, tabulate
from dyno.model.base import UserError
from dyno.model.findings import (
    Forecast,
    ForecastError,
    Forecasting,
    ForecastWay,
    Interval,
    format_estimate,
    format_quantity,
    format_share,
)
from dyno.model.run import RunRecord
from dyno.model.study import Cell, Factor, Study
from dyno.model.units import counted
from dyno.model.usage import Usage

FEWEST_BLOCKS = 2
MOST_CLIENTS = 512
"""Of a forecast: a network is solved for each run and level."""

_DIGITS = 6  # of what iterations come to

MOST_CURVES = 8
"""Of a study: each is some hundreds of networks that are solved."""

WAYS = {
    "demands": "demands that depend on load",
    "nearest": "the nearest level",
    "line": "a straight line between the levels beside it",
    "usl": "the Universal Scalability Law",
}


@dataclass(frozen=True)
class Curve:
    """Throughput over clients, all else equal, in the blocks that have all levels; what each block says by itself."""

    within: dict[str, str]
    clients: tuple[int, ...]
    throughputs: tuple[tuple[float, ...], ...]
    """By block, then level."""
    networks: tuple[stats.LoadDependent, ...]
    """By block."""

    @cached_property
    def left_out(self) -> dict[str, list[list[float]]]:
        """Way -> by block, ln(forecast / measured) of each level between the first and the last, told of the others."""
        found: dict[str, list[list[float]]] = {}
        for measured, network in zip(self.throughputs, self.networks, strict=True):
            of_block: dict[str, list[float]] = {}
            for place in range(1, len(self.clients) - 1):
                for way, made in _made(self.clients, measured, network, place).items():
                    of_block.setdefault(way, []).append(math.log(made / measured[place]))
            for way, errors in of_block.items():
                found.setdefault(way, []).append(errors)
        return found


def _made(
    clients: Sequence[int], measured: Sequence[float], network: stats.LoadDependent, place: int
) -> Mapping[str, float]:
    """The forecasts of one level from all others."""
    at = clients[place]
    others = [*clients[:place], *clients[place + 1 :]]
    values = [*measured[:place], *measured[place + 1 :]]
    made = {
        "demands": network.without(at).throughput(at),
        "nearest": stats.nearest(others, values, at),
        "line": stats.on_a_line(others, values, at),
    }
    if len(others) >= FEWEST_OF_LAW:
        law = stats.fit_usl(others, [[value] for value in values], 0.95)
        if law.rate is not None and law.contention is not None and law.coherency is not None:
            made["usl"] = stats.usl_throughput(at, law.rate, law.contention, law.coherency)
    return made


def _rounded(value: float) -> float:
    return rounded(value, _DIGITS)


def forecastings(study: Study, table: Table) -> tuple[tuple[Forecasting, ...], list[str]]:
    """What forecasts are worth on each curve over clients, and why there are none where there are none."""
    factor = clients_factor(study)
    if factor is None:
        return (), []
    if not study.judged:
        return (), ["forecasts, since scale smoke is not judged"]
    curves, why_not = _curves(study, table, factor)
    why_not += [(curve.within, f"these are more than the first {MOST_CURVES}") for curve in curves[MOST_CURVES:]]
    return tuple(_forecasting(study, factor, curve) for curve in curves[:MOST_CURVES]), list(_told(factor, why_not))


def _told(factor: Factor, why_not: Sequence[tuple[dict[str, str], str]]) -> Iterator[str]:
    """Each reason once, with the curves that it is of."""
    of_reason: dict[str, list[dict[str, str]]] = {}
    for within, why in why_not:
        of_reason.setdefault(why, []).append(within)
    for why, curves in of_reason.items():
        of = f" of {len(curves)} curves" if len(curves) > 1 else f" with {named_levels(curves[0])}" if curves[0] else ""
        yield f"forecasts over {factor.name}{of}, since {why}"


def _curves(study: Study, table: Table, factor: Factor) -> tuple[list[Curve], list[tuple[dict[str, str], str]]]:
    """Those that can be forecast, and of the others why not."""
    curves, why_not = [], []
    for within, cells in cells_over(study, table, factor):
        found = _curve(study, table, factor, within, cells)
        if isinstance(found, str):
            why_not.append((within, found))
        else:
            curves.append(found)
    return curves, why_not


def _curve(study: Study, table: Table, factor: Factor, within: dict[str, str], cells: Sequence[Cell]) -> Curve | str:
    """A curve, or why it cannot be forecast."""
    clients = [float(cell.levels[factor.name]) for cell in cells]
    if len(cells) < stats.FEWEST_OF_FORECAST:
        return f"{counted(len(cells), 'level')} were observed, and it takes {stats.FEWEST_OF_FORECAST} or more"
    if any(each != int(each) or not 1 <= each <= MOST_CLIENTS for each in clients):
        return f"its levels are not all whole numbers from 1 to {MOST_CLIENTS}"
    if why := given(table, "throughput"):
        return why
    loops = [closed_loop(study, table, cell) for cell in cells]
    if any(number != each for (number, _), each in zip(loops, clients, strict=True)):
        return f"{factor.name} is not known to be the number of clients of a closed loop"
    if len({think for _, think in loops}) > 1:
        return "its levels have different think times"
    seen = [dict(observed(table, cell)) for cell in cells]
    blocks = sorted(set.intersection(*(set(of) for of in seen)))
    if len(blocks) < FEWEST_BLOCKS:
        return f"{counted(len(blocks), 'block')} had all levels observed, and it takes {FEWEST_BLOCKS}"
    flat = tightest([_queued(cell, of[block]) for block in blocks for cell, of in zip(cells, seen, strict=True)])
    if not flat[0]:
        return "no resource was observed at all levels"
    throughputs, networks = [], []
    for number, block in enumerate(blocks):
        of_block = flat[number * len(cells) : (number + 1) * len(cells)]
        values = [table.in_blocks("throughput", cell.index)[block] for cell in cells]
        apart = [
            elsewhere(chosen, of[block], think) for chosen, of, (_, think) in zip(of_block, seen, loops, strict=True)
        ]
        networks.append(
            stats.LoadDependent.measured(
                [int(each) for each in clients],
                values,
                [[*(use.per_op for use in chosen), z] for chosen, z in zip(of_block, apart, strict=True)],
                [*(use.servers for use in of_block[0]), math.inf],
            )
        )
        throughputs.append(tuple(values))
    return Curve(within, tuple(int(each) for each in clients), tuple(throughputs), tuple(networks))


def _queued(cell: Cell, used: Usage) -> list[Use]:
    """What an operation takes for its time; a limit takes nobody's."""
    return [use for use in uses(cell, used) if use.resource != "limit"]


def _mean(study: Study, values: Sequence[float]) -> tuple[float, Interval | None]:
    found = estimate(values, study.replicates.confidence, widening_of_means(study))
    return _rounded(found.mean), rounded_interval(found.ci, _DIGITS)


def _sizes(errors: Sequence[Sequence[float]]) -> list[float]:
    """The mean size of the errors of each block."""
    return [sum(abs(error) for error in of_block) / len(of_block) for of_block in errors]


def _forecasting(study: Study, factor: Factor, curve: Curve) -> Forecasting:
    sizes = {way: _sizes(errors) for way, errors in curve.left_out.items() if len(errors) == len(curve.throughputs)}
    ways = []
    for way in (way for way in WAYS if way in sizes):
        error, ci = _mean(study, sizes[way])
        against = against_ci = None
        if way != "demands":
            less = [mine - other for mine, other in zip(sizes["demands"], sizes[way], strict=True)]
            against, against_ci = _difference(study, less)
        ways.append(
            ForecastWay(
                way=way,
                error=error,
                error_ci=ci,
                levels=tuple(_errors(study, curve, curve.left_out[way])),
                against=against,
                against_ci=against_ci,
            )
        )
    found = Forecasting(
        factor=factor.name,
        within=curve.within,
        measured=tuple(map(float, curve.clients)),
        blocks=len(curve.throughputs),
        ways=tuple(ways),
        sentence="",
    )
    return found.model_copy(update={"sentence": _of_forecasting(study, found)})


def _difference(study: Study, values: Sequence[float]) -> tuple[float, Interval | None]:
    """A mean that may be below 0, with its interval."""
    centre = sum(values) / len(values)
    found = stats.mean_interval(values, study.replicates.confidence)
    if found is None:
        return _rounded(centre), None
    half = widening_between_cells(study) * (found[1] - found[0]) / 2
    return _rounded(centre), (_rounded(centre - half), _rounded(centre + half))


def _errors(study: Study, curve: Curve, errors: Sequence[Sequence[float]]) -> list[ForecastError]:
    """Level by level, with the sign: what was forecast of a block over what that block measured."""
    found = []
    for place, clients in enumerate(curve.clients[1:-1]):
        ratio = _geometric(study, [math.exp(of_block[place]) for of_block in errors])
        found.append(ForecastError(level=str(clients), ratio=ratio[0], ci=ratio[1]))
    return found


def _geometric(study: Study, values: Sequence[float]) -> tuple[float, Interval | None]:
    """The geometric mean of values above 0, with its interval."""
    ratio = stats.paired_ratio([1.0] * len(values), values, study.replicates.confidence, widening_of_means(study))
    if ratio is None:
        return _rounded(values[0]), None
    return _rounded(ratio.ratio), (_rounded(ratio.lo), _rounded(ratio.hi))


def _of_forecasting(study: Study, found: Forecasting) -> str:
    told = {name: level for name, level in study.telling(found.within).items() if name in found.within}
    where = f"with {named_levels(told)}, " if told else ""
    mine, *others = found.ways
    first, last = (f"{found.measured[place]:g}" for place in (1, -2))
    span = f"{found.factor} {first}" if first == last else f"{found.factor} {first} to {last}"
    text = (
        f"{where}told of all other levels, demands that depend on load forecast {span} with an error of "
        f"{_percent(mine.error, mine.error_ci)} (n = {counted(found.blocks, 'block')})"
    )
    verdicts = [f"{_verdict(each)} {WAYS[each.way]}, {_percent(each.error, each.error_ci)}" for each in others]
    return f"{capital(text)}: {'; '.join(verdicts)}."


def _verdict(other: ForecastWay) -> str:
    if other.against_ci is None or other.against_ci[0] <= 0 <= other.against_ci[1]:
        return "not shown to be better or worse than"
    return "better than" if other.against_ci[1] < 0 else "worse than"


def _percent(error: float, ci: Interval | None) -> str:
    """A mean size of errors in logs, as a share."""
    value = format_share(math.expm1(error))
    return f"{value} [{', '.join(format_share(math.expm1(end)) for end in ci)}]" if ci else value


def forecast(
    study: Study, runs: Sequence[RunRecord], used: Mapping[int, Usage], factor: str, at: float
) -> list[Forecast]:
    """The throughput at an unmeasured number of clients, for each combination of the other factors that allows it.

    Raises UserError where nothing can be forecast there, with the reason.
    """
    table = tabulate(study, compared(study, runs), used)
    clients = clients_factor(study)
    if clients is None or clients.name != factor:
        have = f"only {clients.name} is" if clients else "the study has none"
        raise UserError(f"{factor} is no factor whose levels are numbers of clients; {have}")
    if not table.used:
        raise UserError("no run was observed: a forecast needs `observe: [machine]`")
    curves, why_not = _curves(study, table, clients)
    if not curves:
        reasons = list(dict.fromkeys(why for _, why in why_not))
        raise UserError(f"nothing can be forecast: {listed(reasons) or 'no two levels were observed'}")
    for curve in curves:
        if at != int(at) or not curve.clients[0] <= at <= curve.clients[-1]:
            raise UserError(
                f"{factor}={at:g}: a forecast is for whole numbers from {curve.clients[0]} to {curve.clients[-1]}, the "
                "levels that were measured; beyond them nothing is known"
            )
    return [_forecast(study, clients, curve, int(at)) for curve in curves]


def _forecast(study: Study, factor: Factor, curve: Curve, at: int) -> Forecast:
    skill = _forecasting(study, factor, curve)
    mine = skill.ways[0]
    measured = at in curve.clients
    networks = [
        network.without(at) if measured and at not in (curve.clients[0], curve.clients[-1]) else network
        for network in curve.networks
    ]
    throughput, ci = _geometric(study, [network.throughput(at) for network in networks])
    worst = max(mine.levels, key=lambda each: abs(math.log(each.ratio)))
    means = [_geometric(study, column)[0] for column in zip(*curve.throughputs, strict=True)]
    found = Forecast(
        factor=factor.name,
        at=float(at),
        within=curve.within,
        throughput=throughput,
        ci=ci,
        error=mine.error,
        error_ci=mine.error_ci,
        worst=_rounded(abs(math.log(worst.ratio))),
        worst_at=worst.level,
        nearest=_rounded(stats.nearest(curve.clients, means, at)),
        sentence="",
    )
    where = f"With {named_levels(curve.within)}, " if curve.within else ""
    text = (
        f"{where}{factor.name} {at} is forecast to have {format_estimate(throughput, ci)} ops/s. {skill.sentence} "
        f"The furthest off was {factor.name} {worst.level}, by {format_share(math.expm1(found.worst))}."
    )
    if measured:
        own = means[curve.clients.index(at)]
        text += f" It was measured too: {format_quantity(own)} ops/s."
    return found.model_copy(update={"sentence": text})
