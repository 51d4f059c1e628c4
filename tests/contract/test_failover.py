"""An outage of known length is found again, and a server that is killed under load is struck, mended and audited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dyno.analysis import analyse
from dyno.hosts import UndoJournal
from dyno.hosts.local import LocalHost, core_binary
from dyno.lab import Interrupt, Lab, Listener, Rooms
from dyno.lab.faults import outage_of
from dyno.model.endpoint import Endpoint
from dyno.model.faults import Fault, FaultPlan, Struck
from dyno.model.run import Outcome
from dyno.model.study import Cell, KindSpec, Study
from dyno.store import Results, new_results
from dyno.workloads.driving import drive
from dyno.workloads.ycsb import YcsbOptions
from tests.contract.conftest import PlainRunner
from tests.making import ANY_DISK, make_study, scratch_in
from tests.one_node import OneNode

S = 1_000_000_000


def test_the_length_of_a_planted_stop_is_found_by_the_attempts(
    runners: Callable[[], PlainRunner],
) -> None:
    """The store stands still for 400 ms from 500 ms on: arithmetic says what whoever asks must see."""
    endpoint = Endpoint("null", {"stall": {"at_s": 0.5, "for_s": 0.4}})
    options = YcsbOptions.model_validate(
        {"mix": "c", "records": 10, "threads": 4, "rate": 500, "duration": "2500 ms", "interval": "100 ms"}
    )
    workload = {"kind": "ycsb", "records": 10, "proportions": {"read": 1.0}}
    found = drive(runners(), endpoint, workload, options, 1, through_fault=True)
    assert found.measured_from_ns is not None
    struck = Struck("freeze", ("n1",), found.measured_from_ns + round(0.45 * S))
    said = outage_of(found, struck, None, late_s=0.1)
    assert said is not None
    assert said.interrupted
    assert said.outage_s is not None
    assert said.first_success_s is not None
    # A request every 2 ms: the last before the stop ended up to 2 ms before it. Where nothing else is done both are as
    # long to a millisecond; clients that have to wait for a CPU see it end later, and never earlier.
    assert said.outage_s >= 0.397
    assert said.first_success_s >= 0.4495, "0.9 s is 0.45 s after 0.45 s"
    assert said.failed == 0
    # Of 200 requests that were due in the stop, those of its first 300 ms waited for longer than 100 ms.
    assert said.late >= 125


def kill_study(budget: str | None = None, **workload: Any) -> Study:
    options = {"threads": 4, "rate": 200, "duration": "12 s", "reconnect": {"first": "1 ms", "most": "10 ms"}}
    given = {**options, "limits": {"connect": "1 s", "read": "2 s", "write": "2 s"}, **workload}
    plan = FaultPlan(fault=Fault(kind="kill", lasts=0.5), from_s=1.5, to_s=2.0, late_s=0.5, whole_s=30.0)
    study = make_study({"fault": ("kill",)}, min=2, max=2, retries=0, of="first_success", budget=budget)
    cell = Cell(
        index=0,
        levels={"fault": "kill"},
        host=study.cells[0].host,
        system=KindSpec(kind=OneNode.kind, options={"innodb_log_file_size": "8M"}),
        workload=KindSpec(kind="ledger", options=given),
        fault=plan,
    )
    assert cell.host.require == ANY_DISK
    return study.model_copy(update={"cells": (cell,)})


def carried_out(study: Study, root: Path) -> Results:
    results = new_results(root / "results", study, b"", {"format": 1}, scratch_in(root / "results"))
    rooms = Rooms.open()
    rooms.systems[OneNode.kind] = OneNode
    with UndoJournal() as journal:
        results.lock()
        try:
            Lab(
                results,
                LocalHost(journal),
                rooms,
                core=core_binary(),
                workspace=root / f"lab-{journal.token}",
                interrupt=Interrupt(),
                listener=Listener(),
            ).run()
        finally:
            results.unlock()
    return Results(results.folder)


def test_a_server_that_is_killed_under_load_comes_back_and_every_acknowledged_row_is_there(workspace: Path) -> None:
    study = kill_study(stale_reads={"rate": 50, "give_up": "200 ms"})
    results = carried_out(study, workspace)
    assert [(run.outcome, run.cause) for run in results.runs] == [(Outcome.OK, None)] * 2
    for run in results.runs:
        assert run.faulted is not None
        assert run.measured_from_ns is not None
        struck_s = (run.faulted.at_ns - run.measured_from_ns) / S
        assert struck_s >= 1.5
        assert run.faulted.interrupted
        assert run.responses["outage"] >= 0.5, "it was let lie for half a second"
        assert run.responses["first_success"] >= run.responses["outage"], (
            "the longest gap begins with the fault at most"
        )
        assert run.faulted.resolution_s is not None
        assert run.responses["requests_failed"] > 0
        assert run.responses["redundancy"] >= run.responses["rejoin"] > 0
        assert run.responses["rows_lost"] == 0
        assert run.responses["stale_reads"] == 0
        audits = run.faulted.audits
        assert audits.keys() == {"clients", "n1"}
        assert audits["clients"] == audits["n1"]
        assert audits["clients"].acknowledged > 200
    (told,) = analyse(results.study, results.runs, ended=results.ended).failovers
    assert (told.runs, told.audited, told.with_loss) == (2, 2, 0)
    assert told.loss_bound == pytest.approx(1 - 0.05**0.5), "the exact one, of two runs without a loss"
    assert "kill of the primary, 2 runs: median outage" in told.sentence


def test_rows_that_go_missing_are_all_found(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that comes back without what it had acknowledged last, as a replica does that was promoted too early."""
    mend = OneNode.mend

    def forgetful(self: OneNode, struck: Struck, limit: float) -> None:
        mend(self, struck, limit)
        self.forget("DELETE FROM ledger WHERE client = 1 AND number IN (5, 6, 7)")
        self.forget("UPDATE ledger SET payload = 'x' WHERE client = 2 AND number = 4")

    monkeypatch.setattr(OneNode, "mend", forgetful)
    run = carried_out(kill_study(budget="1 s", duration="12 s"), workspace).runs[0]
    assert (run.outcome, run.cause) == (Outcome.OK, None)
    assert run.responses["rows_lost"] == 3
    assert run.responses["rows_altered"] == 1
    assert run.responses["rows_duplicated"] == 0
