"""What every workload must do, on every system that it can drive."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from dyno import sql
from dyno.model import responses
from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.systems.base import Place
from dyno.workloads import core as core_driver
from dyno.workloads.base import INTERVAL_COLUMNS, Checked, Measured, Workload, rates
from dyno.workloads.driving import DrivingOptions, drive
from tests.contract.conftest import LIMIT_S, PlainRunner
from tests.contract.test_systems import LEAST, ROOMS, SINGLE, SMALL, options_of

# YCSB's JDBC binding is in no package registry: on servers that adapter is tried by who has a distribution.
NOT_HERE = {("ycsb-java", "mariadb"), ("ycsb-java", "mysql"), ("ycsb-java", "postgresql")}
PAIRS = [
    (workload, system)
    for workload, kind in sorted(ROOMS.workloads.items())
    for system, other in sorted(SINGLE.items())
    if other.backend in kind.backends and (workload, system) not in NOT_HERE
]
FOREIGN = {"fio", "sysbench", "go-ycsb", "ycsb-java", "queries"}
SCHEMA = Path(__file__).parents[2] / "schema"
Runners = Callable[[], PlainRunner]


def make(name: str, **options: Any) -> Workload[Any]:
    kind = ROOMS.workloads[name]
    return kind(options_of(kind, {**SMALL.get(name, {}), **options}))


def carry_out(workload: Workload[Any], system_kind: str, place: Place, runners: Runners) -> Measured:
    measured, _ = carry_out_and_check(workload, system_kind, place, runners)
    return measured


def carry_out_and_check(
    workload: Workload[Any],
    system_kind: str,
    place: Place,
    runners: Runners,
    between: Callable[[Endpoint], None] = print,
) -> tuple[Measured, Checked]:
    """`between` is done to the store after it was driven and before it is looked at."""
    kind = ROOMS.systems[system_kind]
    least = LEAST.get(system_kind, {})
    by_tcp = {"connect": "tcp"} if least and "connect" in kind.Options.model_fields else {}
    system = kind(options_of(kind, {**least, **by_tcp}), place)
    system.provision(LIMIT_S)
    workload.provision(place.host, place.logs, LIMIT_S)
    system.prepare(LIMIT_S)
    system.start(1, LIMIT_S)
    try:
        endpoint = system.ready(LIMIT_S)
        workload.load(runners(), endpoint, seed=1)
        endpoint = system.ready(LIMIT_S)
        workload.populate(runners(), endpoint, seed=1)
        runner = runners()
        measured = workload.drive(runner, endpoint, seed=1)
        between(endpoint)
        checked = workload.check(runner, endpoint, seed=1)
    finally:
        system.stop(LIMIT_S)
        if system_kind == "recorded-filesystem":
            system.destroy()  # its disk is a process, which lasts as long as it does
    return measured, checked


@pytest.fixture(scope="session")
def ycsb_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A YCSB distribution as far as Maven Central has one: the core with what it needs, without any binding."""
    home = tmp_path_factory.mktemp("ycsb")
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("YCSB itself comes by Maven: apt-get install maven default-jre-headless")
    (home / "pom.xml").write_text(POM)
    words = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
    answer = subprocess.run(words, cwd=home, capture_output=True, text=True, timeout=250, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return home


@pytest.fixture(autouse=True)
def tools_of_others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test needs of other people's tools, where its workload is one of theirs."""
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    if name == "ycsb-java" and "system" in request.node.callspec.params:
        monkeypatch.setenv("YCSB_HOME", str(request.getfixturevalue("ycsb_distribution")))


POM = """
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dyno</groupId><artifactId>ycsb</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>site.ycsb</groupId><artifactId>core</artifactId><version>0.17.0</version></dependency>
  </dependencies>
</project>
"""


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
def test_driving_gives_what_a_run_is_kept_by(name: str, system: str, place: Place, runners: Runners) -> None:
    # One test and not one a fact: each would start a server of its own.
    measured, checked = carry_out_and_check(make(name), system, place, runners)
    assert measured.complete
    assert measured.responses["throughput"] > 0
    assert all(math.isfinite(value) for value in measured.responses.values())
    assert all(responses.lookup(each) for each in measured.responses)
    assert measured.loop in ("closed", "open")
    assert measured.errors == {}
    json.dumps([measured.settings, measured.status, measured.versions, measured.job])
    assert checked.wrong is None
    assert all(math.isfinite(value) for value in checked.status.values())
    if measured.job:
        jsonschema.validate(measured.job, json.loads((SCHEMA / "job.schema.json").read_text()))
    if measured.intervals is None:
        assert measured.measured_from_ns is None, "a driver that says when it measured says what"
        return
    assert dict(measured.intervals.schema) == INTERVAL_COLUMNS
    assert measured.measured_from_ns is not None
    assert measured.measured_to_ns is not None
    main = measured.intervals.filter(pl.col("warmup").not_())
    assert (main["start_ns"] >= measured.measured_from_ns).all()
    assert (main["end_ns"] > main["start_ns"]).all()
    if name not in FOREIGN:  # tools of others, and what keeps each answer, have no histogram of dyno-core's
        assert measured.histogram_log is not None
        assert measured.histogram_log.stat().st_size > 0


SHORT_INTERVALS = {"operations": 10**9, "duration": "400 ms", "interval": "20 ms", "max_errors": "50%"}


@pytest.mark.parametrize(
    ("name", "system", "options"),
    [
        ("ycsb", "sqlite", {}),
        ("ycsb", "null", {"threads": 2, "drivers": 2}),
        ("tpcc", "sqlite", {}),
        ("ledger", "sqlite", {}),
    ],
)
def test_a_part_of_what_was_driven_has_the_figures_of_its_own_intervals(
    name: str, system: str, options: dict[str, Any], place: Place, runners: Runners
) -> None:
    workload = make(name, **SHORT_INTERVALS, **options)
    assert workload.cuts()
    assert not make(name, **SHORT_INTERVALS, warmup_detect=False).cuts()
    used: list[PlainRunner] = []

    def kept() -> PlainRunner:
        used.append(runners())
        return used[-1]

    whole = carry_out(workload, system, place, kept)
    part = workload.cut(used[-1], whole, 8)
    assert whole.intervals is not None
    assert part.intervals is not None
    assert part.measured_from_ns is not None
    assert part.measured_from_ns - (whole.measured_from_ns or 0) == 8 * 20_000_000
    assert part.responses["elapsed"] == pytest.approx(0.24)
    # A kind of operation that is rare may not be in it, and then has no latency.
    assert part.responses.keys() <= whole.responses.keys()
    main = part.intervals.filter(pl.col("warmup").not_())
    assert main["start_ns"].min() == part.measured_from_ns
    assert main["count"].sum() == whole.intervals.filter(pl.col("start_ns") >= part.measured_from_ns)["count"].sum()
    in_time, seconds = rates(part)[0], 0.02
    # An operation that ended within the last moment may stand in the interval after it.
    assert part.responses["throughput"] * 0.24 == pytest.approx(sum(in_time) * seconds, rel=0.02, abs=2)
    assert part.responses["cpu_per_op"] > 0
    assert (part.job, part.notes, part.settings) == (whole.job, whole.notes, whole.settings)


@pytest.mark.parametrize("name", ["ycsb", "tpcc", "ledger"])
def test_what_an_operation_writes_is_told_of_each_that_is_done(name: str, place: Place, runners: Runners) -> None:
    workload = make(name)
    measured = carry_out(workload, "sqlite", place, runners)
    assert measured.intervals is not None
    done = set(measured.intervals.filter(pl.col("count") > 0)["operation"])
    assert done
    assert done <= workload.written().keys()


def test_bytes_that_a_mix_wrote_are_those_that_are_in_the_store_afterwards(place: Place, runners: Runners) -> None:
    """Rows that are only inserted: each takes its values' room at least once, in pages that hold little besides."""
    workload = make("ycsb", mix=None, proportions={"insert": "100%"}, records=1, operations=2000, field_length="500 B")
    kept: list[int] = []
    measured, _ = carry_out_and_check(
        workload, "sqlite", place, runners, between=lambda _: kept.append(_bytes_below(place.data))
    )
    assert measured.intervals is not None
    count = measured.intervals.filter(pl.col("operation") == "insert")["count"].sum()
    wrote = count * workload.written()["insert"]
    assert wrote == 2000 * 10 * 500
    assert wrote <= kept[0] < 1.5 * wrote


def _bytes_below(folder: Path) -> int:
    """Of the store itself: its journal has pages of it a second time."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".db-wal")


# ---- YCSB alone


@pytest.mark.parametrize("mix", "abcdef")
def test_every_core_workload_does_the_operations_that_were_asked(mix: str, place: Place, runners: Runners) -> None:
    workload = make("ycsb", mix=mix, operations=400, threads=2)
    measured = carry_out(workload, "sqlite", place, runners)
    assert measured.intervals is not None
    assert measured.intervals.filter(pl.col("warmup").not_())["count"].sum() == 400
    asked = measured.job["workload"]["proportions"]
    assert {name.partition(".")[0] for name in measured.responses if name.endswith(".throughput")} <= asked.keys()


@pytest.mark.parametrize(
    "options",
    [
        {"key_chooser": "clustered-zipfian", "theta": 0.7},
        {"key_chooser": "ycsb-zipfian"},
        {"key_chooser": "hotspot", "hotspot_keys": "10%", "hotspot_operations": "90%"},
        {"key_chooser": "exponential", "exponential_percentile": "90%", "exponential_keys": "50%"},
        {"key_chooser": "sequential", "data_integrity": True},
        {"think_time": "1 ms"},
        {"rate": 2000.0, "arrivals": "poisson", "min_rate_reached": "1%"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_the_driver_takes_each_option(options: dict[str, Any], place: Place, runners: Runners) -> None:
    measured = carry_out(make("ycsb", operations=200, threads=2, **options), "sqlite", place, runners)
    assert measured.complete
    assert measured.loop == ("open" if "rate" in options else "closed")
    assert measured.rate_per_s == options.get("rate")
    assert measured.job["workload"]["key_chooser"] == options.get("key_chooser", "zipfian")
    jsonschema.validate(measured.job, json.loads((SCHEMA / "job.schema.json").read_text()))


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
        ({"rate": 100.0, "think_time": "1 ms"}, "think_time is of a closed loop"),
        ({"arrivals": "poisson"}, "arrivals is of an open loop alone"),
        ({"min_rate_reached": "90%"}, "min_rate_reached is of an open loop alone"),
        ({"data_integrity": True, "field_length": "15 B"}, "data_integrity needs a field_length of at least 16 B"),
        ({"hotspot_keys": "10%"}, "hotspot_keys is of key_chooser hotspot alone, and keys are chosen by zipfian"),
        ({"exponential_keys": "10%", "key_chooser": "hotspot"}, "exponential_keys is of key_chooser exponential alone"),
        ({"key_chooser": "ycsb-zipfian", "theta": 0.5}, "theta of ycsb-zipfian is 0.99"),
        ({"drivers": 3, "threads": 2}, "3 drivers share 2 threads"),
        ({"drivers": 3, "threads": 1}, "3 drivers share 1 thread,"),
        ({"theta": 0.5, "key_chooser": "uniform"}, "theta is of key_chooser zipfian.* keys are chosen by uniform"),
        ({"max_scan_length": 7}, "max_scan_length is of scans"),
        ({"drivers": 3, "threads": 4, "operations": 2}, "3 drivers share 2 operations"),
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
        self.commands = []
        self._files = files
        self._status = status

    def execute(self, argv: Any, *, kept_as: str | None = None) -> int:
        self.commands.append(tuple(argv))
        out = Path(argv[argv.index("--out") + 1])
        out.mkdir()
        for name, text in self._files.items():
            (out / name).write_text(text)
        return self._status

    def execute_all(self, argvs: Any) -> list[int]:
        return [self.execute(argv) for argv in argvs]


def figures(count: int, errors: dict[str, int] | None = None) -> dict[str, Any]:
    times = {"latency_us": None, "service_us": None, "failed_us": None}
    return {"count": count, "errors": errors or {}, "throughput_per_s": float(count), **times}


def result(**changes: Any) -> dict[str, str]:
    whole = {
        "format": 1, "outcome": "ok", "ended_by": "operations", "error": None, "phase": "run", "loop": "closed",
        "open": None, "clients": 1, "drivers": 1, "driver": {"number": 0, "of": 1}, "seed": 1,
        "workload": {"kind": "null"}, "reconnects": 0, "checks": [], "ledger": None, "started_ns": 1,
        "measured_from_ns": 1, "ended_ns": 2, "elapsed_s": 1.0,
        "warmup": {"operations": 0, "errors": {}, "elapsed_s": 0.0}, "operations": {"read": figures(90)},
        "total": figures(90), "cpu": {"user_s": 0.1, "system_s": 0.1}, "versions": {},
        "backend": {"kind": "null", "version": "1", "effective": {}, "status": {}},
    }  # fmt: skip
    written = {**whole, **changes}
    if written["format"] == 1:
        jsonschema.validate(written, json.loads((SCHEMA / "result.schema.json").read_text()))
    return {"result.json": json.dumps(written)}


FAILED = figures(90, {"busy": 10})
NOTHING = figures(0)
QUANTILES = {"min": 1.0, "mean": 2.0, "p50": 2.0, "p90": 3.0, "p95": 3.0, "p99": 4000.0, "p999": 4.0, "max": 5000.0}
OPEN = {
    "rate_per_s": 50.0,
    "arrivals": "constant",
    "due": 100,
    "sent_late": 0,
    "unsent": 10,
    "share_sent": 0.9,
    "lag_us": QUANTILES,
}


@pytest.mark.parametrize(
    ("files", "status", "error", "message"),
    [
        ({}, 3, RunError, "ended with status 3 without a result: disk quota exceeded"),
        ({}, -9, RunError, "was ended by signal 9 without a result"),
        ({"result.json": "{"}, 0, RunError, "cannot be read"),
        (result(format=2), 0, RunError, "wrote format 2, this dyno reads 1"),
        (result(outcome="failed", error={"kind": "io", "message": "disk gone"}), 1, RunError, "io: disk gone"),
        (
            result(
                outcome="failed", error={"kind": "rate_not_reached", "message": "90 of 100"}, loop="open", open=OPEN
            ),
            1,
            InvalidRun,
            "the rate was not reached: 90 of 100",
        ),
        (
            result(
                outcome="failed",
                error={"kind": "operations_failed", "message": "10 of 10 operations failed (none succeeded)"},
            ),
            1,
            InvalidRun,
            "^10 of 10 operations failed",
        ),
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


FIRST = '{"at_ns": 1, "operation": "read", "kind": "wrong_value", "message": "row user7, field 3"}\n'


def test_the_first_error_is_in_the_cause_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    # That so many values were wrong was said, of which row and field was not, and the figures were thrown away.
    files = result(operations={"read": FAILED}, total=FAILED)
    runner = Saying(tmp_path / "drive", {**files, "errors.jsonl": FIRST, "latency.hlog": "x", "acknowledged-0-0": "1"})
    job = core_driver.job(Endpoint("null"), {"kind": "null"}, phase="run", clients=1, seed=1, operations=100)
    with pytest.raises(InvalidRun, match=r"allowed is 0%; the first: read: row user7, field 3$"):
        core_driver.drive(runner, job, max_errors=0.0)
    assert runner.measured is not None
    assert runner.measured.histogram_log is not None
    assert (runner.logs / "errors.jsonl").read_text() == FIRST
    assert (runner.logs / "acknowledged-0-0").read_text() == "1"


def test_a_server_that_is_gone_is_named_before_the_rate_that_was_missed(tmp_path: Path) -> None:
    dead = figures(90, {"busy": 1, "connection_lost": 2})
    missed = {"kind": "rate_not_reached", "message": "90 of 100"}
    files = result(
        outcome="failed", error=missed, loop="open", open=OPEN, operations={"read": dead}, total=dead,
    )  # fmt: skip
    job = core_driver.job(Endpoint("null"), {"kind": "null"}, phase="run", clients=1, seed=1, operations=100)
    with pytest.raises(InvalidRun) as caught:
        core_driver.drive(Saying(tmp_path / "drive", {**files, "errors.jsonl": FIRST}, 1), job, max_errors=0.0)
    assert str(caught.value) == (
        "3 operations failed (read connection_lost: 2, read busy: 1); the first: read: row user7, field 3; "
        "so the rate was not reached: 90 of 100"
    )


def test_a_load_that_fails_says_what_failed_first(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", {**result(operations={"read": FAILED}, total=FAILED), "errors.jsonl": FIRST})
    job = core_driver.job(Endpoint("null"), {"kind": "null"}, phase="load", clients=1, seed=1)
    with pytest.raises(
        RunError, match=r"10 operations of the load failed \(read busy: 10\); the first: read: row user7"
    ):
        core_driver.load(runner, job)


@pytest.mark.parametrize("line", ["", '{"operation": "re', "[]"])
def test_an_error_that_cannot_be_read_is_left_out_of_the_cause(line: str, tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", {**result(operations={"read": FAILED}, total=FAILED), "errors.jsonl": line})
    job = core_driver.job(Endpoint("null"), {"kind": "null"}, phase="run", clients=1, seed=1, operations=100)
    with pytest.raises(InvalidRun, match=r"allowed is 0%$"):
        core_driver.drive(runner, job, max_errors=0.0)


def test_errors_up_to_the_bound_are_counted_by_kind(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result(operations={"read": FAILED}, total=FAILED))
    job = core_driver.job(Endpoint("null"), {"kind": "null"}, phase="run", clients=1, seed=1, operations=100)
    assert core_driver.drive(runner, job, max_errors=0.1).errors == {"read": {"busy": 10}}


def test_how_many_may_fail_is_the_studys_to_say_and_not_the_drivers() -> None:
    of = {
        phase: core_driver.job(Endpoint("null"), {"kind": "null"}, phase=phase, clients=1, seed=1)
        for phase in ("load", "run", "check")
    }
    assert of["run"]["max_share_failed"] == 1.0
    assert "max_share_failed" not in {**of["load"], **of["check"]}


# ---- open loops, several drivers, checks


def test_an_open_loop_has_service_times_and_what_was_late(tmp_path: Path) -> None:
    timed = {**figures(90), "latency_us": QUANTILES, "service_us": QUANTILES}
    runner = Saying(tmp_path / "drive", result(loop="open", open=OPEN, total=timed))
    measured = drive(runner, Endpoint("null"), {"kind": "null"}, driven(rate=50, operations=100), 1)
    assert (measured.loop, measured.rate_per_s) == ("open", 50)
    told = {name: measured.responses[name] for name in ("service_p99", "lag_p99", "lag_max", "unsent", "share_sent")}
    assert told == {"service_p99": 4.0, "lag_p99": 4.0, "lag_max": 5.0, "unsent": 10.0, "share_sent": 0.9}


@pytest.mark.parametrize(
    ("unsent", "known"),
    [
        (0, {"mean", "p50", "p90", "p95", "p99", "p999", "max"}),
        (1, {"p50", "p90", "p95", "p99", "p999"}),
        (20, {"p50", "p90", "p95", "p99", "p999"}),
        (21, {"p50", "p90", "p95", "p99"}),
        (132, {"p50", "p90", "p95", "p99"}),
        (1001, {"p50", "p90"}),
    ],
)
def test_what_was_never_sent_leaves_no_quantile_known_above_the_share_that_was(
    unsent: int, known: set[str], tmp_path: Path
) -> None:
    """A server stood still at the end: 132 of 20,000 requests were left waiting, and p99.9 was told as 8 ms."""
    timed = {**figures(90), "latency_us": QUANTILES, "service_us": QUANTILES}
    late = {**OPEN, "due": 20_000, "unsent": unsent, "share_sent": (20_000 - unsent) / 20_000}
    runner = Saying(tmp_path / "drive", result(loop="open", open=late, total=timed, operations={"read": timed}))
    measured = make("ycsb", rate=50, operations=100).drive(runner, Endpoint("null"), 1)
    for prefix in ("", "read."):
        told = {name.rpartition("_")[2] for name in measured.responses if name.startswith(f"{prefix}latency_")}
        assert told == known
        assert f"{prefix}service_max" in measured.responses
        assert {name for name in measured.withheld if name.startswith(f"{prefix}latency_")} == {
            f"{prefix}latency_{name}" for name in QUANTILES.keys() - {"min"} - known
        }
    assert all(f"{unsent} of 20000 requests" in why for why in measured.withheld.values())
    notes = [note for note in measured.notes if "never sent" in note]
    assert len(notes) == bool(unsent)
    assert all(f"latency_{name}" in note for note in notes for name in {"mean", "max", "p999"} - known)


def driven(**options: Any) -> DrivingOptions:
    return DrivingOptions.model_validate(options)


def jobs_of(runner: PlainRunner) -> list[dict[str, Any]]:
    drives = [words for words in runner.commands if words[1] == "drive"]
    jobs = [json.loads(Path(words[words.index("--job") + 1]).read_text()) for words in drives]
    for job in jobs:
        jsonschema.validate(job, json.loads((SCHEMA / "job.schema.json").read_text()))
    return jobs


def test_drivers_share_out_threads_rate_and_operations_and_start_together(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result(loop="open", open=OPEN))
    given = driven(drivers=3, threads=8, rate=1000, operations=100, warmup_operations=10, arrivals="poisson")
    drive(runner, Endpoint("null"), {"kind": "null"}, given, 7)
    jobs = jobs_of(runner)
    assert [job["clients"] for job in jobs] == [3, 3, 2]
    assert [job["loop"]["rate_per_s"] for job in jobs] == [375, 375, 250]
    assert [job["operations"] for job in jobs] == [34, 33, 33]
    assert [job["warmup_operations"] for job in jobs] == [4, 3, 3]
    assert [job["driver"] for job in jobs] == [{"number": number, "of": 3} for number in range(3)]
    assert len({job["start_at_ns"] for job in jobs}) == 1
    assert {job["seed"] for job in jobs} == {7}
    merge = runner.commands[-1]
    assert merge[1] == "merge"
    assert [Path(word).name for word in merge[2:]] == ["--out", "merged", "run-0", "run-1", "run-2"]


def test_time_limits_are_the_drivers_to_keep(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result())
    server = Endpoint("mysql", {"socket": "/s", "user": "u", "database": "d"})
    given = driven(operations=1, limits={"connect": "1 s", "read": "500 ms"})
    drive(runner, server, {"kind": "null"}, given, 1)
    (job,) = jobs_of(runner)
    assert job["backend"]["limits"] == {"connect_s": 1.0, "read_s": 0.5, "write_s": 30.0}


CHECKED = [
    {"name": "condition 1", "holds": True, "detail": "10 compared"},
    {"name": "condition 2", "holds": False, "detail": "district 3 of warehouse 1: 3001 and 3002"},
]
LEDGER = {
    "acknowledged": 100, "present": 99, "lost": 2, "phantom": 1, "foreign": 0, "duplicated": 0, "altered": 0,
    "examples": {"lost": ["0/1/17", "0/2/5"]},
}  # fmt: skip


def test_a_condition_that_does_not_hold_is_wrong(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result(phase="check", checks=CHECKED))
    checked = make("tpcc").check(runner, Endpoint("sqlite", {"path": "x", "config": {}}), 1)
    assert checked.wrong == "condition 2 does not hold: district 3 of warehouse 1: 3001 and 3002"
    assert [job["phase"] for job in jobs_of(runner)] == ["check"]


def test_lost_rows_are_wrong_and_counted(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result(phase="check", ledger=LEDGER))
    checked = make("ledger", drivers=2, threads=2).check(runner, Endpoint("sqlite", {"path": "x", "config": {}}), 1)
    assert checked.wrong == "2 rows lost (acknowledged and absent; such as 0/1/17, 0/2/5)"
    assert checked.status["ledger.lost"] == 2
    assert checked.status["ledger.phantom"] == 1
    (job,) = jobs_of(runner)
    assert [Path(folder).name for folder in job["workload"]["acknowledged"]] == ["run-0", "run-1"]


def test_rows_that_were_never_acknowledged_may_be_there(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result(phase="check", ledger={**LEDGER, "lost": 0}))
    assert make("ledger").check(runner, Endpoint("sqlite", {"path": "x", "config": {}}), 1).wrong is None


def test_new_orders_are_counted_by_the_minute(tmp_path: Path) -> None:
    runner = Saying(tmp_path / "drive", result(operations={"new_order": figures(45)}, total=figures(90)))
    measured = drive(runner, Endpoint("null"), {"kind": "null"}, driven(operations=1), 1)
    assert measured.responses["new_orders_per_min"] == 45 * 60


@pytest.mark.parametrize("system", ["mariadb", "postgresql"])
def test_rows_that_went_missing_from_a_real_server_are_found(system: str, place: Place, runners: Runners) -> None:
    def lose(endpoint: Endpoint) -> None:
        table = "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('dyno', 'public')"
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            ((name,),) = connection.rows(table)
            connection.rows(f"DELETE FROM {name}")

    _, checked = carry_out_and_check(make("ledger", operations=50), system, place, runners, lose)
    assert checked.status["ledger.lost"] == 50
    assert checked.wrong is not None
    assert checked.wrong.startswith("50 rows lost")


@pytest.mark.parametrize("system", ["mariadb", "postgresql"])
def test_go_ycsb_writes_every_row_that_dyno_loaded_with_keys_in_their_order(
    system: str, place: Place, runners: Runners
) -> None:
    # Of each driver the key is its own to write, and an update that finds none is a success to go-ycsb.
    options = {"records": 20, "operations": 600, "threads": 2, "key_chooser": "uniform", "write_all_fields": True}
    workload = make(
        "ycsb", driver="go-ycsb", mix=None, proportions={"update": "100%"}, insert_order="ordered", **options
    )
    loaded: list[Any] = []
    load = workload.load

    def rows(endpoint: Endpoint) -> list[Any]:
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            return [tuple(row) for row in connection.rows("SELECT ycsb_key, field0 FROM usertable ORDER BY ycsb_key")]

    def load_and_look(runner: Any, endpoint: Endpoint, seed: int) -> None:
        load(runner, endpoint, seed)
        loaded.extend(rows(endpoint))

    workload.load = load_and_look  # type: ignore[method-assign]
    written: list[Any] = []
    measured, checked = carry_out_and_check(
        workload, system, place, runners, between=lambda endpoint: written.extend(rows(endpoint))
    )
    assert measured.responses["update.throughput"] > 0
    assert checked == Checked()
    assert [key for key, _ in written] == [key for key, _ in loaded]
    assert not set(written) & set(loaded)


def test_go_ycsb_is_ended_by_time_and_loads_hashed_keys_itself(place: Place, runners: Runners) -> None:
    options = {"mix": "a", "key_chooser": "ycsb-zipfian", "records": 200, "duration": "500 ms", "operations": None}
    measured, checked = carry_out_and_check(make("ycsb", driver="go-ycsb", **options), "mariadb", place, runners)
    assert (measured.ended_by, measured.errors, checked) == ("duration", {}, Checked())
    assert 0 < measured.responses["elapsed"] < 5
