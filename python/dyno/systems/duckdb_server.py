"""A program of its own: holds a DuckDB file, and answers who comes by a socket file. dyno starts it by its path.

DuckDB is embedded, and one process may write to a file: for several clients, as for other stores, that is this one.
Each client has a thread and a cursor of its own, so that their statements run beside one another; DuckDB lets go of
Python's lock while it works. In and out go lines of JSON:

    {"sql": "SELECT ?", "parameters": [1]}      -> {"columns": [["x", "INTEGER"]], "rows": [[1]]}
    {"sql": "INSERT ...", "many": [[1], [2]]}   -> {"columns": [], "rows": []}
    what was refused                            -> {"error": "..."}

Times are ISO 8601, what JSON has no form for is text; NaN and the infinities, which JSON has no number for, are
`{"f": "nan"}`, `{"f": "inf"}` and `{"f": "-inf"}`, since NULL is another answer. SIGTERM ends it: what it holds is then
in the file, and no log is left. What it is started with is one JSON object: `database`, `socket`, `config`.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BETWEEN_INTERRUPTS_S = 0.05


def main() -> None:
    """Open the file, listen, and end by SIGTERM; what is wrong with the file or its settings is said by one line."""
    import duckdb  # here, since dyno looks into this module for kinds of systems whatever it is asked for

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
                answer = _answer(cursor, json.loads(line))
            except (refused, ValueError, KeyError, TypeError, RuntimeError) as error:
                answer = {"error": " ".join(str(error).split())}
            try:
                stream.write(json.dumps(answer, default=str, allow_nan=False).encode() + b"\n")
                stream.flush()
            except OSError:
                return


def _answer(cursor: DuckDBPyConnection, asked: dict[str, Any]) -> dict[str, Any]:
    if "many" in asked:
        if asked["many"]:
            cursor.executemany(asked["sql"], asked["many"])
        return {"columns": [], "rows": []}
    cursor.execute(asked["sql"], asked.get("parameters") or [])
    columns = [[name, str(kind)] for name, kind, *_ in cursor.description or ()]
    return {"columns": columns, "rows": [[_as_json(value) for value in row] for row in cursor.fetchall()]}


def _as_json(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"f": str(value)}
    if isinstance(value, (list, tuple)):
        return [_as_json(each) for each in value]
    return {key: _as_json(each) for key, each in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    main()
