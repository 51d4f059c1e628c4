"""What looks after clusters did in the runs: alike in many of them but for nodes and seconds, so told of together."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator

from dyno.analysis.sentences import levels
from dyno.analysis.table import Table
from dyno.model.study import Study
from dyno.model.units import counted, format_duration

_NODE = re.compile(r"\bn\d+\b")
_SECONDS = re.compile(r"\b(\d+(?:\.\d+)?) s\b")
_LEFT_OPEN = "... s"
_MOST = 6
"""Of those of one cell; the rest is in the runs."""


def actions(study: Study, table: Table) -> Iterator[str]:
    """A sentence for what was done alike in the ok runs of a cell: in how many, and how long after the fault."""
    by_index = study.numbered()
    for cell in sorted({run.slot.cell for run in table.ok_runs}):
        runs = [run for run in table.ok_runs if run.slot.cell == cell]
        done: dict[str, dict[int, list[float]]] = {}
        took: dict[str, list[list[float]]] = {}
        for run in runs:
            for event in run.events:
                struck = run.faulted and run.faulted.at_ns
                since = [] if not struck or event.at_ns < struck else [(event.at_ns - struck) / 1e9]
                alike = _alike(event.text)
                done.setdefault(alike, {}).setdefault(run.run, []).extend(since)
                took.setdefault(alike, []).append([float(each) for each in _SECONDS.findall(event.text)])
        often = sorted(done.items(), key=lambda each: -len(each[1]))
        named = levels(study.telling(by_index[cell].levels))
        for text, by_run in often[:_MOST]:
            firsts = [min(times) for times in by_run.values() if times]
            when = (
                f", {format_duration(round(statistics.median(firsts), 3))} after the fault (median)" if firsts else ""
            )
            yield (
                f"The cluster's manager in {len(by_run)} of {counted(len(runs), 'run')}{when}: "
                f"{_with_seconds(text, took[text])}{f' ({named})' if named else ''}."
            )
        if len(often) > _MOST:
            more = len(often) - _MOST
            yield f"It did {more} other kinds of things{f' ({named})' if named else ''}: see `events` of run.json."


def _alike(text: str) -> str:
    return _SECONDS.sub(_LEFT_OPEN, _NODE.sub("a node", text))


def _with_seconds(text: str, took: list[list[float]]) -> str:
    """The text with the median and the range of each of its times: `took` has those of each time it was done."""
    first, *parts = text.split(_LEFT_OPEN)
    return first + "".join(
        f"{_in_all(times)}{part}" for times, part in zip(zip(*took, strict=True), parts, strict=True)
    )


def _in_all(seconds: tuple[float, ...]) -> str:
    middle, low, high = f"{statistics.median(seconds):.3g}", f"{min(seconds):.3g}", f"{max(seconds):.3g}"
    return f"{middle} s" if low == high else f"{middle} s (median; {low} to {high} s)"
