"""The workload tsbs without a server: its options, what it refuses, what it asks for, what it makes of counts."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads import tsbs_data, tsbs_figures, tsbs_output, tsbs_stores
from dyno.workloads.base import Measured
from dyno.workloads.foreign import Tool
from dyno.workloads.tsbs import TsbsWorkload
from dyno.workloads.tsbs_options import TsbsOptions, parsed

QUESTDB = Endpoint("questdb", {"host": "127.0.0.1", "port": 1, "pg_port": 2, "ilp_port": 3})
ASKED = Endpoint("questdb", {"host": "127.0.0.1", "port": 1})
CRATEDB = Endpoint(
    "cratedb",
    {"host": "127.0.0.1", "port": 1, "pg_port": 2},
    others={"n1": {"host": "127.0.0.1", "port": 1}, "n2": {"host": "127.0.0.2", "port": 1}},
)


def workload(**given: Any) -> TsbsWorkload:
    return TsbsWorkload(TsbsOptions(**given))


def test_times_are_read_as_yaml_gives_them() -> None:
    for given in ("2016-02-03", date(2016, 2, 3), datetime(2016, 2, 3), "2016-02-03T00:00:00Z"):
        assert TsbsOptions(end=given).end == "2016-02-03T00:00:00Z"  # type: ignore[arg-type]
    east = datetime(2016, 2, 3, 2, tzinfo=timezone(timedelta(hours=2)))
    assert TsbsOptions(end=east).end == "2016-02-03T00:00:00Z"  # type: ignore[arg-type]


def test_the_time_of_the_rows_is_given_by_its_end_or_its_length_and_is_a_day() -> None:
    assert TsbsOptions().until == parsed("2016-01-02T00:00:00Z")
    assert TsbsOptions(length="60 d").until == TsbsOptions(end="2016-03-01").until  # type: ignore[arg-type]
    assert TsbsOptions(start="2016-01-31", length="12 h").until == parsed("2016-01-31T12:00:00Z")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"end": "2015-01-01"}, "is not behind start"),
        ({"end": "tomorrow"}, "is no time in UTC"),
        ({"end": "2016-02-03", "length": "2 d"}, "stands beside end"),
        ({"start": "9999-12-31", "length": "2 d"}, "reaches beyond the year 9999"),
        ({"loader": "tsbs", "rate": 5}, "is of dyno's loader alone"),
        ({"loader": "tsbs", "order": "heavy"}, "is of dyno's loader alone"),
        ({"loader": "tsbs", "duplicates": "10%"}, "is of dyno's loader alone"),
        ({"action": "queries"}, "are of actions queries and mixed"),
        ({"queries": ["lastpoint"]}, "are of actions queries and mixed"),
        ({"action": "mixed", "queries": ["lastpoint"], "mixed_end": "2016-01-03"}, "action mixed needs one"),
        ({"mixed_end": "2016-01-03"}, "is of action mixed alone"),
        ({"action": "queries", "queries": ["lastpoints"]}, "lastpoint"),
        ({"scale": 0}, "greater than or equal to 1"),
    ],
)
def test_what_does_not_go_together_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(told)):
        TsbsOptions(**given)


def test_what_tsbs_has_no_programs_or_no_text_for_is_refused() -> None:
    assert workload().refuses("duckdb", None) is None
    for backend, duplicates, once in (
        ("questdb", "5%", True),
        ("postgresql", "5%", False),
        ("postgresql", "0%", True),
    ):
        assert workload(duplicates=duplicates).refuses_tables(backend, {"deduplicate": once}) is None
    assert "leave duplicates out" in str(workload(duplicates="5%").refuses_tables("duckdb", {"deduplicate": True}))
    assert "no programs for duckdb" in str(workload(loader="tsbs").refuses("duckdb", None))
    asked = {"action": "queries", "queries": ["double-groupby-5"]}
    assert "refuses what TSBS asks for double-groupby-5" in str(workload(**asked).refuses("questdb", "tcp"))
    assert workload(**asked).refuses("cratedb", "tcp") is None
    assert "write loader: tsbs" in str(workload(**asked).refuses("postgresql", "tcp"))


def test_a_dead_setting_is_said_and_a_live_one_is_not() -> None:
    notes = " ".join(workload(loader="tsbs", hash_workers=True)._notes(QUESTDB))
    assert "hash_workers is set back to false" in notes
    assert "to be taken as one" in notes
    assert "shards is always 5" in " ".join(workload(loader="tsbs")._notes(CRATEDB))
    assert "hash_workers" not in " ".join(workload(loader="dyno")._notes(QUESTDB))


def test_orders_are_delays_of_at_least_some_intervals() -> None:
    def delayed(**given: Any) -> Any:
        made = workload(**given)
        return made._job(made._rows("questdb"), {}, 1).get("delayed")

    assert delayed() is None
    assert delayed(order="light") == {"share": 0.01, "by_s": 60.0}
    assert delayed(order="light", interval="10 min") == {"share": 0.01, "by_s": 1200.0}
    assert delayed(order="heavy") == {"share": 0.2, "by_s": 3600.0}
    assert delayed(order="heavy", interval="10 min") == {"share": 0.2, "by_s": 12000.0}


def test_rows_of_other_parameters_have_another_place_and_those_of_the_same_one() -> None:
    def folder(**given: Any) -> Any:
        return workload(**given)._rows("questdb").folder()

    assert folder() == folder(workers=4, batch=5, rate=7)
    different = {folder(), folder(scale=3), folder(seed=1), folder(end="2016-01-03"), folder(interval="20 s")}
    assert len(different) == 5
    assert workload()._rows("cratedb").folder() not in different


def test_jobs_name_each_node_and_the_columns_of_the_store() -> None:
    assert tsbs_stores.backend_of_job(QUESTDB, "ilp-tcp")["addresses"] == [{"host": "127.0.0.1", "port": 3}]
    assert tsbs_stores.backend_of_job(QUESTDB, "ilp-http")["addresses"] == [{"host": "127.0.0.1", "port": 1}]
    job = tsbs_stores.backend_of_job(CRATEDB, "ilp-http")
    assert job["addresses"] == [{"host": "127.0.0.1", "port": 1}, {"host": "127.0.0.2", "port": 1}]
    assert job["columns"] == {"time": "ts", "tags": "tags", "keyed": False}
    keyed = replace(CRATEDB, tables={"deduplicate": True})
    assert tsbs_stores.backend_of_job(keyed, "ilp-http")["columns"]["keyed"] is True


def told(**counts: Any) -> dict[str, Any]:
    of = {"rows": 100, "sent": 100, "acknowledged": 100, "in_doubt": 0, "resent": 0, **counts}
    of.setdefault("different", of["sent"])
    return {"ingest": {"acknowledges": True, "duplicated": of["sent"] - of["different"], "tables": {"cpu": of}}}


def doubtful(rows: int) -> tsbs_figures.Doubtful:
    return {"cpu": {("host_0", moment) for moment in range(rows)}} if rows else {}


@pytest.mark.parametrize(
    ("counts", "doubtful_rows", "landed", "present", "different", "expected"),
    [
        ({}, 0, 0, 100, 100, {}),
        ({}, 0, 0, 90, 90, {"lost": 10}),
        ({"sent": 80, "acknowledged": 60, "in_doubt": 20}, 20, 0, 60, 60, {}),
        ({"sent": 80, "acknowledged": 60, "in_doubt": 20}, 20, 20, 80, 80, {"phantom": 20}),
        ({"sent": 80, "acknowledged": 60, "in_doubt": 20}, 20, 0, 55, 55, {"lost": 5}),
        # As many are there as were acknowledged, and of them twenty were in doubt: they stand for none that is absent.
        ({"sent": 80, "acknowledged": 60, "in_doubt": 20}, 20, 20, 60, 60, {"lost": 20, "phantom": 20}),
        ({"sent": 100, "acknowledged": 100, "resent": 10}, 0, 0, 110, 100, {"duplicated": 10}),
        # As many are there as were acknowledged, and ten of them twice: they stand for none that is absent.
        ({"sent": 100, "acknowledged": 100, "resent": 10}, 0, 0, 100, 90, {"lost": 10}),
        # An interrupted load in which rows came twice, to a store that keeps both and to one that keeps one.
        ({"sent": 60, "acknowledged": 60, "different": 50}, 0, 0, 60, 50, {}),
        ({"sent": 60, "acknowledged": 60, "different": 50}, 0, 0, 50, 50, {}),
        ({"sent": 60, "acknowledged": 60, "different": 50}, 0, 0, 48, 48, {"lost": 2}),
    ],
)
def test_rows_are_counted_by_what_became_of_them(
    counts: dict[str, int], doubtful_rows: int, landed: int, present: int, different: int, expected: dict[str, int]
) -> None:
    found = tsbs_figures.audit(
        told(**counts),
        None,
        doubtful(doubtful_rows),
        lambda _table: present,
        lambda _table: different,
        lambda _table, rows: min(landed, len(rows)),
    )
    for name in ("lost", "phantom", "duplicated"):
        assert found[f"ledger.{name}"] == expected.get(name, 0), name
    assert found["ledger.present"] == present


@pytest.mark.parametrize(("counts", "deduplicate", "waited_for"), [
    ({}, False, 100),
    ({"sent": 80, "acknowledged": 60, "in_doubt": 20}, False, 60),
    ({"sent": 110, "acknowledged": 110}, True, 100),
    ({"sent": 110, "acknowledged": 90, "in_doubt": 20}, True, 80),
])  # fmt: skip
def test_rows_that_may_never_have_come_are_not_waited_for(
    counts: dict[str, int], deduplicate: bool, waited_for: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load waited for its whole limit, and then failed."""
    asked: list[int] = []
    monkeypatch.setattr(tsbs_figures, "visible", lambda _endpoint, _table, rows, _limit: asked.append(rows))
    endpoint = replace(QUESTDB, tables={"deduplicate": deduplicate})
    known = {"tables": {"cpu": {"rows": 100}}}
    tsbs_figures.wait_until_visible(endpoint, {**told(**counts), "measured_from_ns": "0"}, known, 5.0)
    assert asked == [waited_for]


@pytest.mark.parametrize("endpoint", [QUESTDB, Endpoint("duckdb", {"socket": "/nowhere"})])
def test_a_load_that_is_interrupted_waits_for_nothing(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited until the run's limit for rows that were never sent: for minutes after Ctrl-C."""
    runner = loaded(tmp_path, told(sent=10, acknowledged=10))
    monkeypatch.setattr(tsbs_data.Rows, "make", lambda _self, _runner: {"tables": {"cpu": {"rows": 100}}})
    partial = Measured(complete=False, responses={})
    monkeypatch.setattr(TsbsWorkload, "_ingest", lambda *_: (partial, told()))
    monkeypatch.setattr(TsbsWorkload, "_make_tables", lambda *_: None)
    assert workload().drive(runner, endpoint, 1) is partial
    with pytest.raises(RunError, match="interrupted before all rows were loaded"):
        workload(action="queries", queries=["lastpoint"], loader="dyno").load(runner, QUESTDB, 1)
    # What DuckDB was not told of it has not acknowledged.
    assert (runner.folder / "ingest" / "result.json").exists() is (endpoint is QUESTDB)


def test_of_what_nobody_acknowledged_nothing_can_be_lost() -> None:
    result = told(sent=60, acknowledged=0)
    result["ingest"]["acknowledges"] = False
    found = tsbs_figures.audit(result, None, {}, lambda _table: 50, lambda _table: 50, lambda _table, _rows: 0)
    assert (found["ledger.acknowledged"], found["ledger.lost"], found["tsbs.sent_and_absent"]) == (0, 0, 10)


def test_without_a_count_of_the_rows_before_nothing_is_said_of_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cache that was emptied meanwhile they had counted as none: what was there before stood for what is lost."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tsbs_figures, "there", lambda *_: 195)
    runner = loaded(tmp_path, told())
    made = workload(action="mixed", rate=5.0, mixed_end="2016-01-03", queries=["lastpoint"])
    folder = made._rows("questdb").folder()
    with pytest.raises(RunError, match=f"{folder}: what is known .* is there no more.*run the study again"):
        made.check(runner, QUESTDB, 1)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"tables": {"cpu": {"rows": 100}}}))
    assert made.check(runner, QUESTDB, 1).wrong == "5 rows that were acknowledged are absent"


def test_what_is_measured_of_queries_begins_when_all_of_them_were_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the generator computed had been in what observers saw of the store."""
    phases: list[tuple[str, int]] = []

    def execute(_tool: Tool, _runner: Any, phase: str, _words: Any) -> str:
        phases.append((phase, time.time_ns()))
        return ""

    monkeypatch.setattr(Tool, "execute", execute)
    monkeypatch.setattr(tsbs_output, "queried", lambda *_: tsbs_output.Queried(100, 1.0, {}))
    runner: Any = SimpleNamespace(folder=tmp_path, logs=tmp_path, limit=5.0)
    measured = workload(action="queries", queries=["lastpoint", "high-cpu-1"]).drive(runner, CRATEDB, 1)
    names = ["make-lastpoint", "make-high-cpu-1", "queries-lastpoint", "queries-high-cpu-1"]
    assert [phase for phase, _ in phases] == names
    assert measured.measured_from_ns is not None
    assert phases[1][1] <= measured.measured_from_ns <= phases[2][1]
    assert measured.responses["lastpoint.throughput"] == 100


def loaded(folder: Path, result: dict[str, Any]) -> Any:
    """The runner of a load that left this."""
    out = folder / "run" / "ingest"
    out.mkdir(parents=True)
    (out / "result.json").write_text(json.dumps(result))
    (out / "in-doubt.jsonl").write_text("")
    return SimpleNamespace(folder=out.parent, logs=folder / "logs", limit=5.0)


def test_rows_that_were_there_before_are_not_counted() -> None:
    before = {"tables": {"cpu": {"rows": 1000}}}
    found = tsbs_figures.audit(told(), before, {}, lambda _table: 1095, lambda _table: 0, lambda _table, _rows: 0)
    assert found["ledger.lost"] == 5
