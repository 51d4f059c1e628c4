"""What a store promises of a commit, read off the settings that it had: each kind of system spells it in its own way.

Only what can be told from settings is told. Whether other nodes have a commit when it is acknowledged is what clusters
are compared for, and no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

SYNCED: Final = "each commit is synced"
NOT_SYNCED: Final = "commits are not synced each"


class Promises(NamedTuple):
    """None where the settings do not tell."""

    durability: str | None
    isolation: str | None


def promised(settings: Mapping[str, Any]) -> Promises:
    """By the settings as they were read back while a run was made."""
    given = {name: str(value).strip().upper() for name, value in settings.items() if not isinstance(value, Mapping)}
    return Promises(_durability(given), _isolation(given))


def _durability(given: Mapping[str, str]) -> str | None:
    if "innodb_flush_log_at_trx_commit" in given:
        redo = given["innodb_flush_log_at_trx_commit"] in ("1", "3")
        # With a binary log a commit is lost that is not in it: what the engine had prepared is rolled back.
        binary = given.get("log_bin", "OFF") in ("OFF", "0", "FALSE") or given.get("sync_binlog", "1") == "1"
        # A disk that is kept twice and does not have those below it flush leaves commits in their caches.
        synced = redo and binary and given.get("drbd.disk-flushes", "YES") not in ("FALSE", "OFF", "NO")
    elif "synchronous_commit" in given:
        synced = given["synchronous_commit"] not in ("OFF", "FALSE") and given.get("fsync", "ON") in ("ON", "TRUE")
    elif "synchronous" in given:
        wal = given.get("journal_mode") == "WAL"
        synced = given["synchronous"] in ("FULL", "EXTRA", "2", "3", *(() if wal else ("NORMAL", "1")))
    elif "cairo.commit.mode" in given:
        # `async` starts writing and waits for nothing.
        synced = given["cairo.commit.mode"] == "SYNC"
    elif "translog.durability" in given:
        synced = given["translog.durability"] == "REQUEST"
    elif "duckdb.wal" in given:
        synced = given["duckdb.wal"] == "SYNCED AT COMMIT"
    else:
        return None
    return SYNCED if synced else NOT_SYNCED


def _isolation(given: Mapping[str, str]) -> str | None:
    names = ("transaction_isolation", "tx_isolation", "default_transaction_isolation")
    found = next((given[name] for name in names if name in given), None)
    return None if found is None else found.replace(" ", "-")
