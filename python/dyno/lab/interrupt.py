"""Ctrl-C, SIGTERM and SIGHUP as a question that the lab asks where it may stop, not an exception anywhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_AGAIN_S: Final = 5.0
_SAID: Final = (
    "dyno: interrupted; putting things back ... (interrupt again to end at once: `dyno clean` does the rest)\n"
)


class Interrupt:
    """Whether the user wants dyno to end. The first signal asks, the second is a KeyboardInterrupt at once."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, object] = {}
        self._told: Callable[[], None] | None = None

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._hear)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._remind)
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself gave

    @contextmanager
    def telling(self, hear: Callable[[], None]) -> Iterator[None]:
        """Meanwhile `hear` is called as the first signal comes, and every five seconds from then on.

        It is called in a signal's handler: it may send signals, and wait for nothing. For what would be waited for too
        long to ask in between.
        """
        self._told = hear
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._told = None

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        _say_at_once(_SAID)
        if self._told is not None:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
            self._told()

    def _remind(self, _number: int, _frame: FrameType | None) -> None:
        if self._told is not None:
            self._told()


def _say_at_once(text: str) -> None:
    """On standard error, past all buffers: a handler may interrupt whoever writes into them."""
    try:
        # A terminal has just shown ^C.
        os.write(2, (f"\n{text}" if os.isatty(2) else text).encode())
    except OSError:
        return
