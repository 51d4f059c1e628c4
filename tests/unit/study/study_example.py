"""A small study and the kinds it names: what the tests of this folder change a line of, and look at the message."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dyno.model.base import Frozen
from dyno.model.study import Kinds
from dyno.model.units import Duration, PositiveDuration, Share, Size

EXAMPLE = """\
study: sqlite-journal
question: Which journal is faster?
factors:
  journal: [delete, wal]
  threads: [1, 4]
system:
  kind: sqlite
  config:
    journal_mode: ${journal}
    cache_size: 64 MiB
workload:
  kind: ycsb
  mix: a
  threads: ${threads}
replicates: {min: 3, max: 5}
scales:
  smoke:
    workload.records: 10
    replicates: {min: 2}
"""


class Log(Frozen):
    size: Annotated[Size, Field(le=1 << 40)] = 0
    level: Literal["low", "high"] = "low"


class Sqlite(Frozen):
    journal_mode: Annotated[Literal["delete", "wal", "off"], Field(description="how commits are made whole")] = "delete"
    cache_size: Size | None = None
    busy_timeout: Duration = 10.0
    exclusive: bool = False
    log: Log = Log()
    switch: Literal["on", "off", "true"] = "off"


class Ycsb(Frozen):
    mix: Annotated[Literal["a", "b", "c"], Field(description="a core workload")]
    records: Annotated[int, Field(ge=1, le=10**12)] = 1000
    operations: int | None = None
    duration: PositiveDuration | None = None
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    theta: Annotated[float, Field(gt=0)] = 0.99
    name: str = "usertable"
    tables: tuple[str, ...] = ()
    proportions: dict[str, Share] | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Ycsb:
        if self.operations is not None and self.duration is not None:
            raise ValueError("give operations or duration, not both")
        return self


class Perf(Frozen):
    events: tuple[str, ...] = ("cycles",)


class NoOptions(Frozen):
    pass


KINDS = Kinds(
    systems={"sqlite": Sqlite, "null": NoOptions},
    workloads={"ycsb": Ycsb, "null": NoOptions},
    observers={"machine": NoOptions, "perf-stat": Perf},
)


def changed(lines: dict[int, str]) -> str:
    """The example with these lines (from 1) in place of its own; an empty text removes a line."""
    own = EXAMPLE.splitlines()
    return "".join(f"{line}\n" for n, old in enumerate(own, start=1) for line in [lines.get(n, old)] if line)


def written(folder: Path, text: str | bytes, name: str = "study.yaml") -> Path:
    """The text as a file."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


Lines = dict[int, str]
