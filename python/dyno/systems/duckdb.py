"""DuckDB: one file, held by a process of dyno's for as many clients as there are. A Python package brings the store."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dyno import sql
from dyno.model.base import RunError, Scalar
from dyno.model.counters import Counters
from dyno.model.endpoint import Endpoint
from dyno.model.table_options import Deduplicate, Index, TableOptions
from dyno.systems import duckdb_server
from dyno.systems.server import Figures, ServerOptions, ServerSystem, truth
from dyno.systems.tabled import Tabled, of_devops

_FILE = "data.duckdb"
_ROUNDED = 0.01  # it shows sizes with one digit after the point

_LEAVES_DATA_ALONE = frozenset({
    "default_order", "default_null_order", "enable_object_cache", "immediate_transaction_mode", "max_memory",
    "max_temp_directory_size", "memory_limit", "preserve_insertion_order", "temp_directory", "threads",
    "worker_threads",
})  # fmt: skip

_TELLING = ("checkpoint_threshold", "memory_limit", "preserve_insertion_order", "threads")


class DuckdbTables(TableOptions):
    """It has no partitions: its row groups have the least and the greatest time."""

    of = "duckdb"

    index: Index = "none"
    deduplicate: Deduplicate = False


class DuckdbOptions(ServerOptions):
    """Besides what SET takes, by its own names."""

    ours = frozenset({"access_mode"})

    connect: Annotated[
        Literal["socket"], Field(description="clients come by the socket file of the process that holds the data")
    ] = "socket"
    tables: DuckdbTables = DuckdbTables()


class DuckdbSystem(Tabled, ServerSystem[DuckdbOptions]):
    """One database file in the data folder."""

    kind = "duckdb"
    backend = "duckdb"
    Options = DuckdbOptions
    program = "duckdb"
    account = ""
    telling = "error:|Error:"
    leaves_data_alone = _LEAVES_DATA_ALONE
    buffers_writes = True

    @classmethod
    def needs(cls, options: DuckdbOptions) -> Sequence[str]:  # noqa: ARG003 - whatever they are
        """The package."""
        return ("DuckDB",)

    def programs(self) -> dict[str, Path]:
        """Python itself, with the package that has the store."""
        try:
            metadata.version("duckdb")
        except metadata.PackageNotFoundError as error:
            raise RunError(f"the Python package duckdb is missing: {sys.executable} -m pip install duckdb") from error
        return {"duckdb": Path(sys.executable)}

    def _account(self) -> None:
        """The present user: it refuses nobody, and its package is the user's."""

    def provision(self, limit: float) -> dict[str, str]:
        """The package's version; and whether it can keep a log where the data are to be."""
        self.programs()
        if "?" in str(self.place.data.absolute()):
            # It has `.wal` before the first one, as in the address of a remote file; also where a link leads there.
            raise RunError(
                f"DuckDB cannot keep its log below {self.place.data.parent}, since a '?' is in its path: choose "
                "another place with --work"
            )
        return {"duckdb": metadata.version("duckdb")}

    def design(self) -> Mapping[str, Any]:
        """As asked for."""
        return self.options.tables.design()

    def data_key(self) -> dict[str, Any]:
        """And how the tables are laid out."""
        return {**super().data_key(), "tables": dict(self.design())}

    def make_empty(self, folder: Path, limit: float) -> None:
        """It makes the file by itself when it starts."""

    def command(self, folder: Path, port: int | None) -> list[str]:
        """Isolated from what the user has set up for Python."""
        told = {
            "database": str(self._file),
            "socket": str(self.socket_file(folder)),
            "config": {name: _written(value) for name, value in self.options.settings.items()},
        }
        return [str(self.programs()["duckdb"]), "-I", duckdb_server.__file__, json.dumps(told), self.marker(folder)]

    def table_design(self) -> Mapping[str, Any]:
        """For whoever makes them."""
        return self.design()

    def socket_file(self, folder: Path) -> Path:
        """Nobody else comes by it: the folder is new with each start."""
        return folder / "duckdb.sock"

    def marker(self, folder: Path) -> str:
        """The same folder."""
        return f"--folder={folder}"

    def is_ours(self, connection: sql.Connection, folder: Path) -> bool:
        """Whoever answers by that file is."""
        return True

    def attest(self, connection: sql.Connection) -> None:
        """And what is there of its tables."""
        super().attest(connection)
        self._effective = {**self._effective, **self.told_tables()}
        self.attest_tables(connection)

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """From duckdb_settings(). That its log is synced at each commit cannot be turned off."""
        known = {str(name): str(value) for name, value in connection.rows("SELECT name, value FROM duckdb_settings()")}
        effective: dict[str, Any] = {name: known[name] for name in _TELLING if name in known}
        asked: dict[str, Any] = {}
        for name, wish in self.options.settings.items():
            asked[name] = wish
            if name in known:
                asked[name], effective[name] = canonical(wish, known[name])
        return asked, {**effective, "duckdb.wal": "synced at commit"}

    def read_tables(self, connection: sql.Connection) -> Mapping[str, Mapping[str, Any]]:
        """From its catalog."""
        names = connection.rows(f"SELECT table_name FROM duckdb_tables() WHERE table_name IN ({of_devops()})")
        keyed = {
            str(name)
            for (name,) in connection.rows(
                "SELECT table_name FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
            )
        }
        indexed: dict[str, list[str]] = {str(name): [] for (name,) in names}
        for table, expressions in connection.rows(
            "SELECT table_name, expressions FROM duckdb_indexes() ORDER BY index_oid"
        ):
            if str(table) in indexed:
                indexed[str(table)] += [word.strip("\"'") for word in re.findall(r"[\"'\w]+", str(expressions))]
        return {table: {"index": columns, "deduplicate": table in keyed} for table, columns in indexed.items()}

    def read_counters(self, connection: sql.Connection) -> Figures:
        """It counts nothing that only grows."""
        return {}

    def read_sizes(self, connection: sql.Connection) -> Figures:
        """Of what it holds in memory, and of its files."""
        held = connection.value("SELECT coalesce(sum(memory_usage_bytes), 0) FROM duckdb_memory()")
        sizes = {"memory_bytes": float(held)}
        for path, name in ((self._file, "data_bytes"), (self._file.with_name(f"{_FILE}.wal"), "wal_bytes")):
            sizes[name] = float(path.stat().st_size) if path.exists() else 0.0
        return sizes

    def reader(self, endpoint: Endpoint, limit: float) -> tuple[sql.Connection, Callable[[], Counters]]:
        """Of memory by what it is for; there is nothing else that it tells while it works."""
        connection = sql.connect(endpoint, limit=limit)
        return connection, partial(_memory, connection)

    @property
    def _file(self) -> Path:
        return self.place.data / _FILE

    def status(self) -> dict[str, float]:
        """Besides its sizes: that the tables are as they were to be."""
        if self._endpoint is not None and self.running is not None:
            with sql.connect(self._endpoint, limit=30.0) as connection:
                self.attest_tables(connection)
        return super().status()


def _memory(connection: sql.Connection) -> Counters:
    held = connection.rows("SELECT lower(tag), memory_usage_bytes, temporary_storage_bytes FROM duckdb_memory()")
    now = {f"memory.{tag}_bytes": float(used) for tag, used, _ in held}
    return Counters({}, {**now, "temporary_bytes": float(sum(spilt for _, _, spilt in held))})


def canonical(wish: Scalar, value: str) -> tuple[Any, Any]:
    """What was asked for and what is effective in the same terms; a size that is shown rounded is the one asked for."""
    if (switch := truth(wish)) is not None and value in ("true", "false"):
        return ("true" if switch else "false"), value
    sizes = _bytes(str(wish)), _bytes(value)
    asked, shown = sizes
    if asked is not None and shown is not None:
        return asked, asked if abs(asked - shown) <= _ROUNDED * asked else shown
    try:
        return int(str(wish)), int(value)
    except ValueError:
        return str(wish).lower(), value.lower()


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def _bytes(text: str) -> float | None:
    """`1GB` and `953.6 MiB`, as it takes and shows sizes; None of what has no unit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B(?:YTES)?", text.strip().upper())
    return None if found is None or found[2] not in _UNITS else float(found[1]) * _UNITS[found[2]]


def _written(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
