"""`dyno` as a user runs it: a process of its own, with a state folder and a working folder of its own."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

DYNO = str(Path(sysconfig.get_path("scripts"), "dyno"))

Dyno = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has never used dyno."""
    return {**os.environ, "DYNO_STATE": str(tmp_path / "state"), "COLUMNS": "120"}


@pytest.fixture
def dyno(tmp_path: Path, home: dict[str, str]) -> Dyno:
    """Run a dyno command to its end in an empty working folder."""

    def run(*words: str | Path, limit: float = 120) -> subprocess.CompletedProcess[str]:
        argv = [DYNO, *map(str, words)]
        return subprocess.run(argv, cwd=tmp_path, env=home, capture_output=True, text=True, timeout=limit, check=False)

    return run


SIMULATED = """
study: simulated
question: Is the second mean above the first?
factors:
  mean: [1000, 1500]
system:
  kind: simulated
  config: {mean: "${mean}", cov: 5%}
workload: {kind: simulated}
replicates: {min: 3, max: 12, precision: 10%}
observe: []
"""

SQLITE = """
study: embedded
question: Does the journal mode matter?
factors:
  journal_mode: [delete, wal]
system:
  kind: sqlite
  config: {journal_mode: "${journal_mode}", synchronous: "off"}
workload: {kind: ycsb, mix: a, records: 300, operations: 400, threads: 2}
replicates: {min: 2, max: 2, precision: 500%}
"""

STAGED = """
study: best-case
question: Is the second solution faster at its best?
factors:
  solution:
    one: {system.config.seed: 1}
    two: {system.config.seed: 2}
  tuning:
    low: {system.config.mean: 1000}
    high: {system.config.mean: 1200}
    top: {system.config.mean: 1600}
  threads: [1, 4]
compare: solution
stages:
  best: tuning
  levels: {one: [low, high]}
system:
  kind: simulated
  config: {cov: 3%, step: 0.1, step_at: "${threads}"}
workload: {kind: simulated}
replicates: {min: 4, max: 8, precision: 5%, precision_of: ratio}
observe: []
"""


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    """Write a study file into the working folder."""

    def write(text: str = SIMULATED, name: str = "study.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
