"""Rules by which the functions of a call stack tell what was being done."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator, model_validator

from dyno.model.base import Frozen, UserError
from dyno.model.study import KindSpec

OBSERVER = "perf-record"
"""The kind of observer that takes call stacks."""

OTHER = "other"
"""The group of stacks that no rule knows."""


class Rule(Frozen):
    """Frames that it is of belong to its group. Patterns are regular expressions, found anywhere in a name."""

    group: Annotated[str, Field(min_length=1, description="what was being done, such as locking")]
    symbol: Annotated[str | None, Field(description="pattern of the function")] = None
    module: Annotated[
        str | None, Field(description="pattern of the program or library; kernel, and jit for code made at run time")
    ] = None
    caller: Annotated[str | None, Field(description="pattern of a function that has to be among the callers")] = None

    @field_validator("symbol", "module", "caller")
    @classmethod
    def _is_a_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _is_of_some_frames(self) -> Rule:
        if self.symbol is None and self.module is None:
            raise ValueError("a rule has a symbol or a module")
        return self


@cache
def built_in() -> tuple[Rule, ...]:
    """The rules that dyno brings."""
    text = resources.files("dyno.model").joinpath("hot_spots.toml").read_text(encoding="utf-8")
    return parse_rules(text, "hot_spots.toml")


def rules_in(observe: Iterable[KindSpec]) -> tuple[Rule, ...]:
    """The rules that the observers of a study bring."""
    given = [each.options.get("rules", ()) for each in observe if each.kind == OBSERVER]
    return tuple(Rule.model_validate(rule) for rules in given for rule in rules)


def parse_rules(text: str, name: str) -> tuple[Rule, ...]:
    """The rules of a file in TOML: tables `[[rule]]`. Raises UserError that says what is wrong in the file `name`."""
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{name}: not TOML: {error}") from None
    unknown = [key for key in data if key != "rule"]
    rules = data.get("rule")
    if unknown or not isinstance(rules, list):
        raise UserError(f"{name}: rules of hot spots are tables [[rule]]{f', not {unknown[0]}' if unknown else ''}")
    found = []
    for number, rule in enumerate(rules, 1):
        try:
            found.append(Rule.model_validate(rule))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UserError(f"{name}: rule {number}{f', {where}' if where else ''}: {first['msg']}") from None
    return tuple(found)
