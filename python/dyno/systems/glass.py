"""glass: dyno's own engine, embedded, whose components can be removed one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from dyno.model.assemblies import Assembly, parse, path
from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Size, format_size
from dyno.systems.base import UNDONE, System
from dyno.systems.core import built_in

_OF_MODULE: Final = {
    "keys": "keys",
    "log": "log",
    "locks": "locks",
    "latch": "latches",
    "pages": "buffer",
    "transactions": "transactions",
    "catalogue": "catalogue",
    "btree": "trees",
    "heap": "heaps",
    "engine": "engine",
    "kernel": "kernel",
}
_PATH: Final = re.compile(r"(?:<|&|\(|mut |dyn )*(dyno_\w+)::(\w+)")
# A component as calls: the name of its trait says which; pins are given back by a function of their own.
_OUTLINED: Final = re.compile(r"<dyno_glass::assembly::.* as dyno_glass::(\w+)::")
_UNPIN: Final = "dyno_glass::assembly::outlined::unpin"
_CALL: Final = re.compile(r"dyno_glass::engine::boundary::(\w+?)(?:::<.*>)?(?:::h[0-9a-f]{16})?")
_OWN_CODE: Final = ("dyno_tpcc", "dyno_glass_tpcc")


class GlassOptions(Frozen):
    """What it is put together of, and what its components are given."""

    assembly: Annotated[
        str,
        Field(
            description="components joined by +: keys, log, locks, latches, buffer, transactions, catalogue, or full "
            "(all of them), none, kernel (main-memory trees and rows by hand); with large-pages the buffer manager has "
            "pages of 32 KiB instead of 8. dyno-core has those of studies/looking-glass.yaml, and all after "
            "`make every-assembly`"
        ),
    ] = "full"
    pool: Annotated[Size, Field(ge=1024 * 1024, description="memory for pages, where there is a buffer manager")] = (
        1024**3
    )
    log: Annotated[
        Literal["memory", "written", "synced"],
        Field(
            description="where there is a log: kept in memory alone, as in the publication; written at each commit and "
            "synced from time to time; synced before a commit returns"
        ),
    ] = "synced"

    resident: Annotated[
        bool,
        Field(
            description="all pages are brought into memory before it is driven, and a run in which one was read or "
            "written then is invalid"
        ),
    ] = False

    @field_validator("assembly")
    @classmethod
    def _assembly_is_one_that_there_is(cls, value: str) -> str:
        if parse(value).outlined:
            raise ValueError("outlined is a build for profiles: the observer counted takes it by itself")
        return value

    @model_validator(mode="after")
    def _log_lasts_no_longer_than_pages(self) -> GlassOptions:
        assembly = parse(self.assembly)
        if "log" in assembly.components and not assembly.in_file and self.log != "memory":
            raise ValueError(
                f"log: {self.log} would keep what assembly {assembly.name} does not: without buffer all pages are gone "
                "with the process; write memory"
            )
        return self


class GlassSystem(System[GlassOptions]):
    """A file of pages and a log in the data folder, as far as its assembly has these."""

    kind = "glass"
    backend = "glass"
    Options = GlassOptions

    @classmethod
    def most_clients(cls, options: GlassOptions) -> int | None:
        """One, where nothing keeps several apart."""
        return 1 if parse(options.assembly).one_client else None

    @classmethod
    def refuses(cls, options: GlassOptions, workload: str, *, rolls_back: bool) -> str | None:
        """What the kernel has no tables for, and what nobody could undo."""
        assembly = parse(options.assembly)
        if assembly.kernel and workload != "tpcc":
            return f"the kernel has TPC-C's tables and no others: it cannot serve {workload}"
        if rolls_back and "transactions" not in assembly.components:
            return UNDONE.format(f"assembly {assembly.name}")
        return None

    @property
    def assembly(self) -> Assembly:
        """As asked for."""
        return parse(self.options.assembly)

    def data_key(self) -> dict[str, Any]:
        """What is in the file depends on its pages and on what there is beside them; of a volatile one nothing is."""
        if not self.assembly.in_file:
            return {"volatile": True}
        return {"assembly": self.assembly.name, "log": self.options.log}

    def provision(self, limit: float) -> dict[str, str]:
        """It is inside dyno-core, which has the assemblies of the path, or all."""
        there = built_in(self.place, "glass-assemblies", limit)
        if there != "all" and not self.assembly.kernel and self.assembly not in path():
            raise RunError(
                f"dyno-core was built without assembly {self.assembly.name}: it has those alone that are met when "
                "components are removed in the publication's order; `make every-assembly` installs one that has all "
                "(some ten minutes)"
            )
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if self.assembly.in_file and self.options.pool > memory:
            raise RunError(
                f"pool: {format_size(self.options.pool)} are more than this machine's memory, {format_size(memory)}"
            )
        return {"glass-assemblies": there}

    def prepare(self, limit: float) -> None:
        """An empty folder, in which opening makes a store."""
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()

    def start(self, run: int, limit: float) -> None:
        """Nothing to start: it is embedded."""
        if not self.place.data.is_dir():
            raise RunError("there are no data to start on")

    def ready(self, limit: float) -> Endpoint:
        """It is opened by the driver."""
        return self._endpoint(self.assembly)

    def asked(self) -> dict[str, Any]:
        """What the driver reads back of the engine that it opened."""
        return {"assembly": self.assembly.name}

    def status(self) -> dict[str, float]:
        """Bytes of its files."""
        return {"data_bytes": float(sum(path.stat().st_size for path in self.data_files()))}

    def refutes(self, status: Mapping[str, float]) -> str | None:
        """A page that came or went, where none may."""
        if not self.options.resident:
            return None
        for moved in ("read", "written"):
            size = status.get(f"{self.backend}.pages_{moved}_bytes")
            if size != 0:
                told = "is not known" if size is None else f"is {size:,.0f}"
                data = sum(path.stat().st_size for path in self.data_files())
                return (
                    f"bytes of pages {moved} while it was driven: {told}, and resident: true allows none; the files "
                    f"have {format_size(data)}, the pool {format_size(self.options.pool)}"
                )
        return None

    def builds(self, endpoint: Endpoint) -> dict[str, Endpoint]:
        """The same with the boundaries of components as calls, where there is such a build."""
        found = {"optimised": endpoint}
        if self.assembly in path():
            outlined = Assembly(self.assembly.components, self.assembly.large_pages, outlined=True)
            found["outlined"] = self._endpoint(outlined)
        return found

    def parts(self) -> GlassParts:
        """By the modules of its crate."""
        return GlassParts()

    def stop(self, limit: float) -> None:
        """Nothing to stop: it ends with the driver."""

    def _endpoint(self, assembly: Assembly) -> Endpoint:
        options = self.options
        settings: dict[str, Any] = {"assembly": assembly.name}
        if assembly.in_file:
            settings |= {"folder": str(self.place.data), "pool_bytes": options.pool, "preload": options.resident}
        if "log" in assembly.components:
            settings["log"] = options.log
        return Endpoint(backend=self.backend, settings=settings, volatile=not assembly.in_file)


class GlassParts:
    """Components by the first module in a function's name, calls by the functions that keep them apart."""

    def component(self, symbol: str) -> str | None:
        """Of a function of the engine, or of the transaction that calls it; None for those of libraries."""
        if symbol.startswith(_UNPIN):
            return "buffer"
        if outlined := _OUTLINED.match(symbol):
            return _OF_MODULE.get(outlined[1])
        found = _PATH.match(symbol)
        if found is None:
            return None
        crate, module = found.groups()
        if crate in _OWN_CODE:
            return "kernel" if module == "kernel" else "transaction"
        return _OF_MODULE.get(module) if crate == "dyno_glass" else None

    def call(self, symbol: str) -> str | None:
        """Of the outlined build alone: others have no such functions."""
        found = _CALL.fullmatch(symbol)
        return found[1] if found else None
