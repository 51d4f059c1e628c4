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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyno.hosts.files import sync_folder
from dyno.hosts.leftovers import UNDOERS, UndoError


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


_FIRST = ("server", "processes", "cgroup")


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
    # folders in which they may still be writing; servers that have to be asked go before all that is killed. What runs
    # in a container carries no token of ours: its control group ends it.
    newest_first = changes[::-1]
    newest_first.sort(key=lambda change: (*_FIRST, change.kind).index(change.kind))
    for change in newest_first:
        try:
            _undo(change)
            changes.remove(change)
        except UndoError as error:
            stuck.append(f"{change}: {error}")
    return stuck


def _undo(change: Change) -> None:
    undoer = UNDOERS.get(change.kind)
    if undoer is None:
        raise UndoError(f"this dyno does not know how to undo {change.kind!r}; there are {', '.join(UNDOERS)}")
    try:
        undoer(**change.what)
    except TypeError as error:
        raise UndoError(f"this dyno cannot read what another wrote ({error})") from error
