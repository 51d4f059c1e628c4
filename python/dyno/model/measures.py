"""All that two cells may be compared in: the responses of runs, and what was used for an operation."""

from __future__ import annotations

from dataclasses import dataclass

from dyno.model import responses, usage
from dyno.model.responses import Better


@dataclass(frozen=True)
class Measure:
    """A response, a resource or a share. `better` is None where neither way is: of a share of CPU time, say."""

    name: str
    title: str
    unit: str
    better: Better | None
    counted: bool = False
    of_pace: bool = False


def lookup(name: str) -> Measure:
    """The response, resource or share of that name. Raises KeyError with the responses that exist."""
    if usage.is_resource(name):
        used = usage.resource(name)
        if used.relative:
            return Measure(name, used.title, used.unit, None)
        return Measure(name, f"{used.title} per operation", used.unit, "lower")
    known = responses.lookup(name)
    return Measure(name, known.title, known.unit, known.better, known.counted, known.of_pace)


_OF_TIME = frozenset({"s", "ms", "us", "ns", "min", "%"})


def is_of_time(name: str) -> bool:
    """Whether it says how long something took, or how much was done in a while: it hangs on how fast a CPU is.

    Those that are 0 where all went well are counts of what happened, and hang on that alone. Raises KeyError.
    """
    known = lookup(name)
    relative = usage.is_resource(name) and usage.resource(name).relative
    return known.of_pace or relative or (not known.counted and not _OF_TIME.isdisjoint(known.unit.split("/")))


def unit_over(name: str, over: str | None) -> str:
    """Of its figures divided by those of another, where there is one. Raises KeyError."""
    unit = lookup(name).unit
    if over is None:
        return unit
    below = lookup(over).unit
    return "1" if below == unit else unit if below == "1" else f"{unit} / {below}"


def is_one(name: str) -> bool:
    """Whether there is such a response, resource or share."""
    try:
        lookup(name)
    except KeyError:
        return False
    return True


def names() -> tuple[str, ...]:
    """The responses that a whole run has, the resources, and the shares."""
    return (*responses.names(), *usage.resources(), *usage.shares())
