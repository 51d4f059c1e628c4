"""What every deployment can do. Systems that are server programs start and end by it, and know no other way."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import polars as pl

from dyno.hosts import LocalHost
from dyno.hosts.accounts import Account
from dyno.hosts.cgroups import DiskLimits
from dyno.hosts.confinement import Confinement
from dyno.hosts.processes import facts_of
from dyno.hosts.programs import SYSTEM_PATH
from dyno.model.base import Scalar

ENVIRONMENT: Mapping[str, str] = {
    "PATH": SYSTEM_PATH,
    # What an image has too, which brings neither languages nor time zones.
    "LANG": "C",
    "TZ": "UTC",
    # Engines set these two, each to something else.
    "HOME": "/",
    "HOSTNAME": "localhost",
}
"""All that a server has in its environment, in every deployment: natively it would else have that of whoever started
dyno, with an allocator to preload, say, and be compared with one that has not."""

FUNCTION_COLUMNS = {"symbol": pl.String, "module": pl.String, "instructions": pl.Int64}
"""The columns of `functions.parquet`: instructions of each function in user mode, without those of what it called.

`symbol` is missing for all of a module's functions that have no name; `module` is a file's name, empty if not known.
"""


@dataclass(frozen=True)
class Site:
    """What a deployment is given: a host, and folders that are its own.

    `folder` is on the file system to be measured, where the data live and where a container engine keeps its layers;
    `work` is for all else. `engine` is the engine of containers that the study asks for, `disk` what of the folder's
    device may be used.
    """

    host: LocalHost
    folder: Path
    work: Path
    logs: Path
    confinement: Confinement = field(default_factory=Confinement)
    engine: str | None = None
    disk: DiskLimits | None = None


@dataclass(frozen=True)
class Recipe:
    """What a system's image is made of: programs of this machine with the libraries that they load, and more files.

    Everything keeps its path. `account` is the user whose line, and whose group's, the image has.
    """

    name: str
    programs: tuple[Path, ...]
    files: tuple[Path, ...] = ()
    account: str | None = None


@dataclass(frozen=True)
class Launch:
    """A server to start. Its paths are those of the host: a deployment makes `data` and `folders` be there.

    `marker`, `undo_by`: see `LocalHost.start_server`. `loading`: nothing is measured of it.
    `for_valgrind`: more words at the end where it runs under valgrind. `first_of_child`: see `ServerSystem`.
    """

    argv: tuple[str, ...]
    log: Path
    marker: str
    data: Path
    folders: tuple[Path, ...] = ()
    undo_by: signal.Signals = signal.SIGKILL
    account: Account | None = None
    loading: bool = False
    for_valgrind: tuple[str, ...] = ()
    first_of_child: str | None = None


class Running(ABC):
    """A server that was started. `pid` is the id of its process on this host."""

    pid: int

    @abstractmethod
    def wait(self, timeout: float) -> int | None:
        """Its exit status as soon as it ends, or None after `timeout` seconds. Negative: the signal that ended it."""

    @abstractmethod
    def complaint(self, lines: int = 1, telling: str = "") -> str:
        """What it wrote to its standard error, as `Process.complaint` does."""


class Deployment(ABC):
    """One way of deploying. `in_container` says whether a system has to bring a `Recipe`.

    Life: `provision` once a study; then `start` and `end` for each run; `destroy` at the end. Each raises RunError.
    """

    kind: ClassVar[str]
    in_container: ClassVar[bool]

    def __init__(self, site: Site) -> None:
        self.site = site
        self.under: tuple[str, ...] = ()
        """The words that servers are started under from now on, such as those of a tracer; see `Confinement`."""
        self.joined: tuple[Path, ...] = ()
        """The `cgroup.procs` files of the groups that servers join from now on in place of their site's."""

    @property
    def data(self) -> Path:
        """Where the data of the stopped system are, on the file system to be measured."""
        return self.site.folder / "live"

    def data_while_running(self) -> Path:
        """Where the same data are on this host while the system runs on them."""
        return self.data

    def provision(self, recipe: Recipe | None, limit: float) -> Mapping[str, str]:
        """Have ready all that starting needs; versions by name. `limit` is in seconds."""
        return {}

    @abstractmethod
    def start(self, launch: Launch, limit: float) -> Running:
        """Start a server; whether it came up is for the system to see."""

    @abstractmethod
    def end(self, running: Running, *, limit: float, farewell: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and kill it past `limit` seconds; its exit status. Raises UndoError too."""

    def facts(self, running: Running) -> dict[str, Scalar]:
        """How it is deployed, as found while it runs: all in which deployments may differ without being meant to.

        The same keys for every deployment. Raises RunError.
        """
        return facts_of(running.pid, self.data, self.data_while_running())

    def counted(self) -> Mapping[str, float]:
        """What it counted of the server that ended last, for the run's status."""
        return {}

    def functions(self) -> pl.DataFrame | None:
        """What each function of that server took; None where that is not counted."""
        return None

    def interrupted(self) -> None:  # noqa: B027 - most servers come up, and are asked to end, in seconds
        """The user wants dyno to end, while a server starts, works or ends.

        See `Interrupt.telling`: it is called by a signal's handler and waits for nothing, and again after a while.
        """

    def destroy(self) -> None:  # noqa: B027 - most have nothing to end
        """End all that `provision` started."""
