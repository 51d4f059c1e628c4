"""What stores said of themselves, from samples of which every figure is known."""

from __future__ import annotations

import pytest
from small_studies import Runs, study
from test_usage import Rows, of_one

from dyno.analysis import analyse
from dyno.analysis.database import LEAST_PER_OP
from dyno.model.findings import CounterFigure, DatabaseCell
from dyno.model.study import KindSpec, Study
from dyno.model.usage import Told, Usage

S = 10**9


def test_counters_gauges_waits_and_resources_are_told_apart() -> None:
    rows: Rows = [
        (at, "database", "server", metric, value)
        for at, metric, value in (
            (0, "looks", 0.0),
            (2, "looks", 0.5),
            (2, "innodb_rows_read", 100.0),
            (2, "threads_running", 3.0),
            (2, "now/n1.heap_used_bytes", 5e8),
            (2, "wait/lock/row", 0.25),
            (2, "server.syncs", 7.0),
        )
    ]
    used = of_one(rows, [(0, 2, 50)])
    assert used.told == Told(
        seconds=2,
        operations=50,
        per_s={"innodb_rows_read": 100},
        means={"threads_running": 3, "n1.heap_used_bytes": 5e8},
        waiting={"wait/lock/row": 0.25},
    )
    assert used.per_op == pytest.approx({"server.syncs": 14 / 50})


def test_the_first_reading_bounds_the_first_sample() -> None:
    """It tells nothing but that it was there; without it the first second of each run was lost."""
    rows: Rows = [(at, "database", "server", "looks", float(at > 0)) for at in (0, 1, 2)]
    rows += [(at, "database", "server", "com_select", 10.0 * at) for at in (1, 2)]
    told = of_one(rows, [(0, 2, 10)]).told
    assert told is not None
    assert (told.seconds, told.per_s["com_select"]) == (2, 15)


def test_a_run_whose_store_was_not_asked_says_nothing() -> None:
    rows: Rows = [(at, "process", "server", "proc.cpu", 1.0) for at in (0, 1)]
    assert of_one(rows, [(0, 1, 1)]).told is None


PLAN = study({"engine": ["a", "b"]}, compare="engine", min=3, max=3)


def found(
    values: dict[int, list[dict[str, float]]],
    waiting: dict[str, float] | None = None,
    means: dict[int, list[dict[str, float]]] | None = None,
) -> list[DatabaseCell]:
    """Cell -> what a store of each run did per operation, at 10 operations a second for 4 s."""
    runs, used = Runs(PLAN), {}
    for block in range(max(map(len, values.values()))):
        for cell, of_cell in values.items():
            runs.add(cell, block, 10.0)
            told = Told(
                seconds=4,
                operations=40,
                per_s={name: value * 10 for name, value in of_cell[block].items()},
                waiting=waiting or {},
                means=means[cell][block] if means else {},
            )
            used[runs[-1].run] = Usage(seconds=4, operations=40, samples=4, cpus=1, told=told)
    return list(analyse(PLAN, runs, ended="done", used=used).database)


def database_of(plan: Study, did: tuple[dict[str, float], ...]) -> list[DatabaseCell]:
    """Of two runs of each cell, each with what its store did for an operation."""
    runs, used = Runs(plan), {}
    for block in range(2):
        for cell, of_cell in enumerate(did):
            runs.add(cell, block, 10.0)
            per_s = {name: value * 10 for name, value in of_cell.items()}
            waiting = {"wait/client": 1.0} if "wal.wal_bytes" in of_cell else {}
            told = Told(seconds=4, operations=40, per_s=per_s, waiting=waiting)
            used[runs[-1].run] = Usage(seconds=4, operations=40, samples=4, cpus=1, told=told)
    return list(analyse(plan, runs, ended="done", used=used).database)


def figure(cell: DatabaseCell, name: str) -> CounterFigure:
    (one,) = (each for each in cell.counters if each.name == name)
    return one


def test_each_counter_is_given_for_an_operation_and_for_a_second_with_an_interval() -> None:
    first, second = found({0: [{"reads": 2.0}, {"reads": 2.2}, {"reads": 1.8}], 1: [{"reads": 4.0}] * 3})
    reads = figure(first, "reads")
    assert (reads.per_op, reads.per_s) == (pytest.approx(2.0), pytest.approx(20))
    assert reads.ci is not None
    assert reads.ci[0] < 2.0 < reads.ci[1]
    assert (first.n, first.levels, second.levels) == (3, {"engine": "a"}, {"engine": "b"})


def test_cells_that_differ_surely_are_apart_and_others_are_not() -> None:
    close = [{"sure": 1.0, "noisy": each} for each in (1.0, 2.0, 3.0)]
    far = [{"sure": 5.0, "noisy": each} for each in (1.5, 2.5, 3.0)]
    first, second = found({0: close, 1: far})
    assert figure(first, "sure").apart == figure(second, "sure").apart == pytest.approx(5.0)
    assert figure(first, "noisy").apart is None


def test_a_counter_that_did_not_move_in_a_run_counts_as_nothing_there() -> None:
    first, second = found({0: [{"spills": 1.0}] * 3, 1: [{}] * 3})
    assert figure(second, "spills").per_op == 0
    assert figure(first, "spills").apart == pytest.approx(1 / LEAST_PER_OP)


def test_a_counter_that_a_kind_of_store_does_not_have_is_no_counter_of_its_cells() -> None:
    kinds = ("questdb", "postgresql", "questdb")
    plan = study({"engine": ["a", "b", "c"]}, compare="engine", min=2, max=2)
    cells = [
        cell.model_copy(update={"system": KindSpec(kind=kind)}) for cell, kind in zip(plan.cells, kinds, strict=True)
    ]
    plan = plan.model_copy(update={"cells": tuple(cells)})
    did = ({"commits_total": 1.0}, {"wal.wal_bytes": 500.0}, {"rows_total": 3.0})
    first, second, third = database_of(plan, did)
    assert [each.name for each in first.counters] == ["commits_total", "rows_total"]
    assert figure(first, "rows_total").per_op == 0, "it has it, and it did not move"
    assert [each.name for each in second.counters] == ["wal.wal_bytes"]
    assert [each.name for each in third.counters] == ["commits_total", "rows_total"]
    assert [[wait.name for wait in cell.waits] for cell in (first, second, third)] == [[], ["wait/client"], []]


def test_kinds_that_share_a_counter_are_taken_to_have_the_same_store() -> None:
    plan = study({"engine": ["a", "b"]}, compare="engine", min=2, max=2)
    cells = [
        cell.model_copy(update={"system": KindSpec(kind=kind)})
        for cell, kind in zip(plan.cells, ("mariadb", "galera"), strict=True)
    ]
    plan = plan.model_copy(update={"cells": tuple(cells)})
    first, second = database_of(plan, ({"reads": 1.0}, {"reads": 1.0, "innodb_row_lock_waits": 2.0}))
    assert figure(first, "innodb_row_lock_waits").per_op == 0
    assert figure(second, "innodb_row_lock_waits").apart == pytest.approx(2 / LEAST_PER_OP)


def test_what_hardly_ever_moves_is_housekeeping_and_left_out() -> None:
    first, _ = found({0: [{"background": LEAST_PER_OP / 2}] * 3, 1: [{}] * 3})
    assert first.counters == ()


def test_waits_are_given_as_clients_at_a_time_and_as_time_of_an_operation_the_longest_first() -> None:
    cell = found({0: [{}] * 3, 1: [{}] * 3}, {"wait/io/file": 0.5, "wait/lock/row": 2.0, "wait/synch/mutex": 0.0})[0]
    assert [wait.name for wait in cell.waits] == ["wait/lock/row", "wait/io/file"]
    assert (cell.waits[0].clients, cell.waits[0].us_per_op) == (pytest.approx(2.0), pytest.approx(200_000))


def test_what_goes_up_and_down_is_a_mean_over_the_runs_that_had_it_and_nothing_in_another_store() -> None:
    means = {0: [{"n1.heap_share": 0.2}, {"n1.heap_share": 0.4}, {}], 1: [{"heap": 5.0}] * 3}
    first, second = found({0: [{}] * 3, 1: [{}] * 3}, means=means)
    (share,) = first.gauges
    assert (share.name, share.mean, share.n) == ("n1.heap_share", pytest.approx(0.3), 2)
    assert share.ci is not None
    assert share.ci[0] < 0.3 < share.ci[1]
    assert [gauge.name for gauge in second.gauges] == ["heap"]
    assert first.counters == ()


def test_the_mean_of_what_was_never_below_zero_has_no_interval_below_it() -> None:
    means = {0: [{"memory_used": 1.0}, {"memory_used": 9.0}, {}], 1: [{}] * 3}
    first, _ = found({0: [{}] * 3, 1: [{}] * 3}, means=means)
    (used,) = first.gauges
    assert used.ci is not None
    assert used.ci[0] == 0


def test_what_says_nothing_is_no_figure_of_a_store_and_a_figure_below_zero_has_its_interval() -> None:
    means = {0: [{"wsrep_received_bytes": 5.0, "load": -1.0}] * 2 + [{"load": -2.0}], 1: [{}] * 3}
    first, _ = found({0: [{}] * 3, 1: [{}] * 3}, means=means)
    (load,) = first.gauges
    assert load.ci is not None
    assert load.ci[0] < load.mean < load.ci[1]


def test_runs_whose_server_kept_no_account_of_waits_say_so() -> None:
    runs = Runs(PLAN)
    used = {}
    for cell, setting in ((0, "OFF"), (1, "ON")):
        runs.add(cell, 0, 10.0, settings={"performance_schema": setting})
        told = Told(seconds=4, operations=40, per_s={"reads": 1.0})
        used[runs[-1].run] = Usage(seconds=4, operations=40, samples=4, cpus=1, told=told)
    off, on = analyse(PLAN, runs, ended="done", used=used).database
    assert off.remark == "performance_schema was off, so that the server kept account of waits for row locks alone"
    assert on.remark == ""


def test_an_embedded_stores_counters_come_from_the_driver() -> None:
    runs = Runs(PLAN).add(
        0, 0, 10.0, status={"cache_hits": 200.0, "page_count": 7.0}, measured_from_ns=0, measured_to_ns=4 * S
    )
    (cell,) = analyse(PLAN, runs, ended="done").database
    assert [(each.name, each.per_op, each.per_s) for each in cell.counters] == [("cache_hits", 5.0, 50.0)]


def test_where_no_store_was_asked_there_is_nothing() -> None:
    assert analyse(PLAN, Runs(PLAN).add(0, 0, 10.0), ended="done").database == ()
