"""Finding kinds of systems, workloads and observers: one module each in its room, or an entry point of another package.

A kind is a concrete class with a `kind` name of its own and an `Options` type; one that has the name of its base is a
part of another kind, such as a server that is a node. No file lists them.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from importlib.metadata import entry_points
from typing import TypeVar

from dyno.model.base import UserError

T = TypeVar("T")


def find(room: str, base: type[T]) -> dict[str, type[T]]:
    """Every kind in the package `room` (such as `dyno.systems`) and in the entry points of that group, by name.

    Raises UserError where another package's entry point cannot be loaded or takes a name that exists.
    """
    kinds: dict[str, type[T]] = {}
    for module in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}."):
        loaded = importlib.import_module(module.name)
        for _, found in inspect.getmembers(loaded, inspect.isclass):
            if found.__module__ != module.name or not issubclass(found, base) or inspect.isabstract(found):
                continue
            if "kind" in vars(found):
                kinds[_name(found)] = found
    for entry in entry_points(group=room):
        try:
            found = entry.load()
        except Exception as error:  # whatever another package raises is its user's to mend
            raise UserError(
                f"entry point {entry.name!r} of {room} ({entry.value}) cannot be loaded: {error}"
            ) from error
        what = f"entry point {entry.name!r} of {room} ({entry.value})"
        if not (inspect.isclass(found) and issubclass(found, base)):
            raise UserError(f"{what} is not a {base.__name__}")
        # What the base declares without a value, such as `kind` and `Options`, is the kind's to give.
        missing = sorted(
            {
                *getattr(found, "__abstractmethods__", ()),
                *(name for name in _declared(base) if not hasattr(found, name)),
            }
        )
        if missing:
            raise UserError(f"{what} is not a whole {base.__name__}: it lacks {', '.join(missing)}")
        if kinds.get(_name(found), found) is not found:
            raise UserError(f"{what} takes the name of {kinds[_name(found)]}")
        kinds[_name(found)] = found
    return kinds


def _declared(base: type) -> list[str]:
    return [name for name, kind in inspect.get_annotations(base).items() if "ClassVar" in str(kind)]


def _name(kind: type) -> str:
    name: str = kind.kind  # type: ignore[attr-defined]  # every base of a room declares it
    return name
