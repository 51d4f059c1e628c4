"""Bottlenecks that are planted on purpose, on real servers: each is what a verdict must find by itself.

Each is a study of `studies/bottlenecks`, which plants it by what any study can say. Only neighbours that keep a CPU
busy no study brings, since they are none of its business: they are started here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dyno.analysis import usages
from dyno.analysis.bottlenecks import judge
from dyno.hosts import UndoJournal
from dyno.hosts.local import LocalHost, core_binary
from dyno.lab import Interrupt, Lab, Listener, Rooms
from dyno.model.findings import Bottleneck
from dyno.model.run import Outcome, RunRecord
from dyno.model.saturation import DRIVER_IS_THE_LIMIT
from dyno.model.study import Cell, Study
from dyno.model.usage import Usage
from dyno.store import Results, new_results
from dyno.study import load
from tests.making import scratch_in

STUDIES = Path(__file__).parents[1] / "studies" / "bottlenecks"

_NEIGHBOURS = 24


@dataclass(frozen=True)
class Planted:
    """A bottleneck, and as which it must be named.

    `needs` are those of `dyno doctor`'s lines that it takes besides root, `neighbours_on` is a CPU that others want all
    the time, `seconds` suffice to name it.
    """

    name: str
    expected: Bottleneck
    needs: tuple[str, ...] = ()
    neighbours_on: int | None = None
    seconds: float = 4

    @property
    def file(self) -> Path:
        """The study that plants it."""
        return STUDIES / f"{self.name}.yaml"

    def is_in(self, cell: Cell) -> bool:
        """Whether it is planted there: a study of doses has cells without, which are to be compared with."""
        return cell.levels.get("intervention", "1").rpartition(" ")[2] not in ("none", "0")


ALL = (
    Planted("cpu-quota", "cpu-quota", needs=("CPU and memory limits",)),
    Planted("bandwidth-limit", "disk-bandwidth", needs=("disk limits", "loop devices")),
    Planted("operations-limit", "disk-operations", needs=("disk limits", "loop devices")),
    Planted("slow-sync", "disk-sync", seconds=2),  # of five cells
    Planted("hot-row", "locks"),
    Planted("memory-limit", "memory", needs=("CPU and memory limits", "loop devices")),
    Planted("starved-driver", "driver", neighbours_on=1),
    Planted("server-sleep", "unexplained"),
)
"""Each must be named rightly."""


def carry_out(planted: Planted, root: Path, *, runs: int, seconds: float, core: str | None = None) -> Results:
    """Run its study below `root`, so many runs of each cell, and put back all that was changed."""
    rooms = Rooms.open()
    overrides = {"replicates.min": runs, "replicates.max": runs, "workload.duration": f"{seconds} s"}
    study = load(planted.file, rooms.kinds(), overrides=[f"{key}={value}" for key, value in overrides.items()])
    content = planted.file.read_bytes()
    results = new_results(root / "results", study, content, {"format": 1}, scratch_in(root / "results"))
    results.folder.chmod(0o711)  # servers run as users of their own
    with UndoJournal() as journal:
        host = LocalHost(journal)
        results.lock()
        try:
            with _neighbours(host, planted.neighbours_on, root):
                Lab(
                    results,
                    host,
                    rooms,
                    core=core or core_binary(),
                    workspace=results.folder / f".dyno-{journal.token}",
                    interrupt=Interrupt(),
                    listener=Listener(),
                ).run()
        finally:
            results.unlock()
    return Results(results.folder)


@contextlib.contextmanager
def _neighbours(host: LocalHost, cpu: int | None, logs: Path) -> Iterator[None]:
    """Others that want a CPU all the time; none without one."""
    words = ["taskset", "--cpu-list", str(cpu), sys.executable, "-I", "-S", "-c", "while True: pass"]
    of_them = range(0 if cpu is None else _NEIGHBOURS)
    processes = [host.start(words, log=logs / f"neighbour-{number}") for number in of_them]
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def named(planted: Planted, results: Results) -> list[tuple[RunRecord, str]]:
    """Each run in which it is planted with what that is named by itself; what went wrong of one that is neither ok nor
    the driver's.
    """
    used = usages(results.runs, results.all_samples(), results.all_intervals())
    study = results.study
    runs = [run for run in results.runs if planted.is_in(study.cells[run.slot.cell])]
    return [(run, _name(study, run, used)) for run in runs]


def _name(study: Study, run: RunRecord, used: dict[int, Usage]) -> str:
    if run.outcome is Outcome.INVALID and str(run.cause).startswith(DRIVER_IS_THE_LIMIT):
        return "driver"
    if run.outcome is not Outcome.OK:
        return f"{run.outcome.value}: {run.cause}"
    judged = judge(study.cells[run.slot.cell], run, used[run.run]) if run.run in used else None
    return "not observed" if judged is None else judged.kind
