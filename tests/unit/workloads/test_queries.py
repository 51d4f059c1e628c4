"""Workload queries: what it refuses, that every store is asked the same, and what it makes of what its driver left."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from dyno.model.answers import ANSWER_COLUMNS
from dyno.model.base import InvalidRun, NeverValid
from dyno.model.endpoint import Endpoint
from dyno.workloads.asking import COURSE
from dyno.workloads.base import INTERVAL_COLUMNS
from dyno.workloads.devops_data import DataOptions, table, tables
from dyno.workloads.queries import QueriesOptions, QueriesWorkload
from dyno.workloads.tsbs import TsbsWorkload

FILE = Path(__file__).parents[3] / "studies" / "queries" / "time-series.yaml"
SERVER = Endpoint("postgresql", {"host": "127.0.0.1", "port": 1}, {"server": 1})


def options(**given: Any) -> QueriesOptions:
    return QueriesOptions.model_validate({"file": FILE.name, "text": FILE.read_text(), **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"queries": ["pint"]}, "no determinate query 'pint' in time-series.yaml (there are single-groupby-1-1-1"),
        ({"queries": ["point", "point"]}, "names a query twice"),
        ({"batched": ["point"]}, "is of batches: give batch"),
        ({"rate": 5.0}, "is of batches: give batch"),
        ({"ingest": {"rate": 5.0}}, "is of batches: give batch"),
        ({"ingest": {"rate": 5.0}, "batch": 3}, "write data.source: tsbs"),
        ({"ingest": {"rate": 0.0}, "batch": 3}, "greater than 0"),
        ({"ingest": {"rate": 1e6}, "batch": 3, "data": {"source": "tsbs"}}, "more than thirty years of these hosts"),
        (
            {"batch": 3, "data": {"source": "tsbs"}, "ingest": {"rate": 100.0, "length": "10 min"}},
            "length has 18 rows of these hosts, which do not last a second at that rate",
        ),
        ({"singly": False}, "without it and without a batch nothing is asked"),
        ({"text": None}, "give a file of queries"),
        ({"text": "title: x\nqueries: {}\n"}, "time-series.yaml:2: queries: should have at least 1"),
        ({"data": {"hosts": 0}}, "greater than or equal to 1"),
        ({"data": {"end": "2015-01-01"}}, "leaves no room for a row"),
        ({"data": {"interval": "1500 ms"}}, "should be whole seconds"),
        ({"data": {"start": "soon"}}, "'soon' is no time"),
        ({"data": {"source": "tsbs", "seed": 0}}, "seed of TSBS's rows: should be greater than or equal to 1"),
        ({"data": {"source": "tsbs", "interval": "2 d"}}, "interval of TSBS's rows: should be less than"),
        (
            {
                "batch": 3,
                "data": {"source": "tsbs", "start": "9999-12-01", "end": "9999-12-31"},
                "ingest": {"rate": 1.0, "length": "9 d"},
            },
            "reach beyond the year 9999",
        ),
    ],
)
def test_what_cannot_be_asked_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as error:
        options(**given)
    assert told in str(error.value)


def test_data_that_have_no_whole_month_are_told_before_anything_runs() -> None:
    short = QueriesWorkload(options(data={"end": "2016-01-06"}))
    ((key, why),) = short.misfits()
    assert key == "data"
    assert "month" in why
    assert list(QueriesWorkload(options()).misfits()) == []


def test_a_store_without_a_text_in_its_dialect_is_refused() -> None:
    text = "title: x\nqueries:\n  a:\n    title: a\n    determinate: {questdb: SELECT 1}\n"
    found = QueriesWorkload(options(text=text))
    assert found.refuses("questdb", "tcp") is None
    assert found.refuses("duckdb", "socket") == "query a has no determinate text for duckdb (time-series.yaml)"


def test_every_store_is_asked_for_the_same_in_the_same_order() -> None:
    made = QueriesWorkload(options(batch=3))
    jobs = {dialect: made.job(dialect, 5) for dialect in ("questdb", "cratedb", "postgresql", "duckdb", "sqlite")}

    def questions(job: dict[str, Any]) -> list[tuple[str, int, str, str]]:
        every = [*job["singly"], *(each for of_batch in job["batches"].values() for each in of_batch)]
        return [(each["query"], each["number"], each["parameters"], each["data"]) for each in every]

    first, *others = (questions(job) for job in jobs.values())
    assert all(other == first for other in others)
    assert len(first) == 13 + 13 * 3
    assert "timestamp" in jobs["questdb"]["singly"][0]["statement"]
    assert "{" not in "".join(each["statement"] for job in jobs.values() for each in job["singly"])


def test_parameters_stay_from_block_to_block_unless_they_are_to_be_drawn_anew() -> None:
    def drawn(of_lab: int, **given: Any) -> dict[str, str]:
        job = QueriesWorkload(options(**given)).job("duckdb", of_lab)
        return {each["query"]: each["parameters"] for each in job["singly"]}

    assert drawn(1) == drawn(2)
    assert list(drawn(1)) != list(drawn(2))
    assert drawn(1, draw="per-block") != drawn(2, draw="per-block")
    assert drawn(1, seed=7) != drawn(1)
    assert drawn(1, queries=["point"])["point"] == drawn(1)["point"]


def test_the_data_are_those_of_their_options_and_of_nothing_else() -> None:
    small = DataOptions(hosts=2, interval="1 h", end="2016-01-02")  # type: ignore[arg-type]
    made = {measurement.name: rows for measurement, rows in tables(small)}
    assert len(made) == 9
    assert sum(rows.height for rows in made.values()) == small.rows() == 9 * 2 * 24
    again = {measurement.name: table(small, measurement) for measurement, _ in tables(small)}
    assert all(rows.equals(again[name]) for name, rows in made.items())
    more = DataOptions(hosts=3, interval="1 h", end="2016-01-02")  # type: ignore[arg-type]
    first_two = {m.name: rows for m, rows in tables(more)}["cpu"].filter(pl.col("hostname") != "host_2")
    assert first_two.equals(made["cpu"])
    cpu = made["cpu"].select(pl.col("^usage_.*$"))
    assert cpu.min_horizontal().min() >= 0  # type: ignore[operator]
    assert cpu.max_horizontal().max() <= 100  # type: ignore[operator]


class Planted:
    """A runner whose driver leaves what the test says."""

    def __init__(self, folder: Path, result: dict[str, Any], answers: list[dict[str, Any]]) -> None:
        self.core, self.complaint, self.interrupted, self.limit = "", "", False, 5.0
        self.folder, self.logs = folder, folder
        self.measured: Any = None
        self._left = result, answers

    def execute(self, argv: Any, *, kept_as: str | None = None) -> int:
        job = json.loads(Path(argv[-1]).read_text())
        out = Path(job["out"])
        out.mkdir(parents=True)
        result, answers = self._left
        (out / "result.json").write_text(json.dumps(result))
        rows = [{name: each.get(name) for name in ANSWER_COLUMNS} for each in answers]
        pl.DataFrame(rows, schema=ANSWER_COLUMNS).write_parquet(out / "answers.parquet")
        course = [(10**9 * place, "q.point", 1000.0, 1000.0) for place in range(1, 4)]
        pl.DataFrame(course, schema=COURSE, orient="row").write_parquet(out / "course.parquet")
        return 0


def left(**batch: Any) -> dict[str, Any]:
    of_batch = {"elapsed_s": 2.0, "cpu_s": 1.0, "latencies_ms": [10.0, 20.0, 90.0], "services_ms": [10.0, 20.0, 30.0]}
    return {
        "measured_from_ns": 0,
        "measured_to_ns": 3 * 10**9 + 1,
        "singly": {"count": 4, "elapsed_s": 2.0, "cpu_s": 0.5},
        "batches": {"point": {**of_batch, "lags_ms": [0.0], "between_ms": [1.0, 3.0], "errors": 0, **batch}}
        if batch
        else {},
        "lasting": [],
    }


POINT = {"part": "q", "query": "point", "cold_ms": 8.0, "warm_ms": [1.0, 4.0, 2.0]}
SCAN = {"part": "q", "query": "scan", "cold_ms": 2.0, "warm_ms": [8.0]}


def driven(tmp_path: Path, result: dict[str, Any], answers: list[dict[str, Any]], **given: Any) -> Any:
    runner: Any = Planted(tmp_path, result, answers)
    return QueriesWorkload(options(**given)).drive(runner, SERVER, 1)


def test_cold_is_the_first_time_warm_the_median_and_both_together_geometric_means(tmp_path: Path) -> None:
    measured = driven(tmp_path, left(), [POINT, SCAN])
    found = measured.responses
    assert (found["q.point.cold"], found["q.point.warm"]) == (8.0, 2.0)
    assert (found["cold"], found["warm"]) == pytest.approx((4.0, 4.0))
    assert found["throughput"] == 2.0
    assert dict(measured.intervals.schema) == INTERVAL_COLUMNS
    assert measured.intervals["count"].to_list() == [1, 1, 1]


def test_a_batch_has_its_quantiles(tmp_path: Path) -> None:
    found = driven(tmp_path, left(errors=0), [POINT], batch=3, queries=["point"]).responses
    assert found["b.point.throughput"] == 1.5
    assert found["b.point.latency_mean"] == pytest.approx(40.0)
    assert (found["b.point.latency_p50"], found["b.point.latency_p99"]) == (20.0, 90.0)


def test_what_clients_do_between_queries_and_that_kinds_come_in_turn_is_told(tmp_path: Path) -> None:
    status = driven(tmp_path, left(errors=0), [POINT], batch=3, queries=["point"]).status
    assert (status["driver.between_ms"], status["driver.in_turn"]) == (2.0, 4.0)


def test_a_driver_that_used_up_its_cpu_makes_the_run_invalid(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match=r"the driver itself was the limit: in the batch of point it used 0\.95"):
        driven(tmp_path, left(cpu_s=1.9), [POINT], batch=3, queries=["point"])


@pytest.mark.parametrize(("elapsed_s", "judged"), [(0.2, True), (0.02, False)])
def test_a_short_batch_is_judged_too_but_not_one_of_moments(elapsed_s: float, judged: bool, tmp_path: Path) -> None:
    """A hundred queries of a quick store last for tenths of a second; the CPU time is counted and not sampled."""
    used_up = left(cpu_s=0.95 * elapsed_s, elapsed_s=elapsed_s)
    with pytest.raises(InvalidRun, match="the driver itself was the limit") if judged else nullcontext():
        driven(tmp_path, used_up, [POINT], batch=3, queries=["point"])


def test_a_rate_that_was_not_reached_makes_the_run_invalid(tmp_path: Path) -> None:
    """As a store leaves it that answers one query a second of the ten that are due: latencies grow with the queue."""
    behind = {
        "elapsed_s": 3.0,
        "latencies_ms": [1000.0, 1900.0, 2800.0],
        "services_ms": [1000.0] * 3,
        "lags_ms": [0.0, 900.0, 1800.0],
    }
    with pytest.raises(InvalidRun, match=r"the rate was not reached: the last of 3 queries .* was sent 1\.8 s after"):
        driven(tmp_path, left(errors=0, **behind), [POINT], batch=3, rate=10.0, queries=["point"])


def test_one_long_answer_forgives_no_query_that_is_sent_late(tmp_path: Path) -> None:
    """The longest answer was taken off what the batch had lasted for, wherever it was."""
    held_up = {
        "elapsed_s": 15.0,
        "latencies_ms": [10_000.0, *[5050.0] * 99],
        "services_ms": [10_000.0, *[50.0] * 99],
        "lags_ms": [0.0, *[5000.0] * 99],
    }
    with pytest.raises(InvalidRun, match="the rate was not reached"):
        driven(tmp_path, left(errors=0, **held_up), [POINT], batch=100, rate=10.0, queries=["point"])


def test_one_slow_answer_at_the_end_of_a_batch_is_no_rate_that_was_not_reached(tmp_path: Path) -> None:
    slow = {"elapsed_s": 2.2, "latencies_ms": [10.0, 10.0, 2000.0], "services_ms": [10.0, 10.0, 2000.0]}
    assert driven(tmp_path, left(errors=0, **slow), [POINT], batch=3, rate=10.0, queries=["point"]).responses


@pytest.mark.parametrize(("schedule_s", "late_s", "reached"), [(1, 0.02, True), (1, 0.3, False), (100, 0.9, True)])
def test_a_last_query_that_is_sent_late_by_a_moment_is_no_rate_that_was_not_reached(
    schedule_s: int, late_s: float, reached: bool, tmp_path: Path
) -> None:
    """Twenty milliseconds at the end of a second are two hundredths of it, and no sign of a driver that is too slow."""
    count = 10 * schedule_s + 1
    took: dict[str, Any] = {"cpu_s": 0.1, "elapsed_s": schedule_s + late_s + 0.01}
    took |= {"latencies_ms": [10.0] * count, "services_ms": [10.0] * count}
    took["lags_ms"] = [*[0.0] * (count - 1), 1000 * late_s]
    with nullcontext() if reached else pytest.raises(InvalidRun, match="the rate was not reached"):
        driven(tmp_path, left(errors=0, **took), [POINT], batch=count, rate=10.0, queries=["point"])


def test_a_driver_that_is_always_a_little_too_slow_is_found(tmp_path: Path) -> None:
    took = {"elapsed_s": 102.01, "latencies_ms": [10.0] * 1001, "services_ms": [10.0] * 1001}
    took["lags_ms"] = [2.0 * place for place in range(1001)]
    with pytest.raises(InvalidRun, match="the rate was not reached"):
        driven(tmp_path, left(errors=0, **took), [POINT], batch=1001, rate=10.0, queries=["point"])


COMING = {"batch": 3, "queries": ["point"], "data": {"source": "tsbs"}, "ingest": {"rate": 100.0, "length": "1 d"}}


def came(*, rows: int, until_s: float, unsent: int = 0, told_s: float | None = None) -> dict[str, Any]:
    """What a loader leaves that was told to end."""
    of_batches = {"count": 3, "errors": {}, "throughput_per_s": 1.0, "latency_us": None, "service_us": None}
    return {
        "format": 1,
        "outcome": "partial",
        "ended_by": "signal",
        "error": None,
        "open": of_open_loop(unsent=unsent),
        "loop": "open",
        "reconnects": 0,
        "measured_from_ns": 0,
        "ended_ns": round(until_s * 10**9),
        "elapsed_s": until_s,
        "operations": {},
        "warmup": {"errors": {}},
        "total": of_batches,
        "cpu": {"user_s": 0.0, "system_s": 0.0},
        "backend": {"kind": "questdb", "effective": {}, "status": {}},
        "versions": {},
        "ingest": {
            "sent": rows,
            "acknowledged": rows,
            "in_doubt": 0,
            "resent": 0,
            "rows_per_s": rows / (until_s if told_s is None else told_s),
        },
    }


def of_open_loop(*, unsent: int) -> dict[str, Any]:
    share = 1 - unsent / 60
    return {"rate_per_s": 100.0, "due": 60, "unsent": unsent, "share_sent": share, "lag_us": None}


def driven_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: dict[str, Any]) -> Any:
    (tmp_path / "ingest").mkdir()
    (tmp_path / "ingest" / "result.json").write_text(json.dumps(loaded))
    monkeypatch.setattr(TsbsWorkload, "later", lambda *_: ["loader"])
    result = {**left(errors=0), "batches_from_ns": 10**9, "batches_to_ns": 3 * 10**9}
    return driven(tmp_path, result, [POINT], **COMING)


def test_rows_that_came_meanwhile_have_figures_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = driven_meanwhile(tmp_path, monkeypatch, came(rows=300, until_s=3.0, unsent=3))
    assert measured.status["ingest.batches_unsent"] == 3
    assert "can hardly be seen" not in " ".join(measured.notes)
    assert measured.responses["ingest.throughput"] == 100.0
    assert measured.status["ingest.overlap"] == 1.0
    assert measured.responses["b.point.throughput"] == 1.5
    assert json.loads((tmp_path / "run.json").read_text())["ingest"]["words"] == ["loader"]


def test_the_rate_of_rows_that_came_is_until_their_loader_was_told_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = driven_meanwhile(tmp_path, monkeypatch, came(rows=300, until_s=5.0, told_s=3.0))
    assert measured.responses["ingest.throughput"] == 100.0


@pytest.mark.parametrize(
    ("rows", "until_s", "unsent", "told"),
    [
        (200, 2.0, 0, r"rows came during 50% of the batches only: give more \(ingest.length\), or ask fewer"),
        (240, 3.0, 4, "the rate was not reached: 80 rows a second were taken, and 100 came"),
    ],
)
def test_rows_that_did_not_come_as_they_should_make_the_run_invalid(
    rows: int, until_s: float, unsent: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRun, match=told):
        driven_meanwhile(tmp_path, monkeypatch, came(rows=rows, until_s=until_s, unsent=unsent))


def test_a_store_that_copies_files_in_by_itself_takes_no_rows_meanwhile() -> None:
    made = QueriesWorkload(options(**COMING))
    assert "takes no rows" in str(made.refuses("duckdb", None))
    assert made.refuses("questdb", "tcp") is None
    assert made.data_key()["room_for_s"] == 86400.0
    # Two hosts have nine rows each every ten minutes: two minutes of 100 a second are of 667 times, rounded up.
    plenty = QueriesWorkload(options(**{**COMING, "ingest": {"rate": 100.0}}))
    assert plenty.data_key()["room_for_s"] == 667 * 600
    # Without rows to come the data are what they were before there could be any.
    assert "room_for_s" not in QueriesWorkload(options(data={"source": "tsbs"})).data_key()


def test_a_determinate_question_without_an_answer_makes_the_run_invalid_and_a_verbatim_one_does_not(
    tmp_path: Path,
) -> None:
    refused = {"part": "q", "query": "limit-scan", "dialect": "duckdb", "error": "no such function"}
    lines = FILE.read_text().splitlines()
    of_query = next(number for number, line in enumerate(lines) if line == "  limit-scan:")
    form = next(number for number, line in enumerate(lines) if number > of_query and line == "    determinate:")
    line = 1 + next(number for number, text in enumerate(lines) if number > form and text.startswith("      default:"))
    why = f"1 of 2 questions had no answer: {FILE.name}:{line}: limit-scan: no such function"
    with pytest.raises(InvalidRun, match=why) as told:
        driven(tmp_path / "a", left(), [POINT, refused])
    assert not isinstance(told.value, NeverValid), "a store that was too slow may answer the next time"
    slow = {**refused, "query": "point", "error": "it took too long"}
    with pytest.raises(NeverValid, match=r"2 of 2 questions had no answer: .*: limit-scan: no such function"):
        driven(tmp_path / "c", {**left(), "lasting": ["limit-scan"]}, [slow, refused])
    measured = driven(tmp_path / "b", left(), [POINT, refused], form="verbatim")
    assert measured.errors == {"q.limit-scan": {"refused": 1}}
    assert "q.limit-scan.warm" not in measured.responses


def test_rows_that_come_late_or_twice_do_so_while_queries_are_asked_and_not_when_they_are_loaded() -> None:
    of = options(batch=3, data={"source": "tsbs"}, ingest={"rate": 90, "order": "heavy", "duplicates": "10%"})
    loaded, coming = of.tsbs(loading=True), of.tsbs(loading=False)
    assert (loaded.order, loaded.duplicates) == ("in-order", 0)
    assert (coming.order, coming.duplicates) == ("heavy", 0.1)
