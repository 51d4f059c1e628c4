"""Drift and outliers: what is planted is found and told, what noise does by itself mostly is not."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import analyse
from dyno.analysis.drift import HELD, drift
from dyno.analysis.table import tabulate


def made(cells: int, blocks: int, *, seed: int = 1, rho: float = 0.0, noise: float = 0.05, factor=lambda run: 1.0):
    """Blocks in random order on a machine whose noise has a correlation of `rho`; `factor` is what was planted."""
    plan = study(
        {"mode": [f"m{cell}" for cell in range(cells)]} if cells > 1 else {}, compare="mode" if cells > 1 else None
    )
    random = np.random.default_rng(seed)
    z = random.standard_normal(cells * blocks)
    for i in range(1, z.size):
        z[i] = rho * z[i - 1] + np.sqrt(1 - rho**2) * z[i]
    runs = Runs(plan)
    for block in range(blocks):
        for cell in random.permutation(cells):
            run = len(runs) + 1
            runs.add(int(cell), block, 1000.0 * (1 + cell) * np.exp(noise * z[run - 1]) * factor(run))
    return plan, runs


def found(plan, runs):
    return analyse(plan, runs, ended="done").drift[0]


def notes(plan, runs) -> str:
    return "\n".join(analyse(plan, runs, ended="done").notes)


def test_a_step_of_the_machine_is_found_where_it_was_planted() -> None:
    plan, runs = made(4, 12, factor=lambda run: 1.0 if run < 25 else 0.85)
    verdict = found(plan, runs)
    assert verdict.shown
    (change,) = verdict.changes
    assert change.run in range(24, 27)
    assert change.after / change.before == pytest.approx(0.85, abs=0.03)
    assert f"it changes at run {change.run} by -1" in verdict.sentence
    assert verdict.sentence in notes(plan, runs)


def test_a_trend_is_found_with_its_size_over_the_study() -> None:
    plan, runs = made(4, 15, noise=0.02, factor=lambda run: 1 + 0.003 * run)
    verdict = found(plan, runs)
    assert verdict.trend_p < 0.001
    # A share of what runs are in the middle of the study, where they are 9 % above its beginning.
    assert verdict.trend_ci[0] < 0.003 / 1.09 < verdict.trend_ci[1]
    assert "Throughput drifted over the 60 runs: it rises from run to run, by about 1" in verdict.sentence
    assert "p < 0.0001" in verdict.sentence


def test_independent_noise_is_seldom_called_drift() -> None:
    shown = [
        drift(plan, tabulate(plan, runs), "throughput").shown for plan, runs in (made(4, 10, seed=s) for s in range(60))
    ]
    assert np.mean(shown) <= 0.12  # 5 %, within what 60 studies tell


def test_where_nothing_is_shown_the_sentence_says_what_was_looked_for() -> None:
    plan, runs = made(4, 10, seed=2)
    verdict = found(plan, runs)
    assert verdict.sentence.startswith(
        "No drift of throughput is shown over the 40 runs: neither a trend nor a change; "
    )
    assert "neighbours in time are not shown to resemble each other (correlation " in verdict.sentence
    assert verdict.sentence.endswith("; no run lies far from the others.")
    assert "drift" not in notes(plan, runs)


def test_outliers_are_listed_with_their_runs_and_stay_in_the_figures() -> None:
    plan, runs = made(4, 8, factor=lambda run: 1 / 3 if run in (7, 20) else 1.0)
    verdict = found(plan, runs)
    assert [each.run for each in verdict.outliers] == [7, 20]
    assert all(each.relative == pytest.approx(1 / 3, rel=0.2) and each.score < -3.5 for each in verdict.outliers)
    assert "2 runs lie far from the others and are kept" in verdict.sentence
    told = notes(plan, runs)
    assert f"2 runs far from the median of their cell: run 7 (mode={runs[6].levels['mode']}: 0.3" in told
    assert "; run 20 (mode=" in told
    assert "They are in all figures; a mean is sensitive to them, a median is not." in told
    assert sum(cell.n for cell in analyse(plan, runs, ended="done").cells) == len(runs) == len(verdict.runs)


def test_the_good_runs_beside_an_outlier_are_not_marked() -> None:
    # With the mean of the cell for its centre, the outlier would push its three neighbours as far off.
    plan, runs = made(8, 4, noise=0.01, factor=lambda run: 0.2 if run == 9 else 1.0)
    assert [each.run for each in found(plan, runs).outliers] == [9]


def test_a_cell_that_is_noisier_than_the_others_is_not_full_of_outliers() -> None:
    plan = study({"mode": ["calm", "wild"]})
    random = np.random.default_rng(1)
    runs = Runs(plan).add_cells(
        {cell: list(np.exp(noise * random.standard_normal(40))) for cell, noise in ((0, 0.01), (1, 0.1))}
    )
    assert len(found(plan, runs).outliers) <= 1


def test_noise_seldom_has_an_outlier() -> None:
    marked = [
        len(drift(plan, tabulate(plan, runs), "throughput").outliers)
        for plan, runs in (made(8, 6, seed=s) for s in range(30))
    ]
    assert np.sum(marked) <= 0.01 * 30 * 48


def test_few_cells_on_a_drifting_machine_are_told_what_their_means_hold() -> None:
    plan, runs = made(2, 30, rho=0.65, seed=1)
    verdict = found(plan, runs)
    assert 0.5 < verdict.correlation < 0.7
    most = verdict.correlation + verdict.correlation_error
    row = HELD[2]
    held = (
        row[0.7] + (row[0.9] - row[0.7]) * (most - 0.7) / 0.2
        if most > 0.7
        else row[0.5] + (row[0.7] - row[0.5]) * (most - 0.5) / 0.2
    )
    assert (
        f"Runs next to each other in time resemble each other (correlation {verdict.correlation:.2f}): this machine "
        "drifts. With 2 cells on a machine that drifts as far as that, intervals of means held the truth in about "
        f"{int(held * 100)}% of simulated studies, not 95%; ratios do not suffer."
    ) in notes(plan, runs)


def test_few_runs_that_show_no_correlation_do_not_rule_it_out() -> None:
    plan, runs = made(2, 5, seed=6)
    verdict = found(plan, runs)
    assert verdict.correlation <= 2 * verdict.correlation_error
    assert "So few runs do not show whether those next to each other in time resemble each other" in notes(plan, runs)


def test_more_correlation_than_was_simulated_claims_no_figure() -> None:
    plan, runs = made(1, 60, rho=0.98, seed=1)
    verdict = found(plan, runs)
    assert verdict.correlation > 0.9
    assert "held the truth in less than 54% of simulated studies, not 95%" in notes(plan, runs)


@pytest.mark.parametrize(("cells", "blocks", "rho"), [(8, 15, 0.7), (4, 60, 0.0)])
def test_many_cells_or_no_correlation_need_no_such_note(cells, blocks, rho) -> None:
    assert "on a machine that drifts" not in notes(*made(cells, blocks, rho=rho, seed=3))


def test_fewer_cells_and_more_correlation_never_hold_more() -> None:
    for row in HELD.values():
        assert list(row.values()) == sorted(row.values(), reverse=True)
    for correlation in (0.3, 0.5, 0.7, 0.9):
        column = [row[correlation] for row in HELD.values()]
        assert column == sorted(column)


def test_the_method_gives_the_table_that_the_note_goes_by() -> None:
    text = (Path(__file__).parents[3] / "docs" / "method.md").read_text()
    for cells, row in zip(("1", "2, 3", "4 to 7"), HELD.values(), strict=True):
        assert f"| {cells} | {' | '.join(f'{held * 100:.0f} %' for held in row.values())} |" in text


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.0, 2.0, 3.0], "3 runs of cells with two or more are too few; it takes 8"),
        ([1.0, 2.0, 0.0, 1.0, 2.0, 1.0, 2.0, 1.0], "some values are not above 0, and are no share of another"),
    ],
)
def test_where_drift_is_not_looked_for_it_says_why(values, reason) -> None:
    plan = study({})
    verdict = found(plan, Runs(plan).add_cells({0: values}))
    assert (verdict.reason, verdict.shown, verdict.runs) == (reason, False, ())
    assert verdict.sentence == f"Drift of throughput was not looked for: {reason}."


def test_ten_thousand_runs_are_looked_at_in_groups_and_the_step_is_found() -> None:
    plan, runs = made(4, 2500, factor=lambda run: 1.0 if run <= 6000 else 0.97)
    table = tabulate(plan, runs)
    began = time.monotonic()
    verdict = drift(plan, table, "throughput")
    assert time.monotonic() - began < 5
    assert [abs(each.run - 6001) <= 50 for each in verdict.changes] == [True]
    assert len(verdict.runs) == 10_000


def test_the_same_runs_give_the_same_verdict() -> None:
    assert found(*made(4, 12, rho=0.5)) == found(*made(4, 12, rho=0.5))


def test_a_trend_is_shown_at_half_of_what_both_tests_together_may_err() -> None:
    # Trends and changes are looked for, each at 2.5 %, so that 5 % of studies without drift are called drifting.
    between = 0
    for seed in range(60):
        what = found(*made(2, 10, seed=seed, factor=lambda run: 1 + 0.004 * run))
        assert what.shown == (what.trend_p <= 0.025 or bool(what.changes))
        between += 0.025 < what.trend_p <= 0.05
    assert between  # else this has not been tried


def test_a_trend_is_judged_with_more_correlation_than_was_seen() -> None:
    # What is seen in so few runs may be less than there is, so one standard error is added.
    for seed in range(20):
        what = found(*made(2, 10, seed=seed, factor=lambda run: 1 + 0.004 * run))
        values, runs = np.array(what.relative), np.array(what.runs, dtype=float)
        seen = stats.trend(values, runs, 0.95).correlation
        assert what.trend_p > 1.01 * stats.trend(values, runs, 0.95, seen).p or what.trend_p > 0.9
