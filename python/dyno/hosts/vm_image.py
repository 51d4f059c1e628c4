"""The image of virtual machines with DRBD: Debian's packages and kernel, and a first process of ours.

`dyno get drbd-vm` makes it once, in the user's cache, with nothing installed on this machine. `image.json` beside it
has the version of every package and a checksum of every file: what an image is made of is pinned by that, and runs
record it. What the machines do is in `guest`, and lies in the small file system that the kernel begins with: the
large one has packages alone, and each machine starts from it anew.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyno.hosts import debian, programs
from dyno.hosts.local import LocalHost
from dyno.hosts.undo import UndoJournal
from dyno.model.base import RunError, UserError

NAME = "drbd-vm"

_SUITE = "bookworm"
_KERNEL = "linux-image-cloud-amd64"  # has drbd.ko, and netem for delays between the machines
_PACKAGES = (
    # a system that starts
    "base-files", "base-passwd", "bash", "dash", "coreutils", "util-linux", "mount", "findutils", "grep", "sed", "gawk",
    "hostname", "procps", "psmisc", "sysvinit-utils", "kmod", "busybox-static", "libc-bin", "debianutils",
    # what replicates, and what it is replicated over and used by
    "drbd-utils", "e2fsprogs", "iproute2", "iputils-ping", "iputils-arping", "socat",
    # who promotes
    "pacemaker", "pacemaker-cli-utils", "corosync", "resource-agents",
)  # fmt: skip
_FIRST_MODULES = ("virtio_pci", "virtio_blk", "ext4")
"""Without which the large file system is not found."""
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "boot")
_LINKS = {"usr/bin/awk": "gawk", "usr/bin/which": "which.debianutils", "bin/sh": "dash"}
"""What packages leave to scripts that run when they are installed, which none of them is."""
_ACCOUNTS = {
    "passwd": "hacluster:x:189:189::/var/lib/pacemaker:/usr/sbin/nologin\n",
    "group": "haclient:x:189:\n",
}
_GUEST = Path(__file__).parent / "guest"
_SPARE = 256 * 2**20  # bytes of the root file system that are free
_LIMIT_S = 600.0
_FILES = ("vmlinuz", "initrd", "root.img")


@dataclass(frozen=True)
class VmImage:
    """One that is there."""

    folder: Path
    facts: Mapping[str, Any]

    @property
    def kernel(self) -> Path:
        """What the machine starts."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """What the kernel starts with."""
        return self.folder / "initrd"

    @property
    def root(self) -> Path:
        """The root file system, which is never written to."""
        return self.folder / "root.img"

    @property
    def versions(self) -> dict[str, str]:
        """Of what matters in it."""
        packages = self.facts["packages"]
        named = {name: packages[name] for name in ("drbd-utils", "pacemaker", "corosync")}
        return {"linux in machines": self.facts["kernel"], "drbd": self.facts["drbd"], **named}

    @property
    def checksum(self) -> str:
        """Of all of it."""
        return hashlib.sha256(json.dumps(self.facts["sha256"], sort_keys=True).encode()).hexdigest()


class DrbdVm:
    """As a tool that `dyno get` gets."""

    name = NAME
    version = f"of Debian's {_SUITE}"
    what = "the image of virtual machines with DRBD and Pacemaker: systems of kind drbd"

    def path(self) -> Path:
        """The folder: `DYNO_DRBD_VM`, or the one in the user's cache."""
        if given := os.environ.get("DYNO_DRBD_VM"):
            return Path(given)
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dyno" / NAME

    def installed(self) -> str | None:
        """The kernel's version and DRBD's; None where there is none, or an older dyno made it."""
        with contextlib.suppress(RunError):
            facts = open_image(self.path()).facts
            return f"Linux {facts['kernel']}, DRBD {facts['drbd']}"
        return None

    def get(self) -> Path:
        """Make it where it is not there, and anew where it is another dyno's. Raises UserError or RunError."""
        folder = self.path()
        if self.installed() is not None:
            return folder
        if folder.exists() and not (folder / "image.json").exists():
            raise UserError(f"{folder} has no image of virtual machines, and will not be replaced by one")
        if os.geteuid() != 0:
            raise UserError(f"get {NAME}: the files of the image belong to several users, so that it is made as root")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with UndoJournal() as journal:
            host = LocalHost(journal)
            scratch = host.temporary_folder(folder.with_name(f".{folder.name}-{journal.token}"))
            made = _make(host, scratch, folder)
            with contextlib.suppress(FileNotFoundError):
                folder.rename(scratch / "older")
            made.rename(folder)
        return folder


def open_image(folder: Path) -> VmImage:
    """The image in a folder. Raises RunError where there is none that this dyno can use."""
    remedy = f"`dyno get {NAME}` makes it"
    try:
        facts = json.loads((folder / "image.json").read_text())
        if facts["guest"] != _guest_key():
            raise RunError(f"the image of virtual machines in {folder} is of another dyno: {remedy} anew")
        if missing := [name for name in _FILES if not (folder / name).is_file()]:
            raise RunError(f"the image of virtual machines in {folder} lacks {', '.join(missing)}: {remedy} anew")
    except (OSError, ValueError, KeyError):
        raise RunError(f"there is no image of virtual machines in {folder}: {remedy}") from None
    return VmImage(folder, facts)


def _make(host: LocalHost, scratch: Path, before: Path) -> Path:
    """In a folder below `scratch`; the packages of the image that is there are kept where they are the same."""
    begun = time.monotonic()
    made, root = scratch / "made", scratch / "root"
    made.mkdir()
    known = _same_packages(before)
    if known is not None:
        for name in _FILES:
            shutil.copy2(before / name, made / name)
        shutil.copytree(before / "modules", made / "modules")
        shutil.copy2(before / "busybox", made / "busybox")
        facts = dict(known)
    else:
        facts = _of_packages(host, scratch, root, made)
    _write_initrd(made)
    facts |= {"guest": _guest_key(), "sha256": {name: _sum(made / name) for name in _FILES}}
    facts["seconds"] = round(time.monotonic() - begun, 1)
    (made / "image.json").write_text(json.dumps(facts, indent=2) + "\n")
    return made


def _of_packages(host: LocalHost, scratch: Path, root: Path, made: Path) -> dict[str, Any]:
    """The kernel, what it begins with, and the root file system. Raises RunError."""
    versions = debian.unpack((*_PACKAGES, _KERNEL), _SUITE, root, host, scratch)
    (kernel,) = (path.name for path in (root / "lib" / "modules").iterdir())
    shutil.move(root / "boot" / f"vmlinuz-{kernel}", made / "vmlinuz")
    for name in _LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    for name, target in _LINKS.items():
        if not (root / name).exists():
            (root / name).symlink_to(target)
    for name, lines in _ACCOUNTS.items():
        master = root / "usr" / "share" / "base-passwd" / f"{name}.master"
        (root / "etc" / name).write_text(master.read_text() + lines)
    for name in ("dev", "proc", "sys", "run", "tmp", "server", "var/log/pacemaker", "var/log/cluster"):
        (root / name).mkdir(parents=True, exist_ok=True)

    def within(*words: str) -> str:
        return host.run(["chroot", str(root), *words], limit=_LIMIT_S, log=scratch / "within")

    within("/sbin/ldconfig")
    within("/sbin/depmod", kernel)
    told = within("/sbin/modprobe", "--set-version", kernel, "--show-depends", "--all", *_FIRST_MODULES)
    (made / "modules").mkdir()
    for number, line in enumerate(dict.fromkeys(line for line in told.splitlines() if line.startswith("insmod "))):
        module = root / line.split()[1].lstrip("/")
        shutil.copy2(module, made / "modules" / f"{number:02}-{module.name}")
    shutil.copy2(root / "bin" / "busybox", made / "busybox")
    drbd = within("/sbin/modinfo", "--set-version", kernel, "--field", "version", "drbd").strip()
    takes = sum(max(path.lstat().st_size, 4096) for path in root.rglob("*"))
    # It is written to by nobody, so that it needs no journal.
    size = (takes + takes // 8 + _SPARE) // 4096 * 4096
    tree_image(host, root, made / "root.img", size, journal=False, limit=_LIMIT_S, log=scratch / "mkfs")
    return {"suite": _SUITE, "asked": _asked(), "packages": versions, "kernel": kernel, "drbd": drbd}


def _asked() -> list[str]:
    return [*_PACKAGES, _KERNEL, *_LINKS]


def _same_packages(folder: Path) -> dict[str, Any] | None:
    """What is recorded of an image whose packages are those that would be asked for again; None where there is none."""
    try:
        facts: dict[str, Any] = json.loads((folder / "image.json").read_text())
        kept = all((folder / name).exists() for name in (*_FILES, "modules", "busybox"))
        return facts if kept and (facts["suite"], facts["asked"]) == (_SUITE, _asked()) else None
    except (OSError, ValueError, KeyError):
        return None


def tree_image(
    host: LocalHost, folder: Path, image: Path, size: int, *, journal: bool, limit: float, log: Path
) -> None:
    """An ext4 file system in a file, of `size` bytes, with what is in a folder, owners and all. Raises RunError."""
    mkfs = programs.find("mke2fs")
    if mkfs is None:
        raise RunError("mke2fs is missing: install Debian's e2fsprogs")
    with image.open("wb") as file:
        file.truncate(size)
    words = [str(mkfs), "-q", "-F", "-t", "ext4", "-m", "0", *([] if journal else ["-O", "^has_journal"])]
    host.run([*words, "-d", str(folder), str(image), f"{size // 1024}k"], limit=limit, log=log)


# ---- What the kernel begins with.


def _guest_key() -> str:
    """Of what this dyno has machines do."""
    total = hashlib.sha256()
    for path in sorted(_GUEST.iterdir()):
        total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def _write_initrd(made: Path) -> None:
    entries = [("bin", None, 0o755), ("guest", None, 0o755), ("modules", None, 0o755)]
    found = {"bin/busybox": made / "busybox", "init": _GUEST / "first"}
    found |= {f"guest/{path.name}": path for path in sorted(_GUEST.iterdir()) if path.name != "first"}
    found |= {f"modules/{path.name}": path for path in sorted((made / "modules").iterdir())}
    archive = io.BytesIO()
    for name, _, mode in entries:
        archive.write(newc(name, b"", stat.S_IFDIR | mode))
    for name, path in found.items():
        archive.write(newc(name, path.read_bytes(), stat.S_IFREG | 0o755))
    archive.write(newc("TRAILER!!!", b"", 0))
    (made / "initrd").write_bytes(gzip.compress(archive.getvalue(), 6, mtime=0))


def newc(name: str, content: bytes, mode: int) -> bytes:
    """An entry of a cpio archive of the form that kernels unpack (Linux's early-userspace/buffer-format)."""
    named = name.encode() + b"\0"
    # magic; then inode, mode, uid, gid, links, time, size, two numbers of its device and of itself, length of its name
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(named), 0)
    header = b"070701" + b"".join(f"{field:08x}".encode() for field in fields) + named
    return _to_four(header) + _to_four(content)


def _to_four(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
