"""The durable undo journal: every change to the machine is written here before it is made.

One file a session, locked by its owner for as long as that lives. Whoever finds a file that nobody holds (the owner
ended, was killed, or the machine lost power) undoes what it lists, newest first. A last line that is torn is a change
that was not yet made, since the line is synced before the change.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyno.hosts.files import sync_folder

TOKEN_VARIABLE = "DYNO_SESSION"
"""Every process that a session starts carries the session's token under this name in its environment."""

_KILL_LIMIT_S = 10.0
_ASK_LIMIT_S = 5.0


class UndoError(Exception):
    """A change could not be undone; the journal keeps it for the next attempt."""


@dataclass(frozen=True)
class Change:
    """A change to the machine. `kind` names what undoes it, `what` is what that needs to know."""

    kind: str
    what: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind} {' '.join(str(value) for value in self.what.values())}"


def state_folder() -> Path:
    """Where this user's journals are kept: `$DYNO_STATE`, else `dyno` in the XDG state folder."""
    if given := os.environ.get("DYNO_STATE"):
        return Path(given)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "dyno"


class UndoJournal:
    """The journal of this session. A context manager: what is left at the end is undone.

    Raises OSError where the state folder cannot be written.
    """

    def __init__(self, state: Path | None = None) -> None:
        folder = (state or state_folder()) / "undo"
        folder.mkdir(parents=True, exist_ok=True)
        self._lock, self.token = _create_locked(folder)
        self._path = folder / f"{self.token}.jsonl"
        self._changes: list[Change] = []
        # One entry, before the first process: it covers them all, also one started just before a kill -9.
        self.will(Change("processes", {"token": self.token}))

    def will(self, change: Change) -> Change:
        """Write down a change that is about to be made; returns when it is on disk."""
        self._append({"kind": change.kind, "what": change.what})
        os.fsync(self._lock)
        self._changes.append(change)
        return change

    def undo(self, change: Change) -> None:
        """Undo one change now. Raises UndoError; the change then stays in the journal."""
        _undo(change)
        self._changes.remove(change)
        self._append({"kind": "undone", "what": {"kind": change.kind, "what": change.what}})

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        before = os.fstat(self._lock).st_size
        if os.write(self._lock, line) != len(line):
            # A full disk takes a part of it; the change must not be made, nor the next line be glued to this one.
            os.ftruncate(self._lock, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def __enter__(self) -> UndoJournal:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Undo all that is left, newest first, and give the journal up. Raises UndoError naming what stays."""
        stuck = _undo_all(self._changes)
        if not stuck:
            self._path.unlink(missing_ok=True)
        os.close(self._lock)
        if stuck:
            raise UndoError("; ".join(stuck))


@dataclass(frozen=True)
class Cleaned:
    """What became of one abandoned journal."""

    token: str
    undone: tuple[str, ...]
    stuck: tuple[str, ...]


def clean(state: Path | None = None) -> list[Cleaned]:
    """Undo what ended sessions left. Journals whose session still lives are not touched."""
    folder = (state or state_folder()) / "undo"
    return [cleaned for path in sorted(folder.glob("*.jsonl")) if (cleaned := _clean_one(path)) is not None]


def living(state: Path | None = None) -> int:
    """How many sessions are alive now."""
    folder = (state or state_folder()) / "undo"
    count = 0
    for path in folder.glob("*.jsonl"):
        try:
            os.close(_lock_now(path))
        except BlockingIOError:
            count += 1
        except OSError:
            continue  # given up meanwhile, or another user's
    return count


def _create_locked(folder: Path) -> tuple[int, str]:
    while True:
        token = secrets.token_hex(8)
        path = folder / f"{token}.jsonl"
        lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A cleaner may have taken the file for an abandoned one between its creation and the lock.
        if path.exists() and os.fstat(lock).st_nlink:
            sync_folder(folder)
            return lock, token
        os.close(lock)


def _lock_now(path: Path) -> int:
    """Raises BlockingIOError where its owner, or another cleaner, has it."""
    lock = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise
    return lock


def _clean_one(path: Path) -> Cleaned | None:
    try:
        lock = _lock_now(path)
    except (BlockingIOError, FileNotFoundError):
        return None
    except OSError as error:
        # Such as the journal of a session that was run with sudo: its owner has to clean it.
        return Cleaned(path.stem, (), (f"the journal {path} cannot be opened: {error.strerror}",))
    try:
        if not os.fstat(lock).st_nlink:
            return None  # another cleaner was done with it between our opening and our locking it
        changes = _remaining(path)
        found = list(changes)
        stuck = _undo_all(changes)  # takes out what it undid
        if not stuck:
            path.unlink(missing_ok=True)
        return Cleaned(path.stem, tuple(str(change) for change in found if change not in changes), tuple(stuck))
    finally:
        os.close(lock)


def _remaining(path: Path) -> list[Change]:
    changes: list[Change] = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # torn: the change was not made
        try:
            change = Change(**entry)
            undone = Change(**change.what) if change.kind == "undone" else None
        except TypeError:
            changes.append(Change("unreadable", {"line": line}))  # of another dyno: kept, and told
            continue
        if undone is None:
            changes.append(change)
        elif undone in changes:
            changes.remove(undone)
    return changes


def _undo_all(changes: list[Change]) -> list[str]:
    stuck = []
    # Newest first. The one entry of the processes stands for all of them, the last one too: they go before the
    # folders in which they may still be writing; servers that have to be asked go before all that is killed.
    newest_first = changes[::-1]
    newest_first.sort(key=lambda change: ("server", "processes", change.kind).index(change.kind))
    for change in newest_first:
        try:
            _undo(change)
            changes.remove(change)
        except UndoError as error:
            stuck.append(f"{change}: {error}")
    return stuck


def _undo(change: Change) -> None:
    undoer = _UNDOERS.get(change.kind)
    if undoer is None:
        raise UndoError(f"this dyno does not know how to undo {change.kind!r}; there are {', '.join(_UNDOERS)}")
    try:
        undoer(**change.what)
    except TypeError as error:
        raise UndoError(f"this dyno cannot read what another wrote ({error})") from error


def _end_processes(token: str) -> None:
    """End every process that carries the token, by its id."""
    deadline = time.monotonic() + _KILL_LIMIT_S
    while pids := list(_processes_with(token)):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise UndoError(f"process {pid} may not be ended: {error}") from error
        if time.monotonic() > deadline:
            raise UndoError(f"processes {pids} do not end")
        time.sleep(0.01)


def _end_server(marker: str, undo_by: str) -> None:
    """End the processes that have the marker among their arguments: asked first, then killed."""
    begun = time.monotonic()
    farewell = getattr(signal, undo_by, signal.SIGKILL)
    asked: set[int] = set()
    while pids := list(_processes_called_with(marker)):
        past = time.monotonic() - begun
        if past > _ASK_LIMIT_S + _KILL_LIMIT_S:
            raise UndoError(f"processes {pids} do not end")
        for pid in pids:
            try:
                if past > _ASK_LIMIT_S:
                    os.kill(pid, signal.SIGKILL)
                elif pid not in asked:
                    os.kill(pid, farewell)
                    asked.add(pid)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise UndoError(f"process {pid} may not be ended: {error}") from error
        time.sleep(0.01)


def _processes_called_with(marker: str) -> Iterator[int]:
    wanted = os.fsencode(marker)
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile; the arguments of one that has ended and was not yet reaped are empty
        if wanted in words:
            yield int(entry.name)


def _processes_with(token: str) -> Iterator[int]:
    wanted = f"{TOKEN_VARIABLE}={token}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = Path(entry.path, "environ").read_bytes()
            state = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue  # ended meanwhile, or another user's
        if state not in "ZX" and wanted in environment.split(b"\0"):
            yield int(entry.name)


def _remove_tree(path: str) -> None:
    while os.path.lexists(path):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            continue  # something in it went at the same time; that does not mean that all of it did
        except OSError as error:
            raise UndoError(str(error)) from error


_UNDOERS: dict[str, Callable[..., None]] = {
    "server": _end_server,
    "processes": _end_processes,
    "remove-tree": _remove_tree,
}
