"""Counters and hot spots of a real server, as a user gets them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import polars as pl
import pytest

from dyno.analysis.hot_spots import frame
from tests.end_to_end.conftest import Dyno

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


@pytest.mark.slow
def test_instructions_are_counted_where_no_counter_does(dyno: Dyno, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(COUNT.format(system="postgresql"))
    answer = dyno(
        "instructions", file, "--operations", "2000", "--format", "json", "--set", "factors.mix=[c]", limit=280
    )
    assert answer.returncode == 0, answer.stderr
    (cell,) = json.loads(answer.stdout)["cells"]
    assert len(cell["per_operation"]) == 2
    # A point read over the wire takes some ten thousand; how much a start took in either run is not alike.
    assert 1e4 < cell["mean"] < 2e5
    assert not (tmp_path / "results" / "count" / "report.html").exists()


def test_what_has_no_server_of_its_own_is_refused_to_be_counted(dyno: Dyno, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(COUNT.format(system="sqlite"))
    answer = dyno("instructions", file)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == "dyno: sqlite lives in the driver's process: there is no server to count\n"
