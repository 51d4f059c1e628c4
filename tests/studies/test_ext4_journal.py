"""The fourth published study and the file systems beside each other, end to end, at the scale smoke, on real ones.

As root, on loop devices: `tests/install-servers` installs what is missing.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dyno.hosts import devices
from dyno.hosts.leftovers import loop_devices, mounts_below
from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

STUDIES = Path(__file__).parents[2] / "studies"
MODES = ("journal", "ordered", "writeback")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or devices.mount_of(Path(tempfile.gettempdir())).kind == "tmpfs",
    reason="only root makes file systems, on loop devices, above a disk",
)


def runs_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]


def medians(runs: list[dict[str, Any]], response: str, **levels: str) -> dict[str, float]:
    """By data mode, of the runs with these levels."""
    chosen = [run for run in runs if levels.items() <= run["levels"].items()]
    return {
        mode: statistics.median(run["responses"][response] for run in chosen if run["levels"]["data_mode"] == mode)
        for mode in MODES
    }


def test_the_study_of_journal_modes_runs_whole_at_smoke(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("run", STUDIES / "ext4-journal.yaml", "--scale", "smoke", limit=280)
    assert answer.returncode == 0, answer.stderr
    folder = next((tmp_path / "results" / "ext4-journal").iterdir())
    runs = runs_of(folder)
    assert Counter((run["levels"]["data_mode"], run["levels"]["workload"], run["outcome"]) for run in runs) == {
        (mode, workload, "ok"): 2 for mode in MODES for workload in ("webserver", "oltp")
    }
    # Each mode is in force, as the kernel says it.
    assert {run["settings"]["data"] for run in runs if run["levels"]["data_mode"] == "writeback"} == {"writeback"}
    assert all(run["settings"]["data"] == run["levels"]["data_mode"] for run in runs)
    # Files were made before anything was measured, and then read from the device.
    assert all(run["populated_to_ns"] <= run["measured_from_ns"] for run in runs)
    assert all(run["responses"]["creation_rate"] > 0 for run in runs)
    assert all(run["caches"]["resident_bytes"] == 0 for run in runs)
    assert min(medians(runs, "device_read", workload="webserver").values()) > 0.5

    # The journal has the data too: whatever the sizes, they are written twice.
    for workload, times in (("oltp", 1.4), ("webserver", 1.2)):
        written, asked = (
            medians(runs, name, workload=workload) for name in ("device_written_in_all_per_op", "asked_written_per_op")
        )
        amplified = {mode: written[mode] / asked[mode] for mode in MODES}
        assert amplified["journal"] > times * max(amplified["ordered"], amplified["writeback"]), (workload, amplified)

    # Intervals and samples are of the measured part's flowops and driver.
    intervals = pl.read_parquet(next(folder.glob("runs/*/intervals.parquet")))
    assert intervals.filter(pl.col("count") > 0).height > 0
    samples = pl.concat([pl.read_parquet(path) for path in folder.glob("runs/*/samples.parquet")])
    assert {"driver", "populate"} <= set(samples.filter(pl.col("source") == "process")["subject"].to_list())

    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert [table["file"] for table in shown["published"]] == [
        "ext4_journal_webserver.csv",
        "ext4_journal_oltp.csv",
        "ext4_journal_videoserver.csv",
    ]
    # What was required is of requests, which the reads of pages stand for: a third of all operations.
    required = {each["response"]: each["cells"] for each in shown["targets"]}
    assert set(required) == {"read.latency_mean", "read.throughput", "disk.busy_share"}
    assert all(cell["mean"] > 0 for cell in required["read.throughput"])
    requests, operations = (medians(runs, name, workload="webserver") for name in ("read.throughput", "throughput"))
    assert all(0.3 * operations[mode] < requests[mode] < 0.34 * operations[mode] for mode in MODES)
    findings = {each["id"]: each for each in shown["claims"]}
    assert set(findings) >= {"journal-writes-more", "read-order", "videoserver-alike", "more-threads-slower-op"}
    assert (findings["oltp-journal-fastest"]["here"], findings["oltp-journal-fastest"]["verdict"]) == ("disk", "open")
    page = (folder / "report.html").read_text()
    for said in (
        "497,140",
        "1,671",
        "disk.write_amplification",
        "journal writes about 40 % more",
        "1.77 and 1.72 times",
    ):
        assert said in page, said
    assert loop_devices(str(tmp_path)) == []
    assert mounts_below(str(tmp_path)) == []


def test_four_file_systems_run_beside_each_other_at_smoke(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("run", STUDIES / "filesystems.yaml", "--scale", "smoke", limit=280)
    assert answer.returncode == 0, answer.stderr
    folder = next((tmp_path / "results" / "filesystems").iterdir())
    runs = runs_of(folder)
    assert Counter((run["levels"]["type"], run["outcome"]) for run in runs) == {
        (kind, "ok"): 2 for kind in ("ext4", "xfs", "btrfs", "overlay")
    }
    # What is asked of each in a block is the same, down to the files.
    assert len({(run["slot"]["block"], run["status"]["filesystem.used_bytes"] > 0) for run in runs}) == 2
    assert all(run["responses"]["syncs"] > 0 for run in runs)
    assert all(run["responses"]["device_written"] > 0 for run in runs)
