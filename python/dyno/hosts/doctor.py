"""What this machine can and cannot do for dyno, and how to get the rest."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from dyno.hosts import (
    crate_home,
    files,
    java,
    mysql_root,
    pagecache,
    perf,
    programs,
    replication,
    tools,
    undo,
    vm_image,
    vms,
)
from dyno.hosts.cgroups import controller
from dyno.hosts.leftovers import CGROUPS
from dyno.hosts.local import core_binary
from dyno.hosts.networks import Networks
from dyno.model.base import RunError, UserError
from dyno.model.units import format_size

BERKELEY_LIBRARY = "libdb-5.3.so"
BERKELEY_PACKAGE = "libdb5.3"

_LEAST_FREE = 2 * 1024**3
_FILE_SYSTEM = "for systems of kind filesystem and `host.file_system` of kind {}: install Debian's {}"


_NODES = ("root", "networks of nodes")
CLUSTERS: Mapping[str, Sequence[str]] = {
    "group-replication": (*_NODES, "MySQL", "MySQL Router"),
    "mysql-replication": (*_NODES, "MySQL", "haproxy"),
    "galera": (*_NODES, "MariaDB", "Galera", "haproxy"),
    "replicated-disk": (*_NODES, "MySQL", "replicated disks", "FUSE", "loop devices"),
    "drbd": (*_NODES, "MySQL", "virtual machines", "DRBD"),
}
"""The checks that each kind of cluster hangs on."""


@dataclass(frozen=True)
class Check:
    """One thing looked at. `needed` ones must hold for dyno to work at all; the others each open a possibility."""

    name: str
    holds: bool
    found: str
    needed: bool = False
    remedy: str = ""


_Look = Callable[[str, Path], Check]


def examine(folder: Path) -> list[Check]:
    """Look at this machine; `folder` is where results and data would go. Leaves nothing behind."""
    checks = [_guarded(name, check, folder) for name, check in _looks().items()]
    known = {check.name: check.holds for check in checks}
    return [*checks, *(_cluster(kind, needs, known) for kind, needs in CLUSTERS.items())]


def lacking(names: Sequence[str], folder: Path) -> list[Check]:
    """Those of the named checks that do not hold; at nothing else is looked."""
    looks = _looks()
    return [check for name in names if not (check := _guarded(name, looks[name], folder)).holds]


def _looks() -> Mapping[str, _Look]:
    """What is looked at, by name, in the order in which it is told."""
    return {
        "Python": _python,
        "dyno-core": _core,
        "undo journal": _journal,
        "results folder": _results,
        "free disk": _disk,
        "page cache": _page_cache,
        "reflink": _reflink,
        "pressure (PSI)": _pressure,
        "quiet machine": _load,
        "root": _root,
        "CPU and memory limits": _cgroups,
        "disk limits": _disk_limits,
        "loop devices": _loops,
        "networks of nodes": _networks,
        "ext4": _program("mkfs.ext4", _FILE_SYSTEM.format("ext4", "e2fsprogs")),
        "xfs": _program("mkfs.xfs", _FILE_SYSTEM.format("xfs", "xfsprogs")),
        "btrfs": _program("mkfs.btrfs", _FILE_SYSTEM.format("btrfs", "btrfs-progs")),
        "FUSE": _fuse,
        "Docker": _engine("dockerd", "docker.io"),
        "Podman": _engine("podman", "podman"),
        "perf": _perf,
        "strace": _program("strace", "to delay calls on purpose (`dyno probe`): install Debian's strace"),
        "hardware counters": _counters,
        "instruction counts": _valgrind,
        "MariaDB": _program("mariadbd", "install Debian's mariadb-server"),
        "Galera": _galera,
        "MySQL": _mysql,
        "MySQL Router": _router,
        "haproxy": _program("haproxy", "for systems of kind galera and mysql-replication: install Debian's haproxy"),
        "virtual machines": _machines,
        "DRBD": _drbd,
        "replicated disks": _replicated_disks,
        "PostgreSQL": _program("postgres", "install Debian's postgresql"),
        "QuestDB": _questdb,
        "DuckDB": _duckdb,
        "CrateDB": _cratedb,
        "Berkeley DB": _berkeley,
        "sysbench": _program("sysbench", "for workloads of kind sysbench: install Debian's sysbench"),
        "fio": _program("fio", "for workloads of kind fio: install Debian's fio"),
        "Go": _program("go", "install Debian's golang-go; `dyno get` builds tools with it"),
        "go-ycsb": _go_tool,
        "tsbs": _go_tool,
        "YCSB": _ycsb,
    }


def _cluster(kind: str, needs: Sequence[str], known: Mapping[str, bool]) -> Check:
    """Whether all is there that systems of a kind need, by the lines that say it of each."""
    missing = [name for name in needs if not known[name]]
    found = f"without {', '.join(missing)}" if missing else f"{', '.join(needs)}: all there"
    return Check(f"systems of kind {kind}", not missing, found, remedy="see the lines of these above")


def _guarded(name: str, check: _Look, folder: Path) -> Check:
    try:
        return check(name, folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, False, str(error))


def _python(name: str, _folder: Path) -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(name, sys.version_info >= (3, 11), version, needed=True, remedy="install Python 3.11 or newer")


def _core(name: str, _folder: Path) -> Check:
    remedy = "install dyno again with Rust's cargo on the PATH: `pip install .`"
    try:
        answer = subprocess.run([core_binary(), "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (UserError, OSError, subprocess.TimeoutExpired) as error:
        return Check(name, False, str(error), needed=True, remedy=remedy)
    said = (answer.stdout or answer.stderr).strip()
    return Check(name, answer.returncode == 0, said, needed=True, remedy=remedy)


def _journal(name: str, _folder: Path) -> Check:
    remedy = "set DYNO_STATE to a folder that you may write"
    state = undo.state_folder()
    try:
        undo.UndoJournal().close()
    except OSError as error:
        return Check(name, False, f"{state}: {error.strerror}", needed=True, remedy=remedy)
    living = undo.living()
    return Check(name, True, f"{state}, {living} sessions alive", needed=True)


def _results(name: str, folder: Path) -> Check:
    existing = _existing(folder)
    holds = os.access(existing, os.W_OK)
    return Check(
        name, holds, str(folder), needed=True, remedy=f"choose another with --results: {existing} is not writable"
    )


def _disk(name: str, folder: Path) -> Check:
    free = shutil.disk_usage(_existing(folder)).free
    return Check(name, free >= _LEAST_FREE, format_size(free), remedy="free some disk, or choose another folder")


def _page_cache(name: str, folder: Path) -> Check:
    remedy = "`caches: cold` needs a real file system (not tmpfs) under the data"
    with tempfile.TemporaryDirectory(prefix="dyno-doctor-", dir=_existing(folder)) as scratch:
        path = Path(scratch, "page")
        path.write_bytes(b"x" * 65536)
        pagecache.evict(path)
        left = pagecache.resident_bytes(path)
    return Check(
        name, left == 0, "files can be dropped from it and seen in it" if left == 0 else "not dropped", remedy=remedy
    )


def _reflink(name: str, folder: Path) -> Check:
    remedy = "`restore: reflink` needs xfs or btrfs under the data; `restore: copy` works everywhere"
    with tempfile.TemporaryDirectory(prefix="dyno-doctor-", dir=_existing(folder)) as scratch:
        source = Path(scratch, "source")
        source.mkdir()
        (source / "file").write_bytes(b"x" * 65536)
        try:
            files.copy_tree(source, Path(scratch, "target"), reflink=True, deadline=time.monotonic() + 10)
        except OSError:
            return Check(name, False, "this file system cannot", remedy=remedy)
    return Check(name, True, "this file system can")


def _pressure(name: str, _folder: Path) -> Check:
    holds = Path("/proc/pressure/cpu").exists()
    return Check(
        name, holds, "visible" if holds else "not visible", remedy="boot the kernel with psi=1 (Linux 4.20 or newer)"
    )


def _berkeley(name: str, _folder: Path) -> Check:
    remedy = f"for systems of kind berkeleydb: install Debian's {BERKELEY_PACKAGE}"
    try:
        library = ctypes.CDLL(BERKELEY_LIBRARY)
    except OSError:
        return Check(name, False, f"{BERKELEY_LIBRARY} is not there", remedy=remedy)
    library.db_version.restype = ctypes.c_char_p
    said = library.db_version(None, None, None).decode(errors="replace")
    return Check(name, True, said.partition(": (")[0])


def _load(name: str, _folder: Path) -> Check:
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    found = f"load {load:.2f} on {cpus} CPUs"
    return Check(name, load < 0.3 * cpus, found, remedy="end what else is running, or intervals will be wide")


def _root(name: str, _folder: Path) -> Check:
    holds = os.geteuid() == 0
    return Check(
        name,
        holds,
        "yes" if holds else "no",
        remedy="not needed for embedded systems; run as root for kernel settings, limits of CPU and memory, "
        "file systems for the data and containers",
    )


def _cgroups(name: str, _folder: Path) -> Check:
    wanted = ("cpu", "cpuset", "memory")
    remedy = "for `host.machine` and `host.pin`: a kernel with these controllers, mounted below /sys/fs/cgroup"
    try:
        second = (CGROUPS / "cgroup.controllers").read_text().split()
    except FileNotFoundError:
        second = []
    # The first version, or both: a controller that has a hierarchy of its own is not among those of the second.
    versions = {each: 2 if each in second else 1 for each in wanted if each in second or (CGROUPS / each).is_dir()}
    missing = [each for each in wanted if each not in versions]
    if missing:
        return Check(name, False, f"no control groups of {', '.join(missing)}", remedy=remedy)
    told = " and ".join(str(version) for version in sorted(set(versions.values())))
    return Check(name, True, f"control groups of {', '.join(wanted)}, version {told}")


def _disk_limits(name: str, _folder: Path) -> Check:
    remedy = "for `host.machine.disk`: a kernel with control groups of io (blkio) and CONFIG_BLK_DEV_THROTTLING"
    io = controller("io")
    # Version 2 has no such file at its top, where nothing is limited.
    if io is None or (io.version == 1 and not (io.top / "blkio.throttle.read_bps_device").exists()):
        return Check(name, False, "no control groups that limit devices", remedy=remedy)
    told = ", which does not hold what is written through page cache" if io.version == 1 else ""
    return Check(name, True, f"control groups of io, version {io.version}{told}")


def _loops(name: str, _folder: Path) -> Check:
    remedy = (
        "for `host.file_system` and systems of kind filesystem: load the kernel's module loop, install Debian's mount"
    )
    if not Path("/dev/loop-control").exists():
        return Check(name, False, "/dev/loop-control is missing", remedy=remedy)
    found = _found("losetup")
    return Check(name, found is not None, found or "losetup is not installed", remedy=remedy)


def _fuse(name: str, _folder: Path) -> Check:
    remedy = "to record what file systems write, for power cuts: load the kernel's module fuse"
    holds = Path("/dev/fuse").exists()
    return Check(name, holds, "/dev/fuse" if holds else "/dev/fuse is missing", remedy=remedy)


def _perf(name: str, _folder: Path) -> Check:
    what = "to count what CPUs do and to find hot spots"
    found = shutil.which("perf")
    if found is None:
        return Check(name, False, "perf is not installed", remedy=f"{what}: install Debian's linux-perf")
    try:
        perf.program()
    except RunError as error:
        remedy = f"{what}: run as root, or have kernel.perf_event_paranoid set to 2 or less"
        return Check(name, False, str(error), remedy=remedy)
    return Check(name, True, found)


def _counters(name: str, _folder: Path) -> Check:
    remedy = "a machine (or hypervisor) that lets cycles and instructions be counted, and Debian's linux-perf"
    found = shutil.which("perf")
    if found is None:
        return Check(name, False, "perf is not installed", remedy=remedy)
    try:
        holds = perf.counts(found, "instructions:u")
    except RunError as error:
        return Check(name, False, str(error), remedy=remedy)
    return Check(name, holds, "visible" if holds else "not visible on this machine", remedy=remedy)


def _valgrind(name: str, _folder: Path) -> Check:
    found = shutil.which("valgrind")
    return Check(name, found is not None, found or "valgrind is not installed", remedy="install Debian's valgrind")


def _found(program: str) -> str | None:
    """Where studies find it too; servers are not on every user's PATH."""
    known = programs.find(program) or shutil.which(program, path="/usr/local/sbin:/usr/local/go/bin")
    return None if known is None else str(known)


def _program(program: str, remedy: str) -> _Look:
    """Debian keeps each PostgreSQL in a folder of its own."""

    def look(name: str, _folder: Path) -> Check:
        debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
        found = str(debian[-1]) if debian else _found(program)
        return Check(name, found is not None, found or f"{program} is not installed", remedy=remedy)

    return look


def _engine(program: str, package: str) -> _Look:
    """No engine has to run: a study starts its own. Nor is a client enough."""

    def look(name: str, _folder: Path) -> Check:
        remedy = f"for `deployment: container-layered` and `container-volume`: install Debian's {package} and runc"
        missing = [each for each in (program, "runc") if _found(each) is None]
        found = f"{' and '.join(missing)} not installed" if missing else f"{_found(program)}, {_found('runc')}"
        return Check(name, not missing, found, remedy=remedy)

    return look


def _networks(name: str, _folder: Path) -> Check:
    """By making one, and a slow link in it."""
    remedy = (
        "for systems of several nodes: root, Debian's iproute2 and util-linux, and a kernel with namespaces of the "
        "network, veth, bridges and packet sockets"
    )
    if programs.find("nsenter") is None:
        return Check(name, False, "nsenter is not installed", remedy=remedy)
    try:
        network = Networks(os.environ).make(["node"])
        try:
            network.cut("node")
            network.slow("node", delay=0.001)
            network.heal()
        finally:
            network.destroy()
    except RunError as error:
        return Check(name, False, str(error), remedy=remedy)
    return Check(name, True, "can be made, cut and made slow")


def _galera(name: str, _folder: Path) -> Check:
    libraries = [Path("/usr/lib/galera/libgalera_smm.so"), Path("/usr/lib64/galera-4/libgalera_smm.so")]
    library = next((path for path in libraries if path.exists()), None)
    missing = [what for what, there in (("galera-4", library), ("rsync", _found("rsync"))) if there is None]
    found = f"{' and '.join(missing)} not installed" if missing else f"{library}, {_found('rsync')}"
    remedy = "for systems of kind galera: install Debian's mariadb-server, galera-4 and rsync"
    return Check(name, not missing, found, remedy=remedy)


def _mysql(name: str, _folder: Path) -> Check:
    tool = mysql_root.MysqlRoot()
    have = tool.installed()
    found = f"{have} in {tool.path()}" if have else "no folder with all of it"
    return Check(
        name, have is not None, found, remedy="for systems of MySQL, one or several with Router: `dyno get mysql`"
    )


def _router(name: str, _folder: Path) -> Check:
    """In the folder that MySQL's server is in, or on the PATH."""
    tool = mysql_root.MysqlRoot()
    inside = tool.path() / "usr" / "bin" / "mysqlrouter"
    found = str(inside) if inside.is_file() else _found("mysqlrouter")
    remedy = "for systems of kind group-replication: `dyno get mysql`, or install MySQL Router"
    return Check(name, found is not None, found or "mysqlrouter is not installed", remedy=remedy)


def _machines(name: str, _folder: Path) -> Check:
    """Whether the hardware accelerates them is found out by starting one, with the image's kernel."""
    found = _found(vms.QEMU)
    remedy = f"for systems of kind drbd: install Debian's {vms.PACKAGES} and socat"
    if found is None or _found("socat") is None:
        return Check(name, False, f"{'socat' if found else vms.QEMU} is not installed", remedy=remedy)
    kvm = os.access("/dev/kvm", os.R_OK | os.W_OK)
    known = vms.known_acceleration(vm_image.DrbdVm().path())
    if not kvm:
        told = "software emulates their CPUs, since /dev/kvm cannot be opened"
    elif known is None:
        told = "whether KVM works is not known before one was started: that /dev/kvm can be opened is no proof"
    elif known.kind == "kvm":
        told = "KVM works"
    else:
        told = f"software emulates their CPUs, since KVM does not work here ({known.why_not_kvm})"
    return Check(name, True, f"{found}; {told}")


def _drbd(name: str, _folder: Path) -> Check:
    tool = vm_image.DrbdVm()
    have = tool.installed()
    found = f"{have} in {tool.path()}" if have else "no image of virtual machines"
    return Check(name, have is not None, found, remedy=f"for systems of kind drbd: `dyno get {vm_image.NAME}`")


def _replicated_disks(name: str, _folder: Path) -> Check:
    missing = [f"{each} ({package})" for each, package in replication.PROGRAMS.items() if _found(each) is None]
    packages = ", ".join(dict.fromkeys(replication.PROGRAMS.values()))
    remedy = f"for systems of kind replicated-disk: install Debian's {packages}"
    found = f"{', '.join(missing)} not installed" if missing else f"{_found(next(iter(replication.PROGRAMS)))}"
    return Check(name, not missing, found, remedy=remedy)


def _go_tool(name: str, _folder: Path) -> Check:
    version = tools.TOOLS[name].installed()
    found = f"{version} in {tools.tool_path(name)}" if version else "not built"
    return Check(name, version is not None, found, remedy=f"`dyno get {name}`")


def _ycsb(name: str, _folder: Path) -> Check:
    home = os.environ.get("YCSB_HOME")
    remedy = "for workloads of kind ycsb-java: unpack a YCSB distribution, and set YCSB_HOME to its folder"
    if home is None:
        return Check(name, False, "YCSB_HOME is not set", remedy=remedy)
    if not list(Path(home).glob("lib/core-*.jar")):
        return Check(name, False, f"{home} has no lib/core-*.jar", remedy=remedy)
    there = shutil.which("java") is not None
    remedy = f"for workloads of kind ycsb-java: install Debian's {java.QUESTDB_JRE}"
    return Check(name, there, home if there else "java is not installed", remedy=remedy)


def _questdb(name: str, _folder: Path) -> Check:
    found, server = java.find(java.QUESTDB_NEEDS), java.QUESTDB.installed()
    lacks = [] if server else [f"{java.QUESTDB.version} is not there"]
    remedies = [] if server else ["`dyno get questdb`"]
    if found is None:
        lacks.append(f"no Java of {java.QUESTDB_NEEDS} or newer")
        remedies.append(f"install Debian's {java.QUESTDB_JRE}, or set JAVA_HOME")
    remedy = f"for systems of kind questdb: {'; '.join(remedies)}"
    if found is None or lacks:
        return Check(name, False, ", ".join(lacks), remedy=remedy)
    told = f"{java.QUESTDB.version} in {java.QUESTDB.path()}, {found} is Java {java.version_of(found)}"
    return Check(name, True, told)


def _duckdb(name: str, _folder: Path) -> Check:
    try:
        found = f"{metadata.version('duckdb')}, a package of {sys.executable}"
    except metadata.PackageNotFoundError:
        return Check(name, False, "not installed", remedy="for systems of kind duckdb: pip install duckdb")
    return Check(name, True, found)


def _cratedb(name: str, _folder: Path) -> Check:
    remedy = f"for systems of kind cratedb: unpack CrateDB's distribution, and set {crate_home.VARIABLE} to its folder"
    given = os.environ.get(crate_home.VARIABLE)
    if given is None:
        return Check(name, False, f"{crate_home.VARIABLE} is not set", remedy=remedy)
    if lacks := crate_home.missing_in(Path(given)):
        return Check(name, False, f"{given} has no {', '.join(lacks)}", remedy=remedy)
    home = crate_home.CrateHome(Path(given))
    found = home.java()
    if found is None:
        return Check(
            name, False, f"no Java of {home.least_java} or newer", remedy=f"set JAVA_HOME to one; {given} has none"
        )
    return Check(name, True, f"{given}, {found}")


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
