"""The study of MariaDB native and in containers, end to end: every part real, sizes tiny, figures not judged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import DYNO, Dyno, dyno, home
from tests.making import until
from tests.unit.hosts.rights import alone_on_the_machine

__all__ = ["dyno", "home"]

STUDY = Path(__file__).parents[2] / "studies" / "mariadb-virtualization.yaml"
SETTINGS = ("dirty_expire_centisecs", "dirty_writeback_centisecs")
DEPLOYMENTS = {"native", "container-layered", "container-volume"}
SMALLER = ("--scale", "smoke", "--set", "factors.workload=[a]", "--set", "factors.threads=[1]")

missing = [name for name in ("mariadbd", "dockerd") if shutil.which(name, path="/usr/sbin:/usr/bin") is None]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="file systems and limits of their own need root"),
    pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} are not installed"),
]


def runs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*/runs/[0-9]*/run.json"))]


def settings() -> list[str]:
    return [Path("/proc/sys/vm", name).read_text() for name in SETTINGS]


def left_by(tmp_path: Path, tokens: set[str]) -> list[str]:
    """Mounts, loop devices, control groups and processes of the sessions that a test had."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = [point for point in mounts if str(tmp_path) in point or any(token in point for token in tokens)]
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            found += [f"{file.parts[3]}: {text}" for text in [file.read_text().strip()] if str(tmp_path) in text]
        except OSError:
            continue
    found += [str(group) for token in tokens for group in Path("/sys/fs/cgroup").glob(f"**/dyno-{token}*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            environment = (process / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(tmp_path) in words or f"DYNO_STATE={tmp_path}" in environment:
            found.append(words)
    return found


@pytest.fixture
def alone() -> Iterator[None]:
    with alone_on_the_machine():
        yield


def tokens(tmp_path: Path) -> set[str]:
    return {path.stem for path in (tmp_path / "state" / "undo").glob("*.jsonl")}


@pytest.mark.usefixtures("alone")
def test_the_study_runs_whole_at_smoke_in_all_three_deployments(dyno: Dyno, tmp_path: Path) -> None:
    before = settings()
    answer = dyno("run", STUDY, "--scale", "smoke", limit=600)
    assert answer.returncode == 0, answer.stderr
    done = runs(tmp_path / "results" / "mariadb-virtualization")
    assert Counter(run["outcome"] for run in done) == {"ok": 24}
    assert {run["levels"]["deployment"] for run in done} == DEPLOYMENTS
    for run in done:
        assert run["responses"]["device_read_per_op"] > 0, "it was cold, so its pages came from the device"
        assert run["responses"]["system_read_per_op"] > 0
        assert run["caches"]["resident_bytes"] <= run["caches"]["data_bytes"] / 100
        assert run["deployed"]["device"] == "its own"
    # What must not differ between deployments, and what cannot but.
    alike = ("program.sha256", "cpus.limit", "memory.limit", "data.device", "file_system.made_by", "network")
    assert {name: len({run["deployed"][name] for run in done}) for name in alike} == dict.fromkeys(alike, 1)
    roots = {run["levels"]["deployment"]: run["deployed"]["root.file_system"] for run in done}
    assert roots["native"] != roots["container-volume"] == "overlay"
    data = {run["levels"]["deployment"]: run["deployed"]["data.file_system"] for run in done}
    assert data == {"native": "ext4", "container-layered": "overlay", "container-volume": "ext4"}
    assert settings() == before
    assert left_by(tmp_path, set()) == []


@pytest.mark.usefixtures("alone")
def test_a_study_that_was_killed_is_cleaned_up_after_and_goes_on(
    dyno: Dyno, home: dict[str, str], tmp_path: Path
) -> None:
    before = settings()
    # Others than the machine has now, whatever those are.
    others = ", ".join(f"vm.{name}: {int(value) + 1}" for name, value in zip(SETTINGS, before, strict=True))
    words = (str(STUDY), *SMALLER, "--set", f"host.sysctl={{{others}}}")
    folder = tmp_path / "results" / "mariadb-virtualization"
    with subprocess.Popen(
        [DYNO, "run", *words], cwd=tmp_path, env=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        until(lambda: process.poll() is not None or len(list(folder.glob("*/runs/[0-9]*"))) >= 2, limit=240)
        sessions = tokens(tmp_path)
        process.send_signal(signal.SIGKILL)
        errors = process.communicate()[1].decode()
    assert process.returncode == -signal.SIGKILL, errors
    assert settings() != before
    assert left_by(tmp_path, sessions) != []
    answer = dyno("clean")
    assert answer.returncode == 0, answer.stderr
    assert left_by(tmp_path, sessions) == []
    assert settings() == before
    assert tokens(tmp_path) == set()
    answer = dyno("run", *words, "--resume", limit=300)
    assert answer.returncode == 0, answer.stderr
    done = runs(folder)
    slots = Counter((run["slot"]["cell"], run["slot"]["block"]) for run in done if run["outcome"] == "ok")
    assert len(slots) == 6
    assert set(slots.values()) == {1}, "a run was counted twice"
    assert left_by(tmp_path, sessions) == []


def test_without_root_the_study_is_refused_in_a_line_and_nothing_is_left(home: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "nobody"
    place.mkdir()
    place.chmod(0o777)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    environment = {**home, "DYNO_STATE": str(place / "state"), "HOME": str(place)}
    if subprocess.run(
        [*nobody, DYNO, "--version"], cwd=place, env=environment, check=False, capture_output=True
    ).returncode:
        pytest.skip("this dyno is installed where no other user may read it")
    answer = subprocess.run(
        [*nobody, DYNO, "run", str(STUDY), *SMALLER],
        cwd=place, env=environment, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert answer.returncode == 2, answer.stderr
    assert "root" in answer.stderr.splitlines()[-1]
    assert "Traceback" not in answer.stderr
    assert list((place / "results").glob("*/*/runs/*")) == []
    assert list((place / "state" / "undo").iterdir()) == []
