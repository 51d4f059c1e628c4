"""File systems as systems: real ones, on real loop devices. What is asked is in force, or the run is none; what would
write over somebody's data is refused; nothing stays.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from dyno.cli import check_file
from dyno.hosts import LocalHost, ageing, blockdevices, devices, filesystems, pagecache, undo
from dyno.hosts.blockdevices import Found, Identity
from dyno.hosts.leftovers import loop_devices, mounts_below
from dyno.lab import Ending, Interrupt, Lab, Listener, Rooms
from dyno.model.base import Frozen, InvalidRun, RunError, UserError
from dyno.model.endpoint import Endpoint
from dyno.model.run import Outcome, Step
from dyno.model.study import Study
from dyno.store import Results, new_results
from dyno.systems.base import Place
from dyno.systems.filesystem import FilesystemOptions, FilesystemSystem
from dyno.workloads.base import Checked, Measured, Runner, Workload
from tests.making import make_study, scratch_in

LIMIT_S = 60.0
MIB = 2**20

real = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or devices.mount_of(Path(tempfile.gettempdir())).kind == "tmpfs",
    reason="only root makes file systems, on loop devices, above a disk",
)


@pytest.fixture
def place(host: LocalHost, workspace: Path) -> Place:
    return Place(host=host, data=workspace / "live", logs=workspace / "logs", core="/nonexistent/dyno-core")


def made(place: Place, **options: Any) -> FilesystemSystem:
    given = {"size": "16 MiB"} if "device" not in options else {}
    return FilesystemSystem(FilesystemOptions.model_validate({**given, **options}), place)


def started(place: Place, **options: Any) -> FilesystemSystem:
    system = made(place, **options)
    system.prepare(LIMIT_S)
    system.start(1, LIMIT_S)
    system.ready(LIMIT_S)
    return system


def said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


# ------------------------------------------------------------------------------------------------------------------
# What is asked is in force.


@real
@pytest.mark.parametrize("data", ["journal", "ordered", "writeback"])
@pytest.mark.parametrize("barrier", [True, False])
def test_what_is_asked_of_ext4_is_so_as_the_kernel_and_the_superblock_tell(
    data: str, barrier: bool, place: Place
) -> None:
    system = started(place, data=data, barrier=barrier, journal_size="2 MiB", commit="9 s", block_size="1 KiB")
    settings = system.settings()
    assert {name: settings.get(name) for name in system.asked()} == system.asked()
    assert (settings["data"], settings["barrier"], settings["commit"]) == (data, barrier, 9.0)
    assert (settings["journal_size"], settings["block_size"]) == (2 * MIB, 1024)
    # Once more by another way: what mount(8) and the program that reads superblocks say.
    options = said("findmnt", "--noheadings", "--output", "OPTIONS", str(place.data)).strip().split(",")
    assert f"data={data}" in options or data == "ordered"
    assert ("nobarrier" in options) is not barrier
    assert "commit=9" in options
    system.destroy()


@real
def test_an_option_that_is_not_in_force_is_seen(place: Place) -> None:
    system = started(place, data="ordered", commit="9 s", mount=["noatime", "nodev"])
    assert system.settings()["mount"] == ["noatime", "nodev"]
    subprocess.run(["mount", "-o", "remount,strictatime,commit=12", place.data], check=True)
    settings = system.settings()
    assert settings["commit"] == 12.0
    assert settings["mount"] == ["nodev"]
    assert system.asked()["mount"] == ["noatime", "nodev"]
    system.destroy()


@real
def test_ext4_without_a_journal_has_none(place: Place) -> None:
    system = started(place, journal="none")
    settings = system.settings()
    assert settings["journal"] == system.asked()["journal"] == "none"
    assert not {"data", "journal_size", "commit"} & set(settings)
    system.stop(LIMIT_S)
    system.check(LIMIT_S)
    system.destroy()


@real
def test_what_is_freed_with_discard_is_given_back_and_is_there_again_for_the_next_run(place: Place) -> None:
    system = started(place, size="32 MiB", discard=True)
    image = place.data.with_name("live-image")
    assert image.stat().st_blocks * 512 >= 32 * MIB
    (place.data / "file").write_bytes(b"x" * 8 * MIB)
    system.stop(LIMIT_S)
    (place.data / "file").unlink()
    system.stop(LIMIT_S)
    system.check(LIMIT_S)  # unmounted: whatever was queued is done
    assert system.settings is not None
    assert image.stat().st_blocks * 512 < 30 * MIB
    empty = place.data.parent / "empty"
    empty.mkdir()
    system.restore(empty, LIMIT_S, reflink=False)
    assert image.stat().st_blocks * 512 >= 32 * MIB
    system.destroy()


@real
def test_discard_is_refused_on_a_device_that_does_not(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dyno.systems.filesystem.discards", lambda _device: False)
    with pytest.raises(RunError, match=r"cannot be told what was freed \(system\.config\.discard\): leave discard out"):
        started(place, discard=True)
    started(place, discard=False).destroy()


@real
def test_an_overlay_writes_to_its_upper_layer_on_what_it_lies_on(place: Place) -> None:
    system = started(place, type="overlay", below="ext4", data="journal")
    (place.data / "file").write_text("written")
    assert (place.data.with_name("live-below") / "upper" / "file").read_text() == "written"
    mount = devices.mount_of(place.data / "file")
    assert mount.kind == "overlay"
    settings = system.settings()
    assert (settings["type"], settings["below"], settings["data"]) == ("overlay", "ext4", "journal")
    assert {name: settings.get(name) for name in system.asked()} == system.asked()
    facts = system.facts()
    assert facts["file_system.type"] == "ext4"
    assert "workspace" not in str(facts["file_system.overlay"])
    found = system.device()
    assert found is not None
    assert devices.device_of(place.data).name == found.name
    system.stop(LIMIT_S)
    system.check(LIMIT_S)
    system.destroy()
    assert mounts_below(str(place.data.parent)) == []


@real
def test_every_run_has_a_new_one_and_what_was_loaded_is_on_it(place: Place, workspace: Path) -> None:
    system = started(place)
    (place.data / "loaded").write_text("by the workload")
    system.stop(LIMIT_S)
    system.snapshot(workspace / "snapshot", LIMIT_S)

    def uuid() -> str:
        device = system.device()
        assert device is not None
        return said("blkid", "--probe", "--output", "value", "--match-tag", "UUID", f"/dev/{device.name}")

    before = uuid()
    (place.data / "left").write_text("by a run")
    again = made(place)  # each run has an object of its own
    again.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    assert uuid() != before
    assert [path.name for path in again.data_files()] == ["loaded"]
    again.destroy()


@real
def test_damage_is_found_after_a_run_and_is_looked_for_as_often_as_asked(place: Place) -> None:
    system = started(place, check_every=2)
    (place.data / "folder").mkdir()
    for number in range(50):
        (place.data / "folder" / f"{number}").write_bytes(b"x" * 5000)
    system.stop(LIMIT_S)
    device = system.device()
    assert device is not None
    system.start(2, LIMIT_S)
    system.check(LIMIT_S)
    assert mounts_below(str(place.data)) == []
    subprocess.run(["debugfs", "-w", "-R", "clri folder", f"/dev/{device.name}"], check=True, capture_output=True)
    with pytest.raises(RunError, match=r"^e2fsck -f -n finds the file system damaged \(logs/check\.stdout\)"):
        system.check(LIMIT_S)
    system.start(3, LIMIT_S)
    system.check(LIMIT_S)  # not this time
    assert mounts_below(str(place.data)) != []
    system.destroy()


@real
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_mount_that_another_namespace_keeps_is_waited_for_and_then_told_by_its_process_and_never_called_damage(
    kind: str, place: Place, workspace: Path
) -> None:
    # xfs_repair called a healthy one damaged, and one of ext4 passed as checked that was never unmounted.
    size = {"ext4": "16 MiB", "xfs": "300 MiB", "btrfs": "128 MiB"}[kind]
    system = started(place, type=kind, size=size)
    device = system.device()
    assert device is not None
    with _private_namespace() as other:
        found = (
            rf"^/dev/{device.name} was unmounted and is not released: process {other.pid} \(`sleep 1000`\) still has "
            "it mounted, in a mount namespace of its own$"
        )
        with pytest.raises(RunError, match=found):
            system.check(0.2)
        (workspace / "snapshot").mkdir()
        with pytest.raises(RunError, match=found):
            system.restore(workspace / "snapshot", 0.2, reflink=False)
        other.kill()
        system.check(LIMIT_S)
    system.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    with _private_namespace() as other:
        threading.Timer(0.3, other.kill).start()
        system.check(LIMIT_S)
    system.destroy()


@contextmanager
def _private_namespace() -> Iterator[subprocess.Popen[str]]:
    """A process with copies of all mounts of its own, which no unmounting reaches."""
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo in; exec sleep 1000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "in\n"
            while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


@real
def test_an_image_that_is_in_the_page_cache_is_not_cold(place: Place) -> None:
    system = started(place, direct_io=False)
    (place.data / "file").write_bytes(b"x" * MIB)
    system.stop(LIMIT_S)
    assert system.cached(cold=False)["image_resident_bytes"] >= MIB
    with pytest.raises(InvalidRun, match=r"^caches are not cold: \d+ of 16777216 bytes of the image are in page cache"):
        system.cached(cold=True)
    place.host.evict([place.data.with_name("live-image")])
    assert system.cached(cold=True) == {"image_resident_bytes": 0}
    system.destroy()


@real
def test_an_image_for_which_there_is_no_room_is_refused_with_what_would_be_right(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalHost, "free_disk", lambda _self, _path: 10 * MIB)
    with pytest.raises(
        RunError, match=r"^the image takes 16 MiB \(system\.config\.size\), and .* has 10 MiB free: lower"
    ):
        made(place).provision(LIMIT_S)


# ------------------------------------------------------------------------------------------------------------------
# Aged.


@real
@pytest.mark.parametrize(("kind", "size"), [("ext4", 64), ("btrfs", 160)])
def test_an_aged_one_has_its_free_space_in_pieces_and_each_run_has_the_same(
    kind: str, size: int, place: Place, workspace: Path
) -> None:
    options = {"type": kind, "size": f"{size} MiB", "aged": {"fill": "60%", "rounds": 2}}
    system = made(place, **options)
    assert system.data_key() == made(place, **{**options, "commit": "9 s"}).data_key()
    assert (
        system.data_key() != made(place, **{**options, "mkfs": ["-n" if kind == "btrfs" else "-i", "16384"]}).data_key()
    )
    system.prepare(LIMIT_S)
    system.start(0, LIMIT_S)
    system.stop(LIMIT_S)
    system.snapshot(workspace / "snapshot", LIMIT_S)

    def there() -> dict[str, int]:
        return {path.name: path.stat().st_size for path in (place.data / ageing.FOLDER).rglob("*") if path.is_file()}

    again = made(place, **options, commit="9 s")
    again.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    again.start(1, LIMIT_S)
    kept = there()
    assert len(kept) > 50
    assert "probe" not in kept
    used, total = again.status()["filesystem.used_bytes"], sum(again.status().values())
    assert 0.45 < used / total < 0.65
    assert again.settings()["commit"] == 9.0
    assert again.data_files() == []
    facts = again.facts()
    assert int(facts["file_system.aged.new_file_pieces"]) >= 1
    if kind == "ext4":
        assert int(facts["file_system.aged.free_pieces"]) > 20
    shutil.rmtree(place.data / ageing.FOLDER)
    again.restore(workspace / "snapshot", LIMIT_S, reflink=False)
    assert there() == kept
    again.stop(LIMIT_S)
    again.check(LIMIT_S)
    again.destroy()


# ------------------------------------------------------------------------------------------------------------------
# Block devices: a loop device stands for one.


@pytest.fixture
def disk(workspace: Path) -> Iterator[Path]:
    """A device that somebody else has, with a file system on it."""
    image = workspace / "disk"
    with image.open("xb") as file:
        file.truncate(300 * MIB)  # of which little is ever written
    device = Path(said("losetup", "--find", "--show", str(image)).strip())
    subprocess.run(["mkfs.ext4", "-q", "-U", UUID, device], check=True)
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


UUID = "0b4c7f5e-3d1a-4c8e-9a57-6f0d2b1c3e4a"
OTHER = UUID.replace("0b4c", "ffff")


def given(device: Path, **identity: Any) -> dict[str, Any]:
    return {"device": str(device), "erase": "yes-really", "identity": identity or {"uuid": UUID}}


@real
@pytest.mark.parametrize("kind", ["ext4", "btrfs", "xfs"])
def test_a_device_that_is_what_the_study_says_is_taken_and_is_still_that_afterwards(
    kind: str, disk: Path, place: Place
) -> None:
    link = place.data.with_name("by-id")  # as udev has them
    link.symlink_to(disk)
    system = FilesystemSystem(
        made(place, **given(disk), type=kind, barrier=True).options.model_copy(update={"device": str(link)}), place
    )
    system.provision(LIMIT_S)
    for _ in range(2):
        system.prepare(LIMIT_S)
        system.start(1, LIMIT_S)
        assert system.ready(LIMIT_S).settings == {"folder": str(place.data)}
        assert system.settings()["barrier"] is True
        found = system.device()
        assert found is not None
        assert found.name == disk.name == devices.device_of(place.data).name
        assert "file_system.image_on" not in system.facts()
        system.stop(LIMIT_S)
        system.check(LIMIT_S)
    system.destroy()
    assert mounts_below(str(place.data)) == []
    assert UUID in said("blkid", "--probe", str(disk))


@real
def test_another_device_is_refused_with_what_it_is(disk: Path, place: Place) -> None:
    for identity in ({"uuid": OTHER}, {"serial": "S3Z9NB0K"}, {"wwn": "0x5002538e40a9b1c2"}):
        ((key, value),) = identity.items()
        told = rf"^{disk} is not the device of system\.config\.identity: it has {key} .*, not {value}"
        with pytest.raises(RunError, match=told) as refused:
            made(place, **given(disk, **identity)).provision(LIMIT_S)
        assert (
            f"it holds a file system (ext4). If it is the one that may be lost, its identity is {{uuid: {UUID}"
            in str(refused.value)
        )
    assert UUID in said("blkid", "--probe", str(disk)), "nothing was written"


@real
def test_a_device_that_is_mounted_is_refused(disk: Path, place: Place, workspace: Path) -> None:
    point = workspace / "somebodys"
    point.mkdir()
    subprocess.run(["mount", disk, point], check=True)
    try:
        with pytest.raises(RunError, match=rf"^{disk} is mounted at {point}: unmount it \(umount {point}\) if"):
            made(place, **given(disk)).provision(LIMIT_S)
    finally:
        subprocess.run(["umount", point], check=True)


@real
def test_a_device_that_somebody_has_to_himself_is_refused(disk: Path, place: Place) -> None:
    held = os.open(disk, os.O_RDWR | os.O_EXCL)
    try:
        with pytest.raises(
            RunError, match=rf"^{disk} cannot be had alone, to be written over: Device or resource busy"
        ):
            made(place, **given(disk)).provision(LIMIT_S)
    finally:
        os.close(held)


@real
def test_a_device_of_swap_is_refused(disk: Path, place: Place) -> None:
    subprocess.run(["mkswap", "-U", UUID, disk], check=True, capture_output=True)
    subprocess.run(["swapon", disk], check=True)
    try:
        with pytest.raises(RunError, match=rf"^{disk} is used as swap: take it out \(swapoff {disk}\)"):
            made(place, **given(disk)).provision(LIMIT_S)
    finally:
        subprocess.run(["swapoff", disk], check=True)


@real
def test_a_partition_table_is_told_of_where_the_device_is_not_identified(disk: Path, place: Place) -> None:
    # The table of old PCs: a signature of the disk, a partition from sector 2048 on, and the mark at the end.
    entry = struct.pack("<B3xB3xII", 0, 0x83, 2048, 16384)
    with disk.open("r+b") as file:
        file.write((struct.pack("<440xI2x", 0x1234ABCD) + entry).ljust(510, b"\0") + b"\x55\xaa" + bytes(8192))
    with pytest.raises(RunError, match=r"it holds a partition table \(dos\)\. If it is the one that may be lost"):
        made(place, **given(disk)).provision(LIMIT_S)
    with pytest.raises(RunError) as refused:
        made(place, **given(disk)).provision(LIMIT_S)
    assert "1234abcd}" not in str(refused.value), "no new file system can have that"


@real
def test_words_of_mkfs_never_reach_a_second_device(
    disk: Path, place: Place, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # mkfs.btrfs takes as many devices as it is told; those after the first word were not looked at.
    options = {"type": "btrfs", "size": "160 MiB"}
    with pytest.raises(ValueError, match=f"'{disk}' has a '/': what names a device or a file is not handed on"):
        made(place, **options, mkfs=["-d", "single", str(disk)])
    (workspace / "beside").symlink_to(disk)
    monkeypatch.chdir(workspace)
    system = made(place, **options, mkfs=["-d", "single", "beside"])
    for step in (system.provision, system.prepare):
        with pytest.raises(RunError, match=rf"mkfs would be told 'beside', and {workspace}/beside is there, .* leave"):
            step(LIMIT_S)
    assert UUID in said("blkid", "--probe", str(disk))
    system.destroy()


def test_two_disks_of_one_model_and_size_are_not_told_apart_by_these() -> None:
    disks = [
        {"path": "/dev/sdx", "model": "DISK 9", "size": 100},
        {"path": "/dev/sdy", "model": " DISK 9 ", "size": 100},
        {"path": "/dev/sdz", "model": "DISK 9", "size": 200},
        {"path": "/dev/loop0", "model": None, "size": 0},
    ]
    identity = Identity.model_validate({"model": "DISK 9", "size": "100 B"})
    of = Path("/dev/sdx")
    with pytest.raises(RunError, match=r"model and size do not tell /dev/sdx from /dev/sdy, .*: write its serial or"):
        blockdevices.refuse_alike(of, identity, lambda _words: json.dumps({"blockdevices": disks}))
    blockdevices.refuse_alike(of, identity, lambda _words: json.dumps({"blockdevices": [disks[0], *disks[2:]]}))
    with_serial = identity.model_copy(update={"serial": "AB12"})
    blockdevices.refuse_alike(of, with_serial, lambda _words: json.dumps({"blockdevices": disks}))


@real
def test_of_an_image_it_is_told_what_the_loop_device_does(place: Place) -> None:
    system = started(place)
    assert system.facts()["file_system.direct_io"] is True
    device = system.device()
    assert device is not None
    subprocess.run(["losetup", "--direct-io=off", f"/dev/{device.name}"], check=True)
    assert system.facts()["file_system.direct_io"] is False
    system.destroy()


@real
def test_a_device_that_is_too_small_is_refused(disk: Path, place: Place) -> None:
    identity = Identity(uuid=UUID)
    system = made(place, **given(disk))
    with pytest.raises(RunError, match=rf"^{disk} has 300 MiB, and the file system needs 400 MiB at least"):
        blockdevices.claim(disk, identity, system._ask(LIMIT_S), least=400 * MIB)


@real
@pytest.mark.parametrize(
    ("device", "why"),
    [("/dev/null", "is no block device"), ("/dev/nosuchdisk", "^there is no /dev/nosuchdisk")],
)
def test_what_is_no_block_device_is_refused(device: str, why: str, place: Place) -> None:
    with pytest.raises(RunError, match=rf"{why} .*`lsblk` lists those that there are"):
        made(place, **given(Path(device))).provision(LIMIT_S)


def test_the_device_of_the_root_is_never_taken() -> None:
    root = devices.device_of(Path("/"))
    if root.folder is None:
        pytest.skip("the root is on no block device")
    used = blockdevices.uses(Path("/dev", root.name))
    assert used.words(Path("/dev/it")) == "/dev/it holds the root file system of this machine"


@pytest.mark.parametrize(
    ("identity", "taken"),
    [
        ({"serial": "ab12"}, True),
        ({"serial": "AB12", "wwn": "0x50"}, True),
        ({"model": "DISK 9", "size": "100 MB"}, True),
        ({"model": "DISK 9", "size": "200 MB"}, False),
        ({"serial": "AB12", "uuid": UUID}, False),
        ({"partuuid": UUID}, False),
    ],
)
def test_all_that_is_said_of_a_device_has_to_be_so(identity: dict[str, str], taken: bool) -> None:
    found = Found({"serial": "AB12", "wwn": "0x50", "model": "DISK 9", "size": 100_000_000})
    said_of_it = Identity.model_validate(identity)
    if taken:
        blockdevices.refuse_another(Path("/dev/it"), said_of_it, found)
    else:
        with pytest.raises(RunError, match="is not the device of"):
            blockdevices.refuse_another(Path("/dev/it"), said_of_it, found)


# ------------------------------------------------------------------------------------------------------------------
# A whole study; and nothing stays.


def study(workload: str = "null", **rest: Any) -> Study:
    factors = rest.pop("factors", {"data": ("journal", "writeback")})
    return make_study(
        factors, system="filesystem", workload=workload, options={"size": "16 MiB", **rest.pop("config", {})}, **rest
    )


class Files(Workload[Frozen]):
    """Writes a file before the run and reads it in it: as small a driver of file systems as there can be."""

    kind = "files-of-a-test"
    Options = Frozen
    backends = frozenset({"files"})
    populates = True
    seen: ClassVar[list[dict[str, Any]]] = []

    def reads_back(self) -> bool:
        return True

    def populate(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        self._carry_out(runner, "open(there, 'wb').write(os.urandom(4 << 20)); told['written'] = 4 << 20", endpoint)

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        begun = time.time_ns()
        told = self._carry_out(runner, "told['read'] = len(open(there, 'rb').read())", endpoint)
        return Measured(
            complete=True,
            responses={"throughput": float(told["read"])},
            measured_from_ns=begun,
            measured_to_ns=time.time_ns(),
        )

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        file = Path(endpoint.settings["folder"]) / "file"
        return Checked(status={"resident": float(pagecache.resident_bytes(file))})

    def _carry_out(self, runner: Runner, does: str, endpoint: Endpoint) -> dict[str, Any]:
        program = f"""
import glob, json, os, sys
there, told = os.path.join(sys.argv[1], "file"), {{}}
told["groups"] = open("/proc/self/cgroup").read()
told["limits"] = [open(name).read() for name in glob.glob("/sys/fs/cgroup/**/dyno-*/**/*io*max", recursive=True)
                  + glob.glob("/sys/fs/cgroup/blkio/dyno-*/**/*throttle.write_bps_device", recursive=True)]
{does}
json.dump(told, open(sys.argv[2], "w"))
"""
        told = runner.logs.parent / "told.json"
        assert (
            runner.execute([sys.executable, "-c", program, endpoint.settings["folder"], str(told)], kept_as="own") == 0
        )
        self.seen.append(json.loads(told.read_text()))
        return self.seen[-1]


def carried_out(study: Study, folder: Path, core: str) -> tuple[Ending, Results]:
    """A whole study, in a session of its own."""
    results = Results(new_results(folder / "results", study, b"", {"format": 1}, scratch_in(folder / "results")).folder)
    rooms = Rooms.open()
    rooms = replace(rooms, workloads={**rooms.workloads, Files.kind: Files})
    results.lock()
    with undo.UndoJournal() as journal:
        lab = Lab(
            results,
            LocalHost(journal),
            rooms,
            core=core,
            workspace=folder / "work",
            interrupt=Interrupt(),
            listener=Listener(),
        )
        ending = lab.run()
        assert mounts_below(str(folder)) == []
    results.unlock()
    assert not (folder / "work").exists()
    return ending, Results(results.folder)


@real
def test_a_run_is_of_the_device_of_its_own_and_not_of_what_was_made_for_it(tmp_path: Path, core: str) -> None:
    machine = {"memory": "256 MiB", "disk": {"write_bandwidth": "64 MiB/s"}}
    made_of = study(
        Files.kind, factors={"data": ("journal",)}, caches="cold", observe=("machine",), host={"machine": machine}
    )
    Files.seen.clear()
    ending, results = carried_out(made_of, tmp_path, core)
    assert ending.completed
    assert len(results.runs) == 2
    for record, (making, driving) in zip(results.runs, batched(Files.seen), strict=True):
        assert record.outcome is Outcome.OK, record.cause
        # Where it was, and as what.
        assert record.disk is not None
        assert record.disk.startswith("loop")
        assert record.settings["data"] == record.levels["data"]
        assert record.deployed["device"] == "its own"
        # The driver found cold what was made: all of it was read from the device, and nothing of it written then.
        assert record.populated_to_ns is not None
        assert record.measured_from_ns is not None
        assert record.populated_to_ns <= record.measured_from_ns
        assert (record.caches["data_bytes"], record.caches["resident_bytes"]) == (4 * MIB, 0)
        assert record.caches["image_resident_bytes"] == 0
        assert record.responses["device_read"] >= 4.0
        assert record.responses["device_written"] < 1.0
        # What looked afterwards found it on the device again.
        assert record.status["resident"] == 0
        # Both worked within the limits of its machine; those of its disk were on for the driver alone.
        assert making["groups"] == driving["groups"]
        assert "dyno-" in driving["groups"]
        number = f"7:{record.disk.removeprefix('loop')} "
        assert any(number in told for told in driving["limits"])
        assert not any(number in told for told in making["limits"])
        assert any("threads of the kernel" in note for note in record.notes)
        samples = results.samples(record.run)
        assert record.disk in samples.filter(pl.col("metric") == "disk.wkB_s")["subject"].unique().to_list()


def batched(seen: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return list(zip(seen[::2], seen[1::2], strict=True))


@real
def test_an_image_takes_nothing_of_what_is_to_stay_free(
    tmp_path: Path, core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At the start there is room for the image, and just not for it and what is to stay free.
    monkeypatch.setattr(LocalHost, "free_disk", lambda _self, _path: 40 * MIB)
    ending, results = carried_out(study(free_disk=30 * MIB), tmp_path, core)
    assert not ending.completed
    (record,) = results.runs
    assert (record.outcome, record.step) == (Outcome.FAILED, Step.PREPARE)
    assert record.cause is not None
    assert record.cause.startswith("free disk is 40 MiB; the run would write about 16 MiB and 30 MiB are to stay free")


@pytest.fixture(scope="session")
def core() -> str:
    from dyno.hosts.local import core_binary

    return core_binary()


KILLED = """
import os, signal, sys
from pathlib import Path
from dyno.hosts import LocalHost, undo
from dyno.systems.base import Place
from dyno.systems.filesystem import FilesystemOptions, FilesystemSystem
host = LocalHost(undo.UndoJournal())
folder = host.temporary_folder(Path(sys.argv[1]))
options = FilesystemOptions.model_validate({"size": "16 MiB", "type": sys.argv[2]})
system = FilesystemSystem(options, Place(host=host, data=folder / "live", logs=folder / "logs", core=""))
at = int(sys.argv[3])
started = host.start
def start(argv, **rest):
    global at
    at -= 1
    if at < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return started(argv, **rest)
host.start = start
system.prepare(60)
system.start(1, 60)
(folder / "live" / "file").write_text("written")
os.kill(os.getpid(), signal.SIGKILL)
"""


@real
@pytest.mark.parametrize("commands", [0, 1, 4, 5, 7, 99], ids=lambda at: f"before command {at}")
def test_nothing_stays_after_a_kill_at_any_moment(commands: int, tmp_path: Path, state: Path) -> None:
    folder = tmp_path / "killed"
    words = [sys.executable, "-c", KILLED, str(folder), "overlay", str(commands)]
    assert subprocess.run(words, check=False).returncode == -9
    assert folder.is_dir()
    (cleaned,) = undo.clean(state)
    assert cleaned.stuck == ()
    assert not folder.exists()
    assert mounts_below(str(folder)) == []
    assert loop_devices(str(folder / "live-image")) == []
    assert undo.clean(state) == []


# ------------------------------------------------------------------------------------------------------------------
# What is wrong is one line with file, line and key.

STUDY = """\
study: wrong
question: Is it told?
system:
  kind: filesystem
  config:
    {config}
workload: {{kind: "null"}}
replicates: {{min: 2, max: 2}}
"""
DEVICE = "device: /dev/sdz"
WRONG: dict[str, tuple[str, str]] = {
    "data is of ext4": ("{type: xfs, size: 1 GiB, data: journal}", "data is of ext4, and this is xfs: leave it out"),
    "the same below an overlay": (
        "{type: overlay, below: btrfs, size: 1 GiB, data: journal}",
        "data is of ext4, and this is btrfs: leave it out",
    ),
    "below is of overlays": ("{below: xfs, size: 1 GiB}", "below is of an overlay, and type is ext4: leave it out"),
    "a log of btrfs": (
        "{type: btrfs, size: 1 GiB, journal_size: 8 MiB}",
        "journal_size is of ext4 and xfs, and this is btrfs: leave it out",
    ),
    "a journal as large as all": (
        "{size: 64 MiB, journal_size: 48 MiB}",
        "a journal of 48 MiB does not fit: mkfs gives it half of 64 MiB at most (journal_size)",
    ),
    "commit of xfs": ("{type: xfs, size: 1 GiB, commit: 5 s}", "commit is of ext4 and btrfs, and this is xfs"),
    "half a second": ("{size: 1 GiB, commit: 1.5 s}", "the kernel takes whole seconds (commit)"),
    "half a MiB": ("{size: 1 GiB, journal_size: 1536 KiB}", "mkfs takes whole MiB (journal_size)"),
    "no journal and a mode of it": (
        "{size: 1 GiB, journal: none, data: journal}",
        "data is of a journal, and journal is none: leave one of them out",
    ),
    "barriers of xfs": ("{type: xfs, size: 1 GiB, barrier: false}", "xfs always tells the device to flush"),
    "blocks that there are not": (
        "{size: 1 GiB, block_size: 8 KiB}",
        "ext4 has blocks of 1 KiB or 2 KiB or 4 KiB here, not of 8 KiB (block_size)",
    ),
    "no size": ("{type: ext4}", "how large is the image to be? Write size, such as 4 GiB, or a device"),
    "too small": ("{type: xfs, size: 100 MiB}", "xfs needs 300 MiB at least (size)"),
    "an option twice": (
        "{size: 1 GiB, mount: [noatime, data=journal]}",
        "'data=journal' has a key of its own: write it as data beside mount",
    ),
    "a device and no permission": (f"{{{DEVICE}}}", "all that is on /dev/sdz would be lost: write erase: yes-really"),
    "a permission that is none": (f"{{{DEVICE}, erase: yes}}", "system.config.erase: "),
    "a device and no identity": (
        f"{{{DEVICE}, erase: yes-really}}",
        "which device is /dev/sdz to be? Write identity: {serial: ...}",
    ),
    "an identity that says nothing": (
        f"{{{DEVICE}, erase: yes-really, identity: {{}}}}",
        "write one of serial, wwn, uuid, partuuid, or model and size",
    ),
    "an identity that is lost with what is on it": (
        f"{{{DEVICE}, erase: yes-really, identity: {{uuid: 1234abcd}}}}",
        "'1234abcd' is of a kind that ext4, xfs and btrfs cannot have, so a new one would not be known by it; write "
        "serial, wwn, partuuid, or model and size in place of it",
    ),
    "an identity that mkfs is told to take away": (
        f"{{{DEVICE}, erase: yes-really, identity: {{uuid: {UUID}}}, mkfs: [-m, '0', -U, {OTHER}]}}",
        "the device is known by its uuid, and '-U' of mkfs gives it another: leave it out",
    ),
    "half an identity": (
        f"{{{DEVICE}, erase: yes-really, identity: {{model: X}}}}",
        "model and size belong together",
    ),
    "a device and a size": (
        f"{{{DEVICE}, erase: yes-really, identity: {{serial: X}}, size: 1 GiB}}",
        "size is of an image, and of a device the whole is taken: leave it out",
    ),
    "permission for nothing": ("{size: 1 GiB, erase: yes-really}", "erase is of a device, and none is given"),
    "aged beyond what there is": ("{size: 1 GiB, aged: {fill: 99%}}", "system.config.aged.fill: should be at most 85%"),
    "a word for ageing": (
        "{size: 1 GiB, aged: old}",
        "system.config.aged: should be fresh, or a mapping such as {fill: 70%, rounds: 5}; not 'old'",
    ),
    "a device without its folder": ("{device: sdb}", "'sdb' is no device's path; write it whole, such as /dev/sdb"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_a_line(name: str, tmp_path: Path) -> None:
    config, message = WRONG[name]
    path = tmp_path / "study.yaml"
    text = STUDY.format(config=config).replace("config:\n    {", "config: {")
    path.write_text(text)
    with pytest.raises(UserError) as wrong:
        check_file(path)
    told = str(wrong.value)
    assert re.match(rf"{re.escape(str(path))}:\d+: system\.config", told), told
    assert message in told
    assert "\n" not in told


def test_it_lives_in_no_container(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        STUDY.format(config="size: 1 GiB").replace(
            "kind: filesystem", "kind: filesystem\n  deployment: container-volume"
        )
    )
    with pytest.raises(UserError, match="filesystem cannot live in container-volume: it brings no recipe of an image"):
        check_file(path)


def test_what_is_missing_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_args, **_rest: None)
    with pytest.raises(RunError, match=r"^xfs_repair is missing: install Debian's xfsprogs"):
        filesystems.program("xfs_repair")
