"""What ended sessions leave on a machine is put away: real mounts, loop devices, groups and settings of the kernel."""

from __future__ import annotations

import json
import mmap
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, bridges, leftovers, undo
from dyno.hosts.kernel import sysctl
from dyno.hosts.leftovers import (
    UndoError,
    attached_as,
    detach_loop,
    detach_loop_device,
    disable_controllers,
    loop_devices,
    mounts_below,
    remove_cgroup,
    unmount,
    write_back,
)
from tests.making import until
from tests.unit.hosts.rights import alone_on_the_machine, needs_root, without_root

LIMIT_S = 30
MIB = 2**20
IS_V2 = (leftovers.CGROUPS / "cgroup.procs").exists()
HIERARCHIES = [leftovers.CGROUPS] if IS_V2 else sorted(file.parent for file in leftovers.CGROUPS.glob("*/cgroup.procs"))


def run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def is_alive(pid: int) -> bool:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder to mount in; what stays mounted in it goes with the test."""
    folder = tmp_path / "place"
    folder.mkdir()
    yield folder
    subprocess.run(["umount", "--recursive", "--quiet", folder], check=False, capture_output=True)
    for point in mounts_below(str(folder)):
        subprocess.run(["umount", "--lazy", point], check=False)


@pytest.fixture
def sleeper() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that do nothing, without a token of any session; ends those that are left."""
    started: list[subprocess.Popen[bytes]] = []

    def start(folder: Path | None = None) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "1000"], cwd=folder, env={}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(LIMIT_S)


def mount(point: Path) -> Path:
    point.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "size=1m", "dyno-test", point)
    return point


# --- mounts ---


@needs_root
def test_mounts_in_mounts_and_above_mounts_are_all_unmounted(place: Path) -> None:
    outer = mount(place)
    mount(outer / "inner")
    mount(outer / "inner" / "innermost")
    mount(outer / "inner")  # a second time, above the first
    run("mount", "--bind", outer / "inner", mount(outer / "other"))
    below = [str(Path(point).relative_to(place)) for point in mounts_below(str(place))]
    assert below == ["other", "other", "inner", "inner/innermost", "inner", "."], "the newest first"
    unmount(str(place))
    assert mounts_below(str(place)) == []


@needs_root
def test_a_mount_point_with_blanks_backslashes_and_umlauts_is_found(place: Path) -> None:
    mount(place / "my dätä\\040 here")
    unmount(str(place))
    assert mounts_below(str(place)) == []


@needs_root
def test_a_mount_beside_whose_name_begins_alike_stays(place: Path) -> None:
    mount(place / "data")
    beside = mount(place / "data-of-others")
    unmount(str(place / "data"))
    assert mounts_below(str(place)) == [str(beside)]


def test_where_nothing_is_mounted_there_is_nothing_to_do(tmp_path: Path) -> None:
    unmount(str(tmp_path))
    unmount(str(tmp_path / "never made"))


@needs_root
def test_a_mount_that_is_in_use_goes_as_soon_as_it_no_longer_is(
    place: Path, sleeper: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    user = sleeper(mount(place))
    really, refused = leftovers._libc.umount2, []

    class Watched:
        """The kernel's own answer; the user ends after the first."""

        @staticmethod
        def umount2(point: bytes, flags: int) -> int:
            answer: int = really(point, flags)
            if answer != 0:
                refused.append(point)
                user.kill()
            return answer

    monkeypatch.setattr(leftovers, "_libc", Watched)
    unmount(str(place))
    assert os.fsencode(place) in refused
    assert mounts_below(str(place)) == []


@needs_root
def test_a_mount_that_stays_in_use_is_an_error_and_stays(
    place: Path, sleeper: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_BUSY_LIMIT_S", 0.05)
    user = sleeper(mount(place))
    with pytest.raises(UndoError, match=f"cannot unmount {place}: something still uses it"):
        unmount(str(place))
    user.kill()
    user.wait(LIMIT_S)
    unmount(str(place))
    assert mounts_below(str(place)) == []


# --- loop devices ---


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    """A file that may back loop devices; they go with the test."""
    file = tmp_path / "image of mine"
    with file.open("wb") as opened:
        opened.truncate(8 * MIB)
    yield file
    for device in loop_devices(str(file)):
        run("losetup", "--detach", device)


def attach(file: Path) -> Path:
    return Path(run("losetup", "--find", "--show", file))


@needs_root
def test_all_loop_devices_of_a_file_are_detached_and_no_others(image: Path, tmp_path: Path) -> None:
    beside = tmp_path / "image"
    beside.write_bytes(bytes(MIB))
    theirs = attach(beside)
    try:
        devices = {attach(image), attach(image)}
        assert set(loop_devices(str(image))) == devices
        detach_loop(str(image))
        assert loop_devices(str(image)) == []
        assert loop_devices(str(beside)) == [theirs]
    finally:
        run("losetup", "--detach", theirs)


@needs_root
def test_a_loop_device_is_found_also_when_its_file_was_removed(image: Path) -> None:
    attach(image)
    image.unlink()
    assert loop_devices(str(image))
    detach_loop(str(image))
    assert loop_devices(str(image)) == []


@needs_root
def test_a_loop_device_is_found_also_when_the_file_system_of_its_file_is_gone(image: Path, place: Path) -> None:
    # Of a disk that a killed program had shown, the kernel named the file `/`: its device stayed for good.
    run("mount", "-t", "tmpfs", "tmpfs", place)
    file = place / "image"
    file.write_bytes(bytes(MIB))
    device = attach(file)
    known = attached_as(device)
    run("umount", "--lazy", place)
    assert loop_devices(str(file)) == []
    backing = Path("/sys/block", device.name, "loop/backing_file")
    assert backing.exists()
    detach_loop_device(**known)
    assert not backing.exists()

    run("losetup", device, image)
    detach_loop_device(**known)
    assert loop_devices(str(image)) == [device], "it is somebody else's by now"
    detach_loop_device(**{**known, "sequence": attached_as(device)["sequence"], "boot": "another"})
    assert loop_devices(str(image)) == [device], "the machine was started anew since"


def test_a_file_without_a_loop_device_is_left_alone(tmp_path: Path) -> None:
    detach_loop(str(tmp_path / "image"))


@needs_root
def test_a_loop_device_that_is_mounted_goes_with_its_mount(
    image: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("mkfs.ext4", "-q", "-F", image)
    run("mount", attach(image), place)
    with monkeypatch.context() as short:
        short.setattr(leftovers, "_BUSY_LIMIT_S", 0.05)
        with pytest.raises(UndoError, match=r"cannot detach /dev/loop\d+: something still uses it"):
            detach_loop(str(image))
    unmount(str(place))
    detach_loop(str(image))
    assert loop_devices(str(image)) == []


# --- control groups ---


@pytest.fixture
def group() -> Iterator[str]:
    """The name of a group that no session has; it goes with the test."""
    name = f"dyno-test-{secrets.token_hex(4)}"
    yield name
    for top in HIERARCHIES:
        for folder, _, _ in os.walk(top / name, topdown=False):
            Path(folder).rmdir()


def tops() -> list[Path]:
    """Those hierarchies in which this machine lets groups be made, as an engine of containers does."""
    return [top for top in HIERARCHIES if os.access(top, os.W_OK)]


@needs_root
def test_a_group_goes_in_all_hierarchies_with_what_runs_deep_in_it(
    group: str, sleeper: Callable[..., subprocess.Popen[bytes]]
) -> None:
    if not tops():
        pytest.skip("no control group can be made here")
    inside, outside = [sleeper() for _ in tops()], sleeper()
    for top, process in zip(tops(), inside, strict=True):
        deep = top / group / "container" / "init"
        deep.mkdir(parents=True)
        if top.name != "cpuset":  # where none may be before it has CPUs
            (deep / "cgroup.procs").write_text(str(process.pid))
    remove_cgroup(group)
    assert [top for top in tops() if (top / group).exists()] == []
    for top, process in zip(tops(), inside, strict=True):
        if top.name != "cpuset":
            assert process.wait(LIMIT_S) == -signal.SIGKILL
    assert is_alive(outside.pid)


@pytest.mark.parametrize("name", ["memory", "", ".", "system.slice", "dyno-x/../system.slice"])
def test_a_group_that_is_none_of_ours_is_never_ended(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A journal once had the name of a hierarchy for that of a group: cleaning ended every process of the machine.
    (tmp_path / "memory" / "others").mkdir(parents=True)
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process was ended"))
    with pytest.raises(UndoError, match=f"the control group {name} is none of ours"):
        remove_cgroup(name)
    assert (tmp_path / "memory" / "others").is_dir()


def test_a_group_that_is_not_there_is_left_alone(group: str) -> None:
    remove_cgroup(group)


@needs_root
def test_a_group_whose_processes_do_not_end_is_an_error_and_stays(
    group: str, sleeper: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = next((top for top in tops() if top.name != "cpuset"), None)
    if top is None:
        pytest.skip("no control group can be made here")
    process = sleeper()
    (top / group).mkdir()
    (top / group / "cgroup.procs").write_text(str(process.pid))
    with monkeypatch.context() as context:
        context.setattr(os, "kill", lambda *_: None)  # as one that waits for a disk in the kernel
        context.setattr(leftovers, "_KILL_LIMIT_S", 0.05)
        with pytest.raises(UndoError, match=f"the control group {group} does not become empty"):
            remove_cgroup(group)
    remove_cgroup(group)
    assert not (top / group).exists()


# --- settings of the kernel ---

COUNT = sysctl("net.ipv4.tcp_keepalive_intvl")


@needs_root
def test_a_setting_gets_its_value_back() -> None:
    with alone_on_the_machine():
        before = COUNT.show()
        COUNT.write(str(int(before) + 1))
        write_back(str(COUNT.files()[0]), before)
        assert COUNT.show() == before


def test_a_setting_that_has_its_value_is_not_written(tmp_path: Path) -> None:
    # Some cannot be: what was refused when it was to be set is refused when it is to be put back.
    write_back("/proc/version", Path("/proc/version").read_text())
    with pytest.raises(UndoError, match="cannot write 1 to /proc/version: "):
        write_back("/proc/version", "1")


def test_a_setting_of_a_device_that_is_gone_is_no_more(tmp_path: Path) -> None:
    write_back(str(tmp_path / "gone"), "1")


def test_controllers_of_a_hierarchy_that_is_gone_are_no_more(tmp_path: Path) -> None:
    disable_controllers(str(tmp_path / "gone"), ["cpu"])


@needs_root
def test_what_is_no_controller_is_an_error(tmp_path: Path) -> None:
    top = next((top for top in tops() if (top / "cgroup.controllers").exists()), None)
    if top is None:
        pytest.skip("there is no control group of version 2")
    with pytest.raises(UndoError, match=f"cannot disable nonsense in {top}: "):
        disable_controllers(str(top), ["nonsense"])


@needs_root
def test_controllers_that_others_use_meanwhile_stay(group: str) -> None:
    top = next((top for top in tops() if (top / "cgroup.controllers").exists()), None)
    unused: set[str] = set()
    if top is not None:
        control = top / "cgroup.subtree_control"
        unused = set((top / "cgroup.controllers").read_text().split()) - set(control.read_text().split())
    if top is None or not unused:
        pytest.skip("there is no control group of version 2 with a controller that nobody uses")
    name = min(unused)
    with alone_on_the_machine():
        control.write_text(f"+{name}")
        (top / group / "child").mkdir(parents=True)
        (top / group / "cgroup.subtree_control").write_text(f"+{name}")
        disable_controllers(str(top), [name])
        assert name in control.read_text().split(), "it was taken from a group that needs it"
        remove_cgroup(group)
        disable_controllers(str(top), [name])
        assert name not in control.read_text().split()
        disable_controllers(str(top), [name])


# --- a session that was killed ---

SESSION = """
import os, subprocess, sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from dyno.hosts.kernel import sysctl
from dyno.hosts.undo import Change
from dyno.model.study import Machine

journal = UndoJournal()
host = LocalHost(journal)
folder = host.temporary_folder(Path(sys.argv[1]))
host.set_kernel({sysctl(sys.argv[2]): sys.argv[3]})
confined = host.confine(Machine(), parent=True)
image, place = folder / "image", folder / "place"
image.touch()
os.truncate(image, 8 << 20)
subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
place.mkdir()
journal.will(Change("loop", {"file": str(image)}))
device = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True).stdout.strip()
journal.will(Change("mount", {"target": str(place)}))
subprocess.run(["mount", device, place], check=True)
# A process without the session's token, as those in a container, that works on the file system.
argv, _ = confined.around(["sh", "-c", f"exec sleep 1000 >{place}/log"], None)
process = subprocess.Popen(argv, env={"PATH": os.environ["PATH"]}, start_new_session=True)
print(journal.token, process.pid, flush=True)
sys.stdin.read()
"""


@needs_root
@pytest.mark.parametrize("how", ["kill -9", "torn"])
def test_all_that_a_killed_session_did_to_the_machine_is_undone(state: Path, tmp_path: Path, how: str) -> None:
    folder, setting = tmp_path / "killed", sysctl("vm.dirty_expire_centisecs")
    with alone_on_the_machine():
        before = setting.show()
        other = str(int(before) - 1)
        argv = [sys.executable, "-c", SESSION, str(folder), setting.name, other]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdout is not None
            token, pid = session.stdout.readline().split()
            until(lambda: (folder / "place" / "log").exists())
            os.kill(session.pid, signal.SIGKILL)
            assert session.wait(LIMIT_S) == -signal.SIGKILL
        assert setting.show() == other
        assert mounts_below(str(folder))
        assert loop_devices(str(folder / "image"))
        assert is_alive(int(pid))
        if how == "torn":
            with (state / "undo" / f"{token}.jsonl").open("a") as journal:
                journal.write('{"kind": "mount", "what": {"tar')
        (cleaned,) = undo.clean()
        assert cleaned.stuck == ()
        assert {change.split()[0] for change in cleaned.undone} >= {"kernel-setting", "mount", "loop", "cgroup"}
        assert setting.show() == before
    assert not is_alive(int(pid))
    assert mounts_below(str(folder)) == []
    assert loop_devices(str(folder / "image")) == []
    assert not folder.exists()
    assert [top for top in HIERARCHIES if (top / f"dyno-{token}").exists()] == []
    assert list((state / "undo").iterdir()) == []
    assert undo.clean() == []


@needs_root
def test_what_is_still_in_use_stays_in_the_journal_for_the_next_command(
    state: Path,
    place: Path,
    sleeper: Callable[..., subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mount(place)
    folder = state / "undo"
    folder.mkdir(parents=True)
    (folder / "0.jsonl").write_text(json.dumps({"kind": "mount", "what": {"target": str(place)}}) + "\n")
    user = sleeper(place)
    monkeypatch.setattr(leftovers, "_BUSY_LIMIT_S", 0.05)
    assert "something still uses it" in undo.clean()[0].stuck[0]
    assert mounts_below(str(place)) == [str(place)]
    user.kill()
    user.wait(LIMIT_S)
    assert undo.clean()[0].stuck == ()
    assert mounts_below(str(place)) == []
    assert list(folder.iterdir()) == []


@needs_root
def test_what_only_root_may_undo_is_told_to_others(place: Path, image: Path) -> None:
    mount(place)
    attach(image)
    with without_root():
        with pytest.raises(UndoError, match=f"cannot unmount {place}: Operation not permitted"):
            unmount(str(place))
        with pytest.raises(UndoError, match=r"cannot open /dev/loop\d+: Permission denied"):
            detach_loop(str(image))
        with pytest.raises(UndoError, match=r"cannot write 1 to /proc/sys/vm/\w+: Permission denied"):
            write_back("/proc/sys/vm/dirty_expire_centisecs", "1")


def test_a_file_that_somebody_left_for_us_goes(tmp_path: Path) -> None:
    file = tmp_path / "left"
    file.touch()
    leftovers.remove_file(str(file))
    assert not file.exists()
    leftovers.remove_file(str(file))
    with pytest.raises(UndoError, match="cannot remove"):
        leftovers.remove_file(str(tmp_path))


def test_folders_that_somebody_made_for_us_go_but_not_those_that_others_came_to_use(tmp_path: Path) -> None:
    outer, inner, used = tmp_path / "outer", tmp_path / "outer" / "inner", tmp_path / "used"
    inner.mkdir(parents=True)
    used.mkdir()
    (used / "theirs").touch()
    for _ in range(2):
        leftovers.remove_if_empty([str(outer), str(inner), str(used)])
        assert [path.name for path in tmp_path.iterdir()] == ["used"]


def test_folders_that_were_there_before_are_not_ours(host: LocalHost, tmp_path: Path) -> None:
    before, new = tmp_path / "before", tmp_path / "new"
    before.mkdir()
    expected = host.expect_folders([before, new])
    new.mkdir()
    host.put_back(expected)
    assert list(tmp_path.iterdir()) == [before]


@needs_root
def test_a_bridge_goes_also_one_that_is_up_and_has_an_address() -> None:
    name = bridges.new_name()
    bridges.make(name)
    assert name in bridges.interfaces()
    assert bridges.ADDRESS in Path("/proc/net/fib_trie").read_text()
    for _ in range(2):
        leftovers.remove_bridge(name)
        assert name not in bridges.interfaces()


def test_a_bridge_of_somebody_else_s_is_not_removed() -> None:
    with pytest.raises(UndoError, match="none of ours"):
        leftovers.remove_bridge("docker0")


def test_processes_of_a_session_are_asked_before_they_are_killed(tmp_path: Path) -> None:
    """One that makes a data folder of PostgreSQL left shared memory behind when it was killed at once."""
    token = secrets.token_hex(8)
    asked, ready = tmp_path / "asked", tmp_path / "ready"
    words = (
        f"trap 'touch {asked}; exit 0' TERM; touch {ready}; while :; do sleep 0.01; done",
        "trap '' TERM; sleep 1000",
    )
    started = [subprocess.Popen(["sh", "-c", each], env={leftovers.TOKEN_VARIABLE: token}) for each in words]
    try:
        until(ready.exists)
        leftovers.end_processes(token)
        assert asked.exists()
        assert [process.wait(LIMIT_S) for process in started] == [0, -signal.SIGKILL]
    finally:
        for process in started:
            process.kill()


@needs_root
def test_posix_segments_that_nobody_has_mapped_go_with_the_one_that_their_maker_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    owner = 54321
    monkeypatch.setattr(leftovers, "_POSIX_SEGMENTS", tmp_path)
    names = ("PostgreSQL.1", "PostgreSQL.2", "PostgreSQL.3", "other.4")
    for name in names:
        (tmp_path / name).write_bytes(b"x" * 4096)
        os.chown(tmp_path / name, 1 if name == "PostgreSQL.3" else owner, 0)
    with (tmp_path / "PostgreSQL.2").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        leftovers._remove_unmapped(owner, 0)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["PostgreSQL.2", "PostgreSQL.3", "other.4"]
        leftovers._remove_unmapped(1, 2**40)  # made before its maker's
    assert (tmp_path / "PostgreSQL.3").exists()
