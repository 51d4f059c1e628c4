"""The life of a run, with a fault planted in each part of it."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dyno.analysis import analyse
from dyno.hosts import LocalHost, undo
from dyno.hosts.doctor import Check, _looks
from dyno.lab import Interrupt, Lab, Listener, Rooms
from dyno.lab import rooms as rooms_of_lab
from dyno.lab.disk import DiskGuard
from dyno.model.base import InvalidRun, RunError, UserError
from dyno.model.counters import Counters
from dyno.model.run import Outcome, RunRecord, Step
from dyno.model.study import KindSpec, Study
from dyno.store import Results, StoreError, new_results
from dyno.systems.simulated import SimulatedSystem
from dyno.workloads.base import Checked
from dyno.workloads.simulated import SimulatedWorkload
from tests.making import make_study, scratch_in
from tests.unit.lab.laboratory import (
    LASTING,
    PLENTY,
    STEP_FAILS,
    FakeHost,
    Fault,
    Laboratory,
    giving,
    measured,
    raising,
)


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path)


def tried(factors: dict[str, tuple[Any, ...]] | None = None, **rest: Any) -> Study:
    """A study of one cell (or more) on the kinds that can be told to go wrong; two blocks, no retries."""
    given = {"min": 2, "max": 2, "retries": 0, "observe": ("one", "two"), **rest}
    return make_study(factors or {"mean": (1000,)}, system="tried", options={"noise": "none"}, **given)


def steps(record: RunRecord) -> list[str]:
    return [each.step.value for each in record.steps]


# ---- what goes right


def test_a_run_has_its_steps_in_order_and_their_times(lab: Laboratory) -> None:
    record = lab.records(tried())[0]
    assert record.outcome is Outcome.OK
    assert (record.step, record.cause) == (None, None)
    assert steps(record) == [
        "host", "prepare", "restore", "start", "ready", "caches", "observe", "drive", "observe", "status", "check",
        "stop", "check",
    ]  # fmt: skip
    assert all(each.seconds >= 0 for each in record.steps)
    assert record.ended_ns >= record.started_ns + sum(each.seconds for each in record.steps) * 1e9 * 0.99


def test_observers_watch_only_the_cells_that_they_are_to_watch(lab: Laboratory) -> None:
    lab.watches = lambda cell: cell.levels["mean"] == "1000"
    records = lab.records(tried({"mean": (1000, 2000)}))
    assert {record.outcome for record in records} == {Outcome.OK}
    assert lab.calls.count("workload.drive") == 4
    for part in ("one.start", "one.stop", "two.start", "two.stop"):
        assert lab.calls.count(part) == 2


def test_the_parts_are_operated_in_the_order_of_a_runs_life(lab: Laboratory) -> None:
    lab.run(tried())
    loading = [
        "system.data_key", "system.after_load",
        "system.prepare", "system.start", "system.ready", "workload.load", "system.after_load", "system.finish_load",
        "system.stop", "system.snapshot",
    ]  # fmt: skip
    running = [
        "system.restore", "system.start", "system.ready", "system.data_files", "system.cached",
        "one.start", "two.start", "workload.drive", "one.stop", "two.stop",
        "system.facts", "system.status", "system.asked", "workload.check", "system.stop", "system.check",
    ]  # fmt: skip
    ending = ["system.destroy", "system.stop"]
    assert lab.calls == [*loading, *running, *loading[:2], *running, *ending]


def test_the_samples_of_every_observer_are_kept(lab: Laboratory) -> None:
    _, results = lab.run(tried())
    assert sorted(results.samples(1)["source"].to_list()) == ["one", "two"]


def test_cells_of_a_block_are_asked_the_same_questions_and_blocks_different_ones(lab: Laboratory) -> None:
    seeds: list[int] = []
    lab.faults["workload.drive"] = Fault(lambda _runner, seed: seeds.append(seed))
    lab.run(tried({"mean": (1, 2, 3)}))
    assert len(seeds) == 6
    assert Counter(seeds).most_common() == [(seeds[0], 3), (seeds[3], 3)]


def test_a_study_of_null_kinds_needs_no_data_and_leaves_runs(lab: Laboratory, tmp_path: Path) -> None:
    ending, results = lab.run(make_study({"mean": (1000, 2000)}, min=3, max=3))
    assert ending.completed
    assert [record.outcome for record in results.runs] == [Outcome.OK] * 6
    assert results.ended == ending.reason == lab.told[-1]


def test_the_simulated_system_gives_the_same_responses_when_run_again(lab: Laboratory) -> None:
    study = make_study({"mean": (1000, 2000)}, min=4, max=4)
    first, second = (lab.records(study) for _ in range(2))
    assert [record.responses for record in first] == [record.responses for record in second]
    assert len({record.responses["throughput"] for record in first}) == 8


# ---- what goes wrong in a step

# The first `start`, `ready` and `stop` are those of loading the data.
PARTS = [
    ("system.prepare", 0, Step.PREPARE),
    ("workload.load", 0, Step.PREPARE),
    ("system.snapshot", 0, Step.PREPARE),
    ("system.start", 0, Step.PREPARE),
    ("system.ready", 0, Step.PREPARE),
    ("system.stop", 0, Step.PREPARE),
    ("system.restore", 0, Step.RESTORE),
    ("system.start", 1, Step.START),
    ("system.ready", 1, Step.READY),
    ("system.data_files", 0, Step.CACHES),
    ("one.start", 0, Step.OBSERVE),
    ("two.start", 0, Step.OBSERVE),
    ("workload.drive", 0, Step.DRIVE),
    ("one.stop", 0, Step.OBSERVE),
    ("two.stop", 0, Step.OBSERVE),
    ("system.status", 0, Step.STATUS),
    ("system.asked", 0, Step.CHECK),
    ("system.check", 0, Step.CHECK),
    ("system.stop", 1, Step.STOP),
]


@pytest.mark.parametrize(("part", "after", "step"), PARTS)
def test_a_step_that_fails_makes_a_failed_run_that_names_it_and_its_cause(
    part: str, after: int, step: Step, lab: Laboratory
) -> None:
    lab.faults[part] = raising(STEP_FAILS, after=after, times=1)
    first, second = lab.records(tried())
    assert (first.outcome, first.step) == (Outcome.FAILED, step)
    assert first.cause is not None
    assert first.cause.startswith("the planned fault")
    assert second.outcome is Outcome.OK, "one lost run does not spoil the next"


@pytest.mark.parametrize(("part", "after", "step"), PARTS)
@pytest.mark.parametrize("error", [STEP_FAILS, InvalidRun("not as asked"), ZeroDivisionError("a defect")])
def test_whatever_fails_the_system_is_stopped_and_so_is_every_observer_that_was_started(
    part: str, after: int, step: Step, error: Exception, lab: Laboratory
) -> None:
    lab.faults[part] = raising(error, after=after, times=1)
    lab.run(tried())
    running = 0
    for call in lab.calls:
        running = {"system.start": 1, "system.stop": 0}.get(call, running)
        assert not (running and call in ("system.restore", "system.snapshot", "system.prepare"))
    assert not running
    for name in ("one", "two"):
        heard = [call for call in lab.calls if call.startswith(f"{name}.")]
        assert heard[-1] == f"{name}.stop"
        assert not any(pair == (f"{name}.start",) * 2 for pair in pairwise(heard))


def test_an_invalid_run_names_its_step(lab: Laboratory) -> None:
    lab.faults["system.ready"] = raising(InvalidRun("it runs without its log"), after=1, times=1)
    record = lab.records(tried())[0]
    assert (record.outcome, record.step, record.cause) == (Outcome.INVALID, Step.READY, "it runs without its log")


def test_the_first_fault_is_the_cause_and_what_failed_after_it_is_told_too(lab: Laboratory) -> None:
    lab.faults["workload.drive"] = raising(RunError("connection lost"), times=1)
    lab.faults["one.stop"] = raising(RunError("sampler gone"), times=1)
    lab.faults["system.stop"] = raising(ZeroDivisionError("oops"), after=1, times=1)
    record = lab.records(tried())[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.DRIVE)
    assert record.cause == "connection lost; and then: sampler gone; and then: oops"


def test_a_cause_is_one_line(lab: Laboratory) -> None:
    lab.faults["workload.drive"] = raising(RunError("two\n  lines\tof it"), times=1)
    assert lab.records(tried())[0].cause == "two lines of it"


@pytest.mark.parametrize("part", ["system.restore", "workload.drive", "one.start", "system.status", "system.check"])
def test_a_defect_in_a_kind_is_a_failed_run_with_its_traceback_in_the_logs(part: str, lab: Laboratory) -> None:
    lab.faults[part] = raising(ZeroDivisionError("in the kind"), times=1)
    _, results = lab.run(tried())
    assert results.runs[0].outcome is Outcome.FAILED
    assert results.runs[0].cause is not None
    assert "ZeroDivisionError('in the kind')" in results.runs[0].cause
    text = (results.folder / "runs" / "0001" / "logs" / "defect.txt").read_text()
    assert "Traceback" in text
    assert "laboratory.py" in text
    assert results.runs[1].outcome is Outcome.OK


def test_a_failed_run_is_tried_again_in_its_block(lab: Laboratory) -> None:
    lab.faults["workload.drive"] = raising(STEP_FAILS, times=1)
    records = lab.records(tried(retries=1))
    assert [(record.slot.block, record.slot.attempt, record.outcome.value) for record in records] == [
        (0, 0, "failed"), (0, 1, "ok"), (1, 0, "ok"),
    ]  # fmt: skip


def test_a_load_that_failed_is_done_anew_by_the_next_run(lab: Laboratory) -> None:
    lab.faults["workload.load"] = raising(STEP_FAILS, times=1)
    assert [record.outcome.value for record in lab.records(tried())] == ["failed", "ok"]
    assert lab.calls.count("workload.load") == 2


def test_a_simulated_system_that_often_fails_is_loaded_all_the_same(lab: Laboratory) -> None:
    # The chance was once drawn for loading too, always with the same number: some seeds lost every run of a study.
    for seed in range(1, 15):
        options = {"failing": "50%", "seed": seed}
        records = lab.records(make_study({"mean": (1,)}, options=options, min=2, max=4, retries=0))
        assert not any(record.step is Step.PREPARE for record in records)


# ---- not what was asked


def test_a_setting_that_was_not_effective_makes_the_run_invalid(lab: Laboratory) -> None:
    lab.faults["system.asked"] = giving({"journal_mode": "wal"})
    lab.faults["workload.drive"] = giving(measured(settings={"journal_mode": "delete"}))
    (record,) = lab.records(tried())
    assert (record.outcome, record.step, record.permanent) == (Outcome.INVALID, Step.CHECK, True)
    assert record.cause == "journal_mode is delete, the study asks for wal: the setting was not effective"
    assert record.settings == {"journal_mode": "delete"}


def test_a_setting_that_was_not_reported_makes_the_run_invalid(lab: Laboratory) -> None:
    lab.faults["system.asked"] = giving({"journal_mode": "wal"})
    record = lab.records(tried())[0]
    assert record.outcome is Outcome.INVALID
    assert record.cause is not None
    assert "journal_mode is not reported" in record.cause


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_response_that_is_not_finite_makes_the_run_invalid_and_the_folder_stays_readable(
    value: float, lab: Laboratory
) -> None:
    lab.faults["workload.drive"] = giving(measured(value))
    records = lab.records(tried())
    assert records[0].outcome is Outcome.INVALID
    assert records[0].cause == f"the driver reported {value} as throughput"
    assert records[0].responses == {}


def test_a_missing_response_makes_the_run_invalid_and_says_what_there_is(lab: Laboratory) -> None:
    lab.faults["workload.drive"] = giving(measured(responses={"elapsed": 1.0}))
    record = lab.records(tried())[0]
    assert record.outcome is Outcome.INVALID
    assert record.cause == "the driver gave no 'throughput' (replicates.of); it gave elapsed"


def test_a_response_that_was_withheld_makes_the_run_invalid_and_the_cause_says_why(lab: Laboratory) -> None:
    # An open loop left 12 requests unsent: the cause was that the driver gave no 'throughput', as if it never did.
    why = "12 of 4000 requests that were due were never sent"
    lab.faults["workload.drive"] = giving(measured(responses={"elapsed": 1.0}, withheld={"throughput": why}))
    record = lab.records(tried())[0]
    assert record.outcome is Outcome.INVALID
    assert record.cause == f"throughput (replicates.of) of this run is not known: {why}"


def test_a_driver_that_was_cut_short_makes_a_failed_run(lab: Laboratory) -> None:
    lab.faults["workload.drive"] = giving(measured(complete=False))
    record = lab.records(tried())[0]
    assert (record.outcome, record.cause) == (
        Outcome.FAILED,
        "the driver was cut short by a signal that dyno did not send",
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_status_that_is_not_finite_does_not_make_the_results_unreadable(value: float, lab: Laboratory) -> None:
    # JSON has no NaN: it was written as null, and no report could be made of the whole folder any more.
    lab.faults["system.status"] = giving({"hit_ratio": value, "pages": 3.0})
    records = lab.records(tried())
    assert [record.outcome for record in records] == [Outcome.OK] * 2
    assert records[0].status == {"pages": 3.0}


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("system.status", {"version": "11.4"}),
        ("workload.drive", measured(responses={"throughput": "fast"})),
        ("workload.drive", measured(settings={"path": object()})),
        ("workload.drive", measured(job={"file": b"\xff"})),
    ],
)
def test_what_a_kind_gives_that_cannot_be_kept_fails_its_run_and_not_the_study(
    part: str, wrong: Any, lab: Laboratory
) -> None:
    lab.faults[part] = giving(wrong, times=1)
    first, second = lab.records(tried())
    assert first.outcome is Outcome.FAILED
    assert first.cause is not None
    assert first.cause.startswith("defect in dyno or in a kind")
    assert second.outcome is Outcome.OK


# ---- caches


def cold_host(resident: int) -> type[FakeHost]:
    return type("Cold", (FakeHost,), {"resident": staticmethod(lambda: resident)})


def test_a_cold_run_keeps_the_evidence_that_it_was_cold(lab: Laboratory) -> None:
    lab.host = cold_host(0)
    record = lab.records(tried(caches="cold"))[0]
    assert record.outcome is Outcome.OK
    assert record.caches == {"asked": "cold", "data_bytes": 8192, "resident_bytes": 0}


def test_a_cold_run_whose_data_stayed_in_cache_is_invalid(lab: Laboratory) -> None:
    lab.host = cold_host(4096)
    record = lab.records(tried(caches="cold"))[0]
    assert (record.outcome, record.step) == (Outcome.INVALID, Step.CACHES)
    assert record.cause == "caches are not cold: 4096 of 8192 bytes of data are in page cache"


@pytest.mark.parametrize(("when_stopped", "outcome"), [(0, Outcome.OK), (4096, Outcome.INVALID)])
def test_of_a_system_that_maps_its_files_what_was_in_cache_before_it_started_counts(
    when_stopped: int, outcome: Outcome, lab: Laboratory
) -> None:
    """QuestDB maps its columns as it starts, and nobody can drop their pages then."""
    lab.system_class = type("Mapping", (SimulatedSystem,), {"maps_files": True})

    def resident() -> int:
        last = next(each for each in reversed(lab.calls) if each in ("system.restore", "system.start"))
        return 6000 if last == "system.start" else when_stopped

    lab.host = type("Mapped", (FakeHost,), {"resident": staticmethod(resident)})
    record = lab.records(tried(caches="cold"))[0]
    assert record.outcome is outcome
    if outcome is Outcome.OK:
        assert record.caches == {
            "asked": "cold",
            "data_bytes": 8192,
            "resident_bytes": 6000,
            "resident_when_stopped_bytes": 0,
        }
    else:
        assert record.cause == "caches are not cold: 4096 of 8192 bytes of data are in page cache"
        assert "start" not in steps(record)


@pytest.mark.skipif(os.geteuid() != 0, reason="dropping the caches of the machine needs root")
def test_the_caches_of_the_machine_are_dropped_between_restoring_and_starting(lab: Laboratory) -> None:
    heard = {"resident": staticmethod(lambda: 0), "dropped": staticmethod(lambda: lab.calls.append("host.dropped"))}
    lab.host = type("Cold", (FakeHost,), heard)
    record = lab.records(tried(caches="cold"))[0]
    assert steps(record)[:6] == ["host", "prepare", "restore", "caches", "start", "ready"]
    after = lab.calls[lab.calls.index("system.restore") :]
    assert after[:3] == ["system.restore", "host.dropped", "system.start"]


def test_a_warm_run_drops_nothing(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_args: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LocalHost, "evict", never)
    lab.host = type("Warm", (FakeHost,), {"dropped": never})
    record = lab.records(tried(caches="warm"))[0]
    assert record.outcome is Outcome.OK
    assert record.caches["resident_bytes"] == record.caches["data_bytes"] == 8192


# ---- data sets


def test_data_are_loaded_once_a_study(lab: Laboratory) -> None:
    lab.run(tried({"mean": (1, 2)}, min=4, max=4))
    assert lab.calls.count("workload.load") == 1
    assert lab.calls.count("system.restore") == 8


def test_cells_that_differ_in_what_shapes_their_data_load_their_own(lab: Laboratory) -> None:
    lab.faults["system.data_key"] = Fault(lambda options: {"half": options.mean // 2})
    lab.run(tried({"mean": (2, 3, 4, 5)}, min=3, max=3))
    assert lab.calls.count("workload.load") == 2


def test_what_is_done_after_loading_is_done_once_for_each_that_differs_in_it(lab: Laboratory) -> None:
    done: list[tuple[str, ...]] = []
    lab.faults["system.after_load"] = Fault(lambda options: ("ANALYZE",) if options.mean < 2 else ())
    lab.faults["system.finish_load"] = Fault(done.append)
    lab.run(tried({"mean": (0.5, 1, 2)}, min=3, max=3))
    assert lab.calls.count("workload.load") == 2
    assert sorted(done) == [(), ("ANALYZE",)]


def test_what_cannot_be_done_after_loading_is_a_failed_run_that_says_so(lab: Laboratory) -> None:
    def refuses(*_: object) -> None:
        raise RunError("after_load: no such table: nowhere (asked: ANALYZE nowhere)")

    lab.faults["system.finish_load"] = Fault(refuses)
    record = lab.records(tried())[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.PREPARE)
    assert record.cause == "after_load: no such table: nowhere (asked: ANALYZE nowhere)"


def test_each_run_is_on_the_data_of_its_own_cell(lab: Laboratory) -> None:
    made: dict[Path, None] = {}
    restored: list[Path] = []
    lab.faults["system.data_key"] = Fault(lambda options: {"mean": options.mean})
    lab.faults["system.snapshot"] = Fault(made.setdefault)
    lab.faults["system.restore"] = Fault(restored.append)
    records = lab.records(tried({"mean": (1, 2, 3)}, min=3, max=3))
    by_cell: dict[int, set[Path]] = {}
    for record, source in zip(records, restored, strict=True):
        by_cell.setdefault(record.slot.cell, set()).add(source)
    assert all(len(sources) == 1 for sources in by_cell.values())
    assert set.union(*by_cell.values()) == set(made)
    assert len(made) == 3


def test_data_are_loaded_once_a_block_where_loading_varies_and_those_of_earlier_blocks_go(lab: Laboratory) -> None:
    sets: list[int] = []
    lab.faults["system.snapshot"] = Fault(lambda target: sets.append(sum(1 for _ in target.parent.iterdir())))
    lab.run(tried({"mean": (1, 2)}, min=4, max=4, prepare="per-block"))
    assert lab.calls.count("workload.load") == 4
    assert sets == [0, 0, 0, 0], "nothing of an earlier block is there when the next is kept"


# ---- interrupts


def interrupting(lab: Laboratory, *, after: int, complete: bool = False) -> Fault:
    def ctrl_c(*_args: object) -> Any:
        lab.interrupt.requested = True
        return measured(complete=complete)

    return Fault(ctrl_c, after=after, times=1)


@pytest.mark.parametrize("complete", [False, True])
def test_an_interrupt_while_driving_makes_a_partial_run_and_resuming_goes_on_with_the_same_slot(
    lab: Laboratory, complete: bool
) -> None:
    study = tried({"mean": (1, 2)}, min=3, max=3)
    lab.faults["workload.drive"] = interrupting(lab, after=2, complete=complete)
    ending, results = lab.run(study)
    assert (ending.interrupted, ending.completed) == (True, False)
    assert [record.outcome.value for record in results.runs] == ["ok", "ok", "partial"]
    assert results.runs[-1].cause == "interrupted by a signal to dyno"
    assert results.ended is None
    lab.interrupt.requested = False
    ending, results = lab.run(study, resume=results)
    assert ending.completed
    assert [record.run for record in results.runs] == list(range(1, 8))
    assert results.runs[3].slot == results.runs[2].slot
    slots = Counter(record.slot for record in results.runs if record.outcome is Outcome.OK)
    assert len(slots) == 6
    assert set(slots.values()) == {1}, "nothing is counted twice"
    told = [event["event"] for event in results.events() if event["event"] != "run"]
    assert told == ["started", "interrupted", "resumed", "ended"]


@pytest.mark.parametrize(
    "part",
    [
        "system.prepare",
        "workload.load",
        "system.restore",
        "system.start",
        "one.start",
        "system.status",
        "system.check",
    ],
)
def test_an_interrupt_in_any_step_makes_a_partial_run_and_everything_is_stopped(part: str, lab: Laboratory) -> None:
    def ctrl_c(*_args: object) -> None:
        lab.interrupt.requested = True

    lab.faults[part] = Fault(ctrl_c, times=1)
    ending, results = lab.run(tried())
    assert ending.interrupted
    assert len(results.runs) <= 1
    assert all(record.outcome in (Outcome.PARTIAL, Outcome.OK) for record in results.runs)
    starts = [call for call in lab.calls if call in ("system.start", "system.stop")]
    assert starts[-1:] in ([], ["system.stop"])


def test_a_failure_that_the_interrupt_brought_about_is_partial_and_not_failed(lab: Laboratory) -> None:
    def ctrl_c(*_args: object) -> None:
        lab.interrupt.requested = True
        raise RunError("the driver ended without a result")

    lab.faults["workload.drive"] = Fault(ctrl_c, times=1)
    _, results = lab.run(tried())
    assert results.runs[0].outcome is Outcome.PARTIAL
    assert results.runs[0].cause == "interrupted by a signal to dyno (the driver ended without a result)"


def test_an_interrupt_between_runs_ends_with_whole_runs_only(lab: Laboratory) -> None:
    def ctrl_c(*_args: object) -> None:
        lab.interrupt.requested = True

    lab.faults["system.check"] = Fault(ctrl_c, after=1, times=1)
    ending, results = lab.run(tried(min=5, max=5))
    assert ending.interrupted
    assert [record.outcome for record in results.runs] == [Outcome.OK] * 2


@pytest.mark.parametrize("after", [4, 21], ids=["while picking", "while comparing"])
def test_a_staged_study_is_resumed_in_either_stage_as_if_it_had_not_been_cut_off(lab: Laboratory, after: int) -> None:
    # Two solutions with noise of their own; of each the highest mean is truly the best.
    study = make_study(
        {"seed": (1, 2), "mean": (1000, 1300, 1600)},
        system="tried",
        options={"cov": "1%"},  # so sure that no run's luck changes how many there are
        compare="seed",
        stages={"best": "mean", "levels": {"1": [1000, 1300], "2": [1000, 1300, 1600]}},
        precision_of="ratio",
        min=4,
        max=8,
        precision="5%",
    )
    whole = [(run.slot, run.responses) for run in lab.records(study)]
    assert {(slot.stage, slot.cell) for slot, _ in whole if slot.stage == 2} == {(2, 1), (2, 4)}
    lab.faults["workload.drive"] = interrupting(lab, after=after, complete=False)
    ending, results = lab.run(study)
    assert ending.interrupted
    assert results.runs[-1].slot.stage == (1 if after == 4 else 2)
    lab.interrupt.requested = False
    ending, results = lab.run(study, resume=results)
    assert ending.completed
    slots = [run.slot for run in results.runs if run.outcome is Outcome.OK]
    assert slots == [slot for slot, _ in whole]
    found = analyse(study, results.runs, ended=results.ended)
    assert [choice.chosen for choice in found.choices] == ["1300", "1600"]
    assert found.comparisons[0].n == sum(slot.stage == 2 for slot in slots) / 2


def test_resuming_another_study_is_refused(lab: Laboratory) -> None:
    def ctrl_c(*_args: object) -> None:
        lab.interrupt.requested = True

    lab.faults["system.check"] = Fault(ctrl_c, after=3, times=1)
    study = tried({"mean": (1, 2, 3)}, order="fixed", min=3, max=3)
    _, results = lab.run(study)
    lab.interrupt.requested = False
    (results.folder / "plan.json").write_text(study.model_copy(update={"order": "randomised"}).model_dump_json())
    with pytest.raises(StoreError, match=r"cannot go on from these runs: run .* is not what the design asks for"):
        lab.run(study, resume=results)


# ---- the disk


def disk(free: Callable[[], int]) -> type[FakeHost]:
    return type("Disk", (FakeHost,), {"free": staticmethod(free)})


def test_a_disk_that_is_too_full_to_begin_is_told_before_anything_is_run(lab: Laboratory) -> None:
    lab.host = disk(lambda: 10 * 2**20)
    with pytest.raises(UserError, match=r"host.require.free_disk: 20 MiB are to stay free, and .* has 10 MiB"):
        lab.run(tried(free_disk=20 * 2**20))
    assert lab.calls == []


def test_a_disk_that_is_too_full_before_a_run_stops_the_study_with_a_failed_run(lab: Laboratory) -> None:
    lab.host = disk(lambda: 100 if lab.calls.count("workload.drive") >= 2 else PLENTY)
    ending, results = lab.run(tried(free_disk=1000, min=5, max=5))
    assert (ending.completed, ending.interrupted) == (False, False)
    assert "the disk is too full" in ending.reason
    last = results.runs[-1]
    assert [record.outcome.value for record in results.runs] == ["ok", "ok", "failed"]
    assert last.step is Step.RESTORE
    assert last.cause is not None
    assert "free disk is 100 B" in last.cause
    assert results.ended is None, "it can be resumed"


def test_a_disk_that_fills_up_while_driving_ends_the_driver_and_stops_the_study(lab: Laboratory) -> None:
    pids: list[int] = []

    def drive(runner: Any, _seed: int) -> None:
        runner.execute(["sleep", "1000"])

    lab.faults["workload.drive"] = Fault(drive)
    lab.faults["one.watch"] = Fault(lambda pid, _subject: pids.append(pid))
    lab.host = disk(lambda: 100 if pids else PLENTY)
    ending, results = lab.run(tried(free_disk=1000))
    (record,) = results.runs
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.DRIVE)
    assert record.cause is not None
    assert "free disk under the data fell to 100 B" in record.cause
    assert "the disk is too full" in ending.reason
    assert not Path(f"/proc/{pids[0]}").exists()


def test_a_disk_with_room_for_the_data_twice_is_enough(lab: Laboratory) -> None:
    # The live data go before the snapshot takes their place; a third time the room was once asked for.
    lab.host = disk(lambda: 5000 if "system.snapshot" in lab.calls else PLENTY)
    ending, results = lab.run(tried(free_disk=1000, min=3, max=3))
    assert ending.completed, [record.cause for record in results.runs]


def test_a_run_is_not_begun_where_the_growth_of_an_earlier_one_would_fill_the_disk(lab: Laboratory) -> None:
    runs: list[int] = []

    def drive(_runner: Any, seed: int) -> Any:
        runs.append(seed)
        (live,) = lab.root.glob("**/live")
        (live / "grown").write_bytes(b"x" * 1_000_000)
        return measured(100.0)

    def shrink(*_args: Any) -> None:
        for grown in lab.root.glob("**/live/grown"):
            grown.unlink()  # else its room would be the next run's

    lab.faults["workload.drive"] = Fault(drive)
    lab.faults["system.data_key"] = Fault(shrink)
    lab.host = disk(lambda: 500_000 if runs else PLENTY)
    ending, results = lab.run(tried(free_disk=1000, min=3, max=3))
    assert "the disk is too full" in ending.reason
    assert [record.outcome for record in results.runs] == [Outcome.OK, Outcome.FAILED]
    assert len(runs) == 1


def test_the_guard_asks_for_what_earlier_runs_grew_by(journal: undo.UndoJournal, tmp_path: Path) -> None:
    guard = DiskGuard(disk(lambda: 1000)(journal), tmp_path, tmp_path, keep=500)
    guard.forecast(400)
    guard.grew(200)
    with pytest.raises(RunError, match="about 600 B and 500 B are to stay free"):
        guard.forecast(400)


# ---- the driver's process


def driving(lab: Laboratory, program: str) -> None:
    def drive(runner: Any, _seed: int) -> Any:
        status = runner.execute([sys.executable, "-c", program])
        return measured(float(status))

    lab.faults["workload.drive"] = Fault(drive)


def test_a_driver_past_its_limit_is_ended_and_the_run_failed(lab: Laboratory) -> None:
    driving(lab, "import time; time.sleep(1000)")
    record = lab.records(tried(limits={"drive": "100 ms"}))[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.DRIVE)
    assert record.cause == "the driver did not end within 100 ms, its limit"


def test_what_the_driver_tells_of_its_progress_is_passed_on_and_other_words_are_not(
    lab: Laboratory, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"

    class Told(list[str]):
        def append(self, word: str) -> None:
            super().append(word)
            heard.touch()  # so that the driver ends once it was heard, however slow the machine is

    lab.told = Told()
    line = json.dumps({"throughput_per_s": 1234, "phase": "run"})
    program = (
        "import os, sys, time; print('hello'); print('[1]'); print(sys.argv[1], flush=True)\n"
        "while not os.path.exists(sys.argv[2]): time.sleep(0.01)"
    )

    def drive(runner: Any, _seed: int) -> Any:
        heard.unlink(missing_ok=True)
        return measured(1.0 + runner.execute([sys.executable, "-c", program, line, str(heard)]))

    lab.faults["workload.drive"] = Fault(drive)
    ending, _ = lab.run(tried())
    assert lab.told == ["run at 1234", "run at 1234", ending.reason]


def test_the_commands_of_the_driver_and_its_time_are_kept(lab: Laboratory) -> None:
    driving(lab, "raise SystemExit(7)")
    record = lab.records(tried())[0]
    assert record.commands == ((sys.executable, "-c", "raise SystemExit(7)"),)
    assert record.responses["throughput"] == 7.0
    assert record.driver_s > 0


def test_what_an_observer_says_of_the_measured_part_is_a_response_too(lab: Laboratory) -> None:
    heard = []

    def seen(samples: Any, from_ns: int, to_ns: int) -> Any:
        heard.append((samples["source"].to_list(), from_ns, to_ns))
        return {"cpu.util": 40.0, "throughput": 1.0}

    lab.faults["workload.drive"] = giving(measured(7.0, measured_from_ns=5, measured_to_ns=9))
    lab.faults["one.responses"] = Fault(seen)
    record = lab.records(tried(observe=("one",)))[0]
    assert record.responses == {"throughput": 7.0, "cpu.util": 40.0}, "what the driver says is its own"
    assert heard[0] == (["one"], 5, 9)


def test_an_observed_response_may_decide_a_study(lab: Laboratory) -> None:
    lab.faults["workload.drive"] = giving(measured(7.0, measured_from_ns=5, measured_to_ns=9))
    lab.faults["one.responses"] = giving({"cpu.util": 40.0})
    assert {record.outcome for record in lab.records(tried(observe=("one",), of="cpu.util"))} == {Outcome.OK}
    lab.faults["one.responses"] = giving({"disk.util": 40.0})
    record = lab.records(tried(observe=("one",), of="cpu.util"))[0]
    assert record.cause == "the driver gave no 'cpu.util' (replicates.of); it gave disk.util, throughput"


def test_an_observer_is_not_asked_of_a_run_without_a_measured_part(lab: Laboratory) -> None:
    lab.faults["one.responses"] = giving({"cpu.util": 40.0})
    assert "cpu.util" not in lab.records(tried(observe=("one",)))[0].responses


def test_an_interrupt_asks_the_driver_to_end_and_takes_what_it_measured(lab: Laboratory) -> None:
    program = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(3)); time.sleep(1000)"

    def drive(runner: Any, _seed: int) -> Any:
        lab.interrupt.requested = True
        return measured(float(runner.execute([sys.executable, "-c", program])), complete=False)

    lab.faults["workload.drive"] = Fault(drive, times=1)
    _, results = lab.run(tried())
    assert results.runs[0].outcome is Outcome.PARTIAL


# ---- nothing is left


def assert_nothing_is_left(lab: Laboratory, state: Path) -> None:
    for folder in (lab.root / "results" / "made").iterdir():
        assert {path.name for path in folder.iterdir()} <= LASTING
        assert all(path.name.isdigit() for path in (folder / "runs").iterdir())
    assert list((state / "undo").iterdir()) == []


def test_nothing_is_left_after_the_end(lab: Laboratory, state: Path) -> None:
    lab.run(tried())
    assert_nothing_is_left(lab, state)


@pytest.mark.parametrize("part", ["system.prepare", "workload.load", "workload.drive", "one.stop"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError()])
def test_nothing_is_left_after_what_ends_dyno_itself(
    part: str, error: BaseException, lab: Laboratory, state: Path
) -> None:
    # The second Ctrl-C is a KeyboardInterrupt anywhere.
    lab.faults[part] = raising(error)
    if isinstance(error, MemoryError):
        lab.run(tried())
    else:
        with pytest.raises(type(error)):
            lab.run(tried())
    assert_nothing_is_left(lab, state)


def test_nothing_is_left_where_runs_cannot_be_committed(
    lab: Laboratory, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dyno.store.staging.write", full)
    with pytest.raises(StoreError, match=r"cannot commit the run: .*No space left"):
        lab.run(tried())
    assert_nothing_is_left(lab, state)


def test_while_a_study_runs_its_folders_are_hidden_and_in_the_journal(lab: Laboratory, state: Path) -> None:
    seen: list[set[str]] = []

    def look(_runner: Any, _seed: int) -> None:
        (folder,) = (lab.root / "results" / "made").iterdir()
        extra = {path.name for path in folder.iterdir()} - LASTING
        text = "".join(path.read_text() for path in (state / "undo").iterdir())
        assert all(name.startswith(".dyno-") and str(folder / name) in text for name in extra)
        seen.append(extra)

    lab.faults["workload.drive"] = Fault(look)
    lab.run(tried())
    assert [len(extra) for extra in seen] == [2, 2]


def test_a_workspace_that_cannot_be_made_is_an_error_for_the_user(tmp_path: Path, journal: undo.UndoJournal) -> None:
    (tmp_path / "file").write_text("")
    results = new_results(tmp_path, tried(), b"", {}, scratch_in(tmp_path))
    with pytest.raises(UserError, match="cannot make the folder"):
        Lab(
            results,
            LocalHost(journal),
            Rooms.open(),
            core="",
            workspace=tmp_path / "file" / ".dyno-x",
            interrupt=Interrupt(),
            listener=Listener(),
        )


# ---- before the first run


def test_a_system_that_cannot_be_provided_is_an_error_for_the_user(lab: Laboratory) -> None:
    class Absent(lab.system_class):  # type: ignore[name-defined,misc]
        def provision(self, limit: float) -> dict[str, str]:
            raise RunError("no such image")

    lab.system_class = Absent
    with pytest.raises(UserError, match="system tried cannot be provided: no such image"):
        lab.run(tried())


def test_all_that_cannot_be_provided_is_told_at_once_and_nothing_was_ready(lab: Laboratory) -> None:
    class NoSystem(lab.system_class):  # type: ignore[name-defined,misc]
        def provision(self, limit: float) -> dict[str, str]:
            raise RunError("no such image")

    class NoWorkload(SimulatedWorkload):
        def provision(self, host: Any, logs: Any, limit: float) -> dict[str, str]:
            raise RunError("no such tool")

    ready: list[str] = []
    lab.on_ready = lambda: ready.append("ready")
    lab.run(tried())
    assert ready == ["ready"]
    lab.system_class, lab.workload_class = NoSystem, NoWorkload
    with pytest.raises(UserError) as told:
        lab.run(tried())
    said = "workload tried cannot be provided: no such tool; system tried cannot be provided: no such image"
    assert (str(told.value), ready) == (said, ["ready"])


def test_what_a_study_needs_and_is_not_here_is_found_as_the_doctor_finds_it(
    lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Needing(SimulatedWorkload):
        def needs(self) -> tuple[str, ...]:
            return ("YCSB",)

    monkeypatch.delenv("YCSB_HOME", raising=False)
    assert lab.rooms().lacking(tried(), tmp_path) == []
    lab.workload_class = Needing
    (lacks,) = lab.rooms().lacking(tried(), tmp_path)
    assert (lacks.name, lacks.found) == ("YCSB", "YCSB_HOME is not set")


@pytest.mark.parametrize(
    ("host", "needed"),
    [
        ({}, set()),
        ({"file_system": {"kind": "xfs", "size": "1 GiB"}}, {"root", "loop devices", "xfs"}),
        ({"machine": {"cpus": 1}}, {"root", "CPU and memory limits"}),
        ({"pin": {"driver": "0"}}, {"root", "CPU and memory limits"}),
        ({"machine": {"disk": {"write_iops": 100}}}, {"root", "disk limits"}),
        ({"sysctl": {"vm.swappiness": 1}}, {"root"}),
        ({"kernel": {"transparent_hugepages": "never"}}, {"root"}),
    ],
)
def test_what_a_host_is_asked_for_hangs_on_what_the_doctor_looks_at(
    host: dict[str, Any], needed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms_of_lab, "lacking", lacks_all)
    found = Rooms.open().lacking(make_study(host=host), tmp_path)
    assert {check.name for check in found} == needed <= set(_looks())


@pytest.mark.parametrize(
    ("asked", "absent", "engine"),
    [
        ({}, set(), "Docker"),
        ({}, {"Docker"}, "Podman"),
        ({}, {"Docker", "Podman"}, "Docker"),
        ({"containers": "podman"}, set(), "Podman"),
        ({"containers": "docker"}, {"Docker"}, "Docker"),
    ],
)
def test_a_study_in_containers_hangs_on_the_engine_that_it_would_get(
    asked: dict[str, Any], absent: set[str], engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(host=asked)
    cell = study.cells[0].model_copy(update={"deployment": "container-volume"})
    monkeypatch.setattr(
        rooms_of_lab, "lacking", lambda names, folder: lacks_all([name for name in names if name in absent], folder)
    )
    assert [*Rooms.open()._of_place(cell, tmp_path)] == ["root", engine]


def lacks_all(names: Sequence[str], _folder: Path) -> list[Check]:
    return [Check(name, False, "not here") for name in names]


def test_whatever_a_kind_needs_is_something_that_the_doctor_looks_at() -> None:
    rooms = Rooms.open()
    needed: set[str] = {name for kind in rooms.observers.values() for name in kind.needs}
    for system in rooms.systems.values():
        needed |= set(system.needs(system.Options.model_construct()))
    needed |= {"tsbs", "sysbench", "fio", "go-ycsb", "YCSB"}
    assert needed <= set(_looks())
    assert {"QuestDB", "CrateDB", "PostgreSQL", "perf"} <= needed


def test_a_workload_that_cannot_drive_the_system_is_refused_with_what_it_can(lab: Laboratory) -> None:
    with pytest.raises(
        UserError,
        match=r"ycsb cannot drive system simulated .*it can drive berkeleydb, drbd, galera, glass, "
        "group-replication, mariadb, mysql, mysql-replication, null, "
        "postgresql, replicated-disk, sqlite",
    ):
        lab.run(make_study(workload="ycsb", workload_options={"mix": "a", "operations": 1}))


def test_latency_is_not_what_a_study_of_unlike_loops_can_go_by(lab: Laboratory) -> None:
    def with_rates(first: float | None, second: float | None, of: str = "latency_p99") -> Study:
        study = make_study({"kind": ("a", "b")}, system="null", compare="kind", precision_of="ratio", of=of)
        cells = [
            cell.model_copy(
                update={
                    "system": KindSpec(kind="null"),
                    "workload": KindSpec(kind="ycsb", options={"mix": "c", "operations": 1, "rate": rate}),
                }
            )
            for cell, rate in zip(study.cells, (first, second), strict=True)
        ]
        return study.model_copy(update={"cells": tuple(cells)})

    rooms = Rooms.open()
    with pytest.raises(UserError, match=r"latency_p99 of kind=a and kind=b do not compare: one is of a closed loop"):
        rooms.refuse_mismatches(with_rates(None, 100.0))
    rooms.refuse_mismatches(with_rates(None, 100.0, of="throughput"))
    rooms.refuse_mismatches(with_rates(50.0, 100.0))


@pytest.mark.parametrize(
    ("system", "options", "workload", "message"),
    [
        ("null", {}, {"kind": "ycsb", "data_integrity": True}, "this system stores nothing"),
        ("sqlite", {}, {"kind": "ycsb", "limits": {"read": "1 s"}}, "limits are of servers"),
        ("mariadb", {}, {"kind": "go-ycsb"}, "go-ycsb connects by TCP alone: write system.config.connect: tcp"),
        ("mariadb", {"max_connections": 10}, {"kind": "ycsb", "threads": 11}, "lets 10 client in"),
        ("null", {}, {"kind": "ledger"}, "ledger cannot drive system null"),
        ("null", {}, {"kind": "tpcc", "warehouses": 1}, "tpcc cannot drive system null"),
    ],
)
def test_what_could_only_fail_is_refused(
    system: str, options: dict[str, Any], workload: dict[str, Any], message: str
) -> None:
    kind = workload.pop("kind")
    least = {"mix": "c"} if "ycsb" in kind else {}
    study = make_study(
        {}, system=system, options=options, workload=kind, workload_options={**least, "operations": 1, **workload}
    )
    with pytest.raises(UserError, match=message):
        Rooms.open().refuse_mismatches(study)


def test_rows_that_come_twice_are_refused_where_the_tables_would_refuse_their_batches() -> None:
    rows = {"action": "load", "duplicates": "5%"}
    study = make_study(
        {}, system="postgresql", options={"tables": {"deduplicate": True}}, workload="tsbs", workload_options=rows
    )
    with pytest.raises(UserError, match="workload: postgresql refuses a batch with a row that its table has: leave"):
        Rooms.open().refuse_mismatches(study)


def test_an_observer_that_asks_servers_needs_one_and_a_connection_to_it() -> None:
    rooms = Rooms.open()
    watched = {"workload": "ycsb", "observe": ("machine", "database")}
    ycsb = {"mix": "c", "operations": 1}
    full = make_study(
        {}, system="mariadb", options={"max_connections": 10}, workload_options={**ycsb, "threads": 10}, **watched
    )
    with pytest.raises(UserError, match="lets 10 client in, and the workload has 10, 1 of the observers besides"):
        rooms.refuse_mismatches(full)
    rooms.refuse_mismatches(full.model_copy(update={"observe": (KindSpec(kind="machine"),)}))
    embedded = make_study({}, system="sqlite", workload_options=ycsb, **watched)
    with pytest.raises(
        UserError,
        match=r"observe: database asks a server for its counters: cratedb, drbd, .*mariadb, .*; sqlite is none",
    ):
        rooms.refuse_mismatches(embedded)


def test_a_run_whose_server_dies_fails_for_that_and_not_for_the_observer_that_asked_it(lab: Laboratory) -> None:
    class Dying:
        looks = 0

        def read(self) -> Counters:
            self.looks += 1
            if self.looks > 5:
                raise RunError("connection reset")
            return Counters({"reads": float(self.looks)})

        def ended(self) -> bool:
            return True

        def close(self) -> None:
            lab.calls.append("source.close")

    class Asked(SimulatedSystem):
        has_counters = True

        def counters(self, limit: float) -> Dying:
            return Dying()

    lab.system_class = Asked
    lab.faults["workload.drive"] = raising(RunError("the server has gone away"), times=1)
    first, second = lab.records(tried(observe=("database",)))
    assert (first.outcome, first.cause) == (Outcome.FAILED, "the server has gone away")
    assert second.outcome is Outcome.OK
    assert lab.calls.count("source.close") == 2


def test_what_the_data_take_once_the_system_has_ended_is_in_the_status(lab: Laboratory) -> None:
    class Resting(SimulatedSystem):
        def at_rest(self) -> dict[str, float]:
            assert lab.calls[-1] == "system.check", "while it runs it would be another figure"
            return {"at_rest.bytes": 5.0}

    lab.system_class = Resting
    assert {record.status["at_rest.bytes"] for record in lab.records(tried())} == {5.0}


def test_a_workload_that_cannot_be_provided_is_an_error_for_the_user(lab: Laboratory) -> None:
    class Absent(SimulatedWorkload):
        def provision(self, host: Any, logs: Any, limit: float) -> dict[str, str]:
            raise RunError("no such tool")

    lab.workload_class = Absent
    with pytest.raises(UserError, match="workload tried cannot be provided: no such tool"):
        lab.run(tried())


def test_what_a_workload_finds_in_the_store_is_kept_and_fails_the_run_where_it_is_wrong(lab: Laboratory) -> None:
    class Checking(SimulatedWorkload):
        wrong: str | None = None

        def check(self, runner: Any, endpoint: Any, seed: int) -> Checked:
            return Checked({"ledger.lost": 2.0}, self.wrong)

    lab.workload_class = Checking
    record = lab.records(tried())[0]
    assert (record.outcome, record.status["ledger.lost"]) == (Outcome.OK, 2.0)
    Checking.wrong = "2 rows lost"
    record = lab.records(tried())[0]
    assert (record.outcome, record.step, record.cause) == (Outcome.FAILED, Step.CHECK, "2 rows lost")
    assert record.status["ledger.lost"] == 2.0
    assert record.responses["throughput"] > 0, "what it measured is still to be seen"


@pytest.mark.parametrize("part", ["workload.drive", "system.status"])
def test_a_store_whose_driving_failed_is_started_again_and_checked_where_that_is_the_point(
    part: str, lab: Laboratory
) -> None:
    """The death of its server is what a ledger is for, and after it nothing was counted."""

    class Ledger(SimulatedWorkload):
        outlives_failure = True

        def check(self, runner: Any, endpoint: Any, seed: int) -> Checked:
            return Checked({"ledger.lost": 2.0}, "2 rows lost")

    lab.workload_class = Ledger
    lab.faults[part] = raising(RunError("connection lost"), times=1)
    record = lab.records(tried(retries=0))[0]
    step = {"workload.drive": Step.DRIVE, "system.status": Step.STATUS}[part]
    assert (record.outcome, record.step) == (Outcome.FAILED, step)
    assert record.cause == "connection lost; started again and checked: 2 rows lost"
    assert record.status["ledger.lost"] == 2.0


def test_a_store_that_does_not_come_up_again_is_said(lab: Laboratory) -> None:
    class Ledger(SimulatedWorkload):
        outlives_failure = True

    lab.workload_class = Ledger
    lab.faults["workload.drive"] = raising(RunError("connection lost"), times=1)
    lab.faults["system.ready"] = raising(RunError("the log is torn"), after=2, times=1)
    cause = lab.records(tried(retries=0))[0].cause
    assert cause == "connection lost; started again to be checked, it failed too: the log is torn"


def test_what_an_invalid_run_measured_is_kept(lab: Laboratory) -> None:
    class Refused(SimulatedWorkload):
        def drive(self, runner: Any, endpoint: Any, seed: int) -> Any:
            runner.measured = measured(42.0)
            raise InvalidRun("too many errors")

    lab.workload_class = Refused
    record = lab.records(tried(retries=0))[0]
    assert (record.outcome, record.responses["throughput"]) == (Outcome.INVALID, 42.0)


def test_the_versions_of_the_system_and_of_the_driver_are_kept(lab: Laboratory) -> None:
    class Versioned(lab.system_class):  # type: ignore[name-defined,misc]
        def provision(self, limit: float) -> dict[str, str]:
            return {"server": "11.4"}

    lab.system_class = Versioned
    lab.faults["workload.drive"] = giving(measured(versions={"driver": "0.1"}))
    assert lab.records(tried())[0].versions == {"server": "11.4", "driver": "0.1"}


def test_the_results_of_two_sessions_never_share_a_workspace(lab: Laboratory) -> None:
    lab.run(tried())
    lab.run(tried())
    assert lab.sessions == len(list((lab.root / "results" / "made").iterdir())) == 2
    assert [path.name for path in lab.root.iterdir()] == ["results"]
    assert all(Results(folder).ended for folder in (lab.root / "results" / "made").iterdir())
