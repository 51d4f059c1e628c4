"""The second published study, end to end, at the scale smoke: every assembly of its path, counted by valgrind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

STUDY = Path(__file__).parents[2] / "studies" / "looking-glass.yaml"

CALLS = {
    "new_order": {"lookup": 23, "pin": 23, "update": 11, "create": 12, "insert": 13},
    "payment": {"lookup": 3, "pin": 3, "update": 3, "create": 1},
}
"""Of the engine in a transaction, as published."""


PUBLISHED = {
    "new_order": {"keys": 0.16, "log": 0.12, "locks": 0.16, "pages": 0.14},
    "payment": {"log": 0.18, "locks": 0.25, "latches": 0.13, "buffer": 0.30, "left": 0.05},
}
"""Shares of instructions, as far as they stand in the publication's text."""


def run_smoke(dyno: Dyno, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    answer = dyno("run", STUDY, "--scale", "smoke", limit=580)
    assert answer.returncode == 0, answer.stderr
    folder = next((tmp_path / "results" / "looking-glass").iterdir())
    return folder, json.loads(dyno("show", folder, "--format", "json").stdout)


def test_the_looking_glass_runs_whole_at_smoke(dyno: Dyno, tmp_path: Path) -> None:
    folder, shown = run_smoke(dyno, tmp_path)
    assert shown["failures"] == []
    found = {each["transaction"]: each for each in shown["removal"]}
    assert set(found) == {"new_order", "payment"}
    for kind, removal in found.items():
        steps = removal["steps"]
        assert [step["removed"] for step in steps] == [
            "", "keys", "log", "locks", "latches", "pages", "buffer", "catalogue", "transactions",
        ]  # fmt: skip
        # Of tables this small a Payment takes little but its own code.
        assert steps[0]["instructions"] > 1.5 * steps[-1]["instructions"]
        assert steps[-1]["instructions"] > removal["kernel"]["instructions"]
        # Components and what is in none of them are the whole of the build that keeps them apart.
        assert sum(call["instructions"] for call in removal["calls"]) == pytest.approx(steps[0]["outlined"])
        made = {call["call"]: call["calls"] for call in removal["calls"] if call["call"]}
        assert {call: made.get(call) for call in CALLS[kind]} == CALLS[kind]
        # 50 transactions, of which one that takes a new page tells by some thousandths; of thousands it does not.
        assert 0 <= removal["repeats"] < 0.005
        # The blocks count other transactions.
        assert all(step["precision"] > 1e-5 for step in steps)
        shares = {each["component"]: each for each in removal["shares"]}
        assert list(shares) == [
            "keys", "log", "locks", "latches", "buffer", "pages", "catalogue", "transactions", "left",
        ]  # fmt: skip
        for name, published in PUBLISHED[kind].items():
            assert shares[name]["published"] == pytest.approx(published)
            assert shares[name]["since"] == pytest.approx(shares[name]["removed"] - published)
        for component in removal["components"]:
            # The two ways differ by what others do less, and by what the builds differ by: by nothing else.
            told = sum(component["elsewhere"].values()) + component["builds"]
            assert component["removed"] - component["attributed"] == pytest.approx(told)
            assert shares[component["component"]]["agree"] or component["component"] in removal["agreement"].lower()
    page = (folder / "report.html").read_text()
    assert "figure-removal-payment" in page
    assert "figure-calls-new_order" in page
    for path in sorted(folder.glob("runs/*")):
        record = json.loads((path / "run.json").read_text())
        levels = record["levels"]
        counts = pl.read_parquet(path / "counts.parquet").filter(pl.col("event") == "instructions")
        again = counts.filter("again")
        assert set(again["build"]) == ({"optimised"} if record["slot"]["block"] == 1 else set())
        counts = counts.filter(~pl.col("again"))
        builds = {"optimised"} if levels["assembly"] == "kernel" else {"optimised", "outlined"}
        assert set(counts["build"]) == builds
        assert set(counts["transaction"]) == {"new_order", "payment"}
        # What no component has is no more than the driver's own steps into the transaction and out of it.
        outlined = counts.filter(pl.col("build") == "outlined")
        if outlined.height:
            unknown = outlined.filter(pl.col("component") == "")["value"].sum()
            assert unknown < 0.02 * outlined["value"].sum()
