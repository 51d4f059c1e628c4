"""File systems on a recorded disk: what they write is in the log, and nothing of them stays, however dyno ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts import LocalHost, devices, undo
from dyno.hosts.leftovers import loop_devices, mounts_below
from dyno.hosts.local import core_binary
from dyno.hosts.recorder import RecordedDisk
from dyno.hosts.recovery import CutDisk
from dyno.hosts.volumes import Until
from dyno.model.base import RunError
from dyno.model.study import FileSystem
from dyno.systems.base import Place
from dyno.systems.recorded_filesystem import RecordedFilesystemOptions, RecordedFilesystemSystem

LIMIT_S = 60.0
MIB = 2**20

real = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or not Path("/dev/fuse").exists()
    or devices.mount_of(Path(tempfile.gettempdir())).kind == "tmpfs",
    reason="only root mounts file systems, on loop devices, upon FUSE",
)


@pytest.fixture
def place(host: LocalHost, workspace: Path) -> Place:
    return Place(host=host, data=workspace / "live", logs=workspace / "logs", core=core_binary())


def made(place: Place, **options: Any) -> RecordedFilesystemSystem:
    given = RecordedFilesystemOptions.model_validate({"size": "16 MiB", **options})
    return RecordedFilesystemSystem(given, place)


def recorders() -> int:
    """How many this process has, those among them that ended and were not waited for."""
    words = ["pgrep", "--count", "--exact", "--parent", str(os.getpid()), "dyno-core"]
    return int(subprocess.run(words, check=False, capture_output=True, text=True).stdout)


def point(settings: dict[str, Any]) -> int:
    return int.from_bytes(Path(settings["point"]).read_bytes(), "little")


@real
def test_what_is_synced_is_in_the_record_and_each_run_has_a_record_of_its_own(place: Place, tmp_path: Path) -> None:
    system = made(place, data="ordered", barrier=True)
    system.provision(LIMIT_S)
    system.prepare(LIMIT_S)
    system.snapshot(place.data.with_name("snapshot"), LIMIT_S)
    records = []
    for run in (1, 2):
        system = made(place, data="ordered", barrier=True)  # as the lab has one for each run
        system.restore(place.data.with_name("snapshot"), LIMIT_S, reflink=False)
        system.start(run, LIMIT_S)
        assert recorders() == 1
        settings = system.ready(LIMIT_S).settings
        assert system.settings()["data"] == "ordered"
        before = point(settings)
        file = Path(settings["folder"]) / "file"
        with file.open("wb") as out:
            out.write(b"here it is" * 100)
            out.flush()
            os.fsync(out.fileno())
        assert point(settings) > before
        assert b"here it is" * 100 in Path(settings["log"]).read_bytes()
        records.append(before)
        system.stop(LIMIT_S)
        system.check(LIMIT_S)
    assert abs(records[0] - records[1]) < 20, "both begin with an empty disk"
    system.destroy()
    assert recorders() == 0
    assert mounts_below(str(place.data.parent)) == []
    assert sorted(path.name for path in place.data.parent.iterdir()) == ["logs", "snapshot"]


@real
def test_a_recorder_that_cannot_begin_is_told_by_its_own_words_and_leaves_nothing(place: Place) -> None:
    disk = RecordedDisk(place.host, place.core, place.data.parent / "recorded", place.logs)
    with pytest.raises(RunError, match=r"dyno-core record ended: .*--size"):
        disk.begin(5000, Until.within(LIMIT_S, place.logs / "log"))
    assert not disk.recording.folder.exists()
    assert mounts_below(str(place.data.parent)) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from dyno.hosts import LocalHost, undo
from dyno.hosts.local import core_binary
from dyno.systems.base import Place
from dyno.systems.recorded_filesystem import RecordedFilesystemOptions, RecordedFilesystemSystem
host = LocalHost(undo.UndoJournal())
folder = host.temporary_folder(Path(sys.argv[1]))
options = RecordedFilesystemOptions.model_validate({"size": sys.argv[2], "type": sys.argv[3]})
place = Place(host=host, data=folder / "live", logs=folder / "logs", core=core_binary())
system = RecordedFilesystemSystem(options, place)
at = int(sys.argv[4])
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
# Dirty when the disk goes from under it.
(folder / "live" / "file").write_bytes(bytes(4 << 20))
os.kill(os.getpid(), signal.SIGKILL)
"""


@real
@pytest.mark.parametrize(
    ("kind", "size", "commands"),
    [*(("ext4", "16 MiB", at) for at in (1, 3, 99)), ("xfs", "300 MiB", 99), ("btrfs", "110 MiB", 99)],
)
def test_nothing_stays_after_a_kill_at_any_moment(
    kind: str, size: str, commands: int, tmp_path: Path, state: Path
) -> None:
    folder = tmp_path / "killed"
    words = [sys.executable, "-c", KILLED, str(folder), size, kind, str(commands)]
    assert subprocess.run(words, check=False).returncode == -9
    assert folder.is_dir()
    (cleaned,) = undo.clean(state)
    assert cleaned.stuck == ()
    assert not folder.exists()
    assert mounts_below(str(folder)) == []
    assert loop_devices(str(folder / "live-recorded" / "served" / "disk")) == []
    assert undo.clean(state) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "overlay"}, "an overlay keeps nothing by itself"),
        ({"aged": {}}, "a recording begins with an empty disk: leave aged out"),
        ({"direct_io": False}, "writes that are held back above the recorder would be in no record"),
        ({"size": None}, "how large is the image to be"),
        (
            {"size": None, "device": "/dev/sdz", "erase": "yes-really", "identity": {"serial": "1"}},
            "what is recorded is a disk of its own: write size in place of device",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecordedFilesystemOptions.model_validate({"size": "16 MiB", **options})


# ---- what is found of a disk after a cut


def image(place: Place) -> Path:
    path = place.data.parent / "cut-image"
    with path.open("wb") as out:
        out.truncate(16 * MIB)
    place.host.run(["mkfs.ext4", "-q", "-F", "-b", "4096", str(path)], limit=LIMIT_S, log=place.logs / "mkfs")
    return path


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as out:
        out.seek(at)
        out.write(data)


@real
def test_a_cut_disk_is_mounted_or_told_not_to_be_and_checked_and_nothing_of_it_stays(place: Place) -> None:
    path = image(place)
    whole = path.read_bytes()
    spec = FileSystem.model_validate({"kind": "ext4", "size": "16 MiB"})
    until = Until.within(LIMIT_S, place.logs / "cuts")
    with CutDisk(place.host, spec, path.parent) as disk:
        sound = disk.recover(until)
        assert sound.seconds is not None
        assert 0 < sound.seconds < LIMIT_S
        assert (disk.folder / "lost+found").is_dir()
        disk.let_go(until)
        assert disk.is_consistent(until)
        # An inode's bitmap: it can be mounted, and is not in order.
        superblock = whole[1024:2048]
        assert superblock[0x38:0x3A] == b"\x53\xef"
        descriptor = whole[4096:4160]
        bitmap = int.from_bytes(descriptor[:4], "little")
        overwrite(path, bitmap * 4096, bytes(4096))
        damaged = disk.recover(until)
        assert damaged.seconds is not None
        disk.let_go(until)
        assert not disk.is_consistent(until)
        # No superblock: it cannot.
        overwrite(path, 1024, bytes(1024))
        gone = disk.recover(until)
        assert gone.seconds is None
        assert "ended with status 32" in gone.why
        assert not disk.is_consistent(until)
        # And the next one again.
        overwrite(path, 0, whole)
        assert disk.recover(until).seconds is not None
    assert not path.exists()
    assert mounts_below(str(place.data.parent)) == []
    assert loop_devices(str(path)) == []
