"""`system.tables`: what each kind takes, what is wrong said at its line, and where it stands in plan and schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from study_example import written

import dyno.study
from dyno.lab import Rooms
from dyno.model.study import Kinds
from dyno.study.errors import StudyError
from dyno.study.loader import parse_file
from dyno.study.tree import plain

STUDY = """\
study: tables
question: How many partitions?
factors:
  by: [day, month]
system:
  kind: {kind}
  config: {{}}
  tables:
    {tables}
workload: {{kind: {workload}}}
"""
DRIVES = {"sqlite": "null", "simulated": "simulated", "postgresql": "null"}


@pytest.fixture(scope="module")
def kinds() -> Kinds:
    found = Rooms.open().kinds()
    # What can drive a store is another's to say.
    return Kinds(found.systems, found.workloads, found.observers, found.deployments)


def study_of(kind: str, tables: str) -> str:
    return STUDY.format(kind=kind, tables=tables, workload=DRIVES.get(kind, "null"))


@pytest.mark.parametrize(
    ("kind", "tables", "said"),
    [
        (
            "questdb",
            "shards: 3\n    index: none",
            "9: system.tables.shards: tables of questdb take no shards; they take partition_by, index, wal, dedup",
        ),
        (
            "duckdb",
            "partition_by: day",
            "9: system.tables.partition_by: tables of duckdb take no partition_by; they take index, deduplicate",
        ),
        (
            "questdb",
            "indx: none",
            "9: system.tables.indx: unknown key; did you mean 'index'? (keys: partition_by, index, wal, deduplicate)",
        ),
        (
            "questdb",
            "partition_by: week",
            "9: system.tables.partition_by: should be one of none, day, month; not 'week'",
        ),
        (
            "questdb",
            "partition_by: none\n    wal: true",
            "10: system.tables.wal: true needs partitions: write partition_by: day or month, or leave wal out",
        ),
        (
            "questdb",
            "deduplicate: true\n    wal: false",
            "9: system.tables.deduplicate: true needs tables with partitions and a log: leave wal out, or write true",
        ),
        (
            "postgresql",
            "index: [usage_user]",
            "9: system.tables.index: 'usage_user' is no tag of the tables; there are hostname, region, ",
        ),
        ("postgresql", "index: [rack, rack]", "9: system.tables.index: names a column twice"),
        ("postgresql", "hypertable: 1", "9: system.tables.hypertable: should be true or false, not 1"),
        (
            "sqlite",
            "index: none",
            "8: system.tables: sqlite has no tables that could be laid out; cratedb, duckdb, postgres",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line_its_key_and_what_would_be_right(
    kind: str, tables: str, said: str, kinds: Kinds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, study_of(kind, tables))
    with pytest.raises(StudyError) as caught:
        dyno.study.check(Path("study.yaml"), kinds)
    assert str(caught.value).startswith(f"study.yaml:{said}")


def test_under_config_it_is_sent_beside_it(kinds: Kinds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = study_of("questdb", "index: none").replace("config: {}", "config: {tables: {index: none}}")
    written(tmp_path, text)
    with pytest.raises(StudyError, match=r"7: system\.config\.tables: .* write it as system\.tables"):
        dyno.study.check(Path("study.yaml"), kinds)


def load(text: str, kinds: Kinds, folder: Path, **how: Any) -> list[dict[str, Any]]:
    study = dyno.study.load(written(folder, text), kinds, **how)
    return [cell.system.options["tables"] for cell in study.cells]


def test_a_factor_varies_it_and_the_plan_has_it(kinds: Kinds, tmp_path: Path) -> None:
    found = load(study_of("questdb", "partition_by: ${by}"), kinds, tmp_path)
    assert [each["partition_by"] for each in found] == ["day", "month"]


def test_what_is_left_out_is_as_the_kind_has_it(kinds: Kinds, tmp_path: Path) -> None:
    (first, _) = load(study_of("questdb", "{partition_by: '${by}', index: hostname}"), kinds, tmp_path)
    assert first == {"partition_by": "day", "index": ["hostname"], "wal": None, "deduplicate": False}


def test_one_column_or_several_may_be_a_level(kinds: Kinds, tmp_path: Path) -> None:
    text = study_of("questdb", "index: ${by}").replace("[day, month]", "[none, hostname, 'region, rack']")
    assert [each["index"] for each in load(text, kinds, tmp_path)] == ["none", ["hostname"], ["region", "rack"]]


def test_a_key_of_server_conf_can_be_set_on_the_command_line(kinds: Kinds, tmp_path: Path) -> None:
    path = written(tmp_path, study_of("questdb", "partition_by: ${by}"))
    study = dyno.study.load(path, kinds, overrides=("system.config.cairo.commit.mode=sync",))
    assert {cell.system.options["cairo.commit.mode"] for cell in study.cells} == {"sync"}


def test_the_schema_takes_what_dyno_takes_and_no_more(kinds: Kinds) -> None:
    schema = dyno.study.json_schema(kinds)

    def refused(kind: str, tables: str) -> bool:
        document = plain(parse_file(study_of(kind, tables).encode(), "study.yaml"))
        return bool(list(jsonschema.Draft202012Validator(json.loads(json.dumps(schema))).iter_errors(document)))

    assert not refused("questdb", "partition_by: ${by}")
    assert not refused("postgresql", "{index: [hostname], hypertable: false}")
    assert refused("questdb", "shards: 3")
    assert refused("sqlite", "index: none")
