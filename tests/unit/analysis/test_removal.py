"""Where instructions go: steps of removal, both ways of counting a component, calls, and all orders."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest
from small_studies import Runs, study

from dyno.analysis import analyse
from dyno.model.assemblies import COMPONENTS, KERNEL, Assembly, feasible, parse, path
from dyno.model.findings import Removal
from dyno.model.study import KindSpec, Study
from dyno.observers.base import COUNT_COLUMNS

COSTS: Mapping[str, float] = {
    "keys": 16.0, "log": 12.0, "locks": 16.0, "latches": 10.0, "buffer": 20.0, "transactions": 4.0, "catalogue": 2.0,
}  # fmt: skip
LEFT = 20.0


def cost(assembly: Assembly) -> float:
    """Additive, but that the log costs half as much without latches, and larger pages save 5."""
    if assembly.kernel:
        return 10.0
    there = sum(COSTS[each] for each in assembly.components)
    if "log" in assembly.components and "latches" not in assembly.components:
        there -= COSTS["log"] / 2
    return LEFT + there - 5 * assembly.large_pages


def of(names: list[str]) -> Study:
    made = study({"assembly": names})
    return made.model_copy(
        update={
            "cells": tuple(
                cell.model_copy(
                    update={"system": KindSpec(kind="glass", options={"assembly": cell.levels["assembly"]})}
                )
                for cell in made.cells
            )
        }
    )


def counted(of_study: Study, counts: pl.DataFrame | None = None, blocks: int = 2) -> Removal:
    runs = Runs(of_study)
    for block in range(blocks):
        for cell in of_study.cells:
            value = cost(parse(cell.levels["assembly"]))
            responses = {"throughput": 1e6 / value, "payment.instructions": value}
            runs.add(cell.index, block, responses=responses)
    (found,) = analyse(of_study, runs, ended="done", counts=counts).removal
    return found


def profile(rows: list[tuple[int, str, str, str, float]]) -> pl.DataFrame:
    """Rows of run, call, component, event and value, of the build that keeps components apart."""
    made = [("outlined", "callgrind", "payment", call, part, event, value) for _, call, part, event, value in rows]
    table = pl.DataFrame(made, schema=COUNT_COLUMNS, orient="row")
    return table.with_columns(pl.Series("run", [run for run, *_ in rows], dtype=pl.Int64))


PATH = [each.name for each in path()]


def test_each_step_is_what_its_removal_saved_of_the_whole() -> None:
    found = counted(of([*PATH, KERNEL]))
    assert [step.removed for step in found.steps] == [
        "", "keys", "log", "locks", "latches", "pages", "buffer", "catalogue", "transactions",
    ]  # fmt: skip
    assert [step.saved for step in found.steps] == [None, 16.0, 12.0, 16.0, 10.0, 5.0, 15.0, 2.0, 4.0]
    assert sum(step.share or 0 for step in found.steps) == pytest.approx(0.8)
    assert [step.removed for step in found.steps if step.ours] == ["catalogue", "transactions"]
    assert found.kernel is not None
    assert found.kernel.instructions == 10
    assert "2.0 times the 10 of the kernel" in found.sentence
    assert "largest single step is key comparison: 16.0%" in found.sentence


def test_larger_pages_are_of_the_buffer_managers_share() -> None:
    found = {each.component: each for each in counted(of(PATH)).components}
    assert found["buffer"].removed == 20
    assert list(found) == ["keys", "log", "locks", "latches", "buffer", "catalogue", "transactions"]


def test_a_step_over_several_components_is_named_by_all_and_judges_none() -> None:
    found = counted(of(["full", "latches+buffer+transactions+catalogue", "none"]))
    assert [step.removed for step in found.steps] == ["", "keys+log+locks", "latches+buffer+catalogue+transactions"]
    assert found.components == ()


def test_a_component_is_attributed_in_the_assembly_before_its_removal() -> None:
    # Runs are of one cell after the other; the first assembly is that of run 1, the next that of run 2.
    rows = [
        (1, "lookup", "keys", "instructions", 14.0), (1, "", "transaction", "instructions", 90.0),
        (1, "lookup", "", "calls", 3.0), (2, "update", "log", "instructions", 30.0),
    ]  # fmt: skip
    found = counted(of(PATH), profile(rows), blocks=1)
    keys, log, locks, *_ = found.components
    assert (keys.attributed, keys.apart, keys.agree) == (14.0, pytest.approx(0.02), True)
    assert (log.attributed, log.apart, log.agree) == (30.0, pytest.approx(-0.18), False)
    assert (locks.attributed, locks.agree) == (None, None)
    assert [(call.call, call.calls, call.instructions) for call in found.calls] == [
        ("lookup", 3.0, 14.0), ("", None, 90.0),
    ]  # fmt: skip
    assert found.steps[0].outlined == 104


def test_over_all_orders_what_two_components_share_is_halved() -> None:
    found = counted(of([*PATH, *(each.name for each in feasible() if each.name not in PATH)]))
    by_name = {each.component: each for each in found.contributions}
    assert sum(each.mean for each in by_name.values()) == pytest.approx(100 - LEFT)
    for name in ("keys", "locks", "buffer", "catalogue", "transactions"):
        assert by_name[name].mean == pytest.approx(COSTS[name])
        assert by_name[name].least == pytest.approx(by_name[name].most)
    # The 6 that hang on both are saved with whichever goes first; each is first in half of the orders, since only
    # transactions have to wait, for the log among others.
    assert (by_name["log"].least, by_name["log"].most) == (pytest.approx(6), pytest.approx(12))
    assert (by_name["latches"].least, by_name["latches"].most) == (pytest.approx(10), pytest.approx(16))
    assert by_name["log"].mean + by_name["latches"].mean == pytest.approx(12 + 10)
    assert found.contributions_reason == ""


def test_without_all_assemblies_nothing_is_said_of_orders() -> None:
    found = counted(of(PATH))
    assert found.contributions == ()
    assert found.contributions_reason == "72 of the 80 assemblies that there are were not counted"


def test_a_study_of_another_engine_has_no_removal() -> None:
    runs = Runs(study({"assembly": ["full", "none"]}))
    for cell in (0, 1):
        runs.add(cell, 0, responses={"throughput": 1.0, "payment.instructions": 5.0})
    assert analyse(study({"assembly": ["full", "none"]}), runs, ended="done").removal == ()


def test_the_names_of_components_are_those_of_costs() -> None:
    assert set(COSTS) == set(COMPONENTS)
