"""The study of what ext4 loses, end to end, at the scale smoke: every part real, few cuts."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from dyno.hosts.devices import mount_of
from dyno.hosts.leftovers import mounts_below
from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

STUDY = Path(__file__).parents[2] / "studies" / "ext4-crash.yaml"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists() or mount_of(Path(tempfile.gettempdir())).kind == "tmpfs",
    reason="only root records a disk, through FUSE",
)


def test_what_each_mode_loses_is_found_at_smoke_and_nothing_stays(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("run", STUDY, "--scale", "smoke")
    assert answer.returncode == 0, answer.stderr
    (folder,) = (tmp_path / "results" / "ext4-crash").iterdir()
    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert shown["failures"] == []
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]
    assert len(runs) == 6
    found: dict[str, dict[str, float]] = {}
    for run in runs:
        responses, cell = run["responses"], found.setdefault(run["levels"]["mode"], {})
        for name in ("syncs_checked", "syncs_lost", "files_stale", "files_exposing_removed"):
            cell[name] = cell.get(name, 0.0) + responses[name]
        assert responses["throughput"] > 0
        assert responses["recovery_time"] > 0
    assert all(cell["syncs_checked"] > 100 for cell in found.values())
    # With barriers all that was acknowledged is there, and without them it is not.
    assert found["ordered"]["syncs_lost"] == 0
    assert found["ordered-nobarrier"]["syncs_lost"] > 0
    # Writeback shows what others had written, and ordered does not.
    assert found["ordered"]["files_stale"] == 0
    assert found["writeback-nodelalloc"]["files_exposing_removed"] > 0
    assert any("No acknowledged sync was lost in 4 power cuts" in note for note in shown["notes"]), shown["notes"]
    assert mounts_below(str(tmp_path)) == []
