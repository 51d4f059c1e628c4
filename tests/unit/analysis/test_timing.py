"""Where the time of runs goes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from small_studies import Runs, study

from dyno.analysis import timing
from dyno.model.run import Outcome, Step, StepTime
from dyno.report.terminal import show_timing


def steps(**seconds: float) -> tuple[StepTime, ...]:
    return tuple(StepTime(step=Step(name), seconds=taken) for name, taken in seconds.items())


def timed(*, native: list[tuple[StepTime, ...]], layered: list[tuple[StepTime, ...]]):
    plan = study({"deployment": ["native", "layered"]}, compare="deployment")
    runs = Runs(plan)
    for cell, of_cell in enumerate((native, layered)):
        for block, taken in enumerate(of_cell):
            runs.add(cell, block, 100.0, steps=taken)
    return plan, runs


def test_each_level_has_the_median_and_the_95th_percentile_of_each_step() -> None:
    native = [steps(restore=taken, drive=10.0) for taken in (1.0, 2.0, 3.0, 4.0, 5.0)]
    found, other = timing(*timed(native=native, layered=[steps(restore=7.0, drive=9.0)]))
    assert (found.level, found.runs, other.level) == ("native", 5, "layered")
    restore, drive = found.steps
    assert (restore.step, restore.n, restore.median_s, restore.p95_s) == ("restore", 5, 3.0, pytest.approx(4.8))
    assert (drive.median_s, other.steps[0].median_s) == (10.0, 7.0)


def test_around_the_run_is_all_but_driving_and_preparing_of_each_run() -> None:
    first = steps(host=0.5, prepare=60.0, restore=1.0, start=0.5, drive=30.0, stop=1.0)
    found, _ = timing(*timed(native=[first, steps(restore=2.0, drive=30.0, stop=4.0)], layered=[steps(drive=1.0)]))
    assert found.around.median_s == (3.0 + 6.0) / 2  # of the sums, not the sum of medians
    assert next(each for each in found.steps if each.step == "prepare").n == 1


def test_a_step_that_was_taken_twice_counts_with_both() -> None:
    twice = (*steps(start=1.0), *steps(start=2.0, drive=5.0))
    found, _ = timing(*timed(native=[twice], layered=[steps(drive=1.0)]))
    assert found.steps[0].median_s == 3.0


def test_runs_that_are_not_ok_are_not_timed() -> None:
    plan, runs = timed(native=[steps(drive=1.0)], layered=[])
    runs.add(1, 0, outcome=Outcome.FAILED, step=Step.READY, cause="no answer", steps=steps(ready=120.0))
    (found,) = timing(plan, runs)
    assert found.level == "native"
    assert timing(plan, []) == []


def test_a_study_that_compares_nothing_has_one_timing() -> None:
    plan = study({"threads": [1, 4]})
    runs = Runs(plan).add(0, 0, 1.0, steps=steps(drive=1.0)).add(1, 0, 1.0, steps=steps(drive=3.0))
    (found,) = timing(plan, runs)
    assert (found.level, found.runs, found.steps[0].median_s) == (None, 2, 2.0)


def test_the_table_has_a_column_a_level_and_steps_in_their_order() -> None:
    plan, runs = timed(native=[steps(stop=1.0, restore=0.25, drive=10.0)], layered=[steps(ready=2.0, drive=10.0)])
    out = io.StringIO()
    show_timing(timing(plan, runs), plan.compare, Console(file=out))
    lines = [line.split() for line in out.getvalue().splitlines() if line.strip()]
    assert lines[1] == ["step", "native", "layered"]
    assert [line[0] for line in lines[3:7]] == ["restore", "ready", "drive", "stop"]
    assert lines[3][1:] == ["0.25", "/", "0.25", "-"]
    assert ["around", "the", "run", "1.25", "/", "1.25", "2.00", "/", "2.00"] in lines
