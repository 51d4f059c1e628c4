"""What every workload must do, on every system that it can drive."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.systems.base import Place
from dyno.workloads import core as core_driver
from dyno.workloads.base import INTERVAL_COLUMNS, Measured, Workload
from tests.contract.conftest import LIMIT_S, PlainRunner
from tests.contract.test_systems import LEAST, ROOMS, SMALL, options_of

PAIRS = [
    (workload, system)
    for workload, kind in sorted(ROOMS.workloads.items())
    for system, other in sorted(ROOMS.systems.items())
    if other.backend in kind.backends
]
SCHEMA = Path(__file__).parents[2] / "schema"
Runners = Callable[[], PlainRunner]


def make(name: str, **options: Any) -> Workload[Any]:
    kind = ROOMS.workloads[name]
    return kind(options_of(kind, {**SMALL.get(name, {}), **options}))


def carry_out(workload: Workload[Any], system_kind: str, place: Place, runners: Runners) -> Measured:
    kind = ROOMS.systems[system_kind]
    system = kind(options_of(kind, LEAST.get(system_kind, {})), place)
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    system.start(1, LIMIT_S)
    endpoint = system.ready(LIMIT_S)
    workload.load(runners(), endpoint, seed=1)
    measured = workload.drive(runners(), system.ready(LIMIT_S), seed=1)
    system.stop(LIMIT_S)
    return measured


@pytest.mark.parametrize("name", sorted(ROOMS.workloads))
def test_what_shapes_its_data_is_json_and_stays_the_same(name: str) -> None:
    first, second = make(name), make(name)
    assert json.dumps(first.data_key(), sort_keys=True) == json.dumps(second.data_key(), sort_keys=True)


@pytest.mark.parametrize("name", sorted(ROOMS.workloads))
def test_it_names_backends_that_some_system_has(name: str) -> None:
    backends = ROOMS.workloads[name].backends
    assert backends
    assert backends <= {kind.backend for kind in ROOMS.systems.values()}


@pytest.mark.parametrize("name", sorted(ROOMS.workloads))
def test_its_forecasts_are_not_negative(name: str) -> None:
    workload = make(name)
    assert workload.data_bytes() >= 0
    assert (workload.expected_seconds() or 0) >= 0


@pytest.mark.parametrize(("name", "system"), PAIRS)
def test_driving_gives_finite_responses_and_a_throughput(
    name: str, system: str, place: Place, runners: Runners
) -> None:
    measured = carry_out(make(name), system, place, runners)
    assert measured.complete
    assert measured.responses["throughput"] > 0
    assert all(math.isfinite(value) for value in measured.responses.values())
    assert measured.loop in ("closed", "open")
    assert measured.errors == {}
    json.dumps([measured.settings, measured.status, measured.versions, measured.job])


@pytest.mark.parametrize(("name", "system"), PAIRS)
def test_its_intervals_have_the_columns_and_lie_in_the_measured_part(
    name: str, system: str, place: Place, runners: Runners
) -> None:
    measured = carry_out(make(name), system, place, runners)
    if measured.intervals is None:
        assert measured.measured_from_ns is None, "a driver that says when it measured says what"
        return
    assert dict(measured.intervals.schema) == INTERVAL_COLUMNS
    assert measured.measured_from_ns is not None
    assert measured.measured_to_ns is not None
    main = measured.intervals.filter(pl.col("warmup").not_())
    assert (main["start_ns"] >= measured.measured_from_ns).all()
    assert (main["end_ns"] > main["start_ns"]).all()
    assert measured.histogram_log is not None
    assert measured.histogram_log.stat().st_size > 0


@pytest.mark.parametrize(("name", "system"), PAIRS)
def test_its_jobs_are_as_the_schema_has_them(name: str, system: str, place: Place, runners: Runners) -> None:
    measured = carry_out(make(name), system, place, runners)
    if measured.job:
        jsonschema.validate(measured.job, json.loads((SCHEMA / "job.schema.json").read_text()))


# ---- YCSB alone


@pytest.mark.parametrize("mix", "abcdef")
def test_every_core_workload_does_the_operations_that_were_asked(mix: str, place: Place, runners: Runners) -> None:
    workload = make("ycsb", mix=mix, operations=400, threads=2)
    measured = carry_out(workload, "sqlite", place, runners)
    assert measured.intervals is not None
    assert measured.intervals.filter(pl.col("warmup").not_())["count"].sum() == 400
    asked = measured.job["workload"]["proportions"]
    assert {name.partition(".")[0] for name in measured.responses if name.endswith(".throughput")} <= asked.keys()


def test_the_warm_up_is_not_in_the_figures(place: Place, runners: Runners) -> None:
    measured = carry_out(make("ycsb", operations=100, warmup_operations=300), "sqlite", place, runners)
    assert measured.intervals is not None
    counts = {warm: int(rows["count"].sum()) for (warm,), rows in measured.intervals.group_by("warmup")}
    assert counts == {True: 300, False: 100}


def test_a_duration_ends_the_measured_part(place: Place, runners: Runners) -> None:
    measured = carry_out(make("ycsb", operations=None, duration="200 ms"), "sqlite", place, runners)
    assert measured.responses["elapsed"] == pytest.approx(0.2, abs=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mix": None}, "either mix"),
        ({"proportions": {"read": "100%"}}, "either mix"),
        ({"operations": None}, "give operations, or duration"),
        ({"mix": None, "proportions": {"read": "50%"}}, "add up to 50"),
    ],
)
def test_what_is_not_one_workload_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make("ycsb", **options)


def test_operations_on_a_table_that_is_not_there_are_no_measurement(place: Place, runners: Runners) -> None:
    # Missing keys counted as fast reads is one of the traps: an empty store must not look like a fast one.
    place.data.mkdir()
    endpoint = Endpoint(backend="sqlite", settings={"path": str(place.data / "empty.db"), "config": {}})
    with pytest.raises((RunError, InvalidRun)):
        make("ycsb").drive(runners(), endpoint, seed=1)


# ---- what a driver that is not in order leaves


class Saying(PlainRunner):
    """A driver that leaves these files and ends with this status."""

    def __init__(self, folder: Path, files: dict[str, str], status: int = 0) -> None:
        self.core = "dyno-core"
        self.complaint = "disk quota exceeded"
        self.folder = self.logs = folder
        self._files = files
        self._status = status

    def execute(self, argv: Any) -> int:
        out = Path(argv[argv.index("--out") + 1])
        out.mkdir()
        for name, text in self._files.items():
            (out / name).write_text(text)
        return self._status


def result(**changes: Any) -> dict[str, str]:
    figures = {"count": 90, "errors": {}, "throughput_per_s": 90.0, "latency_us": None}
    whole = {
        "format": 1, "outcome": "ok", "ended_by": "operations", "error": None, "phase": "run", "loop": "closed",
        "clients": 1, "started_ns": 1, "measured_from_ns": 1, "ended_ns": 2, "elapsed_s": 1.0,
        "warmup": {"operations": 0, "errors": {}, "elapsed_s": 0.0}, "operations": {"read": figures}, "total": figures,
        "cpu": {"user_s": 0.1, "system_s": 0.1}, "versions": {},
        "backend": {"kind": "null", "version": "1", "effective": {}, "status": {}},
    }  # fmt: skip
    jsonschema.validate(whole, json.loads((SCHEMA / "result.schema.json").read_text()))
    return {"result.json": json.dumps({**whole, **changes})}


FAILED = {"count": 90, "errors": {"busy": 10}, "throughput_per_s": 90.0, "latency_us": None}
NOTHING = {"count": 0, "errors": {}, "throughput_per_s": 0.0, "latency_us": None}


@pytest.mark.parametrize(
    ("files", "status", "error", "message"),
    [
        ({}, 3, RunError, "ended with status 3 without a result: disk quota exceeded"),
        ({}, -9, RunError, "was ended by signal 9 without a result"),
        ({"result.json": "{"}, 0, RunError, "cannot be read"),
        (result(format=2), 0, RunError, "wrote format 2, this dyno reads 1"),
        (result(outcome="failed", error={"kind": "io", "message": "disk gone"}), 1, RunError, "io: disk gone"),
        (
            result(operations={"read": FAILED}, total=FAILED),
            0,
            InvalidRun,
            r"10 of 100 operations failed \(read busy: 10\)",
        ),
        (result(operations={"read": NOTHING}, total=NOTHING), 0, InvalidRun, "without a single successful operation"),
    ],
)
def test_a_driver_that_did_not_do_what_was_asked_is_an_error_that_says_so(
    files: dict[str, str], status: int, error: type[Exception], message: str, tmp_path: Path
) -> None:
    job = core_driver.job(Endpoint("null"), {"kind": "null"}, phase="run", clients=1, seed=1, operations=100)
    with pytest.raises(error, match=message):
        core_driver.drive(Saying(tmp_path / "drive", files, status), job, max_errors=0.0)


def test_errors_up_to_the_bound_are_counted_by_kind(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result(operations={"read": FAILED}, total=FAILED))
    job = core_driver.job(Endpoint("null"), {"kind": "null"}, phase="run", clients=1, seed=1, operations=100)
    assert core_driver.drive(runner, job, max_errors=0.1).errors == {"read": {"busy": 10}}
