"""Progress of a running study: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dyno.design import State
from dyno.lab import Listener
from dyno.model import responses
from dyno.model.findings import format_quantity, format_share
from dyno.model.looks import looks
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.study import Cell, Study
from dyno.model.units import format_duration, format_percent

_STYLES = {Outcome.OK: "green", Outcome.FAILED: "red", Outcome.INVALID: "yellow", Outcome.PARTIAL: "yellow"}
_MOST_CELLS = 20


def listener(study: Study, stream: TextIO = sys.stderr) -> Listener:
    """What suits the stream."""
    return LiveProgress(study, Console(file=stream)) if stream.isatty() else PlainProgress(study, stream)


class PlainProgress(Listener):
    """One line a run, for logs and pipes."""

    def __init__(self, study: Study, stream: TextIO) -> None:
        self._study = study
        self._stream = stream
        self._unit = responses.lookup(study.replicates.of).unit

    def run_ended(self, record: RunRecord, state: State, seconds_left: float | None) -> None:
        """The run, how it ended, what it measured, and how wide the widest interval is."""
        cell = self._study.cells[record.slot.cell].name
        value = record.responses.get(self._study.replicates.of)
        said = (
            record.outcome.value if value is None else f"{record.outcome.value} {format_quantity(value)} {self._unit}"
        )
        why = f" ({record.step}: {record.cause})" if record.cause else ""
        reached = "" if state.reached is None else f", intervals within {format_share(state.reached)}"
        left = _left(seconds_left)
        stage = "" if state.stage is None else f"stage {record.slot.stage} "
        self._say(f"run {record.run} {stage}block {record.slot.block + 1} [{cell}] {said}{why}{reached}{left}")

    def ended(self, reason: str) -> None:
        """Why."""
        self._say(f"ended: {reason}")

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class LiveProgress(Listener):
    """The cells with what was measured so far, the present run, and how far the widest interval is from its aim."""

    def __init__(self, study: Study, console: Console) -> None:
        self._study = study
        self._response = responses.lookup(study.replicates.of)
        self._values: dict[int, list[float]] = {cell.index: [] for cell in study.cells}
        self._bad: dict[int, int] = dict.fromkeys(self._values, 0)
        self._state = State(block=0, left_in_block=len(study.cells), runs=0, reached=None)
        self._left: float | None = None
        self._now = "preparing"
        self._pace = ""
        self._cell: int | None = None
        self._stage: int | None = None
        self._begun = time.monotonic()
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4, transient=True)

    def run_started(self, run: int, slot: Slot, cell: Cell) -> None:
        """Show it."""
        if not self._live.is_started:
            self._live.start()
        if slot.stage != self._stage:  # a mean over both stages would be of neither
            self._stage, self._values = slot.stage, {index: [] for index in self._values}
        self._cell = cell.index
        self._now = f"run {run}: {cell.name}" + (f", attempt {slot.attempt + 1}" if slot.attempt else "")
        self._pace = ""

    def driving(self, throughput: float, phase: str) -> None:
        """Show the driver's latest interval."""
        self._pace = f", {phase} at {format_quantity(throughput)} ops/s"

    def run_ended(self, record: RunRecord, state: State, seconds_left: float | None) -> None:
        """Take it into the table; one that went wrong also stays above it."""
        value = record.responses.get(self._study.replicates.of)
        if record.outcome is Outcome.OK and value is not None:
            self._values[record.slot.cell].append(value)
        else:
            self._bad[record.slot.cell] += 1
            said = f"run {record.run} {record.outcome.value} in {record.step}: {record.cause}"
            self._live.console.print(Text(said, style=_STYLES[record.outcome]))
        self._state, self._left = state, seconds_left

    def ended(self, reason: str) -> None:
        """Close the live table."""
        self.close()
        self._live.console.print(Text(f"ended: {reason}", style="dim"))

    def close(self) -> None:
        """Give the terminal back, cursor and all."""
        self._live.stop()

    def _where(self) -> str:
        when, block = looks(self._study), self._state.block + 1
        if self._state.stage is not None:
            return f"stage {self._state.stage}, block {block}"
        return f"block {block} (of {when.first} to {when.last})"

    def _render(self) -> RenderableType:
        rule = self._study.replicates
        table = Table(box=None, padding=(0, 2, 0, 0), title=None)
        pilot = "pilot of " if self._study.pilot else ""
        table.add_column(f"{pilot}{self._study.study} ({self._study.scale})", style="bold")
        table.add_column("runs", justify="right")
        table.add_column(f"mean {self._response.unit}", justify="right")
        table.add_column("not ok", justify="right")
        for cell in self._study.cells[:_MOST_CELLS]:
            values = self._values[cell.index]
            mean = format_quantity(sum(values) / len(values)) if values else "-"
            style = "cyan" if cell.index == self._cell else ""
            bad = str(self._bad[cell.index]) if self._bad[cell.index] else ""
            table.add_row(Text(cell.name, style=style), str(len(values)), mean, Text(bad, style="red"))
        if len(self._study.cells) > _MOST_CELLS:
            table.add_row(Text(f"and {len(self._study.cells) - _MOST_CELLS} more cells", style="dim"))
        reached = "not known yet" if self._state.reached is None else format_share(self._state.reached)
        left = _left(self._left)
        width = Text(
            f"{self._where()}, widest interval {reached}, wanted {format_percent(rule.precision)}, "
            f"{format_duration(time.monotonic() - self._begun)} gone{left}",
            style="dim",
        )
        done = rule.precision / self._state.reached if self._state.reached else 0.0
        return Group(
            table, Text(self._now, style="cyan"), ProgressBar(total=1, completed=min(done, 1), width=40), width
        )


def _left(seconds: float | None) -> str:
    """Of the budget, which a block that takes longer than was thought goes beyond."""
    return f", at most {format_duration(seconds)} left" if seconds else ""
