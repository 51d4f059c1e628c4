"""`intervene`: cells for each dose beside the study's own, and mistakes that are told where they were made."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

import dyno.study
from dyno.lab import Rooms
from dyno.model.pairs import gaps, pairs
from dyno.model.study import Kinds, Study
from dyno.study import StudyError
from dyno.study.loader import parse_file
from dyno.study.tree import plain

TEXT = """\
study: syncs
question: Does it wait for its syncs?
factors:
  journal: [delete, wal]
  threads: [1, 2]
system: {kind: sqlite, config: {journal_mode: "${journal}", synchronous: full}}
workload: {kind: ycsb, mix: a, records: 100, operations: 100, threads: "${threads}"}
"""


@pytest.fixture(scope="module")
def kinds() -> Kinds:
    return Rooms.open().kinds()


def load(folder: Path, kinds: Kinds, intervene: str, text: str = TEXT) -> Study:
    path = folder / "study.yaml"
    path.write_text(f"{text}{intervene}")
    return dyno.study.load(path, kinds)


def test_each_cell_is_there_without_an_intervention_at_dose_0_and_at_each_dose(tmp_path: Path, kinds: Kinds) -> None:
    study = load(tmp_path, kinds, "intervene: {sync-delay: {doses: [250 us, 1 ms, 2.5 ms]}}\n")
    levels = ["none", "sync-delay 0", "sync-delay 250 us", "sync-delay 1 ms", "sync-delay 2.5 ms"]
    assert [level.name for level in study.factor("intervention").levels] == levels
    assert [cell.levels["intervention"] for cell in study.cells] == levels * 4
    assert [cell.index for cell in study.cells] == list(range(20))
    assert [cell.intervention and cell.intervention.dose for cell in study.cells[:5]] == [None, 0, 250e-6, 1e-3, 2.5e-3]


def test_a_study_comes_back_from_its_plan(tmp_path: Path, kinds: Kinds) -> None:
    study = load(tmp_path, kinds, "intervene: {cpu-load: {}, sync-delay: {}}\n")
    assert Study.model_validate_json(study.model_dump_json()) == study


def test_what_is_compared_is_not_made_more_by_doses(tmp_path: Path, kinds: Kinds) -> None:
    plain_study = load(tmp_path, kinds, "")
    study = load(tmp_path, kinds, "intervene: sync-delay\n")
    assert len(pairs(study)) == len(pairs(plain_study)) == 2
    assert all(pair.a.intervention is None and pair.b.intervention is None for pair in pairs(study))
    assert not gaps(study)


def test_where_leaves_the_other_cells_alone(tmp_path: Path, kinds: Kinds) -> None:
    study = load(tmp_path, kinds, "intervene: {sync-delay: {where: {threads: 2, journal: wal}}}\n")
    done_to = [cell for cell in study.cells if cell.intervention is not None]
    assert {cell.levels["journal"] for cell in done_to} == {"wal"}
    assert {cell.levels["threads"] for cell in done_to} == {"2"}
    assert len(study.cells) == 4 + len(done_to)


MISTAKES = {
    "an unknown kind": ("intervene: {sync-dely: {}}", "8: intervene.sync-dely: unknown kind 'sync-dely'; did"),
    "two doses": ("intervene: {sync-delay: {doses: [1 ms, 2 ms]}}", "8: intervene.sync-delay: doses: 3 at least"),
    "doses that fall": ("intervene: {sync-delay: {doses: [1 ms, 3 ms, 2 ms]}}", "each should be above the one before"),
    "a dose without a unit": ("intervene: {sync-delay: {doses: [1, 2, 3]}}", "sync-delay.doses[0]: 1 has no"),
    "a share for a delay": ("intervene: {sync-delay: {doses: [1%, 2%, 3%]}}", "unknown unit '%'"),
    "all that there is": ("intervene: {cpu-quota: {doses: [10%, 50%, 100%]}}", "doses[2]: should be at most 90%"),
    "an unknown option": ("intervene: {cpu-load: {dose: [10%]}}", "intervene.cpu-load.dose: unknown key; did you mean"),
    "an unknown factor": ("intervene: {cpu-load: {where: {thread: 1}}}", "unknown factor 'thread'; did you mean"),
    "an unknown level": ("intervene: {cpu-load: {where: {threads: 3}}}", "unknown level '3'"),
    "a list": ("intervene: [sync-delay]", "intervene: should map kinds to their options"),
    "an empty mapping": ("intervene: {}", "intervene: should map kinds to their options"),
    "no messages": ("intervene: network-delay", "intervene: network-delay: the system lives in the driver"),
    "no limit to raise": ("intervene: cpu-relief", "the system has all CPUs already"),
    "a level of one factor": (
        "intervene: sync-delay\nstages: {best: threads}\nreplicates: {precision_of: ratio}", "two stages",
    ),
    "a screening": ("intervene: sync-delay\ndesign: screening", "a screening"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_at_its_line(name: str, tmp_path: Path, kinds: Kinds) -> None:
    text, said = MISTAKES[name]
    with pytest.raises(StudyError) as caught:
        load(tmp_path, kinds, f"{text}\n")
    assert said in str(caught.value)


def test_a_given_rate_hangs_on_nothing(tmp_path: Path, kinds: Kinds) -> None:
    text = TEXT.replace('threads: "${threads}"}', 'threads: "${threads}", rate: 100}')
    with pytest.raises(StudyError, match="requests come at a rate that was given"):
        load(tmp_path, kinds, "intervene: sync-delay\n", text)


def test_a_system_with_limits_of_its_own_shares_none_with_its_driver(tmp_path: Path, kinds: Kinds) -> None:
    with pytest.raises(StudyError, match="limits of its own"):
        load(tmp_path, kinds, "host: {machine: {cpus: 1}}\nintervene: cpu-quota\n")


def test_a_factor_of_that_name_has_to_go(tmp_path: Path, kinds: Kinds) -> None:
    text = TEXT.replace("journal:", "intervention:").replace("${journal}", "${intervention}")
    with pytest.raises(StudyError, match="a factor is called intervention"):
        load(tmp_path, kinds, "intervene: sync-delay\n", text)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("sync-delay", True),
        ("{sync-delay: }", True),
        ("{sync-delay: {doses: [1 ms, 2 ms, 3 ms], where: {threads: 1}}, cpu-load: {doses: [5%, 10%, 15%]}}", True),
        ("sync-dely", False),
        ("{sync-delay: {doses: [1 %]}}", False),
        ("{}", False),
        ("[sync-delay]", False),
    ],
)
def test_the_schema_takes_what_is_right_and_nothing_else(text: str, good: bool, kinds: Kinds) -> None:
    study = plain(parse_file(f"{TEXT}intervene: {text}\n".encode(), "here"))
    assert jsonschema.Draft202012Validator(dyno.study.json_schema(kinds)).is_valid(study) == good
