"""What every observer must do."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts import LocalHost
from dyno.model.base import RunError
from dyno.observers.base import SAMPLE_COLUMNS, Observer
from tests.contract.conftest import LIMIT_S
from tests.contract.test_systems import ROOMS, options_of

METRICS = {
    each["name"]: each
    for each in json.loads((Path(__file__).parents[2] / "schema" / "metrics.json").read_text())["metrics"]
}


def make(name: str, host: LocalHost, core: str, workspace: Path, **options: Any) -> Observer[Any]:
    kind = ROOMS.observers[name]
    return kind(options_of(kind, options), host, core, workspace / f"observe-{name}", workspace / "logs")


@pytest.fixture(params=sorted(ROOMS.observers))
def observer(request: pytest.FixtureRequest, host: LocalHost, core: str, workspace: Path) -> Observer[Any]:
    return make(request.param, host, core, workspace)


def test_its_samples_have_the_columns(observer: Observer[Any]) -> None:
    observer.start(LIMIT_S)
    observer.watch(os.getpid(), "driver")
    samples = observer.stop(LIMIT_S)
    assert dict(samples.schema) == SAMPLE_COLUMNS


def test_an_observer_that_was_not_started_can_be_stopped(observer: Observer[Any]) -> None:
    # The lab stops them all where one of them did not start.
    assert dict(observer.stop(LIMIT_S).schema) == SAMPLE_COLUMNS


def test_a_process_that_is_gone_can_be_watched(observer: Observer[Any], host: LocalHost, tmp_path: Path) -> None:
    process = host.start(["true"], log=tmp_path / "gone")
    process.wait(LIMIT_S)
    observer.start(LIMIT_S)
    observer.watch(process.pid, "driver")
    assert dict(observer.stop(LIMIT_S).schema) == SAMPLE_COLUMNS


# ---- the machine alone


def test_the_machine_is_seen_from_the_start_and_by_known_metrics(host: LocalHost, core: str, workspace: Path) -> None:
    observer = make("machine", host, core, workspace, hz=10)
    before = time.time_ns()
    observer.start(LIMIT_S)
    file = workspace / "observe-machine" / "samples.csv"
    deadline = time.monotonic() + LIMIT_S
    while file.read_text().count("cpu.idle") < 2:
        assert time.monotonic() < deadline, "the sampler writes nothing"
    samples = observer.stop(LIMIT_S)
    assert set(samples["metric"]) <= set(METRICS)
    assert {"cpu.usr", "cpu.idle", "vm.cs", "mem.free"} <= set(samples["metric"])
    assert samples["time_ns"].min() >= before  # type: ignore[operator]  # an int column's minimum
    assert samples["time_ns"].max() <= time.time_ns()  # type: ignore[operator]
    assert samples["value"].is_finite().all()
    shares = samples.filter(samples["metric"].str.starts_with("cpu."))["value"]
    assert shares.is_between(0, 100.5).all()


def test_processes_are_watched_with_their_trees_and_control_groups_where_that_is_asked(
    host: LocalHost, core: str, workspace: Path, tmp_path: Path
) -> None:
    observer = make("machine", host, core, workspace, hz=20, groups=["per_cpu", "scheduler"], tree=True, cgroups=True)
    parent = host.start(["sh", "-c", "sleep 60 & sleep 60 & wait"], log=tmp_path / "parent")
    observer.start(LIMIT_S)
    observer.watch(parent.pid, "server")
    file = workspace / "observe-machine" / "samples.csv"
    deadline = time.monotonic() + LIMIT_S
    while ",server,proc.processes,3\n" not in file.read_text() or ",server,cgroup.cpu," not in file.read_text():
        assert time.monotonic() < deadline, "the tree or its control group is not seen"
    samples = observer.stop(LIMIT_S)
    parent.kill()
    assert set(samples["metric"]) <= set(METRICS)
    of = {metric.partition(".")[0] for metric in samples["metric"]}
    assert of <= {"percpu", "stat", "vm", "sched", "proc", "cgroup", "watch"}
    assert {"percpu.idle", "vm.cs", "proc.cpu", "watch.missed"} <= set(samples["metric"])


def test_a_driver_that_works_in_processes_of_its_own_is_watched_with_them(
    host: LocalHost, core: str, workspace: Path, tmp_path: Path
) -> None:
    observer = make("machine", host, core, workspace, hz=20, groups=["scheduler"])
    parent = host.start(["sh", "-c", "sleep 60 & sleep 60 & wait"], log=tmp_path / "parent")
    observer.start(LIMIT_S)
    observer.watch_tree(parent.pid, "driver")
    file = workspace / "observe-machine" / "samples.csv"
    deadline = time.monotonic() + LIMIT_S
    while ",driver,proc.processes,3\n" not in file.read_text():
        assert time.monotonic() < deadline, "its children are not seen"
    observer.stop(LIMIT_S)
    parent.kill()


def test_a_core_that_cannot_watch_is_a_run_error_with_its_words(
    host: LocalHost, tmp_path: Path, workspace: Path
) -> None:
    core = tmp_path / "core"
    core.write_text("#!/bin/sh\necho 'no /proc here' >&2; exit 2\n")
    core.chmod(0o755)
    observer = make("machine", host, str(core), workspace)
    with pytest.raises(RunError, match="ended at once: no /proc here"):
        observer.start(LIMIT_S)


def test_a_core_that_never_becomes_ready_is_a_run_error_and_is_ended(
    host: LocalHost, tmp_path: Path, workspace: Path
) -> None:
    core = tmp_path / "core"
    core.write_text("#!/bin/sh\nexec sleep 1000\n")
    core.chmod(0o755)
    observer = make("machine", host, str(core), workspace)
    with pytest.raises(RunError, match=r"was not ready within 0.1 s"):
        observer.start(0.1)
    assert observer._process is not None  # type: ignore[attr-defined]
    assert observer._process.wait(0) is not None  # type: ignore[attr-defined]


def test_samples_that_cannot_be_read_are_a_run_error(host: LocalHost, tmp_path: Path, workspace: Path) -> None:
    core = tmp_path / "core"
    core.write_text("#!/bin/sh\ntrap 'exit 0' TERM\necho ready\nwhile :; do sleep 0.01; done\n")
    core.chmod(0o755)
    observer = make("machine", host, str(core), workspace)
    observer.start(LIMIT_S)
    with pytest.raises(RunError, match="samples of dyno-core watch cannot be read"):
        observer.stop(LIMIT_S)


def test_a_sampler_that_ended_before_the_run_did_makes_the_run_fail(
    host: LocalHost, core: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended by a signal it ends well, and a run with half its samples was ok."""
    started: list[int] = []
    start = host.start

    def remembered(*args: Any, **kwargs: Any) -> Any:
        process = start(*args, **kwargs)
        started.append(process.pid)
        return process

    monkeypatch.setattr(host, "start", remembered)
    observer = make("machine", host, core, workspace)
    observer.start(LIMIT_S)
    os.kill(started[0], signal.SIGTERM)
    os.waitid(os.P_PID, started[0], os.WEXITED | os.WNOWAIT)
    with pytest.raises(RunError, match="ended before the run did"):
        observer.stop(LIMIT_S)
