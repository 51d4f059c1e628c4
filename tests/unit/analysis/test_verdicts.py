"""What held a cell back, from figures of which each verdict follows by the rules of docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.making import make_study

from dyno.analysis.observed import THRESHOLDS
from dyno.analysis.verdicts import verdicts
from dyno.model.findings import BottleneckVerdict
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
    assert len(THRESHOLDS) == 20


def test_what_a_group_did_on_a_loop_device_is_not_counted_once_more_below_it() -> None:
    means = {**BLOCKED, "server.cgroup.r_s": 400.0}
    own = verdict(used({"disk.reads": 196.0}, means), deployed={"io.limit.reads": 200, "device": "its own"})
    assert own.evidence[0].value == pytest.approx(98)
    shared = verdict(
        used({"disk.reads": 900.0}, {**BLOCKED, "server.cgroup.r_s": 190.0}), deployed={"io.limit.reads": 200}
    )
    assert shared.evidence[0].value == pytest.approx(95)
