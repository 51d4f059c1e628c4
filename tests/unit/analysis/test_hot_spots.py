"""What call stacks say of what was being done."""

from __future__ import annotations

import polars as pl
import pytest
from small_studies import Runs, study

from dyno.analysis import analyse, flames_of
from dyno.analysis.hot_spots import Frame, Grouping, frame
from dyno.model.findings import Findings, HotSpots
from dyno.model.hot_spots import Rule, built_in

RULES = (
    Rule(group="copy", symbol="^memcpy$"),
    Rule(group="log flush", symbol="^sync$", caller="^log_"),
    Rule(group="file system", symbol="^(sync|ext4_)"),
    Rule(group="zlib", module="^libz"),
)


def stacks(**of_runs: dict[str, int]) -> pl.DataFrame:
    """`run_1={"thread;main@db": 10}`."""
    rows = [
        (int(run.removeprefix("run_")), "server", "cpu-clock", stack, samples)
        for run, counted in of_runs.items()
        for stack, samples in counted.items()
    ]
    schema = {"run": pl.Int32, "subject": pl.String, "event": pl.String, "stack": pl.String, "samples": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memcpy@libc.so.6", Frame("memcpy", "libc.so.6")),
        ("memcpy@@GLIBC_2.14@libc.so.6", Frame("memcpy", "libc.so.6")),
        ("ext4_write_[k]", Frame("ext4_write", "kernel")),
        ("org/Store.get_[j]", Frame("org/Store.get", "jit")),
        ("[mariadbd]", Frame(None, "mariadbd")),
        ("[unknown]", Frame(None, "unknown")),
        ("operator", Frame("operator", "")),
    ],
)
def test_a_frame_says_what_it_is_and_where_it_is_from(text: str, expected: Frame) -> None:
    assert frame(text) == expected


@pytest.mark.parametrize(
    ("stack", "group"),
    [
        ("t;main@db;memcpy@libc.so.6", "copy"),
        ("t;main@db;memcpy@libc.so.6;helper@libc.so.6", "copy"),
        ("t;memcpy@libc.so.6;ext4_write_[k];helper_[k]", "file system"),
        ("t;log_write@db;sync_[k]", "log flush"),
        ("t;row_write@db;sync_[k]", "file system"),
        ("t;main@db;[libz.so.1]", "zlib"),
        ("t;main@db;[unknown]", "other"),
        ("memcpy;main@db", "other"),
    ],
)
def test_the_innermost_frame_that_a_rule_knows_decides(stack: str, group: str) -> None:
    """The first part of a stack is the name of its thread, whatever it is called."""
    assert Grouping(RULES).group(stack) == group


@pytest.mark.parametrize(
    ("stack", "group"),
    [
        ("t;main@db;do_syscall_64_[k];vfs_write_[k];ext4_file_write_iter_[k];copy_from_user_[k]", "copy"),
        ("t;main@db;do_syscall_64_[k];vfs_write_[k];ext4_file_write_iter_[k]", "file system"),
        ("t;main@db;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];__x64_sys_getppid_[k]", "system calls"),
        ("t;main@db;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];tcp_sendmsg_[k]", "network"),
        ("t;main@db;do_syscall_64_[k];__schedule_[k]", "scheduling"),
        ("t;main@db;asm_exc_page_fault_[k];handle_mm_fault_[k];clear_page_rep_[k]", "copy"),
        ("t;main@db;asm_exc_page_fault_[k];handle_mm_fault_[k]", "memory management"),
        ("t;main@db;do_syscall_64_[k];blk_mq_submit_bio_[k]", "block"),
        ("t;main@db;do_syscall_64_[k];futex_wait_[k];_raw_spin_lock_[k]", "locking"),
        ("t;main@db;pthread_mutex_lock@libc.so.6", "locking"),
        ("t;main@db;btr_cur_search_to_nth_level@mariadbd", "B-tree"),
        ("t;main@db;_bt_compare@postgres", "B-tree"),
        ("t;main@db;log_write_up_to@mariadbd", "log"),
        ("t;main@db;XLogInsertRecord@postgres", "log"),
        ("t;main@db;malloc@libc.so.6", "memory management"),
        ("t;main@db;__memmove_avx_unaligned_erms@libc.so.6", "copy"),
        ("java;org/Store:::get_[j]", "code made at run time"),
        # Names that begin as those of another group do.
        ("t;exit_to_user_mode_prepare_[k]", "system calls"),
        ("t;kfree_skb_[k]", "network"),
        ("t;copy_page_range_[k]", "memory management"),
        ("t;query_planner@postgres", "planning"),
        ("t;eval_const_expressions@postgres", "planning"),
        ("t;lock_tables@mariadbd", "tables opened and closed"),
        ("t;lock_rec_lock@mariadbd", "locking"),
        ("t;que_run_threads@mariadbd", "rows"),
        ("t;sqlite3BtreeInsert@libsqlite3.so.0", "B-tree"),
    ],
)
def test_the_rules_that_dyno_brings_know_the_common_ones(stack: str, group: str) -> None:
    assert Grouping(built_in()).group(stack) == group


def findings(table: pl.DataFrame, runs: int = 2, rules: tuple[Rule, ...] = RULES) -> Findings:
    of = study({"journal": ["delete", "wal"]}, compare="journal")
    made = Runs(of)
    for block in range(runs):
        for cell in (0, 1):
            made.add(cell, block, 1000.0 + block)
    return analyse(of, made, ended="done", stacks=table, rules=rules)


def shares(found: HotSpots) -> dict[str, float]:
    return {group.group: round(group.share, 6) for group in found.groups}


def test_each_run_weighs_alike_and_what_no_rule_knows_stays_other() -> None:
    table = stacks(
        run_1={"t;main@db;memcpy@libc.so.6": 10, "t;odd@db": 90},
        run_3={"t;main@db;memcpy@libc.so.6": 600, "t;odd@db": 400},
    )
    (found,) = findings(table).hot_spots
    assert (found.cell, found.runs, found.samples) == (0, 2, 1100)
    assert shares(found) == {"copy": 0.35, "other": 0.65}
    assert found.groups[-1].group == "other", "the last, whatever its share"
    low, high = found.groups[0].ci or (0, 0)
    assert low == 0, "no share is below 0"
    assert high == 1


def test_a_function_is_named_with_its_share() -> None:
    table = stacks(run_1={"t;main@db;memcpy@libc.so.6": 3, "t;x@db;[libz.so.1]": 1})
    (found,) = findings(table, runs=1).hot_spots
    assert [(each.symbol, each.module, each.group, each.share) for each in found.symbols] == [
        ("memcpy", "libc.so.6", "copy", 0.75),
        (None, "libz.so.1", "zlib", 0.25),
    ]
    assert found.unknown == 0.25
    assert found.groups[0].ci is None, "one run says nothing of the next"


def test_the_rules_of_a_user_come_before_those_of_dyno() -> None:
    table = stacks(run_1={"t;main@db;memcpy@libc.so.6": 1})
    assert shares(findings(table, rules=()).hot_spots[0]) == {"copy": 1.0}
    mine = (Rule(group="my copy", symbol="memcpy"),)
    assert shares(findings(table, rules=mine).hot_spots[0]) == {"my copy": 1.0}


def test_a_folder_without_call_stacks_has_no_hot_spots() -> None:
    assert findings(stacks()).hot_spots == ()
    assert findings(pl.DataFrame()).hot_spots == ()


def test_there_is_a_graph_a_cell_and_one_of_what_changed() -> None:
    of = study({"journal": ["delete", "wal", "off"], "threads": [1]}, compare="journal")
    made = Runs(of)
    for block in (0, 1):
        for cell in (0, 1):
            made.add(cell, block, 1000.0)
    table = stacks(run_1={"t;a@db": 1, "t;b@db": 2}, run_2={"t;a@db": 5}, run_3={"t;a@db": 10})
    found = {flame.name: flame for flame in flames_of(of, made, table)}
    assert list(found) == ["flame-0", "flame-1", "flame-1-against-0"]
    assert found["flame-0"].stacks == ("t;a@db 11", "t;b@db 2")
    changed = found["flame-1-against-0"]
    assert (changed.stacks, changed.before) == (("t;a@db 5",), found["flame-0"].stacks)
    assert (changed.against, changed.levels) == ("delete", {"journal": "wal", "threads": "1"})
