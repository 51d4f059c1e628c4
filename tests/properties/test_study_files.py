"""Whatever a study file holds, it is a study or it is refused in one line: there is no third way."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import Field

import dyno.study
from dyno.model.base import Frozen
from dyno.model.study import Kinds, Study
from dyno.model.units import Duration, PositiveDuration, Share, Size
from dyno.study import StudyError
from dyno.study.loader import parse_file
from dyno.study.tree import Leaf, Node, height, interpolate, merge, plain, references

GOOD = """\
study: sqlite-journal
question: Which journal is faster?
factors:
  journal: [delete, wal]
  threads: [1, 4]
  tuning:
    as-is: {}
    tuned: {system.config.cache_size: 1 GiB, workload: {records: &n 5}}
compare: journal
host: {caches: warm, require: {free_disk: 1 GiB}}
system:
  kind: sqlite
  deployment: native
  config:
    journal_mode: ${journal}
    cache_size: 64 MiB
workload:
  kind: ycsb
  mix: a
  threads: ${threads}
  proportions: {read: 50%, update: 50%}
  name: data-${journal}-$${x}
replicates: {min: 3, max: 5, budget: 1 min, precision: 5%, confidence: 95%, of: throughput, precision_of: ratio}
observe: [machine, {perf: {events: [cycles]}}]
limits: {drive: 5 min}
order: fixed
seed: 7
targets:
- {response: read.latency_p99, bound: < 5 ms, where: {threads: [1, 4]}}
published:
  observed:
  - file: seen.csv
    map: {journal: mode}
    where: {threads: [1, 4]}
    columns: {ipc: {of: server.instructions, over: server.cycles}, wait: disk.w_await, share: {symbols_in: symbol}}
  findings:
  - {id: faster, says: wal is faster, here: yes, predicate: {all: [
      {ratio: {of: throughput, b: {journal: wal}, a: {journal: delete}}, is: "> 1"},
      {trend: {of: throughput, over: threads, where: {journal: wal}}, is: {peaks-at: 4}, in: some cell}]}}
scales:
  smoke:
    workload.operations: *n
    factors.threads: [2]
    replicates: {min: 2}
"""


class Sqlite(Frozen):
    journal_mode: Literal["delete", "wal", "off"] = "delete"
    cache_size: Size | None = None
    busy_timeout: Duration = 10.0
    exclusive: bool = False


class Ycsb(Frozen):
    mix: Annotated[Literal["a", "b"], Field(description="a core workload")]
    records: Annotated[int, Field(ge=1, le=10**12)] = 1000
    operations: int | None = None
    duration: PositiveDuration | None = None
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    theta: Annotated[float, Field(gt=0)] = 0.99
    name: str = "usertable"
    proportions: dict[Literal["read", "update"], Share] | None = None


class Perf(Frozen):
    events: tuple[str, ...] = ()


class NoOptions(Frozen):
    pass


KINDS = Kinds({"sqlite": Sqlite, "null": NoOptions}, {"ycsb": Ycsb}, {"machine": NoOptions, "perf": Perf})

NASTY = st.sampled_from(
    [
        *(
            "",
            "~",
            "true",
            "off",
            "-1",
            "0",
            "012",
            "0x1F",
            "1e999",
            ".inf",
            ".nan",
            "9" * 30,
            "9" * 5000,
            "1e308",
            "-0.0",
        ),
        *(
            "5%",
            "10000%",
            "1 GiB",
            "9999999999999999999 TiB",
            "1 G",
            "5 s",
            "0 s",
            "9" * 60 + " d",
            "1:30",
            "2024-01-01",
        ),
        *("''", '"\\0"', '"\\ud800"', '"\\U0010ffff"', "'\u202e'", "\x00", "\x85", "\u2028", "\ufeff", "é", "\t", "\r"),
        *("[]", "{}", "[[]]", "{a: {b: c}}", "[1, two, 3.0, ~, true]", "[" * 60, "{a: " * 60, "- a", "a: b", "? a"),
        *("${journal}", "${}", "${", "$${x}", "x${threads}y", "*n", "*x", "&x y", "&x [*x]", "<<: {a: b}"),
        *("!!python/name:os.system", "!!int 5", "!t x", "|", ">-", "%", "@", "---", "...", "#", "x" * 3000),
        *("sqlite", "ycsb", "null", "vm", "ratio", "wal", "throughput", "smoke", "workload.records: 5", "scales: {}"),
    ]
)
PIECES = ["study", "system", "${", "$${", "é", "\x00", "\u2028"]
POSITION = st.floats(0, 1, exclude_max=True)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "seen.csv").write_text("mode,symbol,ipc,wait,share\nwal,memcpy,0.7,0.2,48\ndelete,memcpy,1,,\n")
        yield Path(name)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """The good file with a few lines, values, tokens or bytes deleted, repeated, replaced or inserted."""
    lines = GOOD.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = int(draw(POSITION) * len(lines))
        line = lines[at] if lines else ""
        match draw(st.sampled_from(["delete", "repeat", "indent", "insert", "value", "token", "swap", "character"])):
            case "delete":
                del lines[at : at + draw(st.integers(1, 3))]
            case "repeat":
                lines.insert(int(draw(POSITION) * len(lines)), line)
            case "indent":
                lines[at : at + 1] = [" " * draw(st.integers(0, 6)) + line.lstrip()]
            case "insert":
                lines.insert(at, " " * draw(st.sampled_from([0, 2, 4])) + draw(NASTY))
            case "value":
                lines[at : at + 1] = [f"{line.partition(':')[0]}: {draw(NASTY)}"]
            case "token":
                words = line.split(" ")
                words[int(draw(POSITION) * len(words))] = draw(NASTY)
                lines[at : at + 1] = [" ".join(words)]
            case "swap":
                other = int(draw(POSITION) * len(lines))
                if lines:
                    lines[at], lines[other] = lines[other], lines[at]
            case _:
                column = int(draw(POSITION) * (len(line) + 1))
                new = line[:column] + draw(st.characters(codec="utf-8")) + line[column + draw(st.integers(0, 1)) :]
                lines[at : at + 1] = [new]
    data = "\n".join(lines).encode()
    at = int(draw(POSITION) * len(data))
    return data[:at] + draw(st.binary(max_size=2)) + data[at:] if draw(st.integers(0, 19)) == 0 else data


def is_study_or_refused(folder: Path, data: bytes, overrides: tuple[str, ...] = ()) -> None:
    path = folder / "study.yaml"
    path.write_bytes(data)
    try:
        study = dyno.study.check(path, KINDS, overrides=overrides)
    except StudyError as error:
        message = str(error)
        assert message.isprintable()
        assert len(message) < 600
        assert message.startswith((str(path), str(folder / "seen.csv"), "--set "))
    else:
        assert Study.model_validate_json(study.model_dump_json()) == study


def test_the_file_to_be_damaged_is_good(folder: Path) -> None:
    path = folder / "good.yaml"
    path.write_text(GOOD)
    assert len(dyno.study.check(path, KINDS).cells) == 8


@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=damaged())
def test_a_damaged_file_is_a_study_or_refused(folder: Path, data: bytes) -> None:
    is_study_or_refused(folder, data)


@settings(max_examples=500, deadline=None)
@given(data=st.binary(max_size=200))
def test_bytes_are_a_study_or_refused(folder: Path, data: bytes) -> None:
    is_study_or_refused(folder, data)


@settings(max_examples=1000, deadline=None)
@given(pieces=st.lists(st.sampled_from([*"abc01 :-[]{}#&*!|>'\"%@`\n ,?$~.", *PIECES]), max_size=60))
def test_text_that_looks_like_yaml_is_a_study_or_refused(folder: Path, pieces: list[str]) -> None:
    is_study_or_refused(folder, "".join(pieces).encode())


@settings(max_examples=1000, deadline=None)
@given(
    key=st.one_of(
        st.sampled_from(
            ["workload.records", "factors.threads", "host", "seed", "observe", "system.config.x", "compare"]
        ),
        st.text(max_size=20),
    ),
    value=st.one_of(NASTY, st.text(max_size=20)),
)
def test_a_set_is_taken_or_refused(folder: Path, key: str, value: str) -> None:
    is_study_or_refused(folder, GOOD.encode(), (f"{key}={value}",))


# The tree


def tree_of(text: str) -> Node:
    return parse_file(text.encode(), "file")


_VALUES = st.recursive(
    st.one_of(st.integers(-(2**63), 2**64 - 1), st.booleans(), st.none(), st.text("abc${}. ", max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
_MAPPINGS = st.dictionaries(st.text("abc", min_size=1, max_size=3), _VALUES, min_size=1, max_size=3)


def as_yaml(value: object) -> str:
    return json.dumps(value)  # every JSON text is YAML 1.2


@given(value=_MAPPINGS)
def test_a_tree_keeps_the_values_of_the_file(value: dict[str, object]) -> None:
    tree = tree_of(as_yaml(value))
    assert plain(tree) == value
    assert height(tree) >= 1


def merged(base: object, over: object) -> object:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: merged(base[key], value) if key in base else value for key, value in over.items()}}


@given(base=_MAPPINGS, over=_MAPPINGS)
def test_merging_trees_is_merging_their_values(base: dict[str, object], over: dict[str, object]) -> None:
    assert plain(merge(tree_of(as_yaml(base)), tree_of(as_yaml(over)))) == merged(base, over)


@given(text=st.text("ab${}x ", max_size=30))
def test_interpolation_replaces_references_and_unescapes_the_rest(text: str) -> None:
    names = list(references(text))
    assume(all(name == "x" for name in names))
    tree = tree_of(as_yaml({"key": text}))
    result = plain(interpolate(tree, {"x": (Leaf(5, tree.place), "5")}))["key"]
    assert result == (5 if text == "${x}" else text.replace("$${", "\0").replace("${x}", "5").replace("\0", "${"))
