"""One workload, two drivers: what go-ycsb is told of the same keys, what it cannot do, and how time ends it.

The output is what go-ycsb 1.0.1 wrote on a real MariaDB, on rows that dyno had loaded, when interrupted after 4 s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.model.base import InvalidRun, RunError
from dyno.workloads import go_ycsb
from dyno.workloads.base import Checked
from dyno.workloads.ycsb import YcsbOptions, YcsbWorkload
from tests.unit.workloads import test_go_ycsb
from tests.unit.workloads.making import MARIADB, TOOLS, Saying

stored = test_go_ycsb.stored
INTERRUPTED = (TOOLS / "go-ycsb-1.0.1-interrupted.txt").read_text()


def make(**options: Any) -> YcsbWorkload:
    given = {
        "mix": "a",
        "records": 300_000,
        "duration": "4 s",
        "threads": 4,
        "driver": "go-ycsb",
        "key_chooser": "ycsb-zipfian",
        **options,
    }
    return YcsbWorkload(YcsbOptions.model_validate(given))


def words_of(tmp_path: Path, **options: Any) -> list[str]:
    runner = Saying(tmp_path, INTERRUPTED)
    make(**options).drive(runner, MARIADB, seed=1)
    return runner.commands[0]


def test_time_ends_it_and_what_it_gave_up_then_has_not_failed(tmp_path: Path) -> None:
    runner = Saying(tmp_path, INTERRUPTED)
    measured = make().drive(runner, MARIADB, seed=1)
    assert (measured.ended_by, measured.errors) == ("duration", {})
    assert measured.responses["failed_operations"] == 0
    assert measured.responses["throughput"] == pytest.approx((6775 + 6813) / 3.812247729)
    assert runner.commands[0][1:5] == ["--foreground", "--signal=INT", "--preserve-status", "4.200"]
    assert any("was interrupted when its time was over" in note for note in measured.notes)


def test_an_operation_that_failed_before_the_end_has_failed(tmp_path: Path) -> None:
    before = INTERRUPTED.replace("\nGot signal", "operation err: invalid connection\n\nGot signal")
    said = before.replace("UPDATE_ERROR - Takes(s): 0.0, Count: 3", "UPDATE_ERROR - Takes(s): 0.0, Count: 4")
    with pytest.raises(InvalidRun, match=r"1 of 13589 operations failed \(invalid connection\)"):
        make().drive(Saying(tmp_path, said), MARIADB, seed=1)


def test_who_interrupted_it_must_have_been_its_time(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match="told to end before it had done what was asked"):
        make(duration=None, operations=20_000).drive(Saying(tmp_path, INTERRUPTED), MARIADB, seed=1)


def test_operations_alone_need_no_clock(tmp_path: Path) -> None:
    done = INTERRUPTED.replace("\nGot signal [interrupt] to exit.\n", "").replace(
        "operation err: context canceled\n", ""
    )
    done = "\n".join(line for line in done.splitlines() if "_ERROR" not in line)
    runner = Saying(tmp_path, done)
    measured = make(duration=None, operations=13_588).drive(runner, MARIADB, seed=1)
    assert (measured.ended_by, runner.commands[0][1]) == ("operations", "run")
    with pytest.raises(InvalidRun, match="did 13588 operations, 13589 were asked for"):
        make(duration=None, operations=13_589).drive(Saying(tmp_path, done), MARIADB, seed=1)


def test_the_same_keys_are_told_in_its_own_words(tmp_path: Path) -> None:
    words = words_of(
        tmp_path,
        mix=None,
        proportions={"read": "70%", "scan": "30%"},
        key_chooser="exponential",
        exponential_percentile="90%",
        exponential_keys="50%",
        field_count=3,
        field_length="20 B",
        read_all_fields=False,
        write_all_fields=True,
        max_scan_length=7,
        warmup="2 s",
        interval="500 ms",
        max_errors="1%",
    )
    for word in (
        "readproportion=0.7", "scanproportion=0.3", "updateproportion=0.0", "requestdistribution=exponential",
        "exponential.percentile=90.0", "exponential.frac=0.5", "fieldcount=3", "fieldlength=20", "readallfields=false",
        "writeallfields=true", "maxscanlength=7", "warmuptime=2", "measurement.interval=1", "threadcount=4",
        "recordcount=300000", "insertorder=hashed", "zeropadding=1",
    ):  # fmt: skip
        assert word in words
    assert "6.200" in words


def test_ordered_keys_are_written_as_dyno_writes_them_and_the_data_are_shared(tmp_path: Path) -> None:
    words = words_of(tmp_path, insert_order="ordered")
    assert "zeropadding=20" in words
    assert "insertorder=ordered" in words
    dynos = make(insert_order="ordered", driver="dyno")
    assert make(insert_order="ordered").data_key() == dynos.data_key()
    assert make().data_key() != make(driver="dyno").data_key()


@pytest.mark.parametrize(("asked", "told"), [("ycsb-zipfian", "zipfian"), ("latest", "latest")])
def test_its_zipfian_is_ycsbs(asked: str, told: str, tmp_path: Path) -> None:
    assert f"requestdistribution={told}" in words_of(tmp_path, key_chooser=asked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 100}, "driver go-ycsb has no open loop: leave out rate"),
        ({"think_time": "1 s"}, "driver go-ycsb has no think_time"),
        ({"drivers": 2}, "driver go-ycsb is one process: leave out drivers"),
        ({"limits": {"read": "1 s"}}, "leave out limits"),
        ({"data_integrity": True}, "leave out data_integrity"),
        ({"warmup_operations": 5}, "write warmup instead of warmup_operations"),
        ({"warmup": "1500 ms"}, r"warms up for whole seconds, not 1.5 \(warmup\)"),
        ({"key_chooser": "clustered-zipfian"}, "has no key_chooser clustered-zipfian"),
        ({"key_chooser": "zipfian"}, "has no exact zipfian: write key_chooser: ycsb-zipfian"),
        ({"theta": 0.8, "key_chooser": "latest"}, "has a theta of 0.99 and no other"),
        ({"field_length": "1 MiB"}, r"fields of up to 65535 B \(field_length\)"),
        ({"operations": 3}, r"needs an operation a thread \(operations\)"),
        ({"mix": "d"}, "give operations"),
    ],
)
def test_what_go_ycsb_cannot_do_is_refused_by_its_key(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(**options)
    make(**{**options, "driver": "dyno"})


def test_where_it_cannot_go_is_told() -> None:
    assert "connect: tcp" in (make().refuses("mysql", "socket") or "")
    assert "reaches no store of backend sqlite: leave driver out" in (make().refuses("sqlite", None) or "")
    assert make().refuses("mysql", "tcp") is None
    assert make(driver="dyno").refuses("mysql", "socket") is None


def test_it_is_provided_for_beside_dynos_own_driver(
    host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert make(driver="dyno").provision(host, tmp_path, 10) == {}
    with pytest.raises(RunError, match="go-ycsb is missing: `dyno get go-ycsb` builds it"):
        make().provision(host, tmp_path, 10)
    assert make().program() != make(driver="dyno").program()


def test_the_store_has_the_last_word(stored: dict[str, int], tmp_path: Path) -> None:
    runner = Saying(tmp_path, INTERRUPTED)
    make().drive(runner, MARIADB, seed=1)
    stored |= {"rows": 300_000, "whole": 300_000}
    assert make().check(runner, MARIADB, seed=1) == Checked()
    stored |= {"rows": 299_999}
    with pytest.raises(InvalidRun, match="the store has 299999 rows after the run"):
        make().check(runner, MARIADB, seed=1)


def test_it_cuts_nothing_off_and_counts_its_connections() -> None:
    assert (make().cuts(), make(driver="dyno").cuts()) == (False, True)
    assert (make().clients(), make(driver="dyno").clients()) == (8, 4)
    assert (make().at_once(), make(driver="dyno").at_once()) == (4, 4), "no more requests than threads"


def test_a_run_without_interruption_says_so() -> None:
    assert go_ycsb.parse(test_go_ycsb.MIX_F).cut_off is None
    assert go_ycsb.parse(INTERRUPTED).cut_off == 4
