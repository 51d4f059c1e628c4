"""Counted instructions as they are shown."""

from __future__ import annotations

import csv
import io
import json

import pytest
from rich.console import Console

from dyno.model.instructions import Instructions, OfFunction, OfGroup
from dyno.report.instructions import instructions_as_csv, instructions_as_json, show_instructions

COUNTED = Instructions(
    per_operation=(24_000.0, 26_000.0),
    levels={"mix": "c"},
    lengths=(100, 200),
    groups=(OfGroup((20_000.0, 20_000.0), "rows"), OfGroup((4_000.0, 6_000.0), "other")),
    functions=(
        OfFunction((20_000.0, 20_000.0), "row_search", "db", "rows"),
        OfFunction((4_000.0, 6_000.0), None, "libx.so", "other"),
    ),
)
WORDS = [({"mix": "c"}, ("--slow=1",))]


def shown(found: Instructions) -> str:
    text = io.StringIO()
    show_instructions([found], WORDS, Console(file=text, width=80, highlight=False))
    return text.getvalue()


def test_groups_come_first_with_their_share_and_functions_after_them() -> None:
    lines = [" ".join(line.split()) for line in shown(COUNTED).splitlines()]
    assert "mix=c: 25,000 (24,000, 26,000)" in lines
    assert "What they were spent on, mean of 2 blocks:" in lines
    places = [
        lines.index(line) for line in ("80.0% 20,000 rows", "20.0% 5,000 other", "80.0% 20,000 row_search (db), rows")
    ]
    assert places == sorted(places)
    assert "20.0% 5,000 [unknown] (libx.so), other" in lines


def test_what_was_not_told_by_function_is_shown_as_one_figure() -> None:
    bare = Instructions(per_operation=(24_000.0,), levels={"mix": "c"}, lengths=(100, 200))
    assert "mix=c: 24,000\n" in shown(bare)
    assert "spent on" not in shown(bare)
    assert "mix=c: not counted\n" in shown(Instructions(per_operation=(), levels={"mix": "c"}, lengths=(1, 2)))


def test_as_json_and_as_csv_groups_sum_up_to_the_total() -> None:
    (cell,) = json.loads(instructions_as_json([COUNTED], WORDS))["cells"]
    assert (cell["blocks"], cell["mean"], cell["for_valgrind"]) == (2, 25_000.0, ["--slow=1"])
    assert sum(group["mean"] for group in cell["groups"]) == pytest.approx(cell["mean"])
    assert cell["functions"][1] == {
        "function": None, "module": "libx.so", "group": "other",
        "per_operation": [4_000.0, 6_000.0], "mean": 5_000.0, "share": 0.2,
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(instructions_as_csv([COUNTED]))))
    assert [row["part"] for row in rows] == ["total", "group", "group", "function", "function"]
    for part in ("group", "function"):
        of = [row for row in rows if row["part"] == part]
        assert sum(float(row["per_operation"]) for row in of) == pytest.approx(float(rows[0]["per_operation"]))
        assert sum(float(row["share"]) for row in of) == pytest.approx(1)
    assert {(row["levels.mix"], row["blocks"]) for row in rows} == {("c", "2")}
