"""What the samples of the machine say of the measured part of a run."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import polars as pl
import pytest
from pydantic import ValidationError

from dyno.analysis.usage import usages
from dyno.hosts import LocalHost
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.observers.base import SAMPLE_COLUMNS
from dyno.observers.machine import MachineObserver, MachineOptions

SECOND = 10**9


@pytest.fixture
def observer(host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MachineObserver:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    return MachineObserver(MachineOptions(hz=1), host, "core", tmp_path, tmp_path)


def samples(*rows: tuple[int, str, str, float]) -> pl.DataFrame:
    """Rows of (second, subject, metric, value)."""
    whole = [(second * SECOND, "local", "machine", subject, metric, value) for second, subject, metric, value in rows]
    return pl.DataFrame(whole, SAMPLE_COLUMNS, orient="row")


def test_utilisation_is_what_the_cpus_did_not_rest_and_the_busiest_disk(observer: MachineObserver) -> None:
    seen = samples(
        (11, "machine", "cpu.idle", 50.0), (11, "machine", "cpu.iowait", 10.0), (11, "machine", "cpu.usr", 40.0),
        (12, "machine", "cpu.idle", 30.0), (12, "machine", "cpu.iowait", 10.0),
        (11, "machine", "stat.ticks", 200.0), (12, "machine", "stat.ticks", 200.0),
        (11, "vda", "disk.util", 20.0), (12, "vda", "disk.util", 40.0),
        (11, "vdb", "disk.util", 90.0), (12, "vdb", "disk.util", 0.0),
    )  # fmt: skip
    assert observer.responses(seen, 10 * SECOND, 12 * SECOND) == {"cpu.util": 50.0, "disk.util": 45.0}


def test_samples_that_reach_beyond_the_measured_part_are_left_out(observer: MachineObserver) -> None:
    # A sample is of the second before it: that at 11 began before the measured part did.
    told = {"cpu.idle": 5.0, "stat.ticks": 200.0 / 9}
    seen = samples(
        *((at, "machine", name, value * at) for at in (9, 10, 11, 12, 13, 14) for name, value in told.items())
    )
    seen = seen.with_columns(pl.when(pl.col("metric") == "stat.ticks").then(200.0).otherwise("value").alias("value"))
    found = observer.responses(seen, 10 * SECOND + 1, 13 * SECOND)
    assert found == {"cpu.util": pytest.approx(100 - (60 + 65) / 2)}


def test_a_measured_part_without_a_sample_has_no_utilisation(observer: MachineObserver) -> None:
    assert observer.responses(samples((11, "machine", "cpu.idle", 50.0)), 10 * SECOND + 1, 12 * SECOND) == {}
    assert observer.responses(samples(), 0, SECOND) == {}


def test_a_process_is_not_the_machine(observer: MachineObserver) -> None:
    seen = samples((11, "machine", "cpu.idle", 50.0)).with_columns(pl.lit("process").alias("source"))
    assert observer.responses(seen, 0, 12 * SECOND) == {}


def test_shares_of_samples_that_are_close_together_count_by_the_clock_ticks_they_are_of(
    observer: MachineObserver,
) -> None:
    """At 100 Hz a sample is of one tick of a CPU or of three, and the mean of the shares was off by per cents."""
    seen = samples(
        (11, "machine", "cpu.idle", 100.0), (11, "machine", "stat.ticks", 100.0), (11, "cpu0", "stat.ticks", 900.0),
        (12, "machine", "cpu.idle", 0.0), (12, "machine", "stat.ticks", 300.0),
    )  # fmt: skip
    assert observer.responses(seen, 10 * SECOND, 12 * SECOND) == {"cpu.util": 75.0}


def test_utilisation_is_that_of_the_table_of_resources_since_ticks_miss_short_work(observer: MachineObserver) -> None:
    # In each second there were 185 ticks of 200: 120 of them idle, 5 stolen. The sampler took none at 12.
    shares = {"cpu.usr": 100 * 60 / 185, "cpu.idle": 100 * 120 / 185, "cpu.steal": 100 * 5 / 185, "stat.ticks": 185.0}
    seen = samples(*((at, "machine", name, value) for at in (10, 11, 13) for name, value in shares.items()))
    (utilisation,) = observer.responses(seen, 10 * SECOND, 13 * SECOND).values()
    assert utilisation == pytest.approx(100 * (2 - 1.2) / 2)
    intervals = pl.DataFrame({"run": [1], "start_ns": [10 * SECOND], "end_ns": [13 * SECOND], "count": [9]}).lazy()
    run = RunRecord(
        run=1, slot=Slot(cell=0, block=0), levels={}, outcome=Outcome.OK, started_ns=0, ended_ns=0,
        measured_from_ns=10 * SECOND, measured_to_ns=13 * SECOND,
    )  # fmt: skip
    used = usages([run], seen.with_columns(pl.lit(1).alias("run")).lazy(), intervals, 2)[1]
    assert 100 * (used.per_s["machine.cpu"] + used.per_s["machine.steal"]) / used.cpus == pytest.approx(utilisation)


def test_what_is_to_be_watched_makes_a_job_by_the_schema(host: LocalHost, tmp_path: Path) -> None:
    schema = json.loads((Path(__file__).parents[3] / "schema" / "watch-job.schema.json").read_text())

    def job(**options: object) -> dict[str, object]:
        made = MachineObserver(MachineOptions.model_validate(options), host, "core", tmp_path, tmp_path)._job()
        jsonschema.validate(made, schema)
        return made

    assert job() == {"format": 1, "hz": 1.0, "machine": True}, "as it was before there was a choice"
    chosen = {"hz": 100.0, "groups": ["per_cpu", "disk"], "disks": ["vda"]}
    assert job(**chosen) == {"format": 1, "machine": True} | chosen


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hz": 101}, "less than or equal to 100"),
        ({"groups": ["gpu"]}, "'cpu', 'per_cpu'"),
        ({"disks": []}, "at least 1 item"),
        ({"groups": ["cpu"], "interfaces": ["lo"]}, "interfaces are named and not watched; add network to groups"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_before_anything_runs(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        MachineOptions.model_validate(options)
