"""Fewer reads and writes a second of the device of the data, for system and driver together; see `io_caps`.

A kind of its own beside the limit of bandwidth: a study may take of both, each in cells of its own, and a device that
is held back by its operations has bandwidth left. The capacity is of blocks of 4 KiB at places drawn at random, many
at a time: with one at a time it would be no capacity but the time that one takes, and a server has several under way.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from dyno.hosts.aio import answered
from dyno.hosts.interventions.io_caps import PIECE, TRIES, TRY_S, IoCap, Written
from dyno.model.interventions import Shares
from dyno.model.units import Share

_BLOCK = 4096
_DEPTH = 128
"""Beyond what most devices have under way at once (32 by Serial ATA), so that none waits for us: a limit below what a
device can would be felt at once by those who use more of it."""
_MOST_BLOCKS = 20_000
"""Of a try: of a device that is so fast that it answers them sooner than in `TRY_S`, these are enough."""


class IoOperationsLimitOptions(Shares):
    """How much is taken."""

    title = "a share of the device's I/O operations a second taken from system and driver together"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(
            description="share of the measured I/O operations a second that is taken away; 30%, 60% and 80% if left out"
        ),
    ] = (0.3, 0.6, 0.8)


class IoOperationsLimit(IoCap):
    """Of operations a second, whatever their size."""

    kind = "io-operations-limit"
    Options = IoOperationsLimitOptions
    capacity = "I/O operations a second"
    unit = "operations_s"
    limits = ("reads", "writes")
    none = 2**31  # the kernel keeps them in 32 bits, all of which set are no limit

    def rates(self, written: Written) -> tuple[Sequence[float], Sequence[float]]:
        """What the tries read is not what they wrote, so that it was written longest ago."""
        blocks = range(written.parts[-1].stop * PIECE // _BLOCK)
        drawn = random.sample(blocks, min(len(blocks), 2 * TRIES * _MOST_BLOCKS))
        wrote = [self._rate(written, drawn[place :: 2 * TRIES], write=True) for place in range(TRIES)]
        read = [self._rate(written, drawn[place :: 2 * TRIES], write=False) for place in range(TRIES, 2 * TRIES)]
        return read, wrote

    @staticmethod
    def _rate(written: Written, blocks: Sequence[int], *, write: bool) -> float:
        return answered(written.handle, written.piece, blocks, size=_BLOCK, depth=_DEPTH, seconds=TRY_S, write=write)
