"""The reference page, the JSON Schema, the examples and the loader say the same.

`DYNO_REGENERATE=1 pytest tests/unit/study/test_study_reference.py` writes the generated parts anew.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel
from study_example import EXAMPLE, KINDS, changed, written
from test_study_load import GROUPS
from test_study_messages import CASES

import dyno.study
from dyno.lab import Rooms
from dyno.model import measures, responses, usage
from dyno.model.faults import FaultOptions
from dyno.model.study import HostSpec, Kinds, Limits, Replicates, Stages
from dyno.model.targets import Target
from dyno.study.document import DesignSection, Document, SystemSection
from dyno.study.figures import TableSpec
from dyno.study.loader import parse_file
from dyno.study.observations import ColumnSpec, ObservedSpec
from dyno.study.published import FindingsIn, FindingSpec
from dyno.study.reference import table
from dyno.study.removed import RemovalSpec
from dyno.study.tree import plain

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs/reference/study-file.md"
GOLDEN = REPOSITORY / "tests/golden/study"
COMPLETE = GOLDEN / "complete.yaml"
REGENERATE = bool(os.environ.get("DYNO_REGENERATE"))

_PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


@pytest.fixture(scope="module")
def kinds() -> Kinds:
    return Rooms.open().kinds()


def as_values(path: Path) -> Any:
    return plain(parse_file(path.read_bytes(), str(path)))


# The page


def generated(part: str, kinds: Kinds) -> str:
    match part:
        case "example":
            return f"```yaml\n{COMPLETE.read_text()}```"
        case "study":
            return table(Document, nested=False)
        case "responses":
            known = [responses.lookup(name) for name in responses.names()]
            rows = [f"| `{one.name}` | {one.title} | {one.unit} | {one.better} |" for one in known]
            return "\n".join(["| response | what it is | unit | better |", "|---|---|---|---|", *rows])
        case "used":
            found = [measures.lookup(name) for name in (*usage.resources(), *usage.shares())]
            rows = [f"| `{one.name}` | {one.title} | {one.unit} |" for one in found]
            return "\n".join(["| name | what it is | unit |", "|---|---|---|", *rows])
        case "kinds":
            rooms = {"system": kinds.systems, "workload": kinds.workloads, "observer": kinds.observers}
            rooms["intervention"] = kinds.interventions
            own = [(room, name, kind) for room, found in rooms.items() for name, kind in sorted(found.items())]
            tables = [f"### {room} `{name}`\n\n{table(kind)}" for room, name, kind in own if is_ours(kind)]
            return "\n\n".join(tables)
    sections: dict[str, type[BaseModel]] = {
        "design": DesignSection,
        "host": HostSpec,
        "system": SystemSection,
        "stages": Stages,
        "replicates": Replicates,
        "limits": Limits,
        "fault": FaultOptions,
        "target": Target,
        "table": TableSpec,
        "observed": ObservedSpec,
        "column": ColumnSpec,
        "source": FindingsIn,
        "removal": RemovalSpec,
        "finding": FindingSpec,
    }
    return table(sections[part])


def is_ours(kind: type) -> bool:
    return kind.__module__.startswith("dyno.")


def test_the_generated_parts_of_the_page_are_up_to_date(kinds: Kinds) -> None:
    page = PAGE.read_text()
    fresh = _PART.sub(lambda part: f"{part[1]}\n{generated(part[2], kinds)}\n\n{part[4]}", page)
    if REGENERATE:
        PAGE.write_text(fresh)
    assert PAGE.read_text() == fresh, "write it anew with DYNO_REGENERATE=1"
    assert len(_PART.findall(page)) == 19


def test_each_key_of_the_study_is_on_the_page() -> None:
    for key in Document.model_fields:
        assert f"| `{key}` |" in PAGE.read_text()


def test_each_key_of_the_study_is_in_the_complete_example() -> None:
    example = as_values(COMPLETE)
    assert set(example) == set(Document.model_fields)
    assert set(example["replicates"]) == set(Replicates.model_fields)
    assert set(example["stages"]) == set(Stages.model_fields)
    assert set(example["limits"]) == set(Limits.model_fields)
    # Its system has no container to run.
    assert set(example["host"]) == set(HostSpec.model_fields) - {"containers"}
    for section in ("machine", "file_system", "kernel", "pin", "require"):
        assert set(example["host"][section]) == {key.partition(".")[0] for key in keys_below(section)}
    assert set(example["host"]["machine"]["disk"]) == set(keys_below("machine.disk"))


def keys_below(section: str) -> list[str]:
    return [
        line.split("`")[1].removeprefix(f"{section}.")
        for line in table(HostSpec).splitlines()
        if f"| `{section}." in line
    ]


# Examples


STUDIES = sorted(
    path
    for path in (*REPOSITORY.glob("studies/**/*.yaml"), COMPLETE)
    if path.parent.name not in ("published", "queries")
)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_each_study_holds_and_agrees_with_the_schema(path: Path, kinds: Kinds) -> None:
    dyno.study.check(path, kinds)
    validate(as_values(path), kinds)


def test_the_complete_example_becomes_the_committed_plan() -> None:
    plan = GOLDEN / "complete.plan.json"
    study = dyno.study.load(COMPLETE, KINDS, scale="smoke")
    text = json.dumps(study.model_dump(mode="json"), indent=1) + "\n"
    if REGENERATE:
        plan.write_text(text)
    assert plan.read_text() == text


# The schema


def validate(study: Any, kinds: Kinds) -> None:
    jsonschema.Draft202012Validator(dyno.study.json_schema(kinds)).validate(study)


def is_valid(text: str, tmp_path: Path) -> bool:
    validator = jsonschema.Draft202012Validator(dyno.study.json_schema(KINDS))
    return bool(validator.is_valid(as_values(written(tmp_path, text))))


def test_the_schema_is_one(kinds: Kinds) -> None:
    for some in (kinds, KINDS, Kinds()):
        schema = dyno.study.json_schema(some)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert json.loads(json.dumps(schema)) == schema


def test_every_reference_within_the_schema_leads_somewhere(kinds: Kinds) -> None:
    text = json.dumps(dyno.study.json_schema(kinds))
    definitions = dyno.study.json_schema(kinds)["$defs"]
    for name in re.findall(r'"\$ref": "#/\$defs/([^"]+)"', text):
        assert definitions[name]


def test_the_schema_describes_each_key(kinds: Kinds) -> None:
    for name, key in dyno.study.json_schema(kinds)["properties"].items():
        assert key["description"] == Document.model_fields[name].description


def test_the_schema_describes_the_options_of_each_kind() -> None:
    (sqlite, *_) = dyno.study.json_schema(KINDS)["properties"]["system"]["oneOf"]
    assert sqlite["properties"]["kind"]["const"] == "sqlite"
    journal = sqlite["properties"]["config"]["properties"]["journal_mode"]
    assert journal["description"] == "how commits are made whole"
    assert journal["anyOf"][0]["enum"] == ["delete", "wal", "off"]


def test_defaults_in_the_schema_are_written_as_in_a_study(kinds: Kinds) -> None:
    schema = dyno.study.json_schema(kinds)
    limits = schema["$defs"]["study.Limits"]["properties"]
    assert limits["prepare"]["default"] == "1 h"
    assert schema["$defs"]["study.Replicates"]["properties"]["precision"]["default"] == "5%"
    defaults = {name: limit["default"] for name, limit in limits.items()}
    assert Limits.model_validate(defaults) == Limits()


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE,
        GROUPS,
        changed({15: "observe: [machine, {perf-stat: {events: [x]}}, {machine: }]"}),
        changed({15: "compare: null"}),
        changed(
            {15: "design: {kind: screening, fraction: 1/2, generators: [B=A], levels: {threads: {low: 1, high: 4}}}"}
        ),
        changed({15: "design: {kind: cells, cells: [{threads: 1, journal: wal}]}"}),
        changed({12: "  kind: ${journal}"}),
        changed({10: "    exclusive: ${threads}\n    log: {size: '${threads}'}"}),
        changed({10: "    busy_timeout: 0"}),
        changed({13: "  mix: ${journal}\n  tables: ['${journal}', b]\n  proportions: {read: '${threads}'}"}),
        changed({13: ""}),
    ],
)
def test_the_schema_takes_what_may_be_right(text: str, tmp_path: Path) -> None:
    assert is_valid(text, tmp_path)


@pytest.mark.parametrize(
    "design",
    [
        "{kind: fractional}",
        "{generator: [E=ABCD]}",
        "{fraction: 1/3}",
        "{cells: [wal]}",
        "{levels: {threads: {low: 1}}}",
    ],
)
def test_the_schema_refuses_a_design_that_is_none(design: str, tmp_path: Path) -> None:
    assert not is_valid(changed({15: f"design: {design}"}), tmp_path)


SEEN_BY_EDITORS = [
    "an unknown key names the nearest one",
    "an unknown top-level key names the nearest one",
    "an unknown key of a nested option is found",
    "an unknown key of the system's options",
    "an option of the system beside its kind is sent to config",
    "a required key of the study is missing",
    "an unknown kind of system",
    "an unknown kind of workload",
    "an unknown deployment says which are known",
    "a value outside its choices",
    "a truth value for a choice of words says to quote it",
    "a word for a truth value",
    "text for a number",
    "a quoted number",
    "a number for text",
    "a size with an unknown unit",
    "a mapping for a value",
    "a value for a mapping",
    "a value for a list",
    "a bad name of a study",
    "a seed below zero",
    "an unknown order",
    "an unknown state of caches",
    "a factor without levels",
    "no factors at all under the key",
    "a level that is null",
    "a level that is a list",
    "an unknown observer",
    "an observer's unknown option",
    "observers that are no list",
    "a scale that is no mapping",
]


@pytest.mark.parametrize("name", SEEN_BY_EDITORS)
def test_the_schema_refuses(name: str, tmp_path: Path) -> None:
    assert not is_valid(changed(CASES[name][0]), tmp_path)
