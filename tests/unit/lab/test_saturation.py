"""A run whose driver was itself the limit is invalid, by what the observers saw of the measured part."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dyno.lab.saturation import driver_use
from dyno.model.run import Outcome, Step
from dyno.model.saturation import DRIVER_IS_THE_LIMIT
from dyno.observers.base import SAMPLE_COLUMNS
from tests.making import make_study
from tests.unit.lab.laboratory import Laboratory, giving, measured

S = 10**9
FROM, TO = 100 * S, 110 * S


def seen(server: tuple[float, float] | None, driver: tuple[float, float], outside: float = 0.0) -> pl.DataFrame:
    """Shares of CPUs that were used and waited for; `outside` the measured part the driver used that much."""
    rows = []
    for second in range(98, 113):
        within = 100 < second <= 110
        figures = {"driver": driver if within else (outside, outside), "mariadbd": server}
        for subject, used in figures.items():
            for metric, value in zip(("proc.cpu", "proc.wait"), used or (), strict=False):
                rows.append([second * S, "local", "process", subject, metric, 100 * value])
    return pl.DataFrame(rows, SAMPLE_COLUMNS, orient="row")


DRIVEN = measured(measured_from_ns=FROM, measured_to_ns=TO)
STARVED = seen((0.2, 0.05), (0.1, 0.8))


def test_figures_are_of_the_measured_part_alone() -> None:
    use = driver_use(seen((0.5, 0.25), (0.125, 1.0), outside=9.0), DRIVEN, 4, "1")
    assert use is not None
    assert (use.cpu, use.wait, use.system_cpu, use.system_wait) == pytest.approx((0.125, 1.0, 0.5, 0.25))
    assert (use.seconds, use.samples, use.clients, use.cpus) == (10, 10, 4, 1)
    assert use.lag_ms is None


def test_a_sample_weighs_by_the_time_that_it_tells_of_and_one_that_is_not_whole_tells_nothing() -> None:
    driver = {98: 9.0, 101: 9.0, 102: 0.2, 106: 0.6, 107: 0.1, 111: 9.0}  # the first and the last two reach beyond
    rows = [
        (at * S, "local", "process", subject, "proc.cpu", 100 * value)
        for at, value in driver.items()
        for subject in ("driver", "mariadbd")
    ]
    use = driver_use(pl.DataFrame(rows, SAMPLE_COLUMNS, orient="row"), DRIVEN, 4, None)
    assert use is not None
    assert (use.cpu, use.seconds, use.samples) == pytest.approx(((0.2 + 4 * 0.6 + 0.1) / 6, 6, 3))
    one = pl.DataFrame(rows[2:4], SAMPLE_COLUMNS, orient="row")
    assert driver_use(one, DRIVEN, 4, None) is None, "no sample is whole"


def test_of_an_open_loop_it_is_known_how_late_requests_were_sent() -> None:
    responses = {"throughput": 200.0, "latency_mean": 5.0, "service_mean": 2.0}
    opened = measured(measured_from_ns=FROM, measured_to_ns=TO, loop="open")
    opened.responses.update(responses)
    use = driver_use(STARVED, opened, 4, None)
    assert use is not None
    assert (use.lag_ms, use.service_ms, use.rate_per_s) == (3.0, 2.0, 200.0)


def test_where_the_system_has_no_processes_its_driver_is_the_system() -> None:
    assert driver_use(seen(None, (0.99, 0.0)), DRIVEN, 1, None) is None
    assert driver_use(STARVED.head(0), DRIVEN, 1, None) is None
    assert driver_use(STARVED, measured(), 1, None) is None


def test_such_a_run_is_invalid_and_says_so_and_keeps_what_it_measured(tmp_path: Path) -> None:
    faults = {"one.stop": giving(STARVED), "workload.drive": giving(DRIVEN)}
    study = make_study({"mean": (1000,)}, system="tried", observe=("one",), retries=0)
    first = Laboratory(tmp_path, faults).records(study)[0]
    assert (first.outcome, first.step) == (Outcome.INVALID, Step.CHECK)
    assert first.cause is not None
    assert first.cause.startswith(DRIVER_IS_THE_LIMIT)
    assert first.responses["throughput"] == 100.0


def test_at_scale_smoke_and_where_the_system_waits_too_nothing_is_refused(tmp_path: Path) -> None:
    study = make_study({"mean": (1000,)}, system="tried", observe=("one",), retries=0)
    smoke = study.model_copy(update={"scale": "smoke"})
    waiting = seen((0.2, 0.9), (0.1, 0.8))
    for name, asked, samples in (("smoke", smoke, STARVED), ("both", study, waiting)):
        (tmp_path / name).mkdir()
        faults = {"one.stop": giving(samples), "workload.drive": giving(DRIVEN)}
        records = Laboratory(tmp_path / name, faults).records(asked)
        assert [record.outcome for record in records] == [Outcome.OK] * 2
