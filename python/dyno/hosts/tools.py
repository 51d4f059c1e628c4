"""Tools of others that dyno can get for its user: built once, into the user's cache, in a version that is named."""

from __future__ import annotations

import hashlib
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
class GoSuite:
    """Programs of a Go module. With `programs`, `package` is what stands before their names; without, it is the one."""

    name: str
    package: str
    version: str
    what: str
    programs: tuple[str, ...] = ()

    def path(self) -> Path:
        """The program, or the folder of several."""
        return tool_path(self.name)

    def program(self, name: str) -> Path:
        """One of several programs. Raises KeyError where it is none of them."""
        if name not in self.programs:
            raise KeyError(f"{self.name} has no program {name}; there are {', '.join(self.programs)}")
        return self.path() / name

    def installed(self) -> str | None:
        """By what was written down of it; None where a program is missing or is not the one that was built."""
        if installed(self.name) is None:
            return None
        if not self.programs:
            return installed(self.name)
        known = self.checksums()
        there = all(os.access(self.path() / name, os.X_OK) and name in known for name in self.programs)
        return installed(self.name) if there else None

    def checksums(self) -> dict[str, str]:
        """The SHA-256 of each program when it was built, by its name; empty where none was written down."""
        try:
            lines = _checksum_file(self.name).read_text().splitlines()
        except OSError:
            return {}
        return {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}

    def get(self) -> Path:
        """Build it, where it is not there yet. Raises UserError."""
        target = self.path()
        if self.installed() == self.version:
            return target
        go = shutil.which("go")
        if go is None:
            raise UserError(f"cannot build {self.name}: Go is missing (Debian's golang-go, or go.dev)")
        packages = [f"{self.package}/{name}" for name in self.programs] or [self.package]
        with tempfile.TemporaryDirectory(prefix="dyno-get-") as scratch:
            # A module of its own, so that neither the user's modules nor their versions come into it.
            (Path(scratch) / "go.mod").write_text("module dyno-tools\n\ngo 1.21\n")
            built = Path(scratch) / self.name
            # Several go into a folder, which a slash at the end says.
            into = f"{built}/" if self.programs else str(built)
            for argv in (
                [go, "get", *(f"{package}@{self.version}" for package in packages)],
                [go, "build", "-o", into, *packages],
            ):
                _carry_out(argv, Path(scratch))
            target.parent.mkdir(parents=True, exist_ok=True)
            self._put_in_place(built, target)
        _version_file(self.name).write_text(f"{self.version}\n")
        return target

    def _put_in_place(self, built: Path, target: Path) -> None:
        """Renamed into place, so that a build that was cut off is never taken for a whole one."""
        staged = target.with_name(f".{self.name}.new")
        _version_file(self.name).unlink(missing_ok=True)
        if self.programs:
            shutil.rmtree(staged, ignore_errors=True)
            shutil.copytree(built, staged)
            shutil.rmtree(target, ignore_errors=True)
        else:
            shutil.copy2(built, staged)
        sums = {name: _sha256(staged / name) for name in self.programs} or {self.name: _sha256(staged)}
        _checksum_file(self.name).write_text("".join(f"{checksum}  {name}\n" for name, checksum in sums.items()))
        staged.replace(target)


GO_YCSB = GoSuite("go-ycsb", "github.com/pingcap/go-ycsb/cmd/go-ycsb", "v1.0.1", "YCSB in Go: workload kind go-ycsb")
TSBS = GoSuite(
    "tsbs",
    "github.com/timescale/tsbs/cmd",
    # It has no release, and the newest is refused by name alone.
    "v0.0.0-20230921131859-37fced794d56",
    "the Time Series Benchmark Suite: workload kind tsbs",
    (
        "tsbs_generate_data",
        "tsbs_generate_queries",
        "tsbs_load_cratedb",
        "tsbs_load_questdb",
        "tsbs_load_timescaledb",
        "tsbs_run_queries_cratedb",
        "tsbs_run_queries_questdb",
        "tsbs_run_queries_timescaledb",
    ),
)

_ALL: tuple[Tool, ...] = (GO_YCSB, TSBS, mysql_root.MysqlRoot(), vm_image.DrbdVm(), java.QUESTDB)

TOOLS: dict[str, Tool] = {tool.name: tool for tool in _ALL}


def cache_path(*parts: str) -> Path:
    """A place of dyno's in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "dyno", *parts)


def tool_path(name: str) -> Path:
    """Where a tool that was got is."""
    return cache_path("tools", name)


def installed(name: str) -> str | None:
    """The version of a tool that was got; None where it was not."""
    try:
        version = _version_file(name).read_text().strip()
    except OSError:
        return None
    return version if os.access(tool_path(name), os.X_OK) else None


def _version_file(name: str) -> Path:
    return tool_path(name).with_name(f"{name}.version")


def _checksum_file(name: str) -> Path:
    return tool_path(name).with_name(f"{name}.sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
