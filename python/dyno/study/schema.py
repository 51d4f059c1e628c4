"""JSON Schema of a study file, for editors: completion, descriptions and most mistakes shown while typing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from dyno.model.faults import KINDS, NONE, TITLES, FaultOptions, NoFaultOptions
from dyno.model.study import HostSpec, Kinds
from dyno.model.targets import Target
from dyno.model.units import format_duration, format_size, parse_bandwidth, parse_duration, parse_share, parse_size
from dyno.study.document import FACTOR_NAME, SCALE_NAME, DesignSection, Document, SystemSection, WorkloadSection
from dyno.study.observations import ColumnSpec
from dyno.study.published import GROUPS, PREDICATES, PublishedSpec
from dyno.study.tables import TABLES, tables_of

Schema = dict[str, Any]
Quantity = Literal["size", "bandwidth", "duration", "share"]

_QUANTITIES: dict[Quantity, tuple[Callable[[object], float], Callable[[float], str], str]] = {
    "size": (parse_size, format_size, " B"),
    "bandwidth": (parse_bandwidth, lambda bandwidth: f"{format_size(bandwidth)}/s", " B/s"),
    "duration": (parse_duration, format_duration, " s"),
    "share": (parse_share, lambda share: f"{share * 100:g}%", "%"),
}

_VARIED = {"$ref": "#/$defs/varied"}
_SCALAR = {"type": ["string", "number", "boolean"]}


def json_schema(kinds: Kinds) -> Schema:
    """The JSON Schema (2020-12) of study files that name these kinds."""
    definitions: Schema = {
        "varied": {"type": "string", "pattern": r"\$\{[^{}]+\}", "description": "${factor}: the level of that factor"}
    }
    top = model_schema(Document, "study", definitions)
    properties = top["properties"]
    shapes = {
        "factors": _factors(),
        "design": model_schema(DesignSection, "design", definitions),
        "host": _varied(model_schema(HostSpec, "host", definitions), definitions),
        "system": _system(kinds.systems, kinds.deployments, definitions),
        "workload": _workload(kinds.workloads, definitions),
        "observe": _observe(kinds.observers, definitions),
        "intervene": _intervene(kinds.interventions, definitions),
        "faults": _faults(definitions),
        "targets": _targets(definitions),
        "published": _published(definitions),
        "scales": _scales(),
    }
    for key, shape in shapes.items():
        properties[key] = {**shape, "description": properties[key]["description"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **top,
        "title": "dyno study",
        "$defs": definitions,
    }


def model_schema(model: type[BaseModel], prefix: str, definitions: Schema) -> Schema:
    """A model's schema. What it refers to goes to `definitions`, under names of its own."""
    schema = model.model_json_schema(mode="validation", ref_template=f"#/$defs/{prefix}.{{model}}")
    for name, definition in schema.pop("$defs", {}).items():
        definitions[f"{prefix}.{name}"] = _cleaned(definition)
    return _cleaned(schema)


def _cleaned(schema: Schema) -> Schema:
    """Without pydantic's titles, which say the key again, and with each default as it would be written in a study."""
    cleaned = {key: value for key, value in schema.items() if key != "title"}
    if "properties" in cleaned:
        cleaned.pop("description", None)  # a class's docstring, which is not for this reader
        cleaned["properties"] = {key: _cleaned(value) for key, value in cleaned["properties"].items()}
        cleaned.setdefault("additionalProperties", False)
    if isinstance(cleaned.get("default"), dict):
        del cleaned["default"]  # the keys below have their own
    what = quantity(cleaned) or next(filter(None, map(quantity, cleaned.get("anyOf", []))), None)
    if what is not None and cleaned.get("default") is not None:
        cleaned["default"] = _written(what, cleaned["default"])
    return cleaned


def quantity(schema: Schema) -> Quantity | None:
    """Which quantity of `dyno.model.units` a schema is of, told by its example; None for any other schema."""
    if "pattern" not in schema or not schema.get("examples"):
        return None
    example = str(schema["examples"][0])
    for what, (parse, _, _) in _QUANTITIES.items():
        try:
            parse(example)
        except ValueError:
            continue
        return what
    return None


def _written(what: Quantity, amount: float) -> str:
    """The amount as a person writes it, in the base unit where rounding would change it."""
    if amount == 0:
        return "0"
    parse, format_amount, unit = _QUANTITIES[what]
    text = format_amount(amount)
    try:
        return text if parse(text) == amount else f"{amount}{unit}"
    except ValueError:  # `12 min 5 s` is said but not written
        return f"{amount}{unit}"


def _varied(schema: Schema, definitions: Schema) -> Schema:
    """The same with `${factor}` accepted wherever a single value stands.

    No key is required any more: a level's settings or a scale may be what supplies it.
    """
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        target = definitions[name]
        if "properties" not in target:
            return _or_varied(schema)
        varied_name = f"{name}.varied"
        if varied_name not in definitions:
            definitions[varied_name] = {}  # a model that holds itself ends here
            definitions[varied_name] = _varied(target, definitions)
        return {**schema, "$ref": f"#/$defs/{varied_name}"}
    if "properties" in schema:
        properties = {key: _varied(value, definitions) for key, value in schema["properties"].items()}
        return {**{key: value for key, value in schema.items() if key != "required"}, "properties": properties}
    if schema.get("type") == "array":
        parts: Schema = {}
        if isinstance(schema.get("items"), dict):
            parts["items"] = _varied(schema["items"], definitions)
        if "prefixItems" in schema:
            parts["prefixItems"] = [_varied(item, definitions) for item in schema["prefixItems"]]
        return {**schema, **parts}
    if schema.get("type") == "object":
        extra = schema.get("additionalProperties")
        return {**schema, "additionalProperties": _varied(extra, definitions)} if isinstance(extra, dict) else schema
    if "anyOf" in schema:
        members = [_varied(member, definitions) for member in schema["anyOf"]]
        return {**schema, "anyOf": [*members, _VARIED]}
    return _or_varied(schema)


def _or_varied(schema: Schema) -> Schema:
    """`schema` or a `${factor}`, with what is meant for the reader kept outside, where editors look for it."""
    outer = {key: value for key, value in schema.items() if key in ("description", "default", "examples")}
    inner = {key: value for key, value in schema.items() if key not in outer}
    return {**outer, "anyOf": [inner, _VARIED]}


def _factors() -> Schema:
    levels = {"type": "array", "minItems": 1, "items": _SCALAR, "description": "the levels"}
    groups = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "object"},
        "description": "level name to {dotted study key: value}",
    }
    return {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": FACTOR_NAME},
        "additionalProperties": {"oneOf": [levels, groups]},
    }


def _scales() -> Schema:
    return {"type": "object", "propertyNames": {"pattern": SCALE_NAME}, "additionalProperties": {"type": "object"}}


def _by_kind(alternatives: Mapping[str, Schema], rest: Schema) -> Schema:
    """One alternative a kind, and `rest` for a kind that a factor chooses or a level supplies: dyno checks those."""
    varied = {"type": "object", "properties": {"kind": _VARIED}, "required": ["kind"], **rest}
    absent = {"type": "object", "not": {"required": ["kind"]}, **rest}
    known = [{"type": "object", "required": ["kind"], **schema} for schema in alternatives.values()]
    return {"oneOf": [*known, varied, absent]}


def _kind(model: type[BaseModel], name: str) -> Schema:
    return {"const": name, "description": model.model_fields["kind"].description}


def _system(kinds: Mapping[str, type[BaseModel]], deployments: Sequence[str], definitions: Schema) -> Schema:
    plain = model_schema(SystemSection, "system", definitions)
    plain["properties"]["deployment"]["enum"] = list(deployments)
    section = _varied(plain, definitions)["properties"]
    alternatives = {}
    for name, options in kinds.items():
        config = _varied(model_schema(options, f"system.{name}", definitions), definitions)
        config["description"] = section["config"]["description"]
        properties = {**section, "kind": _kind(SystemSection, name), "config": config}
        del properties[TABLES]
        if (tables := tables_of(options)) is not None:
            del config["properties"][TABLES]
            properties[TABLES] = _varied(model_schema(tables, f"system.{name}", definitions), definitions)
            properties[TABLES] |= {"additionalProperties": False, "description": section[TABLES]["description"]}
        alternatives[name] = {"properties": properties, "additionalProperties": False}
    return _by_kind(alternatives, {"additionalProperties": True})


def _workload(kinds: Mapping[str, type[BaseModel]], definitions: Schema) -> Schema:
    alternatives = {}
    for name, options in kinds.items():
        schema = _varied(model_schema(options, f"workload.{name}", definitions), definitions)
        properties = {"kind": _kind(WorkloadSection, name), **schema.get("properties", {})}
        alternatives[name] = {**schema, "properties": properties}
        alternatives[name].setdefault("additionalProperties", False)
    return _by_kind(alternatives, {"additionalProperties": True})


def _targets(definitions: Schema) -> Schema:
    several = {"type": "array", "items": model_schema(Target, "targets", definitions)}
    return {"anyOf": [{"type": "object", "additionalProperties": {"type": "string"}}, several, {"type": "null"}]}


def _published(definitions: Schema) -> Schema:
    kinds = [model_schema(model, "predicate", definitions) for model in PREDICATES.values()]
    groups = [_group(name) for name in GROUPS]
    definitions["predicate"] = {"oneOf": [{"type": "object", **kind} for kind in (*kinds, *groups)]}
    section = model_schema(PublishedSpec, "published", definitions)
    finding = definitions["published.FindingSpec"]["properties"]["predicate"]
    finding.update({"anyOf": [{"$ref": "#/$defs/predicate"}, {"type": "null"}]})
    column = {"type": "object", **model_schema(ColumnSpec, "published", definitions)}
    columns = {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, column]}, "minProperties": 1}
    definitions["published.ObservedSpec"]["properties"]["columns"].update(columns)
    files = {"type": "array", "items": {"type": "string"}}
    return {"anyOf": [{"type": "object", **section}, files, {"type": "null"}]}


def _group(name: str) -> Schema:
    """`{all: [predicate, ...]}` or `{any: [...]}`."""
    several = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/predicate"}}
    return {"properties": {name: several}, "required": [name], "additionalProperties": False}


def _intervene(kinds: Mapping[str, type[BaseModel]], definitions: Schema) -> Schema:
    properties = {
        name: {"anyOf": [model_schema(options, f"intervene.{name}", definitions), {"type": "null"}]}
        for name, options in kinds.items()
    }
    section = {"type": "object", "minProperties": 1, "properties": properties, "additionalProperties": False}
    return {"anyOf": [{"enum": sorted(kinds)}, section, {"type": "null"}]}


def _faults(definitions: Schema) -> Schema:
    properties: Schema = {NONE: {"anyOf": [model_schema(NoFaultOptions, "faults", definitions), {"type": "null"}]}}
    for kind in KINDS:
        options = model_schema(FaultOptions, "faults", definitions)
        properties[kind] = {**options, "type": "object", "description": TITLES[kind]}
    section = {"type": "object", "minProperties": 1, "properties": properties, "additionalProperties": False}
    return {"anyOf": [section, {"type": "null"}]}


def _observe(kinds: Mapping[str, type[BaseModel]], definitions: Schema) -> Schema:
    with_options = [
        {
            "type": "object",
            "properties": {name: {"anyOf": [model_schema(options, f"observe.{name}", definitions), {"type": "null"}]}},
            "required": [name],
            "additionalProperties": False,
        }
        for name, options in kinds.items()
    ]
    return {"type": "array", "items": {"anyOf": [{"enum": sorted(kinds)}, *with_options]}}
