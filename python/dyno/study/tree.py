"""The file as a tree in which each node knows the line that it came from.

Merging, setting and interpolating make new trees and keep those lines, so that a message names the line that has to be
changed, be it in the section itself, under `scales`, under a level of a factor or in a `--set`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dyno.model.base import Scalar
from dyno.study.errors import Place, Problem, StudyError, shown

NAMED_WITH_DOTS = ("host", "sysctl")  # what stands below it has dots in its own name
MAX_DEPTH = 50  # far above any sensible study, and far below Python's own limit of recursion

Path = tuple[str | int, ...]

# `$${` comes first: it stands for a literal `${`. A `${` that matches nothing else was never closed.
_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar. `via` names the `${...}` that it was put in for."""

    value: Scalar | None
    place: Place
    via: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's place and what stands under it."""

    key_place: Place
    node: Node


@dataclass(frozen=True, slots=True)
class Branch:
    """A mapping."""

    entries: Mapping[str, Entry]
    place: Place

    def get(self, key: str) -> Node | None:
        """What stands under the key, if it is there."""
        entry = self.entries.get(key)
        return None if entry is None else entry.node

    def without(self, *keys: str) -> Branch:
        """The mapping less these keys."""
        return replace(self, entries={key: entry for key, entry in self.entries.items() if key not in keys})


Node = Leaf | Items | Branch


def plain(node: Node) -> Any:
    """The node as dicts, lists and scalars."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {key: plain(entry.node) for key, entry in node.entries.items()}


def height(node: Node) -> int:
    """How many levels lie below the node."""
    if isinstance(node, Leaf):
        return 0
    below = node.items if isinstance(node, Items) else [entry.node for entry in node.entries.values()]
    return 1 + max(map(height, below), default=-1)


def dotted(path: Path) -> str:
    """The path as it is written in messages: `observe[1].perf.events`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def split_key(key: str, place: Place) -> tuple[str, ...]:
    """The steps of a dotted study key. Raises StudyError."""
    steps = tuple(key.split("."))
    if steps[:2] == NAMED_WITH_DOTS and len(steps) > 3:
        steps = (*NAMED_WITH_DOTS, ".".join(steps[2:]))
    if not all(steps):
        raise StudyError(Problem(place, key, "has an empty part; write a dotted key such as workload.records"))
    if len(steps) > MAX_DEPTH:
        raise StudyError(Problem(place, key, f"has {len(steps)} parts; no study is nested that deeply"))
    return steps


def merge(base: Node | None, over: Node) -> Node:
    """`over` upon `base`: mappings key by key, everything else replaced."""
    if not (isinstance(base, Branch) and isinstance(over, Branch)):
        return over
    entries = dict(base.entries)
    for key, entry in over.entries.items():
        entries[key] = Entry(entry.key_place, merge(base.get(key), entry.node))
    return replace(base, entries=entries)


def put(root: Branch, steps: tuple[str, ...], entry: Entry, within: tuple[str, ...] = ()) -> Branch:
    """The tree with `entry` merged in at `steps`; mappings on the way are made where missing. Raises StudyError."""
    key, rest = steps[0], steps[1:]
    old = root.get(key)
    if not rest:
        new = merge(old, entry.node)
    elif isinstance(old, (Leaf, Items)):
        above = dotted((*within, key))
        raise StudyError(
            Problem(
                entry.key_place,
                dotted((*within, *steps)),
                f"{above} holds {shown(plain(old))} and has no keys below it; set {above} as a whole",
            )
        )
    else:
        new = put(old or Branch({}, entry.key_place), rest, entry, (*within, key))
    return replace(root, entries={**root.entries, key: Entry(entry.key_place, new)})


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Leaf | Items]]:
    """What merging would replace as a whole, each with its path: scalars and lists."""
    if isinstance(node, Branch):
        for key, entry in node.entries.items():
            yield from leaves(entry.node, (*path, key))
    else:
        yield path, node


def strings(node: Node, path: Path = ()) -> Iterator[tuple[Path, Leaf, str]]:
    """Every scalar that is text, those within lists included."""
    if isinstance(node, Leaf):
        if isinstance(node.value, str):
            yield path, node, node.value
    elif isinstance(node, Items):
        for index, item in enumerate(node.items):
            yield from strings(item, (*path, index))
    else:
        for key, entry in node.entries.items():
            yield from strings(entry.node, (*path, key))


def keys(node: Node, path: Path = ()) -> Iterator[tuple[Path, Place]]:
    """Every key, with its path and its own place."""
    if isinstance(node, Items):
        for index, item in enumerate(node.items):
            yield from keys(item, (*path, index))
    elif isinstance(node, Branch):
        for key, entry in node.entries.items():
            yield (*path, key), entry.key_place
            yield from keys(entry.node, (*path, key))


def references(text: str) -> Iterator[str | None]:
    """The factor names in a text's `${...}`; None for one that is not closed."""
    for match in _REFERENCE.finditer(text):
        if match.group() != "$${":
            yield match.group(1)


def references_in(node: Node) -> set[str]:
    """The factor names in all `${...}` of a tree."""
    return {name for _, _, text in strings(node) for name in references(text) if name is not None}


def interpolate(node: Node, levels: Mapping[str, tuple[Leaf, str]]) -> Node:
    """The tree with every `${name}` replaced by the level: (its value where it was written, its name in texts).

    The names are known to exist: `references` was checked before.
    """
    if isinstance(node, Items):
        return replace(node, items=tuple(interpolate(item, levels) for item in node.items))
    if isinstance(node, Branch):
        entries = {key: Entry(entry.key_place, interpolate(entry.node, levels)) for key, entry in node.entries.items()}
        return replace(node, entries=entries)
    if not isinstance(node.value, str) or "${" not in node.value:
        return node
    whole = _REFERENCE.fullmatch(node.value)
    if whole is not None and whole.group(1) is not None:
        return replace(levels[whole.group(1)][0], via=node.value)
    text = _REFERENCE.sub(lambda match: levels[match.group(1)][1] if match.group(1) else "${", node.value)
    return replace(node, value=text, via=node.value)


def deepest(root: Node, path: Path) -> tuple[Path, Node, Place]:
    """The deepest node that the path leads to, with its path and its key's place.

    Steps that lead nowhere are left out: validators add some of their own, such as the member of a union.
    """
    reached: Path = ()
    node: Node = root
    place = root.place
    for step in path:
        if isinstance(node, Branch) and isinstance(step, str) and step in node.entries:
            entry = node.entries[step]
            node, place = entry.node, entry.key_place
        elif isinstance(node, Items) and isinstance(step, int) and 0 <= step < len(node.items):
            node = node.items[step]
            place = node.place
        else:
            continue
        reached = (*reached, step)
    return reached, node, place
