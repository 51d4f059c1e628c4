"""Has observers watch what a cluster starts while it is driven: a server that takes over, or that is started again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

_LOOK_EVERY_S = 0.1
"""What a process used until it is seen is in no sample."""


class Follower:
    """Looks again and again, in a thread of its own from `begin` to `end`."""

    def __init__(self, processes: Callable[[], Mapping[str, int]], watch: Callable[[int, str], None]) -> None:
        """`processes` gives those that there are by subject; `watch` is told of each that is new."""
        self._processes = processes
        self._watch = watch
        self._known: set[int] = set()
        self._over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._look, name="follower", daemon=True)

    def begin(self, known: Mapping[str, int]) -> None:
        """`known` are watched already."""
        self._known.update(known.values())
        self._thread.start()

    def end(self) -> None:
        """Look no more. Raises what went wrong: a run that was to be observed and was not has failed."""
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _look(self) -> None:
        try:
            while not self._over.wait(_LOOK_EVERY_S):
                for subject, pid in self._processes().items():
                    if pid not in self._known:
                        self._known.add(pid)
                        self._watch(pid, subject)
        except Exception as error:  # noqa: BLE001 - it is raised where the run goes on
            self._error = error
