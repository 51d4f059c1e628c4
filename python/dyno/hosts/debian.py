"""Programs of a newer Debian in a folder of their own, with the libraries that they need: nothing is installed.

apt does it with the machine's own mirror and keys, as if nothing were installed, and dpkg unpacks: it takes no rights.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from pathlib import Path

from dyno.hosts import programs
from dyno.hosts.local import LocalHost
from dyno.model.base import UserError

_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LIMIT_S = 1800.0
_ASK_LIMIT_S = 60.0


def unpack(packages: Sequence[str], suite: str, folder: Path, host: LocalHost, scratch: Path) -> dict[str, str]:
    """Unpack packages of a suite, and all that they depend on, into a folder; the version of each, by its name.

    What it takes meanwhile is in `scratch`. Raises UserError where this machine is none of Debian's, RunError.
    """
    if missing := [name for name in ("apt-get", "dpkg", "dpkg-deb") if programs.find(name) is None]:
        raise UserError(f"{' and '.join(missing)} not found: packages come from Debian, or what is made of it")
    log = scratch / "apt"
    said = host.run(
        ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"], limit=_ASK_LIMIT_S, log=scratch / "mirrors"
    )
    mirror = mirror_of(said)
    if mirror is None:
        raise UserError("apt knows no mirror of Debian here; see /etc/apt/sources.list.d")

    # apt with nothing installed, and nothing of the machine but its settings.
    apt, archives = scratch / "apt-root", scratch / "apt-root" / "cache" / "archives"
    for partial in (apt / "lists", archives):
        (partial / "partial").mkdir(parents=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb [signed-by={_KEYS}] {mirror} {suite} main\n")
    settings = {
        "Dir::State::status": apt / "status",
        "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt / "cache",
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "APT::Sandbox::User": pwd.getpwuid(os.geteuid()).pw_name,
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
        "DPkg::Post-Invoke::": "",
        "APT::Update::Post-Invoke::": "",
    }
    words = ["apt-get", "--quiet=2", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    host.run([*words, "update"], limit=_LIMIT_S, log=log, telling="[EW]: ")
    host.run([*words, "install", "--yes", "--download-only", *packages], limit=_LIMIT_S, log=log, telling="[EW]: ")
    versions = {}
    for package in sorted(archives.glob("*.deb")):
        host.run(["dpkg", "--extract", str(package), str(folder)], limit=_LIMIT_S, log=scratch / "unpack")
        name, _, version = host.run(
            ["dpkg-deb", "--show", "--showformat", "${Package} ${Version}", str(package)],
            limit=_ASK_LIMIT_S,
            log=scratch / "unpack",
        ).partition(" ")
        versions[name] = version
    return versions


def mirror_of(told: str) -> str | None:
    """Debian's, where the mirrors of this machine are told a line each: whose it is, and its address."""
    return next((line.split()[1] for line in told.splitlines() if line.split()[:1] == ["Debian"]), None)
