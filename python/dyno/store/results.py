"""A results folder: made once, added to run by run, read by analysis and report and by whoever wants the tables."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from dyno.model.base import UserError
from dyno.model.run import RUN_FORMAT, Outcome, RunRecord
from dyno.model.selfcheck import SELFCHECK_FORMAT, Selfcheck
from dyno.model.study import PLAN_FORMAT, Study
from dyno.store import staging
from dyno.store.staging import Staged

PILOTS = "pilots"
"""Where a study's pilots are: no results folder of the study itself, so never taken for the latest of them."""

_INTERVALS = "intervals.parquet"
_SAMPLES = "samples.parquet"
_STACKS = "stacks.parquet"
_FUNCTIONS = "functions.parquet"
_COUNTS = "counts.parquet"
_ANSWERS = "answers.parquet"
_SELFCHECK = "selfcheck.json"


class StoreError(UserError):
    """A results folder cannot be read or written; names the folder or file."""


class StoreFull(StoreError):
    """The file system of the results has no room."""


class Results:
    """One results folder. Reading needs no lock; `lock` is for the one dyno that adds to it."""

    def __init__(self, folder: Path) -> None:
        """Open a folder. Raises StoreError where it is none."""
        self.folder = folder
        if not (folder / "plan.json").is_file():
            raise StoreError(f"{folder}: {_what_it_is(folder)}")
        self._lock: int | None = None

    @cached_property
    def study(self) -> Study:
        """The study as it was planned. Raises StoreError."""
        path = self.folder / "plan.json"
        data = _read_json(path)
        _refuse_format(path, data, PLAN_FORMAT)
        try:
            return Study.model_validate(data)
        except ValidationError as error:
            raise StoreError(f"{path}: {_first(error)}") from error

    @cached_property
    def study_yaml(self) -> str:
        """The study file, as the user wrote it."""
        return _read_text(self.folder / "study.yaml")

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The machine, as it was when the study began."""
        return _read_json(self.folder / "environment.json")

    @cached_property
    def selfcheck(self) -> Selfcheck | None:
        """What the instrument had found out about itself before; None where nothing was kept. Raises StoreError."""
        path = self.folder / _SELFCHECK
        if not path.exists():
            return None
        data = _read_json(path)
        _refuse_format(path, data, SELFCHECK_FORMAT)
        try:
            return Selfcheck.model_validate(data)
        except ValidationError as error:
            raise StoreError(f"{path}: {_first(error)}") from error

    @cached_property
    def runs(self) -> Sequence[RunRecord]:
        """Every committed run, in order of execution. Raises StoreError where one cannot be read."""
        with _kept_for_good():
            records = tuple(self._record(name) for name in self._names())
        filled: dict[tuple[int, int], int] = {}
        for record in records:
            slot = (record.slot.cell, record.slot.block)
            if record.slot.cell >= len(self.study.cells):
                raise StoreError(
                    f"{self._run_folder(record.run)}: is of cell {record.slot.cell}, which the plan has not"
                )
            if record.pilot != self.study.pilot:
                raise StoreError(f"{self._run_folder(record.run)}: a pilot's runs and a study's are not of one folder")
            if record.outcome is Outcome.OK and filled.setdefault(slot, record.run) != record.run:
                raise StoreError(
                    f"{self._run_folder(record.run)}: fills the same place in the design as run {filled[slot]}"
                )
        return records

    @property
    def ended(self) -> str | None:
        """Why the study ended; None where it has not."""
        last = self.events()[-1:]
        return str(last[0].get("reason")) if last and last[0]["event"] == "ended" else None

    def events(self) -> list[dict[str, Any]]:
        """What happened, in order; a last line that is torn is left out."""
        events = []
        path = self.folder / "events.jsonl"
        lines = _read_text(path).splitlines() if path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                event = json.loads(line)
            except ValueError as error:
                if number < len(lines):
                    raise StoreError(f"{path}:{number}: not JSON: {error}") from error
                continue
            if not isinstance(event, dict) or "event" not in event:
                raise StoreError(f"{path}:{number}: not an event")
            events.append(event)
        return events

    def intervals(self, run: int) -> pl.DataFrame:
        """The intervals of a run; empty where it has none."""
        return self._table(run, _INTERVALS)

    def samples(self, run: int) -> pl.DataFrame:
        """The samples of a run; empty where it has none."""
        return self._table(run, _SAMPLES)

    def table(self) -> pl.DataFrame:
        """One row a run: its number, cell, block, attempt, outcome, cause, times, each factor and each response."""
        rows = [
            {
                "run": record.run,
                **record.slot.model_dump(),
                "outcome": record.outcome.value,
                "step": record.step.value if record.step else None,
                "cause": record.cause,
                "started_ns": record.started_ns,
                "ended_ns": record.ended_ns,
                **{f"factor.{name}": level for name, level in record.levels.items()},
                **record.responses,
            }
            for record in self.runs
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def all_intervals(self) -> pl.LazyFrame:
        """The intervals of all runs, with the run's number in `run`."""
        return self._scan(_INTERVALS)

    def all_samples(self) -> pl.LazyFrame:
        """The samples of all runs, with the run's number in `run`."""
        return self._scan(_SAMPLES)

    def all_stacks(self) -> pl.LazyFrame:
        """The call stacks of all runs, with the run's number in `run`; of no columns where none were taken."""
        return self._scan(_STACKS)

    def all_functions(self) -> pl.LazyFrame:
        """Instructions of each function in all runs, with the run in `run`; of no columns where none were counted."""
        return self._scan(_FUNCTIONS)

    def all_counts(self) -> pl.LazyFrame:
        """What was counted of transactions in all runs, with the run in `run`; of no columns where nothing was."""
        return self._scan(_COUNTS)

    def all_answers(self) -> pl.LazyFrame:
        """What stores answered in all runs, with the run's number in `run`; of no columns where nothing was kept."""
        return self._scan(_ANSWERS)

    def lock(self) -> None:
        """Make this the only dyno that adds to the folder. Raises StoreError where another does."""
        path = self.folder / "events.jsonl"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise StoreError(f"{self.folder}: another dyno is running this study; wait for it or end it") from None
        self._lock = handle
        self._mend_torn_line()

    def discard(self) -> None:
        """Remove a folder in which nothing was run, and the study's where it was its only one."""
        shutil.rmtree(self.folder)
        with contextlib.suppress(OSError):
            self.folder.parent.rmdir()

    def unlock(self) -> None:
        """Give the folder up."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def event(self, event: str, **what: Any) -> None:
        """Add a line to events.jsonl. Raises StoreError."""
        assert self._lock is not None, "only the dyno that holds the folder adds to it"
        line = json.dumps({"time_ns": time.time_ns(), "event": event, **what}).encode() + b"\n"
        path = self.folder / "events.jsonl"
        before = os.fstat(self._lock).st_size
        try:
            written = os.write(self._lock, line)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise (StoreFull if full else StoreError)(f"{path}: {error.strerror}") from error
        if written < len(line):
            # What a nearly full disk took of it would spoil the lines that come later.
            os.ftruncate(self._lock, before)
            raise StoreFull(f"{path}: {os.strerror(errno.ENOSPC)}")

    def commit(self, staged: Staged, workspace: Path) -> Path:
        """Add a run: when this returns the run exists, and before it does not.

        `workspace` is a folder on the same file system that goes when dyno ends. Raises StoreError.
        """
        name = f"{staged.record.run:04d}"
        target = self.folder / "runs" / name
        try:
            if target.exists():
                raise StoreError(f"{target}: this run exists already; nothing was overwritten")
            staging.write(staged, workspace / name)
            (workspace / name).rename(target)
            staging.sync(target.parent)
        except (OSError, pl.exceptions.PolarsError) as error:
            # Polars tells of a full disk in words alone.
            full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
            shutil.rmtree(workspace / name, ignore_errors=True)
            raise (StoreFull if full else StoreError)(f"{target}: cannot commit the run: {error}") from error
        return target

    def _names(self) -> list[int]:
        folder = self.folder / "runs"
        try:
            return sorted(
                int(entry.name)
                for entry in folder.iterdir()
                if entry.name.isascii() and entry.name.isdigit() and entry.name == f"{int(entry.name):04d}"
            )
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}") from error

    def _run_folder(self, run: int) -> Path:
        return self.folder / "runs" / f"{run:04d}"

    def _record(self, run: int) -> RunRecord:
        path = self._run_folder(run) / "run.json"
        try:
            with path.open("rb", buffering=0) as file:  # thousands of small files show what a buffer costs
                record = RunRecord.model_validate_json(file.read())
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from error
        except ValidationError as error:
            _refuse_format(path, _read_json(path), RUN_FORMAT)
            raise StoreError(f"{path}: {_first(error)}") from error
        _refuse_format(path, {"format": record.format}, RUN_FORMAT)
        if record.run != run:
            # A copied or renamed folder would otherwise be a second run of the same measurement.
            raise StoreError(f"{path}: is run {record.run}, in the folder of run {run}")
        return record

    def _table(self, run: int, name: str) -> pl.DataFrame:
        path = self._run_folder(run) / name
        if not path.exists():
            return pl.DataFrame()
        try:
            return pl.read_parquet(path, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: {error}") from error

    def _scan(self, name: str) -> pl.LazyFrame:
        paths = {str(path): run for run in self._names() if (path := self._run_folder(run) / name).exists()}
        # Folders of an earlier dyno lack the columns that came later. Files of the same columns are one scan: were it
        # one a run, each would have a thread of its own to open its file.
        alike: dict[tuple[tuple[str, pl.DataType], ...], list[str]] = {}
        for each in paths:
            alike.setdefault(tuple(pl.scan_parquet(each, glob=False).collect_schema().items()), []).append(each)
        frames = [
            pl.scan_parquet(same, include_file_paths="run", glob=False).with_columns(
                pl.col("run").replace_strict(paths, return_dtype=pl.Int32)
            )
            for same in alike.values()
        ]
        return pl.concat(frames, how="diagonal") if frames else pl.LazyFrame()

    def _mend_torn_line(self) -> None:
        """A line cut short by a crash is closed, so that the next one stands on its own."""
        path = self.folder / "events.jsonl"
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            whole = data.rfind(b"\n") + 1
            os.truncate(path, whole)


def new_results(
    root: Path,
    study: Study,
    study_yaml: bytes,
    environment: dict[str, Any],
    scratch: Path,
    published: Mapping[str, bytes] | None = None,
    selfcheck: Selfcheck | None = None,
) -> Results:
    """Make a results folder under `root`/<study>/, named by the present time; a pilot's one folder deeper.

    Raises StoreError.

    `published` are the files of others that the study is set beside, by their names in the folder `published`.

    It is made in `scratch`, an empty folder on the same file system that goes when dyno ends, and then renamed: a
    crash leaves nothing half-made behind. `selfcheck` is the last one of this machine, so that a report says the same
    elsewhere.
    """
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    parent = root / study.study / (PILOTS if study.pilot else "")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        (scratch / "runs").mkdir()
        (scratch / "study.yaml").write_bytes(study_yaml)
        (scratch / "environment.json").write_text(json.dumps(environment, indent=1, ensure_ascii=False) + "\n")
        if selfcheck is not None:
            (scratch / _SELFCHECK).write_text(selfcheck.model_dump_json(indent=1) + "\n")
        (scratch / "plan.json").write_text(study.model_dump_json(indent=1) + "\n")
        if published:
            (scratch / "published").mkdir()
            for name, content in published.items():
                (scratch / "published" / name).write_bytes(content)
        for path in (*scratch.rglob("*"), scratch):
            staging.sync(path)
        folder = _renamed(scratch, parent, stamp)
        staging.sync(parent)
    except OSError as error:
        raise StoreError(f"{parent}: cannot make a results folder: {error.strerror or error}") from error
    return Results(folder)


def list_results(root: Path, study: str) -> list[Results]:
    """The results folders of a study, oldest first."""
    parent = root / study
    if not parent.is_dir():
        return []
    return [Results(folder) for folder in sorted(parent.iterdir()) if (folder / "plan.json").is_file()]


def _renamed(scratch: Path, parent: Path, stamp: str) -> Path:
    for suffix in ("", *(f"-{number:03d}" for number in range(2, 1000))):
        folder = parent / f"{stamp}{suffix}"
        try:
            # A folder that has anything in it, as every results folder does, is not replaced.
            scratch.rename(folder)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                continue
            raise
        return folder
    raise StoreError(f"{parent}: a thousand results folders within a second")


@contextlib.contextmanager
def _kept_for_good() -> Iterator[None]:
    """What is made within is never looked at by the garbage collector: records form no cycles, and stay to the end.

    Of 10,000 runs there are a million small objects. Going through them again and again took longer than reading them.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if collecting:
            gc.enable()


def _what_it_is(folder: Path) -> str:
    if not folder.exists():
        return "no such folder"
    within = sorted(path.parent for pattern in ("*/plan.json", "*/*/plan.json") for path in folder.glob(pattern))
    within = [path for path in within if path.parent.name != PILOTS or path.parent == folder]
    newest = f"; did you mean {within[-1]}?" if within else ""
    return f"not a results folder (it has no plan.json){newest}"


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(_read_text(path))
    except ValueError as error:
        raise StoreError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise StoreError(f"{path}: not a JSON object")
    return data


def _refuse_format(path: Path, data: dict[str, Any], known: int) -> None:
    found = data.get("format")
    if found != known:
        raise StoreError(f"{path}: format {found!r}; this dyno reads format {known}: use a dyno of the other's time")


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
