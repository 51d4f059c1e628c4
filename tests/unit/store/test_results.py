"""A results folder: a run is there wholly or not at all, and what cannot be read is said with its path."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from dyno.model.run import Outcome, RunRecord, Slot
from dyno.store import Results, Staged, StoreError, list_results, new_results
from tests.making import make_record, make_study, scratch_in

LIMIT_S = 30
INTERVALS = pl.DataFrame({"start_ns": [1, 2], "operation": ["read", "update"], "count": [10, 20]})
SAMPLES = pl.DataFrame({"time_ns": [1], "metric": ["cpu.usr"], "value": [12.5]})


def staged(tmp_path: Path, run: int, *, value: float = 100.0, **rest: Any) -> Staged:
    """A finished run with everything that one can have."""
    scratch = tmp_path / f"scratch-{run}-{rest.pop('copy', 0)}"
    logs = scratch / "logs"
    logs.mkdir(parents=True)
    (logs / "driver.stderr").write_text("a warning\n")
    (logs / "driver.stdout").write_text("")
    histogram = scratch / "latency.hlog"
    histogram.write_text("#[Histogram log]\n")
    record = make_record(run, Slot(cell=0, block=run - 1), rest.pop("outcome", Outcome.OK), value)
    return Staged(
        **{
            "record": record,
            "logs": logs,
            "intervals": INTERVALS,
            "samples": SAMPLES,
            "histogram_log": histogram,
            **rest,
        }
    )


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = new_results(
        tmp_path / "results", make_study(), b"study: made\n", {"format": 1}, scratch_in(tmp_path / "results")
    )
    made.lock()
    return made


@pytest.fixture
def staging(results: Results) -> Path:
    folder = results.folder / "staging"
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- what is kept


def test_a_new_folder_holds_the_study_and_the_machine(results: Results) -> None:
    again = Results(results.folder)
    assert again.study == make_study()
    assert again.study_yaml == "study: made\n"
    assert again.environment == {"format": 1}
    assert again.runs == ()
    assert again.ended is None


def test_what_others_published_is_kept_word_by_word(tmp_path: Path) -> None:
    files = {"figures.csv": b"mode,ops\r\nwal,5\n", "findings.yaml": b"# as it was\n"}
    made = new_results(tmp_path, make_study(), b"", {}, scratch_in(tmp_path), files)
    assert {path.name: path.read_bytes() for path in (made.folder / "published").iterdir()} == files
    assert not (new_results(tmp_path, make_study(), b"", {}, scratch_in(tmp_path)).folder / "published").exists()


def test_folders_made_in_the_same_second_are_different_ones_in_their_order(tmp_path: Path) -> None:
    made = [new_results(tmp_path, make_study(), b"", {}, scratch_in(tmp_path)).folder for _ in range(5)]
    assert len(set(made)) == 5
    assert [found.folder for found in list_results(tmp_path, "made")] == made


def test_a_folder_whose_making_was_cut_short_is_not_a_results_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(StoreError, match="cannot make a results folder: No space left"):
        new_results(tmp_path, make_study(), b"", {}, scratch_in(tmp_path))
    assert list_results(tmp_path, "made") == []


def test_there_are_no_results_of_a_study_that_was_never_run(tmp_path: Path) -> None:
    assert list_results(tmp_path, "never") == []


def test_a_committed_run_is_read_back_as_it_was(results: Results, staging: Path, tmp_path: Path) -> None:
    run = staged(tmp_path, 1)
    folder = results.commit(run, staging)
    assert names(folder) == ["intervals.parquet", "latency.hlog", "logs", "run.json", "samples.parquet"]
    again = Results(results.folder)
    assert again.runs == (run.record,)
    assert_frame_equal(again.intervals(1), INTERVALS)
    assert_frame_equal(again.samples(1), SAMPLES)


def test_the_garbage_collector_leaves_what_was_read_alone_and_goes_on_with_the_rest(
    results: Results, staging: Path, tmp_path: Path
) -> None:
    # Of 10,000 runs it took longer to look through their records again and again than to read them.
    for number in range(1, 4):
        results.commit(staged(tmp_path, number), staging)
    read = Results(results.folder).runs
    looked_at = {id(each) for each in gc.get_objects()}
    assert not looked_at & {id(record) for record in read}
    assert gc.isenabled()
    (results.folder / "runs" / "0002" / "run.json").write_text("{")
    with pytest.raises(StoreError):
        _ = Results(results.folder).runs
    assert gc.isenabled()


def test_logs_are_kept_save_empty_ones(results: Results, staging: Path, tmp_path: Path) -> None:
    folder = results.commit(staged(tmp_path, 1), staging)
    assert {path.name: path.read_text() for path in (folder / "logs").iterdir()} == {"driver.stderr": "a warning\n"}


def test_a_run_without_tables_has_empty_ones(results: Results, staging: Path, tmp_path: Path) -> None:
    run = staged(tmp_path, 1, intervals=None, samples=None, histogram_log=None, logs=tmp_path / "none")
    results.commit(run, staging)
    assert results.intervals(1).is_empty()
    assert results.samples(1).is_empty()
    assert results.all_samples().collect().is_empty()


# ---- atomic


def steps_of_a_commit(results: Results, staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    counter, run = Failing(None), staged(tmp_path, 99)
    with monkeypatch.context() as context:
        counter.install(context)
        results.commit(run, staging)
    for path in sorted((results.folder / "runs" / "0099").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (results.folder / "runs" / "0099").rmdir()
    return counter.calls


class Failing:
    """os.rename, os.fsync and os.mkdir that fail at the n-th call of any of them."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.calls = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("rename", "fsync", "mkdir"):
            monkeypatch.setattr(os, name, self._wrap(getattr(os, name)))

    def _wrap(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls - 1 == self.at:
                raise OSError(5, "Input/output error")
            return really(*args, **kwargs)

        return call


def test_a_commit_that_fails_at_any_step_leaves_no_run_or_a_whole_one(
    results: Results, staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = steps_of_a_commit(results, staging, tmp_path, monkeypatch)
    assert steps > 10
    whole = 0
    for at in range(steps):
        run = staged(tmp_path, at + 1)
        with monkeypatch.context() as context:
            Failing(at).install(context)
            with pytest.raises(StoreError, match=rf"/runs/{at + 1:04d}: cannot commit the run: .*Input"):
                results.commit(run, staging)
        folder = results.folder / "runs" / f"{at + 1:04d}"
        if folder.exists():
            whole += 1
            assert names(folder) == ["intervals.parquet", "latency.hlog", "logs", "run.json", "samples.parquet"]
    assert whole == 1, "only the sync of the parent, after the rename, can fail with the run in place"
    assert len(Results(results.folder).runs) == whole


def test_a_table_that_cannot_be_written_is_a_store_error(
    results: Results, staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # polars says that a disk is full by an error of its own.
    def full(*_args: object, **_kwargs: object) -> None:
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(StoreError, match="cannot commit the run: No space left"):
        results.commit(staged(tmp_path, 1), staging)
    assert Results(results.folder).runs == ()


COMMITTER = """
import sys
from pathlib import Path
from tests.making import make_record, make_study, scratch_in
from tests.unit.store.test_results import staged
from dyno.store import Results

results = Results(Path(sys.argv[1]))
results.lock()
(results.folder / sys.argv[2]).mkdir()
number = int(sys.argv[3])
print("up", flush=True)
while True:
    results.commit(staged(Path(sys.argv[4]), number, copy=sys.argv[2]), results.folder / sys.argv[2])
    print(number, flush=True)
    number += 1
"""


def test_every_run_folder_is_whole_whenever_the_writer_is_killed(results: Results, tmp_path: Path) -> None:
    # A commit takes some milliseconds, so that kills this many reads of its output later fall anywhere within one.
    results.unlock()
    root = Path(__file__).parents[3]
    told = 0
    for kill in range(8):
        first = len(Results(results.folder).runs) + 1
        argv = [sys.executable, "-c", COMMITTER, str(results.folder), f"staging-{kill}", str(first), str(tmp_path)]
        with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(2 + kill % 4)]
            for _ in range(kill * 3000):
                pass  # somewhere within the next commit
            os.kill(writer.pid, signal.SIGKILL)
            lines += writer.stdout.readlines()
            writer.wait(LIMIT_S)
        assert lines[0] == "up\n"
        told = max(int(line) for line in lines[1:] if line.endswith("\n"))
        again = Results(results.folder)
        runs = [record.run for record in again.runs]
        assert runs == list(range(1, len(runs) + 1))
        assert len(runs) >= told, "what the writer was told is committed"
        for run in runs:
            assert_frame_equal(again.intervals(run), INTERVALS)
            assert_frame_equal(again.samples(run), SAMPLES)
    assert told >= 8


def test_a_run_that_exists_is_never_overwritten(results: Results, staging: Path, tmp_path: Path) -> None:
    results.commit(staged(tmp_path, 1, value=1.0), staging)
    with pytest.raises(StoreError, match=r"runs/0001: this run exists already; nothing was overwritten"):
        results.commit(staged(tmp_path, 1, value=2.0, copy=1), staging)
    assert Results(results.folder).runs[0].responses == {"throughput": 1.0}


# ---- one writer, and the events


def test_two_writers_of_one_folder_are_kept_apart(results: Results) -> None:
    with pytest.raises(StoreError, match="another dyno is running this study"):
        Results(results.folder).lock()
    results.unlock()
    other = Results(results.folder)
    other.lock()
    other.unlock()


def test_the_lock_of_a_killed_writer_is_free(results: Results, tmp_path: Path) -> None:
    results.unlock()
    program = (
        "import sys; from pathlib import Path; from dyno.store import Results\n"
        "r = Results(Path(sys.argv[1])); r.lock(); print('locked', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", program, str(results.folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "locked\n"
        with pytest.raises(StoreError, match="another dyno"):
            Results(results.folder).lock()
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(LIMIT_S)
    results.lock()


def test_a_folder_that_may_not_be_written_cannot_be_locked(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match=r"events.jsonl: Permission denied"):
        Results(results.folder).lock()


def test_events_are_read_in_their_order(results: Results) -> None:
    results.event("started", runs=0)
    results.event("run", run=1)
    assert [(event["event"], event.get("run")) for event in results.events()] == [("started", None), ("run", 1)]
    assert all(event["time_ns"] > 0 for event in results.events())


def test_a_study_has_ended_where_its_last_event_says_so(results: Results) -> None:
    results.event("ended", reason="precise", converged=True)
    assert results.ended == "precise"
    results.event("resumed")
    assert results.ended is None


def test_a_torn_line_is_left_out_by_readers_and_mended_by_the_next_writer(results: Results) -> None:
    results.event("started")
    results.unlock()
    with (results.folder / "events.jsonl").open("a") as file:
        file.write('{"time_ns": 17, "event": "ru')
    again = Results(results.folder)
    assert [event["event"] for event in again.events()] == ["started"]
    again.lock()
    again.event("resumed")
    assert [event["event"] for event in again.events()] == ["started", "resumed"]


@pytest.mark.parametrize("line", ["not json", "12", "[]", '{"what": 1}'])
def test_a_line_in_the_middle_that_is_no_event_is_an_error_with_its_number(results: Results, line: str) -> None:
    path = results.folder / "events.jsonl"
    path.write_text(f'{{"event": "started"}}\n{line}\n{{"event": "run"}}\n')
    with pytest.raises(StoreError, match=r"events.jsonl:2: not"):
        results.events()


def test_an_event_that_cannot_be_written_is_a_store_error(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match=r"events.jsonl: No space left"):
        results.event("run")


# ---- what cannot be read


def with_run(results: Results, staging: Path, tmp_path: Path, number: int = 1) -> Path:
    return results.commit(staged(tmp_path, number), staging) / "run.json"


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=rf"{tmp_path}: not a results folder"):
        Results(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\0\0\0", "{}"])
def test_a_damaged_plan_is_an_error_with_its_path(results: Results, text: str) -> None:
    (results.folder / "plan.json").write_text(text)
    with pytest.raises(StoreError, match=r"plan\.json: "):
        _ = Results(results.folder).study


def test_a_plan_with_a_wrong_value_is_an_error_with_the_key(results: Results) -> None:
    path = results.folder / "plan.json"
    path.write_text(path.read_text().replace('"randomised"', '"as it comes"'))
    with pytest.raises(StoreError, match=r"plan\.json: order: "):
        _ = Results(results.folder).study


@pytest.mark.parametrize("text", ["", "{", "[]", "\0\0\0", "{}", '{"format": 1, "run": 1}'])
def test_a_damaged_run_is_an_error_with_its_path(results: Results, staging: Path, tmp_path: Path, text: str) -> None:
    with_run(results, staging, tmp_path).write_text(text)
    with pytest.raises(StoreError, match=r"runs/0001/run\.json: "):
        _ = Results(results.folder).runs


def test_a_run_folder_without_its_record_is_an_error_with_its_path(
    results: Results, staging: Path, tmp_path: Path
) -> None:
    with_run(results, staging, tmp_path).unlink()
    with pytest.raises(StoreError, match=r"runs/0001/run\.json: No such file"):
        _ = Results(results.folder).runs


@pytest.mark.parametrize("name", ["plan.json", "runs/0001/run.json"])
def test_another_format_is_refused_even_where_it_looks_like_ours(
    results: Results, staging: Path, tmp_path: Path, name: str
) -> None:
    # A later format may keep every key and change what one means.
    with_run(results, staging, tmp_path)
    path = results.folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    again = Results(results.folder)
    with pytest.raises(StoreError, match=rf"{name}: format 2; this dyno reads format 1"):
        _ = again.study, again.runs


def test_a_copied_run_folder_is_refused_and_not_counted_twice(results: Results, staging: Path, tmp_path: Path) -> None:
    path = with_run(results, staging, tmp_path)
    (results.folder / "runs" / "0002").mkdir()
    (results.folder / "runs" / "0002" / "run.json").write_bytes(path.read_bytes())
    with pytest.raises(StoreError, match=r"0002/run\.json: is run 1, in the folder of run 2"):
        _ = Results(results.folder).runs


def test_a_folder_that_lost_its_runs_is_an_error_and_not_a_study_without_any(results: Results) -> None:
    (results.folder / "runs").rmdir()
    with pytest.raises(StoreError, match="runs: No such file"):
        _ = Results(results.folder).runs


def test_a_damaged_table_is_an_error_with_its_path(results: Results, staging: Path, tmp_path: Path) -> None:
    with_run(results, staging, tmp_path).with_name("samples.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"runs/0001/samples\.parquet: "):
        results.samples(1)


def test_what_lies_beside_the_runs_is_none(results: Results, staging: Path, tmp_path: Path) -> None:
    with_run(results, staging, tmp_path)
    for stray in (".DS_Store", "0002.tmp", "notes", "\N{SUPERSCRIPT TWO}"):
        (results.folder / "runs" / stray).mkdir()
    assert [record.run for record in Results(results.folder).runs] == [1]


# ---- the tables over all runs


def test_the_table_has_a_row_a_run_with_factors_and_responses(results: Results, staging: Path, tmp_path: Path) -> None:
    def run(number: int, outcome: Outcome, responses: dict[str, float], levels: dict[str, str]) -> None:
        one = make_record(number, Slot(cell=number % 2, block=number), outcome)
        record = one.model_copy(update={"responses": responses, "levels": levels})
        results.commit(Staged(record=RunRecord.model_validate(record.model_dump()), logs=tmp_path / "none"), staging)

    run(1, Outcome.OK, {"throughput": 10.0, "latency_p99": 3.0}, {"mode": "wal"})
    run(2, Outcome.FAILED, {}, {"mode": "delete"})
    run(3, Outcome.OK, {"throughput": 11.0}, {"mode": "wal"})
    table = Results(results.folder).table()
    assert table["run"].to_list() == [1, 2, 3]
    assert table["outcome"].to_list() == ["ok", "failed", "ok"]
    assert table["factor.mode"].to_list() == ["wal", "delete", "wal"]
    assert table["throughput"].to_list() == [10.0, None, 11.0]
    assert table["latency_p99"].to_list() == [3.0, None, None]
    assert table.filter(outcome="failed")["step"].to_list() == ["drive"]


def test_the_tables_of_a_folder_without_runs_are_empty(results: Results) -> None:
    assert results.table().is_empty()
    assert results.all_intervals().collect().is_empty()
    assert results.all_samples().collect().is_empty()


def test_the_intervals_and_samples_of_all_runs_carry_the_runs_number(
    results: Results, staging: Path, tmp_path: Path
) -> None:
    for number in (1, 2):
        results.commit(staged(tmp_path, number), staging)
    results.commit(staged(tmp_path, 3, samples=None), staging)
    again = Results(results.folder)
    intervals, samples = again.all_intervals().collect(), again.all_samples().collect()
    assert intervals["run"].to_list() == [1, 1, 2, 2, 3, 3]
    assert samples["run"].to_list() == [1, 2]
    assert_frame_equal(intervals.filter(run=2).drop("run"), INTERVALS)


def test_a_folder_whose_name_would_be_a_pattern_of_files_is_read_as_it_is_called(
    results: Results, staging: Path, tmp_path: Path
) -> None:
    results.commit(staged(tmp_path, 1), staging)
    results.unlock()
    again = Results(results.folder.rename(tmp_path / "a [1]* of {b}?"))
    assert_frame_equal(again.intervals(1), INTERVALS)
    assert again.all_samples().collect()["run"].to_list() == [1]


def test_runs_are_in_order_of_execution_beyond_four_digits(results: Results, staging: Path, tmp_path: Path) -> None:
    for number in (10_000, 9_999, 2):
        results.commit(staged(tmp_path, number), staging)
    assert [record.run for record in Results(results.folder).runs] == [2, 9_999, 10_000]
