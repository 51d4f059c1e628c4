"""A runner whose driver writes what a tool once wrote, and endpoints that nobody answers at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dyno.model.endpoint import Endpoint
from dyno.workloads.base import Measured

TOOLS = Path(__file__).parents[2] / "golden" / "tools"
MARIADB = Endpoint("mysql", {"host": "127.0.0.1", "port": 1, "user": "dyno", "password": "dyno", "database": "dyno"})
NULL = Endpoint("null")


class Saying:
    """Its drivers leave this output and end with this status."""

    def __init__(self, folder: Path, output: str, status: int = 0, errors: str = "") -> None:
        self.core = "dyno-core"
        self.complaint = ""
        self.measured: Measured | None = None
        self.folder = self.logs = folder
        self.commands: list[list[str]] = []
        self._output, self._errors, self._status = output, errors, status

    def execute(self, argv: Sequence[str], *, kept_as: str | None = None) -> int:
        self.commands.append(list(argv))
        (self.logs / f"{kept_as}.stdout").write_text(self._output)
        (self.logs / f"{kept_as}.stderr").write_text(self._errors)
        return self._status

    def execute_all(self, argvs: Sequence[Sequence[str]]) -> list[int]:
        return [self.execute(argv) for argv in argvs]
