"""What TSBS's loaders and query runners write, read: as seen at version v0.0.0-20230921131859-37fced794d56."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyno.model.base import RunError
from dyno.workloads import foreign

TOOL = foreign.Tool("tsbs", r"(?i)panic|fatal|error|refused|no such")

_LOADED = re.compile(
    r"^loaded (?P<count>\d+) (?P<what>metrics|rows) in (?P<seconds>\S+?)sec with (?P<workers>\d+) workers "
    r"\(mean rate (?P<rate>\S+) (?:metrics|rows)/sec\)$",
    re.MULTILINE,
)
_HEAD = "time,per. metric/s,metric total,overall metric/s,per. row/s,row total,overall row/s"
_WALL = re.compile(r"^wall clock time: (\S+?)sec$", re.MULTILINE)
_LATENCIES = re.compile(
    r"^min:\s*(?P<min>\S+?)ms, med:\s*(?P<med>\S+?)ms, mean:\s*(?P<mean>\S+?)ms, max:\s*(?P<max>\S+?)ms, "
    r"stddev:\s*(?P<stddev>\S+?)ms, sum:\s*(?P<sum>\S+?)sec, count:\s*(?P<count>\d+)\s*$"
)
_QUANTILES = {"q50": "p50", "q95": "p95", "q99": "p99", "q999": "p999", "q100": "max"}
_ALL = "all_queries"


@dataclass(frozen=True)
class Loaded:
    """What a loader says of itself: `seconds` are those in which it wrote to its sockets, and nothing else."""

    rows: int
    metrics: int
    seconds: float
    workers: int
    reports: tuple[tuple[int, int], ...]
    """Rows so far by time of day in whole seconds, as it reported them."""


@dataclass(frozen=True)
class Queried:
    """What a query runner says of itself: times in ms, of the wall clock in s."""

    count: int
    seconds: float
    latency: dict[str, float]


def loaded(text: str) -> Loaded:
    """Of a loader's standard output. Raises RunError where it does not say that it loaded rows."""
    said = {found["what"]: found for found in _LOADED.finditer(text)}
    if "rows" not in said or "metrics" not in said:
        raise RunError("tsbs's loader does not say how many metrics and rows it loaded")
    row = said["rows"]
    return Loaded(
        rows=TOOL.count(row["count"], row[0]),
        metrics=TOOL.count(said["metrics"]["count"], said["metrics"][0]),
        seconds=TOOL.seconds(row["seconds"], row[0]),
        workers=TOOL.count(row["workers"], row[0]),
        reports=_reports(text),
    )


def _reports(text: str) -> tuple[tuple[int, int], ...]:
    reports = []
    for line in text.partition(_HEAD)[2].splitlines():
        fields = line.split(",")
        if len(fields) != 7 or "-" in fields:  # before its first row it has none to report
            continue
        # Totals are written as 1.234000E+05: Go's, which count to seven digits alone.
        total = fields[5].replace("E+", "e")
        reports.append((TOOL.count(fields[0], line), round(TOOL.figure(total, line))))
    return tuple(reports)


def queried(text: str, results: Path) -> Queried:
    """Of a query runner's standard output and of its file of results. Raises RunError where they say no whole run."""
    wall = _WALL.search(text)
    if wall is None:
        raise RunError("tsbs's query runner does not say how long it took")
    stated = _LATENCIES.match(_after(text, "all queries")) or _LATENCIES.match(_last_latencies(text))
    if stated is None:
        raise RunError("tsbs's query runner does not say how long its queries took")
    found = of_results(results)
    count = TOOL.count(stated["count"], stated[0])
    mean = TOOL.figure(stated["mean"], stated[0])
    return Queried(count, TOOL.seconds(wall[1], wall[0]), {**found, "mean": mean})


def _after(text: str, label: str) -> str:
    lines = text.splitlines()
    return next((lines[number + 1] for number, line in enumerate(lines[:-1]) if line.startswith(label)), "")


def _last_latencies(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.startswith("min:")), "")


def of_results(path: Path) -> dict[str, float]:
    """The quantiles of a query runner's file of results, in ms. Raises RunError where it is none."""
    totals = _read(path).get("Totals")
    quantiles = totals.get("overallQuantiles", {}).get(_ALL) if isinstance(totals, dict) else None
    if not isinstance(quantiles, dict):
        raise RunError(f"{path.name} of tsbs has no quantiles of all queries")
    found = {}
    for theirs, ours in _QUANTILES.items():
        value = quantiles.get(theirs)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1e9:
            raise RunError(f"{path.name} of tsbs has {value!r} as {theirs}, which is no time")
        found[ours] = float(value)
    return found


def seconds_of_results(path: Path) -> float:
    """How long a query runner took by its file of results, in s. Raises RunError."""
    value = _read(path).get("DurationMillis")
    if not isinstance(value, int) or not 0 < value < 10**12:
        raise RunError(f"{path.name} of tsbs has {value!r} as its duration")
    return value / 1000


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"tsbs left no results that can be read: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{path.name} of tsbs is no object")
    return found
