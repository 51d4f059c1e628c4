"""The null workload: operations that do nothing. It shows what the driver and the lab cost by themselves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint
from dyno.workloads import core
from dyno.workloads.base import Measured, Runner, Workload


class NullOptions(Frozen):
    """How much of nothing."""

    operations: Annotated[int, Field(ge=1, le=10**12, description="over all threads")] = 1000
    threads: Annotated[int, Field(ge=1, le=4096, description="clients")] = 1


class NullWorkload(Workload[NullOptions]):
    """Carried out by the real driver, so that all of a run's machinery is in it."""

    kind = "null"
    Options = NullOptions
    backends = frozenset({"sqlite", "null", "mysql", "postgresql", "files", "recorded-files"})

    def clients(self) -> int:
        """One a thread."""
        return self.options.threads

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """The driver's loop with nothing in it."""
        # In a file system there is nothing that would have to be opened.
        nothing = Endpoint(backend="null") if endpoint.backend in ("files", "recorded-files") else endpoint
        job = core.job(
            nothing,
            {"kind": "null"},
            phase="run",
            clients=self.options.threads,
            seed=seed,
            operations=self.options.operations,
        )
        return core.drive(runner, job, max_errors=0.0)
