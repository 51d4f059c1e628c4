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
_SECONDS = re.compile(r"\b\d+(\.\d+)? s\b")
_MOST = 6
"""Of those of one cell; the rest is in the runs."""


def actions(study: Study, table: Table) -> Iterator[str]:
    """A sentence for what was done alike in the ok runs of a cell: in how many, and how long after the fault."""
    by_index = study.numbered()
    for cell in sorted({run.slot.cell for run in table.ok_runs}):
        runs = [run for run in table.ok_runs if run.slot.cell == cell]
        done: dict[str, dict[int, list[float]]] = {}
        for run in runs:
            for event in run.events:
                struck = run.faulted and run.faulted.at_ns
                since = [] if not struck or event.at_ns < struck else [(event.at_ns - struck) / 1e9]
                done.setdefault(_alike(event.text), {}).setdefault(run.run, []).extend(since)
        often = sorted(done.items(), key=lambda each: -len(each[1]))
        named = levels(study.telling(by_index[cell].levels))
        for text, by_run in often[:_MOST]:
            firsts = [min(times) for times in by_run.values() if times]
            when = (
                f", {format_duration(round(statistics.median(firsts), 3))} after the fault (median)" if firsts else ""
            )
            yield (
                f"The cluster's manager in {len(by_run)} of {counted(len(runs), 'run')}{when}: {text}"
                f"{f' ({named})' if named else ''}."
            )
        if len(often) > _MOST:
            more = len(often) - _MOST
            yield f"It did {more} other kinds of things{f' ({named})' if named else ''}: see `events` of run.json."


def _alike(text: str) -> str:
    return _SECONDS.sub("... s", _NODE.sub("a node", text))
