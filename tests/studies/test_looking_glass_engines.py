"""Engines that people run, asked what the second published study asked: end to end, at the scale smoke."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

STUDIES = Path(__file__).parents[2] / "studies"
KINDS = ("new_order", "payment")

SAVING = {
    "sqlite": ("not-synced", "no-journal", "exclusive", "no-mutexes", "no-statistics"),
    "berkeleydb": ("no-locks", "concurrent", "data-store", "no-mutexes"),
}
"""Steps that leave out work of every transaction; the others leave out what the kernel does, or what seldom is."""


def run_smoke(dyno: Dyno, tmp_path: Path, study: str) -> tuple[Path, list[dict[str, Any]]]:
    answer = dyno("run", STUDIES / f"{study}.yaml", "--scale", "smoke", limit=580)
    assert answer.returncode == 0, answer.stderr
    (folder,) = (tmp_path / "results" / study).iterdir()
    return folder, [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]


def shown(dyno: Dyno, folder: Path) -> dict[str, Any]:
    findings: dict[str, Any] = json.loads(dyno("show", folder, "--format", "json").stdout)
    return findings


def of(runs: list[dict[str, Any]], step: str) -> list[dict[str, Any]]:
    found = [run for run in runs if run["levels"]["step"] == step]
    assert len(found) == 2
    return found


def test_each_switch_of_embedded_engines_is_in_force_and_counted(dyno: Dyno, tmp_path: Path) -> None:
    folder, runs = run_smoke(dyno, tmp_path, "looking-glass-engines")
    assert [run["outcome"] for run in runs] == ["ok"] * 28

    def setting(step: str, key: str) -> Any:
        (value,) = {run["settings"].get(key) for run in of(runs, step)}
        return value

    def status(step: str, key: str) -> float:
        return fmean(run["status"][key] for run in of(runs, step))

    assert setting("sqlite-durable", "threading_mode") == "serialized"
    assert setting("sqlite-no-mutexes", "threading_mode") == "single-thread"
    assert setting("sqlite-no-statistics", "memory_statistics") is False
    assert setting("sqlite-in-memory", "in_memory") is True
    assert setting("sqlite-durable", "synchronous") == "full"
    assert setting("sqlite-not-synced", "synchronous") == "off"
    assert setting("sqlite-no-journal", "journal_mode") == "off"
    assert setting("sqlite-exclusive", "locking_mode") == "exclusive"
    assert setting("berkeleydb-no-locks", "locks") is False
    assert setting("berkeleydb-durable", "checksums") is True
    assert setting("berkeleydb-concurrent", "product") == "concurrent"
    assert setting("berkeleydb-no-mutexes", "mutexes") is False
    # A durable log is synced at each commit, of the warm-up too; the others at none.
    assert status("berkeleydb-durable", "berkeleydb.log_syncs") >= 120
    assert status("berkeleydb-log-in-memory", "berkeleydb.log_syncs") == 0

    found = {(each["system"], each["transaction"]): each["steps"] for each in shown(dyno, folder)["switches"]}
    assert set(found) == {(system, kind) for system in ("sqlite", "berkeleydb") for kind in KINDS}
    for (system, kind), steps in found.items():
        told = {step["level"].removeprefix(f"{system}-"): step for step in steps}
        assert len(told) == 7
        # The least of both blocks: what a switch leaves out is seen in each of them.
        for level in SAVING[system]:
            assert told[level]["least"] > 0, (kind, level)
    assert "figure-switches-sqlite-payment" in (folder / "report.html").read_text()


def test_each_switch_of_mariadb_is_in_force(dyno: Dyno, tmp_path: Path) -> None:
    _, runs = run_smoke(dyno, tmp_path, "looking-glass-mariadb")
    assert [run["outcome"] for run in runs] == ["ok"] * 14
    flushed = {
        step: {run["settings"]["innodb_flush_log_at_trx_commit"] for run in of(runs, step)}
        for step in ("durable", "not-synced", "not-flushed")
    }
    assert flushed == {"durable": {1}, "not-synced": {2}, "not-flushed": {0}}
