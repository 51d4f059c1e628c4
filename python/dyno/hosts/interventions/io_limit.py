"""Fewer bytes a second from and to the device of the data, for system and driver together.

The capacity is measured, by reading and writing past the page cache: the median of several tries, each of other blocks,
and what was written longest ago is read first, so that a cache of the device's may answer least.

Version 1 of control groups holds what a process itself reads and writes of a device, and not what the kernel writes
later from page cache: there it is refused for a system that writes through page cache.
"""

from __future__ import annotations

import mmap
import os
import statistics
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from dyno.hosts.cgroups import controller
from dyno.hosts.devices import device_of
from dyno.hosts.interventions.base import Controller, Effect, Lives, Target
from dyno.hosts.interventions.calls import open_files
from dyno.hosts.interventions.caps import Cap
from dyno.model.base import InvalidRun, RunError
from dyno.model.interventions import Shares
from dyno.model.units import Share

_PIECE = 2**20
_TRIES = 5
_TRY_S = 0.5
"""Each way: long enough for a few hundred pieces of a disk, and the whole takes a few seconds once a study."""
_FIRST_PIECES, _MOST_PIECES = 16, 256
"""Of what tells how fast it is about, and of a try."""
_OF_FREE = 4
"""So many times the room that is taken has to be free."""
_WAYS = ("read", "write")
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
        """Where it is known that writes go through page cache."""
        found = controller("io")
        if (lives.embedded or lives.buffers_writes) and found is not None and found.version == 1:
            return _BUFFERED
        return super().unfit(lives)

    @classmethod
    def doubtful(cls, lives: Lives) -> str | None:  # noqa: ARG003 - what is known is in `unfit`
        """A server of which nothing is known may write through page cache."""
        found = controller("io")
        return (
            "refused where the server writes through page cache" if found is not None and found.version == 1 else None
        )

    def measure(self, data: Path) -> None:
        """Bytes a second, each way, and the standard deviation of the tries."""
        if f"{_WAYS[0]}_bytes_s" in self.bench.known:
            return
        file = data / f".{self.kind}-tried"
        try:
            tried = dict(zip(_WAYS, _bandwidths(file), strict=True))
        except OSError as error:
            raise RunError(f"the bandwidth of the device cannot be measured past page cache: {error}") from error
        finally:
            file.unlink(missing_ok=True)
        for way, found in tried.items():
            self.bench.known[f"{way}_bytes_s"] = statistics.median(found)
            self.bench.known[f"{way}_bytes_s_sd"] = statistics.stdev(found)

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
        bytes_s = [_NONE if self.dose == 0 else round(share * known[f"{way}_bytes_s"]) for way in _WAYS]
        self._write(*map(str, bytes_s))

    def free(self) -> None:
        """No limit."""
        if self._device is not None:
            self._write(*(["0", "0"] if self.group.version("io") == 1 else ["max", "max"]))

    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """With the capacity that the doses are shares of."""
        names = [f"{way}_bytes_s{of}" for way in _WAYS for of in ("", "_sd")]
        return replace(super().effect(from_ns, to_ns), measured={name: self.bench.known[name] for name in names})

    def _write(self, read: str, write: str) -> None:
        if self.group.version("io") == 2:
            self.group.write("io", "io.max", f"{self._device} rbps={read} wbps={write}")
        else:
            for way, value in (("read", read), ("write", write)):
                self.group.write("io", f"blkio.throttle.{way}_bps_device", f"{self._device} {value}")


def _bandwidths(file: Path) -> tuple[list[float], list[float]]:
    """What each try read and wrote a second, in bytes, past page cache. Raises OSError.

    All is written before anything is read, and each try has blocks of its own: what was written longest ago is read
    first, so that a write cache has the most to forget.
    """
    piece = mmap.mmap(-1, _PIECE)  # on a page's boundary, as O_DIRECT wants it
    # Not zeros: a device that leaves them out, or packs them, would be measured too fast.
    piece.write(os.urandom(_PIECE))
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    try:

        def rate(pieces: Iterable[int], *, write: bool) -> float:
            begun, done = time.monotonic(), 0
            for place in pieces:
                if write:
                    os.pwritev(handle, [piece], place * _PIECE)
                else:
                    os.preadv(handle, [piece], place * _PIECE)
                done += 1
            return done * _PIECE / (time.monotonic() - begun)

        about = rate(range(_FIRST_PIECES), write=True)
        space = os.fstatvfs(handle)
        room = space.f_bavail * space.f_frsize // _OF_FREE // _PIECE // _TRIES
        each = max(min(round(about * _TRY_S / _PIECE), _MOST_PIECES, room), _FIRST_PIECES)
        tries = [range(number * each, (number + 1) * each) for number in range(_TRIES)]
        wrote = [rate(pieces, write=True) for pieces in tries]
        return [rate(pieces, write=False) for pieces in tries], wrote
    finally:
        os.close(handle)
        piece.close()
