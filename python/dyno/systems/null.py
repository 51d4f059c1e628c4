"""The null system: stores nothing and answers at once. It shows what the lab and the driver themselves cost."""

from __future__ import annotations

from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint
from dyno.systems.base import System


class NullOptions(Frozen):
    """It has none."""


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
        return Endpoint(backend=self.backend)

    def stop(self, limit: float) -> None:
        """Nothing to stop."""
