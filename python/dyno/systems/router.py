"""MySQL Router in front of a group: it follows the group's own view, by metadata that are written once and for all.

Router only reads them, and MySQL's shell, which would write them, is in no package: its schema is made with the empty
store. The instances are a view of what the group itself says, so that nothing has to be told when it changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from dyno.hosts import LocalHost
from dyno.model.base import RunError
from dyno.systems.front import Front

GROUP = "d1900000-0000-4000-8000-000000000001"
"""The name of every group: each has a network of its own."""
CLUSTER = "dyno"
READ_WRITE_PORT, READ_ONLY_PORT = 6446, 6447

_USER, _PASSWORD = "dyno_router", "dyno-router"
_SCHEMA = "mysql_innodb_cluster_metadata"
_LIMIT_S = 30.0
_MOST_CONNECTIONS = 4096


def _view(name: str, selects: str) -> str:
    return f"CREATE SQL SECURITY INVOKER VIEW {_SCHEMA}.{name} AS SELECT {selects}"


_NAMED = f"JSON_OBJECT('group_replication_group_name', '{GROUP}')"
_MEMBERS = "performance_schema.replication_group_members"

METADATA: tuple[str, ...] = (
    f"CREATE DATABASE {_SCHEMA}",
    _view("schema_version", "2 AS major, 2 AS minor, 0 AS patch"),
    # Whether one or all are written to is the one thing that differs from group to group.
    f"CREATE TABLE {_SCHEMA}.mode (id INT PRIMARY KEY, primary_mode VARCHAR(8) NOT NULL)",
    f"INSERT INTO {_SCHEMA}.mode VALUES (1, 'pm')",
    _view(
        "v2_gr_clusters",
        f"'gr' AS cluster_type, primary_mode, '{GROUP}' AS cluster_id, '{CLUSTER}' AS cluster_name, "
        f"'{GROUP}' AS group_name, {_NAMED} AS attributes, JSON_OBJECT() AS options, JSON_OBJECT() AS router_options, "
        f"'' AS description, CAST(NULL AS CHAR(36)) AS clusterset_id FROM {_SCHEMA}.mode",
    ),
    _view("v2_clusters", f"* FROM {_SCHEMA}.v2_gr_clusters"),
    _view(
        "v2_instances",
        f"CRC32(MEMBER_ID) AS instance_id, '{GROUP}' AS cluster_id, CONCAT(MEMBER_HOST, ':', MEMBER_PORT) AS label, "
        "MEMBER_ID AS mysql_server_uuid, CONCAT(MEMBER_HOST, ':', MEMBER_PORT) AS address, "
        "CONCAT(MEMBER_HOST, ':', MEMBER_PORT) AS endpoint, CAST(NULL AS CHAR(64)) AS xendpoint, "
        f"JSON_OBJECT() AS attributes, 'group-member' AS instance_type FROM {_MEMBERS}",
    ),
    _view(
        "v2_this_instance",
        f"cluster_id, instance_id, '{CLUSTER}' AS cluster_name, 'gr' AS cluster_type FROM {_SCHEMA}.v2_instances "
        # No variable may be in a view.
        "WHERE mysql_server_uuid = (SELECT CONVERT(VARIABLE_VALUE USING ascii) FROM "
        "performance_schema.global_variables WHERE VARIABLE_NAME = 'server_uuid')",
    ),
    _view(
        "v2_cs_members",
        f"cluster_id, '' AS clusterset_id, '' AS cluster_name, '' AS member_role, 0 AS master_cluster_id, 0 AS "
        f"invalidated FROM {_SCHEMA}.v2_gr_clusters WHERE FALSE",
    ),
    _view(
        "v2_cs_clustersets",
        f"'' AS clusterset_id, '' AS domain_name, JSON_OBJECT() AS attributes, JSON_OBJECT() AS router_options FROM "
        f"{_SCHEMA}.v2_gr_clusters WHERE FALSE",
    ),
    f"CREATE TABLE {_SCHEMA}.v2_routers (router_id INT PRIMARY KEY, cluster_id CHAR(36), clusterset_id CHAR(36), "
    "router_name VARCHAR(64), product_name VARCHAR(64), address VARCHAR(64), version VARCHAR(32), "
    "last_check_in TIMESTAMP NULL, attributes JSON, options JSON)",
    f"INSERT INTO {_SCHEMA}.v2_routers VALUES (1, '{GROUP}', NULL, 'dyno', 'MySQL Router', 'client', NULL, NULL, "
    "JSON_OBJECT(), JSON_OBJECT())",
    _view(
        "v2_router_options",
        f"router_id, cluster_id, clusterset_id, options AS router_options FROM {_SCHEMA}.v2_routers",
    ),
    f"CREATE USER {_USER}@'%' IDENTIFIED BY '{_PASSWORD}'",
    f"GRANT SELECT, EXECUTE ON {_SCHEMA}.* TO {_USER}@'%'",
    f"GRANT INSERT, UPDATE, DELETE ON {_SCHEMA}.v2_routers TO {_USER}@'%'",
    f"GRANT SELECT ON performance_schema.* TO {_USER}@'%'",
)
"""Statements that make the schema, and the account that Router reads it by."""

SEVERAL_PRIMARIES = f"UPDATE {_SCHEMA}.mode SET primary_mode = 'mm'"
"""For a group in which all are written to."""


def configuration(
    folder: Path, host: str, *, several: bool, plugins: Path | None, destinations: str = f"metadata-cache://{CLUSTER}/"
) -> str:
    """The file that Router is started with. `plugins`: where they are, if not where it was built for."""
    writers = "round-robin" if several else "first-available"
    readers, by = ("PRIMARY_AND_SECONDARY", "round-robin") if several else ("SECONDARY", "round-robin-with-fallback")
    sections: dict[str, dict[str, object]] = {
        "DEFAULT": {
            "name": "dyno",
            # To its standard error, which is kept among the logs.
            "logging_folder": "",
            "runtime_folder": folder,
            "data_folder": folder,
            **({} if plugins is None else {"plugin_folder": plugins}),
            "keyring_path": folder / "keyring",
            "master_key_path": folder / "key",
            "dynamic_state": folder / "state.json",
            "connect_timeout": 1,
            "max_total_connections": _MOST_CONNECTIONS,
        },
        "logger": {"level": "INFO"},
        f"metadata_cache:{CLUSTER}": {
            "cluster_type": "gr",
            "router_id": 1,
            "user": _USER,
            "metadata_cluster": CLUSTER,
            "ttl": 0.5,
            "use_gr_notifications": 0,
            "connect_timeout": 1,
            "read_timeout": 2,
        },
    }
    for name, port, role, strategy in (
        ("rw", READ_WRITE_PORT, "PRIMARY", writers),
        ("ro", READ_ONLY_PORT, readers, by),
    ):
        sections[f"routing:{name}"] = {
            "bind_address": host,
            "bind_port": port,
            "protocol": "classic",
            "routing_strategy": strategy,
            "destinations": f"{destinations}?role={role}",
            "client_ssl_mode": "PASSTHROUGH",
            "server_ssl_mode": "AS_CLIENT",
            "max_connections": _MOST_CONNECTIONS,
        }
    return "\n".join(_section(name, keys) for name, keys in sections.items())


def _section(name: str, keys: Mapping[str, object]) -> str:
    return f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())


class Router(Front):
    """One that runs, in the network namespace of the client."""

    program = "mysqlrouter"
    ends_within_s = _LIMIT_S

    def __init__(self, host: LocalHost, logs: Path, words: Mapping[str, Sequence[str]], plugins: Path | None) -> None:
        """`words` start `mysqlrouter` and `mysqlrouter_keyring`."""
        super().__init__(host, logs)
        self._words = words
        self._plugins = plugins

    def start(self, under: Sequence[str], host: str, members: Sequence[str], *, several: bool) -> None:
        """`under` are the words that put it into the namespace, `members` hosts and ports. Raises RunError."""
        folder = self.make_folder()
        self._keep_password(folder)
        state = {
            "metadata-cache": {
                "group-replication-id": GROUP,
                "cluster-metadata-servers": [f"mysql://{member}" for member in members],
            },
            "version": "1.0.0",
        }
        (folder / "state.json").write_text(json.dumps(state))
        file = folder / "router.conf"
        file.write_text(configuration(folder, host, several=several, plugins=self._plugins))
        marker = f"--config={file}"
        self.begin([*under, *self._words["mysqlrouter"], marker], marker)

    def _keep_password(self, folder: Path) -> None:
        words = self._words["mysqlrouter_keyring"]
        where = [str(folder / "keyring"), f"--master-key-file={folder / 'key'}"]
        log = self._logs / "router-keyring"
        self._host.run([*words, "init", *where], limit=_LIMIT_S, log=log)
        self._host.run([*words, "set", *where, _USER, "password", _PASSWORD], limit=_LIMIT_S, log=log)

    def complaint(self) -> str | None:
        """Its last words where it ended by itself; None while it runs."""
        if self._process is None or self._process.wait(0) is None:
            return None
        return self._process.complaint(3) or "it said nothing"


def refuse_missing(programs: Mapping[str, Path | None]) -> dict[str, Path]:
    """All of them, where they are there. Raises RunError."""
    if missing := [name for name, path in programs.items() if path is None]:
        raise RunError(
            f"{', '.join(missing)} not found: have `dyno get mysql` make a folder with MySQL and its router, or "
            "install MySQL Router so that it is on the PATH"
        )
    return {name: path for name, path in programs.items() if path is not None}
