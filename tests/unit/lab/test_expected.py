"""What a plan takes runs to last, and which faults leave clients no time to see the end of: hints, and no more."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dyno.study
from dyno.lab import Rooms
from dyno.lab.expected import AROUND_S, expected, too_late_to_be_seen
from dyno.model.run import Slot, Step, StepTime
from dyno.model.study import Study
from tests.making import make_record

TEXT = """\
study: failover
question: What does it cost?
factors:
  solution:
    group: {system.kind: group-replication}
    async: {system.kind: mysql-replication, system.config: {mode: async}}
system: {config: {innodb_buffer_pool_size: 64M}}
workload: {kind: ledger, threads: 4, duration: 30 s, rate: 50}
faults: {kill: {at: [2 s, 6 s], lasts: 10 s}}
"""


@pytest.fixture(scope="module")
def rooms() -> Rooms:
    return Rooms.open()


def load(folder: Path, rooms: Rooms, text: str = TEXT) -> Study:
    path = folder / "study.yaml"
    path.write_text(text)
    return dyno.study.load(path, rooms.kinds())


def test_forming_and_what_is_left_of_mending_when_the_driver_has_ended_count_too(tmp_path: Path, rooms: Rooms) -> None:
    """It was drives alone: a study planned for an hour took two."""
    found = expected(rooms, load(tmp_path, rooms))
    group, replication = rooms.systems["group-replication"], rooms.systems["mysql-replication"]
    for cell, kind in ((0, group), (1, replication)):
        forms, rejoins = (getattr(kind, name) for name in ("forms_in_s", "rejoins_in_s"))
        # Mended 14 s after it began, on average, of 30.
        assert found.seconds[cell] == pytest.approx(30 + forms + AROUND_S["cluster"] + max(rejoins - 16, 0))
    assert found.basis.startswith("drives, and what is usually around a run")


def test_what_was_around_the_runs_of_an_earlier_study_is_taken_where_it_has_all_cells(
    tmp_path: Path, rooms: Rooms
) -> None:
    study = load(tmp_path, rooms)
    steps = (
        StepTime(step=Step.PREPARE, seconds=100.0),
        StepTime(step=Step.DRIVE, seconds=30.0),
        StepTime(step=Step.MEND, seconds=12.0),
    )

    def ran(*cells: int) -> Any:
        runs = [
            make_record(number + 1, Slot(cell=cell, block=0), seconds=175.0 + cell, steps=steps)
            .model_copy(update={"levels": study.cells[cell].levels})
            for number, cell in enumerate(cells)
        ]  # fmt: skip
        return SimpleNamespace(runs=runs, folder=Path("results/failover/1"))

    found = expected(rooms, study, [ran(0, 1), ran(0)])
    assert found.seconds == {0: pytest.approx(30 + 45), 1: pytest.approx(30 + 46)}
    assert found.basis == "drives, and what was around each run in results/failover/1"


def test_a_fault_after_which_nobody_sees_the_cluster_whole_is_told_with_what_would_do(
    tmp_path: Path, rooms: Rooms
) -> None:
    told = list(too_late_to_be_seen(rooms, load(tmp_path, rooms)))
    assert len(told) == 2, "of each kind of cluster once"
    assert told[0].startswith(
        "faults.kill: group-replication may be mended 16 s into the measured part and takes about"
    )
    assert told[0].endswith("is then not known; raise workload.duration until that is above 38 s")
    long = load(tmp_path, rooms, TEXT.replace("30 s", "60 s"))
    assert list(too_late_to_be_seen(rooms, long)) == []
    open_ended = load(tmp_path, rooms, TEXT.replace(", lasts: 10 s", ""))
    assert list(too_late_to_be_seen(rooms, open_ended)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "system.kind: group-replication",
            "system.kind: group-replication, system.config: {mode: async}",
            "5: system.config.mode: group-replication has no such option: leave it out; mysql-replication has it",
        ),
        (
            "innodb_buffer_pool_size: 64M",
            "innodb_buffer_pool_size: 64 MiB",
            "7: system.config.innodb_buffer_pool_size: the server would not take '64 MiB': write 64M",
        ),
        (
            "innodb_buffer_pool_size: 64M",
            "innodb_buffer_pool_size: 64M, node_memory: 128 MiB",
            "7: system.config.node_memory: 128 MiB are too little for a server, which takes at least 256 MiB besides "
            "its buffer pool: write 320 MiB or more",
        ),
    ],
    ids=["an option of others", "a unit of dyno's", "too little memory"],
)
def test_what_a_server_would_end_by_is_told_before_it_is_started(
    old: str, new: str, said: str, tmp_path: Path, rooms: Rooms
) -> None:
    with pytest.raises(dyno.study.StudyError) as error:
        load(tmp_path, rooms, TEXT.replace(old, new))
    assert said in str(error.value)
