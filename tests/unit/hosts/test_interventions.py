"""Each intervention on a program that does what it slows, and nothing of it is left, also after kill -9."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import dyno
from dyno.hosts import LocalHost, leftovers, undo
from dyno.hosts.accounts import Account
from dyno.hosts.cgroups import IO_LIMITS, Hierarchy, controller
from dyno.hosts.confinement import Confinement
from dyno.hosts.interventions.base import Bench, Intervention, Lives, Target
from dyno.hosts.interventions.caps import Cap
from dyno.hosts.interventions.cpu_load import CpuLoad
from dyno.hosts.interventions.cpu_quota import CpuQuota
from dyno.hosts.interventions.cpu_relief import CpuRelief
from dyno.hosts.interventions.io_caps import IoCap
from dyno.hosts.interventions.io_limit import IoLimit
from dyno.hosts.interventions.io_operations_limit import IoOperationsLimit
from dyno.hosts.interventions.memory import Memory
from dyno.hosts.interventions.network_delay import NetworkDelay
from dyno.hosts.interventions.read_delay import ReadDelay
from dyno.hosts.interventions.sync_delay import SyncDelay
from dyno.hosts.joint import Joint
from dyno.model.base import InvalidRun, RunError
from dyno.model.registry import find
from dyno.model.study import Machine
from tests.making import until
from tests.unit.hosts.rights import needs_root

LIMIT_S = 60
DELAY_S = 5e-3  # far beyond what a busy machine adds
NOBODY = Account("nobody", 65534, 65534, ())
EVER = (0, 2**62)
TRIED = 9  # times that the program below makes each call

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


def needs_controller(name: str) -> pytest.MarkDecorator:
    missing = os.geteuid() != 0 or controller(name) is None
    return pytest.mark.skipif(missing, reason=f"needs root and control groups for {name}")


@pytest.fixture
def bench(host: LocalHost, tmp_path: Path) -> Bench:
    return Bench(host, tmp_path / "scratch", tmp_path / "logs", {}, limit=LIMIT_S)


def target(tmp_path: Path, *pids: int, **rest: Any) -> Target:
    return Target(tmp_path, {f"server-{pid}": pid for pid in pids}, **rest)


CALLS = """
import json, os, socket, sys, time
folder = sys.argv[1]
a, b = (os.open(f"{folder}/{name}", os.O_RDWR) for name in "ab")
one, other = socket.socketpair()
def median(call, times=9):
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[times // 2]
def sync():
    os.pwrite(a, b"x", 0)
    os.fdatasync(a)
print(json.dumps({
    "sync": median(sync), "read a": median(lambda: os.pread(a, 1, 0)), "read b": median(lambda: os.pread(b, 1, 0)),
    "send": median(lambda: one.send(b"x")), "uid": os.getuid(),
}))
"""


def try_calls(host: LocalHost, folder: Path, made: Intervention, account: Account | None = None) -> dict[str, float]:
    """What calls take, in seconds, in a program that is started under the intervention."""
    for name in "ab":
        (folder / name).write_bytes(b"0123456789")
        (folder / name).chmod(0o666)
    confinement = Confinement(under=made.under([folder / "a"]))
    # Another user may not be let in to the Python of this one.
    words = ["/usr/bin/python3" if account else sys.executable, "-I", "-S", "-c", CALLS, str(folder)]
    argv, who = confinement.around(words, account)
    return dict(json.loads(host.run(argv, limit=LIMIT_S, log=folder / "log", account=who)))


@needs_strace
@pytest.mark.parametrize(
    ("kind", "slowed"),
    [(SyncDelay, "sync"), (ReadDelay, "read a"), (NetworkDelay, "send")],
)
def test_the_calls_of_a_kind_take_longer_and_are_counted_and_no_others_do(
    kind: type[Intervention], slowed: str, host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.known |= {f"{kind.kind} 0": 0.0, f"{kind.kind} {DELAY_S:g}": DELAY_S}
    control, made = kind(0.0, bench), kind(DELAY_S, bench)
    try_calls(host, tmp_path, control)
    assert control.effect(*EVER).calls == TRIED
    taken = try_calls(host, tmp_path, made)
    assert taken[slowed] > DELAY_S
    effect = made.effect(*EVER)
    assert effect.calls == TRIED
    assert effect.added_s == DELAY_S
    assert made.effect(0, 1).calls == 0
    assert control.effect(*EVER).added_s == 0


@needs_strace
@needs_root
def test_a_program_that_runs_as_another_user_is_delayed_as_that_user(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.known |= {"sync-delay 0": 0.0, f"sync-delay {DELAY_S:g}": DELAY_S}
    made = SyncDelay(DELAY_S, bench)
    taken = try_calls(host, tmp_path, made, NOBODY)
    assert taken["uid"] == NOBODY.uid
    assert taken["sync"] > DELAY_S
    assert made.effect(*EVER).calls == TRIED


@needs_strace
@pytest.mark.parametrize("kind", [SyncDelay, ReadDelay, NetworkDelay])
def test_what_a_delay_really_adds_is_measured_once(kind: type[SyncDelay], bench: Bench, tmp_path: Path) -> None:
    made = kind(DELAY_S, bench)
    made.measure(tmp_path)
    # A timer is never early by more than its tick.
    assert made.added_s > 0.9 * DELAY_S
    known = dict(bench.known)
    made.measure(tmp_path)
    assert bench.known == known


@needs_strace
def test_a_program_under_strace_keeps_its_id_and_ends_when_it_is_asked_to(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.known |= {"sync-delay 0": 0.0}
    words = [*SyncDelay(0.0, bench).under([]), "sh", "-c", "echo $$; exec sleep 1000"]
    process = host.start(words, log=tmp_path / "log", lines=True)
    assert [int(line) for line in process.lines(LIMIT_S)] == [process.pid]
    assert process.stop(LIMIT_S) == -signal.SIGTERM


@needs_strace
def test_a_file_that_syncs_with_each_write_is_refused(host: LocalHost, bench: Bench, tmp_path: Path) -> None:
    with HoldingOpen(host, tmp_path, "os.O_WRONLY | os.O_DSYNC") as pid:
        with pytest.raises(InvalidRun, match="table is open with O_DSYNC"):
            SyncDelay(0.0, bench).begin(target(tmp_path, pid))
        SyncDelay(0.0, bench).begin(target(tmp_path / "elsewhere", pid))


BURN = """
import sys, time
begun, used = time.monotonic(), time.process_time()
while time.monotonic() - begun < float(sys.argv[1]):
    pass
print((time.process_time() - used) / (time.monotonic() - begun))
"""


def burnt(host: LocalHost, folder: Path, confinement: Confinement = Confinement(), cpu: int | None = None) -> float:  # noqa: B008
    """The share of a CPU that a program had which would have had all of it."""
    pinned = [] if cpu is None else ["taskset", "--cpu-list", str(cpu)]
    argv, _ = confinement.around([*pinned, sys.executable, "-I", "-S", "-c", BURN, "0.5"], None)
    return float(host.run(argv, limit=LIMIT_S, log=folder / "burn"))


@needs_controller("cpu")
def test_a_quota_holds_all_that_is_in_the_group_and_goes_again(host: LocalHost, bench: Bench, tmp_path: Path) -> None:
    bench.joint = host.joint_group(["cpu"])
    cpus = len(os.sched_getaffinity(0))
    # So little that one process on one CPU is held back, however many there are.
    dose = 1 - 0.3 / cpus
    made = CpuQuota(dose, bench)
    made.begin(target(tmp_path))
    assert burnt(host, tmp_path, bench.joint.confinement) < 0.45
    made.end()
    assert "-1" in _quota(bench) or "max" in _quota(bench)
    slowed = made.effect(*EVER).slowed
    assert slowed == pytest.approx(cpus / 0.3 - 1)


def _quota(bench: Bench) -> str:
    assert bench.joint is not None
    file = "cpu.cfs_quota_us" if bench.joint.version("cpu") == 1 else "cpu.max"
    return (bench.joint.folder("cpu") / file).read_text()


@needs_controller("cpu")
def test_the_control_of_a_quota_has_the_whole_capacity_as_its_limit(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.joint = host.joint_group(["cpu"])
    made = CpuQuota(0.0, bench)
    made.begin(target(tmp_path))
    assert _quota(bench).split()[0] == str(10_000 * len(os.sched_getaffinity(0)))
    made.end()
    assert made.effect(*EVER).slowed == 0


@needs_root
def test_a_competing_load_takes_its_share_of_every_cpu_and_says_what_it_took(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    cpu = min(os.sched_getaffinity(0))
    made = CpuLoad(0.6, bench)
    made.begin(target(tmp_path))
    had = burnt(host, tmp_path, cpu=cpu)
    made.end()
    made.end()  # twice is once
    assert had < 0.5
    slowed = made.effect(*EVER).slowed
    assert slowed is not None
    assert slowed == pytest.approx(1 / 0.4 - 1, rel=0.3)


@needs_root
def test_the_control_of_a_competing_load_takes_next_to_nothing(host: LocalHost, bench: Bench, tmp_path: Path) -> None:
    made = CpuLoad(0.0, bench)
    made.begin(target(tmp_path))
    burnt(host, tmp_path)
    made.end()
    slowed = made.effect(*EVER).slowed
    assert slowed is not None
    assert slowed < 0.15


@needs_controller("memory")
def test_a_memory_limit_is_a_share_of_the_machines_and_goes_again(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.joint = host.joint_group(["memory"])
    made = Memory(0.5, bench)
    file = bench.joint.folder("memory") / (
        "memory.limit_in_bytes" if bench.joint.version("memory") == 1 else "memory.max"
    )
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    made.begin(target(tmp_path))
    assert int(file.read_text()) == pytest.approx(total / 2, rel=0.01)
    made.end()
    assert not file.read_text().strip().isdigit() or int(file.read_text()) > total


@needs_controller("memory")
def test_a_memory_limit_is_refused_where_data_are_read_past_the_page_cache(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.joint = host.joint_group(["memory"])
    with HoldingOpen(host, tmp_path, "os.O_RDWR | os.O_DIRECT") as pid, pytest.raises(InvalidRun, match="killed, not"):
        Memory(0.5, bench).begin(target(tmp_path, pid))


@needs_controller("io")
def test_a_bandwidth_limit_is_of_what_was_measured(host: LocalHost, bench: Bench, tmp_path: Path) -> None:
    bench.joint = host.joint_group(["io"])
    made = IoLimit(0.5, bench)
    try:
        made.measure(tmp_path)
    except RunError as error:
        pytest.skip(str(error))
    assert bench.known["read_bytes_s"] > 0
    assert bench.known["read_bytes_s_sd"] > 0, "tries that are all alike are no tries"
    assert not list(tmp_path.glob(".*-tried"))
    made.begin(target(tmp_path))
    limited = _throttled(bench)
    assert limited == pytest.approx(bench.known["write_bytes_s"] / 2, rel=0.01)
    made.end()
    assert _throttled(bench) is None
    assert made.effect(*EVER).measured == bench.known


def _throttled(bench: Bench, name: str = "write_bytes") -> float | None:
    assert bench.joint is not None
    v1, v2 = IO_LIMITS[name]
    if bench.joint.version("io") == 1:
        text = (bench.joint.folder("io") / f"blkio.throttle.{v1}").read_text().split()
        return float(text[1]) if text else None
    told = dict(word.split("=") for word in (bench.joint.folder("io") / "io.max").read_text().split()[1:])
    return None if told.get(v2, "max") == "max" else float(told[v2])


AGAIN = """
import mmap, os, sys
sys.path.insert(0, sys.argv[1])
from dyno.hosts.aio import answered
file = os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECT)
blocks = list(range(os.fstat(file).st_size // 4096)) * 4
print(answered(file, mmap.mmap(-1, 2**20), blocks, size=4096, depth=128, seconds=1, write=False))
"""


@needs_controller("io")
def test_direct_reads_fall_to_the_share_of_the_operations_that_is_left(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.joint = host.joint_group(["io"])
    # So few that a machine that is busy with other things meanwhile can do them too.
    made = IoOperationsLimit(0.8, bench)
    try:
        made.measure(tmp_path)
    except RunError as error:
        pytest.skip(str(error))
    assert {f"{way}_operations_s{of}" for way in ("read", "write") for of in ("", "_sd")} == set(bench.known)
    assert not list(tmp_path.glob(".*-tried"))
    file = tmp_path / "blocks"
    file.write_bytes(os.urandom(2**20) * 64)
    with file.open("rb") as written:
        os.fsync(written.fileno())

    def reads_s() -> float:
        assert bench.joint is not None
        words = [sys.executable, "-c", AGAIN, str(Path(dyno.__file__).parents[1]), str(file)]
        argv, _ = bench.joint.confinement.around(words, None)
        return float(host.run(argv, limit=LIMIT_S, log=tmp_path / "again"))

    made.begin(target(tmp_path))
    left = 0.2 * bench.known["read_operations_s"]
    assert _throttled(bench, "reads") == pytest.approx(left, rel=0.01)
    # The kernel lets a slice begin with its whole share, and a busy machine reads less than it may.
    assert left / 2 < reads_s() < 2 * left
    made.end()
    assert _throttled(bench, "reads") is None
    assert reads_s() > 2 * left
    assert made.effect(*EVER).measured == bench.known
    assert made.effect(*EVER).slowed == pytest.approx(1 / 0.2 - 1)


@needs_controller("io")
@pytest.mark.parametrize(("kind", "other"), [(IoLimit, IoOperationsLimit), (IoOperationsLimit, IoLimit)])
def test_the_control_has_a_limit_that_holds_nothing_and_no_limit_of_the_other_kind(
    kind: type[IoCap], other: type[IoCap], host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.joint = host.joint_group(["io"])
    for each in (kind, other):
        bench.known |= {f"{way}_{each.unit}": 1000.0 for way in ("read", "write")}
    before, made = other(0.5, bench), kind(0.0, bench)
    before.begin(target(tmp_path))
    assert [_throttled(bench, name) for name in other.limits] == [500, 500]
    before.end()
    made.begin(target(tmp_path))
    assert [_throttled(bench, name) for name in kind.limits] == [kind.none, kind.none]
    assert [_throttled(bench, name) for name in other.limits] == [None, None]
    made.end()
    assert [_throttled(bench, name) for name in kind.limits] == [None, None]


@needs_controller("io")
def test_a_share_of_a_slow_disks_operations_is_never_so_small_that_it_is_no_limit(
    host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.joint = host.joint_group(["io"])
    bench.known |= {"read_operations_s": 3.0, "write_operations_s": 3.0}
    made = IoOperationsLimit(0.9, bench)
    made.begin(target(tmp_path))
    assert _throttled(bench, "reads") == 1
    made.end()


@pytest.mark.skipif(
    os.geteuid() != 0 or getattr(controller("io"), "version", 2) == 2, reason="needs groups of version 1"
)
@pytest.mark.parametrize("kind", [IoLimit, IoOperationsLimit])
def test_a_limit_of_the_device_is_refused_where_the_kernel_would_write_unheld(
    kind: type[IoCap], host: LocalHost, bench: Bench, tmp_path: Path
) -> None:
    bench.joint = host.joint_group(["io"])
    bench.known |= {f"{way}_{kind.unit}": 1e6 for way in ("read", "write")}
    with HoldingOpen(host, tmp_path, "os.O_RDWR") as pid:
        with pytest.raises(InvalidRun, match=f"^{kind.kind}: what is written through page cache"):
            kind(0.5, bench).begin(target(tmp_path, pid))
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        made = kind(0.5, bench)
        made.begin(target(elsewhere, pid))
        made.end()
    assert "page cache" in (kind.unfit(Lives(embedded=True)) or "")


class HoldingOpen:
    """A process that has a data file open with these flags."""

    def __init__(self, host: LocalHost, folder: Path, flags: str) -> None:
        (folder / "table").write_bytes(b"x" * 4096)
        code = f"import os, sys; os.open({str(folder / 'table')!r}, {flags}); print(1, flush=True); sys.stdin.read()"
        self._process = host.start([sys.executable, "-I", "-c", code], log=folder / "said", lines=True)

    def __enter__(self) -> int:
        assert self._process.lines(LIMIT_S), self._process.complaint()
        return self._process.pid

    def __exit__(self, *_: object) -> None:
        self._process.stop()


@needs_controller("cpu")
def test_a_relief_raises_the_machines_own_limit_and_puts_it_back(host: LocalHost, bench: Bench, tmp_path: Path) -> None:
    machine = Machine(cpus=0.2)
    confinement = host.confine(machine)
    at = target(tmp_path, group=confinement.group, machine=machine)
    made = CpuRelief(0.9, bench)
    before = burnt(host, tmp_path, confinement)
    made.begin(at)
    relieved = burnt(host, tmp_path, confinement)
    made.end()
    assert before < 0.3
    assert relieved > before
    assert burnt(host, tmp_path, confinement) < 0.3
    assert made.effect(*EVER).slowed == pytest.approx(1 / 1.9 - 1)


def test_a_relief_beyond_what_the_machine_has_is_refused_before_it_is_made() -> None:
    there = len(os.sched_getaffinity(0))
    all_of_it, half = (Lives(embedded=False, machine=Machine(cpus=part * there)) for part in (1.0, 0.5))
    assert f"{there} may be used here" in (CpuRelief.refuses(0.2, all_of_it) or "")
    assert CpuRelief.refuses(0.0, all_of_it) is None
    assert CpuRelief.refuses(0.6, half) is None


def test_what_a_system_says_of_its_files_is_refused_before_it_runs() -> None:
    direct = Lives(embedded=False, opens_directly="innodb_flush_method=O_DIRECT")
    assert "killed, not slowed (innodb_flush_method=O_DIRECT)" in (Memory.unfit(direct) or "")
    assert Memory.unfit(Lives(embedded=False)) is None
    io, buffered = controller("io"), IoLimit.unfit(Lives(embedded=False, buffers_writes=True))
    assert (buffered is not None) == (io is not None and io.version == 1)


def test_a_run_joins_the_group_only_where_its_own_intervention_holds_by_one(bench: Bench) -> None:
    assert CpuQuota(0.1, bench).procs == ()
    bench.joint = Joint("of this study", {"cpu": Hierarchy(Path("/groups"), 2)})
    assert CpuQuota(0.0, bench).procs == (Path("/groups/of this study/cgroup.procs"),)
    assert SyncDelay(1e-3, bench).procs == ()


def test_every_kind_says_where_it_does_not_fit() -> None:
    kinds = find("dyno.hosts.interventions", Intervention)  # type: ignore[type-abstract]
    boxed, limited = Lives(embedded=False, in_container=True), Lives(embedded=False, machine=Machine(cpus=1))
    for name, kind in kinds.items():
        assert kind.Options().doses
        assert len(kind.Options().steps(name)) == 4
        if issubclass(kind, Cap):
            assert kind.unfit(boxed)
            assert kind.unfit(limited)
    assert kinds["sync-delay"].unfit(boxed)
    assert kinds["cpu-load"].unfit(boxed) is None
    assert kinds["cpu-relief"].unfit(limited) is None
    assert kinds["network-delay"].unfit(Lives(embedded=True))


def test_every_kind_is_on_the_page_of_probes() -> None:
    page = (Path(__file__).parents[3] / "docs/probes.md").read_text()
    kinds = find("dyno.hosts.interventions", Intervention)  # type: ignore[type-abstract]
    assert [name for name in kinds if f"\n| `{name}` |" not in page] == []


KILLED = """
import json, os, signal, sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from dyno.hosts.interventions.base import Bench, Target
from dyno.hosts.interventions.cpu_load import CpuLoad
from dyno.hosts.interventions.cpu_quota import CpuQuota
from dyno.hosts.interventions.sync_delay import SyncDelay
folder = Path(sys.argv[1])
journal = UndoJournal()
host = LocalHost(journal)
joint = host.joint_group(["cpu", "memory"])
bench = Bench(host, folder / "scratch", folder / "logs", {}, joint)
at = Target(folder, {})
CpuQuota(0.5, bench).begin(at)
load = CpuLoad(0.1, bench)
load.begin(at)
argv, _ = joint.confinement.around([*SyncDelay(1e-3, bench).under([]), "sleep", "1000"], None)
process = host.start(argv, log=folder / "sleep")
pids = [process.pid, *(p.pid for p in load._processes)]
print(json.dumps({"token": journal.token, "group": joint.name, "pids": pids}))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@needs_strace
@needs_controller("cpu")
@needs_controller("memory")
def test_nothing_is_left_of_a_session_that_was_killed(tmp_path: Path) -> None:
    words: Sequence[str] = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    told = json.loads(done.stdout)
    folders: Callable[[], list[Path]] = lambda: [  # noqa: E731
        found for parent in leftovers.CGROUPS.glob("*") if (found := parent / told["group"]).exists()
    ]
    assert folders() or (leftovers.CGROUPS / told["group"]).exists(), "there was nothing to undo"
    cleaned = undo.clean()
    assert [each.stuck for each in cleaned] == [()]
    assert not folders()
    assert not (leftovers.CGROUPS / told["group"]).exists()
    until(lambda: not any(_lives(pid, told["token"]) for pid in told["pids"]))
    wanted = f"{leftovers.TOKEN_VARIABLE}={told['token']}".encode()
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if wanted in _environment(pid)]


def _lives(pid: int, token: str) -> bool:
    return token.encode() in _environment(Path(f"/proc/{pid}"))


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
