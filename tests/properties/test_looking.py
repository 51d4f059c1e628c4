"""Intervals for those who look after each block."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dyno import stats
from dyno.selfcheck import coverage
from dyno.stats.looking import moderate, neighbours

STUDIES = 400
# Three standard errors below and above what is claimed, of so many studies with one interval each at the least.
LEAST = 0.95 - 3 * math.sqrt(0.95 * 0.05 / STUDIES)
MOST = 0.05 + 3 * math.sqrt(0.95 * 0.05 / STUDIES)


def drawn(name: str, cells: int) -> coverage.Studies:
    row = next(row for row in coverage.ROWS if row.name == name)
    return coverage.draw(row, cells, STUDIES, np.random.default_rng([7, cells]))


@pytest.mark.parametrize("name", ["normal 5%", "normal 10%", "AR 0.7, 10%", "outliers, 5%"])
@pytest.mark.parametrize("cells", [2, 4, 12])
def test_intervals_of_ratios_hold_and_alarms_are_rare_where_a_study_stops_on_them(name: str, cells: int) -> None:
    held, alarms, _ = coverage.of_ratios(cells, drawn(name, cells))
    assert held.mean() >= LEAST
    assert alarms <= MOST


@pytest.mark.parametrize("name", ["normal 5%", "normal 10%", "AR 0.7, 10%", "step 5%, 5%"])
@pytest.mark.parametrize("cells", [8, 12])
def test_intervals_of_means_hold_where_a_study_stops_on_them(name: str, cells: int) -> None:
    held, runs = coverage.of_means(cells, drawn(name, cells))
    assert held.mean() >= LEAST
    assert runs > 4 * cells


@pytest.mark.parametrize("cells", [4, 8, 27])
def test_a_cell_that_is_noisier_than_the_others_keeps_most_of_what_is_claimed(cells: int) -> None:
    # Before any cell could stand out, 82 % with 8 cells and 68 % with 27.
    studies = drawn("1%, one 5%", cells)
    means, _ = coverage.of_means(cells, studies)
    assert means[0] >= 0.9 - 2 * math.sqrt(0.9 * 0.1 / STUDIES)
    assert means[1:].mean() >= LEAST
    ratios, alarms, _ = coverage.of_ratios(cells, studies)
    assert ratios[0] >= LEAST
    assert alarms <= MOST


def test_the_simulation_sees_that_the_rule_of_the_published_studies_does_not_hold() -> None:
    held, _ = coverage.of_naive(drawn("AR 0.7, 10%", 2))
    assert held < 0.8
    held, _ = coverage.of_naive(drawn("normal 10%", 2))
    assert held < 0.93


# G. K. Smyth, limma's `squeezeVar`: with variances that do not differ beyond chance, all are the pooled one.
def test_variances_that_differ_by_chance_alone_become_one() -> None:
    variance = np.array([1.0, 1.1, 0.9, 1.05])
    moderated, degrees = moderate(variance, np.full(4, 9.0))
    assert moderated == pytest.approx(np.full(4, variance.mean()))
    assert degrees == pytest.approx(np.full(4, 36.0))


def test_variances_that_differ_truly_keep_most_of_their_difference() -> None:
    rng = np.random.default_rng(3)
    truth = np.array([1.0] * 10 + [100.0] * 10)
    variance = truth * rng.chisquare(19, 20) / 19
    moderated, degrees = moderate(variance, np.full(20, 19.0))
    assert (moderated[10:].min() / moderated[:10].max()) > 10
    assert (degrees < 30).all()


def test_the_prior_is_recovered_from_variances_drawn_from_it() -> None:
    # Smyth 2004, section 6.2: 1 / sigma^2 ~ chi^2(d0) / (d0 s0^2); here d0 = 8 and s0^2 = 2.
    rng = np.random.default_rng(5)
    truth = 8 * 2.0 / rng.chisquare(8, 20_000)
    variance = truth * rng.chisquare(5, 20_000) / 5
    moderated, degrees = moderate(variance, np.full(20_000, 5.0))
    # Half a per cent stands out and lends nothing, which makes the others look a little more alike than they are.
    alike = ~stats.stands_out(variance, np.full(20_000, 5.0))
    assert 0.99 < alike.mean() < 1
    prior = degrees[alike][0] - 5
    assert prior == pytest.approx(8.4, rel=0.08)
    typical = (moderated * (prior + 5) - 5 * variance)[alike] / prior
    assert typical == pytest.approx(np.full(alike.sum(), 2.0), rel=0.03)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_the_correlation_of_neighbours_is_found_in_any_order_of_the_cells(rho: float) -> None:
    rng = np.random.default_rng(11)
    studies = coverage.draw(coverage.Row("", coverage.autoregressive(rho, 0.1)), 8, 500, rng)
    found, error = neighbours(studies.values[:, :12], studies.times[:, :12])
    assert found.mean() == pytest.approx(rho, abs=0.04)
    assert (np.abs(found - rho) < 2 * error).mean() > 0.85


VALUES = arrays(np.float64, (6, 3), elements=st.floats(1.0, 1e6))


def in_two_units(values: np.ndarray, unit: float) -> tuple[stats.Means, stats.Means]:
    times = np.arange(18.0).reshape(6, 3)
    plain, scaled = (
        stats.cell_means(each, times, 0.95, randomised=True, widening=1.0) for each in (values, values * unit)
    )
    return plain, scaled


@given(VALUES, st.integers(-20, 20))
def test_means_and_their_widths_scale_with_a_unit_that_loses_no_digit(values: np.ndarray, exponent: int) -> None:
    plain, scaled = in_two_units(values, 2.0**exponent)
    assert (scaled.mean == plain.mean * 2.0**exponent).all()
    assert (scaled.half == plain.half * 2.0**exponent).all()


# Any other unit rounds each value anew, by up to 1.2e-16 of it, and what differs by no more than that may become equal.
# Whole numbers up to a million have a standard deviation of 4e-7 of them or more in each cell that varies at all, so
# that it moves by less than 1e-9 of itself, and what is borrowed from other cells' logs by some ten times that.
@given(arrays(np.float64, (6, 3), elements=st.integers(1, 10**6).map(float)), st.floats(1e-6, 1e6))
def test_means_and_their_widths_scale_with_the_unit(values: np.ndarray, unit: float) -> None:
    plain, scaled = in_two_units(values, unit)
    assert scaled.mean == pytest.approx(plain.mean * unit, rel=1e-14)
    assert scaled.half == pytest.approx(plain.half * unit, rel=1e-6, abs=0)


@given(VALUES)
@settings(max_examples=50)
def test_many_studies_at_once_are_each_as_one_alone(values: np.ndarray) -> None:
    times = np.arange(18.0).reshape(6, 3)
    others = np.stack([values, values[::-1], values + 1])
    together = stats.cell_means(others, np.stack([times] * 3), 0.95, randomised=True, widening=1.1)
    alone = stats.cell_means(values, times, 0.95, randomised=True, widening=1.1)
    assert together.half[0] == pytest.approx(alone.half, rel=1e-9, nan_ok=True)
    differences = np.log(others[..., 1:]) - np.log(others[..., :1])
    ratios = stats.block_ratios(differences, 0.95, widening=1.05)
    one = stats.paired_ratio(values[:, 0], values[:, 1], 0.95, 1.05)
    assert one is not None
    assert math.log(one.ratio) == pytest.approx(ratios.log_ratio[0, 0], abs=1e-12)
    assert one.half_width == pytest.approx(ratios.half[0, 0], abs=1e-9)


@given(VALUES, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=16))
def test_missing_runs_never_give_a_width_that_is_not_there(values: np.ndarray, missing: list[tuple[int, int]]) -> None:
    for block, cell in missing:
        values[block, cell] = np.nan
    times = np.where(np.isfinite(values), np.arange(18.0).reshape(6, 3), np.nan)
    found = stats.cell_means(values, times, 0.95, randomised=True, widening=1.0)
    count = np.isfinite(values).sum(axis=0)
    assert (np.isfinite(found.half) == (count > 1)).all()
    assert (np.isfinite(found.mean) == (count > 0)).all()


def test_p_is_five_per_cent_where_the_interval_ends_at_one() -> None:
    differences = np.array([[0.1], [0.3], [0.2], [0.4]])
    found = stats.block_ratios(differences, 0.95, widening=1.2)
    shifted = differences - found.log_ratio + found.half
    assert stats.block_ratios(shifted, 0.95, widening=1.2).p[0] == pytest.approx(0.05)


def test_one_look_is_not_widened_and_one_comparison_is_widened_most() -> None:
    assert stats.widening_of_ratios(1, 5, 5) == stats.widening_of_means(5, 5) == 1.0
    assert stats.widening_of_ratios(1, 3, 60) > stats.widening_of_ratios(1, 6, 60) > stats.widening_of_ratios(1, 20, 60)
    for first in (3, 5, 20):
        assert stats.widening_of_ratios(1, first, 60) > stats.widening_of_ratios(2, first, 60) > 1.0


def test_a_variance_stands_out_where_an_f_test_says_so() -> None:
    # By the printed table of F (5 %, NIST/SEMATECH e-Handbook 1.3.6.7.3): 3 and 3 degrees of freedom, 9.277; two cells
    # share 10 %.
    degrees = np.full(2, 3.0)
    assert not stats.stands_out(np.array([9.27, 1.0]), degrees).any()
    assert stats.stands_out(np.array([9.28, 1.0]), degrees).tolist() == [True, False]
    assert not stats.stands_out(np.array([0.0, 5.0]), degrees).any()
    assert not stats.stands_out(np.array([5.0]), np.array([3.0])).any()
