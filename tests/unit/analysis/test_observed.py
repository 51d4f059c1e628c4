"""From what a run used to the figures of the rules: every one is known here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.analysis.test_verdicts import run, study

from dyno.analysis.observed import FIGURES, observed
from dyno.model.usage import Usage

PER_S = {
    "server.cpu": 0.6,
    "server.wait": 0.2,
    "driver.cpu": 0.3,
    "driver.wait": 0.1,
    "machine.cpu": 1.5,
    "machine.steal": 0.2,
    "rest.cpu": 0.6,
    "server.throttled": 0.7,
    "server.read": 4096.0,
    "server.lock_wait": 1.5,
    "disk.busy": 0.5,
    "disk.waited": 0.4,
    "disk.read": 30_000.0,
    "disk.written": 10_000.0,
    "disk.reads": 3.0,
    "disk.writes": 1.0,
}
MEANS = {
    "server.proc.cpu_max_thread": 55.0,
    "server.proc.blocked": 0.25,
    "server.proc.syncing": 0.35,
    "server.cgroup.mem": 30.0 * 2**20,
    "server.cgroup.refkB_s": 1.0,
    "server.cgroup.rkB_s": 20.0,
    "server.cgroup.w_s": 0.5,
    "tcp.oseg_s": 1250.0,
    "tcp.retrans_s": 5.0,
    "net.ifutil": 12.0,
    "vm.si": 10.0,
    "vm.so": 5.0,
    "psi.memory.some": 2.0,
}
DEPLOYED = {"io.limit.read_bytes": 40_960, "io.limit.writes": 2, "io.limit.reads": "none", "device": "shared"}
HELD = {"machine": {"cpus": 0.8, "memory": "40 MiB"}}


def figures(
    per_s: Mapping[str, float] = PER_S,
    means: Mapping[str, float] = MEANS,
    host: Mapping[str, Any] | None = HELD,
    threads: int = 6,
    cpus: float = 2,
    of: str = "server",
    **rest: Any,
) -> dict[str, float]:
    used = Usage(seconds=10, operations=10_000, samples=40, cpus=cpus, per_s=dict(per_s), means=dict(means))
    return dict(observed(study(host, threads).cells[0], run(**{"deployed": DEPLOYED} | rest), used, of))


def test_every_figure_is_what_was_used_of_what_there_was() -> None:
    expected = {
        "cpu": 0.6,
        "waited": 0.2,
        "waited_share": 25.0,
        "busiest": 55.0,
        "quota": 0.8,
        "quota_used": 75.0,
        "throttled": 70.0,
        "cpus": 2.0,
        "rest": 30.0,
        "steal": 10.0,
        "cpus_busy": 85.0,
        "blocked": 0.25,
        "syncing": 0.35,
        "device_busy": 40.0,
        "read": 20_480.0,  # of the group, since others use the device
        "written": 10_000.0,
        "request": 10_000.0,
        "limit.read_bytes": 50.0,
        "limit.writes": 25.0,
        "memory_full": 75.0,
        "refaulted": 25.0,
        "swapped": 15.0,
        "pressure": 2.0,
        "retransmitted": 0.4,
        "interface": 12.0,
        "driver": 0.4,
        "locked": 1.5,
        "clients": 6.0,
        "locked_share": 30.0,
        "unseen": 100 * (6 - 0.6 - 0.2 - 0.4 - 0.25 - 0.35 - 1.5) / 6,
    }
    assert figures() == pytest.approx(expected)
    assert set(expected) <= set(FIGURES)


def test_what_was_not_observed_is_left_out_and_counts_as_nobody() -> None:
    found = figures({"server.cpu": 0.6}, {}, host=None, cpus=0, deployed={})
    assert found == pytest.approx({"cpu": 0.6, "waited": 0.0, "waited_share": 0.0, "clients": 6.0, "unseen": 90.0})


def test_figures_of_the_run_come_before_those_asked_for() -> None:
    deployed = {"cpus.limit": 1.2, "memory.limit": 60 * 2**20, "cpus.allowed": "0-2"}
    status = {"machine.throttled_s": 2.5, "machine.memory_peak_bytes": 54.0 * 2**20}
    found = figures(deployed=deployed, status=status, cpus=4)
    assert (found["quota"], found["quota_used"], found["throttled"]) == pytest.approx((1.2, 50.0, 25.0))
    assert found["memory_full"] == pytest.approx(90.0)
    assert found["cpus"] == 3.0
    without = {name: value for name, value in PER_S.items() if name != "server.lock_wait"}
    assert figures(without, status={"innodb_row_lock_time": 4000.0})["locked"] == pytest.approx(0.4)


@pytest.mark.parametrize(("together", "quota"), [(None, 1.5), (4, 1.5), (1.2, 1.2)])
def test_what_one_of_several_nodes_may_is_not_all_that_they_may_together(together: float | None, quota: float) -> None:
    deployed = {"cpus.limit": 0.5, "nodes": 3, "node.cpus": 0.5}
    host = None if together is None else {"machine": {"cpus": together}}
    assert figures(deployed=deployed, host=host, cpus=4)["quota"] == pytest.approx(quota)
    # Nodes without limits of their own have that of all together.
    deployed = {"cpus.limit": 1.2, "nodes": 3, "node.cpus": "none"}
    assert figures(deployed=deployed, host=host, cpus=4)["quota"] == pytest.approx(1.2)


def test_a_node_that_waits_to_take_over_adds_nothing_to_what_the_serving_one_may() -> None:
    deployed = {"cpus.limit": 0.75, "nodes": 2, "nodes.serving": 1, "node.cpus": 0.75}
    assert figures(deployed=deployed, cpus=4)["quota"] == pytest.approx(0.75)


def test_a_group_below_that_of_the_quota_does_not_know_how_long_it_was_held_back() -> None:
    assert "throttled" not in figures({**PER_S, "server.throttled": 0.0})
    assert figures({**PER_S, "server.throttled": 0.0}, status={"machine.throttled_s": 0.0})["throttled"] == 0.0


def test_a_quota_that_is_no_less_than_the_machine_is_none() -> None:
    assert "quota" not in figures(host={"machine": {"cpus": 2}})
    assert figures(host={"machine": {"cpus": 2}}, cpus=0)["quota"] == 2.0


def test_of_cpus_that_it_is_held_to_a_system_knows_its_own_use_and_that_of_a_driver_held_there_too() -> None:
    full = {**PER_S, "server.cpu": 1.0, "driver.cpu": 0.9}
    together = figures(full, host={"pin": {"system": "0,1", "driver": "1"}}, cpus=4)
    assert (together["cpus"], together["cpus_busy"]) == pytest.approx((2.0, 95.0))
    for driver in ({}, {"driver": "2"}, {"driver": "1,2"}):
        assert "cpus_busy" not in figures(full, host={"pin": {"system": "0,1", **driver}}, cpus=4)
    alone = figures({**full, "server.cpu": 1.9}, host={"pin": {"system": "0,1"}}, cpus=4)
    assert alone["cpus_busy"] == pytest.approx(95.0)


def test_what_the_network_carries_counts_where_each_operation_sends_a_segment() -> None:
    assert "interface" in figures(means={**MEANS, "tcp.oseg_s": 1000.0})
    assert not {"interface", "retransmitted"} & set(figures(means={**MEANS, "tcp.oseg_s": 999.0}))


def test_more_clients_cannot_wait_for_a_row_than_all_but_one() -> None:
    found = figures({**PER_S, "server.lock_wait": 9.0})
    assert (found["locked_share"], found["unseen"]) == (100.0, 0.0)
    assert "locked_share" not in figures(threads=1)


def test_an_embedded_system_is_its_driver() -> None:
    per_s = {"driver.cpu": 0.5, "driver.wait": 0.1}
    means = {"driver.proc.blocked": 0.25, "server.proc.blocked": 9.0}
    found = figures(per_s, means, host={"pin": {"driver": "0"}}, of="driver", threads=1, deployed={})
    assert found == pytest.approx(
        {
            "cpu": 0.5, "waited": 0.1, "waited_share": 100 / 6, "cpus": 1.0, "rest": 0.0, "steal": 0.0,
            "blocked": 0.25, "clients": 1.0, "unseen": 15.0,
        }
    )  # fmt: skip


def test_clients_of_a_given_rate_are_known_by_littles_law() -> None:
    found = figures(loop="open", rate_per_s=2000.0, responses={"service_mean": 3.0, "latency_mean": 50.0})
    assert (found["clients"], found["kept"]) == pytest.approx((3.0, 50.0))
    assert "clients" not in figures(loop="open", rate_per_s=2000.0)


def test_memory_without_a_limit_is_full_where_the_kernel_looks_for_pages() -> None:
    means = {"vm.pgsteal": 9.0, "vm.pgscank": 0.0, "vm.pgscand": 0.0, "vm.refault": 0.5}
    per_s = {**PER_S, "server.read": 8192.0}
    assert "memory_full" not in figures(per_s, means, host=None)
    found = figures(per_s, {**means, "vm.pgscand": 1.0}, host=None)
    assert (found["memory_full"], found["refaulted"]) == (100.0, 25.0)
    assert "refaulted" not in figures(per_s, means, host=HELD)
