"""A device, or a page cache, that takes longer to give data: time added to each read of the data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dyno.hosts.interventions.calls import Calls, OpenFile, uses_io_uring
from dyno.model.interventions import Delay, Delays

_MOST_FILES = 128
"""strace compares each read with the name of each; the smaller files of a server are read as it starts."""


class ReadDelayOptions(Delays):
    """How much longer a read takes."""

    title = "time added to each read of the data files"
    doses: Annotated[
        tuple[Delay, ...], Field(description="added to each read; 50 us, 200 us and 400 us if left out")
    ] = (50e-6, 200e-6, 400e-6)


class ReadDelay(Calls):
    """After a read of one of the largest data files, by a system call; what is in a cache of its own is not read."""

    kind = "read-delay"
    Options = ReadDelayOptions
    calls = ("read", "pread64", "readv", "preadv", "preadv2")
    tried = "pread"

    def only(self, files: Sequence[Path]) -> Sequence[Path]:
        """The largest of them."""
        return sorted(files, key=lambda file: -file.stat().st_size)[:_MOST_FILES]

    def passes_by(self, files: Sequence[OpenFile], data: Path) -> Iterator[str]:
        """Reads through a ring. Whether a file is mapped into memory, no call tells."""
        if uses_io_uring(files):
            yield "the server has an io_uring: reads that it asks for by that are neither delayed nor counted"
