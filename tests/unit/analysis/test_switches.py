"""What each step of an engine's own switches takes: against the step before it, block by block, by system."""

from __future__ import annotations

import pytest
from small_studies import Runs, study

from dyno.analysis import analyse
from dyno.model.findings import Switches
from dyno.model.run import Outcome
from dyno.model.study import KindSpec, Study

OPTIONS = {
    "durable": ("sqlite", {"synchronous": "full"}),
    "loose": ("sqlite", {"synchronous": "off"}),
    "bare": ("sqlite", {"synchronous": "off", "in_memory": True}),
    "logged": ("berkeleydb", {"product": "transactional", "locks": False}),
    "plain": ("berkeleydb", {"product": "data-store"}),
}


def steps(compare: str | None = "step") -> Study:
    made = study({"step": list(OPTIONS)}, compare=compare)
    cells = []
    for cell in made.cells:
        kind, options = OPTIONS[cell.levels["step"]]
        cells.append(cell.model_copy(update={"system": KindSpec(kind=kind, options=options)}))
    return made.model_copy(update={"cells": tuple(cells)})


def found(values: dict[int, list[float]], of: Study | None = None) -> dict[str, Switches]:
    """By system, of instructions by cell and block."""
    of = of or steps()
    runs = Runs(of)
    for block in range(max(map(len, values.values()))):
        for cell, blocks in values.items():
            if block < len(blocks):
                runs.add(cell, block, responses={"throughput": 100.0, "payment.instructions": blocks[block]})
            else:
                runs.fail(cell, block, Outcome.FAILED)
    return {each.system: each for each in analyse(of, runs, ended="done").switches}


VALUES = {0: [1000.0, 1100.0], 1: [900.0, 980.0], 2: [910.0, 990.0], 3: [400.0, 420.0], 4: [100.0, 105.0]}


def test_each_step_is_held_against_the_one_before_it_in_the_same_block() -> None:
    sqlite = found(VALUES)["sqlite"]
    assert [step.level for step in sqlite.steps] == ["durable", "loose", "bare"]
    assert [(step.saved, step.least, step.most) for step in sqlite.steps] == [
        (None, None, None), (110.0, 100.0, 120.0), (-10.0, -10.0, -10.0),
    ]  # fmt: skip
    assert sqlite.steps[1].share == pytest.approx(110 / 1050)
    assert [step.switched for step in sqlite.steps] == [
        "", "synchronous: full → off", "in_memory: not given → true",
    ]  # fmt: skip
    assert sqlite.sentence == (
        "payment on sqlite: 1,050 instructions with durable, 950 (90.5%) with bare. "
        "The largest single step is loose: 10.5%."
    )


def test_systems_have_steps_of_their_own() -> None:
    of = found(VALUES)
    assert set(of) == {"sqlite", "berkeleydb"}
    assert of["berkeleydb"].steps[0].saved is None
    assert of["berkeleydb"].steps[1].switched == "product: transactional → data-store, locks: false → not given"


def test_a_step_that_was_not_counted_is_passed_over_and_its_switches_are_the_next_ones() -> None:
    sqlite = found({**VALUES, 1: []})["sqlite"]
    assert [step.level for step in sqlite.steps] == ["durable", "bare"]
    assert sqlite.steps[1].switched == "synchronous: full → off, in_memory: not given → true"
    assert sqlite.steps[1].saved == 100.0


def test_blocks_that_do_not_have_both_steps_say_nothing_of_what_is_saved() -> None:
    sqlite = found({**VALUES, 1: [900.0]})["sqlite"]
    assert (sqlite.steps[1].saved, sqlite.steps[1].least) == (100.0, None)


def test_where_nothing_is_compared_or_one_step_was_counted_there_are_none() -> None:
    assert found(VALUES, steps(compare=None)) == {}
    assert found({0: [1000.0, 1100.0]}) == {}
