"""Studies on real servers, as a user runs them: every part real, sizes tiny, figures not judged."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts.cgroups import hierarchies
from dyno.hosts.programs import find
from tests.end_to_end.conftest import DYNO, Dyno
from tests.making import until

ROOT = Path(__file__).parents[2]
Study = Callable[..., Path]

TOOL = """
study: {name}
question: Does it run?
system: {{kind: {system}, config: {{{config}}}}}
workload: {{{workload}}}
replicates: {{min: 2, max: 2, precision: 500%}}
observe: []
"""
SMALL = {
    "mariadb": "connect: tcp, innodb_log_file_size: 8M",
    "postgresql": "connect: tcp, shared_buffers: 32MB",
    "sqlite": "cache_size: 1 MiB",
}


def tool_study(workload: str, system: str = "mariadb") -> str:
    return TOOL.format(name="tool", system=system, config=SMALL[system], workload=workload)


def runs(folder: Path, study: str) -> list[dict[str, Any]]:
    (results,) = (folder / "results" / study).iterdir()
    return [json.loads(path.read_text()) for path in sorted(results.glob("runs/*/run.json"))]


def judged(made: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Outcome and cause of each, so that a test that fails says why a run did."""
    return [(run["outcome"], run["cause"]) for run in made]


def servers(folder: Path) -> list[int]:
    """Those whose data are below a folder, by their arguments: another user's environment may be hidden."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].rpartition(b"/")[2] in (b"mariadbd", b"postgres") and any(str(folder).encode() in w for w in words):
            found.append(int(entry.name))
    return found


def test_two_servers_are_compared(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("run", ROOT / "studies" / "servers.yaml", "--scale", "smoke", limit=280)
    assert answer.returncode == 0, answer.stderr
    made = runs(tmp_path, "servers")
    assert judged(made) == [("ok", None)] * 4
    for run in made:
        mariadb = run["levels"]["server"] == "mariadb"
        assert run["settings"]["innodb_buffer_pool_size" if mariadb else "shared_buffers"] == 128 * 2**20
        assert run["status"]["questions" if mariadb else "database.xact_commit"] > 0
        assert set(run["versions"]) >= {"mariadb" if mariadb else "postgresql"}
        assert run["responses"]["failed_operations"] == 0
        assert any("Zipfian" in note for note in run["notes"])
        assert run["loop"] == "closed"
        assert run["rate_per_s"] is None
    assert servers(tmp_path) == []
    (folder,) = (tmp_path / "results" / "servers").iterdir()
    page = (folder / "report.html").read_text()
    assert "exact Zipfian" in page
    assert "durability of all: each commit is synced" in page
    assert "they differ in isolation (mariadb: REPEATABLE-READ, postgresql: READ-COMMITTED)" in page


def test_tpcc_runs_and_its_books_agree(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    workload = "kind: tpcc, warehouses: 1, items: 200, customers_per_district: 30, operations: 40, threads: 2"
    answer = dyno("run", study(tool_study(workload)), limit=200)
    assert answer.returncode == 0, answer.stderr
    for run in runs(tmp_path, "tool"):
        assert run["outcome"] == "ok"
        assert run["responses"]["new_orders_per_min"] > 0
        assert run["status"]["checks"] >= 4


def test_an_open_loop_by_two_drivers_is_merged(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    workload = (
        "kind: ycsb, mix: c, records: 200, duration: 500 ms, threads: 4, drivers: 2, rate: 200, arrivals: poisson, "
        "min_rate_reached: 50%"
    )
    answer = dyno("run", study(tool_study(workload)), limit=200)
    assert answer.returncode == 0, answer.stderr
    for run in runs(tmp_path, "tool"):
        assert run["outcome"] == "ok"
        assert (run["loop"], run["rate_per_s"]) == ("open", 200)
        assert run["responses"]["share_sent"] >= 0.5
        assert run["responses"]["service_p99"] <= run["responses"]["latency_p99"] * 1.01


@pytest.mark.parametrize(
    ("workload", "response"),
    [
        (
            "kind: sysbench, test: oltp_read_write, table_size: 200, threads: 2, events: 40, max_errors: 20%",
            "throughput",
        ),
        ("kind: go-ycsb, mix: a, records: 200, operations: 400, threads: 2", "update.throughput"),
        (
            "kind: ycsb, driver: go-ycsb, key_chooser: ycsb-zipfian, mix: a, records: 200, duration: 500 ms, "
            "threads: 2",
            "update.throughput",
        ),
    ],
)
def test_the_tools_of_others_are_carried_out(
    workload: str, response: str, dyno: Dyno, study: Study, tmp_path: Path
) -> None:
    answer = dyno("run", study(tool_study(workload)), limit=200)
    assert answer.returncode == 0, answer.stderr
    made = runs(tmp_path, "tool")
    assert judged(made) == [("ok", None)] * 2
    for run in made:
        assert run["responses"][response] > 0
        assert run["notes"]


@pytest.mark.parametrize("system", ["mariadb", "postgresql"])
def test_a_ledger_whose_server_is_killed_is_audited_on_a_server_that_is_started_again(
    system: str, tmp_path: Path, home: dict[str, str], study: Study
) -> None:
    text = tool_study("kind: ledger, duration: 2 s, threads: 2", system).replace(
        "max: 2,", "max: 2, retries: 0, budget: 1 s,"
    )
    words = [DYNO, "run", str(study(text))]
    with subprocess.Popen(words, cwd=tmp_path, env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as dyno:
        said = "results/tool/*/.dyno-*-staging/run/drive-2/run/acknowledged-*"
        until(lambda: any(path.stat().st_size > 100 for path in tmp_path.glob(said)), 120)
        data = [b"-D", b"--datadir"]
        for pid in servers(tmp_path):
            if any(word.startswith(tuple(data)) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")):
                os.kill(pid, signal.SIGKILL)
        dyno.wait(200)
    (folder,) = (tmp_path / "results" / "tool").iterdir()
    run = json.loads((folder / "runs" / "0001" / "run.json").read_text())
    assert run["outcome"] in ("failed", "invalid")
    assert " operations failed (write connect" in run["cause"]
    assert "was killed by SIGKILL" in run["cause"]
    assert run["cause"].endswith("started again and checked: nothing that was acknowledged is missing")
    assert run["status"]["ledger.acknowledged"] > 0
    assert run["status"]["ledger.lost"] == 0
    kept = folder / "runs" / "0001" / "logs"
    assert (
        sum(path.read_bytes().count(b"\n") for path in kept.glob("acknowledged-*"))
        == (run["status"]["ledger.acknowledged"])
    )
    assert (kept / "errors.jsonl").stat().st_size > 0


# It takes memory of a control group, and keeps it until its input ends.
BALLOON = """import pathlib, sys
pathlib.Path(sys.argv[1]).write_text("0")
held = b"x" * int(sys.argv[2])
sys.stdin.read()
"""


def run_out_of_memory(
    study: Path, folder: Path, home: dict[str, str], first: Callable[[Path], Iterable[int]], mib: int
) -> dict[str, Any]:
    """The run of a study of whose machine's memory so much is taken while it is driven; `first` are to be killed."""
    with subprocess.Popen([DYNO, "run", str(study)], cwd=folder, env=home, stdout=subprocess.DEVNULL) as dyno:
        group = hierarchies()["memory"].top / driven_group(folder).strip("/") / "native"
        # The kernel is to choose them, and not the balloon.
        until(lambda: sum(preferred(pid) for pid in first(folder)) > 0)
        argv = [sys.executable, "-c", BALLOON, str(group / "cgroup.procs"), str(mib * 2**20)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE):
            until(lambda: bool(runs(folder, "tool")) or dyno.poll() is not None, 100)
        dyno.wait(100)
    return runs(folder, "tool")[0]


def preferred(pid: int) -> bool:
    """Whether the kernel kills this process before others; a backend may have ended by itself."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
        return True
    return False


def backends(folder: Path) -> Iterator[int]:
    for pid in servers(folder):
        yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")
def test_a_server_that_lost_a_process_for_memory_and_went_on_is_told_so(
    tmp_path: Path, home: dict[str, str], study: Study
) -> None:
    text = tool_study("kind: ycsb, mix: c, records: 200, duration: 8 s, threads: 2", "postgresql")
    text = text.replace("max: 2,", "max: 2, retries: 0, budget: 1 s,")
    text += "host: {machine: {memory: 384 MiB, cpus: 0.5}}\n"
    run = run_out_of_memory(study(text), tmp_path, home, backends, 400)  # more than there is: it is killed last
    # Clients are turned away while it recovers, which they may be done with before it is asked.
    assert run["outcome"] in ("invalid", "failed")
    assert (
        "the kernel killed a process of the system: the memory of its machine (host.machine.memory, 384 MiB) was used "
        "up" in run["cause"]
    )
    assert servers(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")
@pytest.mark.parametrize("deployment", ["native", "container-volume"])
def test_a_server_that_the_kernel_killed_for_the_memory_of_its_machine_is_told_so(
    deployment: str, tmp_path: Path, home: dict[str, str], study: Study
) -> None:
    if deployment != "native" and find("dockerd") is None:
        pytest.skip("docker is not installed (make servers)")
    text = tool_study("kind: ycsb, mix: c, records: 200, duration: 8 s, threads: 2")
    text = text.replace("max: 2,", "max: 2, retries: 0, budget: 1 s,")
    text = text.replace("config:", f"deployment: {deployment}, config:")
    text += "host: {machine: {memory: 384 MiB, cpus: 0.5}}\n"
    run = run_out_of_memory(study(text), tmp_path, home, servers, 340)
    assert run["outcome"] == "failed"
    assert (
        "mariadbd was killed by SIGKILL: the memory of its machine (host.machine.memory, 384 MiB) was used up"
        in (run["cause"])
    )
    assert run["status"]["machine.oom_kills"] >= 1  # the balloon may go too, before the server's memory is free
    assert 300 * 2**20 < run["status"]["machine.memory_peak_bytes"] <= 384 * 2**20
    assert run["status"]["machine.throttled_s"] >= 0
    assert servers(tmp_path) == []


def driven_group(folder: Path) -> str:
    """The control group of the session whose server is being driven, as soon as it is."""
    said = "results/tool/*/.dyno-*-staging/run/logs/job-run.json"
    until(lambda: any(folder.glob(said)) and bool(servers(folder)), 120)
    found = [re.search(r"/dyno-[0-9a-f]+", Path(f"/proc/{pid}/cgroup").read_text()) for pid in servers(folder)]
    return next(match[0] for match in found if match)


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")
def test_a_run_on_a_machine_with_limits_says_what_it_had_of_them(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    text = tool_study("kind: ycsb, mix: c, records: 200, duration: 500 ms, threads: 2")
    answer = dyno("run", study(f"{text}host: {{machine: {{cpus: 0.2}}}}\n"), limit=200)
    assert answer.returncode == 0, answer.stderr
    for run in runs(tmp_path, "tool"):
        assert run["status"]["machine.throttled_s"] > 0
        assert run["status"]["machine.oom_kills"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")
def test_page_cache_counts_for_a_memory_limit_though_dyno_copied_the_data(
    dyno: Dyno, study: Study, tmp_path: Path
) -> None:
    """Of 40,000 records the file is some 56 MB, and the cache of its own 1 MiB: most is read through page cache."""
    text = tool_study("kind: ycsb, mix: c, key_chooser: uniform, records: 40000, duration: 1 s, threads: 2", "sqlite")
    answer = dyno("run", study(f"{text}host: {{machine: {{memory: 24 MiB}}}}\n"), limit=200)
    assert answer.returncode == 0, answer.stderr
    for run in runs(tmp_path, "tool"):
        assert (run["caches"]["asked"], run["outcome"]) == ("warm", "ok")
        assert 20 * 2**20 < run["status"]["machine.memory_peak_bytes"] <= 24 * 2**20
        assert run["responses"]["device_read"] > 20


def test_a_setting_that_is_not_effective_makes_the_run_invalid(dyno: Dyno, study: Study, tmp_path: Path) -> None:
    text = tool_study("kind: ycsb, mix: c, records: 100, operations: 100").replace(
        SMALL["mariadb"], SMALL["mariadb"] + ", max_connections: 3"
    )
    answer = dyno("run", study(text), limit=200)
    assert answer.returncode == 1
    assert {run["outcome"] for run in runs(tmp_path, "tool")} == {"invalid"}
    assert (
        "max_connections is 10, the study asks for 3: the setting was not effective"
        in runs(tmp_path, "tool")[0]["cause"]
    )


@pytest.mark.parametrize("system", ["mariadb", "postgresql"])
def test_a_dyno_that_was_killed_takes_its_server_with_it_and_leaves_the_rest_to_the_next(
    system: str, tmp_path: Path, home: dict[str, str], study: Study, dyno: Dyno
) -> None:
    # A server ran on until the next dyno command, which may be weeks later.
    text = tool_study("kind: ycsb, mix: a, records: 100, duration: 60 s", system)
    words = [DYNO, "run", str(study(text))]
    with subprocess.Popen(
        words, cwd=tmp_path, env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        # The empty store is made by servers of their own: this is the one that is driven.
        until(lambda: bool(list(tmp_path.glob("results/tool/*/.dyno-*-staging/run/logs/job-run.json"))), 120)
        assert servers(tmp_path) != []
        process.send_signal(signal.SIGKILL)
    until(lambda: servers(tmp_path) == [], 30)
    answer = dyno("clean")
    assert answer.returncode == 0, answer.stderr
    assert servers(tmp_path) == []
    assert list((tmp_path / "state" / "undo").iterdir()) == []
    assert not [path for path in (tmp_path / "results").rglob(".dyno-*") if path.is_dir()]


@pytest.mark.parametrize(
    ("workload", "change", "message"),
    [
        ("kind: sysbench, test: oltp_nothing, events: 1", {}, "should be one of oltp_read_only"),
        ("kind: ycsb-java, mix: a, operations: 10", {"YCSB_HOME": ""}, "YCSB_HOME is not set"),
        ("kind: go-ycsb, mix: a, operations: 10", {"XDG_CACHE_HOME": "/nowhere"}, "`dyno get go-ycsb` builds it"),
        ("kind: sysbench, test: oltp_read_only, events: 1", {"PATH": "/nowhere"}, "apt-get install sysbench"),
        ("kind: ycsb, mix: a, operations: 9, rate: 9, think_time: 1 s", {}, "study.yaml:5: workload: think_time is of"),
        ("kind: ledger, operations: 9, payload: 1 MiB", {}, "study.yaml:5: workload.payload: "),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    workload: str, change: dict[str, str], message: str, tmp_path: Path, home: dict[str, str], study: Study
) -> None:
    words = [DYNO, "run", str(study(tool_study(workload)))]
    answer = subprocess.run(
        words, cwd=tmp_path, env={**home, **change}, capture_output=True, text=True, timeout=100, check=False
    )
    assert answer.returncode == 2, answer.stderr
    assert message in answer.stderr
    assert len([line for line in answer.stderr.splitlines() if line.startswith("dyno: ") or ".yaml:" in line]) == 1
    assert "Traceback" not in answer.stderr


def test_a_tool_that_nobody_knows_is_refused_and_known_ones_are_listed(dyno: Dyno) -> None:
    listed = dyno("get").stdout
    assert "go-ycsb v1.0.1" in listed
    assert "mysql of Debian's sid" in listed
    answer = dyno("get", "no-such-tool")
    assert answer.returncode == 2
    assert "unknown tool; there are go-ycsb" in answer.stderr


def test_the_doctor_names_servers_and_tools(dyno: Dyno) -> None:
    said = dyno("doctor").stdout
    for name in ("MariaDB", "PostgreSQL", "sysbench", "Go", "go-ycsb", "YCSB"):
        assert f" {name}: " in said


def test_a_study_that_cannot_be_provided_leaves_no_folder_for_resume_to_take(
    tmp_path: Path, home: dict[str, str], study: Study
) -> None:
    words = [DYNO, "run", str(study(tool_study("kind: go-ycsb, mix: a, operations: 10")))]
    nowhere = {**home, "XDG_CACHE_HOME": "/nowhere"}
    answer = subprocess.run(words, cwd=tmp_path, env=nowhere, capture_output=True, text=True, timeout=100, check=False)
    assert (answer.returncode, "cannot be provided" in answer.stderr) == (2, True)
    assert "results:" not in answer.stderr, "no folder stays"
    assert list((tmp_path / "results").iterdir()) == []


def test_resuming_where_nothing_is_makes_no_folder(tmp_path: Path, dyno: Dyno, study: Study) -> None:
    answer = dyno("run", study(), "--resume", "--results", "new")
    assert (answer.returncode, "nothing to resume" in answer.stderr) == (2, True)
    assert not (tmp_path / "new").exists()
