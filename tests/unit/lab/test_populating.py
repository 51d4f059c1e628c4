"""What a workload makes in the store before each run: observed by itself, in no figure, and cold where caches are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.model.run import Outcome, RunRecord, Step
from dyno.model.study import Study
from dyno.workloads.simulated import SimulatedWorkload
from tests.making import make_study
from tests.unit.lab.laboratory import FakeHost, Fault, Laboratory, giving, measured, raising


class Populating(SimulatedWorkload):
    """Makes something before each run."""

    populates = True


class ReadingBack(SimulatedWorkload):
    """Reads all that it wrote when it has ended."""

    def reads_back(self) -> bool:
        return True


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path, workload_class=Populating, host=type("Host", (FakeHost,), {}))


def tried(**rest: Any) -> Study:
    given = {"min": 2, "max": 2, "retries": 0, "observe": ("one",), **rest}
    return make_study({"mean": (1000,)}, system="tried", options={"noise": "none"}, **given)


def steps(record: RunRecord) -> list[str]:
    return [each.step.value for each in record.steps]


def heard(lab: Laboratory, *parts: str) -> list[str]:
    """The last run's calls of these parts, in their order."""
    begins = len(lab.calls) - lab.calls[::-1].index("system.restore")
    return [call for call in lab.calls[begins : lab.calls.index("system.destroy")] if call in parts]


def hear_host(lab: Laboratory) -> None:
    """What is done with the caches of the machine is heard too."""
    for name in ("dropped", "synced", "written_back"):
        setattr(lab.host, name, staticmethod(lambda name=name: lab.calls.append(f"host.{name}")))


def test_it_is_a_step_of_its_own_between_the_observers_start_and_the_drive(lab: Laboratory) -> None:
    hear_host(lab)
    record = lab.records(tried())[-1]
    assert record.outcome is Outcome.OK
    assert steps(record) == [
        "host", "prepare", "restore", "start", "ready", "caches", "observe", "populate", "drive", "observe", "status",
        "check", "stop", "check",
    ]  # fmt: skip
    parts = ("one.start", "workload.populate", "host.synced", "host.dropped", "workload.drive", "one.stop")
    # What it wrote is written back before anything is metered; with warm caches nothing is dropped.
    assert heard(lab, *parts) == ["one.start", "workload.populate", "host.synced", "workload.drive", "one.stop"]


def test_what_starting_a_server_wrote_is_written_back_before_anything_is_metered(lab: Laboratory) -> None:
    hear_host(lab)
    parts = ("system.ready", "host.written_back", "system.cached", "one.start", "workload.drive")
    lab.records(tried())
    assert heard(lab, *parts) == ["system.ready", "system.cached", "one.start", "workload.drive"]  # none that wrote
    lab.calls.clear()
    lab.faults["system.ready"] = giving(Endpoint("simulated", {"throughput": 100.0}, {"server": os.getpid()}))
    lab.records(tried())
    assert heard(lab, *parts) == ["system.ready", "host.written_back", "system.cached", "one.start", "workload.drive"]


def test_a_run_tells_when_it_was(lab: Laboratory) -> None:
    begins, ends = [], []
    lab.faults["workload.populate"] = Fault(lambda *_args: begins.append(0))
    lab.faults["workload.drive"] = Fault(lambda *_args: ends.append(0))
    for record in lab.records(tried()):
        assert record.populated_from_ns is not None
        assert record.populated_to_ns is not None
        assert record.started_ns <= record.populated_from_ns <= record.populated_to_ns <= record.ended_ns
    assert (len(begins), len(ends)) == (2, 2)


def test_a_workload_that_makes_nothing_is_not_asked_to(lab: Laboratory) -> None:
    lab.workload_class = SimulatedWorkload
    record = lab.records(tried())[-1]
    assert "populate" not in steps(record)
    assert (record.populated_from_ns, record.populated_to_ns) == (None, None)
    assert "workload.populate" not in lab.calls


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops the caches of the machine")
def test_with_cold_caches_they_are_dropped_once_more_and_attested_after_it(lab: Laboratory) -> None:
    hear_host(lab)
    record = lab.records(tried(caches="cold"))[-1]
    assert record.outcome is Outcome.OK
    parts = ("workload.populate", "host.dropped", "system.data_files", "workload.drive")
    assert heard(lab, *parts) == [
        "host.dropped", "system.data_files", "workload.populate", "host.dropped", "system.data_files", "host.dropped",
        "workload.drive",
    ]  # fmt: skip
    assert steps(record)[7:10] == ["observe", "populate", "caches"]


def test_with_cold_caches_what_it_left_in_them_makes_the_run_invalid(lab: Laboratory) -> None:
    resident: list[int] = []
    lab.host.resident = staticmethod(lambda: resident[-1] if resident else 0)  # type: ignore[assignment]
    lab.faults["workload.populate"] = Fault(lambda *_args: resident.append(8192))
    record = lab.records(tried(caches="cold"))[0]
    assert (record.outcome, record.step) == (Outcome.INVALID, Step.CACHES)
    assert record.cause == "caches are not cold: 8192 of 8192 bytes of data are in page cache"
    assert "workload.drive" not in lab.calls


def test_its_processes_are_watched_as_its_own_and_not_as_the_drivers(lab: Laboratory) -> None:
    subjects: list[str] = []
    lab.faults["one.watch"] = Fault(lambda _pid, subject: subjects.append(subject))
    run = [sys.executable, "-c", ""]
    lab.faults["workload.populate"] = Fault(lambda runner, _seed: runner.execute(run) and None)

    def drive(runner: Any, _seed: int) -> Any:
        runner.execute([*run, "driving"])
        return measured()

    lab.faults["workload.drive"] = Fault(drive)
    record = lab.records(tried())[0]
    assert record.outcome is Outcome.OK
    assert subjects == ["populate", "driver"] * 2
    assert [words[-1] for words in record.commands] == ["", "driving"]


def test_where_it_fails_nothing_is_driven_and_what_was_observed_is_kept(lab: Laboratory) -> None:
    lab.faults["workload.populate"] = raising(RunError("no room for the files"))
    _, results = lab.run(tried())
    record = results.runs[0]
    assert (record.outcome, record.step, record.cause) == (Outcome.FAILED, Step.POPULATE, "no room for the files")
    assert record.populated_to_ns is not None
    assert heard(lab, "one.stop", "system.stop", "workload.drive") == ["one.stop", "system.stop"]
    assert results.samples(1)["source"].to_list() == ["one"]


def test_it_may_take_as_long_as_loading_may_and_no_longer(lab: Laboratory) -> None:
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    lab.faults["workload.populate"] = Fault(lambda runner, _seed: runner.execute(sleeping) and None)
    record = lab.records(tried(limits={"prepare": "200 ms"}))[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.POPULATE)
    assert record.cause == "the driver did not end within 200 ms, its limit"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops the caches of the machine")
def test_what_is_read_back_after_a_run_comes_from_the_device(lab: Laboratory) -> None:
    hear_host(lab)
    lab.workload_class = ReadingBack
    lab.run(tried())
    parts = ("workload.drive", "host.dropped", "workload.check", "system.stop")
    assert heard(lab, *parts) == ["workload.drive", "host.dropped", "workload.check", "system.stop"]
