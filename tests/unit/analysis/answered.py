"""Answers of small studies, for the tests of what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from dyno.model.answers import ANSWER_COLUMNS
from dyno.model.rows import digests, dumped
from dyno.model.run import RunRecord


def row(rows: list[list[Any]], run: int, query: str = "point", part: str = "q", **more: Any) -> dict[str, Any]:
    """A row of `answers.parquet` with its run's number."""
    in_order, of_set = digests(rows)
    return {
        "run": run,
        "part": part,
        "query": query,
        "title": f"what {query} asks",
        "form": "determinate",
        "dialect": "sqlite",
        "number": 0,
        "data": "{}",
        "parameters": "{}",
        "statement": f"SELECT {query}",
        "ordered": False,
        "keys": [],
        "relative": 1e-9,
        "absolute": 1e-12,
        "error": None,
        "columns": ["a", "b"],
        "rows": len(rows),
        "digest": in_order,
        "digest_of_set": of_set,
        "first": dumped(rows[:2]),
        "whole": dumped(rows),
        "cold_ms": 5.0,
        "warm_ms": [1.0, 2.0, 3.0],
        "client_ms": 0.5,
        "plan": f"Scan of {query}",
        "comment": None,
        **more,
    }


def answers(runs: Sequence[RunRecord], rows_of: Callable[[RunRecord], list[dict[str, Any]]]) -> pl.DataFrame:
    """The answers of all runs."""
    found = [each for run in runs for each in rows_of(run)]
    return pl.DataFrame(found, schema={"run": pl.Int64, **ANSWER_COLUMNS})
