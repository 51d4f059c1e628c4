"""`faults`: a factor whose levels are kinds of faults, and mistakes that are told where they were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.one_node import OneNode

import dyno.study
from dyno.lab import Rooms
from dyno.model.faults import Fault
from dyno.model.study import Kinds, Study
from dyno.study import StudyError
from dyno.study.loader import parse_file
from dyno.study.tree import plain

TEXT = """\
study: failover
question: What does it cost?
factors:
  rate: [100, 200]
system: {kind: one-node, config: {innodb_log_file_size: 8M}}
workload: {kind: ledger, threads: 4, duration: 20 s, rate: "${rate}"}
"""


@pytest.fixture(scope="module")
def kinds() -> Kinds:
    rooms = Rooms.open()
    systems: Mapping[str, Any] = {**rooms.systems, OneNode.kind: OneNode}
    return replace(rooms, systems=dict(systems)).kinds()


def load(folder: Path, kinds: Kinds, faults: str, text: str = TEXT) -> Study:
    path = folder / "study.yaml"
    path.write_text(f"{text}{faults}")
    return dyno.study.load(path, kinds)


def test_each_cell_is_there_once_for_each_kind_of_fault(tmp_path: Path, kinds: Kinds) -> None:
    study = load(
        tmp_path, kinds, "faults: {none: {}, kill: {at: [2 s, 4 s]}, freeze: {at: [1 s, 1 s], node: any, lasts: 3 s}}\n"
    )
    assert [level.name for level in study.factor("fault").levels] == ["none", "kill", "freeze"]
    assert [cell.levels["fault"] for cell in study.cells] == ["none", "kill", "freeze"] * 2
    assert [cell.index for cell in study.cells] == list(range(6))
    unstruck, kill, freeze = (cell.fault for cell in study.cells[:3])
    assert unstruck is None
    assert kill is not None
    assert kill.fault == Fault(kind="kill")
    assert (kill.from_s, kill.to_s, kill.late_s, kill.whole_s) == (2, 4, 1, 300)
    assert freeze is not None
    assert freeze.fault == Fault(kind="freeze", node="any", lasts=3)


def test_a_study_without_faults_has_no_such_factor(tmp_path: Path, kinds: Kinds) -> None:
    study = load(tmp_path, kinds, "faults: null\n")
    assert [factor.name for factor in study.factors] == ["rate"]
    assert all(cell.fault is None for cell in study.cells)


def test_a_study_with_faults_comes_back_from_its_plan(tmp_path: Path, kinds: Kinds) -> None:
    study = load(tmp_path, kinds, "faults: {kill: {at: [2 s, 4 s], lasts: 1500 ms}}\n")
    assert Study.model_validate_json(study.model_dump_json()) == study


def test_a_fault_may_last_just_as_long_as_it_is_driven(tmp_path: Path, kinds: Kinds) -> None:
    study = load(tmp_path, kinds, "faults: {kill: {at: [5 s, 10 s], lasts: 10 s}}\n")
    assert all(cell.fault is not None and cell.fault.fault.lasts == 10 for cell in study.cells)


def test_where_strikes_some_cells_and_leaves_the_others_as_they_are(tmp_path: Path, kinds: Kinds) -> None:
    study = load(tmp_path, kinds, "faults: {kill: {at: [2 s, 4 s], where: {rate: 200}}}\n")
    assert [(cell.levels["rate"], cell.levels["fault"]) for cell in study.cells] == [("100", "none"), ("200", "kill")]


WINDOW = "write from when to when it may be struck, such as at: [3 s, 3 s] for just then"
MISTAKES = {
    "an unknown kind": ("faults: {kil: {at: [1 s, 2 s]}}", "7: faults.kil: unknown kind 'kil'; did you mean 'kill'"),
    "no window": (
        "faults: {kill: {}}",
        f"7: faults.kill.at: this required key is missing: {WINDOW}",
    ),
    "a window that ends before it begins": ("faults: {kill: {at: [3 s, 2 s]}}", "at: ends before it begins"),
    "a time without a unit": ("faults: {kill: {at: [1, 2]}}", "faults.kill.at[0]: 1 has no unit"),
    "a time alone": (
        "faults: {kill: {at: 1 s}}",
        f"faults.kill.at: '1 s' is no window: {WINDOW}",
    ),
    "an unknown node": ("faults: {kill: {at: [1 s, 2 s], node: third}}", "faults.kill.node: should be one of"),
    "an unknown option": ("faults: {kill: {at: [1 s, 2 s], last: 2 s}}", "faults.kill.last: unknown key; did you mean"),
    "an option of nothing": ("faults: {none: {at: [1 s, 2 s]}}", "7: faults.none.at: unknown key"),
    "an unknown level": ("faults: {kill: {at: [1 s, 2 s], where: {rate: 3}}}", "unknown level '3'"),
    "several levels": (
        "faults: {kill: {at: [1 s, 2 s], where: {rate: [100, 200]}}}",
        "7: faults.kill.where.rate: one level is meant, not a list",
    ),
    "a list": ("faults: [kill]", "7: faults: is a list: map kinds to their options"),
    "nothing": ("faults: {}", "7: faults: names no kind: map kinds to their options"),
    "beyond the end": (
        "faults: {kill: {at: [5 s, 20 s]}}",
        "at: raise workload.duration, or strike sooner: the measured part ends after 20 s",
    ),
    "lasting beyond the end": (
        "faults: {kill: {at: [5 s, 10 s], lasts: 11 s}}",
        "faults.kill.lasts: raise workload.duration: the fault may last until 21 s, and the measured part ends after "
        "20 s; or leave lasts out",
    ),
    "beside doses": (
        "intervene: {sync-delay: {}}\nfaults: {kill: {at: [1 s, 2 s]}}",
        "8: faults: what is slowed (intervene) and what is struck would not be told apart",
    ),
}


@pytest.mark.parametrize(("faults", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_where_it_was_made(faults: str, said: str, tmp_path: Path, kinds: Kinds) -> None:
    with pytest.raises(StudyError) as error:
        load(tmp_path, kinds, faults)
    told = str(error.value.problem)
    assert said in told
    assert f"{tmp_path / 'study.yaml'}:" in told


def test_a_screening_has_no_room_for_faults(tmp_path: Path, kinds: Kinds) -> None:
    text = TEXT.replace("[100, 200]", "[100, 200]\n  clients: [4, 8]").replace("threads: 4", 'threads: "${clients}"')
    with pytest.raises(StudyError, match="faults are no two levels of a factor"):
        load(tmp_path, kinds, "design: {kind: screening}\nfaults: {kill: {at: [1 s, 2 s]}}", text)


KILL = "faults: {kill: {at: [1 s, 2 s]}}\n"

CRATEDB = """
study: loading
question: What is lost?
factors: {replicas: {none: {system.tables.replicas: 0}, one: {system.tables.replicas: 1}}}
compare: replicas
system: {kind: cratedb, config: {nodes: 3}}
workload: {kind: tsbs, action: load, scale: 2, length: 1 h, rate: 100}
"""


def test_a_node_is_struck_while_rows_come_within_the_time_that_they_take_at_their_rate(tmp_path: Path) -> None:
    """2 hosts x 360 times x 9 tables at 100 rows a second are 64.8 s."""
    kinds = Rooms.open().kinds()
    assert len(load(tmp_path, kinds, "faults: {kill: {at: [1 s, 60 s]}}\n", CRATEDB).cells) == 2
    with pytest.raises(StudyError, match=r"raise workload\.length, or strike .* ends after 64\.8 s"):
        load(tmp_path, kinds, "faults: {kill: {at: [1 s, 70 s]}}\n", CRATEDB)
    with pytest.raises(StudyError, match="give a rate"):
        load(tmp_path, kinds, KILL, CRATEDB.replace(", rate: 100", ""))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("one-node, config: {innodb_log_file_size: 8M}", "mariadb", "mariadb has no nodes that could be struck; "),
        (', rate: "${rate}"', ', rate: "${rate}", operations: 900', "give a duration, and no operations"),
        ("one-node, config: {innodb_log_file_size: 8M}", "one-node, config: {connect: tcp}", "only over its socket"),
        (", duration: 20 s", "", "where faults are struck, a duration"),
    ],
)
def test_what_could_not_be_struck_is_refused(old: str, new: str, said: str, tmp_path: Path, kinds: Kinds) -> None:
    with pytest.raises(StudyError, match=said):
        load(tmp_path, kinds, KILL, TEXT.replace(old, new))


def test_a_workload_that_waits_for_its_answers_would_not_see_an_outage(tmp_path: Path, kinds: Kinds) -> None:
    text = TEXT.replace(', rate: "${rate}"', ', threads: "${rate}"').replace("threads: 4, ", "").replace("200", "64")
    with pytest.raises(StudyError, match="give a rate"):
        load(tmp_path, kinds, KILL, text)


def test_a_workload_that_ends_with_its_server_cannot_go_on(tmp_path: Path, kinds: Kinds) -> None:
    text = TEXT.replace("kind: ledger", "kind: ycsb, mix: a, records: 10")
    with pytest.raises(StudyError, match="ycsb cannot go on through a fault; ledger, tsbs can"):
        load(tmp_path, kinds, KILL, text)


def test_the_json_schema_takes_faults_and_refuses_what_they_are_not(kinds: Kinds) -> None:
    schema = dyno.study.json_schema(kinds)

    def refused(faults: str) -> bool:
        study = plain(parse_file(f"{TEXT}{faults}".encode(), "study.yaml"))
        return not jsonschema.Draft202012Validator(schema).is_valid(study)

    assert not refused("faults: {none: null, cut: {at: [1 s, 2 s], node: secondary, late: 500 ms}}")
    assert refused("faults: {cut: {node: secondary}}")
    assert refused("faults: {cutt: {at: [1 s, 2 s]}}")
    assert refused("faults: {cut: {at: [1 s, 2 s], node: second}}")
