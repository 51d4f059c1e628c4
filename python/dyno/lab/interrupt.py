"""Ctrl-C, SIGTERM and SIGHUP as a question that the lab asks where it may stop, not an exception anywhere."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupt:
    """Whether the user wants dyno to end. The first signal asks, the second is a KeyboardInterrupt at once."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself gave

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
