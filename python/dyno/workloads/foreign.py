"""What the workloads that tools of others carry out have in common: running one, and not taking its word for it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dyno import sql
from dyno.hosts.gist import gist
from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads.base import Runner

_LEAST_REACHED = 0.99
_FIGURE = re.compile(r"[0-9]{1,15}(\.[0-9]+)?([eE]-?[0-9]{1,2})?")  # as C, Go and Java write what is finite
_LONGEST_S = 1e9  # a run that says it took longer than thirty years is damaged
_SHARES = ("read", "update", "insert", "scan", "read_modify_write")


@dataclass(frozen=True)
class Tool:
    """A program, and by what pattern a line of its output is known to say what went wrong."""

    name: str
    complaint: str = ""
    """Where it is left out, the first line that looks like an error and the last are shown."""
    lines: int = 1
    """How many such lines say all of it."""

    def execute(self, runner: Runner, phase: str, words: Sequence[str]) -> str:
        """Run it to its end; what it wrote to its standard output. Raises RunError where its status is not 0."""
        status = runner.execute(words, kept_as=self._kept_as(phase))
        if status != 0:
            raise RunError(f"{self.name} {phase} ended with status {status}: {self.last_words(runner, phase)}")
        return self.said(runner, phase)

    def said(self, runner: Runner, phase: str) -> str:
        """What it wrote to its standard output when it was run."""
        return (runner.logs / f"{self._kept_as(phase)}.stdout").read_text(errors="replace")

    def last_words(self, runner: Runner, phase: str) -> str:
        """What went wrong, in its own words: the first that complain, else the gist of them."""
        paths = (runner.logs / f"{self._kept_as(phase)}.{stream}" for stream in ("stderr", "stdout"))
        texts = (path.read_text(errors="replace") for path in paths if path.exists())
        said = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
        complaints = [line for line in said if self.complaint and re.search(self.complaint, line)]
        return " / ".join(complaints[: self.lines]) or runner.complaint or gist("\n".join(said)) or "it said nothing"

    def refuse_failed(self, done: int, failed: int, max_errors: float, told: str) -> None:
        """Raise InvalidRun where more operations failed than may, or all of them did."""
        if done <= 0:
            raise InvalidRun(f"{self.name} ended without a single successful operation: {told}")
        if failed > max_errors * (done + failed):
            raise InvalidRun(f"{failed} of {done + failed} operations failed ({told}); allowed is {max_errors:.3%}")

    def figure(self, text: str, line: str, most: float = 1e15) -> float:
        """A figure of its output. Raises RunError, naming the line, where it is none that a run could have."""
        if not _FIGURE.fullmatch(text) or float(text) > most:
            raise RunError(f"{self.name}'s output has {text!r} where a figure belongs: {line.strip()}")
        return float(text)

    def seconds(self, text: str, line: str) -> float:
        """The same of a time."""
        return self.figure(text, line, _LONGEST_S)

    def count(self, text: str, line: str) -> int:
        """The same of what is counted in whole numbers."""
        value = self.figure(text, line)
        if not value.is_integer():
            raise RunError(f"{self.name}'s output has {text!r} where a count belongs: {line.strip()}")
        return int(value)

    def _kept_as(self, phase: str) -> str:
        return f"{self.name.lower()}-{phase}"


def refuse_slow(rate: float, target: int | None) -> None:
    """Raise InvalidRun where the operations a second that were asked for, if any were, were not reached."""
    if target is not None and rate < _LEAST_REACHED * target:
        raise InvalidRun(f"the rate was not reached: {rate:.1f} of {target} operations a second (target)")


def installed(program: str, package: str) -> str:
    """The path of a program. Raises RunError, naming Debian's package."""
    found = shutil.which(program)
    if found is None:
        raise RunError(f"{program} not found on the PATH: apt-get install {package}")
    return found


# YCSB and its like


def core_workload(mix: Mapping[str, float], chooser: str, insert_order: str = "hashed") -> dict[str, Any]:
    """The properties of YCSB's core workloads that a mix and a choice of keys stand for."""
    shares = {f"{name.replace('_', '')}proportion": mix.get(name, 0.0) for name in _SHARES}
    return {**shares, "requestdistribution": chooser, "insertorder": insert_order}


def in_words(properties: Mapping[str, Any]) -> list[str]:
    """Properties as they stand on a command line."""
    return [word for name, value in properties.items() for word in ("-p", f"{name}={value}")]


def stored_rows(endpoint: Endpoint) -> int:
    """How many rows their one table has."""
    with sql.connect(endpoint, limit=600.0) as connection:
        return int(connection.value("SELECT count(*) FROM usertable"))
