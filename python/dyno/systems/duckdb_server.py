"""A program of its own: holds a DuckDB file, and answers who comes by a socket file. dyno starts it by its path.

DuckDB is embedded, and one process may write to a file: for several clients, as for other stores, that is this one.
Each client has a thread and a cursor of its own, so that their statements run beside one another; DuckDB lets go of
Python's lock while it works. In go lines of JSON; out goes a line of JSON, and as many bytes as it says:

    {"sql": "SELECT ?", "parameters": [1]}      -> {"columns": [["x", "INTEGER"]], "form": "json", "bytes": 5}
                                                   [[1]]
    {"sql": "INSERT ...", "many": [[1], [2]]}   -> {"columns": [], "form": "json", "bytes": 2}
    what was refused                            -> {"error": "..."}

What a SELECT without parameters gives is in the form "arrow", a file of Arrow's, where all of its types have one there:
that is how DuckDB hands rows out by itself, and to make Python's values and JSON of them takes twenty times as long. In
JSON times are ISO 8601, what it has no form for is text; NaN and the infinities, which it has no number for, are
`{"f": "nan"}`, `{"f": "inf"}` and `{"f": "-inf"}`, since NULL is another answer. SIGTERM ends it: what it holds is then
in the file, and no log is left. What it is started with is one JSON object: `database`, `socket`, `config`.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
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
_ALIKE = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG)INT|U?INTEGER|HUGEINT|FLOAT|DOUBLE|DECIMAL\(.*\)|VARCHAR|DATE|"
    r"TIMESTAMP( WITH TIME ZONE)?"
)
"""Types whose values are the same by Arrow."""


def main() -> None:
    """Open the file, listen, and end by SIGTERM; what is wrong with the file or its settings is said by one line."""
    import duckdb  # here, since dyno looks into this module for kinds of systems whatever it is asked for
    import polars  # noqa: F401 - before it answers: to load it is nothing that a query should take

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


def _answer(cursor: DuckDBPyConnection, asked: dict[str, Any]) -> tuple[_Columns, str, bytes]:
    """Columns, and rows in one form or the other."""
    if "many" in asked:
        if asked["many"]:
            cursor.executemany(asked["sql"], asked["many"])
        return [], "json", b"[]"
    if not asked.get("parameters") and (found := _by_arrow(cursor, asked["sql"])) is not None:
        return found
    cursor.execute(asked["sql"], asked.get("parameters") or [])
    columns = [[name, str(kind)] for name, kind, *_ in cursor.description or ()]
    rows = [[_as_json(value) for value in row] for row in cursor.fetchall()]
    return columns, "json", json.dumps(rows, default=str, allow_nan=False).encode()


def _by_arrow(cursor: DuckDBPyConnection, statement: str) -> tuple[_Columns, str, bytes] | None:
    """What a SELECT gives; None of another statement, and where a type or a name twice has no place there."""
    import polars as pl  # as in main

    statements = cursor.extract_statements(statement)
    if len(statements) != 1 or str(statements[0].type) != "StatementType.SELECT":
        return None
    relation = cursor.sql(statement)
    columns = [[name, str(kind)] for name, kind in zip(relation.columns, relation.types, strict=True)]
    if len(set(relation.columns)) < len(columns) or not all(_ALIKE.fullmatch(kind) for _, kind in columns):
        return None
    file = io.BytesIO()
    pl.DataFrame(relation).write_ipc(file, compression="uncompressed")
    return columns, "arrow", file.getvalue()


def _told(columns: _Columns, form: str, body: bytes) -> tuple[bytes, bytes]:
    return json.dumps({"columns": columns, "form": form, "bytes": len(body)}).encode() + b"\n", body


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
