"""Does 95 % mean 95 %? Studies of known truth, by the thousand, through the rule that stops real ones.

What decides is `dyno.design`, and what reports is `dyno.stats`, as in a real study; only the runs are drawn instead of
made. The first table is of A/A studies: all cells have the same mean, so each ratio is 1 and whatever is called a
difference is a false alarm. For each kind of noise and number of cells:

ratio     how often the interval of a ratio holds 1, where the study stops on ratios
alarms    how often any comparison of a study is called a difference, Holm's correction included
mean      how often the interval of a cell's mean holds the truth, where the study stops on means
runs      runs that either takes, divided by those of the naive rule: each cell from 3 to 60 runs by itself, until
          Student's interval is within 5 %; beside it how often the naive interval holds the truth. The bar is on those
          for means, since the naive rule knows no ratios

Where one cell is noisier than the others (`1%, one 5%`), what is said of ratios and means is of the worst of them.

The second is of A/A studies in two stages, two solutions with three tunings each: the ratio and the alarms of what was
picked and then compared on runs of its own. Beside them:

shown     how often stage one calls a pick shown to be the best of its equals

The third is of what `dyno plan --pilot 6 --effect E` foretells. A pilot is drawn, the runs until the effect is found
are foretold from it, and a study of just so many blocks is made in which one cell is better by the effect:

found     how often the comparison that was planned for is called higher, Holm's correction included, in a report in
          which other responses hold their half of the error that is allowed
blocks    how many were foretold: on average, and at most in nineteen of twenty pilots
plug-in   both, were the spread that the pilot saw taken for the true one

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
from dyno.design.forecasts import alpha_of, until_found, variances_of_ratios
from dyno.design.rule import Rule
from dyno.model.looks import GIVE_UP_AFTER, Looks
from dyno.model.pairs import DECIDING_SHARE

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Array]

CONFIDENCE, PRECISION, MOST = 0.95, 0.05, 60
STUDIES = 20_000
"""Of each row, unless asked otherwise."""
BATCH = 1000
COVERAGE, ALARMS, RUNS, FOUND = 0.945, 0.055, 1.4, 0.9
OF_NOISIEST = 0.9
"""What is claimed of the mean of a cell that is far noisier than the others."""
FIRST = {"ratio": 5, "mean": 4}
"""The first look of a study, as usual."""


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
    noisier: float = 1.0
    """How many times the noise of the others the first cell has."""


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
    Row("1%, one 5%", normal(0.01), independent=False, noisier=5),
    Row("5%, one 10%", normal(0.05), independent=False, noisier=2),
    Row("outliers, 5%", outliers(0.05, 0.02), independent=False, means=False),
)

_NOISE = {row.name: row for row in ROWS}


@dataclass(frozen=True)
class Staged:
    """A/A studies in two stages."""

    noise: str

    @property
    def name(self) -> str:
        """What `--rows` calls it."""
        return f"staged: {self.noise}"


STAGED = tuple(Staged(noise) for noise in ("normal 10%", "AR 0.7, 10%", "step 5%, 5%"))
TUNINGS = 3
PICKS = (5, 8)
"""The looks at stage one, of at most eight blocks."""


@dataclass(frozen=True)
class Planned:
    """Studies as long as a pilot foretells, with an effect that is there."""

    noise: str
    effect: float

    @property
    def name(self) -> str:
        """What `--rows` calls it."""
        return f"power: {self.noise}"


PLANNED = tuple(
    Planned(noise, effect)
    for noise, effect in (
        ("normal 5%", 0.10),
        ("normal 10%", 0.20),
        ("normal 20%", 0.40),
        ("lognormal 20%", 0.40),
        ("AR 0.5, 5%", 0.10),
    )
)
PILOT = 6
"""Blocks of a pilot."""

NAMES = (*(row.name for row in ROWS), *(row.name for row in STAGED), *(row.name for row in PLANNED))

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


def draw(row: Row, cells: int, studies: int, rng: np.random.Generator, blocks: int = MOST) -> Studies:
    """Randomised complete blocks on a noisy machine."""
    factors = row.draw(rng, studies, blocks * cells)
    truth = np.ones(blocks)
    if row.step:
        factors[:, blocks // 2 * cells :] *= 1 + row.step
        truth[blocks // 2 :] += row.step
    values, times = _in_blocks(factors, cells, rng)
    if row.noisier != 1:
        values[..., 0] = np.maximum(1 + row.noisier * (values[..., 0] - 1), 1e-6)
    return Studies(values, times, np.cumsum(truth) / np.arange(1, blocks + 1))


def _in_blocks(factors: Array, cells: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Runs in the order of execution, (studies, runs), as blocks in random order; with their places in time."""
    blocks = np.maximum(factors, 1e-6).reshape(len(factors), -1, cells)
    place = rng.permuted(np.broadcast_to(np.arange(cells), blocks.shape), axis=-1)
    times = place + cells * np.arange(blocks.shape[1])[:, None]
    return np.take_along_axis(blocks, place, axis=-1), times.astype(np.float64)


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


def of_ratios(cells: int, studies: Studies) -> tuple[Array, float, float]:
    """Share of intervals that hold, a comparison each; share of studies with a false alarm, and runs of a study."""
    compared = pairs_of(cells)
    looks = Looks("ratio", FIRST["ratio"], MOST, len(compared))
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
    return np.concatenate(held).mean(axis=0), float(np.concatenate(alarms).mean()), float(blocks.mean()) * cells


def of_means(cells: int, studies: Studies) -> tuple[Array, float]:
    """Share of intervals that hold, a cell each, and runs of a study."""
    looks = Looks("mean", FIRST["mean"], MOST, 0)
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
    return np.concatenate(held).mean(axis=0), float(blocks.mean()) * cells


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


def of_stages(row: Row, studies: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Of two stages: shares of intervals that hold, of studies with a false alarm and of those with a pick shown."""
    cells = 2 * TUNINGS
    most = PICKS[-1] * cells
    runs = row.draw(rng, studies, most + MOST * 2)
    runs[:, runs.shape[1] // 2 :] *= 1 + row.step
    first, _ = _in_blocks(runs[:, :most], cells, rng)
    found = [_pick(values) for values in first]
    # Stage two begins where stage one ended; all cells are equal, so it is nothing to it which of them were picked.
    begins = np.array([blocks * cells for blocks, _ in found])
    second = np.take_along_axis(runs, begins[:, None] + np.arange(MOST * 2), axis=1)
    held, alarms, _ = of_ratios(2, Studies(*_in_blocks(second, 2, rng), np.ones(MOST)))
    return float(held.mean()), alarms, float(np.mean([shown for _, shown in found]))


def _pick(values: Array) -> tuple[int, bool]:
    """How many blocks stage one takes, and whether it calls a pick shown to be the best."""
    shown: list[bool] = []
    for blocks in PICKS:
        groups = [values[:blocks, :TUNINGS], values[:blocks, TUNINGS:]]
        picks = stats.pick_best(groups, higher=True, confidence=CONFIDENCE, looks=len(PICKS), out_after=GIVE_UP_AFTER)
        shown = [pick.could_be == 1 for pick in picks]
        if all(shown):
            break
    return blocks, any(shown)


def foretold(plan: Planned, cells: int, studies: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The blocks that pilots ask for, and those that they would if the spread seen were the true one."""
    compared = pairs_of(cells)
    differences = _log_ratios(draw(_NOISE[plan.noise], cells, studies, rng, PILOT).values, compared)
    groups = len(compared) // math.comb(LEVELS.get(cells, 2), 2)
    variance, degrees = (each[:, 0] for each in variances_of_ratios(differences, np.unique(compared).size, groups))
    asked = (plan.effect, alpha_of(CONFIDENCE, len(compared)), _widening(compared))
    plugged = np.full_like(degrees, np.inf)
    return until_found(np.sqrt(variance), degrees, *asked), until_found(np.sqrt(variance), plugged, *asked)


def of_planned(plan: Planned, cells: int, blocks: Array, rng: np.random.Generator) -> float:
    """The share of studies of so many blocks each that find the effect in the first comparison."""
    compared, found = pairs_of(cells), 0
    # Another response, none of whose comparisons shows anything, holds its share of the error to the end.
    weights = [DECIDING_SHARE / len(compared)] * len(compared) + [1 - DECIDING_SHARE]
    alike = np.sort(blocks).astype(np.int64)  # in length: what is drawn beyond the end of a study is for nothing
    for first in range(0, len(alike), BATCH // 4):
        ends = alike[first : first + BATCH // 4]
        values = draw(_NOISE[plan.noise], cells, len(ends), rng, int(ends[-1])).values
        values[..., compared[0, 1]] *= 1 + plan.effect
        values[np.arange(ends[-1]) >= ends[:, None]] = np.nan
        ratios = stats.block_ratios(_log_ratios(values, compared), CONFIDENCE, widening=_widening(compared))
        adjusted = np.array([stats.holm([*p, 1.0], weights)[0] for p in ratios.p])
        found += int(((adjusted <= 1 - CONFIDENCE) & (ratios.log_ratio[:, 0] > 0)).sum())
    return found / len(alike)


def _log_ratios(values: Array, compared: NDArray[np.int64]) -> Array:
    logs = np.log(values)
    ratios: Array = logs[..., compared[:, 1]] - logs[..., compared[:, 0]]
    return ratios


def _widening(compared: NDArray[np.int64]) -> float:
    return stats.widening_of_ratios(len(compared), FIRST["ratio"], MOST)


def table(studies: int, cells: Sequence[int], rows: Sequence[str], seed: int, say: Callable[[str], None]) -> int:
    """Say the tables line by line; gives the number of bars that were missed."""
    began = time.monotonic()
    missed = 0
    say(f"{studies:,} studies a row, seed {seed}: 95 % claimed, 5 % precision, at most {MOST} blocks")
    if any(row.name in rows for row in ROWS):
        columns = f"{'ratio':>7} {'alarms':>7} {'runs':>7} {'mean':>7} {'runs':>7}   naive: {'mean':>6}"
        say(f"{'cells':>5}  {'noise':14} {columns}")
        missed += sum(_say_row(row, many, studies, seed, say) for many in cells for row in ROWS if row.name in rows)
    if 2 in cells and any(row.name in rows for row in STAGED):
        say(f"in two stages, {TUNINGS} tunings each:")
        say(f"{'cells':>5}  {'noise':14} {'ratio':>7} {'alarms':>7} {'shown':>7}")
        missed += sum(_say_staged(row, studies, seed, say) for row in STAGED if row.name in rows)
    if any(row.name in rows for row in PLANNED):
        say(f"as long as a pilot of {PILOT} blocks foretells, to find an effect with {FOUND:.0%} power:")
        plain = f"plug-in: {'found':>6} {'blocks':>6}"
        say(f"{'cells':>5}  {'noise':14} {'effect':>7} {'found':>7} {'blocks':>15}   {plain}")
        missed += sum(
            _say_planned(row, many, studies, seed, say) for many in cells for row in PLANNED if row.name in rows
        )
    say(f"{missed} bars missed; {time.monotonic() - began:.0f} s")
    return missed


def _say_row(row: Row, cells: int, studies: int, seed: int, say: Callable[[str], None]) -> int:
    rng = np.random.default_rng([seed, cells, *row.name.encode()])
    sizes = [min(BATCH, studies - first) for first in range(0, studies, BATCH)]
    parts = []
    for size in sizes:
        drawn = draw(row, cells, size, rng)
        parts.append((*of_ratios(cells, drawn), *of_means(cells, drawn), *of_naive(drawn)))
    ratios, alarms, ratio_runs, means, runs, naive_mean, naive_runs = (
        np.average(np.array(each), axis=0, weights=np.array(sizes)) for each in zip(*parts, strict=True)
    )
    ratio, mean = (float(each.min() if row.noisier != 1 else each.mean()) for each in (ratios, means))
    alarmed, for_ratios, for_means = float(alarms), float(ratio_runs / naive_runs), float(runs / naive_runs)
    slack = _slack(COVERAGE, studies)
    checks = [
        (f"{ratio:7.2%}", ratio >= COVERAGE - slack),
        (f"{alarmed:7.2%}", alarmed <= ALARMS + slack),
        (f"{for_ratios:6.2f}x", True),
        (f"{mean:7.2%}", _mean_holds(row, cells, mean, slack)),
        (f"{for_means:6.2f}x", not row.independent or for_means <= RUNS),
    ]
    told = _told(checks)
    say(f"{cells:5}  {row.name:14} {told}  {naive_mean:12.2%}")
    return sum(not held for _, held in checks)


def _mean_holds(row: Row, cells: int, mean: float, slack: float) -> bool:
    if not row.means:
        return True
    if row.noisier != 1:
        return mean >= OF_NOISIEST - slack
    # With fewer cells, reports say that the machine may drift and how often intervals held the truth on one that does.
    return mean >= COVERAGE - slack or (not row.independent and not row.step and cells < 8)


def _say_staged(row: Staged, studies: int, seed: int, say: Callable[[str], None]) -> int:
    rng = np.random.default_rng([seed, 2, *row.name.encode()])
    sizes = [min(BATCH, studies - first) for first in range(0, studies, BATCH)]
    parts = [of_stages(_NOISE[row.noise], size, rng) for size in sizes]
    ratio, alarms, shown = (float(share) for share in np.average(np.array(parts), axis=0, weights=np.array(sizes)))
    slack = _slack(COVERAGE, studies)
    checks = [
        (f"{ratio:7.2%}", ratio >= COVERAGE - slack),
        (f"{alarms:7.2%}", alarms <= ALARMS + slack),
        (f"{shown:7.2%}", shown <= ALARMS + slack),
    ]
    say(f"{2:5}  {row.noise:14} {_told(checks)}")
    return sum(not held for _, held in checks)


def _say_planned(row: Planned, cells: int, studies: int, seed: int, say: Callable[[str], None]) -> int:
    rng = np.random.default_rng([seed, cells, *row.name.encode()])
    blocks, plugged = foretold(row, cells, studies, rng)
    found, plain = (of_planned(row, cells, each, rng) for each in (blocks, plugged))
    check = (f"{found:7.2%}", found >= FOUND - _slack(FOUND, studies))
    many = f"{blocks.mean():.1f} to {np.quantile(blocks, 0.95):.0f}"
    say(f"{cells:5}  {row.noise:14} {row.effect:7.0%} {_told([check])} {many:>14}  {plain:15.2%} {plugged.mean():6.1f}")
    return not check[1]


def _slack(share: float, studies: int) -> float:
    """Two standard errors."""
    return 2 * math.sqrt(share * (1 - share) / studies)


def _told(checks: Sequence[tuple[str, bool]]) -> str:
    return " ".join(text + (" " if held else "!") for text, held in checks)
