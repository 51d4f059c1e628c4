"""What of engines can be seen without one; with them, tests/contract/test_deployments.py has it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, containers, leftovers, programs
from dyno.hosts.cgroups import IO_LIMITS
from dyno.hosts.leftovers import UndoError
from dyno.hosts.processes import facts_of
from dyno.model.base import RunError
from tests.making import until


def test_where_no_engine_is_installed_the_packages_are_named(monkeypatch: pytest.MonkeyPatch, host: LocalHost) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs, "find", lambda _name: None)
    with pytest.raises(RunError, match=r"no engine of containers: apt-get install docker\.io or podman"):
        containers.choose(None)
    with pytest.raises(RunError, match=r"podman not found: apt-get install podman"):
        containers.choose("podman")(host, Path("/nowhere"), Path("/nowhere"))


@pytest.mark.parametrize(("code", "status"), [(0, 0), (1, 1), (125, 125), (137, -9), (143, -15), (255, 255)])
def test_a_signal_is_told_from_a_status(code: int, status: int) -> None:
    assert containers._ended_by(code) == status


@pytest.mark.parametrize(("trap", "whether"), [("trap : TERM", True), ("trap '' TERM", True), (":", False)])
def test_whether_a_process_provides_for_a_signal_is_seen(tmp_path: Path, trap: str, whether: bool) -> None:
    up = tmp_path / "up"
    with subprocess.Popen(["sh", "-c", f"{trap}; : >{up}; read word"], stdin=subprocess.PIPE) as process:
        until(up.exists)
        assert containers._provides_for(process.pid, signal.SIGTERM) == whether
        process.kill()


def test_a_folder_in_which_something_is_mounted_is_not_removed(host: LocalHost, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    (theirs / "thesis").touch()
    (ours / "inner").mkdir(parents=True)
    host.expect_mounts(ours)
    host.run(["mount", "--bind", str(theirs), str(ours / "inner")], limit=10, log=tmp_path / "mount")
    with pytest.raises(UndoError, match="inner is still mounted"):
        leftovers.remove_tree(str(ours))
    assert (theirs / "thesis").exists()
    host.unmount(ours)
    leftovers.remove_tree(str(ours))
    assert (theirs / "thesis").exists()
    assert not ours.exists()


def test_facts_of_a_process_that_has_ended_are_an_error(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(RunError, match=f"cannot look at process {process.pid}"):
        facts_of(process.pid, tmp_path)


def test_facts_of_this_process_are_the_machine_s(tmp_path: Path) -> None:
    facts = facts_of(os.getpid(), tmp_path)
    assert facts["network"] == "host"
    assert facts["namespaces"] == "none"
    assert facts["cpus.allowed"] == ",".join(
        line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "Cpus_allowed_list" in line
    )
    assert len(str(facts["program.sha256"])) == 64
    assert {facts[f"io.limit.{name}"] for name in IO_LIMITS} == {"none"}
