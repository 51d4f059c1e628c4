"""A tree against a pydantic model: the typed value, or problems in plain words at the line that has to be changed."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dyno.model import units
from dyno.model.base import KeyProblem
from dyno.study.errors import Problem, did_you_mean, listed, nearest, shown
from dyno.study.tree import Branch, Leaf, Node, Path, deepest, dotted, plain

M = TypeVar("M", bound=BaseModel)

_SHOULD_BE = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "none_required": "null",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_SPELLED = {True: ("true", "on", "yes"), False: ("false", "off", "no")}


def validate(
    model: type[M],
    root: Branch,
    path: Path,
    node: Node,
    problems: list[Problem],
    also: Sequence[str] = (),
    context: Mapping[str, Any] | None = None,
) -> M | None:
    """`node`, which stands at `path` of `root`, as a `model`; None with problems added if it is none.

    `also` are keys that may stand beside the model's own, `context` is for those of its validators that ask for it.
    Types are those that the YAML scalar has: `"5"` is text and `yes` is no truth value, as the JSON Schema says too.
    """
    try:
        return model.model_validate_json(json.dumps(plain(node)), strict=True, context=context)
    except ValidationError as error:
        problems.extend(_translate(error.errors(include_url=False), model, root, path, also))
        return None


def _translate(
    errors: list[ErrorDetails], model: type[BaseModel], root: Branch, path: Path, also: Sequence[str]
) -> Iterator[Problem]:
    texts: dict[tuple[Path, bool], list[str]] = {}
    found: dict[tuple[Path, bool], Problem] = {}
    for error in _causes(errors):
        at_key = error["type"] in ("missing", "extra_forbidden")
        of_whole = _key_of(error)
        reached, node, key_place = deepest(root, (*path, *error["loc"], *of_whole))
        if error["type"] == "missing":
            key = (*reached, str(error["loc"][-1]))
            place = key_place
        else:
            # What is to be changed may not be written yet: then it is to be, in the section that was reached.
            key = reached if reached[-1:] == of_whole else (*reached, *of_whole)
            place = key_place if at_key else node.place
        text = _text(error, node, [*also, *_fields_at(model, error["loc"][:-1])])
        # The members of a union complain one by one about the same value.
        said = texts.setdefault((key, at_key), [])
        if text not in said:
            said.append(text)
        via = f" (from {shown(node.via)})" if isinstance(node, Leaf) and node.via else ""
        found[key, at_key] = Problem(place, dotted(key), ", or ".join(said) + via)
    yield from found.values()


def _key_of(error: ErrorDetails) -> tuple[str, ...]:
    """The key that the validator of a whole value finds wrong."""
    cause = error.get("ctx", {}).get("error")
    return (cause.key,) if isinstance(cause, KeyProblem) else ()


def _causes(errors: list[ErrorDetails]) -> Iterator[ErrorDetails]:
    """The errors less those of a required key that is only misspelt, which the unknown key's own message tells."""
    unknown = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]
    for error in errors:
        *section, name = error["loc"] or ("",)
        misspelt = [str(loc[-1]) for loc in unknown if list(loc[:-1]) == section]
        if error["type"] != "missing" or nearest(str(name), misspelt) is None:
            yield error


def _text(error: ErrorDetails, node: Node, known: Sequence[str]) -> str:
    kind = error["type"]
    context = error.get("ctx", {})
    given = plain(node)
    if kind == "missing":
        return "this required key is missing"
    if kind == "extra_forbidden":
        name = str(error["loc"][-1])
        return f"unknown key{did_you_mean(name, known)} (keys: {listed(known)})"
    if kind in ("literal_error", "enum"):
        return _not_among(str(context.get("expected", "")), given)
    if kind in _SHOULD_BE:
        return f"should be {_SHOULD_BE[kind]}, not {shown(given)}{_remedy(kind, given)}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"should be {words} {_bound(context.get(bound), node)}, not {shown(given)}"
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", error["msg"])).replace(repr(given), shown(given))
    message = error["msg"]
    return f"{message[:1].lower()}{message[1:]}".replace("input should", "should")


def _not_among(expected: str, given: object) -> str:
    allowed = re.findall(r"'([^']*)'", expected) or re.split(r", | or ", expected)
    among = f"one of {listed(allowed)}" if len(allowed) > 1 else f"{allowed[0]}, the only one known"
    said = f"should be {among}; not {shown(given)}"
    if isinstance(given, bool):
        text = next((word for word in _SPELLED[given] if word in allowed), None)
        return f"{said}, a truth value{f'; quote it as text: {shown(text)}' if text else ', which is not text'}"
    return said + did_you_mean(given, allowed) if isinstance(given, str) else said


def _remedy(kind: str, given: object) -> str:
    if kind == "string_type" and not isinstance(given, (dict, list)):
        return "; leave the key out" if given is None else f"; quote it: '{shown(given)}'"
    if kind in ("int_type", "float_type", "int_from_float"):
        return _plain_number(given)
    if kind == "bool_type" and isinstance(given, str):
        return "; write true or false, without quotes"
    if kind in ("dict_type", "model_type") and given is None:
        return "; write {} for an empty one"
    return ""


def _plain_number(given: object) -> str:
    if isinstance(given, float) and given.is_integer() and abs(given) < 1e15:
        return f"; write {int(given)}"
    if isinstance(given, str) and re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", given):
        return "; remove the quotes"
    return ""


def _bound(limit: object, node: Node) -> str:
    """The limit as the value was written, as far as that is plain: a share as 50%, a size as 64 MiB."""
    given = plain(node)
    if not isinstance(given, str) or not isinstance(limit, (int, float)) or given.strip().isdecimal():
        return str(limit)
    for parse, written in _WRITTEN:
        with suppress(ValueError):
            parse(given)
            # Three digits do not hold every limit.
            return said if parse(said := written(limit)) == limit else str(limit)
    return str(limit)


_WRITTEN: Sequence[tuple[Callable[[object], float], Callable[[float], str]]] = (
    (units.parse_share, lambda limit: f"{limit * 100:g}%"),
    (units.parse_size, units.format_size),
    (units.parse_duration, units.format_duration),
)


def _fields_at(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """The keys that may stand at this place of a model."""
    models = [model]
    for step in loc:
        below = [
            nested
            for outer in models
            for name, field in outer.model_fields.items()
            if step in (name, field.alias)
            for nested in _models_in(field.annotation)
        ]
        models = below or models
    return list(dict.fromkeys(field.alias or name for one in models for name, field in one.model_fields.items()))


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [nested for argument in typing.get_args(annotation) for nested in _models_in(argument)]
