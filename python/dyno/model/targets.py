"""What a study has to reach: a bound on a response, in all cells or in some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from dyno.model.base import Frozen, level_name

_SCALAR = {"type": ["string", "number", "boolean"]}


def _names(given: Any) -> Any:
    """`{threads: 4}` and `{threads: [1, 4]}` as lists of the levels' names."""
    if not isinstance(given, Mapping):
        raise ValueError("should be a mapping of factors to levels, such as {threads: 4}")
    names: dict[str, tuple[str, ...]] = {}
    for factor, levels in given.items():
        some = levels if isinstance(levels, (list, tuple)) else [levels]
        if not some or any(isinstance(level, (Mapping, list, tuple)) or level is None for level in some):
            raise ValueError(f"{factor} should be a level or a list of levels, such as {{threads: [1, 4]}}")
        names[factor] = tuple(level_name(level) for level in some)
    return names


def _one_name(given: Any) -> Any:
    """`{threads: 4}` with the level's name."""
    if not isinstance(given, Mapping) or any(
        isinstance(level, (Mapping, list, tuple)) or level is None for level in given.values()
    ):
        raise ValueError("should be a mapping of factors to one level each, such as {threads: 4}")
    return {factor: level_name(level) for factor, level in given.items()}


Chosen = Annotated[
    dict[str, tuple[str, ...]],
    BeforeValidator(_names),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}}
    ),
]
"""Levels by factor, several of a factor where any of them will do."""

OneEach = Annotated[
    dict[str, str], BeforeValidator(_one_name), WithJsonSchema({"type": "object", "additionalProperties": _SCALAR})
]
"""A level by factor."""


class Target(Frozen):
    """A bound that the mean of a response is to keep to."""

    response: Annotated[str, Field(description="which response, also as read.latency_p99, or what was used")]
    bound: Annotated[str, Field(description="<, <=, > or >= and a number with its unit, such as < 5 ms")]
    where: Annotated[
        Chosen, Field(description="the cells it is asked of: factor to level or levels; all if left out")
    ] = {}
