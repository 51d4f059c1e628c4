"""What a process has started, and what that has started, whichever sessions these lead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def descendants(pid: int) -> Iterator[int]:
    """Each before its own are looked for: one that was stopped by then starts no more, and no thread of it ends.

    A thread that ends leaves its children to another one, which may have been looked at before: of a process that goes
    on some may be missed.
    """
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = thread.read_text().split()
        except OSError:
            continue  # it has ended
        for child in map(int, children):
            yield child
            yield from descendants(child)
