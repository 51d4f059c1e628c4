"""What `dyno doctor` says of containers, file systems and limits: what is there, what it is for, and how to get it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dyno.hosts import doctor
from tests.unit.hosts.rights import without_root


@pytest.fixture
def checks(tmp_path: Path) -> dict[str, doctor.Check]:
    return {check.name: check for check in doctor.examine(tmp_path)}


def program(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    "name",
    [
        "Docker",
        "Podman",
        "ext4",
        "xfs",
        "btrfs",
        "fio",
        "loop devices",
        "CPU and memory limits",
        "perf",
        "networks of nodes",
        "Galera",
        "MySQL",
        "MySQL Router",
        "haproxy",
        *(
            f"systems of kind {kind}"
            for kind in ("group-replication", "mysql-replication", "galera", "replicated-disk")
        ),
        "DuckDB",
    ],
)
def test_what_make_servers_and_the_kernel_bring_is_found(name: str, checks: dict[str, doctor.Check]) -> None:
    check = checks[name]
    assert check.holds, f"{check.found}; {check.remedy}"
    assert not check.needed, "it opens a possibility"


@pytest.mark.parametrize(
    ("name", "found", "remedy"),
    [
        ("Docker", "dockerd and runc not installed", "install Debian's docker.io"),
        ("Podman", "podman and runc not installed", "install Debian's podman"),
        (
            "ext4",
            "mkfs.ext4 is not installed",
            "systems of kind filesystem and `host.file_system` of kind ext4: install",
        ),
        ("fio", "fio is not installed", "workloads of kind fio: install Debian's fio"),
        ("xfs", "mkfs.xfs is not installed", "`host.file_system` of kind xfs: install Debian's xfsprogs"),
        ("btrfs", "mkfs.btrfs is not installed", "`host.file_system` of kind btrfs: install Debian's btrfs-progs"),
        ("perf", "perf is not installed", "install Debian's linux-perf"),
        ("networks of nodes", "nsenter is not installed", "systems of several nodes: root, Debian's iproute2"),
        ("sysbench", "sysbench is not installed", "install Debian's sysbench"),
    ],
)
def test_what_is_missing_is_named_with_what_it_is_for_and_how_to_get_it(
    name: str, found: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_keys: None)
    check = next(check for check in doctor.examine(tmp_path) if check.name == name)
    assert (check.holds, check.found) == (False, found)
    assert remedy in check.remedy


def test_without_root_the_doctor_says_that_no_network_can_be_made(tmp_path: Path) -> None:
    with without_root():
        check = doctor._networks("networks of nodes", tmp_path)
    assert (check.holds, check.found) == (False, "a namespace of the network needs root")


def test_a_folder_with_mysql_that_lacks_a_part_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO_MYSQL_ROOT", str(tmp_path))
    program(tmp_path, "mysqld")
    check = doctor._mysql("MySQL", tmp_path)
    assert (check.holds, check.found) == (False, "no folder with all of it")
    assert "`dyno get mysql`" in check.remedy


def test_a_client_without_an_engine_is_not_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "docker")
    program(tmp_path / "bin", "runc")
    monkeypatch.setattr(
        doctor, "_found", lambda name: str(tmp_path / "bin" / name) * (tmp_path / "bin" / name).exists() or None
    )
    check = doctor._engine("dockerd", "docker.io")("Docker", tmp_path)
    assert (check.holds, check.found) == (False, "dockerd not installed")
    program(tmp_path / "bin", "dockerd")
    assert doctor._engine("dockerd", "docker.io")("Docker", tmp_path).holds


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"cgroup.controllers": "cpuset cpu io memory pids"}, "control groups of cpu, cpuset, memory, version 2"),
        ({"cpu/x": "", "cpuset/x": "", "memory/x": ""}, "control groups of cpu, cpuset, memory, version 1"),
        ({"cgroup.controllers": "memory", "cpu/x": "", "cpuset/x": ""}, "version 1 and 2"),
        ({"cgroup.controllers": "cpu io", "memory/x": ""}, "no control groups of cpuset"),
        ({}, "no control groups of cpu, cpuset, memory"),
    ],
)
def test_controllers_are_found_in_either_version(
    files: dict[str, str], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(doctor, "CGROUPS", tmp_path)
    check = doctor._cgroups("limits", tmp_path)
    assert found in check.found
    assert check.holds == ("no control" not in found)
    assert check.holds or "`host.machine`" in check.remedy


def test_without_root_the_doctor_says_what_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check = doctor._root("root", tmp_path)
    assert (check.holds, check.found) == (False, "no")
    for word in ("kernel settings", "limits", "file systems", "containers"):
        assert word in check.remedy


def test_a_kind_of_cluster_says_what_it_is_without() -> None:
    known = dict.fromkeys((name for needs in doctor.CLUSTERS.values() for name in needs), True)
    check = doctor._cluster("galera", doctor.CLUSTERS["galera"], {**known, "haproxy": False, "root": False})
    assert (check.holds, check.found) == (False, "without root, haproxy")
    assert doctor._cluster("galera", doctor.CLUSTERS["galera"], known).holds


def test_cratedb_is_found_where_its_folder_is_named_and_what_it_lacks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> doctor.Check:
        return next(each for each in doctor.examine(tmp_path) if each.name == "CrateDB")

    monkeypatch.delenv("CRATE_HOME", raising=False)
    assert (found().holds, found().found) == (False, "CRATE_HOME is not set")
    monkeypatch.setenv("CRATE_HOME", str(tmp_path))
    assert found().found == f"{tmp_path} has no bin/crate, lib/crate-server-*.jar"
    assert "unpack CrateDB's distribution" in found().remedy


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (Path("/bin/true"), "`dyno get questdb`"),
        (None, "`dyno get questdb`; install Debian's default-jre-headless, or set JAVA_HOME"),
    ],
)
def test_of_questdb_only_what_is_not_there_is_to_be_got(
    found: Path | None, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor.java, "find", lambda _least: found)
    (check,) = doctor.lacking(["QuestDB"], tmp_path)
    assert check.remedy == f"for systems of kind questdb: {remedy}"
    assert ("no Java" in check.found) == (found is None)


def test_only_what_is_named_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRATE_HOME", raising=False)
    monkeypatch.setattr(doctor, "_load", lambda *_: pytest.fail("nobody asked"))
    assert [check.name for check in doctor.lacking(["CrateDB", "Python"], tmp_path)] == ["CrateDB"]
