"""Whether something became slower: three answers, each of which has to be shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import Session, cannot_tell, gate_blocks, gate_sessions, refuse_unlike
from dyno.model.base import UserError
from dyno.model.fractions import fraction_of
from dyno.model.published import Published
from dyno.model.study import DesignSpec, KindSpec
from dyno.study import interleave

N = 12


def sides(factors, *, response="throughput", noise=0.01, seed=1, **rule):
    """A study of the base and the new side in places, the new side so many times the base."""
    plan = study(
        {"place": list(range(len(factors))), "side": ["base", "new"]}, compare="side", of=response, min=N, max=N, **rule
    )
    rng = np.random.default_rng(seed)
    runs = Runs(plan)
    for block in range(N):
        for place, factor in enumerate(factors):
            for side, times in enumerate((1.0, factor)):
                value = 100 * times * math.exp(noise * rng.standard_normal())
                runs.add(2 * place + side, block, responses={response: value})
    return plan, runs


def test_a_slow_down_beyond_the_limit_is_slower() -> None:
    found = gate_blocks(*sides([0.9]), slower=0.03)
    assert found.verdict == "slower"
    assert found.cells[0].slowdown == pytest.approx(1 / 0.9, rel=0.02)
    # As a report has it: new / base of the response. The slow-down is of time, as the limit is.
    assert found.cells[0].ratio == pytest.approx(0.9, rel=0.02)
    assert found.cells[0].ratio_ci == pytest.approx([1 / end for end in reversed(found.cells[0].ci)])
    assert "Slower by 3% or more in throughput: place=0: 0.9" in found.sentence
    assert "x [0.90, 0.91] that of the base (11% slower, n = 12)" in found.sentence
    assert found.interleaved


def test_as_fast_as_before_is_not_slower_and_so_is_faster() -> None:
    for factor in (1.0, 1.3):
        assert gate_blocks(*sides([factor]), slower=0.03).verdict == "not slower"


def test_noise_that_hides_the_limit_cannot_tell() -> None:
    found = gate_blocks(*sides([1.0], noise=0.2), slower=0.03)
    assert found.verdict == "cannot tell"
    assert found.cells[0].why == "the interval holds the limit"


def test_a_slow_down_that_is_real_but_below_the_limit_is_not_slower() -> None:
    assert gate_blocks(*sides([0.98], noise=0.002), slower=0.03).verdict == "not slower"


def test_of_a_latency_more_is_slower() -> None:
    assert gate_blocks(*sides([1.1], response="latency_p99"), slower=0.03).verdict == "slower"
    assert gate_blocks(*sides([0.9], response="latency_p99"), slower=0.03).verdict == "not slower"


def test_one_slow_cell_makes_all_slower_and_one_doubtful_cell_leaves_all_in_doubt() -> None:
    assert gate_blocks(*sides([1.0, 0.9, 1.0]), slower=0.03).verdict == "slower"
    plan, runs = sides([1.0, 1.0])
    rest = Runs(plan)
    rest.extend(run for run in runs if run.slot.cell != 3 or run.slot.block < 1)
    found = gate_blocks(plan, rest, slower=0.03)
    assert [cell.verdict for cell in found.cells] == ["not slower", "cannot tell"]
    assert found.verdict == "cannot tell"


def test_p_values_are_those_of_one_sided_tests_at_the_limit() -> None:
    plan, runs = sides([0.95])
    found = gate_blocks(plan, runs, slower=0.03).cells[0]
    base, new = ([run.responses["throughput"] for run in runs if run.slot.cell == cell] for cell in (0, 1))
    logs = np.log(base) - np.log(new) - math.log1p(0.03)
    assert found.p_slower == pytest.approx(scipy_stats.ttest_1samp(logs, 0, alternative="greater").pvalue)
    assert found.p_not_slower == pytest.approx(scipy_stats.ttest_1samp(logs, 0, alternative="less").pvalue)


def test_false_alarms_among_many_cells_are_as_rare_as_claimed() -> None:
    alarms = sum(gate_blocks(*sides([1 / 1.03] * 5, seed=seed), slower=0.03).verdict == "slower" for seed in range(200))
    assert alarms <= 0.05 * 200 + 3 * math.sqrt(200 * 0.05 * 0.95)


# ---- folders


def session(mean, n=4, seed=0):
    plan = study({"threads": [1]}, min=n, max=n)
    rng = np.random.default_rng(seed)
    return plan, Runs(plan).add_cells({0: list(mean * np.exp(0.002 * rng.standard_normal(n)))})


def test_fewer_than_five_sessions_cannot_tell_and_say_why() -> None:
    base = [session(100, seed=i) for i in range(4)]
    found = gate_sessions(base, session(50, seed=9), slower=0.03)
    assert found.verdict == "cannot tell"
    assert "4 sessions of the base" in found.cells[0].why
    assert not found.interleaved


def test_what_differs_between_sessions_stands_in_the_difference() -> None:
    # Each session is precise to 0.1 %, but sessions of this machine differ by 5 %: a new one that is 6 % slower says
    # nothing, and one that is 40 % slower does.
    moods = np.exp(0.05 * np.random.default_rng(2).standard_normal(6))
    base = [session(100 * mood, seed=i) for i, mood in enumerate(moods)]
    assert gate_sessions(base, session(94, seed=9), slower=0.03).verdict == "cannot tell"
    assert gate_sessions(base, session(60, seed=9), slower=0.03).verdict == "slower"
    alike = [session(100 * (1 + 0.001 * i), seed=i) for i in range(6)]
    assert gate_sessions(alike, session(100, seed=9), slower=0.03).verdict == "not slower"


def test_folders_that_say_nothing_of_each_other_cannot_tell() -> None:
    found = cannot_tell(session(1)[0], "another machine", slower=0.03)
    assert found.verdict == "cannot tell"
    assert "another machine" in found.sentence


def test_a_prediction_has_the_error_of_one_more_draw() -> None:
    # Hahn and Meeker 1991, section 4.8: mean -+ t(k - 1) s sqrt(1 + 1 / k)
    shift = stats.next_shift([1.0, 2.0, 3.0, 4.0, 5.0], 3.5)
    assert shift is not None
    assert shift.centre == pytest.approx(0.5)
    assert shift.error == pytest.approx(math.sqrt(2.5 * 1.2))
    assert shift.degrees == 4
    assert stats.next_shift([1.0], 2.0) is None


def of_folder(name, start, *, plan=None, mix="a", **system):
    """A session by its folder, whose runs began at that time."""
    plan = plan or study({"threads": [1]}, min=2)
    cell = plan.cells[0].model_copy(
        update={"workload": KindSpec(kind="drive", options={"mix": mix}), "system": KindSpec(kind="s", options=system)}
    )
    plan = plan.model_copy(update={"cells": (cell,)})
    runs = [run.model_copy(update={"started_ns": start + place}) for place, run in enumerate(session(100)[1])]
    return Session(name, plan, runs)


def base_of_folders(**keys):
    return [of_folder(f"base{i}", 100 * i, **keys) for i in range(5)]


def test_sessions_of_what_is_asked_are_taken_whatever_changed_in_the_system() -> None:
    asked = of_folder("", 0).study
    refuse_unlike(asked, base_of_folders(), of_folder("new", 900))
    refuse_unlike(asked, base_of_folders(cache=1), of_folder("new", 900, cache=2))


def test_a_session_counts_once_however_often_and_under_whatever_name_it_is_given() -> None:
    asked, base = of_folder("", 0).study, base_of_folders()
    with pytest.raises(UserError, match="copy and base0 hold the same runs"):
        refuse_unlike(asked, [*base, of_folder("copy", 0)], of_folder("new", 900))
    with pytest.raises(UserError, match="base3 and base3 hold the same runs"):
        refuse_unlike(asked, base, base[3])


def test_sessions_that_were_asked_for_something_else_are_refused_with_what_differs() -> None:
    asked = of_folder("", 0).study
    with pytest.raises(UserError, match=r"new is not what the study file asks: they differ in workload\.mix"):
        refuse_unlike(asked, base_of_folders(), of_folder("new", 900, mix="c"))
    with pytest.raises(UserError, match=r"base5 and base0 differ in system\.config\.cache"):
        refuse_unlike(asked, [*base_of_folders(cache=1), of_folder("base5", 600, cache=2)], of_folder("new", 900))
    with pytest.raises(UserError, match="their cells"):
        refuse_unlike(study({"threads": [2]}), base_of_folders(), of_folder("new", 900))


def test_sessions_of_another_study_and_pilots_are_refused() -> None:
    asked = of_folder("", 0).study
    with pytest.raises(UserError, match="base0 is of study journal, and the study file is of other"):
        refuse_unlike(asked.model_copy(update={"study": "other"}), base_of_folders(), of_folder("new", 900))
    new = of_folder("new", 900)
    pilot = Session("new", new.study.model_copy(update={"pilot": True}), new.runs)
    with pytest.raises(UserError, match="new is a pilot"):
        refuse_unlike(asked, base_of_folders(), pilot)


# ---- a rate that was given


def test_a_throughput_that_was_given_cannot_tell_anything_and_its_latency_can() -> None:
    plan, runs = sides([0.9])
    rated = Runs(plan)
    rated.extend(run.model_copy(update={"loop": "open", "rate_per_s": 100.0}) for run in runs)
    found = gate_blocks(plan, rated, slower=0.03)
    assert found.verdict == "cannot tell"
    assert "came at a given rate" in found.cells[0].why
    base = [session(100, seed=i) for i in range(5)]
    planned, last = session(50, seed=9)
    given = [run.model_copy(update={"rate_per_s": 50.0}) for run in last]
    found = gate_sessions(base, (planned, given), slower=0.03)
    assert found.verdict == "cannot tell"
    assert "replicates.of: latency_p99" in found.cells[0].why
    plan, runs = sides([1.1], response="latency_p99")
    rated = [run.model_copy(update={"loop": "open", "rate_per_s": 100.0}) for run in runs]
    assert gate_blocks(plan, rated, slower=0.03).verdict == "slower"


# ---- two versions as one study


def test_two_versions_become_sides_of_one_study() -> None:
    base, new = study({"threads": [1, 4]}, min=3), study({"threads": [1, 4]}, options={"4": {"cache": 1}}, min=3)
    both = interleave(base, new, precision="1.5%")
    assert both.compare == "side"
    assert [cell.levels for cell in both.cells] == [
        {"side": side, "threads": threads} for threads in ("1", "4") for side in ("base", "new")
    ]
    assert [cell.index for cell in both.cells] == [0, 1, 2, 3]
    assert both.cells[3].system.options == {"cache": 1}
    assert both.cells[2].system.options == {}
    assert (both.replicates.precision, both.replicates.precision_of) == (0.015, "ratio")


def test_the_study_of_two_versions_is_no_screening_and_is_set_beside_nothing_published() -> None:
    plan = study({"threads": [1, 4], "journal": ["delete", "wal"]}, min=3).model_copy(
        update={"design": DesignSpec(kind="screening"), "published": Published()}
    )
    both = interleave(plan, plan, precision="1.5%")
    assert (fraction_of(both), both.published) == (None, None)
    assert len(both.cells) == 8


def test_versions_with_other_cells_and_a_factor_called_side_are_refused() -> None:
    with pytest.raises(UserError, match="same cells"):
        interleave(study({"threads": [1]}), study({"threads": [2]}), precision="1%")
    with pytest.raises(UserError, match="is called side"):
        interleave(study({"side": [1]}), study({"side": [1]}), precision="1%")


def test_intervals_of_a_gate_that_looked_are_wider_than_of_one_that_did_not() -> None:
    # A gate stops as soon as its ratios are narrow enough, as any study does.
    plan, runs = sides([0.97])
    rule = plan.replicates.model_copy(update={"min": 5, "max": 60, "precision_of": "ratio"})
    ((wide,), (narrow,)) = (
        gate_blocks(of, runs, slower=0.03).cells for of in (plan.model_copy(update={"replicates": rule}), plan)
    )
    assert wide.ci[0] < narrow.ci[0] < narrow.ci[1] < wide.ci[1]
    assert wide.slowdown == narrow.slowdown
