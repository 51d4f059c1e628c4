"""The ledger: every row that the store said it had taken must be there afterwards, once, and as it was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from dyno.model.endpoint import Endpoint
from dyno.model.units import Size
from dyno.workloads import core
from dyno.workloads.base import Checked, Measured, Runner
from dyno.workloads.driving import DrivenWorkload, DrivingOptions, drive, with_limits

_WRONG = {"lost": "acknowledged and absent", "duplicated": "there more than once", "altered": "not as written"}


class LedgerOptions(DrivingOptions):
    """What each row carries."""

    payload: Annotated[Size, Field(ge=0, le=65535, description="bytes of each row besides its number")] = 100


class LedgerWorkload(DrivenWorkload[LedgerOptions]):
    """Writes numbered rows and keeps the numbers that were acknowledged; then counts what is there."""

    kind = "ledger"
    Options = LedgerOptions
    backends = frozenset({"sqlite", "mysql", "postgresql"})

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """As its limits do."""
        return self.options.refuses(backend)

    def rate(self) -> float | None:
        """As asked for."""
        return self.options.rate

    def clients(self) -> int:
        """One a thread."""
        return self.options.threads

    def warms_up(self) -> bool:
        """By time or by operations."""
        return self.options.warmup > 0 or self.options.warmup_operations > 0

    def expected_seconds(self) -> float | None:
        """Known where a duration ends it."""
        return self.options.seconds()

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Make its table, which every run then finds empty."""
        target = with_limits(endpoint, self.options.limits)
        core.load(runner, core.job(target, self._workload(), phase="load", clients=1, seed=seed))

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Write."""
        measured = drive(runner, endpoint, self._workload(), self.options, seed)
        return replace(measured, notes=("After each run every acknowledged row was looked for in the store.",))

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """Lost, duplicated and altered rows fail the run; one that was never acknowledged may be there."""
        acknowledged = [str(folder) for folder in core.folders(runner, self.options.drivers)]
        workload = {**self._workload(), "acknowledged": acknowledged}
        target = with_limits(endpoint, self.options.limits)
        checked, result = core.check(runner, core.job(target, workload, phase="check", clients=1, seed=seed))
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

    def _workload(self) -> dict[str, Any]:
        return {"kind": "ledger", "payload_bytes": self.options.payload}
