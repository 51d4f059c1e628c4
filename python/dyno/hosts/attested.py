"""What of a mounted file system is in force, as the kernel and the file system's own programs tell it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dyno.hosts.devices import Mount
from dyno.model.base import RunError, Scalar

Ask = Callable[[Sequence[str]], str]
"""Carries out a command, and gives what it says. Raises RunError."""

_BTRFS_COMMIT_S = 30.0  # btrfs(5): the default, which is not shown
_EXT4_COMMIT_S = 5.0
_FIELD = re.compile(r"([A-Za-z -]+?)\s*=\s*([^\s,]+)")


def in_force(mount: Mount, device: Path, ask: Ask) -> dict[str, Scalar]:
    """By the names of the options of systems of kind `filesystem`; those that a file system has not are left out.

    mountinfo leaves out what is a default of the kernel, so that of ext4 more is asked. Raises RunError.
    """
    tell = {"ext4": _ext4, "xfs": _xfs, "btrfs": _btrfs}[mount.kind]
    return {"type": mount.kind, **tell(mount, device, ask)}


def features(mount: Mount, device: Path, ask: Ask) -> str:
    """What the file system was made with, in its own words. Raises RunError."""
    if mount.kind == "ext4":
        words = _superblock(device, ask)["Filesystem features"].split()
        return " ".join(word for word in words if word != "needs_recovery")  # as long as it is mounted
    if mount.kind == "xfs":
        told = _information(mount, ask)
        wanted = (
            "crc",
            "finobt",
            "sparse",
            "rmapbt",
            "reflink",
            "bigtime",
            "inobtcount",
            "nrext64",
            "ftype",
            "lazy-count",
        )
        return " ".join(f"{name}={told[name]}" for name in wanted if name in told)
    folder = _of_btrfs(device)
    return " ".join(sorted(path.name for path in (folder / "features").iterdir())) if folder is not None else ""


def _ext4(_mount: Mount, device: Path, ask: Ask) -> dict[str, Scalar]:
    try:
        options = _words(Path("/proc/fs/ext4", device.resolve().name, "options").read_text().split())
    except OSError as error:
        raise RunError(f"cannot read which options ext4 of {device} has: {error.strerror}") from error
    told = _superblock(device, ask)
    journal = "has_journal" in told["Filesystem features"].split()
    found: dict[str, Scalar] = {
        "block_size": int(told["Block size"]),
        "journal": "internal" if journal else "none",
        "barrier": "nobarrier" not in options and options.get("barrier") != "0",
        "discard": "discard" in options,
    }
    if journal:
        found |= {
            "data": options.get("data", "ordered"),
            "journal_size": int(told["Total journal blocks"]) * int(told["Block size"]),
            "commit": float(options.get("commit", _EXT4_COMMIT_S)),
        }
    return found


def _superblock(device: Path, ask: Ask) -> dict[str, str]:
    said = ask(["dumpe2fs", "-h", str(device)])
    return {name: value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}


def _xfs(mount: Mount, device: Path, ask: Ask) -> dict[str, Scalar]:
    said = ask(["xfs_info", mount.point])
    data = re.search(r"^data\s+=.*?bsize=(\d+)", said, re.MULTILINE)
    log = re.search(r"^log\s+=.*?bsize=(\d+)\s+blocks=(\d+)", said, re.MULTILINE)
    if data is None or log is None:
        raise RunError(f"xfs_info does not say what {device} is made of")
    return {
        "block_size": int(data[1]),
        "journal": "internal",
        "journal_size": int(log[1]) * int(log[2]),
        "barrier": "nobarrier" not in mount.options,
        "discard": "discard" in mount.options,
    }


def _information(mount: Mount, ask: Ask) -> dict[str, str]:
    return {name.strip(): value for name, value in _FIELD.findall(ask(["xfs_info", mount.point]))}


def _btrfs(mount: Mount, _device: Path, _ask: Ask) -> dict[str, Scalar]:
    options = _words(mount.options)
    return {
        "block_size": os.statvfs(mount.point).f_bsize,
        "journal": "none",
        "barrier": "nobarrier" not in options,
        "discard": "discard" in options,
        "commit": float(options.get("commit", _BTRFS_COMMIT_S)),
    }


def _of_btrfs(device: Path) -> Path | None:
    name = device.resolve().name
    return next((path.parent.parent for path in Path("/sys/fs/btrfs").glob(f"*/devices/{name}")), None)


def _words(options: Sequence[str]) -> Mapping[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in options)}
