"""Operational laws: planted demands are found, changes with load are told, and what contradicts itself is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_studies import Runs, study
from tests.laws_study import CPUS, SECONDS, Network, usage

from dyno.analysis import analyse, forecast_throughput
from dyno.analysis.consistency import LAWS, consistency
from dyno.analysis.laws import _of_cell, demands
from dyno.model.base import UserError
from dyno.model.run import Outcome
from dyno.model.usage import Usage


def findings(made: Network):
    return analyse(made.study, made.runs, ended="done", used=made.used)


def laws(made: Network):
    return findings(made).laws


@pytest.fixture(scope="module")
def network() -> Network:
    return Network()


def test_the_demands_of_a_cell_are_what_its_operations_took_at_that_load(network: Network) -> None:
    for cell in network.study.cells[:2]:
        cpu, disk = demands(network.study, network.table, cell)
        of_runs = [each.per_op["machine.cpu"] for each in network.table.used[cell.index].values()]
        assert (cpu.resource, cpu.of, cpu.name, cpu.servers, cpu.n) == ("cpu", "machine.cpu", "2 CPUs", 2.0, 5)
        assert cpu.seconds_per_op == pytest.approx(sum(of_runs) / 5)
        assert cpu.ci[0] < cpu.seconds_per_op < cpu.ci[1]
        assert cpu.bound_ops_s == pytest.approx(CPUS / cpu.seconds_per_op)
        assert cpu.bound_ci == pytest.approx((CPUS / cpu.ci[1], CPUS / cpu.ci[0]))
        assert (disk.resource, disk.name, disk.seconds_per_op) == ("disk", "the disk", pytest.approx(5e-6))


def test_a_cell_is_set_against_the_lower_of_its_two_asymptotes(network: Network) -> None:
    of = {cell.levels["threads"]: cell for cell in laws(network).cells}
    alone = of["1"]
    cpu, disk = (each.seconds_per_op for each in alone.demands)
    assert alone.alone_s == pytest.approx((0.7 + 0.25) * cpu + disk), "without what others use of the CPUs"
    assert alone.bound == pytest.approx(1 / alone.alone_s), "one client, nothing waits"
    assert "that 1 client could get if nothing ever waited; 2 CPUs (" in alone.sentence
    full = of["16"]
    assert full.bound == pytest.approx(full.demands[0].bound_ops_s, rel=0.01)
    assert 0.97 < full.reached < 1.03
    assert "that 2 CPUs could do" in full.sentence
    assert "Next would be the disk, at 200,000" in full.sentence
    assert full.saturation == pytest.approx(full.alone_s / (full.demands[0].seconds_per_op / CPUS))


def test_a_slow_disk_has_the_lowest_bound_where_it_is_one() -> None:
    found = laws(Network(disk=100e-6)).cells[-1]
    assert [each.resource for each in found.demands] == ["disk", "cpu"]
    assert found.bound == pytest.approx(1 / 100e-6, rel=0.01)
    assert "that the disk could do" in found.sentence


def test_a_limit_of_the_disk_bounds_what_clients_get_but_takes_nobodys_time() -> None:
    made = Network([1, 2], blocks=3, host={"machine": {"disk": {"read_iops": 1000}}})
    for number, run in enumerate(made.runs, start=1):
        rate = run.responses["throughput"]
        made.replace_usage(number, per_s={"disk.reads": 1000.0})
        made.used[number] = made.used[number].model_copy(update={"own_device": True})
        assert made.used[number].operations == pytest.approx(SECONDS * rate)
    alone, _ = laws(made).cells
    limit = alone.demands[0]
    assert (limit.resource, limit.of, limit.utilisation) == ("limit", "limit.reads", pytest.approx(1.0))
    # All of the limit is used: throughput is the bound, however few clients and however little else they take.
    assert limit.bound_ops_s == pytest.approx(alone.throughput, rel=0.01)
    assert (alone.bound, alone.reached) == (limit.bound_ops_s, pytest.approx(1.0, rel=0.01))
    assert alone.saturation == 1
    assert "that its limit of reads allows" in alone.sentence
    assert "100% used), and one client fills it" in alone.sentence
    assert {each.resource for each in alone.demands} == {"limit", "cpu", "disk"}


def test_a_limit_that_is_far_bounds_nothing(network: Network) -> None:
    made = Network([1, 2], blocks=3, host={"machine": {"disk": {"read_iops": 10_000_000}}})
    for number in made.used:
        made.replace_usage(number, per_s={"disk.reads": 100.0})
    for held, free in zip(laws(made).cells, laws(Network([1, 2], blocks=3)).cells, strict=True):
        assert (held.bound, held.saturation) == (pytest.approx(free.bound), pytest.approx(free.saturation))


def test_a_disk_is_busy_for_no_longer_than_its_requests_took() -> None:
    made = Network([1, 2], blocks=2)
    for number in made.used:
        made.replace_usage(number, per_op={"disk.waited": 1e-6}, per_s={"disk.waited": 0.01})
    _, disk = demands(made.study, made.table, made.study.cells[0])
    assert (disk.of, disk.seconds_per_op) == ("disk.waited", pytest.approx(1e-6))


@pytest.mark.parametrize(
    ("host", "of", "servers", "share"),
    [
        ({"machine": {"cpus": 0.5}}, "server.cpu", 0.5, 0.7),
        ({"pin": {"system": "0"}}, "server.cpu", 1.0, 0.7),
        ({"pin": {"driver": "1"}}, "machine.cpu", 2.0, 1.0),  # a quarter of the time on one CPU allows more
        ({"pin": {"system": "0-1"}, "machine": {"cpus": 1}}, "server.cpu", 1.0, 0.7),
        ({"machine": {"cpus": 8}}, "machine.cpu", 2.0, 1.0),
    ],
)
def test_the_cpu_that_counts_is_that_which_allows_the_least(host, of: str, servers: float, share: float) -> None:
    made = Network([1, 2], blocks=2, host=host)
    cpu = next(each for each in demands(made.study, made.table, made.study.cells[0]) if each.resource == "cpu")
    whole = [each.per_op["machine.cpu"] for each in made.table.used[0].values()]
    assert (cpu.of, cpu.servers) == (of, servers)
    assert cpu.seconds_per_op == pytest.approx(share * sum(whole) / 2)


def test_a_store_in_its_driver_counts_against_the_limit_with_it() -> None:
    made = Network([1, 2], blocks=2, host={"machine": {"cpus": 0.1}})
    for number, used in made.used.items():
        per_op = {name: value for name, value in used.per_op.items() if name != "server.cpu"}
        made.used[number] = used.model_copy(update={"per_op": per_op})
    assert demands(made.study, made.table, made.study.cells[0])[0].of == "driver.cpu"


def shared_with_others(made: Network, share: float) -> Network:
    """The same where others used so much of the machine's CPU time that it is that share."""
    for number, used in made.used.items():
        own = used.per_op["server.cpu"] + used.per_op["driver.cpu"]
        whole = own / (1 - share)
        made.replace_usage(number, per_op={"machine.cpu": whole, "rest.cpu": share * whole})
    return made


def test_cpus_of_which_others_used_much_bound_nothing_that_is_told() -> None:
    found = laws(shared_with_others(Network([16], blocks=2, delay=0.0), 0.76)).cells[0]
    cpu = found.demands[0]
    assert (cpu.resource, cpu.bound_ops_s, cpu.bound_ci) == ("cpu", None, None)
    assert (found.bound, found.reached, found.saturation) == (None, None, None)
    assert "; what 2 CPUs could do is not told: 76% of the CPU time was of others (" in found.sentence
    assert "that 2 CPUs" not in found.sentence
    quiet = laws(Network([16], blocks=2, delay=0.0)).cells[0]
    assert "others" not in quiet.sentence
    assert quiet.bound is not None


def test_what_clients_can_get_bounds_also_where_others_used_the_cpus() -> None:
    found = laws(shared_with_others(Network([1], blocks=2, delay=1e-3), 0.5)).cells[0]
    assert found.bound == pytest.approx(1 / found.alone_s)
    assert found.saturation is None, "that is of the CPUs"
    assert "that 1 client could get if nothing ever waited; what 2 CPUs could do is not told: 50%" in found.sentence


def test_no_share_of_more_than_there_is_is_told() -> None:
    made = Network([16], blocks=2, delay=0.0)
    for number, used in made.used.items():
        made.replace_usage(number, per_op={name: 1.93 * used.per_op[name] for name in used.per_op if "cpu" in name})
    found = laws(made).cells[0]
    assert found.reached > 1.5
    for of_runs, said in ((None, "more than the"), ((1.6, 2.1), "more than the"), ((0.4, 3.1), "not shown to be less")):
        told = found.model_copy(update={"reached_ci": of_runs})
        sentence = _of_cell(made.study, made.table, told, 0.0, 2)
        assert said in sentence
        assert "%" not in sentence.partition("busy")[0].partition("us an operation")[0]
        assert ("that is no bound" in sentence) == told.beyond


def test_a_cell_of_which_some_runs_left_no_sample_says_of_which_its_throughput_is() -> None:
    made = Network([16], blocks=2)
    del made.used[2]
    found = laws(made).cells[0]
    assert found.throughput == pytest.approx(made.runs[0].responses["throughput"])
    assert " ops/s in the 1 of 2 ok runs that samples tell of, " in found.sentence
    assert "samples tell of" not in laws(Network([16], blocks=2)).cells[0].sentence


def test_a_change_of_cpu_time_with_load_is_a_finding_with_its_interval(network: Network) -> None:
    changes = laws(network).changes
    assert [change.b for change in changes] == ["2", "3", "4", "6", "8", "12", "16"]
    for change in changes:
        truth = 40 * int(change.b) ** -0.12 / 66
        assert change.shown
        assert change.ci[0] <= truth * (1 + 1e-9)
        assert truth <= change.ci[1] * (1 + 1e-9)
    assert changes[0].sentence.startswith("An operation takes 0.56x [")
    assert "the CPU time of the machine with threads 2 as with 1 (adjusted p" in changes[0].sentence


def test_where_cpu_time_does_not_change_no_change_is_shown() -> None:
    made = Network(cpu=lambda _: 40e-6)
    for number in made.used:  # noise that is no block's
        rate = made.runs[number - 1].responses["throughput"]
        made.used[number] = usage(rate, 40e-6 * (1 + 0.02 * ((number * 7919) % 11 - 5) / 5), 5e-6)
    assert not any(change.shown for change in laws(made).changes)


def test_what_was_not_observed_has_no_laws() -> None:
    plan = study({"threads": [1, 2]})
    found = analyse(plan, Runs(plan).add_cells({0: [1.0, 2.0], 1: [2.0, 3.0]}), ended="done").laws
    assert (found.cells, found.changes, found.checks, found.forecasting) == ((), (), (), ())


def test_at_a_given_rate_nothing_is_said_to_be_reached() -> None:
    made = Network([1, 2, 3, 4], blocks=2)
    made.runs[:] = [run.model_copy(update={"loop": "open", "rate_per_s": 100.0}) for run in made.runs]
    found = laws(made)
    assert "ops/s, as given; 2 CPUs could do" in found.cells[0].sentence
    assert found.forecasting == ()
    assert "at a rate that was given is not measured" in found.left_out[0]


def test_a_sound_measurement_keeps_all_laws(network: Network) -> None:
    found = laws(network)
    assert found.faults == ()
    assert {check.law for check in found.checks} >= {"Little's law", "states of the CPUs", "clock ticks"}
    assert all(check.runs == len(network.runs) and check.broken == 0 for check in found.checks)


PLANTED = {
    "states of the CPUs": {"usage": {"means": {"cpu.usr": 90.0, "cpu.idle": 90.0}}},
    "clock ticks": {"usage": {"means": {"stat.ticks": 230.0}}},
    "utilisation, by processes": {"usage": {"per_s": {"server.cpu": 3.0}}},
    "utilisation, by the control group": {"usage": {"means": {"server.cgroup.cpu": 1.0}}},
    "utilisation of the limit": {"usage": {"per_s": {"server.cpu": 1.9, "machine.cpu": 2.0}}},
    "utilisation of the disk": {"usage": {"per_s": {"disk.busy": 1.2}}},
    "bytes of the device": {"responses": {"device_read": 1.0, "device_written": 0.0}},
    "Little's law": {"responses": {"latency_mean": 1.0}},
    "utilisation, by operations": {"responses": {"throughput": 100.0, "latency_mean": 40.0}},
}


@pytest.mark.parametrize("law", sorted(PLANTED))
def test_a_planted_contradiction_is_a_fault_of_that_run(law: str) -> None:
    host = {"machine": {"cpus": 1}} if "limit" in law else {}
    cpu = (lambda _: 20e-6) if "limit" in law else (lambda _: 60e-6)
    made = Network([4, 8], blocks=2, delay=200e-6, cpu=cpu, host=host)
    plant = PLANTED[law]
    made.replace_run(3, **plant.get("responses", {}))
    made.replace_usage(3, **plant.get("usage", {}))
    found = findings(made)
    faults = [fault for fault in found.laws.faults if fault.law == law]
    assert [fault.run for fault in faults] == [3]
    assert faults[0].sentence.startswith("Run 3 (threads=4) contradicts itself: ")
    assert found.notes[0].startswith("The figures of 1 ok run contradict each other")
    assert found.notes[0].endswith("run 3.")
    (check,) = [check for check in found.laws.checks if check.law == law]
    assert (check.broken, check.worst_run) == (1, 3)


def test_every_law_has_a_planted_contradiction() -> None:
    assert {law.name for law in LAWS} == set(PLANTED)


def test_without_the_plant_the_same_study_is_sound() -> None:
    made = Network([4, 8], blocks=2, delay=200e-6, cpu=lambda _: 60e-6)
    assert laws(made).faults == ()


@pytest.mark.parametrize("latency", [0.8, 1.06])
def test_clients_that_are_elsewhere_or_too_many_break_littles_law(latency: float) -> None:
    made = Network([4, 8], blocks=2, delay=200e-6)
    rate = made.runs[0].responses["throughput"]
    made.replace_run(1, latency_mean=latency * 4000 / rate)
    assert [(fault.law, fault.run) for fault in laws(made).faults] == [("Little's law", 1)]


def test_an_operation_that_ends_after_the_run_breaks_no_law() -> None:
    """A stall at the end is in the mean latency with all of its time, of which the run saw a part."""
    made = Network([4, 8], blocks=2, delay=200e-6)
    rate = made.runs[0].responses["throughput"]
    made.replace_run(1, latency_mean=1.15 * 4000 / rate, latency_max=0.12 * 1000 * SECONDS)
    assert laws(made).faults == ()
    made.replace_run(1, latency_max=0.08 * 1000 * SECONDS)
    assert [(fault.law, fault.run) for fault in laws(made).faults] == [("Little's law", 1)]


def test_think_time_belongs_to_littles_law() -> None:
    made = Network([4], blocks=2)
    rate = made.runs[0].responses["throughput"]
    driver = {"loop": {"kind": "closed", "think_time_s": 2 / rate}}
    made.runs[:] = [run.model_copy(update={"driver": driver}) for run in made.runs]
    assert [fault.law for fault in laws(made).faults] == ["Little's law"] * 2
    for number in (1, 2):
        made.replace_run(number, latency_mean=1000 * (4 / made.runs[number - 1].responses["throughput"] - 2 / rate))
    assert laws(made).faults == ()


def test_a_workload_with_waits_of_its_own_and_one_whose_clients_nobody_told_are_not_looked_at() -> None:
    made = Network([4], blocks=2)
    made.runs[:] = [run.model_copy(update={"driver": {"workload": {"keying_time": True}}}) for run in made.runs]
    assert "Little's law" not in {check.law for check in laws(made).checks}


def test_a_loader_whose_latencies_are_of_batches_of_rows_is_not_held_to_littles_law() -> None:
    made = Network([4], blocks=2)
    for number in (1, 2):
        made.replace_run(number, latency_mean=292.4)
    assert [fault.law for fault in laws(made).faults] == ["Little's law"] * 2
    made.runs[:] = [run.model_copy(update={"status": {"batch.rows": 10_000.0}}) for run in made.runs]
    assert laws(made).faults == ()


def test_what_a_driver_measured_of_itself_between_operations_belongs_to_littles_law() -> None:
    made = Network([4], blocks=2)
    for number in (1, 2):
        made.replace_run(number, latency_mean=1000 * 3 / made.runs[number - 1].responses["throughput"])
    assert [fault.law for fault in laws(made).faults] == ["Little's law"] * 2
    between = [{"driver.between_ms": 1000 / run.responses["throughput"]} for run in made.runs]
    made.runs[:] = [run.model_copy(update={"status": status}) for run, status in zip(made.runs, between, strict=True)]
    assert laws(made).faults == ()


def of_batches(batches: list[list[float]], *, at_work: int) -> dict[str, float]:
    """Responses of batches whose answers take so many seconds, each asked by the first of `at_work` that is free."""
    responses, elapsed = {}, 0.0
    for number, answers in enumerate(batches):
        free = [0.0] * at_work
        for took in answers:
            free[free.index(min(free))] += took
        elapsed += max(free)
        responses[f"b.{number}.latency_max"] = 1000 * max(answers)
    every = [took for answers in batches for took in answers]
    return {
        **responses,
        "throughput": len(every) / elapsed,
        "latency_mean": 1000 * sum(every) / len(every),
        "latency_max": 1000 * max(every),
        "elapsed": elapsed,
    }


@given(st.sampled_from([2, 4, 8]), st.lists(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=20), min_size=1))
def test_clients_of_a_sound_batch_that_have_nothing_left_to_ask_break_no_law(clients, batches) -> None:
    made = Network([clients], blocks=2)
    made.replace_run(1, **of_batches(batches, at_work=clients))
    _, faults = consistency(made.study, made.table)
    assert [fault for fault in faults if fault.law == "Little's law"] == []


@pytest.mark.parametrize(("clients", "queries"), [(2, 10), (4, 20), (8, 40)])
def test_a_small_batch_of_which_half_of_the_clients_do_nothing_breaks_littles_law(clients, queries) -> None:
    batches = [[0.01 * (1 + 0.1 * (number % 7)) for number in range(queries)]] * 3
    made = Network([clients], blocks=2)
    made.replace_run(1, **of_batches(batches, at_work=clients // 2))
    _, faults = consistency(made.study, made.table)
    assert [fault.run for fault in faults if fault.law == "Little's law"] == [1]


def test_no_part_tells_of_the_whole_where_kinds_of_operations_come_in_turn() -> None:
    made = Network([4], blocks=2)
    name = "utilisation, by operations"
    assert name in {check.law.lower() for check in laws(made).checks}
    made.runs[:] = [run.model_copy(update={"status": {"driver.in_turn": 13.0}}) for run in made.runs]
    assert name not in {check.law.lower() for check in laws(made).checks}


def test_of_runs_that_are_not_ok_nothing_is_checked() -> None:
    made = Network([4, 8], blocks=2)
    made.replace_run(1, latency_mean=100.0)
    made.runs[0] = made.runs[0].model_copy(update={"outcome": Outcome.INVALID})
    assert laws(made).faults == ()


@given(
    rate=st.floats(1, 1e6),
    share=st.floats(0.01, 1.0),
    clients=st.integers(1, 64),
    between=st.floats(0, 4e-6),
    cpus=st.integers(1, 64),
    driver=st.floats(0.0, 0.3),
)
def test_whatever_keeps_the_laws_is_never_a_fault(
    rate: float, share: float, clients: int, between: float, cpus: int, driver: float
) -> None:
    made = Network([clients], blocks=2)
    latency = max(clients / rate - between, 0.0)
    whole = share * cpus
    for number in made.used:
        used = usage(rate, whole / rate, 0.5 / rate, cpus=cpus)
        made.used[number] = used.model_copy(
            update={"per_s": {**used.per_s, "server.cpu": (1 - driver) * whole, "driver.cpu": driver * whole}}
        )
        responses = {"throughput": rate, "latency_mean": 1000 * latency, "device_read": 101 * rate * SECONDS / 2**20}
        made.replace_run(number, **responses, device_written=0.0)
    _, faults = consistency(made.study, made.table)
    assert faults == ()


@given(off=st.floats(1.2, 50), up=st.booleans(), clients=st.integers(1, 64))
def test_a_latency_that_is_off_by_a_fifth_is_always_a_fault(off: float, up: bool, clients: int) -> None:
    made = Network([clients], blocks=2, cpu=lambda _: 1e-3)  # operations long enough for 5 us not to matter
    rate = made.runs[0].responses["throughput"]
    made.replace_run(1, latency_mean=1000 * clients / rate * (off if up else 1 / off))
    _, faults = consistency(made.study, made.table)
    assert [(fault.law, fault.run) for fault in faults] == [("Little's law", 1)]


def test_forecasts_are_held_against_levels_that_they_were_not_told_of(network: Network) -> None:
    (found,) = laws(network).forecasting
    of = {way.way: way for way in found.ways}
    assert list(of) == ["demands", "nearest", "line", "usl"]
    assert [level.level for level in of["demands"].levels] == ["2", "3", "4", "6", "8", "12"]
    # That of one client is no guide to two, and who was not told of two has nothing else.
    beyond = {level.level: level.ratio for level in of["demands"].levels}
    assert all(abs(beyond[level] - 1) < 0.03 for level in ("3", "4", "6", "8", "12"))
    assert of["demands"].error < of["nearest"].error / 3
    assert of["nearest"].against_ci[1] < 0
    assert "better than the nearest level" in found.sentence
    assert found.sentence.startswith("Told of all other levels, demands that depend on load forecast threads 2 to 12")


def test_a_forecast_that_does_not_beat_the_nearest_level_is_said_not_to() -> None:
    made = Network([1, 2, 3, 4, 6], cpu=lambda _: 100e-6, delay=0.0, disk=1e-9, noise=0.0)
    for number in made.used:  # the same throughput at all levels: the nearest is as good as anything
        made.replace_run(number, throughput=1000.0 * (1 + 0.02 * ((number * 7919) % 11 - 5) / 5))
    (found,) = laws(made).forecasting
    nearest = next(way for way in found.ways if way.way == "nearest")
    assert nearest.against_ci is None or nearest.against_ci[1] >= 0
    assert "better than the nearest level" not in found.sentence.replace("not shown to be better or worse than", "")


def test_three_levels_forecast_nothing() -> None:
    found = laws(Network([1, 2, 4]))
    assert found.forecasting == ()
    assert found.left_out == ("forecasts over threads, since 3 levels were observed, and it takes 4 or more",)


def test_a_forecast_between_levels_comes_with_its_error() -> None:
    made = Network()
    (found,) = forecast_throughput(made.study, made.runs, made.used, "threads", 5)
    four, six = (made.table.of("throughput", cell) for cell in (3, 4))
    assert min(four) < found.throughput < max(six)
    assert found.ci[0] < found.throughput < found.ci[1]
    assert found.error > 0
    assert "threads 5 is forecast to have" in found.sentence
    assert "with an error of" in found.sentence
    assert "The furthest off was threads" in found.sentence


def test_each_combination_of_the_other_factors_has_its_own_forecast() -> None:
    made = Network([1, 2, 4, 8], others={"mix": ("a", "b")})
    found = forecast_throughput(made.study, made.runs, made.used, "threads", 6)
    assert [each.within for each in found] == [{"mix": "a"}, {"mix": "b"}]
    assert found[0].sentence.startswith("With mix=a, threads 6 is forecast")


@pytest.mark.parametrize(
    ("factor", "at", "why"),
    [
        ("threads", 32, "a forecast is for whole numbers from 1 to 16"),
        ("threads", 0.5, "beyond them nothing is known"),
        ("threads", 2.5, "whole numbers"),
        ("records", 5, "records is no factor whose levels are numbers of clients; only threads is"),
    ],
)
def test_what_cannot_be_forecast_is_refused_with_the_reason(factor: str, at: float, why: str) -> None:
    made = Network(blocks=2)
    with pytest.raises(UserError, match=why):
        forecast_throughput(made.study, made.runs, made.used, factor, at)


def test_without_observations_or_with_too_few_levels_a_forecast_is_refused() -> None:
    made = Network([1, 2, 4])
    with pytest.raises(UserError, match="it takes 4 or more"):
        forecast_throughput(made.study, made.runs, made.used, "threads", 3)
    nothing: dict[int, Usage] = {}
    with pytest.raises(UserError, match="no run was observed"):
        forecast_throughput(made.study, made.runs, nothing, "threads", 3)
