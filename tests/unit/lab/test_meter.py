"""The arithmetic of the meter: what two readings say, and what they cannot say."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import polars as pl
import pytest

from dyno.hosts.devices import Device, DeviceCounters
from dyno.hosts.usage import StorageUse
from dyno.lab.meter import Meter, Metered, Reading, operations
from dyno.model import responses
from dyno.workloads.base import INTERVAL_COLUMNS, Measured

MIB = 2**20


def reading(at_s: float, read: int = 0, written: int = 0, system: StorageUse | None = None, reads: int = 0) -> Reading:
    return Reading(at_s, DeviceCounters(reads, read, 0, written, 0, None), system)


def intervals(*rows: tuple[bool, str, int]) -> Measured:
    table = [{"warmup": warmup, "operation": name, "count": count} for warmup, name, count in rows]
    return Measured(complete=True, responses={}, intervals=pl.DataFrame(table, schema=INTERVAL_COLUMNS))


def test_what_the_device_did_is_in_mib_and_per_operation_in_bytes() -> None:
    before = reading(1.0, read=MIB, written=0, system=StorageUse(100, 50))
    after = reading(3.0, read=11 * MIB, written=4 * MIB, system=StorageUse(1100, 850))
    assert Metered.between(before, after).responses(200) == {
        "device_read": 10.0,
        "device_written": 4.0,
        "device_read_per_op": 10 * MIB / 200,
        "device_written_per_op": 4 * MIB / 200,
        "system_read_per_op": 5.0,
        "system_written_per_op": 4.0,
    }


def test_what_was_sent_over_the_nodes_own_network_is_told_where_they_have_one() -> None:
    before, after = Reading(0, None, None, 1000), Reading(1, None, None, 1000 + 3 * MIB)
    assert Metered.between(before, after).responses(100) == {
        "network_sent": 3.0, "network_sent_per_op": 3 * MIB / 100,
    }  # fmt: skip
    assert Metered.between(before, Reading(1, None, None)).responses(100) == {}
    assert all(responses.lookup(name).better == "lower" for name in ("network_sent", "network_sent_per_op"))


def test_cpu_time_is_told_of_a_run_that_is_shorter_than_two_samples() -> None:
    """Galera wrote 1,000 events in 1.2 s: no sample of a second lay wholly within, and its column was empty."""
    before, after = Reading(0.0, None, None, cpu_s=7.25), Reading(1.2, None, None, cpu_s=8.45)
    found = Metered.between(before, after).responses(1000)
    assert found == {"system_cpu_per_op": pytest.approx(1200.0)}
    assert responses.lookup("system_cpu_per_op").unit == "us"
    assert Metered.between(before, Reading(1.2, None, None)).responses(1000) == {}


def test_the_meter_reads_what_processes_took_before_and_after() -> None:
    meter = Meter(Device("tmpfs", "unknown"), [os.getpid()])
    until = time.process_time() + 0.15
    while time.process_time() < until:
        pass
    cpu_s = meter.end().cpu_s
    assert cpu_s is not None
    assert 0.1 <= cpu_s < 5


def test_the_meter_asks_the_system_for_it_before_and_after() -> None:
    told = iter([5, 2 * MIB + 5])
    meter = Meter(Device("tmpfs", "unknown"), [], lambda: next(told))
    assert meter.end().responses(None) == {"network_sent": 2.0}


def test_every_figure_of_the_meter_is_a_response_with_a_title() -> None:
    found = Metered.between(reading(0, system=StorageUse(0, 0)), reading(1, system=StorageUse(1, 1))).responses(1)
    assert len(found) == 6
    assert all(not responses.of_operation(name) and responses.lookup(name).better == "lower" for name in found)


@pytest.mark.parametrize("counted", [None, 0])
def test_nothing_is_said_per_operation_where_operations_were_not_counted(counted: int | None) -> None:
    used = Metered.between(reading(0, system=StorageUse(0, 0)), reading(1, MIB, system=StorageUse(5, 5)))
    assert used.responses(counted) == {"device_read": 1.0, "device_written": 0.0}


def test_what_one_of_the_readings_lacks_is_not_taken_for_nothing() -> None:
    gone = Metered.between(reading(0, system=StorageUse(0, 0)), reading(1, MIB, system=None))
    assert gone.responses(1) == {
        "device_read": 1.0, "device_written": 0.0, "device_read_per_op": float(MIB), "device_written_per_op": 0.0,
    }  # fmt: skip
    assert Metered.between(Reading(0, None, None), Reading(1, None, None)).responses(10) == {}


def test_operations_of_the_warm_up_count_with_the_others() -> None:
    measured = intervals((True, "read", 5), (False, "read", 7), (False, "update", 2))
    assert operations(measured, warmed_up=True) == 14


def test_operations_are_not_known_where_the_driver_kept_no_count_of_its_warm_up() -> None:
    assert operations(intervals((False, "read", 7)), warmed_up=True) is None
    assert operations(intervals((False, "read", 7)), warmed_up=False) == 7
    assert operations(Measured(complete=True, responses={}), warmed_up=False) is None


def test_reads_that_a_rotating_disk_cannot_do_are_not_its_own(tmp_path: Path) -> None:
    disk = Device("sda", "hdd", tmp_path)
    published = Metered.between(reading(0), reading(10, read=round(5.7e9), reads=5000))
    assert published.why_not_cold(disk) is not None
    assert "570 MB/s" in str(published.why_not_cold(disk))
    slow = Metered.between(reading(0), reading(10, read=round(1e9), reads=1000))
    assert slow.why_not_cold(disk) is None


def test_a_device_of_unknown_kind_shows_nothing_however_slow_it_was(tmp_path: Path) -> None:
    idle = Metered.between(reading(0), reading(10))
    why = idle.why_not_cold(Device("vda", "virtual", tmp_path))
    assert why is not None
    assert "vda" in why
    assert "virtual" in why


def test_a_meter_reads_the_device_twice(tmp_path: Path) -> None:
    def told(reads: int, sectors: int) -> None:
        (tmp_path / "stat").write_text(" ".join(map(str, [reads, 0, sectors, *[0] * 14])))

    told(10, 100)
    meter = Meter(Device("sda", "hdd", tmp_path), [])
    told(12, 100 + 2 * 2048)
    used = meter.end()
    assert used.device is not None
    assert (used.device.reads, used.responses(None)) == (2, {"device_read": 2.0, "device_written": 0.0})
    assert used.seconds > 0
    assert math.isfinite(used.seconds)
    assert used.system is None


def test_a_place_without_a_device_is_metered_all_the_same() -> None:
    assert Meter(Device("tmpfs", "unknown"), []).end().responses(5) == {}
