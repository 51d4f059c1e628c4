"""Less of what the data's device can do a second, for system and driver together: what such limits share.

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
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from dyno.hosts.cgroups import IO_LIMITS, controller
from dyno.hosts.devices import device_of
from dyno.hosts.interventions.base import Controller, Effect, Lives, Target
from dyno.hosts.interventions.calls import open_files
from dyno.hosts.interventions.caps import Cap
from dyno.model.base import InvalidRun, RunError

TRIES = 5
TRY_S = 0.5
"""Each way: long enough for a few hundred pieces of a disk, and the whole takes a few seconds once a study."""
PIECE = 2**20
_FIRST_PIECES, _MOST_PIECES = 16, 256
"""Of what tells how fast it is about, and of a try."""
_OF_FREE = 4
"""So many times the room that is taken has to be free."""
_WAYS = ("read", "write")
_BUFFERED = (
    "what is written through page cache is written by the kernel, which version 1 of control groups does not hold"
)


@dataclass(frozen=True)
class Written:
    """A file that was just written past the page cache, open to be read and written so; `piece` is what is in it.

    `parts` are the pieces, by their numbers, of each try, and `wrote` how many bytes of each were written a second.
    """

    handle: int
    piece: mmap.mmap
    parts: Sequence[range] = ()
    wrote: Sequence[float] = ()

    def rate(self, pieces: Iterable[int], *, write: bool) -> float:
        """Bytes a second, one piece after the other. Raises OSError."""
        begun, done = time.monotonic(), 0
        for place in pieces:
            if write:
                os.pwritev(self.handle, [self.piece], place * PIECE)
            else:
                os.preadv(self.handle, [self.piece], place * PIECE)
            done += 1
        return done * PIECE / (time.monotonic() - begun)


class IoCap(Cap):
    """A limit of what was measured, of reads and of writes. The control has one that is beyond any device."""

    joint: ClassVar[Controller | None] = "io"
    control = "a limit beyond what any device can"
    refused = "where writes go through page cache and control groups are of version 1, which hold no such writes"

    capacity: ClassVar[str]
    """What is limited, in words."""
    unit: ClassVar[str]
    """Of the capacity, as its name ends in what is recorded."""
    limits: ClassVar[tuple[str, str]]
    """Of reads and of writes, by the names of `IO_LIMITS`."""
    none: ClassVar[int]
    """A limit that limits nothing, and has the kernel do all that it does under one."""
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

    @abstractmethod
    def rates(self, written: Written) -> tuple[Sequence[float], Sequence[float]]:
        """How much each try read a second, and how much each wrote. Raises OSError."""

    def measure(self, data: Path) -> None:
        """The capacity, each way, and the standard deviation of the tries."""
        if self._of("read") in self.bench.known:
            return
        file = data / f".{self.kind}-tried"
        try:
            with _written(file) as written:
                tried = dict(zip(_WAYS, self.rates(written), strict=True))
        except OSError as error:
            why = f"the {self.capacity} of the device cannot be measured past page cache"
            raise RunError(f"{why}: {error.strerror or error}") from error
        finally:
            file.unlink(missing_ok=True)
        for way, found in tried.items():
            self.bench.known[self._of(way)] = statistics.median(found)
            self.bench.known[f"{self._of(way)}_sd"] = statistics.stdev(found)

    def refuse(self, target: Target) -> None:
        """Where it writes through page cache."""
        if self.group.version("io") == 2:
            return
        files = [file for file in open_files(target.processes.values()) if file.below(target.data)]
        if any(file.flags & os.O_ACCMODE != os.O_RDONLY and not file.flags & os.O_DIRECT for file in files):
            raise InvalidRun(f"{self.kind}: {_BUFFERED}")

    def limit(self, share: float, target: Target) -> None:
        """Of reads and of writes."""
        disk = device_of(target.data).disk()
        if disk is None:
            raise RunError(f"{self.kind}: the data are on no block device")
        self._device = Path(f"/sys/block/{disk}/dev").read_text().strip()
        known = self.bench.known
        # 0 would be no limit, in version 1.
        self._write([self.none if self.dose == 0 else max(round(share * known[self._of(way)]), 1) for way in _WAYS])

    def free(self) -> None:
        """No limit."""
        if self._device is not None:
            self._write([0, 0] if self.group.version("io") == 1 else ["max", "max"])

    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """With the capacity that the doses are shares of."""
        names = [f"{self._of(way)}{of}" for way in _WAYS for of in ("", "_sd")]
        return replace(super().effect(from_ns, to_ns), measured={name: self.bench.known[name] for name in names})

    def _of(self, way: str) -> str:
        return f"{way}_{self.unit}"

    def _write(self, values: Sequence[int | str]) -> None:
        named = [(IO_LIMITS[name], value) for name, value in zip(self.limits, values, strict=True)]
        if self.group.version("io") == 2:
            told = " ".join(f"{v2}={value}" for (_, v2), value in named)
            self.group.write("io", "io.max", f"{self._device} {told}")
        else:
            for (v1, _), value in named:
                self.group.write("io", f"blkio.throttle.{v1}", f"{self._device} {value}")


@contextmanager
def _written(file: Path) -> Iterator[Written]:
    """All of it is written before anything is read, and each try has pieces of its own. Raises OSError.

    What was written longest ago is in the first of them, so that a write cache has had the most to forget of it.
    """
    piece = mmap.mmap(-1, PIECE)  # on a page's boundary, as O_DIRECT wants it
    # Not zeros: a device that leaves them out, or packs them, would be measured too fast.
    piece.write(os.urandom(PIECE))
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    try:
        bare = Written(handle, piece)
        about = bare.rate(range(_FIRST_PIECES), write=True)
        space = os.fstatvfs(handle)
        room = space.f_bavail * space.f_frsize // _OF_FREE // PIECE // TRIES
        each = max(min(round(about * TRY_S / PIECE), _MOST_PIECES, room), _FIRST_PIECES)
        parts = [range(number * each, (number + 1) * each) for number in range(TRIES)]
        yield replace(bare, parts=parts, wrote=[bare.rate(pieces, write=True) for pieces in parts])
    finally:
        os.close(handle)
        piece.close()
