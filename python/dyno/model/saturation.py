"""When a driver is itself the limit: a run in which it is says nothing of the system, and is invalid.

The thresholds and their reasons stand in docs/verdicts.md. On few CPUs driver and system compete for them, as they do
in most studies on one machine: that alone makes no run invalid, since both wait their turn alike.
"""

from __future__ import annotations

from dataclasses import dataclass

DRIVER_IS_THE_LIMIT = "the driver itself was the limit"
"""How the cause of such a run begins."""

LEAST_SAMPLES = 4
LEAST_SECONDS = 2.0
EXHAUSTED = 0.9  # share of the CPUs that its threads may use at once
MOST_OF_THE_TIME = 0.5  # share of the clients' time that they spend in the driver
STARVED = 3.0  # times as long as it ran, it waited for a CPU
SPARED = 1.0  # times as long as it ran, the system waited for one, at the most
CLIENTS_FREE = 0.5  # share of an open loop's clients that have nothing to do


@dataclass(frozen=True)
class DriverUse:
    """Of one run's measured part. CPU times are in CPUs, seconds a second, over all threads."""

    seconds: float
    samples: int
    clients: int
    cpus: int
    """That the driver may use."""
    cpu: float
    wait: float | None
    """That its threads waited for a CPU; None where the kernel does not tell."""
    system_cpu: float
    system_wait: float | None
    lag_ms: float | None = None
    """Of an open loop: how late requests were sent, in the mean."""
    service_ms: float | None = None
    """Of an open loop: how long they took from then on, in the mean."""
    rate_per_s: float | None = None
    """That requests were answered at, of an open loop."""


def why_driver_is_the_limit(use: DriverUse) -> str | None:
    """The cause of an invalid run; None where the driver is not shown to be the limit."""
    if use.samples < LEAST_SAMPLES or use.seconds < LEAST_SECONDS or use.clients < 1:
        return None
    most = min(use.clients, use.cpus)
    exhausted = use.cpu >= EXHAUSTED * most
    starved = (
        use.wait is not None
        and use.system_wait is not None
        and use.wait >= STARVED * use.cpu
        and use.system_wait <= SPARED * use.system_cpu
    )
    if not (exhausted or starved):
        return None
    lack = (
        f"it used {use.cpu:.2f} of the {most} CPUs that its {use.clients} clients could"
        if exhausted
        else f"its threads waited {use.wait:.2f} s a second for a CPU and ran {use.cpu:.2f} s, while the system's "
        f"waited {use.system_wait:.2f} s and ran {use.system_cpu:.2f} s"
    )
    if use.lag_ms is not None and use.service_ms is not None and use.rate_per_s is not None:
        busy = use.rate_per_s * use.service_ms / 1000
        if use.lag_ms < use.service_ms or busy > (1 - CLIENTS_FREE) * use.clients:
            return None
        return (
            f"{DRIVER_IS_THE_LIMIT}: requests were sent {use.lag_ms:.3g} ms late in the mean, later than the "
            f"{use.service_ms:.3g} ms that they took, though {busy:.2g} of {use.clients} clients were busy; {lack}"
        )
    inside = use.cpu + (use.wait or 0.0)
    if inside < MOST_OF_THE_TIME * use.clients:
        return None
    return f"{DRIVER_IS_THE_LIMIT}: {lack}; its clients were in it {min(inside / use.clients, 1.0):.0%} of the time"
