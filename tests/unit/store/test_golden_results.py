"""Results folders of format 1, as the first dyno wrote them: every later one must go on reading them.

The folders in `tests/golden/results-v1` are never written anew. Where a change makes a test here fail, the reader is to
be mended, or a new format begun beside the old one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest

from dyno.analysis import analyse
from dyno.design import Design, Stop
from dyno.model.run import Outcome, Step
from dyno.observers.base import SAMPLE_COLUMNS
from dyno.store import Results
from dyno.workloads.base import INTERVAL_COLUMNS

GOLDEN = Path(__file__).parents[2] / "golden" / "results-v1"
FOLDERS = ["simulated", "sqlite"]


def golden(name: str) -> Results:
    return Results(GOLDEN / name)


def test_runs_of_every_outcome_are_read_as_they_were_written() -> None:
    results = golden("simulated")
    assert [record.outcome for record in results.runs] == [Outcome.FAILED] * 5 + [Outcome.OK] * 6
    assert {(record.step, record.cause) for record in results.runs[:5]} == {(Step.START, "simulated failure")}
    throughputs = [round(record.responses["throughput"], 4) for record in results.runs[5:]]
    assert throughputs == [1198.0638, 986.9871, 1166.9302, 999.0483, 1179.7312, 1015.5519]
    assert results.ended == "every interval is within 0.5 after 4 blocks"


def test_the_study_is_read_with_its_units() -> None:
    study = golden("simulated").study
    assert (study.study, study.compare, study.replicates.precision, study.seed) == ("made", "mean", 0.5, 3)
    assert [cell.levels for cell in study.cells] == [{"mean": "1000"}, {"mean": "1200"}]
    assert study.limits.drive == 3600.0
    assert golden("sqlite").study.observe[0].options == {"hz": 10}


def test_the_tables_of_a_driven_run_are_read() -> None:
    results = golden("sqlite")
    assert [record.settings["journal_mode"] for record in results.runs] == ["delete", "wal", "wal", "delete"]
    assert all(record.caches["resident_bytes"] == 0 for record in results.runs)
    for record in results.runs:
        intervals, samples = results.intervals(record.run), results.samples(record.run)
        # Those that came later are not there, and nothing goes by them.
        assert dict(intervals.schema) == dict(list(INTERVAL_COLUMNS.items())[:11])
        assert dict(samples.schema) == SAMPLE_COLUMNS
        counted = intervals.filter(pl.col("warmup").not_())["count"].sum()
        assert counted == pytest.approx(record.responses["throughput"] * record.responses["elapsed"], abs=0.5)
        assert "cpu.usr" in samples["metric"].to_list()
    assert results.all_intervals().collect()["run"].unique().sort().to_list() == [1, 2, 3, 4]
    assert results.table().shape[0] == 4


@pytest.mark.parametrize("name", FOLDERS)
def test_the_design_of_today_takes_the_runs_and_asks_for_no_more(name: str) -> None:
    # An order or a rule that changes would make a study of an earlier dyno impossible to resume.
    results = golden(name)
    design = Design(results.study)
    for record in results.runs:
        design.record(record)
    stop = design.decide()
    assert isinstance(stop, Stop)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_report_can_be_made_of_them(name: str) -> None:
    results = golden(name)
    findings = analyse(results.study, results.runs, ended=results.ended)
    assert findings.runs == len(results.runs)
    assert len(findings.cells) >= 2


@pytest.mark.parametrize("name", FOLDERS)
def test_reading_changes_nothing(name: str) -> None:
    def checksums() -> dict[Path, str]:
        return {
            path: hashlib.sha256(path.read_bytes()).hexdigest() for path in (GOLDEN / name).rglob("*") if path.is_file()
        }

    before = checksums()
    results = golden(name)
    results.table()
    results.all_samples().collect()
    results.events()
    assert checksums() == before
