"""The third published study, end to end, at the scale smoke: real clusters, in two stages.

As root: `tests/install-servers` and `dyno get mysql` install what is missing.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

STUDY = Path(__file__).parents[2] / "studies" / "mysql-high-availability.yaml"
GROUP = "gr-eventual"
WRITERS = (GROUP, "async", "semi-sync", "galera", "disk-c")
READERS = (GROUP, "galera")
SERVERS = {"disk-c": 2}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="nodes have networks of their own, which takes root")


@pytest.mark.timeout(900)
def test_the_study_of_high_availability_runs_whole_at_smoke(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("run", STUDY, "--scale", "smoke", limit=880)
    assert answer.returncode == 0, answer.stderr
    folder = next((tmp_path / "results" / "mysql-high-availability").iterdir())
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]
    assert {run["outcome"] for run in runs} == {"ok"}
    # First the tuning is picked, then all solutions are compared at their picks.
    first, second = ([run for run in runs if run["slot"]["stage"] == stage] for stage in (1, 2))
    assert {run["levels"]["tuning"] for run in first} == {"spin-0", "spin-1000"}
    assert Counter((run["levels"]["solution"], run["levels"]["transactions"]) for run in second) == {
        **{(solution, "write"): 2 for solution in WRITERS},
        **{(solution, "read"): 2 for solution in READERS},
    }
    for run in runs:
        solution = run["levels"]["solution"]
        assert run["status"]["cluster.servers"] == SERVERS.get(solution, 3)
        assert run["responses"]["network_sent_per_op"] > 0
        assert run["responses"]["system_cpu_per_op"] > 0
        assert run["settings"]["innodb_flush_log_at_trx_commit"] == 1
        if solution == GROUP:
            spins = run["levels"]["tuning"].removeprefix("spin-")
            assert str(run["settings"]["group_replication_poll_spin_loops"]) == spins
            assert run["settings"]["group_replication_consistency"] == "EVENTUAL"
            assert run["status"]["cluster.conflicts"] >= 0
    # Of what is only read nothing is certified; a new view of the group counts as one transaction.
    read = [run for run in second if run["levels"]["transactions"] == "read" and run["levels"]["solution"] == GROUP]
    assert all(run["status"]["cluster.certified"] <= 1 for run in read)
    report = (folder / "report.html").read_text()
    for part in ("What each solution takes", "ha_best_case_write_throughput.csv", "stands in for DRBD", "not judged"):
        assert part in report
