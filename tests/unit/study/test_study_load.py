"""A good file becomes the study that it says, at each scale and with each `--set`."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from study_example import EXAMPLE, KINDS, changed, written

import dyno.study
from dyno.model.base import UserError
from dyno.model.study import HostSpec, Kinds, KindSpec, Limits, Mismatch, Study
from dyno.study import StudyError


def load(folder: Path, text: str = EXAMPLE, scale: str = "default", overrides: tuple[str, ...] = ()) -> Study:
    return dyno.study.load(written(folder, text), KINDS, scale=scale, overrides=overrides)


def refused(folder: Path, text: str = EXAMPLE, scale: str = "default", overrides: tuple[str, ...] = ()) -> str:
    with pytest.raises(StudyError) as caught:
        load(folder, text, scale, overrides)
    return str(caught.value).replace(f"{folder}/", "")


def test_cells_are_the_full_factorial_in_the_order_of_the_file(tmp_path: Path) -> None:
    study = load(tmp_path)
    assert [cell.name for cell in study.cells] == [
        "journal=delete threads=1",
        "journal=delete threads=4",
        "journal=wal threads=1",
        "journal=wal threads=4",
    ]
    assert [cell.index for cell in study.cells] == [0, 1, 2, 3]
    assert [cell.system.options["journal_mode"] for cell in study.cells] == ["delete", "delete", "wal", "wal"]
    assert [cell.workload.options["threads"] for cell in study.cells] == [1, 4, 1, 4]


def test_whatever_is_left_out_has_its_default(tmp_path: Path) -> None:
    study = load(tmp_path)
    assert study.compare == "journal"
    assert study.observe == (KindSpec(kind="machine"),)
    assert study.limits == Limits()
    assert (study.order, study.prepare, study.restore, study.seed, study.scale) == (
        "randomised",
        "once",
        "copy",
        1,
        "default",
    )
    assert study.cells[0].host == HostSpec()
    assert study.cells[0].deployment == "native"
    assert study.cells[0].workload.options["records"] == 1000


def not_together(key: str, *cells: int) -> Kinds:
    """Kinds of which the cells have something that does not go together."""
    return replace(
        KINDS, mismatches=lambda study: [Mismatch(key, f"no ({study.cells[i].name})", study.cells[i]) for i in cells]
    )


@pytest.mark.parametrize(
    ("text", "key", "cells", "message"),
    [
        (EXAMPLE, "workload.kind", (1,), "12: workload.kind: no (journal=delete threads=4)"),
        (EXAMPLE, "workload.threads", (2, 0, 1), "5: workload.threads: no (journal=wal threads=1)"),
        (EXAMPLE, "system.config", (0,), "9: system.config: no (journal=delete threads=1)"),
        (EXAMPLE, "host.caches", (0,), "1: host.caches: no (journal=delete threads=1)"),
        (EXAMPLE, "system.config.journal_mode", (2, 3), "4: system.config.journal_mode: no"),
    ],
)
def test_what_does_not_go_together_is_told_where_it_was_written(
    text: str, key: str, cells: tuple[int, ...], message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(StudyError) as caught:
        dyno.study.load(path, not_together(key, *cells))
    assert str(caught.value).startswith(f"{path}:{message}")


def test_what_does_not_go_together_in_a_level_or_by_set_is_told_there(tmp_path: Path) -> None:
    path = written(tmp_path, GROUPS)
    with pytest.raises(StudyError, match=r"study.yaml:8: system.config.cache_size: no \(journal=delete tuning=tuned\)"):
        dyno.study.load(path, not_together("system.config.cache_size", 1))
    with pytest.raises(StudyError, match=r"^--set workload.mix=b: no \(journal=delete tuning=as-is\)"):
        dyno.study.load(path, not_together("workload.mix", 0), overrides=["workload.mix=b"])


def test_what_does_not_go_together_at_all_is_told_without_a_cell(tmp_path: Path) -> None:
    kinds = replace(KINDS, mismatches=lambda _: [Mismatch("replicates.min", "no")])
    with pytest.raises(StudyError, match=r"study.yaml:15: replicates.min: no$"):
        dyno.study.load(written(tmp_path, EXAMPLE), kinds)
    with pytest.raises(StudyError, match=r"study.yaml:19: replicates.min: no \(at scale 'smoke'\)"):
        dyno.study.check(
            written(tmp_path, EXAMPLE),
            replace(kinds, mismatches=lambda study: [Mismatch("replicates.min", "no")] * (study.scale == "smoke")),
        )


def test_nothing_is_observed_where_there_is_no_kind_called_machine(tmp_path: Path) -> None:
    kinds = Kinds(KINDS.systems, KINDS.workloads, {})
    assert dyno.study.load(written(tmp_path, EXAMPLE), kinds).observe == ()


def test_options_are_written_as_the_kind_writes_them(tmp_path: Path) -> None:
    assert load(tmp_path).cells[0].system.options["cache_size"] == "67108864 B"


def test_a_study_without_factors_has_one_cell(tmp_path: Path) -> None:
    study = load(tmp_path, changed({3: "", 4: "", 5: "", 9: "", 14: ""}))
    assert [cell.name for cell in study.cells] == ["the only cell"]
    assert study.compare is None


def test_the_checksum_is_of_the_bytes_of_the_file(tmp_path: Path) -> None:
    assert load(tmp_path).source_sha256 == hashlib.sha256(EXAMPLE.encode()).hexdigest()


def test_compare_may_name_another_factor_or_none(tmp_path: Path) -> None:
    assert load(tmp_path, changed({15: "compare: threads"})).compare == "threads"
    assert load(tmp_path, changed({15: "compare: null"})).compare is None


def test_observers_stand_by_name_or_with_options(tmp_path: Path) -> None:
    study = load(tmp_path, changed({15: "observe: [machine, {perf-stat: {events: [instructions]}}]"}))
    assert study.observe == (
        KindSpec(kind="machine"),
        KindSpec(kind="perf-stat", options={"events": ["instructions"]}),
    )
    assert load(tmp_path, changed({15: "observe: []"})).observe == ()
    assert load(tmp_path, changed({15: "observe:\n- perf-stat:"})).observe[0].kind == "perf-stat"


@pytest.mark.parametrize(
    ("written_as", "value"),
    [
        ("off", "off"),
        ("'off'", "off"),
        ("yes", "yes"),
        ("n", "n"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("0x", "0x"),
        ("'${journal}'", "delete"),
        ("x-${journal}-${threads}", "x-delete-1"),
        ("$${journal}", "${journal}"),
        ("a$${b}${journal}", "a${b}delete"),
        ("$$${journal}", "$${journal}"),
        ("=", "="),
        ("'<<'", "<<"),
        ('"\\u00e9"', "é"),
    ],
)
def test_text_stays_text(written_as: str, value: str, tmp_path: Path) -> None:
    study = load(tmp_path, changed({13: f"  mix: a\n  name: {written_as}"}))
    assert study.cells[0].workload.options["name"] == value


@pytest.mark.parametrize(
    ("written_as", "value"), [("12", 12), ("+12", 12), ("0x10", 16), ("0o17", 15), ("1000000000000", 10**12)]
)
def test_whole_numbers_are_those_of_yaml_1_2(written_as: str, value: int, tmp_path: Path) -> None:
    assert (
        load(tmp_path, changed({13: f"  mix: a\n  records: {written_as}"})).cells[0].workload.options["records"]
        == value
    )


@pytest.mark.parametrize(("written_as", "value"), [(".5", 0.5), ("1e-3", 0.001), ("2", 2.0), ("1.", 1.0)])
def test_numbers_are_those_of_yaml_1_2(written_as: str, value: float, tmp_path: Path) -> None:
    assert load(tmp_path, changed({13: f"  mix: a\n  theta: {written_as}"})).cells[0].workload.options["theta"] == value


def test_only_true_and_false_are_truth_values(tmp_path: Path) -> None:
    assert load(tmp_path, changed({10: "    exclusive: true"})).cells[0].system.options["exclusive"] is True
    assert load(tmp_path, changed({10: "    switch: off"})).cells[0].system.options["switch"] == "off"
    assert load(tmp_path, changed({10: "    switch: 'true'"})).cells[0].system.options["switch"] == "true"


def test_a_whole_reference_keeps_the_type_of_the_level(tmp_path: Path) -> None:
    text = changed({5: "  threads: [true, false]", 10: "    exclusive: ${threads}", 14: ""})
    study = load(tmp_path, text)
    assert [cell.system.options["exclusive"] for cell in study.cells] == [True, False, True, False]
    assert study.cells[0].levels["threads"] == "true"


def test_a_reference_may_choose_the_kind(tmp_path: Path) -> None:
    text = changed({4: "  journal: [ycsb]", 9: "", 12: "  kind: ${journal}"})
    assert load(tmp_path, text).cells[0].workload.kind == "ycsb"


def test_an_anchor_is_filled_in(tmp_path: Path) -> None:
    text = changed({4: "  journal: &j [delete, wal]", 13: "  mix: a\n  tables: *j"})
    assert load(tmp_path, text).cells[0].workload.options["tables"] == ["delete", "wal"]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert load(tmp_path, "\ufeff" + EXAMPLE).study == "sqlite-journal"


def test_windows_line_ends_do_not_change_the_lines(tmp_path: Path) -> None:
    text = changed({13: "  mix: x"}).replace("\n", "\r\n")
    assert refused(tmp_path, text).startswith("study.yaml:13: workload.mix: ")


# Named groups of settings


GROUPS = changed(
    {
        5: """\
  tuning:
    as-is: {}
    tuned:
      system.config.cache_size: 1 GiB
      workload: {records: 5, name: "${journal}-db"}""",
        14: "",
    }
)


def test_a_level_may_be_a_named_group_of_settings(tmp_path: Path) -> None:
    study = load(tmp_path, GROUPS)
    assert [cell.levels["tuning"] for cell in study.cells] == ["as-is", "tuned", "as-is", "tuned"]
    assert [cell.workload.options["records"] for cell in study.cells] == [1000, 5, 1000, 5]
    assert [cell.workload.options["name"] for cell in study.cells] == ["usertable", "delete-db", "usertable", "wal-db"]
    assert study.cells[1].system.options["cache_size"] == f"{1024**3} B"
    assert study.factor("tuning").levels[1].settings == {
        "system.config.cache_size": "1 GiB",
        "workload": {"records": 5, "name": "${journal}-db"},
    }


def test_a_level_outranks_the_scale_and_the_command_line(tmp_path: Path) -> None:
    for study in (load(tmp_path, GROUPS, scale="smoke"), load(tmp_path, GROUPS, overrides=("workload.records=10",))):
        assert [cell.workload.options["records"] for cell in study.cells] == [10, 5, 10, 5]


def test_a_level_may_make_the_section_it_sets(tmp_path: Path) -> None:
    text = changed({5: "  caches:\n    a: {host.caches: cold}\n    b: {host: {caches: warm}}", 14: ""})
    assert [cell.host.caches for cell in load(tmp_path, text).cells] == ["cold", "warm", "cold", "warm"]


def test_groups_without_settings_compare_a_system_with_itself(tmp_path: Path) -> None:
    study = load(tmp_path, changed({5: "  side: {a: {}, b: {}}", 14: ""}))
    assert study.cells[0].system == study.cells[1].system
    assert study.factor("side").levels[0].settings == {}


def test_a_mistake_in_a_groups_value_is_named_there(tmp_path: Path) -> None:
    text = GROUPS.replace("1 GiB", "1 GB of memory")
    assert refused(tmp_path, text).startswith("study.yaml:8: system.config.cache_size: '1 GB of memory' is not a size")


# Scales


def test_a_scale_is_merged_into_the_file(tmp_path: Path) -> None:
    study = load(tmp_path, scale="smoke")
    assert study.scale == "smoke"
    assert (study.replicates.min, study.replicates.max) == (2, 5)
    assert {cell.workload.options["records"] for cell in study.cells} == {10}
    assert {cell.workload.options["mix"] for cell in study.cells} == {"a"}


def test_lists_in_a_scale_replace(tmp_path: Path) -> None:
    study = load(tmp_path, changed({18: "    factors.threads: [2]"}), scale="smoke")
    assert [cell.levels["threads"] for cell in study.cells] == ["2", "2"]


def test_the_default_scale_may_be_declared(tmp_path: Path) -> None:
    text = changed({17: "  default: {workload.records: 7}\n  smoke:"})
    assert load(tmp_path, text).cells[0].workload.options["records"] == 7


def test_an_undeclared_scale_is_answered_with_those_declared(tmp_path: Path) -> None:
    expected = "study.yaml:16: scales: unknown scale 'smokey'; did you mean 'smoke'? (scales: default, smoke)"
    assert refused(tmp_path, scale="smokey") == expected


def test_a_mistake_in_a_scale_is_found_by_check_and_not_by_load(tmp_path: Path) -> None:
    text = changed({18: "    workload.recrods: 10"})
    load(tmp_path, text)
    path = written(tmp_path, text)
    with pytest.raises(StudyError, match=r":18: workload\.recrods: unknown key; did you mean 'records'\?"):
        dyno.study.check(path, KINDS)
    assert dyno.study.check(path, KINDS, scale="default").scale == "default"


def test_check_gives_the_study_at_the_scale_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE)
    assert dyno.study.check(path, KINDS).scale == "default"
    assert dyno.study.check(path, KINDS, scale="smoke").scale == "smoke"


# --set


@pytest.mark.parametrize(
    ("override", "of", "value"),
    [
        ("workload.records=100", "records", 100),
        ("workload.name=off", "name", "off"),
        ("workload.name='5'", "name", "5"),
        ("workload.tables=[a, b]", "tables", ["a", "b"]),
        ("workload={records: 5}", "records", 5),
        ("workload.name=a=b", "name", "a=b"),
        ("workload.operations=", "operations", None),
    ],
)
def test_set_overrides_a_key(override: str, of: str, value: object, tmp_path: Path) -> None:
    assert load(tmp_path, overrides=(override,)).cells[0].workload.options[of] == value


def test_set_outranks_the_scale_and_a_later_set_an_earlier(tmp_path: Path) -> None:
    study = load(tmp_path, scale="smoke", overrides=("workload.records=3", "workload.records=4"))
    assert study.cells[0].workload.options["records"] == 4


def test_set_makes_missing_sections(tmp_path: Path) -> None:
    study = load(tmp_path, overrides=("limits.stop=5 s", "host.require.free_disk=2 GiB"))
    assert study.limits.stop == 5
    assert study.cells[0].host.require.free_disk == 2 * 1024**3


def test_set_changes_the_levels_of_a_factor(tmp_path: Path) -> None:
    assert len(load(tmp_path, overrides=("factors.threads=[1, 2, 8]",)).cells) == 6


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            "workload.recrods=1",
            "--set workload.recrods=1: unknown key; did you mean 'records'? (keys: kind, mix, records, operations, "
            "duration, threads, theta, name, tables, proportions)",
        ),
        (
            "factors.threads=[1, x]",
            "--set factors.threads=[1, x]: workload.threads: should be a whole number, not 'x' (from '${threads}')",
        ),
        ("workload.records", "--set workload.records: has no value; write --set key=value"),
        ("=5", "--set =5: has an empty part; write a dotted key such as workload.records"),
        ("workload.=5", "--set workload.=5: has an empty part; write a dotted key such as workload.records"),
        (
            "observe.machine=1",
            "--set observe.machine=1: observe holds a list and has no keys below it; set observe as a whole",
        ),
        (
            "workload.mix.a=1",
            "--set workload.mix.a=1: workload.mix holds 'a' and has no keys below it; set workload.mix as a whole",
        ),
        (
            "scales.smoke={}",
            "--set scales.smoke={}: scales cannot be set; choose one with --scale, and set other keys",
        ),
        (
            "workload.mix=[a",
            "--set workload.mix=[a: not valid YAML: while parsing a flow sequence: did not find expected ',' or ']'",
        ),
        ("workload.mix=!x a", "--set workload.mix=!x a: the tag '!x' is not taken; write the value without it"),
        ("workload.mix=\udcff", r"--set workload.mix=\udcff: character U+DCFF is not allowed in YAML; remove it"),
        ("host=null", "--set host=null: should be a mapping of keys, not null; write {} for an empty one"),
        ("study=", "--set study=: should be text, not null; leave the key out"),
    ],
)
def test_a_mistake_in_a_set_is_named_as_it_was_typed(override: str, expected: str, tmp_path: Path) -> None:
    text = changed({15: "observe: [machine]"})
    assert refused(tmp_path, text, overrides=(override,)) == expected


def test_a_set_of_many_steps_is_refused(tmp_path: Path) -> None:
    assert "no study is nested that deeply" in refused(tmp_path, overrides=(".".join("a" * 10_000) + "=1",))


def test_the_error_is_one_that_the_user_is_shown() -> None:
    assert issubclass(StudyError, UserError)
