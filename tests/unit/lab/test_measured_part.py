"""Planted courses of a run go through the whole lab: what is left out, what is not, and what is said of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from dyno.analysis import analyse
from dyno.hosts.local import core_binary
from dyno.model.run import Outcome, RunRecord, Step
from dyno.report import to_csv, to_json
from dyno.store import Results
from tests.making import make_study
from tests.unit.lab import planted_driver
from tests.unit.lab.laboratory import Laboratory, giving, measured

LENGTH = 120
WARM = 40  # intervals after which nothing of the warm-up is left
T = np.arange(LENGTH)
RISING = 1000 * (1 - 0.6 * np.exp(-T / 8))
SLOW_US, QUICK_US = 5000, 1000
Plan = list[list[Any]]
Plant = Callable[[Sequence[float]], Laboratory]


def plan_of(rates: Sequence[float]) -> Plan:
    """Intervals of 100 ms with noise of 2 %; while it is slow it fails at times and costs more CPU time."""
    random = np.random.default_rng(1)
    counts = [round(float(rate) / 10 * (1 + 0.02 * random.standard_normal())) for rate in rates]
    slow = [rate < 0.9 * max(rates) for rate in rates]
    return [
        [count, SLOW_US if it_is else QUICK_US, int(it_is), 0.02 if it_is else 0.01]
        for count, it_is in zip(counts, slow, strict=True)
    ]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """A laboratory whose driver has done what is planted."""

    def make(rates: Sequence[float]) -> Laboratory:
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps(plan_of(rates)))
        core = tmp_path / "dyno-core"
        core.write_text(f'#!/bin/sh\nexec {sys.executable} {planted_driver.__file__} {core_binary()} {plan} "$@"\n')
        core.chmod(0o755)
        return Laboratory(tmp_path, core=str(core))

    return make


def carry_out(laboratory: Laboratory, *, caches: str = "warm", **options: Any) -> Results:
    study = make_study(
        {},
        system="null",
        workload="ycsb",
        workload_options={"mix": "c", "operations": 10**6, "interval": "100 ms", "max_errors": "50%", **options},
        caches=caches,
    )
    results = laboratory.run(study)[1]
    assert [record.outcome for record in results.runs] == [Outcome.OK] * 2, results.runs[0].cause
    return results


def figures(plan: Plan) -> dict[str, float]:
    """A part's responses, from what was planted alone."""
    counts, latencies = [each[0] for each in plan], [each[1] / 1000 for each in plan]
    ordered = np.sort(np.repeat(latencies, counts))
    return {
        "throughput": sum(counts) / (len(plan) / 10),
        "elapsed": len(plan) / 10,
        "latency_mean": float(np.average(latencies, weights=counts)),
        "latency_p50": float(ordered[len(ordered) // 2]),
        "latency_p99": float(ordered[int(0.99 * len(ordered))]),
        "latency_max": max(latencies),
        "cpu_per_op": sum(each[3] for each in plan) * 1e6 / sum(counts),
    }


def assert_figures(record: RunRecord, plan: Plan) -> None:
    for name, value in figures(plan).items():
        # Histograms keep three digits.
        assert record.responses[name] == pytest.approx(value, rel=1e-3), name
    assert record.responses["throughput"] == pytest.approx(figures(plan)["throughput"], rel=1e-9)
    assert record.responses["read.throughput"] == record.responses["throughput"]


@pytest.mark.parametrize("drivers", [1, 2])
def test_a_warm_up_that_is_found_is_in_no_response_and_the_rest_is_exact(plant: Plant, drivers: int) -> None:
    results = carry_out(plant(RISING), threads=drivers, drivers=drivers)
    record = results.runs[0]
    part = record.measured
    assert part is not None
    assert part.course == "warm-up then steady"
    assert 0.8 <= part.from_s <= WARM / 10
    first = round(part.from_s * 10)
    plan = [[drivers * count, us, failed, drivers * cpu] for count, us, failed, cpu in plan_of(RISING)]
    assert_figures(record, plan[first:])
    assert (part.to_s, part.intervals, part.steady_from_s) == (LENGTH / 10, LENGTH - first, part.from_s)
    assert part.seconds == pytest.approx(LENGTH / 10 - part.from_s)
    assert part.change_points
    assert part.within is not None
    assert part.within.lo < 1000 * drivers < part.within.hi
    assert record.measured_to_ns - record.measured_from_ns == pytest.approx(part.seconds * 1e9, abs=1000)
    left_out = drivers * sum(each[2] for each in plan[:first])
    assert record.errors == {"warmup": {"busy": left_out}} | (
        {"read": {"busy": kept}} if (kept := drivers * sum(each[2] for each in plan[first:])) else {}
    )


def test_what_is_left_out_is_kept_as_warm_up(plant: Plant) -> None:
    results = carry_out(plant(RISING))
    record = results.runs[0]
    first = round(record.measured.from_s * 10)
    plan = plan_of(RISING)
    warm = results.intervals(1).sort("start_ns").group_by("warmup", maintain_order=True).agg(pl.col("count"))
    counts = [each[0] for each in plan]
    assert warm.rows() == [(True, counts[:first]), (False, counts[first:])]
    log = results.folder / "runs" / "0001" / "latency.hlog"
    reader = HistogramLogReader(str(log), HdrHistogram(1, planted_driver.HOUR_NS, 3))
    totals = {"read.warmup": 0, "read": 0}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        totals[histogram.get_tag()] += histogram.get_total_count()
    reader.close()
    assert totals == {"read.warmup": sum(counts[:first]), "read": sum(counts[first:])}
    assert any("cut" in command for command in record.commands)


@pytest.mark.parametrize("asked", [{"caches": "cold"}, {"warmup_detect": False}], ids=str)
def test_nothing_is_left_out_of_a_cold_run_nor_where_that_is_not_wanted(plant: Plant, asked: dict[str, Any]) -> None:
    results = carry_out(plant(RISING), **asked)
    record = results.runs[0]
    assert record.measured.course == "warm-up then steady"
    assert (record.measured.from_s, record.measured.seconds) == (0, LENGTH / 10)
    assert record.measured.steady_from_s > 0
    assert record.measured.change_points
    assert record.measured.within is None
    assert_figures(record, plan_of(RISING))
    assert not results.intervals(1)["warmup"].any()
    said = " ".join(notes_of(results))
    assert ("in 2 of 2 runs, which were cold" in said) == ("caches" in asked)
    assert ("A warm-up was found and stays in the figures of 2 of 2 runs" in said) == ("warmup_detect" in asked)


def notes_of(results: Results) -> Sequence[str]:
    return analyse(results.study, results.runs, ended=results.ended).notes


def test_how_many_runs_were_cut_is_said_with_the_median_and_the_most(plant: Plant) -> None:
    results = carry_out(plant(RISING))
    from_s = results.runs[0].measured.from_s
    (said,) = [note for note in notes_of(results) if "left out" in note]
    assert said.startswith("A warm-up was found and left out in 2 of 2 runs: ")
    assert said.count(f"{from_s:g} s") == 2


COURSES = {
    "slowing down": np.linspace(1000, 500, LENGTH),
    "none": np.where((T > 105) | (T < 20), 300, 1000),
}


@pytest.mark.parametrize("course", sorted(COURSES))
def test_a_run_without_a_steady_state_stays_whole_and_is_said_everywhere(plant: Plant, course: str) -> None:
    results = carry_out(plant(COURSES[course]))
    assert [record.measured.course for record in results.runs] == [course] * 2
    assert_figures(results.runs[0], plan_of(COURSES[course]))
    findings = analyse(results.study, results.runs, ended=results.ended)
    assert {(cell.n, cell.unsteady) for cell in findings.cells} == {(2, 2)}
    said = "no steady state in 2 of 2 runs"
    assert {cell["remark"] for cell in json.loads(to_json(findings))["cells"]} == {said}
    assert "unsteady" in to_csv(findings).splitlines()[0]
    (note,) = [note for note in findings.notes if note.startswith("No steady state")]
    assert ("(2 slowing down)" in note) == (course == "slowing down")


def test_a_run_that_is_steady_from_the_start_is_not_touched(plant: Plant) -> None:
    results = carry_out(plant(np.full(LENGTH, 1000)))
    assert [(record.measured.course, record.measured.from_s) for record in results.runs] == [("steady", 0)] * 2
    assert_figures(results.runs[0], plan_of(np.full(LENGTH, 1000)))
    assert not any(cell.remark for cell in analyse(results.study, results.runs, ended=None).cells)


def test_runs_that_are_too_short_to_tell_say_so_once(plant: Plant) -> None:
    results = carry_out(plant(RISING[:8]))
    assert results.runs[0].measured.course is None
    assert "too short" in results.runs[0].measured.reason
    assert sum("cannot be told of 2 of 2 runs" in note for note in notes_of(results)) == 1


def test_a_cut_that_fails_fails_the_run(plant: Plant, tmp_path: Path) -> None:
    laboratory = plant(RISING)
    core = Path(laboratory.core)
    refusing = '#!/bin/sh\nif [ "$1" = cut ]; then echo no room >&2; exit 2; fi\n'
    core.write_text(refusing + core.read_text().removeprefix("#!/bin/sh\n"))
    study = make_study({}, system="null", workload="ycsb", retries=0, workload_options=OPTIONS)
    record = laboratory.records(study)[0]
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.CHECK)
    assert "dyno-core cut ended with status 2: no room" in record.cause


OPTIONS = {"mix": "c", "operations": 10**6, "interval": "100 ms", "max_errors": "50%"}


def test_a_driver_without_histograms_is_classified_and_never_cut(tmp_path: Path) -> None:
    rows = {
        "start_ns": (T * 10**9).tolist(),
        "end_ns": ((T + 1) * 10**9).tolist(),
        "warmup": [False] * LENGTH,
        "operation": ["read"] * LENGTH,
        "count": [each[0] for each in plan_of(RISING)],
    }
    found = measured(77.0, intervals=pl.DataFrame(rows), measured_from_ns=0, measured_to_ns=LENGTH * 10**9)
    laboratory = Laboratory(tmp_path, faults={"workload.drive": giving(found)})
    record = laboratory.records(make_study({}, system="tried"))[0]
    assert record.outcome is Outcome.OK
    assert (record.measured.course, record.measured.from_s) == ("warm-up then steady", 0)
    assert record.responses["throughput"] == 77.0


def test_what_observers_say_is_of_the_part_that_counts(plant: Plant) -> None:
    laboratory = plant(RISING)
    laboratory.faults["one.responses"] = lambda _samples, from_ns, to_ns: {"cpu.util": (to_ns - from_ns) / 1e9}
    study = make_study({}, system="null", workload="ycsb", observe=("one",), workload_options=OPTIONS)
    record = laboratory.records(study)[0]
    assert record.measured.from_s > 0
    assert record.responses["cpu.util"] == pytest.approx(record.measured.seconds, abs=1e-6)


def test_a_run_of_whose_part_the_deciding_response_is_not_known_is_invalid(plant: Plant) -> None:
    laboratory = plant(RISING)
    whole_ns = LENGTH * 10**8
    laboratory.faults["one.responses"] = lambda _samples, from_ns, to_ns: (
        {"cpu.util": 40.0} if to_ns - from_ns >= whole_ns else {"disk.util": 40.0}
    )
    study = make_study({}, system="null", workload="ycsb", observe=("one",), of="cpu.util", workload_options=OPTIONS)
    record = laboratory.records(study)[0]
    assert (record.outcome, record.step) == (Outcome.INVALID, Step.CHECK)
    assert record.cause.startswith("the driver gave no 'cpu.util' (replicates.of); it gave ")
