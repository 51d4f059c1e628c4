"""What systems promise of a commit: where durability differs nothing is called faster, and the rest is told."""

from __future__ import annotations

from typing import Any

import pytest
from small_studies import Runs, study

from dyno.analysis import analyse
from dyno.analysis.promises import NOT_SYNCED, SYNCED, promised
from dyno.model.findings import Findings
from dyno.model.study import KindSpec

MYSQL = {
    "version": "9.7.4", "innodb_flush_log_at_trx_commit": 1, "log_bin": "ON", "sync_binlog": 1,
    "transaction_isolation": "REPEATABLE-READ",
}  # fmt: skip
GALERA = {
    "version": "10.11.19-MariaDB", "innodb_flush_log_at_trx_commit": 1, "log_bin": "OFF", "sync_binlog": 0,
    "tx_isolation": "REPEATABLE-READ",
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "durability"),
    [
        (MYSQL, SYNCED),
        (GALERA, SYNCED),  # without a binary log there is none to be synced
        ({**MYSQL, "innodb_flush_log_at_trx_commit": 2}, NOT_SYNCED),
        ({**MYSQL, "sync_binlog": 0}, NOT_SYNCED),
        ({**MYSQL, "drbd.disk-flushes": "no"}, NOT_SYNCED),
        ({"synchronous_commit": "on", "fsync": "on"}, SYNCED),
        ({"synchronous_commit": "off", "fsync": "on"}, NOT_SYNCED),
        ({"synchronous_commit": "on", "fsync": "off"}, NOT_SYNCED),
        ({"synchronous": "full", "journal_mode": "wal"}, SYNCED),
        ({"synchronous": "normal", "journal_mode": "wal"}, NOT_SYNCED),
        ({"synchronous": "normal", "journal_mode": "delete"}, SYNCED),
        ({"cairo.commit.mode": "nosync"}, NOT_SYNCED),
        ({"cairo.commit.mode": "async"}, NOT_SYNCED),
        ({"cairo.commit.mode": "sync"}, SYNCED),
        ({"translog.durability": "REQUEST"}, SYNCED),
        ({"translog.durability": "ASYNC"}, NOT_SYNCED),
        ({"duckdb.wal": "synced at commit"}, SYNCED),
        ({"buffers": 3}, None),
    ],
)
def test_durability_is_read_off_the_settings_of_each_kind(settings: dict[str, Any], durability: str | None) -> None:
    assert promised(settings).durability == durability


def test_an_isolation_is_the_same_however_it_is_spelt() -> None:
    spelt = [{"tx_isolation": "REPEATABLE-READ"}, {"default_transaction_isolation": "repeatable read"}]
    assert {promised(each).isolation for each in spelt} == {"REPEATABLE-READ"}


def of_two(group: dict[str, Any], galera: dict[str, Any], *, kinds: tuple[str, str] = ("group", "galera")) -> Findings:
    """Galera is half as fast again, in any case."""
    plan = study({"solution": ["group", "galera"], "threads": [1, 2]}, compare="solution")
    of = dict(zip(("group", "galera"), kinds, strict=True))
    cells = [
        each.model_copy(update={"system": KindSpec(kind=of[each.levels["solution"]], options={})})
        for each in plan.cells
    ]
    plan = plan.model_copy(update={"cells": tuple(cells)})
    runs = Runs(plan)
    for block in range(6):
        for cell in plan.cells:
            fast = cell.levels["solution"] == "galera"
            figures = {"throughput": (150.0 if fast else 100.0) + block, "device_written_per_op": 4096.0 + block}
            runs.add(cell.index, block, responses=figures, settings=galera if fast else group)
    return analyse(plan, runs, ended="done")


def told(found: Findings) -> str:
    sentences = (each.sentence for each in (*found.comparisons, *found.overall))
    return " ".join([found.answer, *sentences, *(each.sentence for each in found.decisions)])


def test_with_like_promises_another_server_is_compared_and_named_as_what_it_is() -> None:
    found = of_two(MYSQL, GALERA)
    assert "galera is faster than group" in found.answer
    assert "version (group: 9.7.4; galera: 10.11.19-MariaDB)" in found.answer
    (note,) = [note for note in found.notes if note.startswith("Different systems")]
    assert "durability of all: each commit is synced; isolation of all: REPEATABLE-READ" in note


@pytest.mark.parametrize("unsafe", [{"innodb_flush_log_at_trx_commit": 2}, {"log_bin": "ON", "sync_binlog": 0}])
def test_no_system_is_called_faster_than_one_that_promises_more(unsafe: dict[str, Any]) -> None:
    found = of_two(MYSQL, {**GALERA, **unsafe})
    assert "faster" not in told(found)
    assert "slower" not in told(found)
    assert all(each.ratio is None for each in found.comparisons if each.response == "throughput")
    assert all(each.ratio is not None for each in found.comparisons if each.response == "device_written_per_op")
    assert "their durability differs: of group each commit is synced, of galera commits are not" in told(found)
    (note,) = [note for note in found.notes if note.startswith("Different systems")]
    assert "they differ in durability (group: each commit is synced, galera: commits are not synced each)" in note


def test_where_isolation_differs_each_sentence_says_so() -> None:
    found = of_two(MYSQL, {**GALERA, "tx_isolation": "READ-COMMITTED"})
    first = next(each for each in found.comparisons if each.response == "throughput")
    assert "promises.isolation" in first.confounded
    assert "isolation" in first.sentence


def test_what_settings_do_not_tell_is_said_to_be_unchecked() -> None:
    found = of_two(MYSQL, {"version": "1"})
    (note,) = [note for note in found.notes if note.startswith("Different systems")]
    assert "the durability of galera is not told by settings, and not checked" in note
    assert "galera is faster than group" in found.answer


def test_within_one_kind_the_setting_is_what_is_compared_and_a_note_names_its_price() -> None:
    found = of_two(MYSQL, {**MYSQL, "innodb_flush_log_at_trx_commit": 2}, kinds=("group", "group"))
    assert "galera is faster than group" in found.answer
    assert any("differ in innodb_flush_log_at_trx_commit" in note for note in found.notes)
