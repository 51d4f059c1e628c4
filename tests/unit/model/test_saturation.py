"""A driver that is itself the limit is told; one that competes as any does on few CPUs is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.model.saturation import DRIVER_IS_THE_LIMIT, DriverUse, why_driver_is_the_limit

# Eight clients on two CPUs: each operation is on a CPU for a third of its CPU time in the driver.
SHARED = DriverUse(seconds=6.0, samples=20, clients=8, cpus=2, cpu=0.6, wait=2.8, system_cpu=1.3, system_wait=3.2)
STARVED = replace(SHARED, clients=4, cpus=1, cpu=0.3, wait=3.2, system_cpu=0.4, system_wait=0.05)
OPEN = replace(STARVED, cpu=0.1, wait=0.5, system_cpu=0.2, lag_ms=4.0, service_ms=1.0, rate_per_s=500.0)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (STARVED, "its threads waited 3.20 s a second for a CPU and ran 0.30 s"),
        (replace(SHARED, clients=1, cpu=0.95, wait=0.0), "it used 0.95 of the 1 CPUs that its 1 clients could"),
        (replace(SHARED, clients=4, cpus=1, cpu=0.96, wait=2.5), "its clients were in it 86% of the time"),
        (OPEN, "requests were sent 4 ms late in the mean, later than the 1 ms that they took, though 0.5 of 4 clients"),
    ],
)
def test_a_driver_that_lacks_cpus_of_its_own_is_the_limit(use: DriverUse, says: str) -> None:
    why = why_driver_is_the_limit(use)
    assert why is not None
    assert why.startswith(DRIVER_IS_THE_LIMIT)
    assert says in why


@pytest.mark.parametrize(
    "use",
    [
        SHARED,
        replace(SHARED, cpu=1.2, wait=3.5, system_cpu=0.7, system_wait=2.2),  # most of the CPU time is the driver's
        replace(SHARED, clients=1, cpu=0.6, wait=0.1, system_cpu=0.3, system_wait=0.0),  # in line with one client
        replace(STARVED, system_wait=2.0),  # neighbours hit both
        replace(STARVED, wait=None),
        replace(STARVED, samples=3),
        replace(STARVED, seconds=1.9),
        replace(STARVED, wait=1.5),  # it waits for CPUs, but its clients are in the store most of the time
        replace(OPEN, lag_ms=0.9),
        replace(OPEN, rate_per_s=2100.0),  # all clients are busy: a late request waits for the store
        replace(SHARED, lag_ms=4.0, service_ms=1.0, rate_per_s=500.0),  # late, but it does not lack CPUs
    ],
)
def test_a_driver_that_competes_or_waits_for_its_store_is_not(use: DriverUse) -> None:
    assert why_driver_is_the_limit(use) is None


EXACT = replace(STARVED, samples=4, seconds=2.0, clients=8, cpu=1.0, wait=3.0, system_cpu=0.5, system_wait=0.5, cpus=2)


@pytest.mark.parametrize(
    "less",
    [
        {"samples": 3}, {"seconds": 1.999}, {"wait": 2.999}, {"system_wait": 0.501}, {"system_wait": None},
        {"clients": 9},
    ],
)  # fmt: skip
def test_a_driver_is_starved_from_its_thresholds_on_and_not_below(less: dict[str, float | None]) -> None:
    assert why_driver_is_the_limit(EXACT) is not None
    assert why_driver_is_the_limit(replace(EXACT, **less)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("less", [{"cpu": 0.899}, {"lag_ms": 0.999}, {"rate_per_s": 2001.0}])
def test_a_driver_is_exhausted_from_its_thresholds_on_and_not_below(less: dict[str, float]) -> None:
    exact = replace(OPEN, cpu=0.9, wait=0.0, lag_ms=1.0, service_ms=1.0, rate_per_s=2000.0)
    assert why_driver_is_the_limit(exact) is not None
    assert why_driver_is_the_limit(replace(exact, **less)) is None  # type: ignore[arg-type]


@given(
    clients=st.integers(1, 64),
    driver=st.floats(0.01, 1.0),
    busy=st.floats(0.1, 2.0),
    queue=st.floats(0, 1),
)
def test_where_each_wait_is_as_long_for_driver_and_system_no_run_is_refused(
    clients: int, driver: float, busy: float, queue: float
) -> None:
    """A closed loop on two CPUs that take whoever is next: clients are on a CPU, or wait for one in either place."""
    on_cpu = min(busy, float(clients))
    driver_cpu = on_cpu * driver * 0.89  # below what makes it exhausted
    wait = (clients - on_cpu) * queue / 2
    use = DriverUse(10.0, 40, clients, 2, driver_cpu, wait, on_cpu - driver_cpu, wait)
    if driver_cpu < 0.9 * min(clients, 2):
        assert why_driver_is_the_limit(use) is None or use.wait is None
