"""What a store answered, as it is kept, and what is found between the answers of several."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import polars as pl
from pydantic import Field

from dyno.model.base import Frozen

ColumnKind = Literal["time", "text", "number"]
"""What a column of an answer holds: a time, whatever a store gives it as; a text; a number, whole or not."""

RELATIVE: Final = 1e-9
ABSOLUTE: Final = 1e-12
"""How far two figures may be apart: sums of the same figures in another order differ in their last digits."""

SINGLY, IN_BATCH = "q", "b"
"""In front of the responses of a query that is asked by itself, and of one that is asked many times at once."""

ANSWER_COLUMNS: Final[dict[str, Any]] = {
    "part": pl.String,
    "query": pl.String,
    "title": pl.String,
    "form": pl.String,
    "dialect": pl.String,
    "number": pl.Int64,
    "data": pl.String,
    "parameters": pl.String,
    "statement": pl.String,
    "ordered": pl.Boolean,
    "keys": pl.List(pl.Int64),
    "relative": pl.Float64,
    "absolute": pl.Float64,
    "error": pl.String,
    "varies": pl.String,
    "columns": pl.List(pl.String),
    "rows": pl.Int64,
    "digest": pl.String,
    "digest_of_set": pl.String,
    "first": pl.String,
    "whole": pl.String,
    "cold_ms": pl.Float64,
    "warm_ms": pl.List(pl.Float64),
    "client_ms": pl.Float64,
    "plan": pl.String,
    "comment": pl.String,
}
"""Columns of `answers.parquet`, a row for each question that a run asked.

`part` is q or b, `number` counts the draws of a query. `data` and `parameters` are JSON: answers are of one question
where both are the same. `keys` are the columns, from 0, that an ordered answer is ordered by; empty where every row has
its place. `digest` is of the rows in their order and `digest_of_set` of the same in any; `first` has the first rows and
`whole` all of them where they are few, as JSON (see `dyno.model.rows`). `error` is what the store said instead of an
answer. The first answer is kept; `varies` says how one that came when it was asked again differs, null where none does.
`warm_ms` has each time that it was asked again, `client_ms` the driver's own CPU time of one answer.
"""

Alike = Literal["equal", "order", "ties", "values", "rows", "columns", "error", "unknown"]
"""What is found between two answers: the same; the same rows in another order, or among rows that the text leaves open;
other values, another number of rows or of columns; an error instead; or not known, of answers too large to be kept.
"""


class QueryAnswer(Frozen):
    """What one cell answered to a query."""

    cell: int
    levels: dict[str, str]
    group: Annotated[int, Field(ge=0, description="cells of one group answered the same; the first is 0")]
    form: str
    dialect: str
    rows: Annotated[int | None, Field(description="None where it answered with an error")] = None
    columns: tuple[str, ...] = ()
    error: str | None = None
    statement: str = ""
    plan: str = ""
    comment: str = ""
    client_share: Annotated[
        float | None, Field(description="of the warm time, that the driver itself computed: reading the answer")
    ] = None
    varies: Annotated[str, Field(description="what its own runs answered otherwise, in words; empty where nothing")] = (
        ""
    )


class QueryFinding(Frozen):
    """One query: who answered the same, and how the others differ."""

    query: Annotated[str, Field(description="with q. in front where it is asked by itself, b. in batches")]
    form: Annotated[str, Field(description="verbatim or determinate: each is held against its own kind")] = ""
    title: str
    questions: Annotated[int, Field(description="different draws of its parameters that were compared")]
    equal: Annotated[bool, Field(description="whether all cells that were asked the same answered the same")]
    answers: tuple[QueryAnswer, ...] = ()
    differences: Annotated[tuple[str, ...], Field(description="each group against the first, in words")] = ()
    sentence: str = ""


class BatchCell(Frozen):
    """One configuration in a batch."""

    cell: int
    levels: dict[str, str]
    mean: Annotated[float, Field(description="queries a second")]
    ci: tuple[float, float] | None = None


class BatchFinding(Frozen):
    """A query asked by so many clients at once: the best and the worst of the configurations that compare."""

    query: str
    workers: int
    best: BatchCell
    worst: BatchCell
    of: Annotated[int, Field(description="configurations that are held against each other")]
    left_out: Annotated[int, Field(description="those that answer otherwise, or whose times do not compare")] = 0
    apart: Annotated[bool, Field(description="whether the intervals of both leave room between them")] = False


Rows = list[list[Any]]
