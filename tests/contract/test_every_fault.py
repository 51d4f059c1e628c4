"""Every kind of fault in every kind of cluster, one after the other in one life: it takes twenty minutes."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dyno import sql
from dyno.model.base import RunError
from dyno.model.faults import Fault
from dyno.systems.base import Place
from tests.contract.test_clusters import GROUP, LIMIT_S, MARIADB, MYSQL, Writer, formed, make, rows
from tests.making import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="nodes have networks of their own, which takes root"),
    pytest.mark.timeout(1200),
]

DISK = {"node_disk": "1 GiB"}
CLUSTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "group-replication": ("group-replication", {**GROUP, **DISK}),
    "galera": ("galera", {**MARIADB, **DISK, "provider": {"evs.suspect_timeout": "PT3S"}}),
    "async": ("mysql-replication", {**MYSQL, **DISK}),
    "semi-sync": ("mysql-replication", {**MYSQL, **DISK, "mode": "semi-sync"}),
}
FAULTS: list[dict[str, str]] = [
    {"kind": "kill"},
    {"kind": "freeze"},
    {"kind": "shutdown"},
    {"kind": "cut"},
    {"kind": "cut-one-way"},
    {"kind": "cut-client"},
    {"kind": "slow-network"},
    {"kind": "slow-disk"},
    {"kind": "disk-full"},
    {"kind": "kill", "node": "secondary"},
    {"kind": "freeze", "node": "secondary"},
    {"kind": "cut", "node": "secondary"},
]
FAILS_OVER = {"kill", "freeze", "shutdown", "cut", "cut-one-way"}
"""What every cluster goes on after while it lasts. Of the others some have it wait until it is mended."""
UNNOTICED = {("group-replication", "cut-client"), ("async", "cut-client"), ("semi-sync", "cut-client")}
"""Whoever decides does not look from where the clients are: nothing is written until it is mended."""
SLOW = {"slow-network": 0.5, "slow-disk": 0.5}
"""The share of its pace that a cluster keeps at the most."""
LASTS_S = 30.0
SEEN_S = 3.0


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_fault_is_borne_and_mended(name: str, place: Place, workspace: Path) -> None:
    kind, options = CLUSTERS[name]
    system = make(kind, place, options)
    try:
        endpoint, _ = formed(system, workspace)
        for number, fault in enumerate(FAULTS):
            said = " of the ".join(fault.values())
            with Writer(endpoint) as writer:
                until(lambda writer=writer: len(writer.acknowledged) > 20, LIMIT_S)  # type: ignore[misc]
                usual = pace(writer, time.monotonic(), SEEN_S)
                begun = time.monotonic()
                struck = system.strike(Fault.model_validate(fault), random.Random(number))
                goes_on = waited_for(writer, begun, 3.0 if (name, fault["kind"]) in UNNOTICED else LASTS_S)
                if fault["kind"] in FAILS_OVER:
                    assert goes_on, f"nothing was written within {LASTS_S:g} s of {said}"
                if (name, fault["kind"]) in UNNOTICED:
                    assert not goes_on, said
                if fault["kind"] in SLOW:
                    slowed = pace(writer, begun + 0.5, SEEN_S)
                    print(f"{name}, {said}: {slowed:.0f} rows/s of {usual:.0f}")
                    assert slowed < SLOW[fault["kind"]] * usual, said
                mending = time.monotonic()
                system.mend(struck, LIMIT_S)
                until(system.whole, LIMIT_S)
                whole = time.monotonic() - mending
            until(system.whole, LIMIT_S)
            kept = [rows(endpoint.by(way), "written") for way in system.names]
            assert kept[1:] == kept[:-1], f"nodes differ after {said}"
            lost = writer.acknowledged.keys() - kept[0]
            print(f"{name}, {said}: {len(lost)} of {len(writer.acknowledged)} rows lost, whole after {whole:.1f} s")
            if name != "async":
                assert not lost, said
            with sql.connect(endpoint, limit=LIMIT_S) as connection:
                connection.rows("DELETE FROM written")
            until(system.whole, LIMIT_S)
        system.stop(LIMIT_S)
        system.check(LIMIT_S)
    finally:
        with suppress(RunError):
            system.destroy()


def waited_for(writer: Writer, since: float, limit: float) -> bool:
    """Whether rows are written again before the limit, of those that were sent after the fault took hold."""
    with suppress(AssertionError):
        until(lambda: len(writer.since(since + 0.5)) > 5, limit)
        return True
    return False


def pace(writer: Writer, since: float, seconds: float) -> float:
    """Rows a second that are acknowledged from a moment on, seen for so long."""
    time.sleep(max(since + seconds - time.monotonic(), 0.0))
    return len(writer.since(since)) / (time.monotonic() - since)
