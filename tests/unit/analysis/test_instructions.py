"""Instructions per operation, from runs of two lengths."""

from __future__ import annotations

import polars as pl
import pytest
from small_studies import Runs, study

from dyno.analysis import instructions
from dyno.lab.counting import INSTRUCTIONS, LENGTH, shortened
from dyno.model.hot_spots import Rule
from dyno.model.run import Outcome
from dyno.model.study import KindSpec


def test_what_starting_takes_is_in_neither_length() -> None:
    of = study({"engine": ["a", "b"], LENGTH: [100, 200]})
    made = Runs(of)
    for block, extra in ((0, 0.0), (1, 500.0)):
        for cell, per_operation in ((0, 30.0), (1, 30.0), (2, 70.0), (3, 70.0)):
            length = 100 * (1 + cell % 2)
            start = 5e6 + 100 * block
            made.add(cell, block, status={INSTRUCTIONS: start + per_operation * length + extra * (cell % 2)})
    found = {each.levels["engine"]: each for each in instructions(made, LENGTH, INSTRUCTIONS)}
    assert found["a"].per_operation == pytest.approx((30.0, 35.0))
    assert found["b"].mean == pytest.approx(72.5)
    assert found["a"].lengths == (100, 200)


def test_a_block_without_both_lengths_says_nothing() -> None:
    of = study({LENGTH: [10, 20]})
    made = Runs(of)
    made.add(0, 0, status={INSTRUCTIONS: 1000.0})
    made.fail(1, 0)
    made.add(0, 1, status={INSTRUCTIONS: 1000.0})
    made.add(1, 1, status={}, outcome=Outcome.OK)
    (found,) = instructions(made, LENGTH, INSTRUCTIONS)
    assert (found.per_operation, found.mean) == ((), None)


def test_a_study_is_cut_short_and_nothing_else_of_its_workload_changes() -> None:
    whole = study({"engine": ["a", "b"]})
    options = {"mix": "a", "records": 50, "threads": 4, "duration": 60.0, "warmup": 5.0, "rate": 100.0}
    cells = tuple(
        cell.model_copy(update={"workload": KindSpec(kind="ycsb", options=options), "deployment": "container-layered"})
        for cell in whole.cells
    )
    cut = shortened(whole.model_copy(update={"cells": cells}), 300)
    assert [cell.levels for cell in cut.cells] == [
        {"engine": engine, LENGTH: str(length)} for engine in ("a", "b") for length in (300, 600)
    ]
    assert [cell.index for cell in cut.cells] == [0, 1, 2, 3]
    assert cut.cells[1].workload.options == {"mix": "a", "records": 50, "threads": 4, "operations": 600}
    assert (cut.pilot, cut.replicates.min, cut.replicates.max, cut.observe) == (True, 2, 2, ())
    assert cut.cells[0].host.machine.cpus is None


def spent(**of_runs: dict[tuple[str | None, str], int]) -> pl.DataFrame:
    """As a results folder gives it; `r1` is run 1."""
    rows = [
        (symbol, module, count, int(run[1:]))
        for run, counts in of_runs.items()
        for (symbol, module), count in counts.items()
    ]
    schema = {"symbol": pl.String, "module": pl.String, "instructions": pl.Int64, "run": pl.Int32}
    return pl.DataFrame(rows, schema=schema, orient="row")


START, ROWS, LOG, UNKNOWN = ("init", "db"), ("row_search", "db"), ("log_write", "db"), (None, "libx.so")


def two_blocks() -> tuple[Runs, pl.DataFrame]:
    """Of 100 and 200 operations: what starts is as long in both, and the log is written in the second block alone."""
    made = Runs(study({LENGTH: [100, 200]}))
    functions = spent(
        r1={START: 5000, ROWS: 1000, UNKNOWN: 100},
        r2={START: 5000, ROWS: 3000, UNKNOWN: 50},
        r3={START: 5100, ROWS: 1000, UNKNOWN: 100},
        r4={START: 5100, ROWS: 3000, UNKNOWN: 150, LOG: 400},
    )
    totals = {int(str(run)): float(rows["instructions"].sum()) for (run,), rows in functions.group_by("run")}
    for run, (cell, block) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1)), 1):
        made.add(cell, block, status={INSTRUCTIONS: totals[run]})
    return made, functions


def test_what_the_longer_run_took_more_is_told_by_function_and_by_group() -> None:
    made, functions = two_blocks()
    (found,) = instructions(made, LENGTH, INSTRUCTIONS, functions)
    assert [(each.symbol, each.group, each.per_operation) for each in found.functions] == [
        ("row_search", "rows", (20.0, 20.0)),
        ("log_write", "log", (0.0, 4.0)),
        (None, "other", (-0.5, 0.5)),
    ]
    assert [(each.group, each.per_operation) for each in found.groups] == [
        ("rows", (20.0, 20.0)), ("log", (0.0, 4.0)), ("other", (-0.5, 0.5)),
    ]  # fmt: skip
    of_blocks = zip(*(group.per_operation for group in found.groups), strict=True)
    assert tuple(map(sum, of_blocks)) == pytest.approx(found.per_operation)
    assert sum(found.share(group) or 0.0 for group in found.groups) == pytest.approx(1)


def test_rules_of_a_users_own_come_first_and_one_that_wants_a_caller_is_none() -> None:
    made, functions = two_blocks()
    mine = (
        Rule(group="never", symbol="^row_", caller="^handler"),
        Rule(group="mine", symbol="^log_"),
        Rule(group="of libx", module="^libx"),
    )
    (found,) = instructions(made, LENGTH, INSTRUCTIONS, functions, mine)
    assert [each.group for each in found.groups] == ["rows", "mine", "of libx"]


def test_where_one_run_was_not_told_by_function_nothing_is() -> None:
    made, functions = two_blocks()
    (found,) = instructions(made, LENGTH, INSTRUCTIONS, functions.filter(pl.col("run") != 2))
    assert (found.groups, found.functions) == ((), ())
    assert len(found.per_operation) == 2
