"""What a report needs of a results folder. `dyno.store` gives it; nothing here knows how it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import polars as pl

from dyno.model.run import RunRecord
from dyno.model.selfcheck import Selfcheck
from dyno.model.study import Study


class Source(Protocol):
    """A results folder, read."""

    @property
    def study(self) -> Study:
        """The study as it was run."""
        ...

    @property
    def study_yaml(self) -> str:
        """The study file, word by word."""
        ...

    @property
    def environment(self) -> dict[str, Any]:
        """What somebody would need to trust or repeat it."""
        ...

    @property
    def selfcheck(self) -> Selfcheck | None:
        """What the instrument had found out about itself; None where nothing was kept."""
        ...

    @property
    def runs(self) -> Sequence[RunRecord]:
        """Every run, in order of execution."""
        ...

    def samples(self, run: int) -> pl.DataFrame:
        """time_ns, host, source, subject, metric, value; may be empty."""
        ...

    def intervals(self, run: int) -> pl.DataFrame:
        """start_ns, end_ns, warmup, operation, count, errors, mean_us, p50_us, p95_us, p99_us, max_us; may be empty."""
        ...
