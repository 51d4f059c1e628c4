"""The ledger: every row that the store said it had taken must be there afterwards, once, and as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from dyno.model.endpoint import Endpoint
from dyno.model.units import Size
from dyno.workloads import core
from dyno.workloads.base import Checked, Runner
from dyno.workloads.driving import DrivenWorkload, DrivingOptions

_WRONG = {"lost": "acknowledged and absent", "duplicated": "there more than once", "altered": "not as written"}


class LedgerOptions(DrivingOptions):
    """What each row carries."""

    payload: Annotated[Size, Field(ge=0, le=65535, description="bytes of each row besides its number")] = 100


class LedgerWorkload(DrivenWorkload[LedgerOptions]):
    """Writes numbered rows and keeps the numbers that were acknowledged; then counts what is there."""

    kind = "ledger"
    Options = LedgerOptions
    backends = frozenset({"sqlite", "mysql", "postgresql"})
    outlives_failure = True  # the death of a server is what a ledger is for

    def notes(self) -> Iterator[str]:
        """What became of the rows."""
        yield "After each run every acknowledged row was looked for in the store."

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
        return Checked(status, "; ".join(wrong) or checked.wrong)

    def written(self) -> dict[str, float]:
        """The payload of a row; what it is known by is not counted."""
        return {"write": float(self.options.payload)}

    def asked(self) -> dict[str, Any]:
        """As a job has it."""
        return {"kind": "ledger", "payload_bytes": self.options.payload}
