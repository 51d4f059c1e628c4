"""PostgreSQL by its makers' own client, within a limit that holds whatever the server does."""

from __future__ import annotations

import time
import traceback
from collections.abc import Generator
from typing import Any

import psycopg

from dyno.sql.base import Connection, SqlError, in_words

_FOR_ITS_OWN_WORD_S = 1.0
"""A server that is alive says by itself that a statement took too long, and what it was about."""


class _Within(psycopg.Connection[Any]):
    """The server's own limit of a statement is none where its process stands still."""

    limit_s = 60.0

    def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
        """As it does, for a time."""
        return super().wait(self._for_a_time(gen), *arguments, **named)

    def _for_a_time(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """It is resumed ten times a second even if nothing arrives. Raises OperationalError when the time is over."""
        deadline = time.monotonic() + self.limit_s
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > deadline:
                    self.close()  # what it was asked is still to be answered
                    raise psycopg.OperationalError(f"no answer within {self.limit_s:g} s")
                wanted = steps.send(ready)
        except StopIteration as ended:
            return ended.value


def connect(settings: dict[str, Any], limit: float) -> Connection:
    """No silence lasts much longer than `limit` seconds, and the server ends a statement that does. Raises SqlError."""
    if "socket" in settings:
        # libpq makes the file's name of the folder and the port.
        folder, _, name = str(settings["socket"]).rpartition("/")
        host, port = folder, int(name.rpartition(".")[2])
    else:
        host, port = settings["host"], settings["port"]
    try:
        opened = _Within.connect(
            host=host,
            port=port,
            user=settings["user"],
            password=settings.get("password", ""),
            dbname=settings["database"],
            connect_timeout=max(2, round(limit)),  # libpq takes no fractions, and reads 1 as 2
            options=f"-c statement_timeout={round(limit * 1000)}",
            autocommit=True,
            prepare_threshold=None,  # else a statement asked for the sixth time is another one, whose plan is kept
        )
    except (psycopg.Error, OSError) as error:
        # They hold what failed in a circle, and with it a connection: a server would wait for it while it shuts down.
        traceback.clear_frames(error.__traceback__)
        raise SqlError(in_words(error)) from error
    opened.limit_s = limit + _FOR_ITS_OWN_WORD_S
    return Connection(opened.close, opened.cursor, psycopg.Error, buffered=True)
