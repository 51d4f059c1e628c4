"""An image of a container, made of this machine's own files: the same programs at the same paths, and little else."""

from __future__ import annotations

import grp
import hashlib
import io
import os
import pwd
import stat
import tarfile
from collections.abc import Iterable
from pathlib import Path

from dyno.hosts import programs
from dyno.model.base import RunError

_ALWAYS = (Path("/etc/localtime"),)  # a server's times are those of the machine
_CHUNK = 1024 * 1024


class Contents:
    """What is to be in an image: programs with all that they need, more files and folders, an account's lines.

    `checksum` is the same for the same contents, whenever the image is made. Raises RunError where something is
    missing.
    """

    def __init__(self, wanted: Iterable[Path], files: Iterable[Path], account: str | None) -> None:
        found = programs.closure(wanted)
        for path in (*files, *(path for path in _ALWAYS if path.exists())):
            found |= _all_below(path.absolute())
        self._paths = sorted(found | {parent for path in found for parent in path.parents if parent != Path("/")})
        self._made = _accounts(account)
        self.checksum = self._sum()

    def write(self, archive: Path) -> None:
        """As a tar archive, with the owners and modes of this machine. Raises RunError."""
        try:
            with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
                for path in self._paths:
                    if str(path) not in self._made and path != Path("/tmp"):
                        tar.add(path, str(path).lstrip("/"), recursive=False)
                folder = tarfile.TarInfo("tmp")
                folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
                tar.addfile(folder)
                for name, text in self._made.items():
                    entry = tarfile.TarInfo(name.lstrip("/"))
                    entry.size, entry.mode = len(text), 0o644
                    tar.addfile(entry, io.BytesIO(text))
        except OSError as error:
            raise RunError(f"cannot write the image {archive.name}: {error}") from error

    def _sum(self) -> str:
        total = hashlib.sha256()
        for path in self._paths:
            try:
                status = path.lstat()
                total.update(f"{path}\0{status.st_mode:o}\0{status.st_uid}\0{status.st_gid}\0".encode())
                if stat.S_ISLNK(status.st_mode):
                    total.update(os.fsencode(path.readlink()))
                elif stat.S_ISREG(status.st_mode):
                    with path.open("rb") as file:
                        while chunk := file.read(_CHUNK):
                            total.update(chunk)
            except OSError as error:
                raise RunError(f"{path}, which is to be in an image, cannot be read: {error.strerror}") from error
        for name, text in sorted(self._made.items()):
            total.update(name.encode() + b"\0" + text)
        return total.hexdigest()


def _all_below(path: Path) -> set[Path]:
    found = programs.resolved(path)
    for folder in [place for place in found if place.is_dir() and not place.is_symlink()]:
        for where, folders, files in os.walk(folder):
            for name in (*folders, *files):
                inner = Path(where, name)
                # A link within may lead to nowhere, as it does on the machine.
                found |= programs.resolved(inner) if inner.is_symlink() and inner.exists() else {inner}
    return found


def _accounts(account: str | None) -> dict[str, bytes]:
    """The machine's own passwd and group have more than a server needs to know, and change."""
    users, groups = [pwd.getpwuid(0)], {0}
    if account is not None:
        try:
            users.append(pwd.getpwnam(account))
        except KeyError:
            raise RunError(f"there is no user {account} to be in an image") from None
        groups |= {group.gr_gid for group in grp.getgrall() if account in group.gr_mem}
    groups |= {user.pw_gid for user in users}
    lines = [
        f"{user.pw_name}:x:{user.pw_uid}:{user.pw_gid}::{user.pw_dir}:/usr/sbin/nologin\n"
        for user in dict.fromkeys(users)
    ]
    named = [f"{grp.getgrgid(gid).gr_name}:x:{gid}:\n" for gid in sorted(groups)]
    return {"/etc/passwd": "".join(lines).encode(), "/etc/group": "".join(named).encode()}
