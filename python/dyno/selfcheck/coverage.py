"""Does 95 % mean 95 %? Studies of known truth, by the thousand, through the rule that stops real ones.

Every study is an A/A study: all its cells have the same mean, so each ratio is 1 and whatever is called a difference is
a false alarm. What decides is `dyno.design.rule`, and what reports is `dyno.stats`, as in a real study; only the runs
are drawn instead of made. For each kind of noise and number of cells:

ratio     how often the interval of a ratio holds 1, where the study stops on ratios
alarms    how often any comparison of a study is called a difference, Holm's correction included
mean      how often the interval of a cell's mean holds the truth, where the study stops on means
runs      runs that this takes, divided by those of the naive rule: each cell from 3 to 60 runs by itself, until
          Student's interval is within 5 %; beside it how often the naive interval holds the truth

Shares come from finitely many studies: each bar is held to what it would still be within two standard errors of the
simulation. `dyno selfcheck --statistics` shows the table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dyno import stats
from dyno.design.rule import Rule
from dyno.model.looks import Looks

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Array]

CONFIDENCE, PRECISION, MOST = 0.95, 0.05, 60
STUDIES = 20_000
"""Of each row, unless asked otherwise."""
BATCH = 1000
COVERAGE, ALARMS, RUNS = 0.945, 0.055, 1.4


@dataclass(frozen=True)
class Row:
    """A kind of noise. `draw` gives factors on the true mean for (studies, runs), in the order of execution."""

    name: str
    draw: Draw
    independent: bool = True
    means: bool = True
    """Whether a claim is made on means."""
    step: float = 0.0
    """Relative change of the true mean half-way through the longest study."""


def normal(cov: float) -> Draw:
    """Independent, of so large a coefficient of variation."""
    return lambda rng, studies, runs: 1 + cov * rng.standard_normal((studies, runs))


def lognormal(cov: float) -> Draw:
    """Independent, with mean 1."""
    sigma = math.sqrt(math.log1p(cov**2))
    return lambda rng, studies, runs: np.exp(sigma * rng.standard_normal((studies, runs)) - sigma**2 / 2)


def autoregressive(rho: float, cov: float) -> Draw:
    """AR(1) over runs next to each other in time."""

    def draw(rng: np.random.Generator, studies: int, runs: int) -> Array:
        z = rng.standard_normal((studies, runs))
        scale = math.sqrt(1 - rho**2)
        for run in range(1, runs):
            z[:, run] = rho * z[:, run - 1] + scale * z[:, run]
        return 1 + cov * z

    return draw


def outliers(cov: float, share: float) -> Draw:
    """Some runs take three times as long."""

    def draw(rng: np.random.Generator, studies: int, runs: int) -> Array:
        slow = rng.random((studies, runs)) < share
        return (1 + cov * rng.standard_normal((studies, runs))) / np.where(slow, 3, 1)

    return draw


ROWS = (
    Row("normal 2%", normal(0.02)),
    Row("normal 5%", normal(0.05)),
    Row("normal 10%", normal(0.10)),
    Row("normal 20%", normal(0.20)),
    Row("lognormal 20%", lognormal(0.20)),
    Row("AR 0.5, 5%", autoregressive(0.5, 0.05), independent=False),
    Row("AR 0.5, 10%", autoregressive(0.5, 0.10), independent=False),
    Row("AR 0.7, 5%", autoregressive(0.7, 0.05), independent=False),
    Row("AR 0.7, 10%", autoregressive(0.7, 0.10), independent=False),
    Row("step 5%, 5%", normal(0.05), independent=False, step=0.05),
    Row("step 5%, 10%", normal(0.10), independent=False, step=0.05),
    Row("outliers, 5%", outliers(0.05, 0.02), independent=False, means=False),
)

# Of so many cells, how many are levels of the compared factor; the rest is combinations of others.
LEVELS = {2: 2, 4: 4, 8: 2, 12: 3, 27: 3}


def pairs_of(cells: int) -> NDArray[np.int64]:
    """Every two levels of the compared factor within each combination of the others."""
    levels = LEVELS.get(cells, 2)
    groups = [range(first, first + levels) for first in range(0, cells - levels + 1, levels)]
    return np.array([pair for group in groups for pair in combinations(group, 2)], dtype=np.int64)


@dataclass(frozen=True)
class Studies:
    """Runs that were never made: (studies, blocks, cells), their places in time, and the truth after each block."""

    values: Array
    times: Array
    truth: Array


def draw(row: Row, cells: int, studies: int, rng: np.random.Generator) -> Studies:
    """Randomised complete blocks on a noisy machine."""
    factors = row.draw(rng, studies, MOST * cells).reshape(studies, MOST, cells)
    truth = np.ones(MOST)
    if row.step:
        factors[:, MOST // 2 :] *= 1 + row.step
        truth[MOST // 2 :] += row.step
    place = rng.permuted(np.broadcast_to(np.arange(cells), factors.shape), axis=-1)
    values = np.take_along_axis(np.maximum(factors, 1e-6), place, axis=-1)
    times = place + cells * np.arange(MOST)[:, None]
    return Studies(values, times.astype(np.float64), np.cumsum(truth) / np.arange(1, MOST + 1))


def stops(rule: Rule, studies: Studies) -> NDArray[np.int64]:
    """After how many blocks each study stops."""
    number, _, cells = studies.values.shape
    tried = np.ones(cells, dtype=np.bool_)
    blocks = np.full(number, MOST)
    active = np.arange(number)
    for block in range(rule.looks.first, MOST):
        reached = rule.reached(studies.values[active, :block], studies.times[active, :block], tried)
        blocks[active[reached <= PRECISION]] = block
        active = active[reached > PRECISION]
        if not active.size:
            break
    return blocks


def of_ratios(cells: int, studies: Studies) -> tuple[float, float, float]:
    """Share of intervals that hold, share of studies with a false alarm, and runs of a study."""
    compared = pairs_of(cells)
    looks = Looks("ratio", 5, MOST, len(compared))
    rule = Rule(looks, compared, CONFIDENCE, randomised=True)
    blocks = stops(rule, studies)
    widening = stats.widening_of_ratios(looks.comparisons, looks.first, looks.last)
    held, alarms = [], []
    for block in np.unique(blocks):
        logs = np.log(studies.values[blocks == block, :block])
        found = stats.block_ratios(logs[..., compared[:, 1]] - logs[..., compared[:, 0]], CONFIDENCE, widening=widening)
        held.append(np.abs(found.log_ratio) <= found.half)
        # Holm rejects something exactly where the least p is at most alpha divided by their number.
        alarms.append(found.p.min(axis=-1) <= (1 - CONFIDENCE) / len(compared))
    return float(np.concatenate(held).mean()), float(np.concatenate(alarms).mean()), float(blocks.mean()) * cells


def of_means(cells: int, studies: Studies) -> tuple[float, float]:
    """Share of intervals that hold, and runs of a study."""
    looks = Looks("mean", 4, MOST, 0)
    rule = Rule(looks, np.empty((0, 2), dtype=np.int64), CONFIDENCE, randomised=True)
    blocks = stops(rule, studies)
    held = []
    for block in np.unique(blocks):
        chosen = blocks == block
        found = stats.cell_means(
            studies.values[chosen, :block],
            studies.times[chosen, :block],
            CONFIDENCE,
            randomised=True,
            widening=stats.widening_of_means(looks.first, looks.last),
        )
        held.append(np.abs(found.mean - studies.truth[block - 1]) <= found.half)
    return float(np.concatenate(held).mean()), float(blocks.mean()) * cells


def of_naive(studies: Studies) -> tuple[float, float]:
    """The same of the rule of the published studies: each cell by itself, Student's interval, looked at from 3 on."""
    number, _, cells = studies.values.shape
    blocks, held = np.zeros((number, cells), dtype=np.int64), np.zeros((number, cells), dtype=np.bool_)
    for block in range(3, MOST + 1):
        so_far = studies.values[:, :block]
        mean = so_far.mean(axis=1)
        half = stats.t_quantiles(CONFIDENCE, np.asarray(block - 1.0)) * so_far.std(axis=1, ddof=1) / math.sqrt(block)
        now = (blocks == 0) & ((half <= PRECISION * mean) | (block == MOST))
        blocks[now] = block
        held[now] = (np.abs(mean - studies.truth[block - 1]) <= half)[now]
    return float(held.mean()), float(blocks.sum(axis=1).mean())


def table(studies: int, cells: Sequence[int], rows: Sequence[str], seed: int, say: Callable[[str], None]) -> int:
    """Say the table line by line; gives the number of bars that were missed."""
    began = time.monotonic()
    say(f"{studies:,} studies a row, seed {seed}: 95 % claimed, 5 % precision, at most {MOST} blocks")
    say(f"{'cells':>5}  {'noise':14} {'ratio':>7} {'alarms':>7} {'mean':>7} {'runs':>7}   naive: {'mean':>6}")
    missed = sum(_say_row(row, many, studies, seed, say) for many in cells for row in ROWS if row.name in rows)
    say(f"{missed} bars missed; {time.monotonic() - began:.0f} s")
    return missed


def _say_row(row: Row, cells: int, studies: int, seed: int, say: Callable[[str], None]) -> int:
    rng = np.random.default_rng([seed, cells, *row.name.encode()])
    parts = []
    for first in range(0, studies, BATCH):
        drawn = draw(row, cells, min(BATCH, studies - first), rng)
        parts.append((len(drawn.values), *of_ratios(cells, drawn), *of_means(cells, drawn), *of_naive(drawn)))
    weights = np.array([part[0] for part in parts], dtype=np.float64)
    ratio, alarms, _, mean, runs, naive_mean, naive_runs = (
        float(np.average([part[i] for part in parts], weights=weights)) for i in range(1, 8)
    )
    slack = 2 * math.sqrt(COVERAGE * (1 - COVERAGE) / studies)
    checks = [
        (f"{ratio:7.2%}", ratio >= COVERAGE - slack),
        (f"{alarms:7.2%}", alarms <= ALARMS + slack),
        (
            f"{mean:7.2%}",
            not row.means or mean >= COVERAGE - slack or (not row.independent and not row.step and cells < 8),
        ),
        (f"{runs / naive_runs:6.2f}x", not row.independent or runs / naive_runs <= RUNS),
    ]
    told = " ".join(text + (" " if held else "!") for text, held in checks)
    say(f"{cells:5}  {row.name:14} {told}  {naive_mean:12.2%}")
    return sum(not held for _, held in checks)
