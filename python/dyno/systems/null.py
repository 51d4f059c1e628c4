"""The null system: stores nothing and answers at once. It shows what the lab and the driver themselves cost."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, PositiveDuration
from dyno.systems.base import System


class NullOptions(Frozen):
    """A fault to plant, of known size."""

    stall_at: Annotated[
        Duration | None, Field(le=1e8, description="it stands still once, so long after the measured part began")
    ] = None
    stall_for: Annotated[
        PositiveDuration | None, Field(le=3600, description="operations of ycsb begun within that time end at its end")
    ] = None

    @model_validator(mode="after")
    def _a_stall_has_a_begin_and_a_length(self) -> NullOptions:
        if (self.stall_at is None) != (self.stall_for is None):
            raise ValueError("stall_at and stall_for belong together: give both or none")
        return self


class NullSystem(System[NullOptions]):
    """Its data are an empty folder, so that snapshot and restore are as real as any system's."""

    kind = "null"
    backend = "null"
    Options = NullOptions

    def prepare(self, limit: float) -> None:
        """An empty folder."""
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()

    def start(self, run: int, limit: float) -> None:
        """Nothing to start."""

    def ready(self, limit: float) -> Endpoint:
        """Always."""
        return Endpoint(backend=self.backend, settings=self.asked())

    def asked(self) -> dict[str, Any]:
        """The stall, where there is one: a driver that knows nothing of it would not meet it."""
        if self.options.stall_at is None:
            return {}
        return {"stall": {"at_s": self.options.stall_at, "for_s": self.options.stall_for}}

    def stop(self, limit: float) -> None:
        """Nothing to stop."""
