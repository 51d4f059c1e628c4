"""Whose instructions they were: what callgrind counted, by component of the system and by call of its interface."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from dyno.lab.callgrind import Chains
from dyno.model.base import RunError
from dyno.systems.base import Parts

DEPTH: Final = 48
"""How many callers callgrind tells apart: a chain that is cut off has one name more."""


@dataclass(frozen=True)
class Attributed:
    """Of all transactions together: instructions by call and component, and how often each call was made.

    Instructions outside of any call have an empty name of one, and those of no component that is known one too.
    """

    instructions: Counter[tuple[str, str]]
    calls: Counter[str]


def attribute(found: Chains, parts: Parts) -> Attributed:
    """A function belongs to its own component, or else to that of the innermost caller that has one.

    So what a component has done by libraries is its own, and the sum over all is what was counted. Raises RunError
    where a chain of calls was cut off before the call that it is of, so that more of it may be missing.
    """
    known = _Known(parts)
    instructions: Counter[tuple[str, str]] = Counter()
    for chain, cost in found.costs.items():
        component = next(filter(None, map(known.component, chain)), "")
        made = next(filter(None, map(known.call, reversed(chain))), "")
        if len(chain) > DEPTH and not made:
            raise RunError(f"{chain[0]} was called through more than {DEPTH} others: whose it was is not known")
        instructions[made, component] += cost
    calls: Counter[str] = Counter()
    for chain, times in found.calls.items():
        if (call := known.call(chain[0])) and not any(map(known.call, chain[1:])):
            calls[call] += times
    return Attributed(instructions, calls)


class _Known:
    """What was asked once of each function."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._components: dict[str, str | None] = {}
        self._calls: dict[str, str | None] = {}

    def component(self, symbol: str) -> str | None:
        if symbol not in self._components:
            self._components[symbol] = self._parts.component(symbol)
        return self._components[symbol]

    def call(self, symbol: str) -> str | None:
        if symbol not in self._calls:
            self._calls[symbol] = self._parts.call(symbol)
        return self._calls[symbol]
