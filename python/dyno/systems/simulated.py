"""The simulated system: a response of known truth, to try the statistics and the lab against.

Each run's throughput is a function of the seed, the system's `mean`, and the run's place in the order of execution:
time here is counted in runs, since that is what the noise of a shared machine follows. The same study gives the same
responses again, also when it was interrupted between two runs and resumed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Share
from dyno.systems.base import System


class SimulatedOptions(Frozen):
    """The truth, and the noise on it. Noise of different kinds is multiplied."""

    mean: Annotated[float, Field(gt=0, le=1e12, description="the true mean throughput, in operations a second")] = (
        1000.0
    )
    noise: Annotated[Literal["none", "normal", "lognormal"], Field(description="of each run on its own")] = "normal"
    cov: Annotated[
        Share, Field(le=1, description="coefficient of variation of the noise; at most 25% where it is normal")
    ] = 0.05
    rho: Annotated[
        float, Field(gt=-1, lt=1, description="AR(1): correlation between runs next to each other in time")
    ] = 0.0
    drift: Annotated[float, Field(ge=-0.01, le=0.01, description="relative change with each run, compounded")] = 0.0
    step_at: Annotated[int | None, Field(ge=1, description="the run from which the machine is another one")] = None
    step: Annotated[float, Field(gt=-1, le=10, description="relative change from `step_at` on")] = 0.0
    outliers: Annotated[Share, Field(le=1, description="chance of a run that takes three times as long")] = 0.0
    failing: Annotated[Share, Field(le=1, description="chance of a run that fails when it starts")] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**63, description="of all its noise")] = 1

    @model_validator(mode="after")
    def _normal_noise_leaves_throughput_above_0(self) -> SimulatedOptions:
        # Beyond four standard deviations to 0, cutting what falls below it would move the true mean.
        if self.noise == "normal" and self.cov > 0.25:
            raise ValueError("normal noise of more than 25% would reach below 0; use noise: lognormal")
        return self


class SimulatedSystem(System[SimulatedOptions]):
    """Gives the run's response as a setting of its endpoint."""

    kind = "simulated"
    backend = "simulated"
    Options = SimulatedOptions
    _run: int | None = None

    def prepare(self, limit: float) -> None:
        """An empty folder."""
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()

    def start(self, run: int, limit: float) -> None:
        """Fails as often as asked; not when data are loaded (0), since the same chance would then take every run."""
        if run and _rng(self.options.seed, run, "failing").random() < self.options.failing:
            raise RunError("simulated failure")
        self._run = run

    def ready(self, limit: float) -> Endpoint:
        """The endpoint carries the response."""
        if self._run is None:
            raise RunError("the simulated system was not started")
        return Endpoint(backend=self.backend, settings={"throughput": throughput(self.options, self._run)})

    def stop(self, limit: float) -> None:
        """Forget the run."""
        self._run = None


def throughput(options: SimulatedOptions, run: int) -> float:
    """The throughput of the run at place `run` (from 1), in operations a second; always above 0."""
    factor = 1.0
    if options.noise != "none" and options.cov > 0:
        # Noise depends on the place in time alone: a slow minute is slow for every cell that is measured in it.
        z = _standard_noise(options.seed, options.rho, run)
        if options.noise == "lognormal":
            # sigma and mu such that the mean is 1 and the coefficient of variation is cov
            sigma = math.sqrt(math.log1p(options.cov**2))
            factor *= math.exp(sigma * z - sigma**2 / 2)
        else:
            factor *= max(1 + options.cov * z, 1e-6)
    factor *= (1 + options.drift) ** (run - 1)
    if options.step_at is not None and run >= options.step_at:
        factor *= 1 + options.step
    if _rng(options.seed, run, "outlier").random() < options.outliers:
        factor /= 3
    return options.mean * factor


def _rng(seed: int, run: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng([seed, run, int.from_bytes(purpose.encode(), "big") % 2**63])


def _standard_noise(seed: int, rho: float, run: int) -> float:
    """Standard normal noise, AR(1) over runs: z_i = rho z_(i-1) + sqrt(1 - rho^2) e_i, stationary from the first."""
    if rho == 0.0:
        return float(_rng(seed, run, "noise").standard_normal())
    return float(_ar1(seed, rho, 1 << max(run, 64).bit_length())[run - 1])


@lru_cache(maxsize=16)
def _ar1(seed: int, rho: float, length: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    z = np.random.default_rng([seed, 0]).standard_normal(length)
    scale = math.sqrt(1 - rho**2)
    for i in range(1, length):
        z[i] = rho * z[i - 1] + scale * z[i]
    return z
