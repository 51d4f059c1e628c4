"""What somebody would need to know of this machine to trust or repeat a measurement on it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from dyno import __version__
from dyno.hosts import cgroups, kernel, undo
from dyno.model.base import RunError, UserError

ENVIRONMENT_FORMAT = 1

_OCTAL = re.compile(rb"\\([0-7]{3})")  # how /proc/self/mounts writes blanks and backslashes

_KERNEL_SETTINGS = (
    "kernel/randomize_va_space",
    "kernel/numa_balancing",
    "kernel/sched_autogroup_enabled",
    "vm/dirty_background_bytes",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_ratio",
    "vm/dirty_writeback_centisecs",
    "vm/overcommit_memory",
    "vm/swappiness",
)


def capture(core: str, folders: dict[str, Path]) -> dict[str, Any]:
    """The machine now, as JSON-able data. What cannot be read is absent, never guessed.

    Raises UserError where `core` does not answer.
    """
    return {
        "format": ENVIRONMENT_FORMAT,
        "cpu": _cpu(),
        "memory": _memory(),
        "kernel": {"release": platform.release(), "version": platform.version(), "machine": platform.machine()},
        "system": _os_release(),
        "virtualization": _virtualization(),
        "mitigations": _folder_of_values(Path("/sys/devices/system/cpu/vulnerabilities")),
        "settings": _settings(),
        "control_groups": {name: f"v{found.version}" for name, found in cgroups.hierarchies().items()},
        "load": {"one_minute": os.getloadavg()[0], "other_dyno_sessions": max(undo.living() - 1, 0)},
        "disks": _disks(),
        "file_systems": {name: _file_system(path) for name, path in folders.items()},
        "versions": _versions(core),
        "checksums": {"dyno-core": hashlib.sha256(Path(core).read_bytes()).hexdigest()},
    }


_MACHINE = (
    ("file_systems", "data", "device"),
    ("file_systems", "data", "type"),
    ("cpu", "model"),
    ("cpu", "usable"),
    ("kernel", "release"),
)
_PROGRAMS = (("versions",), ("checksums",))


def differences(before: dict[str, Any], now: dict[str, Any], *, programs: bool = True) -> list[str]:
    """What has changed so that runs from before and from now are not of one machine, and of the same `programs`."""
    changed = []
    for keys in (*_MACHINE, *(_PROGRAMS if programs else ())):
        a: Any = before
        b: Any = now
        for key in keys:
            a, b = (a or {}).get(key), (b or {}).get(key)
        if a != b:
            changed.append(f"{'.'.join(keys)} was {a}, is {b}")
    return changed


def _read(path: Path | str) -> str | None:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None


def _cpu() -> dict[str, Any]:
    models = []
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            models.append(value.strip())
    return {
        "model": models[0] if models else platform.processor() or "unknown",
        "online": os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
        "governor": _shown(kernel.GOVERNOR),
        "turbo": _shown(kernel.TURBO),
        "smt": _read("/sys/devices/system/cpu/smt/active") or "not visible",
    }


def _shown(setting: kernel.Setting) -> str:
    try:
        return setting.show()
    except RunError:
        return "not visible"


def _memory() -> dict[str, int]:
    wanted = {"MemTotal": "total_bytes", "SwapTotal": "swap_bytes"}
    found = {}
    for line in (_read("/proc/meminfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key in wanted:
            found[wanted[key]] = int(value.split()[0]) * 1024
    return found


def _os_release() -> dict[str, str]:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return {}
    return {"name": release.get("PRETTY_NAME", release["NAME"])}


def _virtualization() -> dict[str, str]:
    found = {}
    flags = (_read("/proc/cpuinfo") or "").split()
    found["hypervisor"] = "yes" if "hypervisor" in flags else "not visible"
    for name in ("sys_vendor", "product_name"):
        if value := _read(f"/sys/class/dmi/id/{name}"):
            found[name] = value
    return found


def _folder_of_values(folder: Path) -> dict[str, str]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return {}
    return {name: value for name in names if (value := _read(folder / name)) is not None}


def _settings() -> dict[str, str]:
    found = {}
    for name in _KERNEL_SETTINGS:
        if (value := _read(f"/proc/sys/{name}")) is not None:
            found[name.replace("/", ".")] = value
    for name in ("enabled", "defrag"):
        if (value := _read(f"/sys/kernel/mm/transparent_hugepage/{name}")) is not None:
            found[f"transparent_hugepage.{name}"] = value
    return found


def _disks() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for folder in sorted(Path("/sys/block").glob("*")):
        if folder.name.startswith(("loop", "ram", "zram")):
            continue
        sectors = _read(folder / "size")
        found[folder.name] = {
            "bytes": int(sectors) * 512 if sectors else None,
            "rotational": _read(folder / "queue/rotational"),
            "scheduler": _read(folder / "queue/scheduler"),
            "write_cache": _read(folder / "queue/write_cache"),
            "model": _read(folder / "device/model"),
        }
    return found


def _file_system(path: Path) -> dict[str, Any]:
    """The mount that holds a path; the mount point itself is left out, since it may carry a user's name."""
    target = os.path.realpath(path)
    best: tuple[int, list[str]] = (-1, [])
    for line in (_read("/proc/self/mounts") or "").splitlines():
        fields = line.split()
        point = os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), os.fsencode(fields[1])))
        if (target == point or target.startswith(point.rstrip("/") + "/")) and len(point) >= best[0]:
            best = (len(point), fields)
    status = os.statvfs(path)
    fields = best[1]
    return {
        "device": fields[0] if fields else "unknown",
        "type": fields[2] if fields else "unknown",
        "options": fields[3] if fields else "unknown",
        "bytes": status.f_blocks * status.f_frsize,
        "free_bytes": status.f_bavail * status.f_frsize,
    }


def _versions(core: str) -> dict[str, str]:
    try:
        answer = subprocess.run([core, "version", "--json"], capture_output=True, timeout=30, check=False)
        core_versions = dict(json.loads(answer.stdout))
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError) as error:
        raise UserError(f"{core} does not answer as dyno-core does ({error}); install dyno again") from error
    return {"dyno": __version__, "python": platform.python_version(), **core_versions}
