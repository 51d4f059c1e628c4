"""The engine glass as a system like any other, and what is said of an assembly that was not compiled."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from dyno.hosts.local import core_binary
from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs/looking-glass.md"
ORDERS = REPOSITORY / "studies/looking-glass-orders.yaml"


def example() -> str:
    """The study on the engine's page."""
    (found,) = re.findall(r"```yaml\n(study: .*?)```", PAGE.read_text(), re.DOTALL)
    return str(found)


def test_ycsb_runs_on_it_by_two_clients_as_the_page_says(dyno: Dyno, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(example())
    answer = dyno("run", "study.yaml", "--scale", "smoke")
    assert answer.returncode == 0, answer.stderr
    (folder,) = (tmp_path / "results" / "ycsb-on-glass").iterdir()
    runs = [json.loads(path.read_text()) for path in folder.glob("runs/*/run.json")]
    assert {run["levels"]["log"] for run in runs} == {"memory", "synced"}
    for run in runs:
        assert (run["outcome"], run["driver"]["clients"]) == ("ok", 2)
        assert run["settings"]["assembly"].startswith("keys+log+locks+latches+buffer")
        # Half of it changes records, and a log that is synced is so before a commit returns.
        assert (run["status"]["glass.log_syncs"] > 0) == (run["levels"]["log"] == "synced")


def test_a_study_of_assemblies_off_the_path_is_good_wherever_it_is_looked_at(dyno: Dyno) -> None:
    answer = dyno("check", ORDERS)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_study_of_assemblies_off_the_path_is_refused_before_its_first_run(dyno: Dyno, tmp_path: Path) -> None:
    said = subprocess.run([core_binary(), "version", "--json"], capture_output=True, text=True, check=True).stdout
    if json.loads(said)["glass-assemblies"] == "all":
        pytest.skip("this dyno-core was built with every assembly")
    answer = dyno("run", ORDERS, "--scale", "smoke")
    assert answer.returncode == 2
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("dyno: ")]
    assert "dyno-core was built without assembly" in line
    assert "`make every-assembly` installs one that has all" in line
    assert not list((tmp_path / "results").rglob("run.json"))
