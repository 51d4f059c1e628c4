"""What the workload makes of many cuts: their sums, what no loss in so many of them shows, and what is refused."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts import LocalHost
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads import crash
from dyno.workloads.crash import CrashOptions, CrashWorkload
from tests.contract.conftest import PlainRunner

JUDGED: dict[str, Any] = {
    "point": 9,
    "syncs_checked": 5,
    "syncs_lost": 0,
    "files_zeros": 1,
    "unpromised": {"files_zeros": 2},
}


def test_cuts_are_added_up_and_those_with_a_loss_are_counted() -> None:
    found = crash._Found()
    for lost in (0, 3, 1):
        found.add({**JUDGED, "syncs_lost": lost})
    assert found.with_loss == 2
    assert found.judged == {"syncs_checked": 15, "syncs_lost": 4, "files_zeros": 3, "unpromised.files_zeros": 6}


@pytest.mark.parametrize(("cuts", "bound"), [(100, "3 %"), (201, "1.49 %"), (1, "100 %")])
def test_no_loss_in_n_cuts_is_told_as_a_bound_of_three_in_n(cuts: int, bound: str) -> None:
    # Hanley and Lippman-Hand's own example: none in 100 is at most 3 in 100.
    found = crash._Found(cuts=cuts)
    found.add(JUDGED)
    (note,) = crash._notes(found)
    assert f"in {cuts} power cut" in note
    assert f"fewer than {bound} of such cuts" in note


def test_where_something_was_lost_nothing_is_said_of_none() -> None:
    found = crash._Found(cuts=100)
    found.add({**JUDGED, "syncs_lost": 1})
    assert crash._notes(found) == []


@pytest.mark.parametrize("ends", [{}, {"duration": "1 s", "steps": 10}])
def test_either_a_time_or_a_number_of_steps_ends_the_writing(ends: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="what ends the writing"):
        CrashOptions.model_validate({"cuts": 1, **ends})


def test_a_writer_that_failed_is_told_by_its_own_words(host: LocalHost, core: str, workspace: Path) -> None:
    runner = PlainRunner(host, core, workspace / "drive")
    workload = CrashWorkload(CrashOptions.model_validate({"cuts": 1, "steps": 1}))
    endpoint = Endpoint(
        backend="recorded-files", settings={"folder": "/nowhere", "point": "/nowhere", "log": "/nowhere"}
    )
    with pytest.raises(RunError, match="crash-write ended with status 1: dyno-core: writing: "):
        workload.drive(runner, endpoint, seed=1)


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (0.0, "^writing, and 0 of 3 cuts, took longer than the study allows$"),
        (0.5, r"^`.*/stuck cut-power .*` did not end within 0\.\d+ s$"),
    ],
)
def test_cuts_end_where_the_studys_limit_of_driving_does(
    limit: float, why: str, host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each cut had two minutes, whatever the study said: a hundred of them that hang would have had hours.
    stuck = workspace / "stuck"
    stuck.write_text("#!/bin/sh\nexec sleep 1000\n")
    stuck.chmod(0o755)
    runner = PlainRunner(host, str(stuck), workspace / "drive")
    runner.limit = limit
    wrote = {"elapsed_ns": 10**9, "operations": {}, "syncs": 0, "began_point": 0, "ended_point": 9}
    monkeypatch.setattr(CrashWorkload, "_write", lambda *_args: (wrote, True))
    settings = {"folder": str(workspace / "live"), "log": "none", "spec": {"size": "16 MiB"}, "device": os.devnull}
    workload = CrashWorkload(CrashOptions.model_validate({"cuts": 3, "steps": 1}))
    begun = time.monotonic()
    with pytest.raises(RunError, match=why):
        workload.drive(runner, Endpoint("recorded-files", settings), seed=1)
    assert time.monotonic() - begun < 10


@pytest.fixture(scope="session")
def core() -> str:
    from dyno.hosts.local import core_binary

    return core_binary()
