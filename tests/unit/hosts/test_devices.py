"""The device below a path, what it has read and written, and what no device of its kind can do."""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, devices
from dyno.hosts.devices import Device, DeviceCounters, device_of, mount_of, too_fast
from dyno.hosts.undo import Change, UndoJournal
from dyno.model.base import RunError
from dyno.model.study import FileSystem

LIMIT_S = 60.0
MIB = 1024**2
DISK = Path("/nowhere/sda")

real = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or devices.mount_of(Path(tempfile.gettempdir())).kind == "tmpfs",
    reason="only root makes file systems, on loop devices, above a disk",
)


def disk(folder: Path, name: str, **values: str) -> Path:
    """A disk as /sys tells of it: no machine has one of each kind."""
    made = folder / "block" / name
    for path, value in values.items():
        file = made / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    made.mkdir(parents=True, exist_ok=True)
    return made


# ------------------------------------------------------------------------------------------------------------------
# Which one.


@real
@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_what_is_written_and_read_is_counted_at_the_loop_device_and_below(
    kind: str, host: LocalHost, workspace: Path
) -> None:
    spec = FileSystem.model_validate({"kind": kind, "size": "128 MiB"})
    made = host.make_file_system(spec, workspace / "image", workspace / "data", LIMIT_S)
    device = device_of(made.folder)
    assert (device.name, device.kind) == (made.device.name, "loop")
    assert device.below == device_of(workspace)
    assert device.hardware() == device_of(workspace).hardware()
    before, below = device.counters(), device_of(workspace).counters()
    with (made.folder / "file").open("wb") as file:
        file.write(os.urandom(8 * MIB))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert len((made.folder / "file").read_bytes()) == 8 * MIB
    done = device.counters() - before
    # All of it was read anew, and nothing was written twice but the file system's own notes.
    assert 8 * MIB <= done.read_bytes < 9 * MIB
    assert 8 * MIB <= done.written_bytes < 12 * MIB
    assert 0 < done.reads <= 8 * MIB // 4096
    assert 0 < done.writes <= 12 * MIB // 4096
    assert done.flushes is not None
    assert done.flushes > 0, "fsync flushes the device"
    lower = device_of(workspace).counters() - below
    assert lower.written_bytes >= 8 * MIB
    assert lower.read_bytes >= 8 * MIB, "direct I/O: no page cache below answered"


@real
def test_the_device_is_found_through_bind_mounts_and_overlays(
    host: LocalHost, workspace: Path, journal: UndoJournal
) -> None:
    spec = FileSystem.model_validate({"size": "64 MiB"})
    made = host.make_file_system(spec, workspace / "image", workspace / "data", LIMIT_S)
    for name in ("bound with a blank", "merged", "lower"):
        (workspace / name).mkdir()
    for name in ("upper", "work", "inner"):
        (made.folder / name).mkdir()
    for target in ("bound with a blank", "merged"):
        journal.will(Change("mount", {"target": str(workspace / target)}))
    bound, merged = workspace / "bound with a blank", workspace / "merged"
    subprocess.run(["mount", "--bind", made.folder / "inner", bound], check=True)
    options = f"lowerdir={workspace}/lower,upperdir={made.folder}/upper,workdir={made.folder}/work"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", merged], check=True)
    (merged / "file").write_text("in the upper directory")
    assert mount_of(bound).point == str(bound)
    for path in (bound, merged, merged / "file"):
        assert device_of(path) == device_of(made.folder)


@real
def test_a_partition_is_counted_by_itself_and_is_of_the_kind_of_its_disk(workspace: Path, journal: UndoJournal) -> None:
    first, sectors = 2048, 32 * MIB // 512
    entry = struct.pack("<B3sB3sII", 0, bytes(3), 0x83, bytes(3), first, sectors)
    table = bytes(446) + entry + bytes(48) + b"\x55\xaa"  # a master boot record with one partition
    image, place = workspace / "image", workspace / "place"
    image.write_bytes(table + bytes(48 * MIB - len(table)))
    place.mkdir()
    journal.will(Change("loop", {"file": str(image)}))
    losetup = ["losetup", "--find", "--show", "--partscan", image]  # with its end the partitions go too
    disk_of_it = Path(subprocess.run(losetup, capture_output=True, text=True, check=True).stdout.strip())
    subprocess.run(["partx", "--add", disk_of_it], check=False)  # a kernel without this kind of table is told of it
    partition = Path(f"{disk_of_it}p1")
    subprocess.run(["mkfs.ext4", "-q", partition], check=True)
    journal.will(Change("mount", {"target": str(place)}))
    subprocess.run(["mount", partition, place], check=True)
    device = device_of(place)
    assert (device.name, device.kind, device.below) == (partition.name, "loop", device_of(workspace))
    before = device.counters()
    (place / "file").write_bytes(b"x" * MIB)
    subprocess.run(["sync", "--file-system", place], check=True)
    done = device.counters() - before
    assert MIB <= done.written_bytes < 2 * MIB
    assert done.flushes is None, "the kernel counts those of whole disks"


@real
def test_a_mount_above_another_at_the_same_place_is_the_one_that_counts(workspace: Path, journal: UndoJournal) -> None:
    place = workspace / "place"
    place.mkdir()
    journal.will(Change("mount", {"target": str(place)}))
    for _ in range(2):
        subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    second = mount_of(place).id
    subprocess.run(["mount", "--bind", place, place], check=True)
    assert mount_of(place).id != second


def test_a_file_system_without_a_device_has_no_counters() -> None:
    device = device_of(Path("/proc"))
    assert (device.name, device.kind, device.fastest_read_bytes_s()) == ("proc", "unknown", None)
    with pytest.raises(RunError, match=r"^proc has no block device whose reads and writes could be counted$"):
        device.counters()


def test_a_path_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot see which file system .*/never is on: No such file"):
        device_of(tmp_path / "never")


# ------------------------------------------------------------------------------------------------------------------
# Which kind. Of what is not sure the kind is not known.


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("sda", {"device__vendor": "ATA", "device__model": "ST4000DM004", "queue__rotational": "1"}, "hdd"),
        ("sda", {"device__vendor": "ATA", "device__model": "SSD 870", "queue__rotational": "0"}, "ssd"),
        ("sda", {"device__vendor": "ATA", "device__model": "QEMU HARDDISK", "queue__rotational": "1"}, "virtual"),
        ("sda", {"device__vendor": "ATA", "device__model": "VBOX HARDDISK", "queue__rotational": "1"}, "virtual"),
        ("sda", {"device__vendor": "VMware", "device__model": "Virtual disk", "queue__rotational": "1"}, "virtual"),
        ("sda", {"device__vendor": "DELL", "device__model": "PERC H730", "queue__rotational": "1"}, "unknown"),
        ("vda", {"queue__rotational": "1"}, "virtual"),
        ("xvdf", {"queue__rotational": "0"}, "virtual"),
        ("nvme0n1", {"device__model": "Samsung SSD 990 PRO", "queue__rotational": "0"}, "nvme"),
        ("nvme0n1", {"device__model": "Amazon Elastic Block Store", "queue__rotational": "0"}, "virtual"),
        ("nvme0n1", {"device__model": "QEMU NVMe Ctrl", "queue__rotational": "0"}, "virtual"),
        ("mmcblk0", {"queue__rotational": "0"}, "unknown"),
        ("zram0", {"queue__rotational": "0"}, "unknown"),
    ],
)
def test_a_kind_is_told_only_where_it_is_sure(name: str, values: dict[str, str], kind: str, tmp_path: Path) -> None:
    assert devices._kind(disk(tmp_path, name, **values)) == kind


def test_a_volume_is_what_it_is_made_of(tmp_path: Path) -> None:
    ata = {"device__vendor": "ATA", "device__model": "a", "queue__rotational": "1"}
    one, two = disk(tmp_path, "sda", **ata), disk(tmp_path, "sdb", **ata)
    partition = disk(one, "sda1", partition="1").rename(one / "sda1")
    (volume := disk(tmp_path, "dm-0") / "slaves").mkdir()
    (volume / "sda1").symlink_to(partition)
    assert devices._kind(volume.parent) == "hdd"
    (volume / "sdb").symlink_to(two)
    assert devices._kind(volume.parent) == "unknown", "striped, two disks are faster than one can be"


# ------------------------------------------------------------------------------------------------------------------
# Counters.


def test_counters_are_read_by_their_places(tmp_path: Path) -> None:
    stat = "11 12 13 14 21 22 23 24 0 31 32 41 42 43 44 51 52"
    device = Device("sda", "hdd", disk(tmp_path, "sda", stat=stat))
    assert device.counters() == DeviceCounters(11, 13 * 512, 21, 23 * 512, 31, 51)


@pytest.mark.parametrize(
    "values",
    [
        {"stat": "11 12 13 14 21 22 23 24 0 31 32"},  # before Linux 4.18
        {"stat": "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 0 0", "partition": "1"},  # of partitions flushes are not counted
    ],
)
def test_flushes_that_are_not_counted_are_not_none_at_all(values: dict[str, str], tmp_path: Path) -> None:
    counters = Device("sda1", "hdd", disk(tmp_path, "sda1", **values)).counters()
    assert counters.flushes is None
    assert (counters - counters).flushes is None


def test_a_device_that_is_gone_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^cannot read what sda has read and written: No such file or directory$"):
        Device("sda", "hdd", tmp_path / "sda").counters()


# ------------------------------------------------------------------------------------------------------------------
# Faster than can be.


@pytest.mark.parametrize(
    ("kind", "megabytes", "reads", "why"),
    [
        # A study's 7200 rpm disk "read" 570 MB/s.
        ("hdd", 570, 5000, "sda read 570 MB/s, more than the 300 MB/s that a device of its kind (hdd) can"),
        ("hdd", 250, 5000, None),
        ("hdd", 16, 1000, "sda answered 1000 small reads a second, more than the 400 that a rotating disk can"),
        ("hdd", 6, 390, None),
        ("ssd", 570, 50_000, None),
        ("ssd", 700, 50_000, "more than the 600 MB/s that a device of its kind (ssd) can"),
        ("nvme", 14_000, 500_000, None),
        ("nvme", 16_000, 500_000, "more than the 15000 MB/s"),
        ("virtual", 10**9, 10**9, None),
        ("unknown", 10**9, 10**9, None),
    ],
)
def test_what_no_device_of_its_kind_can_do_came_from_a_cache_below(
    kind: devices.Kind, megabytes: int, reads: int, why: str | None
) -> None:
    device = Device("sda", kind, DISK)
    seconds = 4.0
    reason = too_fast(device, int(megabytes * 1e6 * seconds), int(reads * seconds), seconds)
    assert (reason is None) == (why is None)
    assert why is None or (why in str(reason) and str(reason).endswith("a cache below it answered"))


def test_a_loop_device_is_no_faster_than_what_is_below_it() -> None:
    loop = Device("loop3", "loop", None, Device("loop1", "loop", None, Device("sda", "hdd", DISK)))
    assert loop.fastest_read_bytes_s() == 300e6
    assert "loop3 read 570 MB/s" in str(too_fast(loop, int(570e6), 5000, 1.0))
    orphan = Device("loop3", "loop", None, None)
    assert orphan.fastest_read_bytes_s() is None
    assert too_fast(orphan, 10**12, 1, 1.0) is None


def test_of_no_time_nothing_is_concluded() -> None:
    assert too_fast(Device("sda", "hdd", DISK), 10**12, 10**6, 0.0) is None
