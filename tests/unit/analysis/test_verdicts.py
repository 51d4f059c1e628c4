"""What held a cell back, from figures of which each verdict follows by the rules of docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.making import make_study

from dyno.analysis import analyse
from dyno.analysis.bottlenecks import judge
from dyno.analysis.observed import THRESHOLDS
from dyno.analysis.verdicts import verdicts
from dyno.model.findings import BottleneckVerdict
from dyno.model.interventions import Dose
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.saturation import DRIVER_IS_THE_LIMIT
from dyno.model.study import Study
from dyno.model.usage import Usage

DOCS = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()

# Four clients, of which half an operation's time is nobody knows where: nothing is full.
IDLE_S = {
    "server.cpu": 0.4,
    "server.wait": 0.02,
    "driver.cpu": 0.2,
    "driver.wait": 0.02,
    "machine.cpu": 0.7,
    "machine.steal": 0.0,
    "rest.cpu": 0.1,
    "disk.busy": 0.1,
    "disk.read": 1e6,
    "disk.written": 1e6,
    "disk.reads": 100.0,
    "disk.writes": 100.0,
}
IDLE = {"server.proc.cpu_max_thread": 20.0, "server.proc.blocked": 0.05, "server.proc.syncing": 0.0}


def used(per_s: Mapping[str, float] = {}, means: Mapping[str, float] = {}, cpus: float = 2) -> Usage:
    return Usage(
        seconds=10, operations=10_000, samples=40, cpus=cpus, per_s={**IDLE_S, **per_s}, means={**IDLE, **means}
    )


def study(host: Mapping[str, Any] | None = None, threads: int = 4) -> Study:
    made = make_study({"mean": (1000,)}, host=host)
    cell = made.cells[0]
    workload = cell.workload.model_copy(update={"options": {"threads": threads}})
    return made.model_copy(update={"cells": (cell.model_copy(update={"workload": workload}),)})


def run(number: int = 1, outcome: Outcome = Outcome.OK, **rest: Any) -> RunRecord:
    return RunRecord(
        run=number,
        slot=Slot(cell=0, block=number - 1),
        levels={},
        outcome=outcome,
        started_ns=0,
        ended_ns=0,
        driver_s=10.0,
        **rest,
    )


def verdict(usage: Usage, host: Mapping[str, Any] | None = None, threads: int = 4, **of: Any) -> BottleneckVerdict:
    (found,) = verdicts(study(host, threads), [run(**of)], {1: usage})
    return found


READ_AGAIN = {"server.cgroup.refkB_s": 900.0, "server.cgroup.mem": 99.0 * 2**20, "server.proc.blocked": 3.0}
LIMITED = {"memory": "100 MiB"}
BLOCKED = {"server.proc.blocked": 3.5}
SYNCING = {"server.proc.syncing": 0.95}

PLANTED: Mapping[str, tuple[Usage, dict[str, Any]]] = {
    "cpu-quota": (
        used({"server.cpu": 0.49, "server.wait": 2.5}),
        {"host": {"machine": {"cpus": 0.5}}, "status": {"machine.throttled_s": 6.0}},
    ),
    "cpu-all": (used({"server.cpu": 1.2, "server.wait": 1.5, "machine.cpu": 1.95}), {}),
    "cpu-thread": (used({"server.cpu": 1.0}, {"server.proc.cpu_max_thread": 97.0}), {}),
    "cpu-path": (used({"server.cpu": 0.6}), {"threads": 1}),
    "disk-bandwidth": (used({"disk.read": 9.8e6}, BLOCKED), {"deployed": {"io.limit.read_bytes": 10_000_000}}),
    "disk-operations": (used({"disk.reads": 196.0}, BLOCKED), {"deployed": {"io.limit.reads": 200}}),
    "disk-sync": (used(means=SYNCING), {}),
    "locks": (used({"server.lock_wait": 2.9}), {}),
    "memory": (used(means=READ_AGAIN), {"host": {"machine": LIMITED}}),
    "network": (used(means={"net.ifutil": 93.0, "tcp.oseg_s": 1200.0}), {}),
    "driver": (used({"driver.cpu": 0.9, "driver.wait": 1.6}), {}),
    "unexplained": (used(), {}),
}


def test_the_disk_that_a_study_asks_for_limits_a_store_of_which_nothing_was_found() -> None:
    per_s, means = {"driver.cpu": 0.1, "driver.wait": 0.01, "disk.reads": 196.0}, {"driver.proc.blocked": 3.5}
    usage = Usage(seconds=10, operations=1e4, samples=40, cpus=2, per_s=per_s, means=means)
    found = verdict(usage, {"machine": {"disk": {"read_iops": 200}}})
    assert found.kind == "disk-operations"
    assert "98% of its limit of reads was used" in found.sentence


@pytest.mark.parametrize("kind", PLANTED)
def test_each_kind_is_named(kind: str) -> None:
    usage, of = PLANTED[kind]
    found = verdict(usage, **of)
    assert found.kind == kind, found.sentence
    assert found.sentence[0].isupper()
    assert found.sentence.endswith(".")
    assert (found.agree, found.runs) == (1, 1)
    assert kind in ("network",) or found.evidence
    assert found.against == ()


@pytest.mark.parametrize(
    ("usage", "of", "kind"),
    [
        (used({"disk.busy": 0.97}, BLOCKED), {}, "disk-operations"),
        (used({"disk.busy": 0.97, "disk.read": 50e6}, BLOCKED), {}, "disk-bandwidth"),
        (used(means={"vm.si": 3000.0, "server.proc.blocked": 2.0}), {}, "memory"),
        (used(means={"server.proc.blocked": 3.0}), {}, "disk-operations"),  # not full, but most clients are there
        (used(means={"tcp.oseg_s": 1000.0, "tcp.retrans_s": 20.0}), {}, "network"),
        (used(), {"status": {"innodb_row_lock_time": 29_000.0}}, "locks"),
        (used(), {"loop": "open", "rate_per_s": 1000.0, "responses": {"service_mean": 1.0}}, "driver"),
        (used(), {"driver": {"loop": {"think_time_s": 1.0}}, "responses": {"latency_mean": 1.0}}, "driver"),
        (used({"server.cpu": 0.95, "server.wait": 1.0}), {"host": {"pin": {"system": "0"}}}, "cpu-all"),
    ],
)
def test_other_ways_to_the_same_verdicts(usage: Usage, of: dict[str, Any], kind: str) -> None:
    assert verdict(usage, **of).kind == kind


def test_threads_that_wait_are_no_share_of_clients_that_are_fewer() -> None:
    """Writes that are only handed over are answered at once, so that Little's law counts few clients in the store."""
    waiting = used(means={"server.proc.blocked": 3.0})
    assert "3.00 of 4 clients waited for a device" in verdict(waiting, threads=4).sentence
    assert "3.00 threads waited for a device" in verdict(waiting, threads=2).sentence


@pytest.mark.parametrize(
    ("usage", "of", "kind"),
    [
        # A quota is not the limit of one that is never held back, nor one as large as the machine.
        (used({"server.cpu": 0.48}), {"host": {"machine": {"cpus": 0.5}}, "status": {"machine.throttled_s": 0.0}}, ""),
        # CPUs that others keep busy while the system never waits for one, and a disk that writes back.
        (used({"machine.cpu": 1.98, "rest.cpu": 1.4}), {}, ""),
        (used({"disk.busy": 0.99}), {}, ""),
        # CPUs that neighbours fill, and in which hardly any client waits.
        (used({"server.wait": 0.9, "machine.cpu": 1.99, "rest.cpu": 1.5}), {"threads": 8}, ""),
        # What others send over the network, while the system is reached by a socket.
        (used(means={"tcp.oseg_s": 900.0, "tcp.retrans_s": 90.0, "net.ifutil": 95.0}), {}, ""),
        # What is evicted matters only where threads wait for it, and a limit only where it is nearly used.
        (used(means={**READ_AGAIN, "server.proc.blocked": 0.1}), {"host": {"machine": LIMITED}}, ""),
        (used({"disk.reads": 100.0}, {"server.proc.blocked": 0.9}), {"deployed": {"io.limit.reads": 200}}, ""),
        # Reads of what was never there are the disk's, however full memory is.
        (used(means={**READ_AGAIN, "server.cgroup.refkB_s": 9.0}), {"host": {"machine": LIMITED}}, "disk-operations"),
    ],
)
def test_what_only_looks_like_it_is_not_named(usage: Usage, of: dict[str, Any], kind: str) -> None:
    assert verdict(usage, **of).kind == (kind or "unexplained")


def test_what_explains_other_full_places_is_the_cause() -> None:
    busy = {"machine.cpu": 1.99, "server.wait": 3.0}
    host = {"machine": {"cpus": 0.5}}
    assert verdict(used({**busy, "server.cpu": 0.5}, {"server.proc.cpu_max_thread": 95.0}), host).kind == "cpu-quota"
    slow = used({"disk.written": 0.99e6, "disk.busy": 0.95}, {**SYNCING, **BLOCKED})
    assert verdict(slow, deployed={"io.limit.write_bytes": 1_000_000}).kind == "disk-bandwidth"
    reads = used({"disk.busy": 0.99}, READ_AGAIN)
    assert verdict(reads, {"machine": LIMITED}).kind == "memory"


def test_of_full_places_that_have_nothing_to_do_with_each_other_that_with_more_clients_counts() -> None:
    cpu = {"server.cpu": 1.3, "server.wait": 3.0, "machine.cpu": 1.95}
    found = verdict(used({**cpu, "server.lock_wait": 11.0}), threads=16)
    assert found.kind == "locks"
    assert found.against == ("It was CPU-bound (all CPUs) as well: fewer clients were there.",)
    found = verdict(used({**cpu, "server.wait": 9.5, "server.lock_wait": 8.0}), threads=16)
    assert found.kind == "cpu-all"
    assert found.against == ("It was lock-bound as well: fewer clients were there.",)


def test_what_does_not_fit_is_said() -> None:
    found = verdict(used({"disk.busy": 0.99, "machine.cpu": 1.95, "rest.cpu": 1.35, "machine.steal": 0.2}, {"x": 1.0}))
    assert found.kind == "unexplained"
    assert [sentence.split()[1] for sentence in found.against] == ["device", "CPUs", "of", "hypervisor"]
    unseen = Usage(seconds=10, operations=1e4, samples=40, cpus=2, per_s=IDLE_S)
    assert "were not observed" in verdict(unseen).against[0]


def test_a_verdict_is_that_of_most_runs_and_the_others_are_told() -> None:
    some = {1: used(means=SYNCING), 2: used(), 3: used(means={"server.proc.syncing": 0.85})}
    (found,) = verdicts(study(), [run(number) for number in some], some)
    assert (found.kind, found.agree, found.runs) == ("disk-sync", 2, 3)
    assert found.evidence[0].value == pytest.approx(0.9)  # the mean over those that agree
    assert found.evidence[0].threshold == THRESHOLDS["syncing"]
    assert found.against == ("1 run of 3 says: not explained by what was observed.",)
    (found,) = verdicts(study(), [run(1), run(2)], {1: used(means=SYNCING), 2: used()})
    assert (found.kind, found.agree, found.runs) == ("undecided", 1, 2)
    assert "disk-bound (sync latency) (1) and not explained by what was observed (1)" in found.sentence


def test_what_was_not_observed_or_is_not_judged_has_no_verdict() -> None:
    usage = used()
    assert not list(verdicts(study(), [run()], {}))
    assert not list(verdicts(study(), [run(outcome=Outcome.FAILED, cause="it died")], {1: usage}))
    assert not list(verdicts(study().model_copy(update={"scale": "smoke"}), [run()], {1: usage}))
    machine_alone = Usage(seconds=10, operations=1e4, samples=40, cpus=2, per_s={"machine.cpu": 1.0})
    assert not list(verdicts(study(), [run()], {1: machine_alone}))


def test_a_cell_whose_runs_are_all_invalid_for_the_driver_says_so() -> None:
    cause = f"{DRIVER_IS_THE_LIMIT}: it used 0.95 of the 1 CPUs"
    runs = [run(number, Outcome.INVALID, cause=cause) for number in (1, 2)]
    (found,) = verdicts(study(), runs, {1: used(), 2: used()})
    assert (found.kind, found.agree, found.runs) == ("driver", 2, 2)
    assert cause in found.sentence
    (found,) = verdicts(study(), [*runs, run(3)], {number: used() for number in (1, 2, 3)})
    assert found.kind == "unexplained", "an ok run says more"


def test_a_system_that_is_embedded_in_its_driver_is_never_waited_for_by_it() -> None:
    per_s = {"driver.cpu": 0.97, "driver.wait": 0.01, "machine.cpu": 1.0}
    usage = Usage(
        seconds=10, operations=1e4, samples=40, cpus=2, per_s=per_s, means={"driver.proc.cpu_max_thread": 96.0}
    )
    found = verdict(usage, threads=1)
    assert found.kind == "cpu-thread"
    assert "the driver's process, in which the system is," in found.sentence


def test_what_would_be_next_is_what_is_used_most_besides() -> None:
    assert verdict(used({"disk.busy": 0.6, "server.lock_wait": 2.9})).next == "Next: the disk, which was used 60%."
    assert verdict(used({"machine.cpu": 1.5}, SYNCING)).next == "Next: the CPU, which was used 75%."


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("quota_used", "the system used {:g} % of its CPU quota"),
        ("throttled", "held back for at least {:g} % of the time"),
        ("cpus_busy", "{:g} % of the CPUs that it may use were busy"),
        ("waited_share", "no CPU for at least {:g} % of the time"),
        ("busiest", "on one CPU {:g} % of the time"),
        ("io_limit", "of a limit in force: {:g} % of it used"),
        ("device_busy", "the device was busy {:g} % of the time"),
        ("syncing", "{:g} threads of the system are within fsync"),
        ("memory_full", "{:g} % of its limit is used"),
        ("refaulted", "{:g} % of what is read had been evicted"),
        ("interface", "the busiest interface was used {:g} %"),
        ("retransmitted", "or {:g} % of the segments were sent anew"),
        ("share", "fewer than {:g} % of the clients are"),
        ("most", "for {:g} % of their time"),
        ("rest", "{:g} % of the CPUs used by what was not watched"),
        ("steal", "{:g} % taken by the hypervisor"),
        ("kept", "did not reach {:g} % of the rate"),
    ],
)
def test_the_page_has_the_thresholds_that_are_used(rule: str, words: str) -> None:
    assert words.format(THRESHOLDS[rule]) in " ".join(DOCS.split())


def test_the_page_has_the_thresholds_that_it_puts_in_words() -> None:
    at_device, locked, large, swapped = (
        THRESHOLDS[rule] for rule in ("at_device", "locked_share", "large_request", "swapped")
    )
    assert (at_device, locked, large, swapped) == (0.5, 50, 64 * 1024, 1024)
    for words in (
        "half a thread always waits",
        "half of the other clients wait",
        "has 64 KiB or more",
        "1 MiB a second",
    ):
        assert words in DOCS
    assert len(THRESHOLDS) == 21


CPU_PATH = {"server.cpu": 1.0, "server.wait": 1.3, "machine.cpu": 1.5}


def test_a_busy_device_that_serves_many_at_once_is_not_what_a_few_clients_are_held_back_by() -> None:
    nvme = {**CPU_PATH, "disk.busy": 0.97, "disk.waited": 1.1}
    found = verdict(used(nvme, {"server.proc.blocked": 1.1}))
    assert found.kind == "cpu-path"
    assert "The device was busy 97% of the time" in found.against[0]
    assert (
        verdict(used({"disk.busy": 0.97, "disk.waited": 2.6}, {"server.proc.blocked": 2.6})).kind == "disk-operations"
    )


def test_a_device_is_not_busy_for_longer_than_all_its_requests_took() -> None:
    short = used({"disk.busy": 0.97, "disk.waited": 0.3}, {"server.proc.blocked": 0.6})
    found = verdict(short)
    assert found.kind == "unexplained"
    assert found.against == ()


def test_segments_sent_anew_hold_nobody_back_who_is_elsewhere() -> None:
    found = verdict(used({**CPU_PATH, "server.wait": 2.5}, {"tcp.oseg_s": 1000.0, "tcp.retrans_s": 20.0}))
    assert found.kind == "cpu-path"


def test_threads_of_clients_that_each_fill_a_cpu_are_not_one_that_all_wait_for() -> None:
    heavy = used({"server.cpu": 3.88, "machine.cpu": 4.0}, {"server.proc.cpu_max_thread": 97.0}, cpus=64)
    assert verdict(heavy).kind == "cpu-path"
    one = used({"server.cpu": 2.3, "machine.cpu": 4.0}, {"server.proc.cpu_max_thread": 97.0}, cpus=64)
    assert verdict(one, threads=50).kind == "cpu-thread"
    assert verdict(used({"server.cpu": 0.98}, {"server.proc.cpu_max_thread": 97.0}), threads=1).kind == "cpu-thread"


def test_cpus_that_a_system_is_held_to_are_not_said_to_be_free_where_others_may_fill_them() -> None:
    waiting = used({"server.cpu": 0.3, "server.wait": 3.2})
    found = verdict(waiting, {"pin": {"system": "0"}})
    assert found.kind == "cpu-path"
    assert "was not observed" in found.sentence
    assert "more clients would use more of it" in verdict(waiting).sentence
    driven = used({"server.cpu": 0.4, "server.wait": 3.0, "driver.cpu": 0.55}, cpus=4)
    assert verdict(driven, {"pin": {"system": "0", "driver": "0"}}).kind == "cpu-all"
    assert verdict(driven, {"pin": {"system": "0", "driver": "1"}}).kind == "cpu-path"


@pytest.mark.parametrize(("rate", "kind"), [(1000.0, "driver"), (1040.0, "driver"), (1100.0, "unexplained")])
def test_a_rate_that_was_not_reached_is_not_what_held_the_system_back(rate: float, kind: str) -> None:
    found = verdict(used(), loop="open", rate_per_s=rate, responses={"service_mean": 4.0})
    assert found.kind == kind


def test_a_quota_that_holds_back_without_being_used_up_is_told_beside() -> None:
    bursts = used({"server.cpu": 0.6, "server.wait": 1.6})
    found = verdict(bursts, {"machine": {"cpus": 1}}, status={"machine.throttled_s": 4.0})
    assert found.kind == "cpu-path"
    assert "held it back 0.40 s a second, over its CPUs, though it used 60% of it" in found.against[0]
    assert verdict(bursts, {"machine": {"cpus": 1}}, status={"machine.throttled_s": 0.0}).against == ()


def test_what_set_the_pace_is_said() -> None:
    given = verdict(used(), loop="open", rate_per_s=1000.0, responses={"service_mean": 1.0})
    assert "requests came at a given rate" in given.sentence
    paused = verdict(used(), driver={"loop": {"think_time_s": 1.0}}, responses={"latency_mean": 1.0})
    assert "clients paused between their requests, as asked" in paused.sentence


def test_of_two_limits_that_of_which_more_is_used_is_told_and_whoever_is_unseen_waits_for_it() -> None:
    limits = {"io.limit.reads": 200, "io.limit.read_bytes": 1_100_000}
    both = used({"disk.reads": 196.0}, {"server.proc.blocked": 0.6})
    found = verdict(both, deployed=limits)
    assert (found.kind, found.evidence[0].name) == ("disk-operations", "use of its limit of reads")
    assert "share of the clients' time that was seen nowhere" in {each.name for each in found.evidence}


def test_whoever_asks_without_being_blocked_waits_for_a_limit_unseen() -> None:
    limit = {"io.limit.reads": 200}
    found = verdict(used({"disk.reads": 196.0}), deployed=limit)
    assert found.kind == "disk-operations"
    assert "of the clients' time was spent unseen, as of asynchronous I/O" in found.sentence
    assert verdict(used({"disk.reads": 196.0, **ELSEWHERE}), deployed=limit).kind == "cpu-path"


def test_what_neighbours_swap_is_not_the_systems() -> None:
    swapping = {"vm.si": 3000.0, "server.proc.blocked": 3.0}
    assert verdict(used({"server.major_faults": 2.0}, swapping)).kind == "disk-operations"
    assert verdict(used({"server.major_faults": 40.0}, swapping)).kind == "memory"


def test_a_cell_that_was_slowed_on_purpose_says_so() -> None:
    for dose, said in ((0.0, ()), (0.02, ("It was slowed on purpose (sync-delay 20 ms)",))):
        made = study()
        given = Dose(kind="sync-delay", title="Syncs end later", unit="s", dose=dose)
        cells = (made.cells[0].model_copy(update={"intervention": given}),)
        (found,) = verdicts(made.model_copy(update={"cells": cells}), [run()], {1: used(means=SYNCING)})
        assert tuple(each.partition(":")[0] for each in found.against) == said


def test_what_a_group_did_on_a_loop_device_is_not_counted_once_more_below_it() -> None:
    means = {**BLOCKED, "server.cgroup.r_s": 400.0}
    alone = used({"disk.reads": 196.0}, means).model_copy(update={"own_device": True})
    own = verdict(alone, deployed={"io.limit.reads": 200, "device": "its own"})
    assert own.evidence[0].value == pytest.approx(98)
    shared = verdict(
        used({"disk.reads": 900.0}, {**BLOCKED, "server.cgroup.r_s": 190.0}), deployed={"io.limit.reads": 200}
    )
    assert shared.evidence[0].value == pytest.approx(95)


def test_a_reader_is_told_that_what_is_compared_is_the_studys_own_limit() -> None:
    alone = used({"disk.reads": 196.0}, BLOCKED).model_copy(update={"own_device": True})
    for limit, said in ((200, 1), (2_000, 0)):
        made = study({"machine": {"disk": {"read_iops": limit}}})
        found = analyse(made, [run()], ended="done", used={1: alone})
        assert [each.limited for each in found.verdicts] == (["reads"] if said else [None])
        notes = [each for each in found.notes if "the study's own limit of reads held throughput back" in each]
        assert [each.partition(" the study")[0] for each in notes] == ["In 1 of 1 cell"] * said


QUOTA = {"host": {"machine": {"cpus": 0.5}}, "status": {"machine.throttled_s": 0.1}}
BUSY_CPUS = {"server.cpu": 0.9, "server.wait": 0.1, "machine.cpu": 1.8}
WAITING = {"server.proc.blocked": 0.25, "server.proc.syncing": 0.25}
LARGE = {"disk.busy": 0.9, "disk.read": 100 * 65536.0, "disk.written": 0.0, "disk.writes": 0.0}
EVICTED = {"server.cgroup.refkB_s": 1e6 / 2 / 1024, "server.cgroup.mem": 90.0 * 2**20, "server.proc.blocked": 0.5}
SWAPPED = {"vm.si": 1024.0, "server.proc.blocked": 0.5}
AT_LIMIT = {"deployed": {"io.limit.reads": 200}}

ELSEWHERE = {"server.cpu": 2.0, "driver.cpu": 1.5}

# What is just full, and the figure by which it is; a little less of any of them and it is not.
JUST_FULL: list[tuple[str, str, Usage, dict[str, Any]]] = [
    ("cpu-quota", "server.cpu", used({"server.cpu": 0.45}), QUOTA),
    ("cpu-quota", "machine.throttled_s", used({"server.cpu": 0.45}), QUOTA),
    ("cpu-all", "machine.cpu", used(BUSY_CPUS), {}),
    ("cpu-all", "server.wait", used(BUSY_CPUS), {}),
    ("cpu-thread", "server.proc.cpu_max_thread", used(means={"server.proc.cpu_max_thread": 90.0}), {}),
    ("disk-operations", "disk.reads", used({"disk.reads": 170.0}, WAITING), AT_LIMIT),
    ("disk-operations", "server.proc.blocked", used({"disk.reads": 170.0, **ELSEWHERE}, WAITING), AT_LIMIT),
    ("disk-operations", "server.proc.syncing", used({"disk.reads": 170.0, **ELSEWHERE}, WAITING), AT_LIMIT),
    ("disk-operations", "disk.busy", used({"disk.busy": 0.9}, WAITING), {}),
    ("disk-operations", "server.proc.blocked", used({"disk.busy": 0.9}, WAITING), {}),
    ("disk-bandwidth", "disk.read", used(LARGE, WAITING), {}),
    ("disk-sync", "server.proc.syncing", used(means={"server.proc.syncing": 0.5}), {}),
    ("locks", "server.lock_wait", used({"server.lock_wait": 1.5}), {}),
    ("memory", "server.cgroup.mem", used(means=EVICTED), {"host": {"machine": LIMITED}}),
    ("memory", "server.cgroup.refkB_s", used(means=EVICTED), {"host": {"machine": LIMITED}}),
    ("memory", "server.proc.blocked", used(means=EVICTED), {"host": {"machine": LIMITED}}),
    ("memory", "vm.si", used(means=SWAPPED), {}),
    ("network", "net.ifutil", used(means={"net.ifutil": 80.0, "tcp.oseg_s": 1200.0}), {}),
    ("network", "tcp.retrans_s", used(means={"tcp.retrans_s": 10.0, "tcp.oseg_s": 1000.0}), {}),
]


def full(usage: Usage, host: Mapping[str, Any] | None = None, **of: Any) -> list[str]:
    judged = judge(study(host).cells[0], run(**of), usage)
    assert judged is not None
    return [place.kind for place in judged.places if place.full]


@pytest.mark.parametrize(("kind", "by", "usage", "of"), JUST_FULL)
def test_a_place_is_full_from_its_threshold_on_and_not_below(
    kind: str, by: str, usage: Usage, of: dict[str, Any]
) -> None:
    assert kind in full(usage, **of)
    less = {name: {**figures, by: figures[by] * 0.999} for name, figures in vars(usage).items() if _has(figures, by)}
    status = of.get("status", {})
    if by in status:
        of = {**of, "status": {by: status[by] * 0.999}}
    assert less or by in status
    assert kind not in full(usage.model_copy(update=less), **of)


def _has(figures: object, name: str) -> bool:
    return isinstance(figures, dict) and name in figures


@pytest.mark.parametrize(
    ("syncing", "held"),
    [(1.0, True), (0.99, False)],  # of four clients, of whom the others are seen elsewhere
)
def test_a_full_place_needs_its_share_of_the_clients(syncing: float, held: bool) -> None:
    elsewhere = used({"server.cpu": 1.4, "server.wait": 1.5}, {"server.proc.syncing": syncing})
    assert (verdict(elsewhere).kind == "disk-sync") is held


@pytest.mark.parametrize(("blocked", "kind"), [(2.0, "disk-operations"), (1.99, "unexplained")])
def test_where_nothing_is_full_half_of_the_clients_decide(blocked: float, kind: str) -> None:
    assert verdict(used(means={"server.proc.blocked": blocked})).kind == kind


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("cpu-quota", "the system used 0.49 of the 0.5 CPUs that it may, and it was held back 0.60 s a second"),
        ("cpu-all", "98% of 2 CPUs were busy, the system used 1.20, and 56% of the time that it wanted a CPU"),
        ("cpu-thread", "one thread of the system was on a CPU 97% of the time, while 1.00 of 2 CPUs were used"),
        ("disk-bandwidth", "98% of its limit of bytes read was used, and 3.50 threads of the system waited for it"),
        ("disk-operations", "98% of its limit of reads was used, and 3.50 threads of the system waited for it"),
        ("disk-sync", "at any time 0.95 threads of the system were waiting for a sync to end, while the device was"),
        ("locks", "2.90 of 4 clients waited for a row lock"),
        ("memory", "92% of what was read had been evicted not long before, its memory was 99% full"),
        ("network", "the busiest interface was used 93%, and 0% of segments were sent anew"),
        ("driver", "2.50 of 4 clients were in the driver, running or waiting for a CPU, and the system used 0.40 CPUs"),
        ("unexplained", "83% of the clients' time was spent neither on a CPU, nor waiting for one"),
    ],
)
def test_each_kind_has_its_sentence(kind: str, says: str) -> None:
    usage, of = PLANTED[kind]
    assert says in verdict(usage, **of).sentence
