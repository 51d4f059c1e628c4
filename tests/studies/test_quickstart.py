"""The quickstart study, end to end, at the scale smoke: every part real, sizes tiny, figures not judged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.end_to_end.conftest import Dyno, dyno, home

__all__ = ["dyno", "home"]

STUDY = Path(__file__).parents[2] / "studies" / "quickstart.yaml"


def run_smoke(dyno: Dyno, tmp_path: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    answer = dyno("run", STUDY, "--scale", "smoke")
    return answer, next((tmp_path / "results" / "quickstart").iterdir())


def test_the_quickstart_runs_whole_at_smoke(dyno: Dyno, tmp_path: Path) -> None:
    answer, folder = run_smoke(dyno, tmp_path)
    assert answer.returncode == 0, answer.stderr
    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    cells = [cell for cell in shown["cells"] if cell["response"] == "throughput"]
    assert len(cells) == 8
    assert all(cell["n"] >= 3 for cell in cells)
    assert len([each for each in shown["comparisons"] if each["response"] == "throughput"]) == 4
    assert shown["failures"] == []
    assert shown["answer"].startswith("Not judged: scale smoke shows that everything works, not how fast anything is.")
    assert {each["verdict"] for each in shown["comparisons"] if each["ratio"] is not None} == {"not judged"}
    assert all(each["ratio"] is not None for each in shown["comparisons"] if each["response"] == "throughput")
    page = (folder / "report.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert page.count("<svg") >= 4
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".png", ".csv"}
