"""What a server counts of itself, told by HTTP in the text format of Prometheus."""

from __future__ import annotations

import re
from http.client import HTTPConnection, HTTPException

from dyno.model.counters import Counters
from dyno.sql.base import SqlError

_KIND = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*) (\S+)(?: \d+)?$", re.MULTILINE)


class Metrics:
    """One connection, which stays open between looks."""

    def __init__(self, host: str, port: int, *, limit: float, prefix: str) -> None:
        """`prefix` is what all names begin with, and is left out of them."""
        self._http = HTTPConnection(host, port, timeout=limit)
        self._prefix = prefix

    def read(self) -> Counters:
        """As they are now. Raises SqlError."""
        try:
            self._http.request("GET", "/metrics")
            answer = self._http.getresponse()
            text = answer.read().decode(errors="replace")
        except (HTTPException, OSError) as error:
            self._http.close()
            raise SqlError(f"no metrics: {error or type(error).__name__}") from error
        if answer.status != 200:
            raise SqlError(f"no metrics: HTTP status {answer.status}")
        return counters_in(text, self._prefix)

    def read_once(self) -> Counters:
        """Look, and let go of the connection. Raises SqlError."""
        try:
            return self.read()
        finally:
            self.close()

    def close(self) -> None:
        """Let go of it."""
        self._http.close()


def counters_in(text: str, prefix: str) -> Counters:
    """What a page of metrics says; those with labels are left out, and what has no type goes up and down."""
    kinds = dict(_KIND.findall(text))
    grown: dict[str, float] = {}
    now: dict[str, float] = {}
    for name, told in _LINE.findall(text):
        try:
            value = float(told)
        except ValueError:
            continue
        if value != value or value in (float("inf"), float("-inf")):
            continue
        kind = kinds.get(name) or kinds.get(name.removesuffix("_total"))
        (grown if kind == "counter" else now)[name.removeprefix(prefix)] = value
    return Counters(grown, now)
