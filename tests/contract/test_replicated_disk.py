"""The replicated disk without a kernel module, for real: real daemons, a real server, real faults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dyno.systems.base import Place
from dyno.systems.replicated_disk import ReplicatedDiskSystem
from tests.contract import disk_clusters

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="nodes have networks of their own, which takes root")

LIMIT_S = 60.0
# What is done to it, and whether another node has the server then.
USUAL: list[tuple[dict[str, Any], bool]] = [
    ({"kind": "kill"}, True),
    ({"kind": "kill", "node": "secondary"}, False),
    ({"kind": "cut"}, True),
]
RARE: list[tuple[dict[str, Any], bool]] = [
    ({"kind": "freeze"}, True),
    ({"kind": "shutdown"}, True),
    ({"kind": "cut", "node": "secondary"}, False),
    ({"kind": "freeze", "node": "secondary"}, False),
    ({"kind": "cut-client"}, False),
    ({"kind": "cut-one-way"}, True),
    ({"kind": "slow-network", "node": "secondary"}, False),
    ({"kind": "slow-network"}, False),
    ({"kind": "slow-disk"}, False),
]


def lives_through(faults: list[tuple[dict[str, Any], bool]], place: Place, workspace: Path) -> None:
    system, snapshot = disk_clusters.loaded(ReplicatedDiskSystem, {"protocol": "C"}, place)
    with disk_clusters.formed(system, snapshot, LIMIT_S) as endpoint:
        disk_clusters.forms_and_says_how_it_is(system, endpoint)
        assert any("stands in for DRBD, and is not it" in note for note in system.notes())
        for fault, moves in faults:
            writer = disk_clusters.bears(system, endpoint, fault, LIMIT_S, moves=moves)
            assert set(writer.acknowledged) <= disk_clusters.kept(system)
        disk_clusters.is_full_and_is_not(system)
    system.check(LIMIT_S)
    disk_clusters.leaves_nothing(workspace)


def test_it_forms_bears_faults_loses_nothing_and_leaves_nothing(place: Place, workspace: Path) -> None:
    lives_through(USUAL, place, workspace)


@pytest.mark.apart
@pytest.mark.timeout(900)
def test_it_bears_every_other_fault(place: Place, workspace: Path) -> None:
    lives_through(RARE, place, workspace)


def test_a_killed_dyno_leaves_nothing(tmp_path: Path) -> None:
    disk_clusters.leaves_nothing_when_killed("replicated-disk", tmp_path, LIMIT_S)
