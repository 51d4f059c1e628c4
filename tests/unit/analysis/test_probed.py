"""What is said of a resource that was slowed, where it is known what hangs on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.making import make_record, make_study

from dyno.analysis import analyse
from dyno.hosts.interventions.io_limit import IoLimitOptions
from dyno.hosts.interventions.io_operations_limit import IoOperationsLimitOptions
from dyno.model.findings import Findings, Probed
from dyno.model.interventions import Delays, Shares
from dyno.model.run import Intervened, RunRecord, Slot
from dyno.model.study import Study
from dyno.study import intervene

CLIENTS = 4
TIME_S = 1e-3  # of an operation, at dose 0
CALLS = 2.0  # an operation


class SyncOptions(Delays):
    title = "time added to each sync"
    doses: tuple[float, ...] = (50e-6, 100e-6, 250e-6)


class LoadOptions(Shares):
    title = "of every CPU taken"
    doses: tuple[float, ...] = (0.1, 0.2, 0.4)


def studied(**kinds: Any) -> Study:
    study = make_study({"mean": (1000,)}, min=2, max=2)
    return intervene(study, [(name.replace("_", "-"), options()) for name, options in kinds.items()])


def records(
    study: Study, rate: Callable[[float], float], *, blocks: int = 6, noise: float = 0.01, calls: float = CALLS
) -> list[RunRecord]:
    """`rate` is the throughput at what a dose adds, relative to an operation's time."""
    random = np.random.default_rng(1)
    made: list[RunRecord] = []
    for block in range(blocks):
        for cell in study.cells:
            dose, rest, added = cell.intervention, {}, 0.0
            if dose is not None and dose.unit == "s":
                added = dose.dose * calls / TIME_S
                rest["intervened"] = Intervened(
                    kind=dose.kind,
                    dose=dose.dose,
                    clients=CLIENTS,
                    calls=calls * 1000,
                    calls_per_op=calls,
                    added_s=dose.dose,
                )
            elif dose is not None:
                added = 1 / (1 - dose.dose) - 1
                rest["intervened"] = Intervened(kind=dose.kind, dose=dose.dose, clients=CLIENTS, slowed=added)
            value = rate(added) * float(np.exp(random.normal(0, noise)))
            if dose is None:
                value *= 1.1  # what the instrument itself costs
            slot = Slot(cell=cell.index, block=block)
            made.append(make_record(len(made) + 1, slot, value=value, **rest))
    return made


class MemoryOptions(LoadOptions):
    title = "a share of the machine's memory taken"


def without_slowing(made: list[RunRecord]) -> list[RunRecord]:
    """As an intervention records that takes of what is not shared in time."""
    return [
        run if run.intervened is None else run.model_copy(update={
            "intervened": run.intervened.model_copy(update={"slowed": None})
        })
        for run in made
    ]  # fmt: skip


def findings(study: Study, made: list[RunRecord]) -> Findings:
    return analyse(study, made, ended="as the test wanted it")


def only(study: Study, made: list[RunRecord]) -> Probed:
    (found,) = findings(study, made).interventions
    return found


BASE = CLIENTS / TIME_S
LAWS: dict[str, tuple[Callable[[float], float], str, float]] = {
    "each operation waits": (lambda a: BASE / (1 + a), "felt in full", -1.0),
    "a third is waited for": (lambda a: BASE / (1 + a / 3), "felt in part", -1 / 3),
    "they wait in line": (lambda a: BASE / (1 + CLIENTS * a), "more than in full", -CLIENTS),
    "it is hidden": (lambda _: BASE, "not in full", 0.0),
    "it helps": (lambda a: BASE / (1 - a / 2), "the other way", 0.5),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("options", [SyncOptions, LoadOptions])
def test_the_slope_says_what_operations_wait_for(name: str, options: type) -> None:
    rate, verdict, slope = LAWS[name]
    study = studied(sync_delay=options)
    found = only(study, records(study, rate))
    assert found.slope_ci is not None
    assert found.slope_ci[0] <= slope <= found.slope_ci[1]
    assert found.verdict == verdict, found.sentence
    assert found.sentence.startswith(options.title)  # type: ignore[attr-defined]


def test_what_a_dose_adds_is_relative_to_the_time_of_an_operation() -> None:
    study = studied(sync_delay=SyncOptions)
    found = only(study, records(study, LAWS["each operation waits"][0], noise=1e-6))
    assert found.clients == CLIENTS
    assert found.calls_per_op == CALLS
    assert found.time_per_op_s == pytest.approx(TIME_S, rel=1e-4)
    assert [dose.added for dose in found.doses] == pytest.approx([0, 0.1, 0.2, 0.5], rel=1e-4)
    assert [dose.ratio for dose in found.doses] == [
        None,
        *(pytest.approx(1 / (1 + a), rel=1e-4) for a in (0.1, 0.2, 0.5)),
    ]


def test_the_instruments_own_cost_stands_beside_and_is_in_no_slope() -> None:
    study = studied(sync_delay=SyncOptions)
    found = only(study, records(study, LAWS["it is hidden"][0]))
    assert found.own_cost == pytest.approx(1 / 1.1, rel=0.02)
    assert found.own_cost_ci is not None
    assert found.own_cost_ci[1] < 1


def test_several_slopes_have_wider_intervals_than_one_alone() -> None:
    one, two = studied(sync_delay=SyncOptions), studied(sync_delay=SyncOptions, cpu_load=LoadOptions)
    rate = LAWS["each operation waits"][0]
    alone = only(one, records(one, rate))
    together = findings(two, records(two, rate)).interventions
    assert [found.kind for found in together] == ["sync-delay", "cpu-load"]
    assert alone.confidence == pytest.approx(0.95)
    assert [found.confidence for found in together] == pytest.approx([0.975, 0.975])


def test_an_interval_that_holds_0_and_1_has_no_verdict_and_says_that_the_doses_are_small() -> None:
    study = studied(sync_delay=SyncOptions)
    found = only(study, records(study, lambda a: BASE / (1 + a), noise=0.05, calls=CALLS / 20))
    assert found.verdict == "cannot tell"
    assert "take higher ones" in found.sentence


def test_what_is_hidden_up_to_a_dose_and_felt_beyond_it_is_not_judged_by_a_curve_that_it_is_not_on() -> None:
    study = studied(sync_delay=SyncOptions)
    found = only(study, records(study, lambda a: BASE / max(1.0, 0.8 + a), blocks=12, noise=0.005))
    assert found.slope_ci is not None
    assert found.slope_ci[0] > 0, "by the curve alone throughput would be said to rise"
    assert found.verdict == "cannot tell"
    assert "neither in a line nor in one even bend" in found.sentence
    assert "take smaller ones" in found.sentence


def test_what_is_not_shared_in_time_has_no_slope_but_a_first_dose_at_which_throughput_differs() -> None:
    study = studied(memory=MemoryOptions)
    # Doses of 10, 20 and 40 %: nothing is missed of the first two.
    found = only(study, without_slowing(records(study, lambda a: BASE if a < 0.3 else BASE / 2)))
    assert found.slope is None
    assert found.slope_ci is None
    assert [dose.added for dose in found.doses] == [None] * 4
    assert found.differs_from == 0.4
    assert found.verdict == "differs from a dose on"
    assert "throughput differs from 40% on (0.5" in found.sentence
    assert "20% of it can be taken before that is seen" in found.sentence


def test_where_nothing_is_missed_at_any_dose_it_is_said_with_the_interval_at_the_highest() -> None:
    study = studied(memory=MemoryOptions)
    found = only(study, without_slowing(records(study, lambda _: BASE)))
    assert found.verdict == "no difference seen"
    assert found.differs_from is None
    assert "at no dose is throughput seen to differ from the control" in found.sentence
    assert "at 40%" in found.sentence
    unsure = only(study, without_slowing(records(study, lambda _: BASE, noise=0.8)))
    assert unsure.verdict == "cannot tell"
    assert "holds both 1 and the share that is left" in unsure.sentence
    everywhere = only(study, without_slowing(records(study, lambda a: BASE / (1 + 3 * a))))
    assert everywhere.differs_from == 0.1
    assert "already at the smallest dose" in everywhere.sentence


def test_intervals_over_doses_without_a_slope_hold_at_once() -> None:
    study = studied(memory=MemoryOptions)
    made = records(study, lambda _: BASE, noise=0.05)
    with_slope, without = only(study, made), only(study, without_slowing(made))
    widths = [
        [dose.ci[1] / dose.ci[0] for dose in found.doses if dose.ci is not None] for found in (with_slope, without)
    ]
    assert len(widths[0]) == 3
    assert all(wide > narrow for narrow, wide in zip(*widths, strict=True))


def test_of_a_device_it_is_said_whether_its_bandwidth_or_its_operations_were_taken() -> None:
    study = studied(io_limit=IoLimitOptions, io_operations_limit=IoOperationsLimitOptions)
    assert [cell.intervention and cell.intervention.kind for cell in study.cells[:9]] == [
        None, *["io-limit"] * 4, *["io-operations-limit"] * 4,
    ]  # fmt: skip
    bound, hidden = (records(study, LAWS[name][0]) for name in ("each operation waits", "it is hidden"))
    made = [
        one if one.intervened is not None and one.intervened.kind == "io-operations-limit" else other
        for one, other in zip(bound, hidden, strict=True)
    ]
    bandwidth, operations = findings(study, made).interventions
    assert bandwidth.verdict == "not in full"
    assert bandwidth.sentence.startswith("a share of the device's bandwidth taken")
    assert operations.verdict == "felt in full", operations.sentence
    assert operations.sentence.startswith("a share of the device's I/O operations a second taken")
    assert operations.slope == pytest.approx(-1, abs=0.1)
    assert [dose.added for dose in operations.doses] == pytest.approx([0, 1 / 0.7 - 1, 1 / 0.4 - 1, 1 / 0.2 - 1])


def test_where_no_such_call_was_made_throughput_does_not_hang_on_it() -> None:
    study = studied(sync_delay=SyncOptions)
    found = only(study, records(study, lambda _: BASE, calls=0.0))
    assert found.verdict == "no such calls"
    assert found.slope is None


def test_runs_that_are_all_not_ok_say_nothing_and_break_nothing() -> None:
    study = studied(sync_delay=SyncOptions)
    found = only(study, [])
    assert found.verdict == "cannot tell"
    assert "too few ok runs" in found.sentence


def test_at_scale_smoke_nothing_is_judged() -> None:
    study = studied(sync_delay=SyncOptions).model_copy(update={"scale": "smoke"})
    assert only(study, records(study, LAWS["each operation waits"][0])).verdict == "not judged"


def test_a_study_without_interventions_has_none() -> None:
    study = make_study({"mean": (1000, 2000)}, compare="mean")
    assert findings(study, []).interventions == ()


def test_a_study_that_compares_nothing_answers_with_what_throughput_hangs_on() -> None:
    study = studied(sync_delay=SyncOptions, cpu_load=LoadOptions)
    waits, hidden = (records(study, LAWS[name][0]) for name in ("each operation waits", "it is hidden"))
    made = [
        other if one.intervened is not None and one.intervened.kind == "cpu-load" else one
        for one, other in zip(waits, hidden, strict=True)
    ]
    told = findings(study, made).answer
    assert told.startswith("Throughput falls as operations take longer by sync-delay (slope -")
    assert "not shown to fall, and at most by a part of what is added, by cpu-load" in told
