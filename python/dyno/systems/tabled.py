"""What is alike in systems whose tables a study may lay out: `system.tables`, attested by what the store says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from dyno import ddl, sql
from dyno.hosts import files
from dyno.model.base import NeverValid, RunError
from dyno.model.devops import MEASUREMENTS
from dyno.model.endpoint import Endpoint
from dyno.systems.base import Place

AT_REST = "at_rest.bytes"
"""In the status of a run: what the data take on disk when that is true for the store, in bytes, without its log."""
LOG_AT_REST = "at_rest.log_bytes"
"""Beside it: the log, of which a store keeps as much as it likes, whatever is in its tables."""


class Tabled:
    """Comes before the kind of system among the bases."""

    backend: ClassVar[str]
    log_folders: ClassVar[tuple[str, ...]] = ()
    """Patterns of the folders below its data that hold its log."""
    place: Place
    _endpoint: Endpoint | None

    @abstractmethod
    def design(self) -> Mapping[str, Any]:
        """How the tables are to be: `TableOptions.design` of its options."""

    def statements(self, table: str, *, first: datetime = ddl.FIRST, last: datetime = ddl.LAST) -> tuple[str, ...]:
        """What makes one of the tables of TSBS's devops; workloads have the same by `dyno.ddl.of` their endpoint."""
        return ddl.statements(self.backend, self.design(), table, first=first, last=last)

    def visible(self, table: str, rows: int, limit: float) -> int:
        """Wait until so many rows can be read; how many can then. Raises RunError."""
        if self._endpoint is None:
            raise RunError(f"{self.backend} does not run")
        return sql.visible(self._endpoint, table, rows, limit=limit)

    @abstractmethod
    def read_tables(self, connection: sql.Connection) -> Mapping[str, Mapping[str, Any]]:
        """Of those tables of devops that there are, how they are laid out, in the terms of `design`."""

    def attest_tables(self, connection: sql.Connection) -> None:
        """See that each table that there is was laid out as it was to be. Raises NeverValid.

        Both before a run, of what was loaded, and after it, of what the workload made.
        """
        wanted = self.design()
        for table, found in self.read_tables(connection).items():
            for key, value in found.items():
                if value != wanted[key]:
                    raise NeverValid(
                        f"tables.{key} of {table} is {_told(value)}, the study asks for {_told(wanted[key])}: "
                        "it was not effective"
                    )

    def told_tables(self) -> dict[str, Any]:
        """As settings of a run."""
        return {f"tables.{key}": _told(value) for key, value in self.design().items()}

    def at_rest(self) -> dict[str, float]:
        """Of the stopped store: while it runs, files may be larger than what is in them."""
        data = self.place.data
        log = sum(files.bytes_on_disk(folder) for pattern in self.log_folders for folder in data.glob(pattern))
        return {AT_REST: float(files.bytes_on_disk(data) - log), LOG_AT_REST: float(log)}


def of_devops() -> str:
    """The names of the tables, as a list of literals in SQL."""
    return ", ".join(f"'{name}'" for name in MEASUREMENTS)


def _told(value: Any) -> Any:
    return (", ".join(value) or "none") if isinstance(value, list) else value
