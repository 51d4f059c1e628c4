"""What the samples of the machine say of the measured part of a run."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import polars as pl
import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.observers.base import SAMPLE_COLUMNS
from dyno.observers.machine import MachineObserver, MachineOptions

SECOND = 10**9


@pytest.fixture
def observer(host: LocalHost, tmp_path: Path) -> MachineObserver:
    return MachineObserver(MachineOptions(hz=1), host, "core", tmp_path, tmp_path)


def samples(*rows: tuple[int, str, str, float]) -> pl.DataFrame:
    """Rows of (second, subject, metric, value)."""
    whole = [(second * SECOND, "local", "machine", subject, metric, value) for second, subject, metric, value in rows]
    return pl.DataFrame(whole, SAMPLE_COLUMNS, orient="row")


def test_utilisation_is_what_the_cpus_did_not_rest_and_the_busiest_disk(observer: MachineObserver) -> None:
    seen = samples(
        (11, "machine", "cpu.idle", 50.0), (11, "machine", "cpu.iowait", 10.0), (11, "machine", "cpu.usr", 40.0),
        (12, "machine", "cpu.idle", 30.0), (12, "machine", "cpu.iowait", 10.0),
        (11, "vda", "disk.util", 20.0), (12, "vda", "disk.util", 40.0),
        (11, "vdb", "disk.util", 90.0), (12, "vdb", "disk.util", 0.0),
    )  # fmt: skip
    assert observer.responses(seen, 10 * SECOND, 12 * SECOND) == {"cpu.util": 50.0, "disk.util": 45.0}


def test_samples_that_reach_beyond_the_measured_part_are_left_out(observer: MachineObserver) -> None:
    # A sample is of the second before it: that at 11 began before the measured part did.
    seen = samples(*((second, "machine", "cpu.idle", 5.0 * second) for second in (9, 10, 11, 12, 13, 14)))
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
        (11, "machine", "cpu.idle", 100.0), (11, "machine", "stat.ticks", 1.0), (11, "cpu0", "stat.ticks", 9.0),
        (12, "machine", "cpu.idle", 0.0), (12, "machine", "stat.ticks", 3.0),
    )  # fmt: skip
    assert observer.responses(seen, 10 * SECOND, 12 * SECOND) == {"cpu.util": 75.0}


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
