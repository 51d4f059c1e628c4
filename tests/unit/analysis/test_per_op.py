"""What an operation costs: means, ratios and shares from runs of which every use is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import analyse
from dyno.analysis.comparisons import widening_between_cells
from dyno.model.findings import Findings, ResourceFigure, ResourceRatio
from dyno.model.published import Claim, Published
from dyno.model.run import Outcome
from dyno.model.study import HostSpec, KindSpec, Machine, Pin, Study
from dyno.model.targets import Target
from dyno.model.usage import FOREMOST, Usage, foremost

TWO = {"mode": ["plain", "boxed"]}
PLAIN, BOXED = [50.0, 52.0, 49.0, 51.0, 50.5], [55.0, 58.0, 53.0, 57.0, 55.0]


def usage(per_op: Mapping[str, float], *, rate: float = 100.0, cpus: float = 2.0, **means: float) -> Usage:
    """At that many operations a second."""
    return Usage(
        seconds=10.0,
        operations=10 * rate,
        samples=10,
        cpus=cpus,
        per_op=dict(per_op),
        per_s={name: value * rate for name, value in per_op.items()},
        means=means,
    )


def plan(factors: Mapping[str, list[Any]] = TWO, compare: str | None = "mode", **rule: Any) -> Study:
    return study(factors, compare=compare, **rule)


def found(of: Study, uses: Mapping[int, Sequence[Usage | None]], **more: Any) -> Findings:
    """One ok run a block and cell, each with its use and a throughput of 100."""
    runs, used = Runs(of), {}
    for block in range(max(map(len, uses.values()))):
        for cell, of_cell in uses.items():
            if block < len(of_cell):
                runs.add(cell, block, 100.0)
                if (use := of_cell[block]) is not None:
                    used[len(runs)] = use
    return analyse(of, runs, ended=None, used=used, **more)


def of_resource(name: str, a: Sequence[float], b: Sequence[float], **rule: Any) -> Findings:
    """Two cells whose runs used just that, in the base unit."""
    return found(plan(**rule), {0: [usage({name: x}) for x in a], 1: [usage({name: x}) for x in b]})


def figure(findings: Findings, name: str, cell: int = 0) -> ResourceFigure:
    return next(each for each in findings.resources if each.resource == name and each.cell == cell)


def ratio(findings: Findings, name: str) -> ResourceRatio:
    return next(each for each in findings.resource_ratios if each.resource == name)


def micro(values: Sequence[float]) -> list[float]:
    return [value * 1e-6 for value in values]


def test_what_nodes_in_namespaces_send_is_not_read_off_the_machines_own_interfaces() -> None:
    """`net.sent` stood beside clusters as 3 bytes an operation, since their nodes have a network of their own."""
    of, used = plan(), {}
    runs = Runs(of)
    for block in range(3):
        for cell in (0, 1):
            runs.add(cell, block, 100.0)
            used[len(runs)] = usage({"net.sent": 3.0, "net.packets": 0.1, "server.cpu": 1e-5})
    clusters = [
        run.model_copy(update={"responses": {**run.responses, "network_sent_per_op": 900.0}}) if run.slot.cell else run
        for run in runs
    ]
    findings = analyse(of, clusters, ended=None, used=used)
    assert (figure(findings, "net.sent", 0).mean, figure(findings, "net.sent", 1).n) == (3.0, 0)
    assert figure(findings, "net.packets", 1).n == 0
    assert (figure(findings, "nodes.sent", 1).mean, figure(findings, "nodes.sent", 0).n) == (900.0, 0)
    assert "nodes.sent" in FOREMOST


def test_what_the_data_take_on_disk_is_of_the_stopped_store() -> None:
    of = plan()
    runs = Runs(of)
    for block in range(3):
        for cell in (0, 1):
            runs.add(cell, block, 100.0)
    stopped = [
        run.model_copy(update={"status": {"at_rest.bytes": (15 + run.slot.block) * 2.0**20}}) if run.slot.cell else run
        for run in runs
    ]
    findings = analyse(of, stopped, ended=None)
    assert (figure(findings, "data.at_rest", 1).mean, figure(findings, "data.at_rest", 1).n) == (16.0, 3)
    assert figure(findings, "data.at_rest", 0).n == 0
    assert "data.at_rest" in FOREMOST


def test_a_target_may_be_of_what_was_used() -> None:
    def judged(bound: str) -> str:
        target = Target(response="server.cpu", bound=bound)
        of = plan().model_copy(update={"targets": (target,)})
        uses = {
            0: [usage({"server.cpu": x}) for x in micro(PLAIN)],
            1: [usage({"server.cpu": x}) for x in micro(BOXED)],
        }
        (result,) = found(of, uses).targets
        return f"{result.verdict} in {[cell.verdict for cell in result.cells]} ({result.unit})"

    assert judged("< 70 us") == "met in ['met', 'met'] (us)"
    assert judged("< 0.04 ms") == "missed in ['missed', 'missed'] (us)"
    assert judged("< 50 us").startswith("missed in ['cannot tell', 'missed']")


# Means


def test_the_mean_of_a_resource_has_the_interval_that_a_response_of_the_same_values_has() -> None:
    of = plan()
    runs, used = Runs(of), {}
    for block, values in enumerate(zip(PLAIN, BOXED, strict=True)):
        for cell, value in enumerate(values):
            runs.add(cell, block, responses={"throughput": 1.0 + block, "cpu_per_op": value})
            used[len(runs)] = usage({"server.cpu": value * 1e-6})
    findings = analyse(of, runs, ended=None, used=used)
    for cell in (0, 1):
        beside = next(each for each in findings.cells if each.response == "cpu_per_op" and each.cell == cell)
        mine = figure(findings, "server.cpu", cell)
        assert mine.unit == "us"
        assert mine.ci is not None
        assert beside.ci is not None
        assert (mine.mean, mine.sd, mine.n) == (pytest.approx(beside.mean), pytest.approx(beside.sd), 5)
        assert mine.ci == pytest.approx(beside.ci)
        assert mine.values == pytest.approx(beside.values)
        assert mine.reason == ""


def test_use_in_a_second_stands_beside_use_in_an_operation() -> None:
    mine = figure(of_resource("server.cpu", micro(PLAIN), micro(BOXED)), "server.cpu")
    assert mine.mean == pytest.approx(50.5)
    assert mine.per_s == pytest.approx(50.5 * 100)


def test_a_resource_that_is_never_used_has_a_mean_of_0_and_not_none() -> None:
    mine = figure(of_resource("server.major_faults", [0.0] * 4, [0.0] * 4), "server.major_faults")
    assert (mine.mean, mine.ci, mine.reason) == (0.0, (0.0, 0.0), "")


def test_one_run_has_a_mean_and_says_why_it_has_no_interval() -> None:
    mine = figure(of_resource("server.cpu", [1e-6], [2e-6]), "server.cpu")
    assert mine.mean == pytest.approx(1.0)
    assert mine.ci is None
    assert mine.reason == "1 run, and an interval needs 2"


def test_a_cell_whose_runs_do_not_tell_of_a_resource_says_so() -> None:
    uses = [usage({"server.cpu": 1e-6, "server.syncs": 1.0})] * 3
    findings = found(plan(), {0: uses, 1: [usage({"server.cpu": 1e-6})] * 3})
    missing = figure(findings, "server.syncs", 1)
    assert (missing.n, missing.mean, missing.ci) == (0, None, None)
    assert missing.reason == "none of 3 ok runs tells of it"
    assert ratio(findings, "server.syncs").reason == "boxed: none of 3 ok runs tells of it"


def test_a_cell_without_an_ok_run_says_so() -> None:
    of = plan()
    runs = Runs(of).add(0, 0, 1.0).add(0, 1, 1.0).fail(1, 0).fail(1, 1)
    used = dict.fromkeys((1, 2), usage({"server.cpu": 1e-6}))
    findings = analyse(of, runs, ended=None, used=used)
    assert figure(findings, "server.cpu", 1).reason == "no run is ok"
    assert ratio(findings, "server.cpu").reason == "boxed: no run is ok"
    assert ratio(findings, "server.cpu").verdict == "not enough runs"


def test_where_nothing_was_observed_it_is_said_why() -> None:
    unobserved = found(plan(), {0: [None] * 3, 1: [None] * 3})
    assert (unobserved.resources, unobserved.resource_ratios, unobserved.resource_overall) == ((), (), ())
    assert unobserved.resources_reason == "the study has no observer `machine`, which measures it"
    watched = plan().model_copy(update={"observe": (KindSpec(kind="machine"),)})
    reason = found(watched, {0: [None], 1: [None]}).resources_reason
    assert reason == "the runs left no samples of their measured parts"
    failed = Runs(plan()).fail(0, 0, Outcome.FAILED)
    assert analyse(plan(), failed, ended=None).resources_reason == "no run is ok"
    assert of_resource("server.cpu", [1.0], [1.0]).resources_reason == ""


# Ratios


def test_a_ratio_is_students_on_the_logs_within_blocks() -> None:
    """By scipy's own t test of one sample, of the differences of logs; wider for how often the study is looked at."""
    findings = of_resource("server.cpu", micro(PLAIN), micro(BOXED))
    mine = ratio(findings, "server.cpu")
    differences = np.log(BOXED) - np.log(PLAIN)
    wider = widening_between_cells(plan())
    error = wider * scipy.stats.sem(differences)
    low, high = scipy.stats.t.interval(0.95, 4, loc=differences.mean(), scale=error)
    assert mine.ratio == pytest.approx(math.exp(differences.mean()))
    assert mine.ci == pytest.approx((math.exp(low), math.exp(high)))
    assert mine.n == 5
    assert mine.p == pytest.approx(2 * scipy.stats.t.sf(abs(differences.mean() / error), 4))
    assert mine.verdict == "higher"
    assert mine.sentence.startswith("CPU time of the system per operation, mode boxed against plain: 1.10x [1.0")
    assert "], shown to be higher (adjusted p " in mine.sentence


def test_ratios_of_resources_are_a_family_of_their_own_in_which_the_foremost_have_half_of_the_error() -> None:
    random = np.random.default_rng(4)
    names = ("server.cpu", "server.switches", "server.faults", "server.read", "machine.cpu")

    def uses(shift: float) -> list[Usage]:
        return [usage({name: float(random.lognormal(shift, 0.1)) for name in names}) for _ in range(8)]

    findings = found(plan(), {0: uses(0.0), 1: uses(0.05)})
    found_p = [each.p for each in findings.resource_ratios]
    foremost = [each.resource in FOREMOST for each in findings.resource_ratios]
    assert (len(foremost), sum(foremost)) == (6, 2), "and the share of the CPU time that it may use"
    weights = [0.5 / 2 if each else 0.5 / 4 for each in foremost]
    assert [each.p_adjusted for each in findings.resource_ratios] == pytest.approx(stats.holm(found_p, weights))
    assert {each.family for each in findings.resource_ratios} == {6}
    without = found(plan(), {0: [None] * 8, 1: [None] * 8})
    assert [each.p_adjusted for each in findings.comparisons] == [each.p_adjusted for each in without.comparisons]
    assert findings.comparisons == without.comparisons, "explanations cost the answer nothing"


@pytest.mark.parametrize(
    ("a", "b", "verdict", "reason"),
    [
        ([0.0] * 4, [0.0] * 4, "no ratio", "it is 0 on both sides"),
        ([0.0] * 4, [1.0, 2.0, 1.0, 2.0], "no ratio", "it is 0 in all runs of plain"),
        ([1.0, 2.0, 1.0, 2.0], [0.0] * 4, "no ratio", "it is 0 in all runs of boxed"),
        (
            [0.0, 0.0, 0.0, 9.0],
            [1.0, 2.0, 1.0, 2.0],
            "no ratio",
            "some values are 0, and too many for a ratio of means",
        ),
        ([1.0], [2.0], "not enough runs", "plain has 1 ok run and boxed has 1, and each needs 2"),
    ],
)
def test_where_there_is_no_ratio_it_is_said_why(a, b, verdict, reason) -> None:
    mine = ratio(of_resource("disk.flushes", a, b), "disk.flushes")
    assert (mine.ratio, mine.ci, mine.p) == (None, None, None)
    assert (mine.verdict, mine.reason) == (verdict, reason)
    assert mine.sentence.endswith(f"{reason}.")


def test_a_few_zeros_leave_a_ratio_of_means() -> None:
    mine = ratio(of_resource("disk.flushes", [8.0, 9.0, 8.5, 9.0], [1.0, 0.0, 1.2, 1.1]), "disk.flushes")
    assert mine.ratio == pytest.approx((3.3 / 4) / (34.5 / 4))
    assert mine.method == "Fieller's interval of the ratio of means within blocks"


def test_at_scale_smoke_no_ratio_is_judged() -> None:
    of = plan().model_copy(update={"scale": "smoke"})
    findings = found(of, {0: [usage({"server.cpu": x}) for x in PLAIN], 1: [usage({"server.cpu": x}) for x in BOXED]})
    mine = ratio(findings, "server.cpu")
    assert (mine.verdict, mine.equivalent) == ("not judged", None)
    assert "not judged at scale smoke" in mine.sentence


def test_each_level_is_set_against_the_first_over_all_combinations_together() -> None:
    of = plan({"mode": ["plain", "boxed"], "threads": [1, 4, 8]})
    random = np.random.default_rng(1)
    cost = {0: 50, 1: 40, 2: 30, 3: 55, 4: 44, 5: 33}  # boxed costs a tenth more
    uses = {
        cell: [usage({"server.cpu": value * 1e-6 * random.lognormal(0, 0.005)}) for _ in range(6)]
        for cell, value in cost.items()
    }
    findings = found(of, uses)
    (pooled,) = [each for each in findings.resource_overall if not each.where and each.response == "server.cpu"]
    assert (pooled.combinations, pooled.verdict) == (3, "higher")
    assert pooled.ci[0] < 1.1 < pooled.ci[1]
    assert findings.overall == found(of, {cell: [None] * 6 for cell in cost}).overall


@given(
    a=st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=6),
    noise=st.lists(st.floats(-0.2, 0.2), min_size=6, max_size=6),
    times=st.floats(0.01, 100.0),
)
def test_a_cell_that_uses_so_many_times_as_much_has_a_ratio_of_so_many_times_as_much(a, noise, times) -> None:
    b = [value * math.exp(more) for value, more in zip(a, noise, strict=False)]
    once = ratio(of_resource("server.written", a, b), "server.written")
    more = ratio(of_resource("server.written", a, [value * times for value in b]), "server.written")
    assert once.ratio is not None
    assert once.ci is not None
    assert more.ratio == pytest.approx(once.ratio * times)
    assert more.ci == pytest.approx((once.ci[0] * times, once.ci[1] * times))


# Shares


def shares_of(use: Usage, host: HostSpec | None = None) -> dict[str, float | None]:
    of = plan({}, compare=None)
    if host is not None:
        of = of.model_copy(update={"cells": (of.cells[0].model_copy(update={"host": host}),)})
    return {each.resource: each.mean for each in found(of, {0: [use, use]}).resources if each.relative}


def test_shares_of_cpu_time_are_kernel_time_over_all_and_user_time_over_kernel_time() -> None:
    use = usage(
        {"server.cpu": 0.008, "server.usr": 0.002, "server.sys": 0.006, "driver.usr": 0.003, "driver.sys": 0.001},
        **{
            "cpu.usr": 20.0,
            "cpu.nice": 5.0,
            "cpu.sys": 40.0,
            "cpu.irq": 4.0,
            "cpu.soft": 6.0,
            "cpu.iowait": 10.0,
            "cpu.idle": 15.0,
        },
    )
    assert shares_of(use) == pytest.approx(
        {
            "server.cpu_of_machine": 40.0,  # 0.8 of 2 CPUs
            "server.sys_share": 75.0,
            "server.user_system_ratio": 1 / 3,
            "driver.sys_share": 25.0,
            "machine.sys_share": 100 * 50 / 75,
            "machine.user_system_ratio": 0.5,
            "machine.iowait_share": 10.0,
        }
    )


@pytest.mark.parametrize(
    ("host", "share"),
    [
        (HostSpec(machine=Machine(cpus=1.0)), 80.0),
        (HostSpec(machine=Machine(cpus=16.0)), 40.0),  # more than the machine has
        (HostSpec(pin=Pin(system="1")), 80.0),
        (HostSpec(machine=Machine(cpus=0.8), pin=Pin(system="0-1")), 100.0),
    ],
)
def test_cpu_time_of_the_system_is_set_against_what_it_may_use(host: HostSpec, share: float) -> None:
    assert shares_of(usage({"server.cpu": 0.008}), host)["server.cpu_of_machine"] == pytest.approx(share)


def test_write_amplification_is_what_storage_took_for_each_byte_of_the_workload() -> None:
    use = usage({"server.written": 4800.0, "disk.written": 9600.0, "disk.busy": 0.005, "workload.written": 1000.0})
    assert shares_of(use) == pytest.approx(
        {"disk.write_amplification": 9.6, "server.write_amplification": 4.8, "disk.busy_share": 50.0}
    )


def test_read_amplification_is_what_the_device_gave_for_each_byte_that_was_asked_for() -> None:
    cached, cold = usage({"workload.read": 0.0}), usage({"disk.read": 3000.0, "workload.read": 6000.0})
    findings = found(plan(), {0: [cold] * 3, 1: [cached] * 3})
    assert figure(findings, "disk.read_amplification", 0).mean == pytest.approx(0.5)
    assert figure(findings, "disk.read_amplification", 1).reason == "the workload read nothing"


def test_where_the_system_works_within_the_driver_its_figures_are_read_first() -> None:
    assert foremost(["driver.switches", "server.cpu", "driver.cpu"]) == ("server.cpu", "driver.cpu")
    within = foremost(["disk.transfers", "net.sent", "driver.switches", "driver.cpu", "disk.read"])
    assert within == ("driver.cpu", "driver.switches", "disk.transfers", "disk.read")


def test_a_workload_that_wrote_nothing_has_no_write_amplification_and_says_so() -> None:
    writes = usage({"disk.written": 9600.0, "workload.written": 1000.0})
    reads = usage({"disk.written": 96.0, "workload.written": 0.0})
    findings = found(plan(), {0: [writes] * 3, 1: [reads] * 3})
    assert figure(findings, "disk.write_amplification", 0).mean == pytest.approx(9.6)
    assert figure(findings, "disk.write_amplification", 1).reason == "the workload wrote nothing"
    assert ratio(findings, "disk.write_amplification").reason == "boxed: the workload wrote nothing"


# Claims


def judged(predicate: dict[str, Any], uses: Mapping[int, Sequence[Usage]], **more: Any) -> tuple[str, str]:
    claim = Claim.model_validate({"id": "x", "says": "so it is", "predicate": predicate})
    of = plan().model_copy(update={"published": Published(findings=(claim,)), **more})
    (result,) = found(of, uses).claims
    return result.verdict, result.reason


SIDES = {"b": {"mode": "boxed"}, "a": {"mode": "plain"}}
USES = {
    0: [usage({"server.cpu": x * 1e-6}) for x in PLAIN],
    1: [usage({"server.cpu": x * 1e-6}) for x in BOXED],
}


@pytest.mark.parametrize(
    ("predicate", "verdict"),
    [
        ({"ratio": {"of": "server.cpu", **SIDES}, "is": "> 1"}, "confirmed"),
        ({"ratio": {"of": "server.cpu", **SIDES}, "is": "< 1"}, "contradicted"),
        ({"within": {"of": "server.cpu", **SIDES, "margin": "1%"}}, "contradicted"),
        ({"mean": {"of": "server.cpu"}, "is": "< 0.1 ms"}, "confirmed"),
        ({"mean": {"of": "server.cpu_of_machine"}, "is": "> 90 %"}, "contradicted"),
        ({"trend": {"of": "server.cpu", "over": "mode"}, "is": "rises"}, "confirmed"),
    ],
)
def test_a_finding_may_be_of_what_was_used(predicate, verdict) -> None:
    assert judged(predicate, USES)[0] == verdict


def test_the_reason_names_the_resource_with_its_unit() -> None:
    _, reason = judged({"mean": {"of": "server.cpu"}, "is": "< 100 us"}, USES)
    assert "CPU time of the system per operation with mode=boxed: 55.60 [" in reason
    assert "] us" in reason


@pytest.mark.parametrize(
    ("of", "observe", "why"),
    [
        ("server.switches", (), ", since the study has no observer `machine`, which measures it"),
        ("disk.written", ("machine",), ", since these runs do not say which device their data are on"),
        ("server.instructions", (), ""),
    ],
)
def test_a_finding_of_what_was_not_observed_stays_open_and_says_why(of, observe, why) -> None:
    kinds = tuple(KindSpec(kind=kind) for kind in observe)
    verdict, reason = judged(
        {"mean": {"of": of}, "is": "> 1" if of != "disk.written" else "> 1 B"}, USES, observe=kinds
    )
    assert verdict == "open"
    assert f"was not measured{why}" in reason
