"""Accounts of this machine: which one a server runs as, and whether it can reach a folder."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    """A user of this machine with its groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    def may_enter(self, folder: Path) -> bool:
        """Whether the mode of a folder lets it through. Access lists are not looked at."""
        status = folder.stat()
        if self.uid in (0, status.st_uid):
            return self.uid == 0 or bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid in (self.gid, *self.groups):
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)

    def barrier(self, path: Path) -> Path | None:
        """The first folder on the way to `path`, from the root on, that it may not enter."""
        above = reversed(path.absolute().parents)
        return next((folder for folder in above if folder.exists() and not self.may_enter(folder)), None)


def for_server(name: str) -> Account | None:
    """The account that a server is started as when dyno runs as root, since servers refuse root.

    None where dyno is not root: a server then runs as the present user. Raises KeyError where there is no such account.
    """
    if os.geteuid() != 0:
        return None
    found = pwd.getpwnam(name)
    groups = tuple(group.gr_gid for group in grp.getgrall() if name in group.gr_mem)
    return Account(name, found.pw_uid, found.pw_gid, groups)


def give(folder: Path, account: Account) -> None:
    """Make a folder that root made the account's own."""
    os.chown(folder, account.uid, account.gid)
