"""Fewer bytes a second from and to the device of the data, for system and driver together.

The capacity is measured, by reading and writing past the page cache. Version 1 of control groups holds what a process
itself reads and writes of a device, and not what the kernel writes later from page cache: there it is refused for a
system that writes through page cache.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from dyno.hosts.cgroups import controller
from dyno.hosts.devices import device_of
from dyno.hosts.interventions.base import Controller, Lives, Target
from dyno.hosts.interventions.calls import open_files
from dyno.hosts.interventions.caps import Cap
from dyno.model.base import InvalidRun, RunError
from dyno.model.interventions import Shares
from dyno.model.units import Share

_PIECE = 2**20
_PIECES = 64
_NONE = 2**40  # bytes a second: a limit that limits nothing, and has version 1 count
_BUFFERED = (
    "io-limit: what is written through page cache is written by the kernel, which version 1 of control groups does not "
    "hold"
)


class IoLimitOptions(Shares):
    """How much is taken."""

    title = "a share of the device's bandwidth taken from system and driver together"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(description="share of the measured bandwidth that is taken away; 30%, 60% and 80% if left out"),
    ] = (0.3, 0.6, 0.8)


class IoLimit(Cap):
    """A limit of the bandwidth that was measured, of reads and of writes."""

    kind = "io-limit"
    Options = IoLimitOptions
    joint: ClassVar[Controller | None] = "io"
    _device: str | None = None

    @classmethod
    def unfit(cls, lives: Lives) -> str | None:
        """Where all that is known of writes is that they go through page cache."""
        found = controller("io")
        if lives.embedded and found is not None and found.version == 1:
            return _BUFFERED
        return super().unfit(lives)

    @classmethod
    def doubtful(cls, lives: Lives) -> str | None:  # noqa: ARG003 - no server says beforehand
        """A server may write through page cache."""
        found = controller("io")
        return (
            "refused where the server writes through page cache" if found is not None and found.version == 1 else None
        )

    def measure(self, data: Path) -> None:
        """Bytes a second."""
        if "read bandwidth" not in self.bench.known:
            file = data / f".{self.kind}-tried"
            try:
                self.bench.known["write bandwidth"] = _bandwidth(file, os.O_WRONLY | os.O_CREAT)
                self.bench.known["read bandwidth"] = _bandwidth(file, os.O_RDONLY)
            except OSError as error:
                raise RunError(f"the bandwidth of the device cannot be measured past page cache: {error}") from error
            finally:
                file.unlink(missing_ok=True)

    def refuse(self, target: Target) -> None:
        """Where it writes through page cache."""
        if self.group.version("io") == 2:
            return
        files = [file for file in open_files(target.processes.values()) if file.below(target.data)]
        if any(file.flags & os.O_ACCMODE != os.O_RDONLY and not file.flags & os.O_DIRECT for file in files):
            raise InvalidRun(_BUFFERED)

    def limit(self, share: float, target: Target) -> None:
        """Of reads and of writes."""
        disk = device_of(target.data).disk()
        if disk is None:
            raise RunError("io-limit: the data are on no block device")
        self._device = Path(f"/sys/block/{disk}/dev").read_text().strip()
        known = self.bench.known
        bytes_s = [_NONE if self.dose == 0 else round(share * known[f"{way} bandwidth"]) for way in ("read", "write")]
        self._write(*map(str, bytes_s))

    def free(self) -> None:
        """No limit."""
        if self._device is not None:
            self._write(*(["0", "0"] if self.group.version("io") == 1 else ["max", "max"]))

    def _write(self, read: str, write: str) -> None:
        if self.group.version("io") == 2:
            self.group.write("io", "io.max", f"{self._device} rbps={read} wbps={write}")
        else:
            for way, value in (("read", read), ("write", write)):
                self.group.write("io", f"blkio.throttle.{way}_bps_device", f"{self._device} {value}")


def _bandwidth(file: Path, flags: int) -> float:
    """Bytes a second of a sequence of large pieces, past page cache. Raises OSError."""
    piece = mmap.mmap(-1, _PIECE)  # on a page's boundary, as O_DIRECT wants it
    handle = os.open(file, flags | os.O_DIRECT, 0o600)
    try:
        begun = time.monotonic()
        for place in range(_PIECES):
            if flags & os.O_WRONLY:
                os.pwritev(handle, [piece], place * _PIECE)
            else:
                os.preadv(handle, [piece], place * _PIECE)
        return _PIECES * _PIECE / (time.monotonic() - begun)
    finally:
        os.close(handle)
        piece.close()
