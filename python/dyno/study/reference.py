"""The tables of the reference page, made from the types themselves so that page and program cannot differ."""

from __future__ import annotations

from pydantic import BaseModel

from dyno.study.schema import Schema, model_schema, quantity

_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
_ANYTHING = "see below"
_FREE = "a setting of the system itself, by its own name and as it takes it; read back after each start"
_SAYS_NOTHING = ("a size with a unit", "a bandwidth with its unit", "a duration with a unit", "a share in per cent")


def table(model: type[BaseModel], *, nested: bool = True) -> str:
    """A Markdown table of a model's keys: what each takes, its default and its meaning; with those of nested models."""
    definitions: Schema = {}
    schema = model_schema(model, "model", definitions)
    rows = _rows(schema, definitions, "", nested)
    if not rows:
        return "It has no options."
    return "\n".join(["| key | takes | default | meaning |", "|---|---|---|---|", *rows])


def _rows(schema: Schema, definitions: Schema, prefix: str, nested: bool) -> list[str]:
    rows = []
    for key, field in schema["properties"].items():
        below = _model_in(field, definitions)
        takes = "a mapping" if below else _takes(field, definitions)
        default = "required" if key in schema.get("required", []) else _default(field)
        meaning = field.get("description", "")
        cells = (f"`{prefix}{key}`", takes, default, "" if meaning in _SAYS_NOTHING else _escaped(meaning))
        rows.append(f"| {' | '.join(cells)} |")
        if below and nested:
            rows += _rows(below, definitions, f"{prefix}{key}.", nested)
    if isinstance(schema.get("additionalProperties"), dict):
        rows.append(f"| any other key | {_takes(schema['additionalProperties'], definitions)} |  | {_FREE} |")
    return rows


def _model_in(field: Schema, definitions: Schema) -> Schema | None:
    """The schema of the model that a field holds, if it holds one."""
    members = (_target(member, definitions) for member in (field, *field.get("anyOf", [])))
    return next((member for member in members if "properties" in member), None)


def _target(schema: Schema, definitions: Schema) -> Schema:
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return dict(definitions[name]) if name else schema


def _takes(field: Schema, definitions: Schema) -> str:
    target = _target(field, definitions)
    if "anyOf" in target:
        members = (member for member in target["anyOf"] if member.get("type") != "null")
        return " or ".join(dict.fromkeys(_takes(member, definitions) for member in members))
    what = quantity(target)
    if what is not None:
        return f"a {what}, such as `{target['examples'][0]}`"
    if "enum" in target or "const" in target:
        return ", ".join(f"`{value}`" for value in target.get("enum", [target.get("const")]))
    if target.get("type") in ("array", "object"):
        return "a list" if target["type"] == "array" else "a mapping"
    return f"{_TYPES.get(target.get('type', ''), _ANYTHING)}{_bounds(target)}"


def _bounds(schema: Schema) -> str:
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    return "".join(f" {word} {schema[bound]}" for bound, word in words.items() if bound in schema)


def _default(field: Schema) -> str:
    value = field.get("default")
    if value is None or isinstance(value, (dict, list)):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
