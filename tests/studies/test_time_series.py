"""The fifth published study, end to end, at the scale smoke: real QuestDB, DuckDB and PostgreSQL, TSBS's own rows.

`tests/install-servers`, `dyno get questdb` and `dyno get tsbs` install what is missing.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

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
