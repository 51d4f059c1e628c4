"""What the lab tells while it works, for whoever shows progress."""

from __future__ import annotations

from dyno.design import State
from dyno.model.run import RunRecord, Slot
from dyno.model.study import Cell


class Listener:
    """Hears nothing. Subclasses take what they want to show; none may raise."""

    def run_started(self, run: int, slot: Slot, cell: Cell) -> None:
        """A run begins."""

    def driving(self, throughput: float, phase: str) -> None:
        """The driver's latest interval, in operations a second."""

    def run_ended(self, record: RunRecord, state: State, seconds_left: float | None) -> None:
        """A run was committed."""

    def ended(self, reason: str) -> None:
        """The study is over, or was stopped."""

    def close(self) -> None:
        """Nothing more will come, whatever ended it. May come without `ended`, after an error."""
