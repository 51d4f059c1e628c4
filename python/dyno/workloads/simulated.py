"""The driver of the simulated system: reads the response that the endpoint carries, at no cost in time."""

from __future__ import annotations

from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint
from dyno.workloads.base import Measured, Runner, Workload


class SimulatedOptions(Frozen):
    """It has none."""


class SimulatedWorkload(Workload[SimulatedOptions]):
    """One operation whose latency is the inverse of the throughput, as for a single client in a closed loop."""

    kind = "simulated"
    Options = SimulatedOptions
    backends = frozenset({"simulated"})

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """The response as the endpoint says it."""
        throughput = float(endpoint.settings["throughput"])
        return Measured(
            complete=True, responses={"throughput": throughput, "latency_mean": 1000.0 / throughput}, loop="closed"
        )
