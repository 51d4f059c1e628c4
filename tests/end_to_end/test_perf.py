"""Counters and hot spots of a real server, as a user gets them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from dyno.analysis.hot_spots import frame
from tests.end_to_end.conftest import DYNO, Dyno
from tests.making import until

WHY = """
study: why
question: Where does the time go?
factors:
  deployment: [native{container}]
system: {{kind: mariadb, deployment: "${{deployment}}", config: {{innodb_log_file_size: 8M}}}}
workload: {{kind: ycsb, mix: a, records: 500, duration: 2 s, threads: 2}}
replicates: {{min: 2, max: 2, precision: 500%}}
observe: [perf-stat: {{hz: 5}}, perf-record: {{frequency: 499, rules: [{{group: planted, symbol: "^no_such$"}}]}}]
"""


def test_counters_and_hot_spots_of_a_server_natively_and_in_a_container(dyno: Dyno, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(WHY.format(container=", container-volume" if os.geteuid() == 0 else ""))
    answer = dyno("run", file, limit=280)
    assert answer.returncode == 0, answer.stderr
    (folder,) = (tmp_path / "results" / "why").iterdir()
    for run in sorted(folder.glob("runs/*")):
        samples = pl.read_parquet(run / "samples.parquet")
        clock = samples.filter(pl.col("metric") == "task-clock")
        assert set(clock["subject"]) == {"mariadbd", "driver"}
        assert float(clock.filter(pl.col("subject") == "mariadbd")["value"].max() or 0) > 0.01  # type: ignore[arg-type]
        stacks = pl.read_parquet(run / "stacks.parquet")
        assert set(stacks["subject"]) == {"mariadbd"}
        modules = {frame(each).module for stack in stacks["stack"] for each in stack.split(";")[1:]}
        # In a container too: its files are the machine's own, at the paths at which perf looks for their names.
        assert {"kernel", "mariadbd", "libc.so.6"} <= modules
        assert {path.name for path in run.iterdir()} <= {
            "run.json", "intervals.parquet", "latency.hlog", "samples.parquet", "stacks.parquet", "logs",
        }  # fmt: skip
    found = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert [each["runs"] for each in found["hot_spots"]] == [2] * len(
        found["cells"][0]["values"] and found["hot_spots"]
    )
    for cell in found["hot_spots"]:
        assert sum(group["share"] for group in cell["groups"]) == pytest.approx(1)
        known = {group["group"]: group["share"] for group in cell["groups"]}
        assert known.get("other", 0) < 0.5, known
    (note,) = [note for note in found["notes"] if "hardware counters" in note and "cycles" in note] or [None]
    counted = "instructions" in set(pl.read_parquet(next(folder.glob("runs/0001/samples.parquet")))["metric"])
    assert counted == (note is None), "what is not known is said, once"
    page = (folder / "report.html").read_text()
    assert '<section id="hot-spots">' in page
    assert "<summary>Flame graph</summary>" in page
    if os.geteuid() == 0:
        assert "<summary>What changed against native</summary>" in page
        assert (folder / "figures" / "flame-1-against-0.svg").is_file()
    first = (folder / "report.html").read_bytes()
    assert dyno("report", folder).returncode == 0
    assert (folder / "report.html").read_bytes() == first, "the same folder gives the same report"

    mine = tmp_path / "mine.toml"
    mine.write_text("[[rule]]\ngroup = 'all of the kernel'\nmodule = '^kernel$'\n")
    shown = dyno("show", folder, "--hot-spots", mine).stdout
    assert "all of the kernel" in shown
    mine.write_text("[[rule]]\ngroup = 'nothing'\n")
    answer = dyno("show", folder, "--hot-spots", mine)
    assert answer.returncode == 2
    assert re.match(r"dyno: .*mine\.toml: rule 1: .*a rule has a symbol or a module\n$", answer.stderr)


COUNT = """
study: count
question: How many instructions?
factors:
  mix: [c, a]
system: {{kind: {system}}}
workload: {{kind: ycsb, mix: "${{mix}}", records: 100, operations: 100000, threads: 1}}
observe: []
"""


def _studied(folder: Path, system: str) -> Path:
    file = folder / "study.yaml"
    file.write_text(COUNT.format(system=system))
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "operations", "for_valgrind"),
    [
        ("postgresql", 300, []),
        ("mariadb", 200, ["--innodb-use-native-aio=0", "--loose-innodb-buffer-pool-size-max=134217728"]),
    ],
)
def test_instructions_are_counted_where_no_counter_does(
    dyno: Dyno, tmp_path: Path, system: str, operations: int, for_valgrind: list[str]
) -> None:
    # MariaDB never came up: valgrind let no thread run while one waited for io_uring. Of PostgreSQL what its start took
    # was counted once more for each process that it forked, and two starts differed by more than the operations took.
    file, mine = _studied(tmp_path, system), tmp_path / "mine.toml"
    mine.write_text("[[rule]]\ngroup = 'all of libc'\nmodule = '^libc\\.so'\n")
    words = ["--operations", operations, "--set", "factors.mix=[c]", "--hot-spots", mine]
    answer = dyno("instructions", file, *words, "--format", "json", limit=280)
    assert answer.returncode == 0, answer.stderr
    (cell,) = json.loads(answer.stdout)["cells"]
    assert len(cell["per_operation"]) == 2
    # A point read over the wire takes some ten thousand.
    assert all(1e4 < each < 2e5 for each in cell["per_operation"]), cell
    assert cell["for_valgrind"] == for_valgrind
    # Each run has what its instructions were spent on, and of these the figures are.
    (folder,) = (tmp_path / "results" / "count" / "pilots").iterdir()
    for run in folder.glob("runs/*"):
        counted = json.loads((run / "run.json").read_text())["status"]["valgrind.instructions"]
        assert pl.read_parquet(run / "functions.parquet")["instructions"].sum() == counted
    for block, total in enumerate(cell["per_operation"]):
        assert sum(group["per_operation"][block] for group in cell["groups"]) == pytest.approx(total)
    known = {group["group"]: group["share"] for group in cell["groups"]}
    assert known["rows"] > 0
    assert "all of libc" in known
    assert not {"copy", "memory management"} & {each["group"] for each in cell["functions"] if "libc" in each["module"]}
    # Debian's servers bring no names of their static functions.
    assert known["other"] < 0.7, known
    assert not (tmp_path / "results" / "count" / "report.html").exists()


@pytest.mark.parametrize(
    ("system", "asked", "why"),
    [
        (
            "mariadb",
            "system.config.innodb_use_native_aio=true",
            "innodb_use_native_aio has to be off: while one thread waits for io_uring, valgrind lets none run",
        ),
        *(
            (
                system,
                "system.config.stop=kill",
                "stop has to be clean: a server that is killed does not tell what it counted",
            )
            for system in ("mariadb", "postgresql")
        ),
    ],
)
def test_what_valgrind_cannot_run_is_refused_where_a_study_asks_for_it(
    dyno: Dyno, tmp_path: Path, system: str, asked: str, why: str
) -> None:
    # Killed and started again, a server told what it took to come back, as if that were the run.
    answer = dyno("instructions", _studied(tmp_path, system), "--set", asked)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"dyno: {system} cannot be counted as the study has it: {why}\n"


@pytest.mark.parametrize("system", ["mariadb", "postgresql"])
def test_sigterm_ends_it_while_the_counted_server_starts_and_nothing_is_left(
    dyno: Dyno, home: dict[str, str], tmp_path: Path, system: str
) -> None:
    words = [DYNO, "instructions", str(_studied(tmp_path, system))]
    with subprocess.Popen(
        words, cwd=tmp_path, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: bool(_under_valgrind(tmp_path)) or process.poll() is not None, 120)
        server = min(_under_valgrind(tmp_path))
        # It hears nothing, as one does that valgrind lets hang.
        os.kill(server, signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        said, errors = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, ""), errors
    (record,) = (tmp_path / "results" / "count" / "pilots").glob("*/runs/*/run.json")
    found = json.loads(record.read_text())
    assert (found["outcome"], found["step"]) == ("partial", "ready")
    assert _of_folder(tmp_path) == {}
    assert list((tmp_path / "state" / "undo").iterdir()) == []
    assert [path.name for path in record.parents[2].iterdir() if path.name.startswith(".")] == []


def _of_folder(folder: Path) -> dict[int, str]:
    """Processes that have a folder among their words, by id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words:
                found[int(path.parent.name)] = words
    return found


def _under_valgrind(folder: Path) -> list[int]:
    return [pid for pid, words in _of_folder(folder).items() if "--tool=callgrind" in words]


def test_what_has_no_server_of_its_own_is_refused_to_be_counted(dyno: Dyno, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(COUNT.format(system="sqlite"))
    answer = dyno("instructions", file)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == (
        "dyno: sqlite lives in the driver's process: there is no server to count; the observer `counted` has its "
        "transactions counted by `dyno run`\n"
    )
