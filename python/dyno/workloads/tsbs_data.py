"""Rows of TSBS's generator: made once for each set of parameters, kept compressed in the user's cache, streamed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dyno.hosts import tools
from dyno.model.base import RunError
from dyno.workloads.base import Runner

FORMATS: Mapping[str, str] = {"questdb": "ilp", "cratedb": "cratedb", "timescaledb": "timescaledb"}
"""TSBS's formats, and how `dyno-core pack` calls them."""

LEAST_FREE = 2 << 30
"""Bytes of the cache's file system that are to stay free while rows are made."""


@dataclass(frozen=True)
class Rows:
    """From what rows are made. `start` and `end` are in UTC, `interval` in s; a host has a row a table and interval."""

    use_case: str
    seed: int
    scale: int
    start: datetime
    end: datetime
    interval: float
    format: str

    def words(self) -> list[str]:
        """What the generator is told."""
        return [
            f"--use-case={self.use_case}",
            f"--seed={self.seed}",
            f"--scale={self.scale}",
            f"--timestamp-start={in_utc(self.start)}",
            f"--timestamp-end={in_utc(self.end)}",
            f"--log-interval={self.interval:g}s",
            f"--format={self.format}",
        ]

    def key(self) -> dict[str, Any]:
        """All of it, and the program that makes them."""
        times = {"start": in_utc(self.start), "end": in_utc(self.end)}
        return {**asdict(self), **times, "tsbs": tools.TSBS.version}

    def folder(self) -> Path:
        """Where they are or would be."""
        digest = hashlib.sha256(json.dumps(self.key(), sort_keys=True).encode()).hexdigest()
        return tools.cache_path("data", "tsbs", f"{self.format}-{digest[:16]}")

    def packed(self) -> dict[str, Any] | None:
        """What is known of them; None where they were not made yet."""
        try:
            return dict(json.loads((self.folder() / "manifest.json").read_text()))
        except (OSError, ValueError):
            return None

    def known(self) -> dict[str, Any]:
        """What is known of them since they were made. Raises RunError where that is gone."""
        found = self.packed()
        if found is None:
            raise RunError(
                f"{self.folder()}: what is known of the rows that were loaded first is there no more, so that nobody "
                "can tell whether others are lost; run the study again, which makes them anew, and keep the folder "
                "until it ends"
            )
        return found

    def make(self, runner: Runner) -> dict[str, Any]:
        """Make them where they are not there; what is known of them. Raises RunError."""
        folder = self.folder()
        folder.parent.mkdir(parents=True, exist_ok=True)
        runner.logs.mkdir(parents=True, exist_ok=True)
        # It looks for itself whether they are there and whole, and puts them in place at once.
        words = [runner.core, "pack", "--out", str(folder), "--format", FORMATS[self.format]]
        words += ["--about", json.dumps(self.key(), sort_keys=True), "--least-free", str(LEAST_FREE)]
        words += ["--", str(tools.TSBS.program("tsbs_generate_data")), *self.words()]
        status = runner.execute(words, kept_as=f"tsbs-generate-{self.format}")
        if status != 0:
            raise RunError(f"dyno-core pack ended with status {status}: {runner.complaint or 'it said nothing'}")
        found = self.packed()
        if found is None:
            raise RunError(f"dyno-core pack left no rows in {folder}")
        return found


def in_utc(moment: datetime) -> str:
    """As TSBS reads times."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def window_end(rows: Rows) -> str:
    """The end of the time that queries are asked of: a second later, since their generator leaves out the end."""
    return in_utc(rows.end + timedelta(seconds=1))
