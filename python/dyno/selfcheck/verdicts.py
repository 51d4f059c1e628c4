"""What was measured -> what it says: figures, a verdict and a sentence. Pure: starts nothing, reads nothing.

Runs of the A/A study are arrays (blocks, cells), NaN where a run is not ok. Its four cells are the same system under
the same workload: the first two are watched by the observer `machine`, the last two are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dyno import stats
from dyno.design.rule import Rule
from dyno.model.findings import format_quantity, format_ratio, format_share
from dyno.model.looks import Looks
from dyno.model.selfcheck import (
    Ceiling,
    Detectable,
    FalseAlarms,
    Freeze,
    Interval,
    ObserverCost,
    Quantile,
    Sensitivity,
    Variation,
    Verdict,
)
from dyno.model.units import counted, format_duration, format_percent

Array = NDArray[np.float64]

CONFIDENCE, POWER = 0.95, 0.90
TWINS = ((0, 1), (2, 3))
"""The cells that differ in nothing, by their places; the pairs differ in whether they are watched."""

# Small studies, so that many fit into minutes; they are looked at after each block, as real ones are.
LOOKS = Looks("ratio", first=3, last=6, comparisons=1)
PRECISION = 0.10

_ALARMS_SHOWN = 0.15  # an upper bound of the share of false alarms that is as good as what is claimed
_NOISY = 0.10
_DRIFTING = 0.3
_FEWEST_BLOCKS = 8  # below it a spread is hardly known, and a correlation not at all
_DRIVERS_PART = 0.10
_FREEZE_WITHIN = 0.02
_OBSERVER_COSTS = 0.05
_GATE = 0.03  # the slow-down that `dyno gate` looks for
_MINUTES = (10, 30, 60)


def false_alarms(throughput: Array, times: Array) -> FalseAlarms:
    """Cut the blocks into studies by the rule that stops real ones, and count those that call a difference."""
    called = [alarm for pair in TWINS for alarm in _studies(throughput[:, pair], times[:, pair])]
    claimed = 1 - CONFIDENCE
    if not called:
        text = "no study of one cell against itself was completed"
        return FalseAlarms(verdict="cannot tell", sentence=text, studies=0, alarms=0, claimed=claimed, ci=None)
    number, alarms = len(called), sum(called)
    low, high = stats.share_interval(alarms, number, CONFIDENCE)
    verdict: Verdict = "warn" if low > claimed else "ok" if high <= _ALARMS_SHOWN else "cannot tell"
    if len(throughput) < _FEWEST_BLOCKS:
        verdict = "cannot tell"  # the two pairs are measured in the same blocks: one disturbance may alarm both
    text = (
        f"{alarms} of {number:,} A/A studies (one cell against itself) called a difference: "
        f"{format_share(alarms / number)} [{format_share(low)}, {format_share(high)}], and at most "
        f"{format_percent(claimed)} is claimed"
    )
    if verdict == "cannot tell":
        text += "; so few studies show little"
    return FalseAlarms(verdict=verdict, sentence=text, studies=number, alarms=alarms, claimed=claimed, ci=(low, high))


def _studies(values: Array, times: Array) -> list[bool]:
    """Whether each study called a difference, one study after the other; the last one, cut short, is none."""
    whole = np.isfinite(values).all(axis=1)
    values, times = values[whole], times[whole]
    rule = Rule(LOOKS, np.array([[0, 1]]), CONFIDENCE, randomised=True)
    tried = np.ones(2, dtype=np.bool_)
    widening = stats.widening_of_ratios(LOOKS.comparisons, LOOKS.first, LOOKS.last)
    called: list[bool] = []
    begin, end = 0, LOOKS.first
    while end <= len(values):
        blocks = slice(begin, end)
        precise = float(rule.reached(values[blocks], times[blocks], tried)) <= PRECISION
        if precise or end - begin == LOOKS.last:
            logs = np.log(values[blocks])
            found = stats.block_ratios(logs[:, 1:] - logs[:, :1], CONFIDENCE, widening=widening)
            called.append(bool(found.p[0] <= 1 - CONFIDENCE))
            begin, end = end, end + LOOKS.first
        else:
            end += 1
    return called


def variation(
    throughput: Array, cpu: Array, times: Array, seconds_of_run: float | None, causes: Sequence[str]
) -> Variation:
    """How much runs differ that differ in nothing. `causes` are of the runs that were not ok."""
    runs = int(np.isfinite(throughput).sum())
    found = stats.cell_means(throughput, times, CONFIDENCE, randomised=True, widening=1.0)
    correlation, error = float(found.correlation), float(found.correlation_error)
    cov, cpu_cov, ratio_sd = _cov(throughput), _cov(cpu), _ratio_sd(throughput)
    lost = f"; {counted(len(causes), 'run')} not ok, the first: {causes[0]}" if causes else ""
    verdict: Verdict = "ok"
    if cov is None or cpu_cov is None or len(throughput) < _FEWEST_BLOCKS:
        verdict, text = "cannot tell", f"{counted(runs, 'run')} are too few to know how much runs differ"
    else:
        drifts = correlation - 2 * error > _DRIFTING
        text = (
            f"runs of one cell vary by {format_share(cov)} in throughput and {format_share(cpu_cov)} in CPU an "
            f"operation ({counted(runs, 'run')}); correlation of neighbours {correlation:.2f} +- {2 * error:.2f}"
        )
        if drifts:
            text += "; this machine drifts, so compare by ratios and not by means"
        if cov > _NOISY:
            text += "; noisy, so studies need many blocks"
        if drifts or cov > _NOISY:
            verdict = "warn"
    return Variation(
        verdict=verdict,
        sentence=text + lost,
        runs=runs,
        not_ok=len(causes),
        throughput_cov=cov,
        cpu_cov=cpu_cov,
        ratio_sd=ratio_sd,
        correlation=correlation if verdict != "cannot tell" else None,
        correlation_error=error if verdict != "cannot tell" else None,
        seconds_of_run=seconds_of_run,
    )


def _cov(values: Array) -> float | None:
    """Of runs of one cell: the variances of the cells relative to their means, pooled."""
    relative = values / np.nanmean(values, axis=0) if np.isfinite(values).any(axis=0).all() else values[:0]
    return _pooled_sd(relative)


def _ratio_sd(throughput: Array) -> float | None:
    """Of logs of ratios of two cells that differ in nothing, within blocks."""
    logs = np.log(throughput)
    return _pooled_sd(np.stack([logs[:, b] - logs[:, a] for a, b in TWINS], axis=1))


def _pooled_sd(values: Array) -> float | None:
    """Each column about its own mean; None where there is not one with two values."""
    there = np.isfinite(values)
    degrees = int(np.maximum(there.sum(axis=0) - 1, 0).sum())
    if not degrees:
        return None
    known = values[:, there.any(axis=0)]
    return math.sqrt(float(np.nansum((known - np.nanmean(known, axis=0)) ** 2)) / degrees)


def ceiling(one: Sequence[float], several: Sequence[float], clients: int, store: Array) -> Ceiling:
    """The driver alone, with one client and with several; `store` is throughput of the A/A study, of one client."""
    if not one or not several:
        text = "no run of the driver on the null backend was ok"
        return Ceiling(
            verdict="cannot tell",
            sentence=text,
            one_client=None,
            clients=clients,
            all_clients=None,
            share_of_store=None,
        )
    alone, together = float(np.mean(one)), float(np.mean(several))
    share = float(np.nanmean(store)) / alone if np.isfinite(store).any() else None
    text = f"the driver alone makes {format_quantity(alone)} operations/s with 1 client"
    if clients > 1:
        text += f" and {format_quantity(together)} with {clients}"
    text += " (YCSB C): a store that comes near is not what is measured"
    if share is not None:
        text += f"; of an operation on SQLite here {format_share(share)} is the driver's"
    return Ceiling(
        verdict="warn" if share is not None and share > _DRIVERS_PART else "ok",
        sentence=text,
        one_client=alone,
        clients=clients,
        all_clients=together,
        share_of_store=share,
    )


_QUANTILES = {"latency_p99": ("p99", 0.99), "latency_p999": ("p99.9", 0.999), "latency_max": ("longest", 1.0)}


def truth_ms(quantile: float, run_s: float, stall_s: float) -> float:
    """The latency that a stall makes by arithmetic, of requests that come evenly.

    A share stall / run of them is due within it, and waits from its length down to nothing; all others do not wait.
    """
    waiting = stall_s / run_s
    return max((quantile - (1 - waiting)) / waiting, 0.0) * stall_s * 1000


def freeze(
    opened: Sequence[Mapping[str, float]],
    closed: Sequence[Mapping[str, float]],
    *,
    rate_per_s: float,
    run_s: float,
    stall_s: float,
) -> Freeze:
    """A stall as the loops told it; each run by the names of its responses."""
    quantiles = tuple(
        Quantile(
            name=name,
            truth=truth_ms(quantile, run_s, stall_s),
            open=tuple(run[response] for run in opened if response in run),
            closed=tuple(run[response] for run in closed if response in run),
        )
        for response, (name, quantile) in _QUANTILES.items()
    )
    whole = bool(opened) and all(len(each.open) == len(opened) for each in quantiles)
    errors = [max(abs(each.open[run] / each.truth - 1) for each in quantiles) for run in range(len(opened)) if whole]
    blind = all(value < quantiles[0].truth / 10 for value in quantiles[0].closed) if quantiles[0].closed else None
    verdict, text = _freeze_said(quantiles, errors, blind, rate_per_s=rate_per_s, run_s=run_s, stall_s=stall_s)
    return Freeze(
        verdict=verdict,
        sentence=text,
        rate_per_s=rate_per_s,
        run_s=run_s,
        stall_s=stall_s,
        quantiles=quantiles,
        worst=max(errors, default=None),
        closed_is_blind=blind,
    )


def _freeze_said(
    quantiles: Sequence[Quantile],
    errors: Sequence[float],
    blind: bool | None,
    *,
    rate_per_s: float,
    run_s: float,
    stall_s: float,
) -> tuple[Verdict, str]:
    if not errors:
        return "cannot tell", "no run of the open loop was ok"
    shown = errors.index(min(errors))
    told = ", ".join(f"{each.name} {each.open[shown]:,.0f} ms (truth {each.truth:,.0f})" for each in quantiles)
    text = (
        f"a stall of {format_duration(stall_s)} planted in {format_duration(run_s)} at {rate_per_s:,.0f} requests/s: "
        f"{told}"
    )
    good = sum(error <= _FREEZE_WITHIN for error in errors)
    within = format_percent(_FREEZE_WITHIN)
    verdict: Verdict
    if good == len(errors):
        verdict, text = "ok", f"{text}: within {within}"
    elif good:
        # The instrument can, and something else kept it from its work.
        verdict, text = "cannot tell", f"{text}: within {within} in {good} of {len(errors)} runs, the others disturbed"
    else:
        verdict, text = "warn", f"{text}: not within {within} in any of {counted(len(errors), 'run')}"
    if blind:
        text += f"; a closed loop is blind to it (p99 {quantiles[0].closed[0]:.2g} ms)"
    elif blind is False:
        text += "; the closed loop showed it too"
    return verdict, text


def observer_cost(throughput: Array, cpu: Array) -> ObserverCost:
    """Watched runs against those that nobody watches, within blocks: twice two cells a block."""
    ratios = [_watched_to_unwatched(values) for values in (throughput, cpu)]
    (rate, rate_ci, pairs), (work, work_ci, _) = ratios
    if rate is None or rate_ci is None or work is None or work_ci is None:
        text = "fewer than two blocks in which every run was ok"
        return ObserverCost(
            verdict="cannot tell",
            sentence=text,
            pairs=pairs,
            throughput=rate,
            throughput_ci=rate_ci,
            cpu=work,
            cpu_ci=work_ci,
        )
    costs = rate_ci[1] < 1 - _OBSERVER_COSTS or work_ci[0] > 1 + _OBSERVER_COSTS
    cheap = rate_ci[0] >= 1 - _OBSERVER_COSTS and work_ci[1] <= 1 + _OBSERVER_COSTS
    text = (
        f"with the observer machine {format_ratio(rate, rate_ci)} the throughput and {format_ratio(work, work_ci)} the "
        f"CPU an operation ({counted(pairs, 'block')})"
    )
    if not costs and not cheap:
        text += f"; too wide to show that it costs less than {format_percent(_OBSERVER_COSTS)}"
    return ObserverCost(
        verdict="warn" if costs else "ok" if cheap else "cannot tell",
        sentence=text,
        pairs=pairs,
        throughput=rate,
        throughput_ci=rate_ci,
        cpu=work,
        cpu_ci=work_ci,
    )


def _watched_to_unwatched(values: Array) -> tuple[float | None, Interval | None, int]:
    logs = np.log(values[np.isfinite(values).all(axis=1)])
    if len(logs) < 2:
        return None, None, len(logs)
    watched, unwatched = (logs[:, pair].mean(axis=1) for pair in TWINS)
    found = stats.block_ratios((watched - unwatched)[:, None], CONFIDENCE, widening=1.0)
    ratio, half = float(found.log_ratio[0]), float(found.half[0])
    return math.exp(ratio), (math.exp(ratio - half), math.exp(ratio + half)), len(logs)


def sensitivity(ratio_sd: float | None, seconds_of_run: float | None) -> Sensitivity:
    """What a study of two cells, made of runs such as these, finds in so many minutes.

    The spread is taken as wider by as much as the rule widens its interval. That is a little too careful, since only
    what is called significant is widened and not what is measured.
    """
    within = tuple(
        _detectable(minutes, ratio_sd, seconds_of_run) for minutes in _MINUTES if ratio_sd and seconds_of_run
    )
    told = [(each.slowdown, each.minutes) for each in within if each.slowdown is not None]
    if not told or seconds_of_run is None:
        text = "too few runs to know what could be shown"
        return Sensitivity(verdict="cannot tell", sentence=text, power=POWER, confidence=CONFIDENCE, within=within)
    figures = ", ".join(f"{format_share(slowdown)} in {minutes:g} min" for slowdown, minutes in told)
    text = (
        f"a comparison of two cells finds a slow-down of {figures} with {format_percent(POWER)} power, of runs such as "
        f"these ({format_duration(seconds_of_run)} each, all told)"
    )
    return Sensitivity(
        verdict="ok" if told[-1][0] <= _GATE else "warn",
        sentence=text,
        power=POWER,
        confidence=CONFIDENCE,
        within=within,
    )


def _detectable(minutes: float, ratio_sd: float, seconds_of_run: float) -> Detectable:
    pairs = int(minutes * 60 / (2 * seconds_of_run))
    slowdown = None
    if pairs >= 2:
        # Five blocks are the usual minimum of a study that stops on ratios.
        widening = stats.widening_of_ratios(1, min(5, pairs), pairs)
        slowdown = stats.detectable_effect(pairs, ratio_sd * widening, 1 - CONFIDENCE, POWER)
    return Detectable(minutes=minutes, pairs=pairs, slowdown=slowdown)
