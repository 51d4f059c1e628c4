"""A program of its own: holds a DuckDB file, and answers who comes by a socket file. dyno starts it by its path.

DuckDB is embedded, and one process may write to a file: for several clients, as for other stores, that is this one.
Each client has a thread and a cursor of its own, so that their statements run beside one another; DuckDB lets go of
Python's lock while it works. In go lines of JSON; out goes a line of JSON, and as many bytes as it says:

    {"sql": "SELECT ?", "parameters": [1]}      -> {"columns": [["x", "INTEGER"]], "form": "columns", "bytes": 152}
    {"sql": "INSERT ...", "many": [[1], [2]]}   -> {"columns": [], "form": "rows", "bytes": 5}
    what was refused                            -> {"error": "..."}

These bytes are pickled: NumPy's array of each column, where every type has a plain one, since that is nearly how DuckDB
holds them, and Python's values and JSON of many rows take longer than many a query; else a list of Python's tuples.
Nobody but dyno reads them, from a socket file in a folder of dyno's. SIGTERM ends it: what it holds is then
in the file, and no log is left. What it is started with is one JSON object: `database`, `socket`, `config`.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BETWEEN_INTERRUPTS_S = 0.05
_PLAIN = re.compile(r"BOOLEAN|U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|VARCHAR|DATE|TIMESTAMP( WITH TIME ZONE)?")
"""Types whose values are the same in NumPy's arrays: HUGEINT and DECIMAL would be rounded."""


def main() -> None:
    """Open the file, listen, and end by SIGTERM; what is wrong with the file or its settings is said by one line."""
    import duckdb  # here, since dyno looks into this module for kinds of systems whatever it is asked for
    import numpy as np  # noqa: F401 - before it answers: to load it is nothing that a query should take

    told = json.loads(sys.argv[1])
    try:
        database = duckdb.connect(told["database"], config=told["config"])
    except duckdb.Error as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    Path(told["socket"]).unlink(missing_ok=True)  # of one that was killed and comes back
    listener.bind(told["socket"])
    listener.listen(128)
    clients: list[_Client] = []
    welcoming = threading.Thread(target=_welcome, args=(listener, database, clients, duckdb.Error), daemon=True)
    welcoming.start()
    signal.sigwait([signal.SIGTERM])
    listener.shutdown(socket.SHUT_RDWR)
    welcoming.join()
    # Statements that still run end with an error that nobody reads; a connection in use would refuse to be closed.
    for client in clients:
        client.send_away(duckdb.Error)
    database.execute("FORCE CHECKPOINT")
    database.close()


@dataclass(frozen=True)
class _Client:
    stream: socket.socket
    cursor: DuckDBPyConnection
    thread: threading.Thread

    def send_away(self, refused: type[Exception]) -> None:
        with contextlib.suppress(OSError):
            self.stream.shutdown(socket.SHUT_RDWR)
        while self.thread.is_alive():
            with contextlib.suppress(refused):  # it was closed just now, as its client had gone
                self.cursor.interrupt()
            self.thread.join(_BETWEEN_INTERRUPTS_S)  # one that fell between two statements interrupted nothing


def _welcome(
    listener: socket.socket, database: DuckDBPyConnection, clients: list[_Client], refused: type[Exception]
) -> None:
    while True:
        try:
            stream, _ = listener.accept()
        except OSError:
            return
        cursor = database.cursor()
        thread = threading.Thread(target=_serve, args=(stream, cursor, refused), daemon=True)
        clients[:] = [client for client in clients if client.thread.is_alive()]
        clients.append(_Client(stream, cursor, thread))
        thread.start()


def _serve(client: socket.socket, cursor: DuckDBPyConnection, refused: type[Exception]) -> None:
    with client, client.makefile("rwb") as stream, cursor:
        for line in stream:
            try:
                told = _told(*_answer(cursor, json.loads(line)))
            except (refused, ValueError, KeyError, TypeError, RuntimeError) as error:
                told = json.dumps({"error": " ".join(str(error).split())}).encode() + b"\n", b""
            try:
                stream.writelines(told)
                stream.flush()
            except OSError:
                return


_Columns = list[list[str]]


def _answer(cursor: DuckDBPyConnection, asked: dict[str, Any]) -> tuple[_Columns, str, Any]:
    """Columns, and rows in one form or the other."""
    if "many" in asked:
        if asked["many"]:
            cursor.executemany(asked["sql"], asked["many"])
        return [], "rows", []
    cursor.execute(asked["sql"], asked.get("parameters") or [])
    columns = [[name, str(kind)] for name, kind, *_ in cursor.description or ()]
    plain = all(_PLAIN.fullmatch(kind) for _, kind in columns)
    # There one is found by its name.
    if columns and plain and len({name for name, _ in columns}) == len(columns):
        return columns, "columns", list(cursor.fetchnumpy().values())
    return columns, "rows", cursor.fetchall()


def _told(columns: _Columns, form: str, rows: Any) -> tuple[bytes, bytes]:
    body = pickle.dumps(rows)
    return json.dumps({"columns": columns, "form": form, "bytes": len(body)}).encode() + b"\n", body


if __name__ == "__main__":
    main()
