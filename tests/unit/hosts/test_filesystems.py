"""File systems made for the data of a study: real ones, on real loop devices. What is wrong ends in one line, and
nothing stays, whatever ends the session and wherever.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, devices, filesystems, leftovers, pagecache, undo
from dyno.hosts.filesystems import Mounted
from dyno.hosts.leftovers import UndoError, loop_devices, mounts_below
from dyno.hosts.volumes import Until
from dyno.model.base import RunError
from dyno.model.study import FileSystem

LIMIT_S = 60.0
MIB = 1024**2
SMALL = {"ext4": "64 MiB", "xfs": "300 MiB", "btrfs": "128 MiB"}
Make = Callable[..., Mounted]

real = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or devices.mount_of(Path(tempfile.gettempdir())).kind == "tmpfs",
    reason="only root makes file systems, on loop devices, above a disk",
)


def spec_of(**keys: object) -> FileSystem:
    return FileSystem.model_validate({"size": SMALL[str(keys.get("kind", "ext4"))], **keys})


@pytest.fixture
def make(host: LocalHost, workspace: Path) -> Iterator[Make]:
    def made(**keys: object) -> Mounted:
        return host.make_file_system(spec_of(**keys), workspace / "image", workspace / "data", LIMIT_S)

    yield made
    assert workspace.is_dir(), "what a test leaves is put away by the journal"


def fill(file: io.FileIO) -> None:
    while True:
        file.write(b"x" * MIB)


def left_at(workspace: Path) -> list[object]:
    """What is still there of a file system in this workspace; what programs said may stay."""
    named = [path.name for path in workspace.rglob("*") if not path.name.startswith("image-made")]
    return [*mounts_below(str(workspace)), *loop_devices(str(workspace / "image")), *named]


# ------------------------------------------------------------------------------------------------------------------
# Made and removed.


@real
@pytest.mark.parametrize("kind", SMALL)
def test_each_kind_is_made_as_asked_and_nothing_of_it_stays(
    kind: str, make: Make, host: LocalHost, workspace: Path
) -> None:
    made = make(kind=kind, mount=["noatime", "nodev"])
    (made.folder / "file").write_text("data")
    assert devices.mount_of(made.folder / "file").kind == kind
    assert made.facts["type"] == kind
    assert {"noatime", "nodev"} <= set(str(made.facts["options"]).split(","))
    assert made.facts["block_bytes"] == 4096
    assert Path("/sys/block", made.device.name, "loop/dio").read_text().strip() == "1"
    assert made.image.stat().st_blocks * 512 >= made.spec.size, "no block of it is left to be found later"
    assert devices.device_of(made.folder / "file").name == made.device.name
    host.remove_file_system(made)
    assert left_at(workspace) == []


@real
@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_what_is_deleted_on_it_gives_nothing_back_to_the_file_system_below(kind: str, make: Make) -> None:
    made = make(kind=kind)
    (made.folder / "file").write_bytes(b"x" * 20 * MIB)
    os.sync()
    (made.folder / "file").unlink()
    subprocess.run(["sync", "--file-system", made.folder], check=True)
    assert made.image.stat().st_blocks * 512 >= made.spec.size
    assert "discard" not in str(made.facts["options"]).replace("nodiscard", "")


@real
def test_without_direct_io_the_device_goes_by_the_page_cache_below(make: Make) -> None:
    made = make(direct_io=False)
    assert Path("/sys/block", made.device.name, "loop/dio").read_text().strip() == "0"
    assert made.facts["direct_io"] is False


@real
def test_options_of_mkfs_are_taken_and_what_ext4_leaves_for_later_is_still_done_at_once(make: Make) -> None:
    made = make(mkfs=["-b", "1024", "-E", "stride=4", "-N", "2048"])
    said = subprocess.run(["dumpe2fs", "-h", made.device], capture_output=True, text=True, check=True).stdout
    fields = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
    assert (fields["Block size"].strip(), fields["RAID stride"].strip()) == ("1024", "4")
    assert fields["Inode count"].strip() == "2048"
    said = subprocess.run(["dumpe2fs", made.device], capture_output=True, text=True, check=True).stdout
    groups = re.findall(r"^Group \d+: .*", said, re.MULTILINE)
    assert len(groups) == 8
    assert all("ITABLE_ZEROED" in group for group in groups)


@real
def test_two_file_systems_of_one_session_do_not_touch_each_other(host: LocalHost, workspace: Path) -> None:
    one, two = (
        host.make_file_system(spec_of(), workspace / f"{name}.image", workspace / name, LIMIT_S) for name in "ab"
    )
    (two.folder / "file").write_text("stays")
    host.remove_file_system(one)
    assert (two.folder / "file").read_text() == "stays"
    assert devices.device_of(two.folder).name == two.device.name


@real
@pytest.mark.parametrize("kind", SMALL)
def test_a_full_disk_takes_nothing_until_room_is_made(kind: str, make: Make, host: LocalHost, workspace: Path) -> None:
    made = make(kind=kind, size=SMALL[kind])
    (made.folder / "before").write_bytes(b"x" * MIB)
    host.fill_disk(made.folder)
    more = made.folder / "more"
    with pytest.raises(OSError, match="No space left on device"), more.open("wb", 0) as file:
        fill(file)
    # Some kinds keep a little, and others have no room for a new file at all.
    assert not more.exists() or more.stat().st_size < MIB
    host.make_room(made.folder)
    (made.folder / "after").write_bytes(b"x" * 4 * MIB)
    assert {path.name for path in made.folder.iterdir()} - {"lost+found", "more"} == {"before", "after"}
    host.make_room(made.folder)


def test_a_disk_that_is_none_of_ours_is_not_filled(host: LocalHost, workspace: Path, tmp_path: Path) -> None:
    for folder in (workspace, tmp_path, Path("/")):
        with pytest.raises(RunError, match=f"refusing to fill {folder}: no file system of this session is mounted"):
            host.fill_disk(folder)
        assert not (folder / ".dyno-ballast").exists()


def extents(image: Path) -> str:
    return subprocess.run(["filefrag", "-v", image], capture_output=True, text=True, check=True).stdout


@real
def test_an_image_is_written_once_where_that_is_asked_and_the_next_time_it_is_the_same(
    host: LocalHost, workspace: Path
) -> None:
    # What is allocated and not written has to be marked by the file system below: the first run would pay for it.
    image, log = workspace / "image", workspace / "image-made"
    device = host.volumes.attach(image, 16 * MIB, direct_io=True, until=Until.within(LIMIT_S, log))
    assert "unwritten" in extents(image)
    host.volumes.detach(image)
    device = host.volumes.attach(image, 16 * MIB, direct_io=True, until=Until.within(LIMIT_S, log), written=True)
    assert "unwritten" not in extents(image)
    assert pagecache.resident_bytes(image) == 0
    number = image.stat().st_ino
    again = host.volumes.attach(image, 16 * MIB, direct_io=True, until=Until.within(LIMIT_S, log), written=True)
    assert (again, image.stat().st_ino) == (device, number)
    other = host.volumes.attach(image, 8 * MIB, direct_io=True, until=Until.within(LIMIT_S, log), written=True)
    assert image.stat().st_size == 8 * MIB
    assert loop_devices(str(image)) == [other]
    host.volumes.detach(image)
    assert left_at(workspace) == []


@real
def test_an_image_that_takes_longer_to_write_than_it_may_is_a_run_error(host: LocalHost, workspace: Path) -> None:
    until = Until.within(0.0, workspace / "image-made")
    with pytest.raises(RunError, match=r"^writing 16 MiB to .* took longer than the study allows"):
        host.volumes.attach(workspace / "image", 16 * MIB, direct_io=True, until=until, written=True)


@real
def test_a_mount_namespace_of_somebody_else_does_not_keep_the_device(
    make: Make, host: LocalHost, workspace: Path
) -> None:
    # Network namespaces are entered in a mount namespace of their own, which has copies of all mounts. From a private
    # one they do not go; unmounting then succeeded, and the loop device stayed for as long as that namespace did.
    made = make()
    inside = host.start(
        ["unshare", "--mount", "--propagation", "slave", "sh", "-c", "echo in; exec sleep 1000"],
        log=workspace / "image-made-namespace",
        lines=True,
    )
    while "in" not in inside.lines(LIMIT_S):
        assert inside.wait(0) is None
    assert str(made.folder) in Path("/proc", str(inside.pid), "mountinfo").read_text()
    host.remove_file_system(made)
    assert inside.wait(0) is None
    assert left_at(workspace) == []
    inside.stop()


@real
def test_a_file_system_that_runs_full_says_so_and_takes_nothing_from_the_one_below(
    make: Make, host: LocalHost, workspace: Path
) -> None:
    made = make()
    free = host.free_disk(made.folder)
    with (made.folder / "file").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        fill(file)
    os.sync()
    assert host.free_disk(made.folder) < MIB
    assert (made.folder / "file").stat().st_size > free - MIB
    allocated = made.image.stat().st_blocks * 512
    assert made.spec.size <= allocated < made.spec.size + MIB, "as much as before anything was written"
    host.remove_file_system(made)
    assert left_at(workspace) == []


# ------------------------------------------------------------------------------------------------------------------
# Refused, with nothing left.


def test_without_root_it_is_refused(make: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RunError, match=r"^a file system of its own \(host.file_system\) needs root$"):
        make()
    assert left_at(workspace) == []


@real
@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"mount": ["noatime", "discard"]}, "the mount option discard would give back what was allocated"),
        ({"size": "900 TiB"}, r"takes 900 TiB, and .* has .* free"),
        ({"mkfs": ["-Z"]}, r"mkfs.ext4 .* ended with status 1: .*"),
        ({"mount": ["data=never"]}, r"mount -t ext4 -o data=never .* ended with status 32: .*"),
        ({"mount": ["nodelalloc", "data=journal", "data=ordered"]}, "not in force: data=journal"),
    ],
)
def test_what_cannot_be_had_is_one_line_with_nothing_left(
    keys: dict[str, object], why: str, make: Make, workspace: Path
) -> None:
    with pytest.raises(RunError, match=why) as refused:
        make(**keys)
    assert "\n" not in str(refused.value)
    assert left_at(workspace) == []


@real
@pytest.mark.parametrize(("kind", "package"), [("xfs", "xfsprogs"), ("btrfs", "btrfs-progs"), ("ext4", "e2fsprogs")])
def test_a_program_that_is_missing_is_named_with_its_package(
    kind: str, package: str, make: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_args, **_keys: None)
    with pytest.raises(RunError, match=f"^mkfs.{kind} is missing: install Debian's {package}$"):
        make(kind=kind)
    assert left_at(workspace) == []


@real
def test_the_file_system_below_has_to_have_the_room(make: Make, host: LocalHost, workspace: Path) -> None:
    below = make()
    (below.folder / "inner").mkdir()
    with pytest.raises(RunError, match=r"\(host.file_system\) takes 64 MiB, and .*/inner has \d+.* MiB free"):
        host.make_file_system(spec_of(), below.folder / "inner" / "image", workspace / "other", LIMIT_S)
    assert not (workspace / "other").exists()
    assert list((below.folder / "inner").iterdir()) == []


@real
def test_room_that_another_takes_meanwhile_is_one_line_with_nothing_left(
    make: Make, host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # free_disk said that there was enough, and then there was not.
    below = make()
    monkeypatch.setattr(host, "free_disk", lambda _path: 2**40)
    with pytest.raises(RunError, match=r"cannot allocate 64 MiB for .*/image: No space left on device"):
        host.make_file_system(spec_of(), below.folder / "image", workspace / "other", LIMIT_S)
    assert not (workspace / "other").exists()
    assert not (below.folder / "image").exists()


@real
def test_direct_io_that_the_file_system_below_does_not_offer_is_refused(
    make: Make, host: LocalHost, workspace: Path
) -> None:
    # ext4 that journals its data takes direct I/O and goes by the page cache: the loop device said that it was direct.
    below = make(size="128 MiB", mount=["data=journal", "nodelalloc"])
    inner = {"size": "32 MiB"}
    where = (below.folder / "inner", workspace / "other", LIMIT_S)
    with pytest.raises(
        RunError, match=r"does no direct I/O: the file system below it \(ext4 of .*\) does not offer it"
    ):
        host.make_file_system(spec_of(**inner), *where)
    assert loop_devices(str(below.folder / "inner")) == []
    assert not (workspace / "other").exists()
    made = host.make_file_system(spec_of(**inner, direct_io=False), *where)
    assert devices.device_of(made.folder).below == devices.device_of(below.folder)
    host.remove_file_system(made)


@real
def test_an_image_that_was_refused_is_refused_again(make: Make, host: LocalHost, workspace: Path) -> None:
    # It was remembered as attached, and the next attempt was given it without a look: buffered, and said to be direct.
    below = make(size="128 MiB", mount=["data=journal", "nodelalloc"])
    image = below.folder / "inner"
    for _ in range(2):
        with pytest.raises(RunError, match="does no direct I/O"):
            host.volumes.attach(image, 32 * MIB, direct_io=True, until=Until.within(LIMIT_S, workspace / "image-made"))
        assert host.volumes.device(image) is None
        assert loop_devices(str(image)) == []
        assert not image.exists()


@real
@pytest.mark.parametrize("fails", ["losetup", "attest"])
def test_an_image_whose_device_failed_is_no_device(
    fails: str, host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, log = workspace / "image", workspace / "image-made"

    def fail(*_args: object, **_keys: object) -> str:
        raise RunError("it did not work")

    with monkeypatch.context() as patched:
        patched.setattr(*((host.volumes, "_do") if fails == "losetup" else (filesystems, "attest_direct_io")), fail)
        with pytest.raises(RunError, match="it did not work"):
            host.volumes.attach(image, 16 * MIB, direct_io=True, until=Until.within(LIMIT_S, log))
    assert left_at(workspace) == []
    device = host.volumes.attach(image, 16 * MIB, direct_io=True, until=Until.within(LIMIT_S, log))
    assert loop_devices(str(image)) == [device]
    host.volumes.detach(image)
    assert left_at(workspace) == []


@real
def test_a_file_whose_device_failed_has_none(host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = workspace / "file"
    file.write_bytes(bytes(MIB))
    monkeypatch.setattr(filesystems, "does_direct_io", lambda _device: True)
    until = Until.within(LIMIT_S, workspace / "image-made")
    with pytest.raises(RunError, match=f"does direct I/O on {file}"):
        host.volumes.attach_file(file, direct_io=False, until=until)
    assert loop_devices(str(file)) == []


@real
def test_a_limit_that_is_past_ends_it_with_nothing_left(host: LocalHost, workspace: Path) -> None:
    with pytest.raises(RunError, match="did not end within 0 s"):
        host.make_file_system(spec_of(), workspace / "image", workspace / "data", 0)
    assert left_at(workspace) == []


@pytest.mark.parametrize("which", ["image", "mount"])
def test_only_folders_of_this_session_are_used(which: str, host: LocalHost, workspace: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    paths = {"image": workspace / "image", "mount": workspace / "data", which: theirs}
    with pytest.raises(RunError, match=r"refusing to make .*/theirs"):
        host.make_file_system(spec_of(), limit=LIMIT_S, **paths)
    assert not theirs.exists()


@real
def test_a_folder_with_something_in_it_is_not_mounted_over(make: Make, workspace: Path) -> None:
    (workspace / "data").mkdir()
    (workspace / "data" / "thesis").write_text("years of work")
    with pytest.raises(RunError, match=r"cannot make the file system data: .*File exists"):
        make()
    assert (workspace / "data" / "thesis").read_text() == "years of work"


@real
def test_one_that_is_in_use_is_told_and_goes_at_the_next_attempt(
    make: Make, host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make()
    with monkeypatch.context() as hasty, (made.folder / "file").open("w"):
        hasty.setattr(leftovers, "_BUSY_LIMIT_S", 0.05)
        with pytest.raises(UndoError, match=r"cannot unmount .*/data.*: something still uses it"):
            host.remove_file_system(made)
    host.remove_file_system(made)
    assert left_at(workspace) == []


# ------------------------------------------------------------------------------------------------------------------
# Cut off.

SESSION = """
import os, signal, sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from dyno.model.study import FileSystem

steps = int(sys.argv[2])

class Cut(LocalHost):
    def run(self, *words, **keys):  # the last thing this session does is its `steps`th command
        global steps
        answer = super().run(*words, **keys)
        steps -= 1
        if steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

journal = UndoJournal()
host = Cut(journal)
workspace = host.temporary_folder(Path(sys.argv[1]))
made = host.make_file_system(FileSystem(size="64 MiB"), workspace / "image", workspace / "data", 60)
(made.folder / "file").write_bytes(b"x" * 2**20)
host.start(["sh", "-c", "cd data && exec sleep 1000"], log=workspace / "log", folder=workspace)
os.kill(os.getpid(), signal.SIGKILL)
"""
LAST_COMMAND = ["losetup", "mkfs", "mount --bind", "mount --make-shared", "mount", "used by a process"]


@real
@pytest.mark.parametrize("step", range(1, len(LAST_COMMAND) + 1), ids=LAST_COMMAND)
def test_nothing_stays_of_a_session_that_was_killed_after_any_step(step: int, state: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    session = subprocess.run([sys.executable, "-c", SESSION, killed, str(step)], timeout=LIMIT_S, check=False)
    assert session.returncode == -signal.SIGKILL
    assert loop_devices(str(killed / "image")), "it was cut off with something made"
    assert len(mounts_below(str(killed))) == max(0, min(step - 2, 1)) + max(0, min(step - 4, 1))
    (cleaned,) = undo.clean()
    assert cleaned.stuck == ()
    assert mounts_below(str(killed)) == []
    assert loop_devices(str(killed / "image")) == []
    assert not killed.exists()


# ------------------------------------------------------------------------------------------------------------------
# What the kernel shows, against what was asked.


@pytest.mark.parametrize(
    ("asked", "shown", "wrong"),
    [
        (["noatime"], ["rw", "noatime"], []),
        (["noatime"], ["rw", "relatime"], ["noatime"]),
        (["noatime,ro"], ["rw", "noatime"], ["ro"]),
        (["defaults", "barrier=1", "relatime"], ["rw"], []),
        (["commit=30"], ["rw", "commit=30"], []),
        (["data=writeback"], ["rw", "data=ordered"], ["data=writeback"]),
        (["compress=zstd"], ["compress=zstd:3"], []),
        (["compress=zstd:1"], ["compress=zstd:3"], ["compress=zstd:1"]),
        (["logbsize=262144"], ["logbsize=256k"], []),
        (["logbsize=64K"], ["logbsize=256k"], ["logbsize=64K"]),
    ],
)
def test_an_option_that_is_shown_otherwise_is_not_in_force(
    asked: list[str], shown: list[str], wrong: list[str]
) -> None:
    assert filesystems.not_in_force(asked, shown) == wrong
