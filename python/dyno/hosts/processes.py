"""What a running process is held to and what it sees, as the kernel tells: all by which two of them may differ."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from dyno.hosts.cgroups import IO_LIMITS, io_limits_of, limits_of
from dyno.hosts.devices import Device, Mount, device_of, mounts_of
from dyno.hosts.leftovers import TOKEN_VARIABLE
from dyno.model.base import RunError, Scalar

NONE = "none"
_SECCOMP = {"0": NONE, "1": "strict", "2": "filter"}
_LIMITS = {"nofile": "Max open files", "memlock": "Max locked memory"}
_OF_A_RUN = re.compile(r"/dyno-[0-9a-f]{8}(?![^/\0])")
"""A temporary folder, which is another in each run and tells two of them apart in nothing else."""
_NAMESPACES = ("cgroup", "ipc", "mnt", "pid", "user", "uts")


def facts_of(pid: int, data: Path, on_host: Path | None = None) -> dict[str, Scalar]:
    """Of a process of this machine, in a container or not. Always the same keys.

    `data` is where it has its data as it sees them itself, `on_host` where those are for this process. Raises RunError
    where it has ended, or is another user's.
    """
    try:
        told = _status(pid)
        mounts = mounts_of(pid)
        limits = limits_of(pid)
        where = _mount_at(mounts, data)
        device = device_of(on_host or data)
        io_limits = io_limits_of(pid, device.numbers())
        return {
            "network": _namespace(pid, "net"),
            "namespaces": ",".join(name for name in _NAMESPACES if _namespace(pid, name) == "own") or NONE,
            "seccomp": _SECCOMP.get(told["Seccomp"], told["Seccomp"]),
            "no_new_privs": told["NoNewPrivs"] == "1",
            "capabilities": told["CapEff"],
            "capabilities.bound": told["CapBnd"],
            "security_label": _label(pid),
            "cpus.allowed": told["Cpus_allowed_list"],
            "cpus.limit": limits.get("cpus", NONE),
            "memory.limit": int(limits["memory_bytes"]) if "memory_bytes" in limits else NONE,
            **{f"io.limit.{name}": int(io_limits[name]) if name in io_limits else NONE for name in IO_LIMITS},
            "oom_score_adj": int(Path(f"/proc/{pid}/oom_score_adj").read_text()),
            "environment": _environment(pid),
            **_resources(pid),
            "root.file_system": _mount_at(mounts, Path("/")).kind,
            "data.file_system": where.kind,
            # The mount has some of its own and some are the file system's; both have "rw".
            "data.options": ",".join(dict.fromkeys(word for word in where.options if not _names_a_place(word))),
            "data.device": _device(device),
            # Read anew for each process: kept from an earlier one, it would leave the program's pages less warm.
            "program.sha256": _sum(Path(f"/proc/{pid}/exe")),
        }
    except OSError as error:
        raise RunError(f"cannot look at process {pid}: {error.strerror}") from error


def memory_bytes(pid: int) -> int:
    """Memory of a process that is in RAM now, a page that several share divided among them; 0 where it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB$", text, re.MULTILINE)
    return 0 if found is None else int(found[1]) * 1024


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _namespace(pid: int, kind: str) -> str:
    ours, theirs = (Path(f"/proc/{of}/ns/{kind}").readlink() for of in ("self", pid))
    return "host" if ours == theirs else "own"


def _label(pid: int) -> str:
    """Of AppArmor or SELinux."""
    try:
        return Path(f"/proc/{pid}/attr/current").read_text().strip("\0\n ") or NONE
    except OSError:
        return NONE  # neither of them is in force


def _environment(pid: int) -> str:
    """As it was started with. But for our session's token, which only tells whose it is, and folders of one run."""
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    words = _OF_A_RUN.sub("/dyno-*", text).split("\0")
    return " ".join(sorted(word for word in words if word and not word.startswith(f"{TOKEN_VARIABLE}="))) or NONE


def _resources(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/limits").read_text()
    found = {name: re.search(rf"^{title}\s+(\S+)\s+(\S+)", text, re.MULTILINE) for name, title in _LIMITS.items()}
    return {name: f"{match[1]}:{match[2]}" for name, match in found.items() if match}


def _mount_at(mounts: list[Mount], path: Path) -> Mount:
    """Of those at the longest way to a path, the last: it covers the others."""
    within = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(reversed(within), key=lambda mount: len(mount.point))


def _names_a_place(option: str) -> bool:
    """Such as an overlay's folders, which are others with each container."""
    return "=/" in option


def _device(device: Device) -> str:
    """Loop devices are numbered as they come: which one it is makes no difference, what is below it does."""
    if device.kind != "loop":
        return device.name
    return f"loop on {_device(device.below)}" if device.below else "loop"


def _sum(program: Path) -> str:
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
