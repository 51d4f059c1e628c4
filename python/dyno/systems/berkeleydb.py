"""Berkeley DB: embedded B-trees, whose parts are chosen by product: data store, concurrent, transactional."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from dyno.hosts.doctor import BERKELEY_LIBRARY, BERKELEY_PACKAGE
from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Size
from dyno.systems.base import UNDONE, System

_PAGE_SIZES: Final = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


class BerkeleyOptions(Frozen):
    """Which of its parts it has, and what these are given."""

    product: Annotated[
        Literal["data-store", "concurrent", "transactional"],
        Field(
            description="data-store: B-trees over a page cache; concurrent: with a lock for each B-tree, which many "
            "may read or one may write; transactional: with a log and locks on pages"
        ),
    ] = "transactional"
    cache: Annotated[
        Size, Field(ge=1024 * 1024, description="memory for pages; the library adds a quarter to less than 500 MB")
    ] = 1024**3
    page_size: Annotated[Size, Field(description="of the files; a power of two, 512 B to 64 KiB")] = 8192
    checksums: Annotated[bool, Field(description="of each page, looked at when it is read")] = False
    log: Annotated[
        Literal["memory", "written", "synced"] | None,
        Field(
            description="of transactions: kept in memory alone; written at each commit; synced before a commit "
            "returns, as when this is not given"
        ),
    ] = None
    locks: Annotated[
        bool | None, Field(description="of transactions, which have some where this is not given; without, one client")
    ] = None
    mutexes: Annotated[
        bool, Field(description="whether what clients share is guarded (DB_THREAD); without there is one client")
    ] = True
    resident: Annotated[
        bool,
        Field(
            description="all pages are read before a run, which is invalid if one was read or written while it was "
            "driven: memory has to hold all"
        ),
    ] = False

    @field_validator("page_size")
    @classmethod
    def _page_size_is_one_that_it_takes(cls, value: int) -> int:
        if value not in _PAGE_SIZES:
            raise ValueError(f"page_size is one of {', '.join(map(str, _PAGE_SIZES))} B")
        return value

    @model_validator(mode="after")
    def _only_transactions_have_a_log(self) -> BerkeleyOptions:
        if self.product != "transactional":
            for key in ("log", "locks"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key} is of product transactional, and this is {self.product}: leave it out")
        return self


class BerkeleySystem(System[BerkeleyOptions]):
    """A file a B-tree in the data folder, and beside them the log's where there is one."""

    kind = "berkeleydb"
    backend = "berkeleydb"
    Options = BerkeleyOptions

    @classmethod
    def needs(cls, options: BerkeleyOptions) -> Sequence[str]:  # noqa: ARG003 - whatever they are
        """The library."""
        return ("Berkeley DB",)

    @classmethod
    def most_clients(cls, options: BerkeleyOptions) -> int | None:
        """One, unless transactions keep what one reads and then writes from the others."""
        several = options.product == "transactional" and options.locks is not False and options.mutexes
        return None if several else 1

    @classmethod
    def refuses(cls, options: BerkeleyOptions, workload: str, *, rolls_back: bool) -> str | None:  # noqa: ARG003
        """Only transactions can be undone."""
        return (
            UNDONE.format(f"product {options.product}") if rolls_back and options.product != "transactional" else None
        )

    def provision(self, limit: float) -> dict[str, str]:
        """The library is looked for by dyno-core when it opens a store; here whether it is there at all."""
        try:
            library = ctypes.CDLL(BERKELEY_LIBRARY)
        except OSError as error:
            raise RunError(f"Berkeley DB is not there (apt-get install {BERKELEY_PACKAGE}): {error}") from error
        numbers = [ctypes.c_int() for _ in range(3)]
        library.db_version(*map(ctypes.byref, numbers))
        return {"berkeleydb": ".".join(str(number.value) for number in numbers)}

    def data_key(self) -> dict[str, Any]:
        """What the files keep. They are filled without transactions, and are alike in all products."""
        return {"page_size": self.options.page_size, "checksums": self.options.checksums}

    def prepare(self, limit: float) -> None:
        """An empty folder, in which loading makes the files."""
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()

    def start(self, run: int, limit: float) -> None:
        """Nothing to start: it is embedded."""
        if not self.place.data.is_dir():
            raise RunError("there are no data to start on")

    def ready(self, limit: float) -> Endpoint:
        """It is opened by the driver."""
        given = self.options
        settings = {**self.asked(), "folder": str(self.place.data), "cache_bytes": given.cache}
        return Endpoint(backend=self.backend, settings=settings)

    def asked(self) -> dict[str, Any]:
        """What the library says of the store that was opened; of its cache it says more than it was given."""
        given = self.options
        asked: dict[str, Any] = {
            "product": given.product,
            "page_size_bytes": given.page_size,
            "checksums": given.checksums,
            "mutexes": given.mutexes,
            "preload": given.resident,
        }
        if given.product == "transactional":
            asked |= {"log": given.log or "synced", "locks": given.locks is not False}
        return asked

    def status(self) -> dict[str, float]:
        """Bytes of its files, and of its log's."""
        sizes = {path.name: path.stat().st_size for path in self.data_files()}
        logs = sum(size for name, size in sizes.items() if name.startswith("log."))
        return {"data_bytes": float(sum(sizes.values()) - logs), "log_bytes": float(logs)}

    def refutes(self, status: Mapping[str, float]) -> str | None:
        """A page that came or went, where none may."""
        if not self.options.resident:
            return None
        for moved in ("read", "written"):
            size = status.get(f"{self.backend}.pages_{moved}_bytes")
            if size != 0:
                told = "is not known" if size is None else f"is {size:,.0f}"
                return f"bytes of pages {moved} while it was driven: {told}, and resident: true allows none"
        return None

    def stop(self, limit: float) -> None:
        """Nothing to stop: it ends with the driver."""
