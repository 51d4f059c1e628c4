"""What the engine glass can be put together of: names of assemblies as `dyno-core` has them, without asking it.

Components are removed from `full` in the order of Harizopoulos et al. (SIGMOD 2008), those that they could not remove
last; `kernel` is no assembly of components but what remains when none is there: main-memory trees and rows by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

COMPONENTS: Final = ("keys", "log", "locks", "latches", "buffer", "transactions", "catalogue")
"""In the order in which names have them."""

ORDER: Final = ("keys", "log", "locks", "latches", "buffer", "catalogue", "transactions")
"""In which they are removed: the publication's five, then two that only this engine can be without."""

PAGES: Final = "pages"
"""The step to larger pages, which is of the buffer manager's share."""

LEFT: Final = "left"
"""What remains of a transaction when all that the publication removed is gone."""

OURS: Final = ("catalogue", "transactions")

ONLY_AFTER: Final = {"transactions": frozenset({"log", "locks"})}
"""A component can be removed only when those are gone: the log's records and the locks' holders are transactions."""

TITLES: Final = {
    "keys": "key comparison",
    "log": "logging",
    "locks": "locking",
    "latches": "latching",
    "buffer": "buffer manager",
    "catalogue": "catalogue",
    "transactions": "transactions",
    "trees": "B-trees",
    "heaps": "records",
    "engine": "the engine's calls",
    "kernel": "kernel",
    "transaction": "the transaction's own code",
    PAGES: "larger pages",
    LEFT: "what is left",
    "": "no component",
}

KERNEL: Final = "kernel"
_LARGE_PAGES: Final = "large-pages"
_OUTLINED: Final = "outlined"


@dataclass(frozen=True)
class Assembly:
    """A choice of components. `kernel` has none.

    `large_pages` and `outlined`, which keeps components apart in profiles, are there for what is on `path` alone.
    """

    components: frozenset[str] = frozenset()
    large_pages: bool = False
    outlined: bool = False
    kernel: bool = False

    @property
    def name(self) -> str:
        """As a job has it: all parts in their order."""
        if self.kernel:
            return KERNEL
        parts: list[str] = [each for each in COMPONENTS if each in self.components] or ["none"]
        return "+".join([*parts, *[_LARGE_PAGES] * self.large_pages, *[_OUTLINED] * self.outlined])

    @property
    def in_file(self) -> bool:
        """Whether its pages are those of a file; else they are gone with the process."""
        return "buffer" in self.components

    @property
    def one_client(self) -> bool:
        """Whether it takes one client at a time."""
        return self.kernel or not {"latches", "locks"} <= self.components

    def without(self, component: str) -> Assembly:
        """It is large pages that go with the buffer manager: without one all pages are large."""
        left = self.components - {component}
        return replace(self, components=left, large_pages=self.large_pages and "buffer" in left)


def parse(text: str) -> Assembly:
    """Raises ValueError with what is wrong and what there is."""
    if text == KERNEL:
        return Assembly(kernel=True)
    first, *rest = text.split("+")
    begun = {"full": frozenset(COMPONENTS), "none": frozenset[str]()}
    words = rest if first in begun else [first, *rest]
    known = (*COMPONENTS, _LARGE_PAGES, _OUTLINED)
    for word in words:
        if words.count(word) > 1 or (first == "full" and word in COMPONENTS):
            raise ValueError(f"{word} is named twice")
        if word not in known:
            there = ", ".join(known)
            raise ValueError(
                f"no component is called {word!r}; there are {there}, and full, none and kernel to begin with"
            )
    found = Assembly(
        begun.get(first, frozenset()) | {word for word in words if word in COMPONENTS},
        large_pages=_LARGE_PAGES in words,
        outlined=_OUTLINED in words,
    )
    if why := why_not(found):
        raise ValueError(f"{found.name}: {why}")
    return found


def why_not(assembly: Assembly) -> str | None:
    """Why there is no such engine."""
    there = assembly.components
    for component, before in ONLY_AFTER.items():
        if component not in there and there & before:
            kept = " and ".join(sorted(there & before))
            return f"{component} cannot be absent where there are {kept}"
    if (assembly.large_pages or assembly.outlined) and replace(assembly, outlined=False) not in path():
        there_is = ", ".join(each.name for each in path() if each.large_pages)
        return (
            f"{_LARGE_PAGES} and {_OUTLINED} are there only where components are removed in the publication's order: "
            f"larger pages in {there_is}"
        )
    return None


def path() -> tuple[Assembly, ...]:
    """From full to none, in `ORDER`; larger pages come before the buffer manager goes."""
    found = [Assembly(frozenset(COMPONENTS))]
    for component in ORDER:
        if component == "buffer":
            found.append(replace(found[-1], large_pages=True))
        found.append(found[-1].without(component))
    return tuple(found)


def feasible() -> Iterator[Assembly]:
    """All choices of components that there are, the largest first."""
    for size in range(len(COMPONENTS), -1, -1):
        for chosen in combinations(COMPONENTS, size):
            if why_not(found := Assembly(frozenset(chosen))) is None:
                yield found
