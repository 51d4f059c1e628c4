"""A program that stands between clients and the nodes of a cluster, with a folder of its own."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from dyno.hosts import LocalHost, Process
from dyno.hosts.leftovers import UndoError
from dyno.model.base import RunError


class Front:
    """What is alike in all of them: the folder they are configured by, their process, and their end."""

    program: ClassVar[str]
    ends_within_s: ClassVar[float] = 10.0

    def __init__(self, host: LocalHost, logs: Path) -> None:
        self._host = host
        self._logs = logs
        self._folder: Path | None = None
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""
        return None if self._process is None else self._process.pid

    def make_folder(self) -> Path:
        """A folder for its files, that goes when it is stopped."""
        self._folder = self._host.temporary_folder(
            Path(tempfile.gettempdir()) / f"dyno-{self.program}-{secrets.token_hex(4)}"
        )
        return self._folder

    def begin(self, words: Sequence[str], marker: str) -> Process:
        """Start it; `marker` is the one of its words that nobody else's has. Raises RunError."""
        self._process = self._host.start_server(list(words), log=self._logs / self.program, marker=marker)
        return self._process

    def stop(self) -> None:
        """End it; nothing happens where it does not run. Raises RunError."""
        process, self._process = self._process, None
        folder, self._folder = self._folder, None
        try:
            if process is not None:
                self._host.end_server(process, limit=self.ends_within_s)
            if folder is not None:
                self._host.remove_temporary_folder(folder)
        except UndoError as error:
            raise RunError(f"{self.program}: {error}") from error
