"""Where drivers are started."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dyno.hosts import LocalHost
from dyno.lab.runner import WatchedRunner


def runner(host: LocalHost, folder: Path) -> WatchedRunner:
    quiet: Any = SimpleNamespace(watch=lambda: None, requested=False, driving=lambda *_: None)
    return WatchedRunner(
        host,
        "core",
        folder=folder / "drive",
        logs=folder / "logs",
        limit=30.0,
        guard=quiet,
        interrupt=quiet,
        listener=quiet,
        on_started=lambda _pid: None,
        cpus=str(min(os.sched_getaffinity(0))),
    )


def test_a_driver_is_started_in_dynos_own_network_where_the_system_names_none(host: LocalHost, tmp_path: Path) -> None:
    made = runner(host, tmp_path)
    assert made.execute(["true"], kept_as="driver") == 0
    assert made.commands[0][0] == "taskset"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters a network namespace")
def test_a_driver_is_started_in_the_network_namespace_that_its_system_is_reached_from(
    host: LocalHost, tmp_path: Path
) -> None:
    made = runner(host, tmp_path)
    network = host.networks.make(["n1"])
    try:
        address = network.address("client")
        made.namespace = str(network.path("client"))
        assert made.execute(["ip", "-brief", "address"], kept_as="driver") == 0
    finally:
        network.destroy()
    assert f" {address}/" in (tmp_path / "logs" / "driver.stdout").read_text()
