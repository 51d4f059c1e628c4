"""What of `host` cannot be, though each cell's own is sound: an unfair comparison, and a key that nothing looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dyno.model.pairs import Pair, pairs
from dyno.model.study import Cell, Mismatch, Study

_MUST_BE_ALIKE = ("machine", "file_system", "sysctl", "kernel")
_NO_CONTAINER = "native"


def unlike_hosts(study: Study) -> Iterator[Mismatch]:
    """Systems that are compared on unlike machines: what differs could be either's doing.

    A compared factor may be of the host alone; then nothing else differs between its cells.
    """
    for pair in pairs(study):
        what = _also_differs(pair.a, pair.b)
        key = _first_difference(pair) if what else None
        if what and key:
            levels = " and ".join(f"{pair.factor}={level}" for level in (pair.level_a, pair.level_b))
            text = f"differs between {levels}, which differ in their {what} too; write one for both, or vary it alone"
            yield Mismatch(key, text, pair.b)


def unused_engine(study: Study) -> Iterator[Mismatch]:
    """An engine is named and no cell has a container."""
    if all(cell.deployment == _NO_CONTAINER for cell in study.cells):
        for cell in study.cells:
            if cell.host.containers is not None:
                text = f"no cell of this study is in a container (system.deployment: {_NO_CONTAINER}); leave it out"
                yield Mismatch("host.containers", text, cell)


def _also_differs(a: Cell, b: Cell) -> str | None:
    if a.deployment != b.deployment:
        return "deployment"
    if a.system != b.system:
        return "system"
    return "workload" if a.workload != b.workload else None


def _first_difference(pair: Pair) -> str | None:
    """The dotted key of `host` that differs, as deep as it is in both; None where none does."""
    one, other = (cell.host.model_dump(include=set(_MUST_BE_ALIKE)) for cell in (pair.a, pair.b))
    path = _differing(one, other)
    return None if path is None else ".".join(("host", *path))


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...] | None:
    for key in (*one, *(key for key in other if key not in one)):
        a, b = one.get(key), other.get(key)
        if a != b:
            both = isinstance(a, Mapping) and isinstance(b, Mapping)
            return (key, *(_differing(a, b) or ())) if both else (key,)  # type: ignore[arg-type]
    return None
