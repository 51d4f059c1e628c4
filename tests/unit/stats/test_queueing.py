"""Closed queueing networks have the figures of textbooks, and those of their product form counted state by state."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dyno.stats import (
    Centre,
    LoadDependent,
    asymptotic_throughput,
    interpolated,
    least_response,
    mean_value_analysis,
    nearest,
    on_a_line,
    saturation_clients,
)

# R. Jain, The Art of Computer Systems Performance Analysis, 1991. Example 33.4 and those after it: a timesharing system
# with a CPU, disks A and B of 5, 4 and 3 s an interaction, and 18 s of thinking.
TIMESHARING = [Centre(5.0), Centre(4.0), Centre(3.0)]
# Example 34.2: 0.125 s x 16, 0.3 s x 10 and 0.2 s x 5, 4 s of thinking; table 34.2 prints three decimals.
CENTRAL_SERVER = [Centre(2.0), Centre(3.0), Centre(1.0)]
TABLE = {
    1: ((2.000, 3.000, 1.000), 6.000, 0.100, (0.200, 0.300, 0.100)),
    2: ((2.400, 3.900, 1.100), 7.400, 0.175, (0.421, 0.684, 0.193)),
    3: ((2.842, 5.053, 1.193), 9.088, 0.229, (0.651, 1.158, 0.273)),
}

demand = st.floats(1e-6, 1.0)
servers = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 8.0])
networks = st.lists(st.builds(Centre, demand, servers), min_size=1, max_size=3)


def counted_throughput(clients: int, centres: list[Centre], think: float) -> float:
    """G(N - 1) / G(N), each G summed over all states of the product form, the delay being a centre of its own."""

    def weight(of: int) -> float:
        total = 0.0
        for state in product(range(of + 1), repeat=len(centres)):
            left = of - sum(state)
            if left < 0:
                continue
            value = think**left / math.factorial(left)
            for jobs, centre in zip(state, centres, strict=True):
                for present in range(1, jobs + 1):
                    value *= centre.demand / min(present, centre.servers)
            total += value
        return total

    return weight(clients - 1) / weight(clients)


def test_bounds_and_knee_are_those_of_jain() -> None:
    assert saturation_clients(TIMESHARING, 18.0) == pytest.approx(6.0)
    assert asymptotic_throughput(3, TIMESHARING, 18.0) == pytest.approx(3 / 30)
    assert asymptotic_throughput(60, TIMESHARING, 18.0) == pytest.approx(1 / 5)
    assert least_response(1, TIMESHARING, 18.0) == pytest.approx(12.0)
    # More than 23 users cannot all have an answer within 100 s.
    assert least_response(23, TIMESHARING, 18.0) <= 100 < least_response(24, TIMESHARING, 18.0)


@pytest.mark.parametrize("clients", sorted(TABLE))
def test_mean_value_analysis_has_the_table_of_jain(clients: int) -> None:
    residence, response, throughput, present = TABLE[clients]
    found = mean_value_analysis(clients, CENTRAL_SERVER, 4.0)
    assert found.residence == pytest.approx(residence, abs=5e-4)
    assert found.response == pytest.approx(response, abs=5e-4)
    assert found.throughput == pytest.approx(throughput, abs=6e-4)
    assert found.present == pytest.approx(present, abs=5e-4)


def test_several_servers_are_those_of_a_repair_shop() -> None:
    # N machines, each working for Z on average, m repairers of time D each: M/M/m//N has a closed form.
    clients, number, service, think = 12, 3, 2.0, 5.0
    weights = [1.0]
    for broken in range(1, clients + 1):
        weights.append(weights[-1] * (clients - broken + 1) / think * service / min(broken, number))
    working = sum(weight * (clients - broken) for broken, weight in enumerate(weights)) / sum(weights)
    found = mean_value_analysis(clients, [Centre(service, number)], think)
    assert found.throughput == pytest.approx(working / think, rel=1e-12)
    assert found.present[0] == pytest.approx(clients - working, rel=1e-12)


@given(centres=networks, clients=st.integers(1, 6), think=st.sampled_from([0.0, 0.01, 1.0]))
def test_it_is_the_product_form_counted_state_by_state(centres: list[Centre], clients: int, think: float) -> None:
    found = mean_value_analysis(clients, centres, think)
    assert found.throughput == pytest.approx(counted_throughput(clients, centres, think), rel=1e-9)
    assert found.throughput * (found.response + think) == pytest.approx(clients)


@given(centres=networks, clients=st.integers(1, 300), think=st.sampled_from([0.0, 0.01, 1.0]))
def test_it_keeps_to_the_bounds_and_never_falls_as_clients_come(
    centres: list[Centre], clients: int, think: float
) -> None:
    found = mean_value_analysis(clients, centres, think)
    # A quota of less than one CPU makes an operation take longer than its demand even alone.
    alone = [Centre(each.demand / min(each.servers, 1.0), max(each.servers, 1.0)) for each in centres]
    assert found.throughput <= asymptotic_throughput(clients, alone, think) * (1 + 1e-9)
    more = mean_value_analysis(clients + 1, centres, think)
    assert more.throughput >= found.throughput * (1 - 1e-9)


def test_of_many_clients_nothing_is_lost_to_rounding() -> None:
    found = mean_value_analysis(2000, [Centre(1.0, 2.0), Centre(0.4, 1.0)], 3.0)
    assert found.throughput == pytest.approx(2.0, rel=1e-9)
    assert min(found.present) >= 0
    assert found.throughput * (found.response + 3.0) == pytest.approx(2000)


def test_where_nobody_stands_in_line_it_is_a_delay() -> None:
    thinking = mean_value_analysis(7, [Centre(2.0, 2.0)], 3.0)
    delayed = mean_value_analysis(7, [Centre(2.0, 2.0), Centre(3.0, math.inf)])
    assert delayed.throughput == pytest.approx(thinking.throughput, rel=1e-12)
    assert delayed.residence[1] == 3.0


@pytest.mark.parametrize(
    ("clients", "centres", "think"),
    [
        (0, [Centre(1.0)], 0.0),
        (1.5, [Centre(1.0)], 0.0),
        (5000, [Centre(1.0)], 0.0),
        (1, [Centre(1.0)], -1.0),
        (1, [Centre(0.0)], 0.0),
        (1, [], 0.0),
    ],
)
def test_a_network_that_has_no_solution_is_refused(clients, centres, think) -> None:
    with pytest.raises(ValueError, match=r"clients|think|nothing takes time"):
        mean_value_analysis(clients, centres, think)


@pytest.mark.parametrize(("demand", "servers"), [(-1.0, 1.0), (math.inf, 1.0), (1.0, 0.0), (math.nan, 1.0)])
def test_a_centre_without_servers_or_with_a_demand_below_zero_is_refused(demand: float, servers: float) -> None:
    with pytest.raises(ValueError, match="centre"):
        Centre(demand, servers)


@given(
    steps=st.lists(st.floats(0.1, 10), min_size=2, max_size=8),
    values=st.lists(st.floats(0, 100), min_size=8, max_size=8),
    share=st.floats(0, 1),
)
@example(steps=[1.0] * 5, values=[0.0, 0.0, 0.0, 0.0, 5e-324, 0.0, 0.0, 0.0], share=0.5)
def test_between_two_levels_a_value_is_between_theirs(steps: list[float], values: list[float], share: float) -> None:
    levels = [float(each) for each in np.cumsum([1.0, *steps[1:]])]
    of = values[: len(levels)]
    for place, level in enumerate(levels):
        assert interpolated(levels, of, level) == pytest.approx(of[place], abs=1e-9)
    for (low, a), (high, b) in zip(zip(levels, of, strict=True), list(zip(levels, of, strict=True))[1:], strict=False):
        found = interpolated(levels, of, min(low * (high / low) ** share, high))
        assert min(a, b) - 1e-9 <= found <= max(a, b) + 1e-9


@pytest.mark.parametrize("at", [1, 9])
def test_nothing_is_extrapolated(at: int) -> None:
    with pytest.raises(ValueError, match="not between the measured levels 2 and 8"):
        interpolated([2, 4, 6, 8], [4.0, 3.0, 2.0, 1.0], at)
    network = LoadDependent.measured([2, 4, 6, 8], [1.0, 1.9, 2.0, 2.0], [[1.0]] * 4, [2.0])
    with pytest.raises(ValueError, match="not between the measured levels 2 and 8"):
        network.throughput(at)


@pytest.mark.parametrize(
    ("levels", "values"), [([1.0], [1.0]), ([2.0, 1.0], [1.0, 1.0]), ([0.0, 1.0], [1.0, 1.0]), ([1.0, 2.0], [1.0])]
)
def test_levels_that_cannot_be_interpolated_are_refused(levels, values) -> None:
    with pytest.raises(ValueError, match="interpolating takes"):
        interpolated(levels, values, 1.0)


def test_what_is_nearest_is_so_by_ratio_and_of_two_the_lower() -> None:
    assert nearest([1, 4, 16], [10.0, 20.0, 30.0], 3) == 20.0
    assert nearest([1, 4, 16], [10.0, 20.0, 30.0], 2) == 10.0
    assert on_a_line([1, 4, 16], [10.0, 20.0, 32.0], 10) == pytest.approx(26.0)


def test_a_level_that_was_left_out_is_forecast_exactly_where_the_network_is_as_assumed() -> None:
    levels, centres = [1, 2, 4, 8, 16], [Centre(40e-6, 2.0), Centre(3e-6)]
    measured = [mean_value_analysis(n, centres, 20e-6).throughput for n in levels]
    network = LoadDependent.measured(levels, measured, [[40e-6, 3e-6]] * 5, [2.0, 1.0])
    for level, truth in zip(levels[1:-1], measured[1:-1], strict=True):
        assert network.without(level).throughput(level) == pytest.approx(truth, rel=1e-3)


def test_a_delay_that_no_demand_tells_of_is_found_where_the_network_is_not_full() -> None:
    levels, centres = [1, 2, 4, 8, 16], [Centre(40e-6, 2.0)]
    measured = [mean_value_analysis(n, centres, 50e-6).throughput for n in levels]
    network = LoadDependent.measured(levels, measured, [[40e-6]] * 5, [2.0])
    assert network.delays[:3] == pytest.approx((50e-6, 50e-6, 50e-6), rel=1e-3)
    assert network.delays[3:] == (None, None), "hidden by the line at the CPUs"
    for level, truth in zip(levels[1:-1], measured[1:-1], strict=True):
        assert network.without(level).throughput(level) == pytest.approx(truth, rel=1e-3)


def test_demands_that_fall_with_load_are_followed() -> None:
    levels = [1, 2, 3, 4, 6, 8, 12, 16]
    demands = [66e-6 if n == 1 else 30e-6 * n**-0.1 for n in levels]
    measured = [
        0.8 * mean_value_analysis(n, [Centre(of, 2.0)], 10e-6).throughput for n, of in zip(levels, demands, strict=True)
    ]
    network = LoadDependent.measured(levels, measured, [[of] for of in demands], [2.0])
    for level, truth in list(zip(levels, measured, strict=True))[2:-1]:
        assert network.without(level).throughput(level) == pytest.approx(truth, rel=0.03)
        assert network.throughput(level) == pytest.approx(truth, rel=1e-9)
