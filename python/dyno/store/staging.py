"""What a run leaves before it is committed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dyno.model.run import RunRecord


@dataclass(frozen=True)
class Staged:
    """A finished run that is not yet in the store. `logs` is a folder of text files."""

    record: RunRecord
    logs: Path
    intervals: pl.DataFrame | None = None
    samples: pl.DataFrame | None = None
    stacks: pl.DataFrame | None = None
    functions: pl.DataFrame | None = None
    counts: pl.DataFrame | None = None
    histogram_log: Path | None = None
    attempts: pl.DataFrame | None = None
    reads: pl.DataFrame | None = None
    answers: pl.DataFrame | None = None


def write(staged: Staged, folder: Path) -> None:
    """Write a run folder and sync every byte of it. `folder` must not exist."""
    folder.mkdir(parents=True)
    if staged.intervals is not None:
        staged.intervals.write_parquet(folder / "intervals.parquet")
    if staged.samples is not None:
        staged.samples.write_parquet(folder / "samples.parquet")
    if staged.stacks is not None:
        staged.stacks.write_parquet(folder / "stacks.parquet")
    if staged.functions is not None:
        staged.functions.write_parquet(folder / "functions.parquet")
    if staged.counts is not None:
        staged.counts.write_parquet(folder / "counts.parquet")
    if staged.attempts is not None:
        staged.attempts.write_parquet(folder / "attempts.parquet")
    if staged.reads is not None:
        staged.reads.write_parquet(folder / "reads.parquet")
    if staged.answers is not None:
        staged.answers.write_parquet(folder / "answers.parquet")
    if staged.histogram_log is not None:
        staged.histogram_log.rename(folder / "latency.hlog")
    logs = folder / "logs"
    logs.mkdir()
    if staged.logs.is_dir():
        for log in sorted(staged.logs.iterdir()):
            # An empty log says nothing that its absence does not, and each file costs a sync.
            if log.is_file() and log.stat().st_size:
                log.rename(logs / log.name)
    (folder / "run.json").write_text(staged.record.model_dump_json(indent=1) + "\n")
    for path in [*sorted(folder.rglob("*")), folder]:
        sync(path)


def sync(path: Path) -> None:
    """Make a file's bytes, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
