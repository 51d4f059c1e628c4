"""Settings whose names have dots: `--set system.config.cairo.commit.mode=sync` gives mappings within mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flattened(given: Mapping[str, Any], own: frozenset[str], prefix: str = "") -> dict[str, Any]:
    """With the dots back in their names; options that are dyno's `own` stay as they are.

    A list becomes a tuple: read on as Python's values and no more as a file's, it would be refused where that is asked
    for.
    """
    flat: dict[str, Any] = {}
    for key, value in given.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name not in own:
            flat |= flattened(value, own, f"{name}.")
        else:
            flat[name] = tuple(value) if isinstance(value, list) else value
    return flat
