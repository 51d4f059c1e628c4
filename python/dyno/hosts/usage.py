"""What processes have used so far, as the kernel counts it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StorageUse:
    """Bytes that processes had read from, and sent to, the storage below the page cache."""

    read_bytes: int
    written_bytes: int

    def __sub__(self, earlier: StorageUse) -> StorageUse:
        return StorageUse(self.read_bytes - earlier.read_bytes, self.written_bytes - earlier.written_bytes)


def storage_use(pids: Iterable[int]) -> StorageUse | None:
    """Of these processes and their children together; None where one is gone or may not be looked at.

    What is written counts when pages become dirty, not when the kernel gets round to writing them. A child that has
    ended counts with its parent, so that the sum never falls while the parents live.
    """
    read = written = 0
    for pid in pids:
        own = _counters(pid)
        if own is None:
            return None
        for each in (own, *filter(None, map(_counters, descendants(pid)))):
            read += each["read_bytes"]
            written += each["write_bytes"] - each["cancelled_write_bytes"]
    return StorageUse(read, written)


def cpu_seconds(pids: Iterable[int]) -> float | None:
    """CPU time of these processes and their children together so far; None where one is gone.

    The kernel tells it in clock ticks (10 ms), of all threads, those that have ended too, and of children that did.
    """
    ticks = 0
    for pid in pids:
        own = _ticks(pid)
        if own is None:
            return None
        ticks += own + sum(filter(None, map(_ticks, descendants(pid))))
    return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int | None:
    try:
        # The name of the program stands in brackets, and may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))  # utime, stime, and both of children that were waited for
    except (OSError, ValueError):
        return None


def _counters(pid: int) -> dict[str, int] | None:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        found = dict(line.split(": ") for line in lines)
        return {name: int(found[name]) for name in ("read_bytes", "write_bytes", "cancelled_write_bytes")}
    except (OSError, KeyError, ValueError):
        return None


def descendants(pid: int) -> Iterator[int]:
    """Its children, and theirs, as far as they are there."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = [int(child) for child in children.read_text().split()]
        except OSError:
            continue  # the thread ended meanwhile
        for child in found:
            yield child
            yield from descendants(child)
