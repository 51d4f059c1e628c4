"""MySQL as a node, the same for every kind of cluster of it: accounts, durable settings, its sets of transactions."""

from __future__ import annotations

from typing import Any, ClassVar

from dyno.systems.members import ADMIN, ADMIN_PASSWORD, CATCHES_UP_S, LISTENING, PORT, ClusterOptions, Member
from dyno.systems.mysql import MysqlOptions, MysqlSystem
from dyno.systems.router import METADATA

REPLICA, REPLICA_PASSWORD = "dyno_replica", "dyno-replica"
"""The account that nodes come to each other by."""

_ANSWERS_WITHIN_S = 1.0

HEARTBEAT = "dyno_cluster.heartbeat"
"""The table that a manager writes to, to see whether that can be done."""


class MysqlClusterOptions(ClusterOptions):
    """What every cluster of MySQL servers has."""

    besides_pool = 160 << 20

    ours: ClassVar[frozenset[str]] = MysqlOptions.ours | {
        "enforce_gtid_consistency", "gtid_mode", "log_bin", "log_replica_updates", "performance_schema", "plugin_load",
        "plugin_load_add", "read_only", "relay_log", "relay_log_recovery", "report_host", "report_port", "server_id",
        "server_uuid", "skip_replica_start", "super_read_only",
    }  # fmt: skip

    def of_member(self) -> MysqlOptions:
        """What each server is started with."""
        return MysqlOptions.model_validate({**self.settings, "check": self.check, "after_load": self.after_load})


class MysqlMember(Member[MysqlOptions], MysqlSystem):
    """One mysqld of a cluster."""

    not_of_data = (
        "binlog_", "group_replication_", "max_binlog_", "replica_", "rpl_", "source_", "sync_binlog", "sync_relay_log",
        "sync_source_info",
    )  # fmt: skip

    def statements(self) -> list[str]:
        """Accounts of all that come by the network, and tables that clusters keep about themselves."""
        return [
            *super().statements(),
            f"CREATE USER {ADMIN}@'%' IDENTIFIED BY '{ADMIN_PASSWORD}'",
            f"GRANT ALL ON *.* TO {ADMIN}@'%' WITH GRANT OPTION",
            f"CREATE USER {REPLICA}@'%' IDENTIFIED BY '{REPLICA_PASSWORD}'",
            "GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* "
            f"TO {REPLICA}@'%'",
            "CREATE DATABASE dyno_cluster",
            f"CREATE TABLE {HEARTBEAT} (id INT PRIMARY KEY, at TIMESTAMP(6) NOT NULL)",
            *METADATA,
        ]

    def executed(self) -> str:
        """The set of transactions that its data have. Raises SqlError."""
        with self.ask() as connection:
            return str(connection.value("SELECT @@GLOBAL.gtid_executed"))

    def comes_to(self, transactions: str, within: float = CATCHES_UP_S) -> bool:
        """Whether its data have all of a set within so many seconds. Raises SqlError."""
        with self.ask(within + _ANSWERS_WITHIN_S) as connection:
            waited = connection.value(f"SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, {within})", transactions)
        return int(waited) == 0


def common_words(number: int, address: str) -> list[str]:
    """What every node has, whatever ties it to the others: the same binary log, flushed alike.

    What the study sets comes after it on the command line, and counts in its place.
    """
    return [
        *LISTENING,
        f"--server-id={number}",
        "--gtid-mode=ON",
        "--enforce-gtid-consistency=ON",
        "--log-bin=binlog",
        "--relay-log=relay",
        "--relay-log-recovery=ON",
        "--skip-replica-start=ON",
        f"--report-host={address}",
        f"--report-port={PORT}",
        "--plugin-load-add=mysql_clone.so",
        *MODEST,
    ]


ALONE: tuple[str, ...] = ("--skip-networking", "--skip-log-bin")
"""A server that is loaded: what it commits is told to nobody, and all nodes begin with it."""

MODEST: tuple[str, ...] = (
    "--performance-schema-instrument=%=OFF",
    "--performance-schema-error-size=0",
    "--performance-schema-max-memory-classes=0",
    # The performance schema makes room for as many, and takes 100 MB more for ten times of them.
    "--table-open-cache=400",
    "--table-definition-cache=400",
    "--innodb-log-buffer-size=16M",
)
"""What three servers on one machine should not each take memory for, 480 MB of one that does nothing; a study may ask
for it."""


def gtids(text: str) -> dict[str, list[tuple[int, int]]]:
    """A set of transactions as MySQL writes it: `uuid:1-5:7,\\nuuid:tag:1`. By its source, from and to."""
    found: dict[str, list[tuple[int, int]]] = {}
    for part in filter(None, (each.strip() for each in text.replace("\n", "").split(","))):
        source, *intervals = part.split(":")
        for interval in intervals:
            if not interval[0].isdigit():
                source = f"{part.split(':')[0]}:{interval}"  # a tag, which what follows it belongs to
                continue
            first, _, last = interval.partition("-")
            found.setdefault(source, []).append((int(first), int(last or first)))
    return found


def gtid_count(text: str) -> int:
    """How many transactions a set has."""
    return sum(last - first + 1 for intervals in gtids(text).values() for first, last in intervals)


def most_advanced(sets: dict[str, str]) -> str:
    """Of nodes by their sets the first that has the most."""
    return max(sets, key=lambda name: gtid_count(sets[name]))


def literal(value: Any) -> str:
    """A text within a statement that takes no parameters."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"
