"""What sysbench 1.0.20 wrote on a real MariaDB, read figure by figure, and what is made of runs that went wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dyno.model.base import InvalidRun, RunError
from dyno.workloads import sysbench
from dyno.workloads.base import INTERVAL_COLUMNS
from dyno.workloads.sysbench import SysbenchOptions, SysbenchWorkload
from tests.unit.workloads.making import MARIADB, TOOLS, Saying

EVENTS = (TOOLS / "sysbench-1.0.20-events.txt").read_text()
RATE = (TOOLS / "sysbench-1.0.20-rate.txt").read_text()


def make(**options: Any) -> SysbenchWorkload:
    given = {"test": "oltp_read_write", "table_size": 50, "threads": 3, **options}
    return SysbenchWorkload(SysbenchOptions.model_validate(given))


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysbench, "_program", lambda: "sysbench")


def test_every_figure_is_read() -> None:
    said = sysbench.parse(EVENTS)
    assert (said.transactions, said.transactions_per_s) == (60, 53.77)
    assert (said.queries, said.queries_per_s) == (1217, 1090.62)
    assert (said.ignored, said.reconnects, said.events, said.seconds) == (1, 0, 60, 1.1067)
    assert said.latency_ms == {"min": 3.78, "mean": 51.06, "max": 140.88, "p99": 125.52}
    assert sum(count for _, count in said.histogram) == 60


@pytest.mark.parametrize("text", [EVENTS, RATE])
def test_quantiles_of_the_histogram_are_those_that_sysbench_makes_of_it(text: str) -> None:
    said = sysbench.parse(text)
    assert sysbench.quantile(said, 0.99) == pytest.approx(said.latency_ms["p99"], abs=0.01)


def test_its_run_is_measured(tmp_path: Path) -> None:
    runner = Saying(tmp_path, EVENTS)
    measured = make(events=60, max_errors="5%").drive(runner, MARIADB, seed=7)
    assert measured.responses["throughput"] == 53.77
    assert measured.responses["query.throughput"] == 1090.62
    assert measured.responses["latency_p50"] <= measured.responses["latency_p90"] <= measured.responses["latency_p99"]
    assert (measured.loop, measured.rate_per_s, measured.ended_by) == ("closed", None, "operations")
    assert measured.errors == {"transaction": {"ignored": 1}}
    assert measured.intervals is not None
    assert dict(measured.intervals.schema) == INTERVAL_COLUMNS
    # Also those that it did after its last report.
    assert measured.intervals["count"].sum() == 60
    assert measured.intervals["end_ns"].max() == measured.measured_to_ns
    # Also those that it did after its last report.
    assert measured.intervals["count"].sum() == 60
    assert measured.intervals["end_ns"].max() == measured.measured_to_ns
    # Its default of 10 s would cut a run of events short.
    assert {"--time=0", "--events=60", "--rand-seed=7", "--percentile=99"} <= set(runner.commands[0])


def test_with_a_rate_the_loop_is_open(tmp_path: Path) -> None:
    measured = make(test="oltp_point_select", duration="2 s", rate=40).drive(Saying(tmp_path, RATE), MARIADB, seed=1)
    assert (measured.loop, measured.rate_per_s, measured.ended_by) == ("open", 40, "duration")
    assert measured.intervals is not None
    assert measured.intervals["count"].sum() == pytest.approx(80, abs=3)


def test_reads_take_the_way_of_reads_where_there_is_one_and_say_where_there_is_none(tmp_path: Path) -> None:
    reading = make(test="oltp_read_only", events=60, way="read_only", max_errors="5%")
    runner = Saying(tmp_path, EVENTS)
    at = {"user": "u", "database": "d", "host": "10.213.0.2", "port": 6446}
    cluster = replace(MARIADB, settings=at, others={"read_only": {**at, "port": 6447}})
    measured = reading.drive(runner, cluster, seed=1)
    assert "--mysql-port=6447" in runner.commands[0]
    assert len(measured.notes) == 1
    alone = Saying(tmp_path, EVENTS)
    measured = reading.drive(alone, replace(cluster, others={}), seed=1)
    assert "--mysql-port=6446" in alone.commands[0]
    assert measured.notes[-1] == "The system has no way in for reading alone: what was read was read where writes go."
    first = Saying(tmp_path, EVENTS)
    make(events=60, max_errors="5%").drive(first, cluster, seed=1)
    assert "--mysql-port=6446" in first.commands[0]
    assert "--mysql-ignore-errors=1213,1020,1205,3101,1180" in first.commands[0], "a group's conflict does not end it"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events": 61, "max_errors": "5%"}, "did 60 events, 61 were asked for"),
        ({"events": 60}, "1 transaction met errors that sysbench ignores.*allowed is 1.000%"),
        ({"duration": "2 s", "max_errors": "5%"}, r"ran for 1.1067 s, 2 s were asked for"),
        ({"duration": "1 s", "max_errors": "5%", "rate": 100}, r"the rate was not reached: 54.2 of 100"),
    ],
)
def test_what_was_not_as_asked_makes_the_run_invalid(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match=message):
        make(**options).drive(Saying(tmp_path, EVENTS), MARIADB, seed=1)


@pytest.mark.parametrize("label", ["transactions", "ignored errors", "reconnects", "total time", "99th percentile"])
def test_a_figure_that_is_missing_is_a_run_error(label: str, tmp_path: Path) -> None:
    text = EVENTS.replace(f"{label}:", f"{label}?")
    with pytest.raises(RunError, match=f"has no '{label}'"):
        make(events=60, max_errors="5%").drive(Saying(tmp_path, text), MARIADB, seed=1)


def test_a_histogram_that_is_cut_is_a_run_error(tmp_path: Path) -> None:
    text = EVENTS.replace("     139.846 |*************                            1\n", "")
    with pytest.raises(RunError, match="histogram has 59 latencies, of 60 events"):
        make(events=60, max_errors="5%").drive(Saying(tmp_path, text), MARIADB, seed=1)


def test_a_failure_is_told_in_its_own_words(tmp_path: Path) -> None:
    said = "sysbench 1.0.20\nFATAL: unable to connect to MySQL server on host '127.0.0.1', port 1, aborting...\n"
    with pytest.raises(RunError, match="ended with status 1: FATAL: unable to connect to MySQL server"):
        make(events=60).drive(Saying(tmp_path, said, status=1), MARIADB, seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either events or duration"),
        ({"events": 1, "duration": "1 s"}, "either events or duration"),
        ({"duration": "1500 ms"}, "whole seconds"),
        (
            {"events": 1, "way": "read_only"},
            "oltp_read_write writes, and way: read_only leads to nodes that are only read",
        ),
        ({"test": "oltp_nothing", "events": 1}, "oltp_read_only"),
    ],
)
def test_what_sysbench_cannot_do_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(**options)


def test_a_missing_sysbench_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(RunError, match="sysbench not found on the PATH: apt-get install sysbench"):
        sysbench._program()


def test_how_rows_are_chosen_is_said_in_any_case_as_its_own_way_is_skewed() -> None:
    assert "--rand-type=special" in make(events=60)._words(MARIADB, 1)
    assert "--rand-type=uniform" in make(events=60, rand_type="uniform")._words(MARIADB, 1)
