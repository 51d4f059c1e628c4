"""Why there is no figure: "not measured" alone sent a reader to look for a misspelt name."""

from __future__ import annotations

import pytest
from small_studies import Runs, study

from dyno.analysis import why_unmeasured
from dyno.model.run import MeasuredPart
from dyno.model.study import KindSpec


@pytest.mark.parametrize(
    ("options", "seconds", "why"),
    [
        ({"hz": 1.0}, 0.5, "runs of 0.5 s are shorter than the machine observer's interval of 1 s"),
        ({}, 0.5, "runs of 0.5 s are shorter than the machine observer's interval of 1 s"),
        ({"hz": 10.0}, 0.15, "no whole interval of 0.1 s of the machine observer lies within runs of 0.15 s"),
        ({"hz": 10.0}, 0.5, ""),
    ],
)
def test_a_run_shorter_than_what_lies_between_two_samples_has_no_utilisation(options, seconds, why) -> None:
    plan = study({}).model_copy(update={"observe": (KindSpec(kind="machine", options=options),)})
    part = MeasuredPart(course=None, to_s=seconds, seconds=seconds, intervals=0)
    runs = Runs(plan).add(0, 0, 5.0, measured=part).fail(0, 1)
    assert why_unmeasured(plan, runs, "cpu.util") == why
    assert why_unmeasured(plan, runs, "latency_p99") == ""


def test_what_only_a_fault_shows_was_not_measured_since_nothing_was_struck() -> None:
    assert why_unmeasured(study({}), [], "rejoin_outage") == "nothing was struck in these runs (faults)"


def test_a_study_that_asked_for_no_observer_of_the_machine_is_told_so() -> None:
    plan = study({})
    assert why_unmeasured(plan, Runs(plan), "disk.util") == "the study has no observer `machine`, which measures it"
