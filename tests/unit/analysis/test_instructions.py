"""Instructions per operation, from runs of two lengths."""

from __future__ import annotations

import pytest
from small_studies import Runs, study

from dyno.analysis import instructions
from dyno.lab.counting import INSTRUCTIONS, LENGTH, shortened
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
