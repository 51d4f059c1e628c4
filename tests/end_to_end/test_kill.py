"""kill -9 of dyno at random moments of a running study: nothing that was committed is lost, nothing is left behind.

`DYNO_KILLS` sets how many kills (default 25), `DYNO_KILL_SEED` repeats a sequence that failed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.end_to_end.conftest import DYNO

KILLS = int(os.environ.get("DYNO_KILLS", "25"))
STUDY = f"""
study: killed
question: Does anything get lost?
factors:
  journal_mode: [delete, wal]
  threads: [1, 2]
system:
  kind: sqlite
  config: {{journal_mode: "${{journal_mode}}", synchronous: "off"}}
workload: {{kind: ycsb, mix: a, records: 300, duration: 30 ms, threads: "${{threads}}"}}
replicates: {{min: {KILLS * 40}, max: {KILLS * 40}}}
"""


def committed(folder: Path) -> dict[int, bytes]:
    return {int(path.parent.name): path.read_bytes() for path in folder.glob("runs/[0-9]*/run.json")}


def processes_that_keep(state: Path) -> list[str]:
    """Whatever was started by sessions with that state folder; others may run on this machine at the same time."""
    found = []
    wanted = f"DYNO_STATE={state}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.timeout(900)
def test_no_committed_run_is_lost_and_nothing_is_left_by_kills_at_random_moments(tmp_path: Path) -> None:
    seed = int(os.environ.get("DYNO_KILL_SEED", str(random.SystemRandom().randrange(2**32))))
    print(f"DYNO_KILL_SEED={seed} DYNO_KILLS={KILLS}")
    moments = random.Random(seed)
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    environment = {**os.environ, "DYNO_STATE": str(tmp_path / "state")}
    known: dict[int, bytes] = {}
    folder: Path | None = None
    begun = time.monotonic()
    subprocess.run([DYNO, "plan", str(study)], cwd=tmp_path, env=environment, capture_output=True, check=True)
    start_up = time.monotonic() - begun
    for _ in range(KILLS):
        words = [DYNO, "run", str(study), *(["--resume"] if folder else [])]
        with subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            # Some kills fall into the start-up and the recovery, most into runs and commits, however slow the machine.
            time.sleep(moments.uniform(0.4, 4.0) * start_up)
            process.send_signal(signal.SIGKILL)
            errors = process.communicate()[1].decode()
        assert "Traceback" not in errors, errors
        assert process.returncode == -signal.SIGKILL, errors
        made = sorted((tmp_path / "results" / "killed").glob("*/plan.json"))
        assert len(made) <= 1, "a resume made a folder of its own"
        folder = made[0].parent if made else None
        if folder is not None:
            now = committed(folder)
            assert {run: now.get(run) for run in known} == known, "a committed run was lost or changed"
            known = now
    assert folder is not None
    assert len(known) > KILLS, "too few runs for the kills to have fallen into any"

    answer = subprocess.run(
        [DYNO, "clean"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert processes_that_keep(tmp_path / "state") == []
    assert list((tmp_path / "state" / "undo").iterdir()) == []
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    records = [json.loads(data) for _, data in sorted(committed(folder).items())]
    slots = Counter((each["slot"]["cell"], each["slot"]["block"]) for each in records if each["outcome"] == "ok")
    assert max(slots.values()) == 1, "a run was counted twice"
    assert [each["run"] for each in records] == list(range(1, len(records) + 1))
