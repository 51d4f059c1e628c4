"""SQLite: embedded, so that the driver's own process does its work; configured by pragmas, which are read back."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, Size
from dyno.systems.base import UNDONE, AfterLoad, System
from dyno.systems.core import built_in

_PAGE_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


class SqliteOptions(Frozen):
    """Pragmas. One that is not given keeps SQLite's own default, which is recorded with each run."""

    journal_mode: Annotated[
        Literal["delete", "truncate", "persist", "memory", "wal", "off"] | None,
        Field(description="PRAGMA journal_mode"),
    ] = None
    synchronous: Annotated[
        Literal["off", "normal", "full", "extra"] | None, Field(description="when a commit is synced to the device")
    ] = None
    cache_size: Annotated[Size | None, Field(description="page cache of each connection; whole KiB")] = None
    mmap_size: Annotated[Size | None, Field(description="how much of the file is read by memory map")] = None
    locking_mode: Annotated[Literal["normal", "exclusive"] | None, Field(description="exclusive takes one client")] = (
        None
    )
    page_size: Annotated[Size | None, Field(description="of the file; a power of two, 512 B to 64 KiB")] = None
    threading_mode: Annotated[
        Literal["single-thread", "multi-thread", "serialized"] | None,
        Field(
            description="what is guarded by mutexes: nothing, which takes one client; what connections share, as when "
            "this is not given; that and each connection"
        ),
    ] = None
    memory_statistics: Annotated[
        bool | None, Field(description="whether the library counts the memory that it takes")
    ] = None
    secure_delete: Annotated[bool | None, Field(description="whether what is deleted is overwritten")] = None
    in_memory: Annotated[
        bool,
        Field(
            description="a run copies the file into memory before it begins, works there, and writes it back when it "
            "has ended: journal_mode memory or off, one client"
        ),
    ] = False
    resident: Annotated[
        bool,
        Field(
            description="all pages are read before a run, which is invalid if one was read while it was driven: "
            "cache_size has to hold all"
        ),
    ] = False
    busy_timeout: Annotated[Duration, Field(le=3600, description="how long a client waits for another's lock")] = 10.0
    check: Annotated[
        Literal["none", "quick", "full"],
        Field(description="after each run: PRAGMA quick_check, integrity_check, or none"),
    ] = "quick"
    after_load: AfterLoad = ()

    @field_validator("page_size")
    @classmethod
    def _page_size_is_one_that_sqlite_takes(cls, value: int | None) -> int | None:
        if value is not None and value not in _PAGE_SIZES:
            raise ValueError(f"page_size is one of {', '.join(map(str, _PAGE_SIZES))} B")
        return value

    @field_validator("cache_size")
    @classmethod
    def _cache_size_is_whole_kib(cls, value: int | None) -> int | None:
        # PRAGMA cache_size = -N counts KiB; anything finer would not be effective as asked.
        if value is not None and value % 1024:
            raise ValueError("cache_size is a whole number of KiB")
        return value

    @model_validator(mode="after")
    def _memory_has_no_file(self) -> SqliteOptions:
        if self.in_memory and self.journal_mode not in (None, "memory", "off"):
            raise ValueError(f"journal_mode {self.journal_mode} is of a file, and in_memory has none: memory or off")
        if self.in_memory and self.mmap_size is not None:
            raise ValueError("mmap_size is of a file, and in_memory has none")
        return self


class SqliteSystem(System[SqliteOptions]):
    """One database file in the data folder."""

    kind = "sqlite"
    backend = "sqlite"
    Options = SqliteOptions

    @classmethod
    def most_clients(cls, options: SqliteOptions) -> int | None:
        """An exclusive lock is one connection's, as is a database in memory; without mutexes there is one thread."""
        alone = options.locking_mode == "exclusive" or options.in_memory or options.threading_mode == "single-thread"
        return 1 if alone else None

    @classmethod
    def refuses(cls, options: SqliteOptions, workload: str, *, rolls_back: bool) -> str | None:  # noqa: ARG003
        """Without a journal nothing can be undone."""
        return UNDONE.format("journal_mode off") if rolls_back and options.journal_mode == "off" else None

    @property
    def _file(self) -> Path:
        return self.place.data / "data.db"

    def provision(self, limit: float) -> dict[str, str]:
        """The library is inside dyno-core; its version is asked of it."""
        return {"sqlite": built_in(self.place, "sqlite", limit)}

    def data_key(self) -> dict[str, Any]:
        """What the file keeps: its page size, and whether it is in WAL mode.

        A run that sets a journal mode sets it anew; one that leaves it alone must not find another's WAL.
        """
        return {"page_size": self.options.page_size, "sets_journal_mode": self.options.journal_mode is not None}

    def after_load(self) -> tuple[str, ...]:
        """By Python's own SQLite: the file's format is the same in all versions."""
        return self.options.after_load

    def prepare(self, limit: float) -> None:
        """An empty file, which is an empty database: a workload that loads nothing finds something to open."""
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()
        self._file.touch()

    def start(self, run: int, limit: float) -> None:
        """Nothing to start: it is embedded."""
        if not self.place.data.is_dir():
            raise RunError("there are no data to start on")

    def ready(self, limit: float) -> Endpoint:
        """Open the file with these settings and have it answer."""
        endpoint = Endpoint(backend=self.backend, settings={"path": str(self._file), "config": self._config()})
        if self._file.exists() and self._file.stat().st_size:
            self._probe(endpoint, limit)
        return endpoint

    def asked(self) -> dict[str, Any]:
        """Every pragma that the study sets."""
        return self._config()

    def status(self) -> dict[str, float]:
        """Sizes of the file and of its log, in bytes."""
        return {f"{path.name.replace('.', '_')}_bytes": float(path.stat().st_size) for path in self.data_files()}

    def refutes(self, status: Mapping[str, float]) -> str | None:
        """A page that was read, where none may."""
        read = status.get(f"{self.backend}.pages_read_bytes")
        if not self.options.resident or read == 0:
            return None
        told = "is not known" if read is None else f"is {read:,.0f}"
        return f"bytes of pages read while it was driven: {told}, and resident: true allows none"

    def check(self, limit: float) -> None:
        """SQLite's own check of pages, order and references."""
        if self.options.check == "none" or not self._file.exists():
            return
        pragma = "quick_check" if self.options.check == "quick" else "integrity_check"
        deadline = time.monotonic() + limit
        try:
            # as_uri, since a folder's name may hold what means something in a URI
            with closing(sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True, timeout=limit)) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
                answers = [str(row[0]) for row in connection.execute(f"PRAGMA {pragma}(10)")]
        except sqlite3.Error as error:
            raise RunError(f"PRAGMA {pragma}: {error}") from error
        if answers != ["ok"]:
            raise RunError(f"PRAGMA {pragma} found damage: {'; '.join(answers)}")

    def stop(self, limit: float) -> None:
        """Nothing to stop: it ends with the driver."""

    def _config(self) -> dict[str, Any]:
        given = {
            "journal_mode": self.options.journal_mode,
            "synchronous": self.options.synchronous,
            "cache_size_bytes": self.options.cache_size,
            "mmap_size_bytes": self.options.mmap_size,
            "locking_mode": self.options.locking_mode,
            "page_size_bytes": self.options.page_size,
            "busy_timeout_ms": round(self.options.busy_timeout * 1000),
            "threading_mode": self.options.threading_mode,
            "memory_statistics": self.options.memory_statistics,
            "secure_delete": self.options.secure_delete,
            "in_memory": self.options.in_memory or None,
            "preload": self.options.resident or None,
        }
        return {key: value for key, value in given.items() if value is not None}

    def _probe(self, endpoint: Endpoint, limit: float) -> None:
        job = self.place.logs / "probe.json"
        job.parent.mkdir(parents=True, exist_ok=True)
        job.write_text(
            json.dumps(
                {
                    "format": 1,
                    "phase": "run",
                    "backend": {"kind": endpoint.backend, **endpoint.settings},
                    "workload": {"kind": "null"},
                    "clients": 1,
                    "operations": 1,
                    "seed": 0,
                }
            )
        )
        self.place.host.run(
            [self.place.core, "drive", "--probe", "--job", str(job)], limit=limit, log=self.place.logs / "probe"
        )
