"""What a run used, from samples of which every figure is known."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.analysis.usage import usages
from dyno.model import usage as usage_model
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.usage import Usage, resource, resources, shares
from dyno.observers.base import SAMPLE_COLUMNS

S = 10**9
Rows = list[tuple[float, str, str, str, float]]  # time in s, source, subject, metric, value


def run(number: int = 1, from_s: float = 0.0, to_s: float = 100.0, disk: str | None = "loop1") -> RunRecord:
    return RunRecord(
        run=number,
        slot=Slot(cell=0, block=number - 1),
        levels={},
        outcome=Outcome.OK,
        started_ns=0,
        ended_ns=0,
        measured_from_ns=round(from_s * S),
        measured_to_ns=round(to_s * S),
        disk=disk,
    )


def sampled(rows: Rows, number: int = 1) -> pl.LazyFrame:
    table = [
        {"time_ns": round(at * S), "host": "local", "source": source, "subject": subject, "metric": metric, "value": v}
        for at, source, subject, metric, v in rows
    ]
    return pl.DataFrame(table, schema=SAMPLE_COLUMNS).with_columns(pl.lit(number).alias("run")).lazy()


def counted(parts: list[tuple[float, float, int]], number: int = 1) -> pl.LazyFrame:
    """`parts` are from, to (s) and operations."""
    rows = [{"start_ns": round(a * S), "end_ns": round(b * S), "count": count} for a, b, count in parts]
    return pl.DataFrame(rows).with_columns(pl.lit(number).alias("run")).lazy()


def of_one(rows: Rows, parts: list[tuple[float, float, int]], **of: float) -> Usage:
    return usages([run(**of)], sampled(rows), counted(parts))[1]  # type: ignore[arg-type]


def test_each_sample_weighs_by_the_time_that_it_tells_of() -> None:
    rows: Rows = [
        (0, "process", "server", "proc.cpu", 99.0),  # tells of a time before the measured part
        (1, "process", "server", "proc.cpu", 50.0),
        (4, "process", "server", "proc.cpu", 10.0),
    ]
    used = of_one(rows, [(0, 4, 400)])
    assert used.per_s["server.cpu"] == pytest.approx((0.5 * 1 + 0.1 * 3) / 4)
    assert used.per_op["server.cpu"] == pytest.approx(0.8 / 400)


def test_only_whole_samples_of_the_measured_part_count_and_the_operations_of_just_that_time() -> None:
    rows: Rows = [(at, "process", "server", "proc.read", 1000.0 * at) for at in range(11)]
    # Samples tell of 3-4, 4-5, ... 7-8 s; the intervals are of 2 s, so that the first and the last are cut in half.
    used = of_one(rows, [(at, at + 2, 100 * at + 100) for at in range(0, 10, 2)], from_s=2.5, to_s=8.5)
    assert used.operations == pytest.approx(300 / 2 + 500 + 700)
    assert used.per_op["server.read"] == pytest.approx(1000 * (4 + 5 + 6 + 7 + 8) / 1350)


def test_whose_it_is_comes_from_the_subject_and_processes_of_one_kind_are_summed() -> None:
    rows: Rows = [
        (at, "process", subject, "proc.cswch", value)
        for at in (0, 1)
        for subject, value in (("server-1", 3.0), ("server-2", 4.0), ("driver", 5.0))
    ]
    rows += [(1, "process", "server-1", "proc.nvcswch", 10.0)]
    used = of_one(rows, [(0, 1, 10)])
    assert used.per_op == pytest.approx({"server.switches": 1.7, "driver.switches": 0.5})


def test_the_disk_is_that_of_the_data_alone() -> None:
    rows: Rows = [
        (at, "machine", disk, "disk.wkB_s", kib) for at in (0, 1) for disk, kib in (("loop1", 7.0), ("vda", 90.0))
    ]
    assert of_one(rows, [(0, 1, 1)]).per_op == pytest.approx({"disk.written": 7 * 1024})
    assert "disk.written" not in usages([run(disk=None)], sampled(rows), counted([(0, 1, 1)]))[1].per_op


def test_transfers_are_reads_writes_and_discards_as_sysstat_counts_them() -> None:
    rows: Rows = [
        (at, "machine", disk, metric, value)
        for at in (0, 1)
        for disk in ("loop1", "vda")
        for metric, value in (("disk.r_s", 30.0), ("disk.w_s", 20.0), ("disk.d_s", 5.0), ("disk.f_s", 7.0))
    ]
    used = of_one(rows, [(0, 1, 10)])
    assert used.per_s["disk.transfers"] == pytest.approx(55)
    assert (used.per_s["disk.reads"], used.per_s["disk.flushes"]) == (30, 7)


def test_a_driver_within_whose_calls_a_system_works_is_told_of_as_the_system_would_be() -> None:
    rows: Rows = [
        (at, "process", "driver", metric, value)
        for at in (0, 1)
        for metric, value in (("proc.minflt", 8.0), ("proc.majflt", 2.0), ("proc.read", 4096.0), ("proc.write", 512.0))
    ]
    rows += [(at, "machine", "machine", "vm.pgfault", 40.0) for at in (0, 1)]
    rows += [(at, "perf", "driver", "L1-icache-load-misses", 3.0) for at in (0, 1)]
    assert of_one(rows, [(0, 1, 2)]).per_op == pytest.approx(
        {
            "driver.faults": 5.0,
            "driver.major_faults": 1.0,
            "driver.read": 2048.0,
            "driver.written": 256.0,
            "machine.faults": 20.0,
            "driver.l1i_misses": 1.5,
        }
    )


def test_what_a_run_says_that_its_operations_read_is_counted_as_what_they_write() -> None:
    rows: Rows = [(at, "machine", "machine", "vm.cs", 1.0) for at in (0, 1)]
    intervals = counted([(0, 1, 4)]).with_columns(pl.lit("read").alias("operation"))
    told = run().model_copy(update={"read": {"read": 100.0}, "written": {"read": 0.0}})
    used = usages([told], sampled(rows), intervals)[1]
    assert (used.per_op["workload.read"], used.per_op["workload.written"]) == (100.0, 0.0)


def test_a_control_group_is_its_subjects_and_counts_once_however_many_processes_tell_of_it() -> None:
    rows: Rows = [
        (at, "cgroup", subject, "cgroup.cpu", value)
        for at in (0, 1)
        for subject, value in (("server-1", 80.0), ("server-2", 80.0), ("driver", 20.0))
    ]
    means = of_one(rows, [(0, 1, 10)]).means
    assert (means["server.cgroup.cpu"], means["driver.cgroup.cpu"]) == pytest.approx((80.0, 20.0))


def test_the_network_is_its_busiest_interface() -> None:
    rows: Rows = [
        (at, "machine", interface, "net.ifutil", value)
        for at in (0, 1)
        for interface, value in (("eth0", 30.0), ("eth1", 70.0), ("lo", 1.0))
    ]
    assert of_one(rows, [(0, 1, 10)]).means["net.ifutil"] == pytest.approx(70.0)


def test_shares_of_cpus_are_of_the_ticks_of_each_sample() -> None:
    rows: Rows = [
        (at, "machine", "machine", metric, value)
        for at, shares in ((0, (0, 0, 0, 200)), (1, (50, 30, 20, 200)), (2, (100, 0, 0, 100)))
        for metric, value in zip(("cpu.usr", "cpu.idle", "cpu.steal", "stat.ticks"), map(float, shares), strict=True)
    ]
    rows += [(at, "process", "server", "proc.cpu", 60.0) for at in (0, 1, 2)]
    used = of_one(rows, [(0, 2, 4)])
    assert used.per_op["machine.steal"] == pytest.approx(2 * 0.2 / 4)
    assert used.means["cpu.usr"] == pytest.approx(100 * 2.0 / 3.0)


@pytest.mark.parametrize(("cpus", "has"), [(None, 2), (3, 3)])
def test_the_machine_used_what_it_did_not_rest_since_ticks_miss_short_work(cpus: int | None, has: int) -> None:
    # In 2 s there were 370 ticks of 400: 240 of them idle, 10 stolen.
    rows: Rows = [
        (at, "machine", "machine", metric, value)
        for at in (0, 1, 2)
        for metric, value in (
            ("cpu.usr", 100 * 60 / 185),
            ("cpu.idle", 100 * 120 / 185),
            ("cpu.steal", 100 * 5 / 185),
            ("stat.ticks", 185.0),
        )
    ]
    rows += [(at, "process", "server", "proc.cpu", 70.0) for at in (0, 1, 2)]
    used = usages([run()], sampled(rows), counted([(0, 2, 4)]), cpus)[1]
    assert used.cpus == has
    assert used.per_s["machine.cpu"] == pytest.approx(has - 1.25)
    assert used.per_s["rest.cpu"] == pytest.approx(has - 1.25 - 0.7)


def test_an_observer_with_times_of_its_own_is_set_against_the_operations_of_its_own_time() -> None:
    rows: Rows = [(at, "process", "server", "proc.cpu", 100.0) for at in (0, 1, 2)]
    rows += [(at, "database", "server", "server.syncs", 50.0) for at in (1, 2)]
    used = of_one(rows, [(0, 1, 100), (1, 2, 300)])
    assert used.per_op == pytest.approx({"server.cpu": 2 / 400, "server.syncs": 50 / 300})


def test_time_of_which_a_store_tells_nothing_is_no_time_in_which_nothing_happened() -> None:
    """Another node counts from then on: before it there are operations, and no rates."""
    rows: Rows = [(at, "machine", "machine", "cpu.user", 50.0) for at in range(9)]
    for at in range(9):
        anew = at in (0, 4)
        rows.append((at, "database", "server", "looks", 0.0 if anew else 1.0))
        rows.append((at, "database", "server", "now/heap", 99.0 if anew else 7.0))
        if not anew:
            rows += [(at, "database", "server", name, 30.0 * at) for name in ("server.syncs", "rows_inserted")]
    used = of_one(rows, [(at, at + 1, 10 * (at + 1)) for at in range(8)])
    assert used.seconds == 8
    assert used.per_op["server.syncs"] == pytest.approx(3)
    assert used.told is not None
    assert used.told.operations == pytest.approx(10 * (1 + 2 + 3 + 5 + 6 + 7 + 8))
    assert used.told.seconds == pytest.approx(7)
    assert used.told.per_s["rows_inserted"] == pytest.approx(30 * (1 + 2 + 3 + 5 + 6 + 7 + 8) / 7)
    assert used.told.means["heap"] == pytest.approx(7)


def test_what_was_not_observed_or_not_counted_has_no_usage() -> None:
    rows: Rows = [(at, "process", "server", "proc.cpu", 1.0) for at in (0, 1)]
    assert usages([run()], sampled([]), counted([(0, 1, 1)])) == {}
    assert usages([run()], pl.LazyFrame(), counted([(0, 1, 1)])) == {}
    assert usages([run()], sampled(rows), pl.LazyFrame()) == {}
    assert usages([run()], sampled(rows), counted([(0, 1, 0)])) == {}
    assert usages([run(from_s=0.5)], sampled(rows), counted([(0, 1, 1)])) == {}, "no sample is whole"
    assert usages([], sampled(rows), counted([(0, 1, 1)])) == {}


@given(
    lengths=st.lists(st.floats(0.01, 5.0), min_size=2, max_size=20),
    rate=st.floats(0.0, 1e6),
    per_second=st.integers(1, 10_000),
)
def test_a_steady_use_is_the_same_per_operation_however_samples_and_intervals_lie(
    lengths: list[float], rate: float, per_second: int
) -> None:
    times = [0.0]
    for length in lengths:
        times.append(times[-1] + length)
    rows: Rows = [(at, "process", "server", "proc.write", rate) for at in times]
    used = of_one(rows, [(at, at + 1, per_second) for at in range(101)])
    assert used.per_op["server.written"] == pytest.approx(rate / per_second, rel=1e-6, abs=1e-9)


def test_every_resource_says_how_it_is_shown() -> None:
    for name in resources():
        known = resource(name)
        assert known.name == name
        assert known.scale > 0
        assert known.unit in ("us", "B", "1")


def test_every_share_says_how_it_is_shown_and_is_no_use_of_an_operation() -> None:
    for name in shares():
        assert resource(name).name == name
        assert resource(name).relative
        assert resource(name).unit in ("%", "1", "MiB")
    assert not set(shares()) & set(resources())


def test_what_the_workload_wrote_is_counted_by_operation_over_the_time_of_the_samples() -> None:
    rows: Rows = [(at, "machine", "machine", "vm.cs", 100.0) for at in (0, 1, 2)]
    intervals = pl.concat(
        [
            counted([(0, 1, 30), (1, 3, 40)]).with_columns(pl.lit("read").alias("operation")),
            counted([(0, 1, 10), (1, 3, 20)]).with_columns(pl.lit("update").alias("operation")),
        ]
    )
    told = run().model_copy(update={"written": {"read": 0.0, "update": 100.0}})
    used = usages([told], sampled(rows), intervals)[1]
    assert used.operations == pytest.approx(30 + 20 + 10 + 10)
    assert used.per_op["workload.written"] == pytest.approx((10 + 20 / 2) * 100 / 70)
    assert used.per_s["workload.written"] == pytest.approx((10 + 20 / 2) * 100 / 2)


def test_a_workload_that_writes_nothing_wrote_0_and_one_that_does_not_say_is_not_known() -> None:
    rows: Rows = [(at, "machine", "machine", "vm.cs", 100.0) for at in (0, 1)]
    reads = counted([(0, 1, 30)]).with_columns(pl.lit("read").alias("operation"))
    told = run().model_copy(update={"written": {"read": 0.0}})
    assert usages([told], sampled(rows), reads)[1].per_op["workload.written"] == 0.0
    assert "workload.written" not in usages([run()], sampled(rows), reads)[1].per_op


def test_of_the_busiest_thread_and_the_busiest_interface_there_is_one() -> None:
    rows: Rows = [
        (at, "process", subject, "proc.cpu_max_thread", value)
        for at in (0, 1)
        for subject, value in (("server-1", 30.0), ("server-2", 70.0), ("driver", 5.0))
    ]
    rows += [
        (at, "machine", name, "net.ifutil", value) for at in (0, 1) for name, value in (("eth0", 8.0), ("lo", 3.0))
    ]
    means = of_one(rows, [(0, 1, 10)]).means
    assert means == {"server.proc.cpu_max_thread": 70.0, "driver.proc.cpu_max_thread": 5.0, "net.ifutil": 8.0}


def test_control_groups_are_told_apart_by_whose_they_are() -> None:
    rows: Rows = [
        (at, "cgroup", subject, metric, value)
        for at in (0, 1)
        for subject, metric, value in (
            ("mariadbd", "cgroup.mem", 5.0),
            ("mariadbd", "cgroup.throttled", 40.0),
            ("driver", "cgroup.mem", 7.0),
        )
    ]
    used = of_one(rows, [(0, 1, 10)])
    assert used.means == {"server.cgroup.mem": 5.0, "server.cgroup.throttled": 40.0, "driver.cgroup.mem": 7.0}
    assert used.per_s == {"server.throttled": 0.4}


def test_what_perf_counts_is_of_the_system_or_the_driver_each_at_times_of_its_own() -> None:
    rows: Rows = [
        (at, source, subject, metric, value)
        for source, subject, times, value in (
            ("perf", "mariadbd", (0, 1, 2), 6e6),
            ("perf.1", "driver", (0.5, 1.5), 1e6),
        )
        for at in times
        for metric in ("instructions", "context-switches", "instructions.running")
    ]
    used = of_one(rows, [(0, 2, 2000)])
    assert used.per_op == pytest.approx({"server.instructions": 6000.0, "driver.instructions": 1000.0})


def test_no_two_resources_have_a_name() -> None:
    source = Path(usage_model.__file__).read_text()
    named = re.findall(r'Resource\(\s*"([^"]+)"', source)
    assert len(named) == len(set(named))
