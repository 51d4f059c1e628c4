"""What YCSB 0.17.0 wrote with its BasicDB and a target, and what is made of runs that went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dyno.model.base import InvalidRun, RunError
from dyno.workloads import ycsb_java
from dyno.workloads.ycsb_java import YcsbJavaOptions, YcsbJavaWorkload
from tests.unit.workloads.making import MARIADB, NULL, TOOLS, Saying

TARGET = (TOOLS / "ycsb-0.17.0-target.txt").read_text()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "ycsb"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "core-0.17.0.jar").touch()
    monkeypatch.setenv("YCSB_HOME", str(folder))
    monkeypatch.setattr(ycsb_java, "_java", lambda: "java")
    return folder


def make(**options: Any) -> YcsbJavaWorkload:
    given = {"mix": "a", "records": 100, "operations": 3000, "threads": 2, **options}
    return YcsbJavaWorkload(YcsbJavaOptions.model_validate(given))


def test_with_a_target_latency_is_from_the_intended_start(tmp_path: Path) -> None:
    runner = Saying(tmp_path, TARGET)
    measured = make(target=1480).drive(runner, NULL, seed=1)
    assert measured.responses["throughput"] == pytest.approx(1471.309)
    assert measured.responses["elapsed"] == 2.039
    assert measured.responses["read.latency_p99"] == 481.023
    assert measured.responses["read.service_p99"] == 0.003
    assert measured.responses["update.latency_max"] == 496.383
    assert (measured.loop, measured.rate_per_s) == ("open", 1480)
    assert "measurement.interval=both" in runner.commands[0]
    assert "requestdistribution=zipfian" in runner.commands[0]


def test_without_one_latency_is_from_the_actual_start(tmp_path: Path) -> None:
    measured = make().drive(Saying(tmp_path, TARGET), NULL, seed=1)
    assert measured.responses["read.latency_p99"] == 0.003
    assert "read.service_p99" not in measured.responses
    assert (measured.loop, measured.rate_per_s) == ("closed", None)


def test_a_read_modify_write_is_one_operation() -> None:
    rows = {
        "READ": {"Operations": 300.0, "Return=OK": 300.0},
        "UPDATE": {"Operations": 148.0, "Return=OK": 148.0},
        "READ-MODIFY-WRITE": {"Operations": 148.0},
    }
    assert ycsb_java.Said(rows).done == 300


@pytest.mark.parametrize(
    ("options", "change", "error", "message"),
    [
        ({"target": 1600}, ("", ""), InvalidRun, "the rate was not reached: 1471.3 of 1600"),
        ({"operations": 3001}, ("", ""), InvalidRun, "did 3000 operations, 3001 were asked for"),
        (
            {},
            ("Return=OK, 1509", "Return=OK, 1500\n[READ], Return=NOT_FOUND, 9"),
            InvalidRun,
            "9 of 3000 .*not_found: 9",
        ),
        ({}, ("[OVERALL], Throughput", "[OVERALL], Through"), RunError, r"has no \[OVERALL\] throughput"),
        ({"target": 1400}, ("[Intended-READ]", "[Other]"), RunError, r"has no \[Intended-READ\]"),
    ],
)
def test_what_was_not_as_asked_is_an_error_that_says_so(
    options: dict[str, Any], change: tuple[str, str], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        make(**options).drive(Saying(tmp_path, TARGET.replace(*change)), NULL, seed=1)


def test_a_binding_that_cannot_be_loaded_is_a_run_error_though_the_status_is_0(tmp_path: Path) -> None:
    said = "[OVERALL], RunTime(ms), 62\n[OVERALL], Throughput(ops/sec), 0.0\n"
    errors = "java.lang.ClassNotFoundException: site.ycsb.Nope\n"
    with pytest.raises(RunError, match=r"YCSB run did nothing: java.lang.ClassNotFoundException: site.ycsb.Nope"):
        make().drive(Saying(tmp_path, said, errors=errors), NULL, seed=1)


def test_a_distribution_without_its_jdbc_binding_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="jdbc-binding/lib has no jars"):
        make().drive(Saying(tmp_path, TARGET), MARIADB, seed=1)


def test_the_server_is_reached_by_jdbc(home: Path, tmp_path: Path) -> None:
    (home / "jdbc-binding" / "lib").mkdir(parents=True)
    (home / "jdbc-binding" / "lib" / "jdbc-binding-0.17.0.jar").touch()
    words = make()._words("run", MARIADB)
    assert "db.url=jdbc:mariadb://127.0.0.1:1/dyno" in words
    assert words[words.index("-db") + 1] == "site.ycsb.db.JdbcDBClient"


@pytest.mark.parametrize(
    ("given", "message"), [(None, "YCSB_HOME is not set"), ("/", r"is no YCSB distribution: it has no lib/core-\*.jar")]
)
def test_a_home_that_is_none_is_one_line(given: str | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if given is None:
        monkeypatch.delenv("YCSB_HOME")
    else:
        monkeypatch.setenv("YCSB_HOME", given)
    with pytest.raises(RunError, match=message):
        ycsb_java._home()
