"""Every command as a new user would try it, with mistakes."""

from __future__ import annotations

import csv
import io
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import polars as pl
import pytest
import yaml

from tests.end_to_end.conftest import DYNO, SIMULATED, SQLITE, STAGED, Dyno

Write = Callable[..., Path]


def results_of(folder: Path, study: str) -> Path:
    return sorted((folder / "results" / study).iterdir())[-1]


def refused(answer: subprocess.CompletedProcess[str], *fragments: str) -> None:
    """One line on standard error, status 2, no traceback."""
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    lines = answer.stderr.strip().splitlines()
    assert len(lines) == 1, answer.stderr
    for fragment in fragments:
        assert fragment in lines[0]


def test_check_says_that_a_good_file_is_good(dyno: Dyno, study: Write) -> None:
    answer = dyno("check", study())
    assert answer.returncode == 0
    assert "2 cells of 1 factor" in answer.stdout


def test_check_names_file_line_key_and_remedy(dyno: Dyno, study: Write) -> None:
    path = study(SIMULATED.replace("question:", "qestion:"))
    refused(dyno("check", path), f"{path}:3", "qestion", "question")


def test_a_missing_file_is_one_line(dyno: Dyno) -> None:
    refused(dyno("check", "nowhere.yaml"), "nowhere.yaml", "no such file")


def test_a_workload_that_cannot_drive_the_system_is_refused_by_check_plan_and_run(dyno: Dyno, study: Write) -> None:
    path = study(SQLITE.replace("kind: ycsb, mix: a, records: 300, operations: 400, threads: 2", "kind: simulated"))
    for command in ("check", "plan", "run"):
        refused(dyno(command, path), f"{path}:9: workload.kind: simulated cannot drive system sqlite")


def test_plan_shows_cells_blocks_and_runs(dyno: Dyno, study: Write) -> None:
    answer = dyno("plan", study())
    assert answer.returncode == 0
    assert "4 to 12 of 2 runs each = 8 to 24 runs" in answer.stdout
    assert "1500" in answer.stdout


def test_plan_as_json_is_what_a_run_keeps(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    planned = json.loads(dyno("plan", study(), "--format", "json").stdout)
    assert dyno("run", study()).returncode == 0
    assert json.loads((results_of(tmp_path, "simulated") / "plan.json").read_text()) == planned


def test_plan_shows_both_stages(dyno: Dyno, study: Write) -> None:
    answer = dyno("plan", study(STAGED))
    assert answer.returncode == 0, answer.stderr
    told = " ".join(answer.stdout.split())
    assert "stage one picks the best tuning for each of 4 combinations:" in told
    assert "solution=one threads=4: low, high" in told
    assert "blocks: 4 to 8 of 10 runs each = 40 to 80 runs" in told
    assert "looked at after blocks 4, 6, 8" in told
    assert "stage two compares what was picked between levels of solution" in told
    assert "blocks: 4 to 8 of 4 runs each = 16 to 32 runs" in told


def test_a_staged_study_picks_on_some_runs_and_compares_on_others(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    answer = dyno("run", study(STAGED))
    assert answer.returncode == 0, answer.stderr
    assert "run 1 stage 1 block 1" in answer.stderr
    assert "two is faster than one in both combinations" in answer.stdout
    folder = results_of(tmp_path, "best-case")
    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert [choice["chosen"] for choice in shown["choices"]] == ["high", "high", "top", "top"]
    stages = [json.loads(path.read_text())["slot"]["stage"] for path in sorted(folder.glob("runs/*/run.json"))]
    assert stages == sorted(stages)
    assert set(stages) == {1, 2}
    deciding = [cell for cell in shown["cells"] if cell["response"] == "throughput"]
    assert sum(cell["n"] for cell in deciding) == stages.count(2)
    assert "Stage one: the best tuning" in (folder / "report.html").read_text()
    assert dyno("compare", folder, shutil.copytree(folder, tmp_path / "copy")).returncode == 0


CLIENTS = """
study: clients
question: What would three clients have?
factors:
  threads: [1, 2, 4, 6]
system: {kind: sqlite, config: {synchronous: "off"}}
workload: {kind: ycsb, mix: c, records: 300, duration: 1 s, threads: "${threads}"}
replicates: {min: 2, max: 2, precision: 500%}
observe: [machine: {hz: 10}]
"""


def test_a_forecast_comes_with_the_error_made_on_levels_left_out(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    answer = dyno("run", study(CLIENTS))
    assert answer.returncode == 0, answer.stderr
    assert "What the resources allow" in answer.stdout
    folder = results_of(tmp_path, "clients")
    assert '<section id="laws">' in (folder / "report.html").read_text()
    told = dyno("forecast", folder, "--at", "threads=3")
    assert told.returncode == 0, told.stderr
    assert "threads 3 is forecast to have" in told.stdout
    assert "demands that depend on load forecast threads 2 to 4 with an error of" in told.stdout
    (found,) = json.loads(dyno("forecast", folder, "--at", "threads=3", "--format", "json").stdout)
    assert found["throughput"] > 0
    laws = json.loads(dyno("show", folder, "--format", "json").stdout)["laws"]
    # More clients than CPUs, beside other tests: one may be held back between two operations, which is in no latency.
    assert all(fault["law"] == "Little's law" and fault["found"] < fault["expected"] for fault in laws["faults"])
    assert [cell["clients"] for cell in laws["cells"]] == [1, 2, 4, 6]
    refused(dyno("forecast", folder, "--at", "threads=7"), "whole numbers from 1 to 6", "beyond them nothing is known")
    refused(dyno("forecast", folder, "--at", "threads"), "--at threads", "such as threads=6")
    refused(dyno("forecast", folder, "--at", "rows=2"), "rows is no factor")


def test_a_staged_study_cannot_be_gated(dyno: Dyno, study: Write) -> None:
    refused(dyno("gate", study(STAGED), "--base", "seed=1", "--new", "seed=2"), "stages", "cell by cell")


def test_a_rate_that_was_given_cannot_be_gated(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    rated = ("gate", study(SQLITE), "--base", "workload.rate=50", "--new", "workload.rate=100")
    refused(dyno(*rated), "throughput comes at a given rate", "replicates.of=latency_p99")
    assert not (tmp_path / "results").exists()


def test_what_is_neither_a_folder_nor_a_setting_is_blamed_on_its_own_option(dyno: Dyno, study: Write) -> None:
    refused(dyno("gate", study(), "--base", "seed=1", "--new", "foo"), "--new foo", "neither a results folder")


def test_folders_are_gated_as_sessions_of_the_study_file_once_each(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    for seed in range(6):
        short = ("--set", "replicates.min=2", "--set", "replicates.max=2", "--set", f"seed={seed}")
        assert dyno("run", study(), *short).returncode == 0
    *base, new = sorted((tmp_path / "results" / "simulated").iterdir())
    sides = [word for folder in base for word in ("--base", folder)]
    answer = dyno("gate", study(), *sides, "--new", new, "--slower", "90%")
    assert answer.returncode == 0, answer.stderr
    assert "that of the base" in answer.stdout
    refused(dyno("gate", study(), *sides, "--new", base[0]), "hold the same runs")
    other = study(SIMULATED.replace("study: simulated", "study: mine"), "mine.yaml")
    refused(dyno("gate", other, *sides, "--new", new), "is of study simulated, and the study file is of mine")
    refused(dyno("gate", study(), *sides, "--new", new, "--set", "host.caches=cold"), "differ in host.caches")


@pytest.mark.parametrize(
    ("key", "fragment"),
    [
        ("stages.best=tunings", "unknown factor 'tunings'; did you mean 'tuning'?"),
        ("stages.levels.three=[low]", "unknown level of solution 'three'"),
        ("stages.share=0.5", "has no unit"),
        ("stages.then=solution", "unknown key"),
        ("replicates.precision_of=mean", "write precision_of: ratio"),
    ],
)
def test_mistakes_in_stages_are_one_line(dyno: Dyno, study: Write, key: str, fragment: str) -> None:
    for command in ("check", "plan", "run"):
        refused(dyno(command, study(STAGED), "--set", key), f"--set {key.partition('=')[0]}", fragment)


def test_the_schema_takes_good_files_and_refuses_bad_ones(dyno: Dyno) -> None:
    schema = json.loads(dyno("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(SIMULATED), schema)
    jsonschema.validate(yaml.safe_load(STAGED), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**yaml.safe_load(SIMULATED), "sytem": {}}, schema)


def test_a_study_runs_from_file_to_report(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    answer = dyno("run", study())
    assert answer.returncode == 0, answer.stderr
    folder = results_of(tmp_path, "simulated")
    page = (folder / "report.html").read_text()
    assert "Is the second mean above the first?" in page
    assert f"report: results/simulated/{folder.name}/report.html" in answer.stderr
    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert shown["study"] == "simulated"
    cell = next(cell for cell in shown["cells"] if cell["response"] == "throughput")
    for key in ("levels", "response", "unit", "n", "failed", "invalid", "mean", "sd", "cov", "ci", "converged"):
        assert key in cell
    comparison = next(each for each in shown["comparisons"] if each["response"] == "throughput")
    assert {"response", "a", "b", "within", "ratio", "ci", "verdict"} <= comparison.keys()
    assert comparison["ci"][0] < comparison["ratio"] < comparison["ci"][1]
    assert comparison["ci"][0] < 1.5 < comparison["ci"][1] * 1.05
    assert comparison["verdict"] == "higher"
    assert shown["failures"] == []


def test_a_run_leaves_only_its_results_behind(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    assert dyno("run", study(SQLITE)).returncode == 0
    folder = results_of(tmp_path, "embedded")
    assert {path.name for path in folder.iterdir()} == {
        "study.yaml", "plan.json", "environment.json", "events.jsonl", "runs", "report.html", "figures",
    }  # fmt: skip
    assert list((tmp_path / "state" / "undo").iterdir()) == []


def test_a_sqlite_run_keeps_everything_that_the_design_names(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    assert dyno("run", study(SQLITE)).returncode == 0
    run = results_of(tmp_path, "embedded") / "runs" / "0001"
    for name in ("run.json", "intervals.parquet", "latency.hlog", "samples.parquet"):
        assert (run / name).stat().st_size > 0, name
    record = json.loads((run / "run.json").read_text())
    assert record["outcome"] == "ok"
    assert record["settings"]["journal_mode"] == record["levels"]["journal_mode"]
    assert record["settings"]["synchronous"] == "off"
    assert record["commands"][0][0].endswith("dyno-core")
    assert record["responses"]["throughput"] > 0


@pytest.mark.parametrize("caches", ["warm", "cold"])
@pytest.mark.parametrize(
    "system", ['{kind: sqlite, config: {journal_mode: "${mode}", synchronous: "off"}}', "{kind: 'null'}"]
)
def test_the_measured_part_of_a_real_run_is_stated_and_a_cold_one_is_whole(
    dyno: Dyno, study: Write, tmp_path: Path, caches: str, system: str
) -> None:
    mode = "{wal: {}}" if "null" in system else "[wal]"
    text = f"""
study: inside
question: What did the runs go through?
factors: {{mode: {mode}}}
host: {{caches: {caches}}}
system: {system}
workload: {{kind: ycsb, mix: a, records: 300, duration: 1200 ms, interval: 10 ms, max_errors: 50%}}
replicates: {{min: 2, max: 2, precision: 500%}}
observe: []
"""
    answer = dyno("run", study(text))
    assert answer.returncode == 0, answer.stderr
    folder = results_of(tmp_path, "inside")
    for run in sorted((folder / "runs").iterdir()):
        record = json.loads((run / "run.json").read_text())
        part = record["measured"]
        assert part["class"] in ("steady", "warm-up then steady", "slowing down", "none")
        assert part["to_s"] == pytest.approx(1.2)
        assert part["seconds"] == pytest.approx(record["responses"]["elapsed"])
        assert (part["from_s"] > 0) == (caches == "warm" and part["class"] == "warm-up then steady")
        intervals = pl.read_parquet(run / "intervals.parquet")
        counted = intervals.filter(pl.col("warmup").not_())["count"].sum()
        assert counted == pytest.approx(record["responses"]["throughput"] * part["seconds"], abs=2)
        assert intervals["warmup"].any() == (part["from_s"] > 0)


def test_the_report_of_a_copied_folder_is_the_same_byte_for_byte(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    assert dyno("run", study(SQLITE)).returncode == 0
    folder = results_of(tmp_path, "embedded")
    copy = tmp_path / "elsewhere" / "copy"
    copy.parent.mkdir()
    folder.rename(copy)
    before = {path.name: path.read_bytes() for path in [copy / "report.html", *(copy / "figures").iterdir()]}
    assert dyno("report", copy).returncode == 0
    assert {path.name: path.read_bytes() for path in [copy / "report.html", *(copy / "figures").iterdir()]} == before


def test_set_and_scale_reach_the_run(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    path = study(SIMULATED + "scales:\n  tiny: {replicates: {min: 2, max: 2}}\n")
    assert dyno("run", path, "--scale", "tiny", "--set", "system.config.cov=1%").returncode == 0
    shown = json.loads(dyno("show", results_of(tmp_path, "simulated"), "--format", "json").stdout)
    assert shown["scale"] == "tiny"
    assert {cell["n"] for cell in shown["cells"]} == {2}


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (["--set", "workload.recrods=1"], ["--set", "recrods"]),
        (["--set", "workload"], ["--set workload", "key=value"]),
        (["--scale", "smok"], ["smok"]),
    ],
)
def test_wrong_options_are_one_line(dyno: Dyno, study: Write, words: list[str], fragments: list[str]) -> None:
    refused(dyno("run", study(SQLITE), *words), *fragments)


def test_a_failing_cell_makes_status_1_and_is_named(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    path = study(SIMULATED.replace("cov: 5%", "cov: 5%, failing: 100%"))
    answer = dyno("run", path)
    assert answer.returncode == 1
    assert "mean=1000: no ok run" in answer.stderr
    shown = json.loads(dyno("show", results_of(tmp_path, "simulated"), "--format", "json").stdout)
    assert shown["failures"][0]["step"] == "start"
    assert shown["failures"][0]["cause"] == "simulated failure"


def test_a_strict_study_that_misses_its_precision_makes_status_1(dyno: Dyno, study: Write) -> None:
    path = study(SIMULATED.replace("max: 12, precision: 10%", "max: 3, precision: 0.01%, strict: true"))
    answer = dyno("run", path)
    assert answer.returncode == 1
    assert "did not reach the precision" in answer.stderr
    assert dyno("run", path, "--set", "replicates.strict=false").returncode == 0


def test_show_knows_the_responses_that_there_are(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    dyno("run", study())
    folder = results_of(tmp_path, "simulated")
    assert "mean latency" in dyno("show", folder, "--response", "latency_mean").stdout
    refused(dyno("show", folder, "--response", "latncy_p99"), "unknown response", "did you mean 'latency_p99'?")
    refused(dyno("show", folder, "--response", "cpu.util"), "not measured here, since the study has no observer")
    timed, *_ = json.loads(dyno("show", folder, "--timing", "--format", "json").stdout)
    assert {each["step"] for each in timed["steps"]} >= {"restore", "start", "ready", "drive", "stop"}
    assert "around the run" in dyno("show", folder, "--timing").stdout
    refused(dyno("show", folder, "--timing", "--response", "throughput"), "--timing goes with")
    rows = list(csv.DictReader(io.StringIO(dyno("show", folder, "--format", "csv").stdout)))
    assert {"response", "mean", "n"} <= rows[0].keys()


@pytest.mark.parametrize("command", [["show"], ["report"]])
def test_a_folder_that_is_none_is_refused(dyno: Dyno, command: list[str], tmp_path: Path) -> None:
    refused(dyno(*command, "nowhere"), "nowhere: no such folder")
    (tmp_path / "empty").mkdir()
    refused(dyno(*command, "empty"), "empty: not a results folder")


def test_compare_sets_two_folders_side_by_side_and_never_says_faster(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    dyno("run", study(), "--results", "a")
    dyno("run", study(), "--results", "b", "--set", "system.config.seed=7")
    a, b = (next((tmp_path / name / "simulated").iterdir()) for name in "ab")
    answer = dyno("compare", a, b)
    assert answer.returncode == 0
    assert "not interleaved" in answer.stdout
    assert "faster" not in answer.stdout
    found = json.loads(dyno("compare", a, b, "--format", "json").stdout)
    assert len(found["cells"]) == found["together"]["cells"] == 2
    assert found["together"]["sentence"] in answer.stdout


def test_folders_that_cannot_be_set_side_by_side_are_refused(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    short = ("--set", "replicates.min=2", "--set", "replicates.max=2")
    for factors in ("[1000]", "[2000]"):
        assert dyno("run", study(), *short, "--set", f"factors.mean={factors}").returncode == 0
    a, b = sorted((tmp_path / "results" / "simulated").iterdir())
    refused(dyno("compare", a, a), "the same results folder")
    refused(dyno("compare", a, b), "have no cell in common")


def test_a_folder_for_data_is_made_within_one_that_is_there_and_goes_again(
    dyno: Dyno, study: Write, tmp_path: Path
) -> None:
    refused(dyno("run", study(), "--work", "not/there"), "--work", "not/there")
    assert dyno("run", study(), "--work", "data", "--set", "replicates.max=3").returncode == 0
    refused(dyno("selfcheck", "--quick", "--work", "not/there"), "--work", "not/there")
    assert not (tmp_path / "not").exists()
    assert not (tmp_path / "data").exists()


def test_doctor_finds_what_is_needed_and_leaves_nothing(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("doctor")
    assert answer.returncode == 0, answer.stdout
    assert "ok   dyno-core" in answer.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"state"}


def test_clean_has_nothing_to_do_after_a_good_run(dyno: Dyno, study: Write) -> None:
    dyno("run", study())
    answer = dyno("clean")
    assert (answer.returncode, answer.stdout.strip()) == (0, "nothing was left")


def test_results_that_cannot_be_written_are_one_line(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(dyno("run", study(), "--results", "file/results"), "file/results")


def test_too_little_disk_is_refused_before_anything_starts(dyno: Dyno, study: Write) -> None:
    path = study(SIMULATED + "host: {require: {free_disk: 900000 TiB}}\n")
    answer = dyno("run", path)
    assert answer.returncode == 2
    assert "free_disk" in answer.stderr


def test_nothing_to_resume_is_said(dyno: Dyno, study: Write) -> None:
    path = study()
    refused(dyno("run", path, "--resume"), "nothing to resume")
    dyno("run", path)
    refused(dyno("run", path, "--resume"), "nothing to resume", "is done")
    refused(dyno("run", path, "--resume", "--set", "seed=9"), "another study file, scale or --set")


def test_ctrl_c_ends_with_130_and_resume_goes_on(
    study: Write, home: dict[str, str], tmp_path: Path, dyno: Dyno
) -> None:
    path = study(SQLITE.replace("operations: 400", "duration: 1 s"))
    with subprocess.Popen(
        [DYNO, "run", str(path)], cwd=tmp_path, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("run 1 "):
                break
        time.sleep(0.5)  # into the second run
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    folder = results_of(tmp_path, "embedded")
    outcomes = [json.loads(path.read_text())["outcome"] for path in sorted(folder.glob("runs/*/run.json"))]
    assert outcomes == ["ok", "partial"]
    answer = dyno("run", path, "--resume")
    assert answer.returncode == 0, answer.stderr
    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    throughput = [cell for cell in shown["cells"] if cell["response"] == "throughput"]
    assert [cell["n"] for cell in throughput] == [2, 2]
    assert sum(cell["partial"] for cell in throughput) == 1


def test_output_into_a_closed_pipe_is_no_error(study: Write, home: dict[str, str], tmp_path: Path) -> None:
    command = f"{DYNO} schema | head -n 1"
    answer = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], env=home, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in answer.stderr
    assert answer.stderr == ""


def test_a_study_is_not_resumed_on_another_machine(study: Write, dyno: Dyno, tmp_path: Path) -> None:
    path = study()
    assert dyno("run", path).returncode == 0
    folder = results_of(tmp_path, "simulated")
    events = (folder / "events.jsonl").read_text().splitlines()
    (folder / "events.jsonl").write_text("\n".join(events[:-1]) + "\n")  # as if it had been cut off before its end
    environment = json.loads((folder / "environment.json").read_text())
    environment["kernel"]["release"] = "2.6.32"
    (folder / "environment.json").write_text(json.dumps(environment))
    refused(dyno("run", path, "--resume"), "the machine is not as it was", "kernel.release was 2.6.32")


def test_the_data_are_not_moved_to_another_device_by_a_resume(study: Write, dyno: Dyno, tmp_path: Path) -> None:
    path = study()
    assert dyno("run", path).returncode == 0
    folder = results_of(tmp_path, "simulated")
    events = (folder / "events.jsonl").read_text().splitlines()
    (folder / "events.jsonl").write_text("\n".join(events[:-1]) + "\n")
    shared_memory = Path("/dev/shm")
    refused(dyno("run", path, "--resume", "--work", shared_memory), "file_systems.data")


def test_a_report_that_was_cut_off_is_written_by_a_resume(study: Write, dyno: Dyno, tmp_path: Path) -> None:
    path = study()
    assert dyno("run", path).returncode == 0
    page = results_of(tmp_path, "simulated") / "report.html"
    page.unlink()
    assert dyno("run", path, "--resume").returncode == 0
    assert page.exists()


def test_a_report_folder_that_cannot_be_written_is_one_line(study: Write, dyno: Dyno, tmp_path: Path) -> None:
    assert dyno("run", study()).returncode == 0
    (tmp_path / "file").write_text("")
    folder = results_of(tmp_path, "simulated")
    refused(dyno("report", folder, "--out", tmp_path / "file" / "out"), "cannot write the report", "--out")


def test_what_two_folders_were_asked_for_is_compared_too(study: Write, dyno: Dyno, tmp_path: Path) -> None:
    assert dyno("run", study(SQLITE), "--results", "a").returncode == 0
    assert dyno("run", study(SQLITE), "--results", "b", "--set", "workload.mix=c").returncode == 0
    a, b = (next((tmp_path / name / "embedded").iterdir()) for name in "ab")
    assert "not asked for the same: they differ in workload.mix" in dyno("compare", a, b).stdout


@pytest.mark.parametrize(
    ("change", "where", "fragment"),
    [
        (
            ('synchronous: "off"', "locking_mode: exclusive"),
            "8: system.config: ",
            "lets 1 client in, and the workload has 2",
        ),
        (
            (
                SQLITE[SQLITE.index("  journal_mode: [") : SQLITE.index("replicates")],
                '  synchronous: ["off", full]\nsystem:\n  kind: sqlite\n'
                '  config: {journal_mode: "off", synchronous: "${synchronous}"}\n'
                "workload: {kind: tpcc, warehouses: 1, operations: 400}\n",
            ),
            "8: system.config: ",
            "journal_mode off undoes nothing, and the workload rolls back: write workload.rollbacks: 0",
        ),
        (
            ("threads: 2}", "threads: 2, warmup: 1 s}\nhost: {caches: cold}"),
            "10: host.caches: ",
            "a warm-up would fill the caches",
        ),
    ],
)
def test_a_study_that_could_only_fail_is_refused(
    dyno: Dyno, study: Write, change: tuple[str, str], where: str, fragment: str
) -> None:
    path = study(SQLITE.replace(*change))
    refused(dyno("check", path), f"{path}:{where}", fragment)


def test_cold_runs_are_measured_cold(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    assert dyno("run", study(SQLITE + "host: {caches: cold}\n")).returncode == 0
    record = json.loads((results_of(tmp_path, "embedded") / "runs" / "0001" / "run.json").read_text())
    assert record["caches"]["asked"] == "cold"
    assert record["caches"]["resident_bytes"] <= 0.01 * record["caches"]["data_bytes"]


def test_output_that_a_terminal_cannot_show_is_escaped(
    study: Write, home: dict[str, str], tmp_path: Path, dyno: Dyno
) -> None:
    assert dyno("run", study(SIMULATED.replace("Is the", "日本 is the"))).returncode == 0
    answer = subprocess.run(
        [DYNO, "show", results_of(tmp_path, "simulated")], cwd=tmp_path, capture_output=True, check=False,
        env={**home, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert b"\\u65e5" in answer.stdout


def test_a_full_device_under_the_output_is_one_line(study: Write, home: dict[str, str], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        answer = subprocess.run(
            [DYNO, "schema"], cwd=tmp_path, env=home, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert answer.returncode == 2
    assert b"Traceback" not in answer.stderr
    assert b"No space left" in answer.stderr


# ---- targets, and what others have published

EXPECTING = (
    SIMULATED
    + """
targets: {throughput: ">= 1200 ops/s", latency_mean: < 2 ms}
published:
  tables:
    - {file: published/theirs.csv, response: throughput, value: ops, precision: 5%, map: {mean: level}}
  findings:
    - id: second-higher
      says: the second is higher
      predicate: {ratio: {of: throughput, b: {mean: 1500}, a: {mean: 1000}}, is: "> 1"}
    - id: twice
      says: the second is twice the first
      predicate: {ratio: {of: throughput, b: {mean: 1500}, a: {mean: 1000}}, is: 1.9 to 2.1}
    - {id: cycles, says: the second takes fewer cycles, here: counters}
"""
)


@pytest.fixture
def expecting(study: Write, tmp_path: Path) -> Path:
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "theirs.csv").write_text("level,ops\n1000,50\n1500,75\n")
    return study(EXPECTING)


def test_targets_and_published_findings_are_answered_by_run_and_show(
    dyno: Dyno, expecting: Path, tmp_path: Path
) -> None:
    answer = dyno("run", expecting)
    assert answer.returncode == 0, answer.stderr
    assert "throughput >= 1200 ops/s: missed; of 2 cells, met in 1, missed in 1." in answer.stdout
    folder = results_of(tmp_path, "simulated")
    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert [target["verdict"] for target in shown["targets"]] == ["missed", "met"]
    (table,) = shown["published"]
    assert (table["ratios"][0]["which_is_higher"], table["ratios"][0]["published"]) == ("agrees", 1.5)
    assert {claim["id"]: claim["verdict"] for claim in shown["claims"]} == {
        "second-higher": "confirmed", "twice": "contradicted", "cycles": "open",
    }  # fmt: skip
    page = (folder / "report.html").read_text()
    for word in ("✗ missed", "✓ agrees", "✓ confirmed", "✗ contradicted", "? open"):
        assert word in page


def test_a_report_needs_neither_the_study_file_nor_the_published_ones_again(
    dyno: Dyno, expecting: Path, tmp_path: Path
) -> None:
    assert dyno("run", expecting).returncode == 0
    folder = results_of(tmp_path, "simulated")
    page = (folder / "report.html").read_bytes()
    kept = tmp_path / "kept"
    folder.rename(kept)
    expecting.unlink()
    (tmp_path / "published" / "theirs.csv").write_text("level,ops\n1000,1\n1500,9\n")
    assert dyno("report", kept, "--out", tmp_path / "again").returncode == 0
    assert (tmp_path / "again" / "report.html").read_bytes() == page
    # What was kept is a study of its own, with the figures as they were.
    assert (kept / "published" / "theirs.csv").read_text() == "level,ops\n1000,50\n1500,75\n"
    assert dyno("check", kept / "study.yaml").returncode == 0


def test_a_study_is_not_resumed_with_other_published_figures(dyno: Dyno, expecting: Path, tmp_path: Path) -> None:
    assert dyno("run", expecting).returncode == 0
    (tmp_path / "published" / "theirs.csv").write_text("level,ops\n1000,50\n1500,76\n")
    refused(dyno("run", expecting, "--resume"), "it was begun with another study file")


@pytest.mark.parametrize(
    ("old", "new", "line", "fragments"),
    [
        ('">= 1200 ops/s"', '">= 1200"', 13, ("targets.throughput", "write it as >= 1200 ops/s")),
        ('">= 1200 ops/s"', ">= 1200 ops/s", 13, ("quote a text that begins with '>'",)),
        ("latency_mean: <", "latency: <", 13, ("targets.latency", "unknown response 'latency'")),
        ("theirs.csv", "their.csv", 16, ("tables[0].file", "no such file; did you mean 'theirs.csv'?")),
        ("value: ops", "value: op", 16, ("tables[0].value", "did you mean 'ops'?")),
        ("b: {mean: 1500}", "b: {mean: 2000}", 20, ("ratio.b.mean", "unknown level '2000'")),
        ("here: counters", "here: nowhere", 24, ("findings[2].here", "yes, counters, hosts, disk, kvm")),
    ],
)
def test_mistakes_in_them_are_refused_before_anything_runs(
    dyno: Dyno, expecting: Path, old: str, new: str, line: int, fragments: tuple[str, ...]
) -> None:
    expecting.write_text(EXPECTING.replace(old, new, 1))
    for command in ("check", "run"):
        refused(dyno(command, expecting), f"{expecting}:{line}:", *fragments)


def test_a_mistake_in_published_figures_names_their_own_line(dyno: Dyno, expecting: Path, tmp_path: Path) -> None:
    (tmp_path / "published" / "theirs.csv").write_text("level,ops\n1000,fifty\n")
    refused(dyno("check", expecting), "published/theirs.csv:2: ops: should be a number, not 'fifty'")
