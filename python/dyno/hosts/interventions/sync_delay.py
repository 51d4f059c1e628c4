"""A device that takes longer to say that data are safe: time added to each sync."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dyno.hosts.interventions.calls import Calls, OpenFile, uses_io_uring
from dyno.model.base import InvalidRun
from dyno.model.interventions import Delay, Delays


class SyncDelayOptions(Delays):
    """How much longer a sync takes. Less than it takes is not offered: a sync left out is another durability."""

    title = "time added to each sync"
    doses: Annotated[tuple[Delay, ...], Field(description="added to each sync; 250 us, 1 ms and 2 ms if left out")] = (
        250e-6,
        1e-3,
        2e-3,
    )


class SyncDelay(Calls):
    """After fsync, fdatasync, msync and syncfs have done their work."""

    kind = "sync-delay"
    Options = SyncDelayOptions
    refused = f"{Calls.refused}, and where a data file is open with O_DSYNC: such syncs are not delayed"
    calls = ("fsync", "fdatasync", "msync", "syncfs")
    tried = "fsync"

    def passes_by(self, files: Sequence[OpenFile], data: Path) -> Iterator[str]:
        """Writes that sync by themselves, and syncs through a ring."""
        synced = sorted({file.name for file in files if file.below(data) and file.flags & os.O_DSYNC})
        if synced:
            raise InvalidRun(
                f"sync-delay: {Path(synced[0]).name} is open with O_DSYNC or O_SYNC: each write to it is synced, and "
                "no such sync is delayed"
            )
        if uses_io_uring(files):
            yield "the server has an io_uring: syncs that it asks for by that are neither delayed nor counted"
