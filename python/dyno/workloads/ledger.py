"""The ledger: every row that the store said it had taken must be there afterwards, once, and as it was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.units import PositiveDuration, Size
from dyno.workloads import core
from dyno.workloads.base import Checked, Runner
from dyno.workloads.driving import SERVERS, DrivenWorkload, DrivingOptions, with_limits

_WRONG = {"lost": "acknowledged and absent", "duplicated": "there more than once", "altered": "not as written"}

LOOKED_FOR = "After each run every acknowledged row was looked for in the store."


class StaleReads(Frozen):
    """How rows are looked for that were acknowledged just before."""

    rate: Annotated[float, Field(gt=0, le=1e6, description="rows a second at the most")] = 50.0
    readers: Annotated[int, Field(ge=1, le=64, description="clients, each with a connection of its own")] = 1
    give_up: Annotated[
        PositiveDuration, Field(le=3600, description="how long a row that was not there is looked for again")
    ] = 1.0


class LedgerOptions(DrivingOptions):
    """What each row carries."""

    stale_reads: Annotated[
        StaleReads | None,
        Field(
            description="of clusters: rows are looked for as soon as they were acknowledged, on the way in that "
            "secondaries answer; one that is not there is a stale read. Rows then have an index by which they are found"
        ),
    ] = None
    payload: Annotated[Size, Field(ge=0, le=65535, description="bytes of each row besides its number")] = 100


class LedgerWorkload(DrivenWorkload[LedgerOptions]):
    """Writes numbered rows and keeps the numbers that were acknowledged; then counts what is there."""

    kind = "ledger"
    Options = LedgerOptions
    backends = frozenset({"sqlite", "mysql", "postgresql"})
    outlives_failure = True  # the death of a server is what a ledger is for

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """Who looks elsewhere needs an elsewhere."""
        if self.options.stale_reads is not None and backend not in SERVERS:
            return f"stale_reads are of clusters, and a store of backend {backend} has one way in: leave them out"
        return super().refuses(backend, reached_by)

    def data_key(self) -> dict[str, Any]:
        """Whether rows can be found by their names."""
        return {"indexed": True} if self.options.stale_reads is not None else {}

    def readers(self, endpoint: Endpoint) -> dict[str, Any] | None:
        """Each driver has readers of its own: they know of the rows that it wrote."""
        asked = self.options.stale_reads
        if asked is None:
            return None
        settings = endpoint.others.get(READ_ONLY)
        if settings is None:
            raise RunError("the system has no way in that secondaries answer: leave workload.stale_reads out")
        other = with_limits(replace(endpoint, settings=dict(settings)), self.options.limits)
        return {
            "clients": asked.readers,
            "rate_per_s": asked.rate / self.options.drivers,
            "give_up_s": asked.give_up,
            "server": {"kind": other.backend, **other.settings},
        }

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """Lost, duplicated and altered rows fail the run; one that was never acknowledged may be there."""
        acknowledged = [str(folder) for folder in core.folders(runner, self.options.drivers)]
        checked, result = core.check(runner, self.job(endpoint, "check", seed, acknowledged=acknowledged))
        found = result["ledger"]
        if found is None:
            return Checked(wrong=checked.wrong or "the driver counted no rows")
        status = {f"ledger.{name}": float(count) for name, count in found.items() if name != "examples"}
        wrong = [
            f"{found[name]} rows {name} ({what}; such as {', '.join(found['examples'].get(name, ['-'])[:3])})"
            for name, what in _WRONG.items()
            if found[name]
        ]
        return Checked(status, "; ".join(wrong) or checked.wrong, (LOOKED_FOR,))

    def written(self) -> dict[str, float]:
        """The payload of a row; what it is known by is not counted."""
        return {"write": float(self.options.payload)}

    def asked(self) -> dict[str, Any]:
        """As a job has it."""
        indexed = {"indexed": True} if self.options.stale_reads is not None else {}
        return {"kind": "ledger", "payload_bytes": self.options.payload, **indexed}
