"""Who looks after a cluster that does not do so itself: asks its nodes again and again, and acts on what they say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from dyno import sql
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint

ENDS_WITHIN_S = 30.0
"""A manager, once it is asked to."""


class Manager:
    """Looks every `every` seconds, in a thread of its own. What it cannot do now it tries again at the next look."""

    def __init__(self, look: Callable[[], None], every: float) -> None:
        self._look = look
        self._every = every
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._defect: Exception | None = None
        """The first thing that it met and nobody foresaw."""
        self.events: list[tuple[int, str]] = []
        """What it did, with the time in ns since the epoch."""

    def start(self) -> None:
        """Begin. A daemon: dyno ends whatever its nodes do."""
        self._thread = threading.Thread(target=self._go_on, name="cluster manager", daemon=True)
        self._thread.start()

    def tell(self, text: str) -> None:
        """Keep what it did, and what kept it from it, once each time that it changes."""
        if not self.events or self.events[-1][1] != text:
            self.events.append((time.time_ns(), text))

    def go_on(self) -> None:
        """Between two steps of what takes long. Raises RunError where it is to end."""
        if self._over.is_set():
            raise RunError("the cluster is ended")

    def stop(self, limit: float = ENDS_WITHIN_S) -> None:
        """End it; nothing happens where it does not look. Raises RunError where it does not come back by then.

        It may be asked again: what it waits for may have ended meanwhile. A defect that it met is raised too, once,
        when it has ended.
        """
        self._over.set()
        if self._thread is not None:
            self._thread.join(limit)
            if self._thread.is_alive():
                raise RunError(f"the cluster's manager did not end within {limit:g} s")
            self._thread = None
        defect, self._defect = self._defect, None
        if defect is not None:
            raise defect

    def _go_on(self) -> None:
        while not self._over.wait(self._every):
            try:
                self._look()
            except RunError as error:
                self.tell(f"could not go on: {error}")
            except Exception as error:  # noqa: BLE001 - it looks on, and a failover comes; raised as it is ended
                self._defect = self._defect or error
                self.tell(f"met a defect: {type(error).__name__}: {error}")


class Line:
    """A way to one node from one place of the network, by a connection that is kept for as long as it answers."""

    def __init__(self, endpoint: Endpoint, limit: float) -> None:
        """No answer takes longer than `limit` seconds, nor does connecting."""
        self._endpoint = replace(endpoint, processes={}, others={})
        self._limit = limit
        self._connection: sql.Connection | None = None

    def rows(self, statement: str) -> list[sql.Row]:
        """The answer of the node. Raises SqlError; the next question is asked by a new connection then."""
        if self._connection is None:
            self._connection = sql.connect(self._endpoint, limit=self._limit)
        try:
            return self._connection.rows(statement)
        except sql.SqlError:
            self.close()
            raise

    def close(self) -> None:
        """Leave the node."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@contextmanager
def held(lock: threading.RLock, limit: float) -> Iterator[None]:
    """Within, nobody else changes the cluster. Raises RunError where somebody still does after so many seconds."""
    if not lock.acquire(timeout=max(limit, 0.0)):
        raise RunError("the cluster's manager was still changing it as the time was over")
    try:
        yield
    finally:
        lock.release()


class Patience:
    """How long each node has been silent.

    By the clock and not by how many answers it owes: one that was killed refuses at once, one that is cut off has each
    question wait, and the same setting is to be the same time for both.
    """

    def __init__(self, silent_for: float) -> None:
        """A node that has not answered for so many seconds, nor twice in a row, counts as dead."""
        self._silent_for = silent_for
        self._begun = time.monotonic()
        self._heard: dict[str, float] = {}
        self._missed: dict[str, int] = {}

    def told(self, node: str, *, answered: bool) -> bool:
        """Whether a node counts as alive after it was asked once more."""
        now = time.monotonic()
        if answered:
            self._heard[node] = now
        self._missed[node] = 0 if answered else self._missed.get(node, 0) + 1
        # Twice: whoever asks may have been kept from asking for as long.
        return self._missed[node] < 2 or now - self._heard.get(node, self._begun) < self._silent_for
