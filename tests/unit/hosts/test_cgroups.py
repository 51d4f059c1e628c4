"""A machine within the machine: limits of CPU time and memory that hold, whoever is in it, and go with the session."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts import LocalHost, UndoJournal, cgroups, leftovers
from dyno.hosts.accounts import Account
from dyno.hosts.cgroups import (
    Hierarchy,
    Kills,
    controller,
    cpu_numbers,
    hierarchies,
    io_limits_of,
    limits_in_force,
    limits_of,
)
from dyno.hosts.confinement import Confinement
from dyno.hosts.devices import device_of
from dyno.hosts.process import Process
from dyno.model.base import RunError, UserError
from dyno.model.study import Machine
from tests.making import until
from tests.unit.hosts.rights import alone_on_the_machine, needs_root, without_root

LIMIT_S = 30
Start = Callable[..., Process]
MIB = 2**20
NOBODY = Account("nobody", 65534, 65534, ())


def machine(**limits: Any) -> Machine:
    return Machine.model_validate(limits)


def has_limits() -> bool:
    return set(hierarchies()) == set(cgroups.CONTROLLERS)


needs_groups = pytest.mark.skipif(
    os.geteuid() != 0 or not has_limits(), reason="needs root and control groups for cpu and memory"
)


needs_io = pytest.mark.skipif(
    os.geteuid() != 0 or controller("io") is None, reason="needs root and control groups for io"
)


def folders_of(name: str) -> list[Path]:
    return [found for parent in (leftovers.CGROUPS, *leftovers.CGROUPS.glob("*")) if (found := parent / name).exists()]


@pytest.fixture
def start(host: LocalHost, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts programs within a group, and returns when they are there; ends those that are left."""
    started: list[Process] = []

    def begin(confined: Confinement, argv: Sequence[str], account: Account | None = None) -> Process:
        words, account = confined.around(argv, account)
        process = host.start(words, log=tmp_path / "log", account=account)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()


def is_program(pid: int, name: str) -> bool:
    return Path(f"/proc/{pid}/comm").read_text().strip() == name


def groups_of(pid: int) -> dict[str, str]:
    """By controller, as the kernel lists them: those of version 1 by name, all of version 2 in a line without."""
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    by_name = {name: path for _, names, path in lines for name in names.split(",")}
    return {name: by_name.get(name, by_name[""]) for name in cgroups.CONTROLLERS}


@needs_groups
def test_a_machine_has_its_limits_and_they_are_read_back(host: LocalHost) -> None:
    confined = host.confine(machine(cpus=0.5, memory="64 MiB"))
    assert confined.group is not None
    limits = limits_in_force(confined.group)
    assert (limits["cpus"], limits["memory_bytes"]) == (0.5, 64 * MIB)


@needs_groups
def test_memory_that_is_no_whole_number_of_pages_is_rounded_as_the_kernel_does(host: LocalHost) -> None:
    confined = host.confine(machine(memory=f"{64 * MIB + 5} B"))
    assert limits_in_force(confined.group or "")["memory_bytes"] == 64 * MIB


@needs_groups
def test_a_process_is_in_the_group_and_of_its_account_from_its_first_line_on(host: LocalHost, start: Start) -> None:
    confined = host.confine(machine(cpus=1, memory="64 MiB"), "0")
    process = start(confined, ["cat"], NOBODY)
    until(lambda: is_program(process.pid, "cat"))
    assert set(groups_of(process.pid).values()) == {f"{confined.group}/native"}
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    assert "Uid:\t65534\t65534\t65534\t65534" in status
    assert "Cpus_allowed_list:\t0" in status
    limits = limits_of(process.pid)
    assert (limits["cpus"], limits["memory_bytes"]) == (1, 64 * MIB)


@needs_groups
def test_cpu_time_beyond_the_limit_is_waited_for(host: LocalHost, start: Start) -> None:
    confined = host.confine(machine(cpus=0.2))
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    assert start(confined, [sys.executable, "-c", busy]).wait(LIMIT_S) == 0
    assert limits_in_force(confined.group or "")["throttled_s"] > 0


@needs_groups
def test_page_cache_counts_as_memory_and_does_not_end_a_process(host: LocalHost, start: Start, tmp_path: Path) -> None:
    confined = host.confine(machine(memory="32 MiB"))
    writes = f"f = open({str(tmp_path / 'file')!r}, 'wb')\nfor _ in range(64): f.write(bytes({MIB})); f.flush()"
    assert start(confined, [sys.executable, "-c", writes]).wait(LIMIT_S) == 0
    limits = limits_in_force(confined.group or "")
    assert 16 * MIB < limits["memory_peak_bytes"] <= 32 * MIB
    assert host.resident_bytes([tmp_path / "file"]) <= 32 * MIB
    assert limits["oom_kills"] == 0


@needs_groups
def test_a_process_that_needs_more_memory_is_killed_and_counted(host: LocalHost, start: Start) -> None:
    confined = host.confine(machine(memory="32 MiB"))
    assert start(confined, [sys.executable, "-c", f"bytearray({256 * MIB})"]).wait(LIMIT_S) == -signal.SIGKILL
    assert limits_in_force(confined.group or "")["oom_kills"] == 1


@needs_groups
def test_who_was_killed_for_memory_is_known_though_its_own_group_is_gone(host: LocalHost, start: Start) -> None:
    # An engine removes a container's group as soon as its server has ended, and version 1 counted the kill there.
    confined = host.confine(machine(memory="32 MiB"))
    with closing(Kills(confined.group or "")) as earlier:
        children = [folder / "container" for folder in folders_of((confined.group or "").strip("/"))]
        for child in children:
            child.mkdir()
        inside = replace(confined, procs=tuple(child / "cgroup.procs" for child in children))
        assert start(inside, [sys.executable, "-c", f"bytearray({256 * MIB})"]).wait(LIMIT_S) == -signal.SIGKILL
        for child in children:
            child.rmdir()
        assert earlier.count() == 1
        assert earlier.count() == 1
        with closing(Kills(confined.group or "")) as later:
            assert later.count() == 0


@needs_groups
def test_equal_machines_share_a_group_and_others_have_their_own(host: LocalHost) -> None:
    first = host.confine(machine(cpus=1, memory="64 MiB"), "0")
    again = host.confine(machine(cpus=1, memory="64 MiB"))
    other = host.confine(machine(cpus=1, memory="65 MiB"))
    assert again.group == first.group
    assert (first.cpus, again.cpus) == ("0", None)
    assert other.group == f"{first.group}-2"


@needs_groups
def test_each_node_has_a_group_of_its_own_below_that_of_its_site(host: LocalHost, start: Start) -> None:
    site = host.confine(machine(cpus=0.8, memory="128 MiB"), "0")
    one, two = (host.confine_node(name, machine(cpus=0.5, memory="64 MiB"), site) for name in ("n1", "n2"))
    assert one.group != two.group
    for node in (one, two):
        assert Path(node.group or "").parent == Path(site.group or "")
        process = start(node, ["cat"], NOBODY)
        until(lambda pid=process.pid: is_program(pid, "cat"))  # type: ignore[misc]
        assert set(groups_of(process.pid).values()) == {f"{node.group}/native"}
        limits = limits_of(process.pid)
        assert (limits["cpus"], limits["memory_bytes"]) == (0.5, 64 * MIB)
        assert "Cpus_allowed_list:\t0" in Path(f"/proc/{process.pid}/status").read_text().splitlines()
    assert host.confine_node("n1", machine(cpus=0.5, memory="64 MiB"), site) == one


@needs_groups
def test_memory_that_one_node_uses_up_is_not_its_neighbours(host: LocalHost, start: Start, tmp_path: Path) -> None:
    one, two = (host.confine_node(name, machine(memory="32 MiB")) for name in ("n1", "n2"))
    writes = f"f = open({str(tmp_path / 'file')!r}, 'wb')\nfor _ in range(64): f.write(bytes({MIB})); f.flush()"
    assert start(one, [sys.executable, "-c", writes]).wait(LIMIT_S) == 0
    assert limits_in_force(one.group or "")["memory_peak_bytes"] > 16 * MIB
    assert limits_in_force(two.group or "")["memory_peak_bytes"] < MIB


@needs_groups
def test_a_node_that_does_not_fit_into_its_site_is_refused(host: LocalHost) -> None:
    site = host.confine(machine(cpus=0.5))
    with pytest.raises(UserError, match=r"a node of 1 CPUs does not fit into a machine of 0.5"):
        host.confine_node("n1", machine(cpus=1), site)


@needs_io
def test_the_disk_of_one_node_can_be_made_slow_and_as_fast_as_before(
    host: LocalHost, start: Start, workspace: Path
) -> None:
    one, two = (host.confine_node(name, machine()) for name in ("n1", "n2"))
    device = device_of(workspace)
    processes = [start(each, ["cat"]) for each in (one, two)]
    for process in processes:
        until(lambda pid=process.pid: is_program(pid, "cat"))  # type: ignore[misc]
    host.limit_disk(one, {"writes": 20, "write_bytes": MIB}, workspace)
    limits = [io_limits_of(process.pid, device.numbers()) for process in processes]
    assert limits == [{"writes": 20, "write_bytes": MIB}, {}]
    writes = (
        "import os, time\n"
        f"handle = os.open({str(workspace / 'file')!r}, os.O_WRONLY | os.O_CREAT | os.O_DSYNC)\n"
        "begun = time.monotonic()\n"
        "for _ in range(10): os.write(handle, b'x' * 4096)\n"
        "print(time.monotonic() - begun)"
    )
    took = []
    for node in (one, two):
        log = workspace / f"log{len(took)}"
        argv, _ = node.around([sys.executable, "-c", writes], None)
        took.append(float(host.run(argv, limit=LIMIT_S, log=log)))
    assert took[0] > 0.3, "ten writes at twenty a second, of which a slice's first share is free"
    assert took[1] < took[0]
    host.release_disk(one, ["writes", "write_bytes"], workspace)
    assert io_limits_of(processes[0].pid, device.numbers()) == {}


@needs_groups
def test_groups_of_nodes_go_with_the_session(state: Path) -> None:
    with UndoJournal() as journal:
        host = LocalHost(journal)
        site = host.confine(machine(cpus=1))
        below, beside = host.confine_node("n1", machine(cpus=0.5), site), host.confine_node("n2", machine())
        names = [(each.group or "").strip("/") for each in (site, below, beside)]
        assert all(folders_of(name) for name in names)
        assert all(f"dyno-{journal.token}" in name for name in names)
    assert [folder for name in names for folder in folders_of(name)] == []


@needs_groups
def test_a_limit_of_a_group_above_holds_below(host: LocalHost) -> None:
    confined = host.confine(machine(cpus=0.5, memory="64 MiB"))
    for name in folders_of((confined.group or "").strip("/")):
        (name / "container").mkdir()
    limits = limits_in_force(f"{confined.group}/container")
    assert (limits["cpus"], limits["memory_bytes"]) == (0.5, 64 * MIB)


@needs_io
def test_a_machine_holds_what_is_in_it_to_its_part_of_the_disk(host: LocalHost, start: Start, workspace: Path) -> None:
    asked = machine(disk={"read_bandwidth": "1 MiB/s", "write_iops": 50})
    confined = host.confine(asked)
    held = host.limit_disk(confined, asked.disk.limits, workspace)
    device = device_of(workspace)
    assert held.device == Path(f"/dev/{device.disk()}")
    process = start(confined, ["cat"])
    until(lambda: is_program(process.pid, "cat"))
    assert io_limits_of(process.pid, device.numbers()) == {"read_bytes": MIB, "writes": 50}
    assert io_limits_of(os.getpid(), device.numbers()) == {}
    host.release_disk(confined, asked.disk.limits, workspace)
    assert io_limits_of(process.pid, device.numbers()) == {}
    host.limit_disk(confined, asked.disk.limits, workspace)
    assert io_limits_of(process.pid, device.numbers()) == {"read_bytes": MIB, "writes": 50}


@needs_io
def test_a_group_with_limits_of_a_disk_goes_with_the_session() -> None:
    with closing(UndoJournal()) as journal:
        host = LocalHost(journal)
        confined = host.confine(machine(disk={"read_iops": 5}))
        assert folders_of((confined.group or "").strip("/"))
    assert not folders_of((confined.group or "").strip("/"))


@needs_io
def test_data_on_no_block_device_have_no_disk_to_limit(host: LocalHost) -> None:
    confined = host.confine(machine(disk={"read_iops": 5}))
    with pytest.raises(RunError, match=r"host.machine.disk cannot be kept to: the data are on \w+, which is no block"):
        host.limit_disk(confined, {"reads": 5}, Path("/proc"))


def test_a_kernel_without_limits_of_disks_is_told_of(
    host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    with pytest.raises(RunError, match=r"host\.machine\.disk cannot be kept to: this kernel offers no control groups"):
        host.confine(machine(disk={"read_iops": 5}))


def test_of_version_2_the_group_above_has_the_limits_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours" / "native").mkdir(parents=True)
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    device = device_of(tmp_path)
    number = Path(f"/sys/block/{device.disk()}/dev").read_text().strip()
    held = cgroups.limit_disk("/ours", device, {"reads": 5})
    assert held.inherited
    assert (tmp_path / "ours" / "io.max").read_text() == f"{number} riops=5"


def test_without_limits_there_is_no_group(host: LocalHost) -> None:
    assert host.confine(Machine()) == Confinement()
    assert host.confine(Machine(), "0") == Confinement(cpus="0")


@needs_groups
def test_containers_have_a_group_above_them_also_without_limits(host: LocalHost) -> None:
    confined = host.confine(Machine(), parent=True)
    assert confined.group is not None
    assert folders_of(confined.group.strip("/"))
    assert "cpus" not in limits_in_force(confined.group)


@needs_groups
def test_a_group_is_in_the_journal_before_it_exists(
    host: LocalHost, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    really = Path.mkdir

    def watched(path: Path, *args: Any, **kwargs: Any) -> None:
        (journal,) = (state / "undo").glob("*.jsonl")
        seen.append(f'"{next(part for part in path.parts if part.startswith("dyno-"))}"' in journal.read_text())
        really(path, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", watched)
    host.confine(machine(cpus=1))
    assert seen
    assert all(seen)


@needs_groups
def test_the_end_of_the_session_ends_what_is_in_its_groups_and_removes_them() -> None:
    """What runs in a container carries no token of the session's: it is found by its group alone."""
    with UndoJournal() as journal:
        host = LocalHost(journal)
        name = (host.confine(machine(cpus=1)).group or "").strip("/")
        inner = [folder / "container" / "inner" for folder in folders_of(name)]
        for folder in inner:
            folder.mkdir(parents=True)
        stranger = subprocess.Popen(["sleep", "1000"], env={})
        for folder in inner:
            (folder / "cgroup.procs").write_text(str(stranger.pid))
    assert stranger.wait(LIMIT_S) == -signal.SIGKILL
    assert folders_of(name) == []


@needs_groups
def test_what_the_kernel_refuses_is_an_error_and_leaves_no_group(
    journal: UndoJournal, host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_PERIOD_US", 2_000_000)  # more than the second that it takes
    with pytest.raises(RunError, match=r"cannot set cpu\S+ to .*2000000: Invalid argument"):
        host.confine(machine(cpus=1))
    assert folders_of(f"dyno-{journal.token}") == []
    monkeypatch.undo()
    assert host.confine(machine(cpus=1)).group == f"/dyno-{journal.token}"


def test_a_limit_that_is_not_taken_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").symlink_to("/dev/null")
    with pytest.raises(RunError, match=r"cannot set cpu\.max to 100000 100000: it is  after that was written"):
        cgroups._limit("cpu", 2, tmp_path, machine(cpus=1))


def test_limits_need_root(host: LocalHost) -> None:
    if not has_limits():
        pytest.skip("no control groups for cpu and memory")
    with without_root(), pytest.raises(RunError, match=r"control groups \(host\.machine, containers\) need root"):
        host.confine(machine(cpus=1))


def test_a_kernel_without_the_controller_is_told_of(
    host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    with pytest.raises(RunError, match="this kernel offers no control groups for memory"):
        host.confine(machine(memory="1 GiB"))
    with pytest.raises(RunError, match="this kernel offers no control groups"):
        host.confine(Machine(), parent=True)


def test_a_machine_larger_than_this_one_is_refused(host: LocalHost) -> None:
    there = len(os.sched_getaffinity(0))
    with pytest.raises(UserError, match=f"a machine of {there + 1} CPUs cannot be had: {there} may be used here"):
        host.confine(machine(cpus=there + 1))
    with pytest.raises(UserError, match=r"a machine of 1\.5 CPUs cannot be had: 1 are in '0'"):
        host.confine(machine(cpus=1.5), "0")
    with pytest.raises(UserError, match="a machine with 1024 TiB of memory cannot be had: this one has "):
        host.confine(machine(memory="1024 TiB"))


@pytest.mark.parametrize(
    ("text", "numbers"), [("0", {0}), ("1", {1}), ("0-1", {0, 1}), ("0,1", {0, 1}), ("4-5, 0", {0, 4, 5})]
)
def test_cpus_are_named_one_by_one_and_from_to(monkeypatch: pytest.MonkeyPatch, text: str, numbers: set[int]) -> None:
    monkeypatch.setattr(cgroups, "_usable", lambda: {0, 1, 4, 5})
    assert cpu_numbers(text) == numbers


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-0", "0,,1", "0;1", "0-1-2", "+1", "٣"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a list of CPUs such as 0-1,3"):
        cpu_numbers(text)


@pytest.mark.parametrize(("text", "missing"), [("2", 2), ("0-5", 2), ("1,6", 6), ("0-999999999999", 2)])
def test_a_cpu_that_may_not_be_used_is_named(monkeypatch: pytest.MonkeyPatch, text: str, missing: int) -> None:
    monkeypatch.setattr(cgroups, "_usable", lambda: {0, 1, 4, 5})
    with pytest.raises(
        UserError, match=f"there is no CPU {missing}, of '{text}', that may be used here; there are 0,1"
    ):
        cpu_numbers(text)


def test_which_version_a_controller_is_of_is_seen_for_each(tmp_path: Path) -> None:
    def lay_out(name: str, *controllers_v1: str, v2: str = "", offers: str = "") -> Path:
        root = tmp_path / name
        for each in controllers_v1:
            (root / each).mkdir(parents=True)
            (root / each / "cgroup.procs").write_text("")
        (root / v2).mkdir(parents=True, exist_ok=True)
        if offers:
            (root / v2 / "cgroup.controllers").write_text(offers + "\n")
        return root

    one = lay_out("v1", "cpu", "memory", "blkio")
    assert hierarchies(one) == {"cpu": Hierarchy(one / "cpu", 1), "memory": Hierarchy(one / "memory", 1)}
    two = lay_out("v2", offers="cpuset cpu io memory pids")
    assert hierarchies(two) == {"cpu": Hierarchy(two, 2), "memory": Hierarchy(two, 2)}
    both = lay_out("hybrid", "cpu", v2="unified", offers="memory hugetlb")
    assert hierarchies(both) == {"cpu": Hierarchy(both / "cpu", 1), "memory": Hierarchy(both / "unified", 2)}
    assert hierarchies(tmp_path / "none") == {}


# ------------------------------------------------------------------------------------------------------------------
# Version 2: the steps with the kernel's own, by a controller that this machine has in it; limits in a folder like it.


@pytest.fixture
def spare() -> str:
    """A controller that is in a hierarchy of version 2 and that nobody uses."""
    for top in (leftovers.CGROUPS, leftovers.CGROUPS / "unified"):
        if os.geteuid() == 0 and os.access(top / "cgroup.subtree_control", os.W_OK):
            offered = set((top / "cgroup.controllers").read_text().split())
            unused = offered - set((top / "cgroup.subtree_control").read_text().split())
            if unused:
                return sorted(unused)[0]
    pytest.skip("there is no control group of version 2 with a controller that nobody uses, or no root")


@needs_root
def test_a_controller_of_version_2_is_turned_on_for_the_session_alone(
    spare: str, state: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "CONTROLLERS", (spare,))
    hierarchy = hierarchies()[spare]
    control = hierarchy.top / "cgroup.subtree_control"
    with alone_on_the_machine():
        before = control.read_text()
        with UndoJournal() as journal:
            host = LocalHost(journal)
            confined = host.confine(Machine(), parent=True)
            assert hierarchy.version == 2
            assert spare in control.read_text().split()
            group = hierarchy.top / (confined.group or "").strip("/")
            assert confined.procs == (group / "native" / "cgroup.procs",)
            assert spare in (group / "native" / "cgroup.controllers").read_text().split()
            process = start(confined, ["cat"], NOBODY)
            until(lambda: is_program(process.pid, "cat"))
            assert Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()[-1] == f"0::{confined.group}/native"
            file = state / "undo" / f"{journal.token}.jsonl"
            kinds = [json.loads(line)["kind"] for line in file.read_text().splitlines()]
            assert kinds == ["processes", "cgroup-controllers", "cgroup"]
        assert control.read_text() == before
        assert not group.exists()


@pytest.fixture
def like_v2(journal: UndoJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder like the kernel's: a group that is made in it has its files at once. It goes before the journal."""
    root = tmp_path / "cgroup"
    really = Path.mkdir

    def with_files(path: Path, *args: Any, **kwargs: Any) -> None:
        really(path, *args, **kwargs)
        if path.is_relative_to(root):
            empty = dict.fromkeys(("cgroup.procs", "cgroup.subtree_control"), "")
            limits = {"cpu.max": "max 100000\n", "memory.max": "max\n", "memory.swap.max": "max\n"}
            for name, text in {**empty, **limits, "cgroup.controllers": "cpu memory\n"}.items():
                (path / name).write_text(text)

    monkeypatch.setattr(Path, "mkdir", with_files)
    root.mkdir()
    (root / "cgroup.subtree_control").write_text("cpu memory pids\n")
    for limit in ("cpu.max", "memory.max", "memory.swap.max"):
        (root / limit).unlink()  # the root has none
    monkeypatch.setattr(leftovers, "CGROUPS", root)
    yield root
    shutil.rmtree(root)


@needs_root
def test_version_2_has_all_limits_in_one_group_and_no_process_beside_its_children(
    like_v2: Path, journal: UndoJournal
) -> None:
    confined = LocalHost(journal).confine(machine(cpus=0.5, memory="64 MiB"))
    group = like_v2 / f"dyno-{journal.token}"
    assert confined.group == f"/{group.name}"
    assert confined.procs == (group / "native" / "cgroup.procs",)
    texts = {name: (group / name).read_text() for name in ("cpu.max", "memory.max", "memory.swap.max")}
    assert texts == {"cpu.max": "50000 100000", "memory.max": str(64 * MIB), "memory.swap.max": "0"}
    assert (group / "cgroup.subtree_control").read_text() == "+cpu +memory"
    (group / "memory.peak").write_text("4096\n")
    (group / "memory.events").write_text("max 3\noom 2\noom_kill 1\n")
    (group / "cpu.stat").write_text("usage_usec 5\nnr_throttled 3\nthrottled_usec 1500000\n")
    (group / "native" / "cpu.max").write_text("70000 100000\n")
    expected = {"cpus": 0.5, "memory_bytes": 64 * MIB, "memory_peak_bytes": 4096, "oom_kills": 1, "throttled_s": 1.5}
    assert limits_in_force(confined.group) == expected
    below = limits_in_force(f"{confined.group}/native")
    assert (below["cpus"], below["memory_bytes"]) == (0.5, 64 * MIB)


def test_limits_of_io_are_those_of_the_group_on_these_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    v1 = tmp_path / "blkio" / ours.get("blkio", "").strip("/")
    v1.mkdir(parents=True)
    (v1 / "blkio.throttle.read_bps_device").write_text("7:0 1000\n254:0 500\n8:0 3\n")
    (v1 / "blkio.throttle.write_iops_device").write_text("254:0 20\n")
    if "blkio" in ours:
        assert io_limits_of(os.getpid(), ("7:0", "254:0")) == {"read_bytes": 500, "writes": 20}
        assert io_limits_of(os.getpid(), ("9:9",)) == {}
    assert io_limits_of(2**22 + 1, ("7:0",)) == {}


def test_limits_of_io_of_version_2_are_the_least_on_the_way_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "io.max").write_text("7:0 rbps=1000 wbps=max riops=max wiops=max\n")
    (inner.parent / "io.max").write_text("7:0 rbps=2000 wbps=max riops=30 wiops=max\n254:0 wiops=1\n")
    found: dict[str, float] = {}
    for name, limit in cgroups._io_limits([""], "a/b", ("7:0",)):
        found[name] = min(limit, found.get(name, limit))
    assert found == {"read_bytes": 1000, "reads": 30}
