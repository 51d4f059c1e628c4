"""What the samples of the machine say of the measured part of a run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

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
