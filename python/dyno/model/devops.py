"""The tables of TSBS's use case devops: what its generator writes, in its order.

Nine measurements of each host, one row each at a time; every row has the ten tags of its host, and some have tags of
their own besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TAGS: Final = (
    "hostname", "region", "datacenter", "rack", "os", "arch", "team", "service", "service_version",
    "service_environment",
)  # fmt: skip
"""Of the host, which every table has."""

TIME: Final[Mapping[str, str]] = {"questdb": "timestamp", "cratedb": "ts", "postgresql": "ts", "duckdb": "ts"}
"""By backend, what the column of the time is called: QuestDB's line protocol and TSBS's loader of CrateDB leave no
choice."""


@dataclass(frozen=True)
class Measurement:
    """One table. `tags` are those besides the host's; fields that are not among `real` are whole numbers."""

    name: str
    tags: tuple[str, ...]
    fields: tuple[str, ...]
    real: frozenset[str] = frozenset()


def _measurement(name: str, fields: str, *, tags: str = "", real: str = "") -> Measurement:
    return Measurement(name, tuple(tags.split()), tuple(fields.split()), frozenset(real.split()))


MEASUREMENTS: Final[Mapping[str, Measurement]] = {
    each.name: each
    for each in (
        _measurement(
            "cpu",
            "usage_user usage_system usage_idle usage_nice usage_iowait usage_irq usage_softirq usage_steal "
            "usage_guest usage_guest_nice",
        ),
        _measurement("diskio", "reads writes read_bytes write_bytes read_time write_time io_time", tags="serial"),
        _measurement("disk", "total free used used_percent inodes_total inodes_free inodes_used", tags="path fstype"),
        _measurement("kernel", "boot_time interrupts context_switches processes_forked disk_pages_in disk_pages_out"),
        _measurement(
            "mem",
            "total available used free cached buffered used_percent available_percent buffered_percent",
            real="used_percent available_percent buffered_percent",
        ),
        _measurement(
            "net",
            "bytes_sent bytes_recv packets_sent packets_recv err_in err_out drop_in drop_out",
            tags="interface",
        ),
        _measurement("nginx", "accepts active handled reading requests waiting writing", tags="port server"),
        _measurement(
            "postgresl",
            "numbackends xact_commit xact_rollback blks_read blks_hit tup_returned tup_fetched tup_inserted "
            "tup_updated tup_deleted conflicts temp_files temp_bytes deadlocks blk_read_time blk_write_time",
        ),
        _measurement(
            "redis",
            "uptime_in_seconds total_connections_received expired_keys evicted_keys keyspace_hits keyspace_misses "
            "instantaneous_ops_per_sec instantaneous_input_kbps instantaneous_output_kbps connected_clients "
            "used_memory used_memory_rss used_memory_peak used_memory_lua rdb_changes_since_last_save sync_full "
            "sync_partial_ok sync_partial_err pubsub_channels pubsub_patterns latest_fork_usec connected_slaves "
            "master_repl_offset repl_backlog_active repl_backlog_size repl_backlog_histlen mem_fragmentation_ratio "
            "used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children",
            tags="port server",
        ),
    )
}
"""By name. `postgresl` is how its generator spells it."""
