"""Block devices that a study names to be written over: what they are, and why one is not taken.

Names such as /dev/sdb go to whichever device is found first, so that a study says by what it knows the device.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from dyno.hosts.devices import Mount, mounts_of
from dyno.model.base import Frozen, RunError
from dyno.model.units import Size, format_size

Ask = Callable[[Sequence[str]], str]
Word = Annotated[str, Field(min_length=1)]
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Identity(Frozen):
    """By what a device is known, as `lsblk` and `blkid` show it; all that is given has to be so."""

    serial: Annotated[Word | None, Field(description="its serial number")] = None
    wwn: Annotated[Word | None, Field(description="its World Wide Name")] = None
    uuid: Annotated[
        Word | None,
        Field(
            description="of the file system, or else the partition table (GPT), that is on it; a new one gets it again"
        ),
    ] = None
    partuuid: Annotated[Word | None, Field(description="of the partition that it is")] = None
    model: Annotated[Word | None, Field(description="its model, with `size`")] = None
    size: Annotated[Size | None, Field(gt=0, description="its size, with `model`")] = None

    @field_validator("uuid")
    @classmethod
    def _a_new_file_system_can_have_it(cls, value: str | None) -> str | None:
        # A table of DOS, FAT and NTFS have shorter ones: after the first mkfs the device would not be known any more.
        if value is not None and _UUID.fullmatch(value) is None:
            raise ValueError(
                f"{value!r} is of a kind that ext4, xfs and btrfs cannot have, so a new one would not be known by it; "
                "write serial, wwn, partuuid, or model and size in place of it"
            )
        return value

    @model_validator(mode="after")
    def _says_enough(self) -> Identity:
        if (self.model is None) != (self.size is None):
            raise ValueError("model and size belong together: many devices have one of them")
        if not self.model_dump(exclude_none=True):
            raise ValueError("write one of serial, wwn, uuid, partuuid, or model and size")
        return self

    def kept(self, kind: str) -> tuple[str, ...]:
        """The words by which mkfs of that kind gives a new file system the UUID that the device is known by."""
        if self.uuid is None:
            return ()
        return ("-m", f"uuid={self.uuid}") if kind == "xfs" else ("-U", self.uuid)


@dataclass(frozen=True)
class Found:
    """What a device says of itself and of what is on it. `tells` has the keys of an `Identity`."""

    tells: Mapping[str, str | int]
    holds: str | None = None
    """What is on it, in words."""


@dataclass(frozen=True)
class Uses:
    """What a device is used for at this moment: mount points of it and its partitions, swap, and volumes made of it."""

    mounts: tuple[str, ...] = ()
    swap: bool = False
    holders: tuple[str, ...] = field(default=())

    def words(self, device: Path) -> str | None:
        """Why it may not be taken; None where it may."""
        if "/" in self.mounts:
            return f"{device} holds the root file system of this machine"
        if self.mounts:
            return f"{device} is mounted at {self.mounts[0]}: unmount it (umount {self.mounts[0]}) if it may be lost"
        if self.swap:
            return f"{device} is used as swap: take it out (swapoff {device}) if it may be lost"
        if self.holders:
            return f"{device} is part of {', '.join(self.holders)} (LVM, RAID or encryption), which is in use"
        return None


def claim(device: Path, identity: Identity, ask: Ask, *, least: int) -> Path:
    """The device, of which all is to be written over.

    Raises RunError where it is not the one that is meant, is in use, or is too small: with what would be right.
    """
    try:
        node = device.resolve(strict=True)
    except OSError as error:
        raise RunError(f"there is no {device} (system.config.device): `lsblk` lists those that there are") from error
    if not node.is_block_device():
        raise RunError(f"{device} is no block device (system.config.device): `lsblk` lists those that there are")
    if why := uses(node).words(device):
        raise RunError(f"{why}; choose another system.config.device")
    found = look_at(node, ask)
    refuse_another(device, identity, found)
    refuse_alike(node, identity, ask)
    try:
        handle = os.open(node, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        raise RunError(f"{device} cannot be had alone, to be written over: {error.strerror}") from error
    os.close(handle)
    size = int(found.tells["size"])
    if size < least:
        raise RunError(f"{device} has {format_size(size)}, and the file system needs {format_size(least)} at least")
    return node


def refuse_another(device: Path, identity: Identity, found: Found) -> None:
    """Raise RunError where a device is not what a study says, in words that tell what it is."""
    wrong = [
        key for key, asked in identity.model_dump(exclude_none=True).items() if not _same(asked, found.tells.get(key))
    ]
    if not wrong:
        return
    said = ", ".join(f"{key}: {value}" for key, value in found.tells.items() if _is_kept(key, value))
    given = ", ".join(f"{key} {found.tells.get(key, 'none')}, not {getattr(identity, key)}" for key in wrong)
    holds = f"; it holds {found.holds}" if found.holds else ""
    raise RunError(
        f"{device} is not the device of system.config.identity: it has {given}{holds}. If it is the one that may be "
        f"lost, its identity is {{{said}}}"
    )


def _is_kept(key: str, value: str | int) -> bool:
    return key != "uuid" or _UUID.fullmatch(str(value)) is not None


def refuse_alike(node: Path, identity: Identity, ask: Ask) -> None:
    """Raise RunError where only model and size are said of a device, and another of this machine has the same."""
    if set(identity.model_dump(exclude_none=True)) != {"model", "size"}:
        return
    told = json.loads(ask(["lsblk", "--json", "--bytes", "--nodeps", "--output", "PATH,MODEL,SIZE"]))
    others = [
        each["path"]
        for each in told["blockdevices"]
        if Path(each["path"]).resolve() != node
        and _same(str(identity.model), (each["model"] or "").strip())
        and int(each["size"]) == identity.size
    ]
    if others:
        raise RunError(
            f"model and size do not tell {node} from {', '.join(others)}, of the same model and size: write its serial "
            "or wwn as system.config.identity (`lsblk -o +SERIAL,WWN`)"
        )


def _same(asked: str | int, found: str | int | None) -> bool:
    return asked == found or (isinstance(asked, str) and isinstance(found, str) and asked.lower() == found.lower())


def look_at(node: Path, ask: Ask) -> Found:
    """What a device is, by lsblk, and what is on it, by blkid. Raises RunError."""
    columns = "SERIAL,WWN,MODEL,SIZE,PARTUUID"
    told = json.loads(ask(["lsblk", "--json", "--bytes", "--nodeps", "--output", columns, str(node)]))
    of_device: dict[str, Any] = told["blockdevices"][0]
    of_device["serial"] = of_device["serial"] or _of_sys(node, "serial", "device/serial")
    of_device["wwn"] = of_device["wwn"] or _of_sys(node, "wwid", "device/wwid")
    # By what is on the device, and not by what udev has noted of it. Status 2 says that nothing was found.
    content = _content(ask, node)
    uuid = content.get("UUID") or content.get("PTUUID")
    found = {"serial": of_device["serial"], "wwn": of_device["wwn"], "uuid": uuid}
    found |= {"partuuid": of_device["partuuid"] or content.get("PART_ENTRY_UUID"), "model": of_device["model"]}
    kept = {key: value.strip() for key, value in found.items() if value and value.strip()}
    return Found({**kept, "size": int(of_device["size"])}, _holds(content))


def _content(ask: Ask, node: Path) -> dict[str, str]:
    try:
        said = ask(["blkid", "--probe", "--output", "export", str(node)])
    except RunError as error:
        if "ended with status 2" in str(error):
            return {}
        raise
    return {name: value for name, _, value in (line.partition("=") for line in said.splitlines())}


def _holds(content: Mapping[str, str]) -> str | None:
    if table := content.get("PTTYPE"):
        return f"a partition table ({table})"
    kind = content.get("TYPE")
    if kind in ("LVM2_member", "linux_raid_member", "crypto_LUKS", "swap"):
        return f"a member of LVM, RAID or encryption, or swap ({kind})"
    return None if kind is None else f"a file system ({kind})"


def uses(node: Path) -> Uses:
    """What a device and its partitions are used for. Raises RunError."""
    folder = Path("/sys/class/block", node.name).resolve()
    folders = [folder, *(path.parent for path in folder.glob("*/partition"))]
    numbers = {(folder / "dev").read_text().strip() for folder in folders}
    nodes = {str(Path("/dev", folder.name)) for folder in folders}
    holders = sorted({path.name for folder in folders for path in folder.glob("holders/*")})
    mounts = tuple(mount.point for mount in mounts_of(os.getpid()) if _is_of(mount, numbers, nodes))
    return Uses(mounts, bool(nodes & set(_swaps())), tuple(holders))


def _is_of(mount: Mount, numbers: Iterable[str], nodes: Iterable[str]) -> bool:
    """A mount of btrfs has a number of its own, and names one of its devices."""
    major, minor = mount.device
    return f"{major}:{minor}" in numbers or mount.source in nodes


def _swaps() -> list[str]:
    try:
        lines = Path("/proc/swaps").read_text().splitlines()[1:]
    except OSError:
        return []
    return [line.split()[0] for line in lines if line.strip()]


def _of_sys(node: Path, *names: str) -> str | None:
    for name in names:
        try:
            return Path("/sys/class/block", node.name, name).read_text(errors="replace").strip() or None
        except OSError:
            continue
    return None
