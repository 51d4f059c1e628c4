"""Settings whose names have dots: `--set system.config.cairo.commit.mode=sync` gives mappings within mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flattened(given: Mapping[str, Any], own: frozenset[str], prefix: str = "") -> dict[str, Any]:
    """With the dots back in their names; options that are dyno's `own` stay as they are."""
    flat: dict[str, Any] = {}
    for key, value in given.items():
        name = f"{prefix}{key}"
        flat |= flattened(value, own, f"{name}.") if isinstance(value, Mapping) and name not in own else {name: value}
    return flat
