"""What go-ycsb 1.0.1 wrote on a real MariaDB, read figure by figure, and what is made of runs that went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dyno.hosts import LocalHost, tools
from dyno.model.base import InvalidRun, RunError
from dyno.workloads import go_ycsb
from dyno.workloads.base import INTERVAL_COLUMNS, Checked
from dyno.workloads.go_ycsb import GoYcsbOptions, GoYcsbWorkload
from tests.unit.workloads.making import MARIADB, TOOLS, Saying

MIX_F = (TOOLS / "go-ycsb-1.0.1-f.txt").read_text()


def make(**options: Any) -> GoYcsbWorkload:
    given = {"mix": "f", "records": 200, "operations": 3000, "threads": 2, **options}
    return GoYcsbWorkload(GoYcsbOptions.model_validate(given))


@pytest.fixture(autouse=True)
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What the database would say: how many rows, and in how many of them the first field is whole."""
    answers = {"rows": 200, "whole": 200}

    class Connection:
        def __enter__(self) -> Connection:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def value(self, statement: str) -> int:
            return answers["whole" if "WHERE" in statement else "rows"]

    monkeypatch.setattr("dyno.sql.connect", lambda _endpoint, limit: Connection())
    return answers


def test_a_read_modify_write_is_one_operation_though_its_parts_are_counted() -> None:
    said = go_ycsb.parse(MIX_F)
    assert said.operations == 3000
    assert said.seconds == 3.18056321
    assert [block["TOTAL"]["Count"] for block in said.blocks] == [1195, 2699, 4427]
    assert said.last["READ_MODIFY_WRITE"]["99.9th"] == 30543


def test_its_run_is_measured(tmp_path: Path) -> None:
    runner = Saying(tmp_path, MIX_F)
    measured = make().drive(runner, MARIADB, seed=1)
    assert measured.responses["throughput"] == pytest.approx(3000 / 3.18056321)
    assert measured.responses["latency_p99"] == 14.959
    assert measured.responses["update.latency_mean"] == 3.144
    assert (measured.loop, measured.rate_per_s, measured.errors) == ("closed", None, {})
    words = runner.commands[0]
    for said in ("requestdistribution=zipfian", "debug.pprof=127.0.0.1:0", "silence=false", "readproportion=0.5"):
        assert said in words


def test_its_cumulative_reports_are_differenced(tmp_path: Path) -> None:
    intervals = make().drive(Saying(tmp_path, MIX_F), MARIADB, seed=1).intervals
    assert intervals is not None
    assert dict(intervals.schema) == INTERVAL_COLUMNS
    reads = intervals.filter(intervals["operation"] == "read")
    assert reads["count"].to_list() == [801, 1007, 1139, 53]
    assert (intervals["end_ns"] > intervals["start_ns"]).all()


FAILING = MIX_F.replace("TOTAL  -", "READ_ERROR - Takes(s): 3.0, Count: 30, OPS: 1.0, Avg(us): 1\nTOTAL  -").replace(
    "**********************************************\nREAD ", "operation err: invalid connection\nREAD ", 1
)


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        ({"operations": 3001}, MIX_F, "did 3000 operations, 3001 were asked for"),
        ({}, FAILING, r"30 of 3030 operations failed \(invalid connection\); allowed is 0.000%"),
        ({"target": 1000}, MIX_F, "the rate was not reached: 943.2 of 1000"),
    ],
)
def test_what_was_not_as_asked_makes_the_run_invalid(
    options: dict[str, Any], text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRun, match=message):
        make(**options).drive(Saying(tmp_path, text), MARIADB, seed=1)


def test_errors_up_to_the_bound_are_counted(tmp_path: Path) -> None:
    measured = make(max_errors="2%").drive(Saying(tmp_path, FAILING), MARIADB, seed=1)
    assert measured.errors == {"read": {"failed": 30}}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"rows": 199, "whole": 199}, "the store has 199 rows after the run; loaded and inserted were 200"),
        ({"rows": 201, "whole": 201}, "the store has 201 rows"),
        ({"whole": 150}, "50 rows have a first field that is not 100 bytes long"),
    ],
)
def test_the_database_has_the_last_word(
    answers: dict[str, int], message: str, stored: dict[str, int], tmp_path: Path
) -> None:
    # A read of a key that is not there counts as one that succeeded.
    stored |= answers
    runner = Saying(tmp_path, MIX_F)
    make().drive(runner, MARIADB, seed=1)
    with pytest.raises(InvalidRun, match=message):
        make().check(runner, MARIADB, seed=1)


def test_a_store_that_has_what_go_ycsb_says_is_right(tmp_path: Path) -> None:
    runner = Saying(tmp_path, MIX_F)
    make().drive(runner, MARIADB, seed=1)
    assert make().check(runner, MARIADB, seed=1) == Checked()


def test_a_load_that_left_too_few_rows_is_a_run_error_though_the_status_is_0(
    stored: dict[str, int], tmp_path: Path
) -> None:
    stored["rows"] = 7
    with pytest.raises(RunError, match="left 7 rows, not 200: table is full"):
        make().load(Saying(tmp_path, "operation err: table is full\n"), MARIADB, seed=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not say that the run finished"),
        ("Run finished, takes 1s\n", "no report after its end"),
        ("Run finished, takes soon\nREAD   - Takes(s): 1.0, Count: 1\n", "'soon', which is no duration"),
    ],
)
def test_output_that_is_not_whole_is_a_run_error(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=message):
        make().drive(Saying(tmp_path, text), MARIADB, seed=1)


@pytest.mark.parametrize(
    ("text", "seconds"), [("22.04s", 22.04), ("1m2.5s", 62.5), ("850.5ms", 0.8505), ("1h0m3s", 3603.0), ("12µs", 12e-6)]
)
def test_gos_durations_are_read(text: str, seconds: float) -> None:
    assert go_ycsb._go_duration(text) == pytest.approx(seconds)


def test_reports_that_are_not_cumulative_are_a_run_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="its reports are not cumulative"):
        make().drive(Saying(tmp_path, MIX_F.replace("Count: 1808", "Count: 800", 1)), MARIADB, seed=1)


def test_a_missing_go_ycsb_says_how_to_get_it(host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RunError, match="go-ycsb is missing: `dyno get go-ycsb` builds it"):
        make().provision(host, tmp_path, 10)
    tools.tool_path("go-ycsb").parent.mkdir(parents=True)
    tools.tool_path("go-ycsb").touch(mode=0o755)
    tools._version_file("go-ycsb").write_text("v1.0.1\n")
    assert make().provision(host, tmp_path, 10) == {"go-ycsb": "v1.0.1"}


def test_it_connects_by_tcp_alone() -> None:
    assert "connect: tcp" in (make().refuses("mysql", "socket") or "")
    assert make().refuses("mysql", "tcp") is None
