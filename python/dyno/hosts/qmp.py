"""Telling QEMU's programs what to do while they run: QMP, one JSON document a line, over a socket file of theirs."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dyno.model.base import RunError

_CHUNK = 65536


class Monitor:
    """A connection to one program, made when it is first asked. `patience` is how long an answer may take, in s."""

    def __init__(self, path: Path, patience: float = 10.0) -> None:
        self._path = path
        self._patience = patience
        self._socket: socket.socket | None = None
        self._rest = b""

    def ask(self, command: str, **arguments: Any) -> Any:
        """What it returns. Raises RunError, with its own words where it refuses."""
        try:
            if self._socket is None:
                self._connect()
            return self._carried_out(command, arguments)
        except (OSError, ValueError) as error:
            self.close()
            raise RunError(f"{command} was not answered at {self._path.name}: {error}") from error

    def close(self) -> None:
        """Let go of it; the next question connects anew."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket, self._rest = None, b""

    def _connect(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(self._patience)
        self._socket.connect(str(self._path))
        next(self._documents())  # its greeting
        self._carried_out("qmp_capabilities", {})

    def _carried_out(self, command: str, arguments: dict[str, Any]) -> Any:
        assert self._socket is not None
        asked = {"execute": command, **({"arguments": arguments} if arguments else {})}
        self._socket.sendall(json.dumps(asked).encode() + b"\n")
        for document in self._documents():
            if "error" in document:
                raise RunError(f"{command} was refused at {self._path.name}: {document['error'].get('desc')}")
            if "return" in document:  # all else tells of what happens meanwhile
                return document["return"]
        raise AssertionError("documents end by an error alone")

    def _documents(self) -> Iterator[dict[str, Any]]:
        assert self._socket is not None
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
