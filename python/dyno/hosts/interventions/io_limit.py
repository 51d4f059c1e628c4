"""Fewer bytes a second from and to the device of the data, for system and driver together; see `io_caps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from dyno.hosts.interventions.io_caps import IoCap, Written
from dyno.model.interventions import Shares
from dyno.model.units import Share


class IoLimitOptions(Shares):
    """How much is taken."""

    title = "a share of the device's bandwidth taken from system and driver together"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(description="share of the measured bandwidth that is taken away; 30%, 60% and 80% if left out"),
    ] = (0.3, 0.6, 0.8)


class IoLimit(IoCap):
    """Of bytes a second, in pieces of a mebibyte, one after the other."""

    kind = "io-limit"
    Options = IoLimitOptions
    capacity = "bandwidth"
    unit = "bytes_s"
    limits = ("read_bytes", "write_bytes")
    none = 2**40

    def rates(self, written: Written) -> tuple[Sequence[float], Sequence[float]]:
        """What was written longest ago is read first."""
        return [written.rate(pieces, write=False) for pieces in written.parts], written.wrote
