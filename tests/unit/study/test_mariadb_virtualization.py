"""The study of MariaDB in containers: each of its scales is a plan, and what is changed amiss is told by its key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import dyno.study
from dyno.lab import Rooms
from dyno.model.study import Kinds, Study
from dyno.model.units import parse_size
from dyno.study import StudyError

FILE = Path(__file__).parents[3] / "studies" / "mariadb-virtualization.yaml"
ROW_BYTES = 1230  # of its table on the disk, a row of 10 x 100 bytes: seen with 300,000 of them
SERVER_BYTES = 100 * 2**20  # of MariaDB 10.11 besides its buffer pool: seen as anonymous memory


@pytest.fixture(scope="module")
def kinds() -> Kinds:
    return replace(Rooms.open().kinds(), deployments=("native", "container-layered", "container-volume"))


def plan(kinds: Kinds, scale: str = "default", *overrides: str) -> Study:
    return dyno.study.load(FILE, kinds, scale=scale, overrides=overrides)


@pytest.mark.parametrize(("scale", "cells"), [("default", 54), ("smoke", 12), ("published", 27)])
def test_each_scale_has_its_cells_all_on_one_machine(scale: str, cells: int, kinds: Kinds) -> None:
    study = plan(kinds, scale)
    assert len(study.cells) == cells
    assert len({cell.host.model_dump_json() for cell in study.cells}) == 1
    assert {cell.deployment for cell in study.cells} == {"native", "container-layered", "container-volume"}
    for other in study.cells:
        native = study.cells[other.index % (cells // 3)]
        assert (other.system, other.workload) == (native.system, native.workload)


def test_at_the_default_scale_data_and_pool_are_more_than_the_machine_has(kinds: Kinds) -> None:
    cell = plan(kinds).cells[0]
    pool = parse_size(str(cell.system.options["innodb_buffer_pool_size"]) + "iB")
    table = cell.workload.options["records"] * ROW_BYTES
    memory, room = cell.host.machine.memory, cell.host.file_system
    assert memory is not None
    assert pool + SERVER_BYTES < memory < pool + SERVER_BYTES + table
    assert room is not None
    assert 3 * table < room.size


def test_the_publication_had_four_times_its_pool_and_fitted_its_page_cache(kinds: Kinds) -> None:
    cell = plan(kinds, "published").cells[0]
    records = cell.workload.options["records"]
    assert (records, cell.workload.options["operations"], cell.workload.options["duration"]) == (500_000, 500_000, None)
    memory = cell.host.machine.memory
    assert memory is not None
    assert 4 * 128 * 2**20 < records * ROW_BYTES < memory


def test_every_finding_of_the_publication_is_there_and_most_can_be_judged(kinds: Kinds) -> None:
    published = plan(kinds).published
    assert published is not None
    assert [claim.id for claim in published.findings if claim.predicate is None] == [
        "layered-more-instructions",
        "native-most-misses-yet-fastest",
    ]
    assert len(published.findings) == 13
    (table,) = published.tables
    assert [figure.levels["flush_method"] for figure in table.figures] == ["fsync"] * 3


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("system.deployment=native", r"factors.deployment: factor deployment is never used"),
        (
            "factors.deployment=[native]",
            r"replicates.precision_of: ratio needs a compared factor of at least two levels",
        ),
        ("factors.deployment=[native, docker]", r"system.deployment: unknown deployment 'docker'"),
        ("host.sysctl.vm.Dirty=1", r"'vm.Dirty' is no kernel setting's name"),
        ("host.machine.memory=2", r"2 has no unit"),
        ("host.file_system={kind: xfs, size: 299 MiB}", r"xfs needs 300 MiB at least"),
        ("host.file_system.kind=zfs", r"should be one of ext4, xfs, btrfs; not 'zfs'"),
        ("workload.warmup=1 s", r"host.caches: a warm-up would fill the caches that are to be cold"),
    ],
)
def test_what_is_set_amiss_is_told(override: str, message: str, kinds: Kinds) -> None:
    with pytest.raises(StudyError, match=message):
        plan(kinds, "default", override)


def test_it_runs_with_one_deployment_less_and_another_engine(kinds: Kinds) -> None:
    levels = "factors.deployment=[native, container-volume]"
    study = plan(kinds, "smoke", levels, "host.containers=podman", "host.file_system.kind=xfs")
    assert len(study.cells) == 8
