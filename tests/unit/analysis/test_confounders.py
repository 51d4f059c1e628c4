"""What differs between the compared levels though nobody asked for it."""

from __future__ import annotations

from typing import Any

from small_studies import Runs, study

from dyno.analysis import analyse
from dyno.model.study import HostSpec

NATIVE, LAYERED = {"io_engine": "io_uring", "seccomp": "none"}, {"io_engine": "libaio", "seccomp": "filter"}
FASTER, SLOWER = [200.0, 202.0, 204.0, 203.0], [100.0, 101.0, 102.0, 101.0]


def deployed(*of_cell: dict[str, Any], settings: list[dict[str, Any]] | None = None, plan=None):
    """A study of so many deployments, each with its facts in all of its runs."""
    plan = plan or study({"deployment": ["native", "layered", "volume"][: len(of_cell)]}, compare="deployment")
    runs = Runs(plan)
    for block in range(4):
        for cell, facts in enumerate(of_cell):
            value = (FASTER if cell == 0 else SLOWER)[block]
            told = {key: value(block) if callable(value) else value for key, value in facts.items()}
            runs.add(cell, block, value, deployed=told, settings=settings[cell] if settings else {})
    return analyse(plan, runs, ended="all blocks are done")


def test_a_fact_that_differs_between_levels_is_told_with_its_values_and_why_it_matters() -> None:
    found = deployed(NATIVE, LAYERED, LAYERED)
    engine, seccomp = found.confounders
    assert engine.key == "deployed.io_engine"
    assert engine.values == {"native": ("io_uring",), "layered": ("libaio",), "volume": ("libaio",)}
    assert (engine.pairs, engine.of) == (2, 3)  # layered and volume do not differ in it
    assert engine.sentence.startswith(
        "io_engine differs in 2 of 3 comparisons (native: io_uring; layered, volume: libaio). Another I/O engine"
    )
    assert seccomp.key == "deployed.seccomp"


def test_no_level_is_called_slower_without_what_else_differs() -> None:
    found = deployed(NATIVE, LAYERED, LAYERED)
    first, *_, besides = found.answer.splitlines()
    assert first.endswith("; io_engine and seccomp differ too.")
    assert besides == "Besides deployment, io_engine and seccomp differ."
    to_native, _, among_containers = found.comparisons[:3]
    assert to_native.confounded == ("deployed.io_engine", "deployed.seccomp")
    assert to_native.sentence.endswith("; io_engine and seccomp differ too.")
    assert among_containers.confounded == ()


def test_of_many_confounders_an_answer_names_the_first_and_counts_the_rest() -> None:
    sides = [{f"{key}{n}": side for n in range(5) for key in ("network", "seccomp")} for side in ("host", "own")]
    answer = deployed(*sides).answer
    assert " Besides deployment, seccomp0 (native: host; layered: own), seccomp1 and 8 more differ." in answer


def test_levels_that_are_alike_have_no_confounder_and_no_word_of_one() -> None:
    found = deployed(NATIVE, NATIVE)
    assert found.confounders == ()
    assert "Besides" not in found.answer
    assert "too" not in found.comparisons[0].sentence


def test_what_no_two_runs_share_and_where_files_lie_are_no_confounders() -> None:
    found = deployed(
        {"pid": lambda block: 100 + block, "data": "/a/data", "engine": "x"},
        {"pid": lambda block: 200 + block, "data": "/b/data", "engine": "x"},
    )
    assert found.confounders == ()


def test_a_fact_that_holds_in_some_runs_of_a_level_alone_is_told() -> None:
    found = deployed({"io_engine": "io_uring"}, {"io_engine": lambda block: "io_uring" if block < 2 else "libaio"})
    (engine,) = found.confounders
    assert engine.values == {"native": ("io_uring",), "layered": ("io_uring", "libaio")}
    assert "layered: io_uring or libaio" in engine.sentence


def test_a_fact_that_one_side_does_not_tell_is_not_told_and_not_equal() -> None:
    (engine,) = deployed(NATIVE, {"seccomp": "none"}).confounders
    assert engine.values["layered"] == ("not told",)
    (engine,) = deployed({"seccomp": "none"}, NATIVE).confounders
    assert engine.values["native"] == ("not told",)


def test_a_system_without_nodes_has_no_limits_of_a_node_as_nodes_without_limits_have_none() -> None:
    unlimited = {"seccomp": "none", "node.cpus": "none", "node.memory": "none", "node.disk": "shared"}
    assert deployed({"seccomp": "none"}, unlimited).confounders == ()
    (cpus,) = deployed({"seccomp": "none"}, {**unlimited, "node.cpus": 0.5}).confounders
    assert cpus.values == {"native": ("none",), "layered": ("0.5",)}


def test_a_setting_that_the_system_chose_by_itself_is_one_and_a_setting_asked_for_is_none() -> None:
    plan = study(
        {"method": ["fsync", "O_DIRECT"]},
        compare="method",
        options={level: {"settings": {"innodb_flush_method": level}} for level in ("fsync", "O_DIRECT")},
    )
    settings = [
        {"innodb_flush_method": "fsync", "innodb_log_file_buffering": True},
        {"innodb_flush_method": "O_DIRECT", "innodb_log_file_buffering": False},
    ]
    (found,) = deployed({}, {}, settings=settings, plan=plan).confounders
    assert found.key == "settings.innodb_log_file_buffering"
    assert found.values == {"fsync": ("true",), "O_DIRECT": ("false",)}


def test_of_mount_options_only_those_are_told_that_differ_and_were_not_asked_for() -> None:
    """With data=journal the kernel turns delayed allocation off by itself."""
    modes = ("journal", "ordered", "writeback")
    plan = study({"data": [*modes]}, compare="data", options={mode: {"data": mode} for mode in modes})
    facts: list[dict[str, Any]] = [
        {"file_system.options": "rw,noatime,nodelalloc,data=journal"},
        {"file_system.options": "rw,noatime,data=ordered"},
        {"file_system.options": "rw,noatime,data=writeback"},
    ]
    (found,) = deployed(*facts, plan=plan).confounders
    assert found.values == {
        "journal": ("nodelalloc",),
        "ordered": ("none of these",),
        "writeback": ("none of these",),
    }
    assert (found.pairs, found.of) == (2, 3)  # ordered and writeback differ in what was asked for alone


def test_a_limit_of_the_disk_that_was_asked_for_is_none_and_another_is() -> None:
    plan = study({"disk": ["slow", "fast"]}, compare="disk")
    slow, fast = plan.cells
    host = HostSpec.model_validate({"machine": {"disk": {"read_iops": 200}}})
    plan = plan.model_copy(update={"cells": (slow.model_copy(update={"host": host}), fast)})
    facts = [{"io.limit.reads": 200, "io.limit.writes": 7}, {"io.limit.reads": "none", "io.limit.writes": "none"}]
    (found,) = deployed(*facts, plan=plan).confounders
    assert found.key == "deployed.io.limit.writes"
    assert "so much a second" in found.note


def test_a_fact_of_another_factor_is_equal_on_both_sides_and_told_of_nobody() -> None:
    plan = study({"deployment": ["native", "layered"], "method": ["a", "b"]}, compare="deployment")
    facts = [{"settings.method": level} for level in ("a", "b", "a", "b")]
    assert deployed(*facts, plan=plan).confounders == ()


def test_runs_of_an_earlier_dyno_that_told_nothing_have_no_confounders() -> None:
    assert deployed({}, LAYERED).confounders == ()


def test_what_follows_from_the_type_of_a_file_system_is_none_and_what_follows_from_a_mode_of_one_is() -> None:
    facts = [{"file_system.options": "rw,nodelalloc", "cpus": "0"}, {"file_system.options": "rw", "cpus": "0-1"}]
    types = study({"t": ["ext4", "xfs"]}, compare="t", options={level: {"type": level} for level in ("ext4", "xfs")})
    assert [each.key for each in deployed(*facts, plan=types).confounders] == ["deployed.cpus"]
    modes = study(
        {"m": ["journal", "none"]}, compare="m", options={each: {"data": each} for each in ("journal", "none")}
    )
    assert {each.key for each in deployed(*facts, plan=modes).confounders} == {
        "deployed.cpus",
        "deployed.file_system.options",
    }
