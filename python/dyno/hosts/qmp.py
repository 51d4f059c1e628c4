"""Telling QEMU's programs what to do while they run: QMP, one JSON document a line, over a socket file of theirs."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dyno.model.base import RunError

_CHUNK = 65536


class Monitor:
    """A connection to one program, made when it is first asked. `patience` is how long an answer may take, in s.

    It may be asked by several threads: one after the other, and each is given its own answer.
    """

    def __init__(self, path: Path, patience: float = 10.0) -> None:
        self._path = path
        self._patience = patience
        self._turn = threading.RLock()
        """Of whoever asks."""
        self._connection: _Connection | None = None

    def ask(self, command: str, **arguments: Any) -> Any:
        """What it returns. Raises RunError, with its own words where it refuses."""
        if not self._turn.acquire(timeout=self._patience):
            raise RunError(f"{command} was not asked at {self._path.name}: an answer was waited for all the time")
        try:
            return self._connected().carry_out(command, arguments)
        except (OSError, ValueError) as error:
            self.close()
            raise RunError(f"{command} was not answered at {self._path.name}: {error}") from error
        finally:
            self._turn.release()

    def close(self) -> None:
        """Let go of it; the next question connects anew. Whoever waits for an answer now gets none."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.hang_up()
            with self._turn:  # not under the hands of who still reads it: another's file may have its number then
                connection.close()

    def _connected(self) -> _Connection:
        connection = self._connection
        if connection is None:
            self._connection = connection = _Connection(self._path, self._patience)
            connection.open()
            if self._connection is not connection:
                raise ConnectionResetError("it was let go of meanwhile")
        return connection


class _Connection:
    """One connection. Whoever has it asks one question at a time."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._rest = b""
        self._number = 0

    def open(self) -> None:
        """Connect, and hear its greeting. Raises OSError."""
        self._socket.settimeout(self._patience)
        self._socket.connect(str(self._path))
        next(self._documents())
        self.carry_out("qmp_capabilities", {})

    def hang_up(self) -> None:
        """Say and hear nothing more by it: who waits for an answer is told that there is none."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give back its handle."""
        self._socket.close()

    def carry_out(self, command: str, arguments: dict[str, Any]) -> Any:
        """What it returns. Raises RunError where it is refused, OSError and ValueError where it is not answered."""
        self._number += 1
        asked = {"execute": command, "id": self._number, **({"arguments": arguments} if arguments else {})}
        self._socket.sendall(json.dumps(asked).encode() + b"\n")
        for document in self._documents():
            if document.get("id", self._number) != self._number:
                continue
            if "error" in document:
                raise RunError(f"{command} was refused at {self._path.name}: {document['error'].get('desc')}")
            if "return" in document:  # all else tells of what happens meanwhile
                return document["return"]
        raise ConnectionResetError("it hung up")

    def _documents(self) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + self._patience
        while True:
            line, found, rest = self._rest.partition(b"\n")
            if found:
                self._rest = rest
                document: dict[str, Any] = json.loads(line)
                yield document
                continue
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            chunk = self._socket.recv(_CHUNK)
            if not chunk:
                raise ConnectionResetError("it hung up")
            self._rest += chunk
