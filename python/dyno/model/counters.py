"""What a store says of itself: counters that grow, and figures that are as they are now.

Names are the store's own, in lower case. Two kinds of names are dyno's: those of resources (`dyno.model.usage`), whose
amounts are in their base unit, and `wait/<class>`, the time that clients waited, by what for. Time waited is in seconds
so far where the store counts it, and the number of clients that wait now where it has to be asked again and again: the
rate of the one, and the mean of the other over time, are the same figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

SOURCE = "database"
"""Of their samples, whose subject is `SUBJECT`: rates in 1/s of what grows, and values of what does not."""
SUBJECT = "server"
WAIT = "wait/"
LOOKS = "looks"
"""How often it was asked in the time of a sample, 1/s: a late answer shows."""

EMBEDDED = ("cache_hits", "cache_misses", "cache_writes", "cache_spills", "rows_scanned")
"""Those of an embedded store, which the driver reads itself: in `status` of a run, of all of its measured part."""

NOW = "now/"
"""How the name of a figure begins in samples that goes up and down, where it is none of those known below."""

_GAUGES = (
    # MariaDB and MySQL: the server
    r"threads_(cached|connected|running)", r"threadpool_(idle_)?threads", r"max_used_connections",
    r"open_(files|streams|tables|table_definitions)", r"prepared_stmt_count", r"memory_used(_initial)?",
    r"slave_open_temp_tables", r"delayed_insert_threads", r"not_flushed_delayed_rows", r"key_blocks_\w+",
    r"qcache_(free_blocks|free_memory|queries_in_cache|total_blocks)", r"aria_pagecache_blocks_\w+",
    r"subquery_cache_hit_rate", r"last_query_\w+", r"tc_log_(max_pages_used|page_size)",
    # and its InnoDB
    r"\w+_pending(_\w+)?", r"innodb_row_lock_(current_waits|time_avg|time_max)",
    r"innodb_buffer_pool_(bytes|load|dump|resize)_\w+",
    r"innodb_buffer_pool_pages_(data|dirty|free|latched|misc|old|total)", r"innodb_page_size", r"innodb_num_open_files",
    r"innodb_checkpoint_(age|max_age|target_age)", r"innodb_history_list_length", r"innodb_mem_\w+",
    r"innodb_ibuf_(free_list|segment_size|size)", r"innodb_undo_tablespaces_\w+", r"innodb_available_undo_logs",
    r"innodb_redo_log_(capacity_resized|logical_size|physical_size|read_only|uuid)", r"innodb_encryption_\w+",
    r"innodb_(defragment|onlineddl)_\w+", r"innodb_\w+_enabled",
    # PostgreSQL
    r"database\.(numbackends|bytes)",
)  # fmt: skip
_GAUGE = re.compile("|".join(_GAUGES))
_SILENT = re.compile(
    r"(acl|wsrep|rpl|slaves?|ssl|mysqlx|current_tls|tls|caching_sha2|error_log|telemetry|resource_group)_\w+"
)
"""Of MariaDB and MySQL, some of which grow and some of which do not: they say nothing of what was done."""


@dataclass(frozen=True)
class Counters:
    """At one moment. `grown` only grows while the store runs; `now` goes up and down.

    `by` names who counted, where they may be others at another moment: what one has counted is no start for another.
    """

    grown: Mapping[str, float]
    now: Mapping[str, float] = field(default_factory=dict)
    by: str = ""


class CounterSource(Protocol):
    """A connection to a store that is asked for its counters and for nothing else. Each call raises RunError."""

    def read(self) -> Counters:
        """As they are now."""
        ...

    def ended(self) -> bool:
        """Whether the store's process has ended, which is then why it does not answer; waits a moment for that."""
        ...

    def close(self) -> None:
        """Let go of it; nothing happens where it is gone."""
        ...


def is_gauge(name: str) -> bool:
    """Whether the figure of that name goes up and down, or says nothing of what was done."""
    return _GAUGE.fullmatch(name) is not None or is_silent(name)


def is_silent(name: str) -> bool:
    """Whether it is of a group of figures of which some grow, some do not, and none says anything of what was done."""
    return _SILENT.fullmatch(name) is not None


def sampled_as(name: str) -> str:
    """What a figure that goes up and down is called in samples, so that none is taken for a counter."""
    return name if is_gauge(name) else f"{NOW}{name}"


def is_wait(name: str) -> bool:
    """Whether it is the time that clients waited for something."""
    return name.startswith(WAIT)
