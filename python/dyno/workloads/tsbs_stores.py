"""How each store is loaded with TSBS's rows and asked its queries: by TSBS's own programs, and by dyno's loader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dyno.hosts import tools
from dyno.model.devops import MEASUREMENTS, TIME
from dyno.model.endpoint import Endpoint

TABLES = tuple(MEASUREMENTS)


@dataclass(frozen=True)
class Theirs:
    """What TSBS has for a store. `dead` are settings of its loader that it sets back to what it says there."""

    format: str
    loader: str
    runner: str
    makes_tables: bool
    dead: Mapping[str, str]


# `config.HashWorkers = false` stands behind the reading of the flags in both loaders (cmd/tsbs_load_questdb/main.go,
# cmd/tsbs_load_cratedb/main.go): published comparisons of --hash-workers on and off compared the same thing.
_NO_HASHING = "is set back to false by TSBS's loader whatever it is told"

THEIRS: Mapping[str, Theirs] = {
    "questdb": Theirs("questdb", "tsbs_load_questdb", "tsbs_run_queries_questdb", True, {"hash_workers": _NO_HASHING}),
    "cratedb": Theirs(
        "cratedb",
        "tsbs_load_cratedb",
        "tsbs_run_queries_cratedb",
        True,
        {
            "hash_workers": _NO_HASHING,
            # It takes them from Go's own flags, which are never parsed, and not from those that it reads.
            "shards": "is always 5 in tables that TSBS's loader makes",
            "replicas": "is always 0 in tables that TSBS's loader makes",
        },
    ),
    # Plain tables, as there is no extension: with it they are hypertables.
    "postgresql": Theirs("timescaledb", "tsbs_load_timescaledb", "tsbs_run_queries_timescaledb", True, {}),
}
"""By backend. DuckDB has none."""


def backend_of_job(endpoint: Endpoint, transport: str) -> dict[str, Any]:
    """Where `dyno-core ingest` sends rows. `transport` is of QuestDB alone."""
    at = endpoint.settings
    time = TIME[endpoint.backend]
    if endpoint.backend == "questdb":
        port = at["ilp_port"] if transport == "ilp-tcp" else at["port"]
        return {"kind": "questdb", "transport": transport, "addresses": [{"host": at["host"], "port": port}]}
    if endpoint.backend == "cratedb":
        ways = [at, *endpoint.others.values()]
        addresses = list({(way["host"], way["port"]): None for way in ways if "port" in way})
        return {
            "kind": "cratedb",
            "addresses": [{"host": host, "port": port} for host, port in addresses],
            "columns": {"time": time, "tags": "tags", "keyed": bool((endpoint.tables or {}).get("deduplicate"))},
        }
    where = {"socket": at["socket"]} if "socket" in at else {"host": at["host"], "port": at["port"]}
    who = {"user": at["user"], "password": at.get("password", ""), "database": at["database"]}
    return {"kind": "postgresql", **where, **who, "columns": {"time": time}}


def words_of_loader(endpoint: Endpoint) -> Iterator[str]:
    """Where TSBS's loader sends rows."""
    at = endpoint.settings
    if endpoint.backend == "questdb":
        yield f"--url={_url(at)}"
        yield f"--ilp-bind-to={at['host']}:{at['ilp_port']}"
    elif endpoint.backend == "cratedb":
        yield f"--hosts={at['host']}"
        yield f"--port={at['pg_port']}"
        yield "--user=crate"
        # The name of the database is that of a schema there.
        yield "--db-name=doc"
    else:
        yield from _postgresql(at)
        yield f"--host={_host(at)}"
        yield "--use-hypertable=false"
        # It would drop the database, and make it anew where another one's settings are not.
        yield "--do-create-db=false"
        yield f"--admin-db-name={at['database']}"


def words_of_runner(endpoint: Endpoint) -> Iterator[str]:
    """Whom TSBS's query runner asks."""
    at = endpoint.settings
    if endpoint.backend == "questdb":
        yield f"--urls={_url(at)}"
    elif endpoint.backend == "cratedb":
        yield f"--hosts={at['host']}"
        yield f"--port={at['pg_port']}"
        yield "--user=crate"
    else:
        yield from _postgresql(at)
        yield f"--hosts={_host(at)}"


def _url(at: Mapping[str, Any]) -> str:
    return f"http://{at['host']}:{at['port']}/"


def _host(at: Mapping[str, Any]) -> str:
    # libpq's way, which pgx has too: a folder in place of a host.
    return str(at["socket"]).rpartition("/")[0] if "socket" in at else str(at["host"])


def _postgresql(at: Mapping[str, Any]) -> Iterator[str]:
    port = str(at["socket"]).rpartition(".")[2] if "socket" in at else at["port"]
    yield "--postgres=sslmode=disable"
    yield f"--port={port}"
    yield f"--user={at['user']}"
    yield f"--pass={at.get('password', '')}"
    yield f"--db-name={at['database']}"


def version() -> dict[str, str]:
    """Of TSBS as it was got, with the checksums of its programs; empty where it was not."""
    found = tools.TSBS.installed()
    if found is None:
        return {}
    return {"tsbs": found, **{name: f"sha256:{digest[:16]}" for name, digest in tools.TSBS.checksums().items()}}
