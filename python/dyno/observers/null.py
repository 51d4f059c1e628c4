"""The null observer: sees nothing."""

from __future__ import annotations

import polars as pl

from dyno.model.base import Frozen
from dyno.observers.base import SAMPLE_COLUMNS, Observer


class NullOptions(Frozen):
    """It has none."""


class NullObserver(Observer[NullOptions]):
    """For runs whose only witness is the driver."""

    kind = "null"
    Options = NullOptions

    def start(self, limit: float) -> None:
        """Nothing to begin."""

    def watch(self, pid: int, subject: str) -> None:
        """Looks away."""

    def stop(self, limit: float) -> pl.DataFrame:
        """No samples."""
        return pl.DataFrame(schema=SAMPLE_COLUMNS)
