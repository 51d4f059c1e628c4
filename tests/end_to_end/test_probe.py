"""`dyno probe` as a user runs it: on a load that is sure to wait for its syncs, and on one that makes none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts import leftovers
from dyno.hosts.interventions.base import Intervention
from dyno.hosts.joint import controller
from dyno.hosts.programs import find
from dyno.model import registry
from tests.end_to_end.conftest import DYNO, Dyno
from tests.making import until

Study = Callable[..., Path]

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")

SQLITE = """
study: commits
question: Does SQLite wait for its syncs?
factors:
  mix: [f, c]
system: {kind: sqlite, config: {journal_mode: wal, synchronous: full, check: none}}
workload: {kind: ycsb, mix: "${mix}", records: 200, duration: 1 s, threads: 1, think_time: 20 ms, warmup_detect: false}
observe: []
"""
# Clients that wait between operations and delays far beyond a commit: both are as long on a busy machine.
DOSES = "sync-delay=20 ms,40 ms,80 ms"


def shown(dyno: Dyno, tmp_path: Path, study: str) -> dict[str, Any]:
    (folder,) = (tmp_path / "results" / study).iterdir()
    answer = dyno("show", folder, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    return dict(json.loads(answer.stdout))


@needs_strace
def test_commits_wait_for_syncs(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    answer = dyno("probe", study(SQLITE), "--cell", "mix=f", "--only", "sync-delay", "--doses", DOSES, "--blocks", "3")
    assert answer.returncode == 0, answer.stderr
    findings = shown(dyno, tmp_path, "commits-probe")
    (found,) = findings["interventions"]
    assert [dose["n"] for dose in found["doses"]] == [3] * 4
    # Half of its operations write, and each of those commits: by itself, since there is one client.
    assert 0.3 < found["calls_per_op"] < 0.8
    assert found["doses"][0]["added"] == 0
    assert all(dose["ratio"] < 0.9 for dose in found["doses"][1:])
    assert found["slope_ci"][1] < 0, "a commit-bound load does not feel a slower sync"
    # Neighbours on the machine may come and go with a dose: then how much is not told.
    assert found["verdict"].startswith(("felt", "more")) or "neither in a line" in found["sentence"], found
    assert "What throughput hangs on" in answer.stdout
    assert "time added to each sync" in answer.stdout
    (folder,) = (tmp_path / "results" / "commits-probe").iterdir()
    page = (folder / "report.html").read_text()
    assert 'id="interventions"' in page
    assert (folder / "figures" / "interventions.csv").exists()
    runs = [json.loads(path.read_text()) for path in folder.glob("runs/*/run.json")]
    assert {run["levels"]["intervention"] for run in runs} == {
        "none", "sync-delay 0", "sync-delay 20 ms", "sync-delay 40 ms", "sync-delay 80 ms",
    }  # fmt: skip
    assert all((run["intervened"] is None) == (run["levels"]["intervention"] == "none") for run in runs)


@needs_strace
def test_reads_do_not(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    answer = dyno("probe", study(SQLITE), "--cell", "mix=c", "--only", "sync-delay", "--doses", DOSES, "--blocks", "2")
    assert answer.returncode == 0, answer.stderr
    (found,) = shown(dyno, tmp_path, "commits-probe")["interventions"]
    assert not (found["slope_ci"] and found["slope_ci"][1] < 0)
    assert found["verdict"] in ("no such calls", "not in full")


MARIADB = """
study: server
question: Does MariaDB wait for its syncs?
system: {kind: mariadb, config: {innodb_log_file_size: 8M, innodb_flush_log_at_trx_commit: 1}}
workload: {kind: ycsb, mix: f, records: 200, duration: 400 ms, threads: 2, warmup_detect: false}
observe: []
"""


@needs_strace
@pytest.mark.skipif(find("mariadbd") is None, reason="needs mariadbd")
def test_a_servers_commits_wait_for_syncs(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    answer = dyno("probe", study(MARIADB), "--only", "sync-delay", "--doses", DOSES, "--blocks", "2", limit=280)
    assert answer.returncode == 0, answer.stderr
    (found,) = shown(dyno, tmp_path, "server-probe")["interventions"]
    assert found["calls_per_op"] > 0
    assert [dose["n"] for dose in found["doses"]] == [2] * 4
    assert all(dose["added"] > 0 for dose in found["doses"][1:])
    assert all(dose["ratio"] < 0.9 for dose in found["doses"][1:])


def test_what_cannot_be_made_is_left_out_with_the_reason(dyno: Dyno, study: Study) -> None:
    answer = dyno("probe", study(SQLITE), "--cell", "mix=f", "--only", "network-delay,cpu-relief")
    assert answer.returncode == 2
    assert "no message passes between them" in answer.stderr
    assert "the system has all CPUs already" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_help_lists_every_kind_with_its_control_and_what_it_refuses(dyno: Dyno) -> None:
    answer = dyno("probe", "--help")
    assert answer.returncode == 0, answer.stderr
    told = "".join(answer.stdout.split())
    kinds = registry.find("dyno.hosts.interventions", Intervention)  # type: ignore[type-abstract]
    assert "io-operations-limit" in kinds
    for name, kind in kinds.items():
        assert "".join(f"{name}{kind.about()}".split()) in told


@pytest.mark.skipif(
    os.geteuid() != 0 or getattr(controller("io"), "version", 2) == 2, reason="needs groups of version 1"
)
@pytest.mark.parametrize("kind", ["io-limit", "io-operations-limit"])
def test_a_limit_that_buffered_writes_would_pass_is_told_before_any_run(kind: str, dyno: Dyno, study: Study) -> None:
    answer = dyno("probe", study(SQLITE), "--cell", "mix=f", "--only", kind)
    assert answer.returncode == 2
    assert f"{kind}: what is written through page cache is written by the kernel" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_what_a_server_would_refuse_as_it_runs_is_told_before_it_does(dyno: Dyno, study: Study) -> None:
    answer = dyno("probe", study(MARIADB), "--only", "memory")
    assert answer.returncode == 2
    assert "killed, not slowed (MariaDB's default; with innodb_flush_method: fsync it has not)" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0 or controller("cpu") is None, reason="needs root and control groups for cpu")
def test_more_cpus_than_there_are_is_told_before_any_run(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    limited = f"{MARIADB}host: {{machine: {{cpus: {len(os.sched_getaffinity(0))}}}}}\n"
    for words in (
        ["probe", study(limited), "--only", "cpu-relief"],
        ["run", study(f"{limited}intervene: cpu-relief\n")],
    ):
        answer = dyno(*words)
        assert answer.returncode == 2
        assert "CPUs cannot be had" in answer.stderr
        assert len(answer.stderr.splitlines()) == 1, answer.stderr
    assert not list(tmp_path.glob("results/*/*/runs/*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--cell: choose one of 2, such as --cell mix=f"),
        (["--cell", "mix"], "write factor=level"),
        (["--cell", "mx=f"], "unknown factor 'mx'; did you mean 'mix'?"),
        (["--cell", "mix=g"], "unknown level 'g'"),
        (["--cell", "mix=f", "--only", "sync"], "unknown kind 'sync'"),
        (["--cell", "mix=f", "--only", "sync-delay,"], "--only sync-delay,: a comma stands where no kind is"),
        (["--cell", "mix=f", "--only", "sync-delay", "--doses", "sync-delay=1 ms,2 ms"], "3 at least beside dose 0"),
        (
            ["--cell", "mix=f", "--only", "sync-delay", "--doses", "read-delay=1 ms,2 ms,3 ms"],
            "read-delay is not among --only sync-delay",
        ),
        (
            ["--cell", "mix=f", "--only", "sync-delay", "--doses", "sync-delay=1 ms,2 ms,1 h"],
            "less than or equal to 1",
        ),
        (["--cell", "mix=f", "--doses", "sync-delay"], "write a kind and its doses"),
        (["--cell", "mix=f", "--budget", "10"], "--budget 10: '10' has no unit"),
    ],
)
def test_a_probe_that_cannot_be_is_one_line(words: list[str], said: str, dyno: Dyno, study: Study) -> None:
    answer = dyno("probe", study(SQLITE), *words)
    assert answer.returncode == 2
    assert said in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


LONG = SQLITE.replace("duration: 1 s", "duration: 60 s")


@needs_strace
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_nothing_is_left_of_a_probe_that_was_killed(study: Study, tmp_path: Path, home: dict[str, str]) -> None:
    path = study(LONG)
    words = [DYNO, "probe", str(path), "--cell", "mix=f", "--only", "cpu-quota,cpu-load", "--blocks", "2"]
    wanted = f"DYNO_STATE={home['DYNO_STATE']}".encode()

    def ours() -> list[list[bytes]]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().split(b"\0"))
            except OSError:
                continue
        return found

    def driven() -> bool:
        return any(b"drive" in words for words in ours())

    with subprocess.Popen(words, cwd=tmp_path, env=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until(driven, limit=60)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    groups = [path for parent in leftovers.CGROUPS.glob("*") for path in parent.glob("dyno-*-joint")]
    (journal,) = (tmp_path / "state" / "undo").glob("*.jsonl")
    mine = [path for path in groups if journal.stem in path.name]
    assert mine, "there was no group to be undone"
    done = subprocess.run(
        [DYNO, "clean"], cwd=tmp_path, env=home, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not [path for path in mine if path.exists()]
    assert ours() == []
