"""Tools of others that dyno can get for its user: built once, into the user's cache, in a version that is named."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dyno.hosts import java, mysql_root, vm_image
from dyno.model.base import UserError

_BUILD_LIMIT_S = 1800
_LAST_LINES = 5


class Tool(Protocol):
    """What `dyno get` gets: by its name, in the version that this dyno knows, for what."""

    @property
    def name(self) -> str:
        """What it is got by."""

    @property
    def version(self) -> str:
        """The one that is got, or whose it is."""

    @property
    def what(self) -> str:
        """What needs it."""

    def path(self) -> Path:
        """Where it is or would be."""

    def installed(self) -> str | None:
        """The version that is there; None where it is not there, or not all of it."""

    def get(self) -> Path:
        """Build it, where it is not there yet. Raises UserError or RunError."""


@dataclass(frozen=True)
class GoTool:
    """A program of a Go module."""

    name: str
    package: str
    version: str
    what: str

    def path(self) -> Path:
        """The program."""
        return tool_path(self.name)

    def installed(self) -> str | None:
        """By what was written down of it."""
        return installed(self.name)

    def get(self) -> Path:
        """Build it, where it is not there yet. Raises UserError."""
        target = tool_path(self.name)
        if installed(self.name) == self.version:
            return target
        go = shutil.which("go")
        if go is None:
            raise UserError(f"cannot build {self.name}: Go is missing (Debian's golang-go, or go.dev)")
        with tempfile.TemporaryDirectory(prefix="dyno-get-") as scratch:
            # A module of its own, so that neither the user's modules nor their versions come into it.
            (Path(scratch) / "go.mod").write_text("module dyno-tools\n\ngo 1.21\n")
            built = Path(scratch) / self.name
            for argv in (
                [go, "get", f"{self.package}@{self.version}"],
                [go, "build", "-o", str(built), self.package],
            ):
                _carry_out(argv, Path(scratch))
            target.parent.mkdir(parents=True, exist_ok=True)
            # Renamed into place, so that a build that was cut off is never taken for a whole one.
            staged = target.with_name(f".{self.name}.new")
            shutil.copy2(built, staged)
            staged.replace(target)
        _version_file(self.name).write_text(f"{self.version}\n")
        return target


GO_YCSB = GoTool("go-ycsb", "github.com/pingcap/go-ycsb/cmd/go-ycsb", "v1.0.1", "YCSB in Go: workload kind go-ycsb")

_ALL: tuple[Tool, ...] = (GO_YCSB, mysql_root.MysqlRoot(), vm_image.DrbdVm(), java.QUESTDB)

TOOLS: dict[str, Tool] = {tool.name: tool for tool in _ALL}


def tool_path(name: str) -> Path:
    """Where a tool that was got is."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "dyno" / "tools" / name


def installed(name: str) -> str | None:
    """The version of a tool that was got; None where it was not."""
    try:
        version = _version_file(name).read_text().strip()
    except OSError:
        return None
    return version if os.access(tool_path(name), os.X_OK) else None


def _version_file(name: str) -> Path:
    return tool_path(name).with_name(f"{name}.version")


def _carry_out(argv: list[str], folder: Path) -> None:
    command = " ".join(argv)
    # GOWORK: a workspace of the user's above the scratch folder must not be built in.
    environment = {**os.environ, "GOWORK": "off"}
    try:
        answer = subprocess.run(
            argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=_BUILD_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"`{command}` could not be carried out: {error}") from error
    if answer.returncode != 0:
        said = " / ".join(answer.stderr.strip().splitlines()[-_LAST_LINES:]) or "it said nothing"
        raise UserError(f"`{command}` ended with status {answer.returncode}: {said}")
