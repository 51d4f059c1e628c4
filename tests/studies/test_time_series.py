"""The fifth published study, end to end, at the scale smoke: real QuestDB, DuckDB and PostgreSQL, TSBS's own rows.

`tests/install-servers`, `dyno get questdb` and `dyno get tsbs` install what is missing.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

STUDY = Path(__file__).parents[2] / "studies" / "time-series.yaml"
STORES = ("questdb-month", "duckdb", "postgresql-month")
TASKS = ("load", "batches", "singly")
ROWS = 2 * 6 * 24 * 60 * 9  # of two hosts in sixty days, one every ten minutes in each of nine tables
QUERIES = 13


@pytest.mark.timeout(600)
def test_the_study_of_time_series_runs_whole_at_smoke(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("run", STUDY, "--scale", "smoke", limit=580)
    assert answer.returncode == 0, answer.stderr
    (folder,) = (tmp_path / "results" / "time-series").iterdir()
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]
    assert {(run["outcome"], run["cause"]) for run in runs} == {("ok", None)}
    assert Counter((run["levels"]["task"], run["levels"]["store"]) for run in runs) == {
        (task, store): 2 for task in TASKS for store in STORES
    }
    of = {(run["levels"]["task"], run["levels"]["store"]): run for run in runs}
    for store in STORES:
        loaded = of["load", store]
        assert loaded["responses"]["throughput"] * loaded["responses"]["elapsed"] == pytest.approx(ROWS)
        assert loaded["responses"]["elapsed"] >= loaded["responses"]["loader_time"]
        assert loaded["status"]["at_rest.bytes"] > 2**20
        assert (loaded["status"]["ledger.acknowledged"], loaded["status"]["ledger.lost"]) == (ROWS, 0)
        batched = of["batches", store]["responses"]
        assert batched["b.double-groupby-5.latency_p99"] >= batched["b.double-groupby-5.latency_p50"] > 0
        asked = of["singly", store]["responses"]
        assert len([name for name in asked if name.startswith("q.") and name.endswith(".cold")]) == QUERIES
    assert of["load", "questdb-month"]["settings"]["cairo.commit.mode"] == "sync"
    assert of["load", "questdb-month"]["settings"]["tables.partition_by"] == "month"
    kept = [pl.read_parquet(path) for path in folder.glob("runs/*/answers.parquet")]
    singly = pl.concat(kept).filter(pl.col("part") == "q")
    assert singly.height == QUERIES * len(STORES) * 2
    assert singly["error"].null_count() == singly.height
    assert singly["plan"].str.len_chars().min() > 0
    told = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert {each["equal"] for each in told["queries"]} == {True}
    assert len(told["queries"]) == QUERIES + 4
    report = (folder / "report.html").read_text()
    for part in ("Queries", "asof-join", "data.at_rest", "not judged"):
        assert part in report


def runs_of(dyno: Dyno, tmp_path: Path, name: str) -> list[dict[str, Any]]:
    """All of a study at the scale smoke, each of which has to be ok."""
    answer = dyno("run", STUDY.with_name(f"{name}.yaml"), "--scale", "smoke", limit=580)
    assert answer.returncode == 0, answer.stderr
    (folder,) = (tmp_path / "results" / name).iterdir()
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]
    assert {(run["outcome"], run["cause"]) for run in runs} == {("ok", None)}
    assert (folder / "report.html").stat().st_size > 0
    return runs


@pytest.mark.timeout(600)
def test_what_rows_take_on_disk_grows_with_them(dyno: Dyno, tmp_path: Path) -> None:
    runs = runs_of(dyno, tmp_path, "time-series-sizes")
    taken = {(run["levels"]["store"], run["levels"]["days"]): run["status"]["at_rest.bytes"] for run in runs}
    assert taken.keys() == {(store, days) for store in ("questdb", "duckdb") for days in ("1", "5")}
    for store in ("questdb", "duckdb"):
        assert taken[store, "5"] > taken[store, "1"]
    sent = {run["levels"]["days"]: run["status"]["ledger.present"] for run in runs}
    assert sent == {"1": 9 * 24 * 60, "5": 5 * 9 * 24 * 60}


@pytest.mark.timeout(600)
def test_late_rows_arrive_and_those_that_came_twice_are_there_once_where_they_are_removed(
    dyno: Dyno, tmp_path: Path
) -> None:
    runs = {run["levels"]["rows"]: run["status"] for run in runs_of(dyno, tmp_path, "time-series-order")}
    rows = 2 * 9 * 24 * 60
    assert {name: status["ledger.lost"] for name, status in runs.items()} == dict.fromkeys(runs, 0)
    assert runs["heavy"]["tsbs.delayed"] == pytest.approx(0.2 * rows, rel=0.1)
    assert runs["twice"]["ledger.present"] == rows + runs["twice"]["tsbs.duplicated"]
    assert runs["twice-removed"]["tsbs.duplicated"] > 0
    assert {runs[name]["ledger.present"] for name in ("in-order", "heavy", "twice-removed")} == {rows}


@pytest.mark.timeout(600)
def test_whoever_loads_all_rows_can_be_read_and_dyno_knows_what_was_acknowledged(dyno: Dyno, tmp_path: Path) -> None:
    runs = runs_of(dyno, tmp_path, "time-series-loaders")
    rows = 2 * 9 * 24 * 60
    by_loader = {run["levels"]["loader"]: run for run in runs}
    assert by_loader.keys() == {"tsbs", "dyno-tcp", "dyno-http"}
    for run in runs:
        assert run["responses"]["throughput"] * run["responses"]["elapsed"] == pytest.approx(rows)
        assert run["responses"]["cpu_per_op"] > 0
    assert by_loader["dyno-http"]["status"]["ledger.acknowledged"] == rows
    assert by_loader["dyno-tcp"]["status"]["ledger.acknowledged"] == 0
    assert "ledger.acknowledged" not in by_loader["tsbs"]["status"]


@pytest.mark.timeout(600)
def test_determinate_texts_are_answered_alike_and_of_verbatim_ones_it_is_told_which_are_not(
    dyno: Dyno, tmp_path: Path
) -> None:
    runs = runs_of(dyno, tmp_path, "time-series-queries")
    stores = ("duckdb", "postgresql", "questdb")
    assert Counter((run["levels"]["system"], run["levels"]["form"]) for run in runs) == {
        (store, form): 2 for store in stores for form in ("determinate", "verbatim")
    }
    (folder,) = (tmp_path / "results" / "time-series-queries").iterdir()
    told = json.loads(dyno("show", folder, "--format", "json").stdout)
    alike = {(each["query"], each["form"]): each["equal"] for each in told["queries"]}
    assert len(alike) == 2 * QUERIES
    assert all(equal for (_, form), equal in alike.items() if form == "determinate")
    # TSBS's text for QuestDB has no ORDER BY, and the other one is refused.
    unlike = {query for (query, form), equal in alike.items() if form == "verbatim" and not equal}
    assert {"q.groupby-orderby-limit", "q.double-groupby-5"} <= unlike
    report = (folder / "report.html").read_text()
    assert "SAMPLE BY" in report


@pytest.mark.timeout(600)
def test_queries_are_answered_alike_while_rows_come(dyno: Dyno, tmp_path: Path) -> None:
    runs = runs_of(dyno, tmp_path, "time-series-mixed")
    for run in runs:
        meanwhile = {name for name in run["responses"] if name.startswith("ingest.")}
        assert bool(meanwhile) == (run["levels"]["rows"] == "fast")
        if meanwhile:
            # Two batches of a thousand come a second, for a few seconds; one may be in hand when all is asked.
            assert run["status"]["ingest.sent"] >= 1000
            assert run["status"]["ingest.batches_unsent"] <= 1
            assert run["responses"]["ingest.throughput"] <= 2000
            assert run["status"]["ledger.lost"] == 0
    (folder,) = (tmp_path / "results" / "time-series-mixed").iterdir()
    told = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert {each["equal"] for each in told["queries"]} == {True}


@pytest.mark.timeout(600)
def test_a_server_that_is_killed_while_rows_come_answers_again_and_has_what_it_acknowledged(
    dyno: Dyno, tmp_path: Path
) -> None:
    runs = runs_of(dyno, tmp_path, "time-series-restart")
    assert Counter(run["levels"]["store"] for run in runs) == {"questdb-sync": 2, "postgresql": 2}
    for run in runs:
        assert (run["responses"]["rows_lost"], run["faulted"]["kind"]) == (0, "kill")
        assert 0 < run["responses"]["rejoin"] < run["responses"]["redundancy"] < 120
        assert run["status"]["ledger.present"] >= run["status"]["ledger.acknowledged"] > 100_000
