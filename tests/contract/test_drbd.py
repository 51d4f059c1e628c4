"""DRBD between two virtual machines, for real. Slow where software emulates CPUs: `make test-drbd` runs it apart."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from dyno.systems.base import Place
from dyno.systems.disk_cluster import DiskCluster, other_of
from dyno.systems.drbd import DrbdSystem
from tests.contract import disk_clusters

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="nodes have networks of their own, which takes root"),
    pytest.mark.timeout(1800),
]

LIMIT_S = 600.0  # what the pair may take to form under emulation
OF_THE_STUDY = {
    "protocol": "C", "max_buffers": 8000, "max_epoch_size": 8000, "sndbuf_size": 0, "al_extents": 3389,
    "disk_barrier": False, "disk_flushes": False, "unplug_watermark": 16,
}  # fmt: skip
# What is done to it, and whether another node has the server then.
ENDS: list[tuple[dict[str, Any], bool]] = [({"kind": "kill"}, True), ({"kind": "kill", "node": "secondary"}, False)]
OTHERS: list[tuple[dict[str, Any], bool]] = [
    ({"kind": "cut"}, True),
    ({"kind": "freeze"}, True),
    ({"kind": "shutdown"}, True),
    ({"kind": "cut-one-way"}, True),
    ({"kind": "cut-client"}, False),
    ({"kind": "slow-network"}, False),
    ({"kind": "slow-disk"}, False),
]


@pytest.mark.parametrize(
    ("promotion", "faults"),
    [("pacemaker", ENDS), ("pacemaker", OTHERS), ("agent", ENDS), ("agent", OTHERS)],
    ids=["pacemaker", "pacemaker, other faults", "agent", "agent, other faults"],
)
def test_it_forms_bears_faults_loses_nothing_and_leaves_nothing(
    place: Place, workspace: Path, promotion: str, faults: list[tuple[dict[str, Any], bool]]
) -> None:
    system, snapshot = disk_clusters.loaded(DrbdSystem, {"promotion": promotion, **OF_THE_STUDY}, place)
    with disk_clusters.formed(system, snapshot, LIMIT_S) as endpoint:
        disk_clusters.forms_and_says_how_it_is(system, endpoint)
        effective = system.settings()
        assert (effective["drbd.max-buffers"], effective["drbd.al-extents"]) == (8000, 3389)
        assert (effective["drbd.protocol"], effective["drbd.write-ordering"]) == ("C", "drain")
        assert any("unplug_watermark of DRBD can change nothing here" in note for note in system.notes())
        assert system.facts()["acceleration"] in ("kvm", "tcg")
        for fault, moves in faults:
            writer = disk_clusters.bears(system, endpoint, fault, LIMIT_S, moves=moves)
            assert set(writer.acknowledged) <= disk_clusters.kept(system)
            if promotion == "pacemaker":
                has_what_pacemaker_gave_it(system)
        disk_clusters.is_full_and_is_not(system)
    system.check(60.0)
    disk_clusters.leaves_nothing(workspace)


def has_what_pacemaker_gave_it(system: DiskCluster[Any]) -> None:
    """The node with the server has it, its disk, file system and address from Pacemaker, which knows the other too."""
    assert isinstance(system, DrbdSystem)
    primary = system.primary()
    assert primary is not None
    said = system._vms[primary].agent.ask("crm_mon --one-shot --inactive; ip -4 address show dev eth0", 60.0)
    assert f" Promoted: [ {primary} ]" in said, said
    assert f"Unpromoted: [ {other_of(primary)} ]" in said, said
    assert re.findall(r"(\w+)\t\(ocf:.*\):\s+Started (\w+)", said) == [
        (name, primary) for name in ("files", "server", "address")
    ]
    assert f" {system.virtual}/24 " in said


def test_protocol_a_is_behind_where_the_way_to_the_other_node_is_long(place: Place) -> None:
    """And loses rows that were acknowledged, which protocol C never does."""
    system, snapshot = disk_clusters.loaded(
        DrbdSystem, {"protocol": "A", "delay": "200 ms", "promotion": "agent"}, place
    )
    with disk_clusters.formed(system, snapshot, LIMIT_S) as endpoint:
        writer = disk_clusters.bears(system, endpoint, {"kind": "kill"}, LIMIT_S, moves=True)
        assert set(writer.acknowledged) - disk_clusters.kept(system)


def test_a_killed_dyno_leaves_nothing(tmp_path: Path) -> None:
    disk_clusters.leaves_nothing_when_killed("drbd", tmp_path, LIMIT_S)
