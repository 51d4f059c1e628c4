"""What the contract suites run on: real dyno-core, and every implementation that the registry finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, Process, files, filesystems
from dyno.hosts.local import core_binary
from dyno.systems.base import Place
from dyno.workloads.base import Measured

LIMIT_S = 60.0


class PlainRunner:
    """A `Runner` without a lab: starts the driver and waits for it."""

    def __init__(self, host: LocalHost, core: str, folder: Path) -> None:
        self.core = core
        self.folder = folder
        self.logs = folder.parent / "logs"
        self.host = host
        self.complaint = ""
        self.interrupted = False
        self.limit = LIMIT_S
        self.namespace: str | None = None
        self.measured: Measured | None = None
        self.commands: list[tuple[str, ...]] = []

    def execute(self, argv: Sequence[str], *, kept_as: str | None = None) -> int:
        return self._wait([self._start(argv, kept_as or self.folder.name, lines=kept_as is None)])[0]

    def execute_all(self, argvs: Sequence[Sequence[str]]) -> list[int]:
        return self._wait([self._start(argv, f"{self.folder.name}-{n}", lines=True) for n, argv in enumerate(argvs)])

    def _start(self, argv: Sequence[str], name: str, *, lines: bool) -> Process:
        within = () if self.namespace is None else ("nsenter", f"--net={self.namespace}")
        self.commands.append((*within, *argv))
        return self.host.start(self.commands[-1], log=self.logs / name, lines=lines)

    def _wait(self, processes: list[Process]) -> list[int]:
        deadline = time.monotonic() + LIMIT_S
        statuses = [process.wait(max(deadline - time.monotonic(), 0)) for process in processes]
        self.complaint = next(filter(None, (process.complaint() for process in processes)), "")
        for process in processes:
            process.stop()
        assert None not in statuses, "the driver does not end"
        return [status for status in statuses if status is not None]


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are not written back: on a disk that discards, removing a server's thousand files then takes seconds.

    Nor are images written all through. That copies and images are is tested where these are made.
    """
    monkeypatch.setattr(files, "sync_file_system", lambda _folder: None)
    monkeypatch.setattr(filesystems, "write_all", lambda _image, _size, _deadline: None)


@pytest.fixture(scope="session")
def core() -> str:
    return core_binary()


@pytest.fixture
def runners(host: LocalHost, core: str, workspace: Path) -> Callable[[], PlainRunner]:
    """Gives a runner with a folder of its own at each call."""
    made: list[PlainRunner] = []

    def new() -> PlainRunner:
        made.append(PlainRunner(host, core, workspace / f"drive-{len(made)}"))
        return made[-1]

    return new


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is costly to make and the same for every test, such as a server's empty store."""
    folder = tmp_path_factory.mktemp("shared")
    for each in (tmp_path_factory.getbasetemp(), folder):
        each.chmod(0o711)
    return folder


@pytest.fixture
def place(host: LocalHost, core: str, workspace: Path, shared: Path) -> Place:
    # A name that would mean something in a URI, a pattern or a shell: users have such folders.
    (workspace / "100% a#b?").mkdir()
    return Place(host=host, data=workspace / "100% a#b?" / "live", logs=workspace / "logs", core=core, shared=shared)
