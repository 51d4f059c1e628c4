"""MySQL Group Replication: a group that chooses its own primary, and MySQL Router in front of it, which follows."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dyno import sql
from dyno.hosts import programs
from dyno.hosts.networks import CLIENT
from dyno.model.base import RunError
from dyno.model.endpoint import READ_ONLY
from dyno.systems.base import Place
from dyno.systems.cluster import Role, told_of
from dyno.systems.members import Member, ServerCluster, together
from dyno.systems.mysql import given_root, loading
from dyno.systems.mysql_member import (
    ALONE,
    REPLICA,
    REPLICA_PASSWORD,
    MysqlClusterOptions,
    MysqlMember,
    common_words,
    most_advanced,
)
from dyno.systems.router import (
    GROUP,
    READ_ONLY_PORT,
    READ_WRITE_PORT,
    SEVERAL_PRIMARIES,
    Router,
    refuse_missing,
)

_PLUGIN = "--plugin-load-add=group_replication.so"
_LOCAL_PORT = 33061
_FIRST_WEIGHT, _LIGHTER = 90, 10
_MESSAGE_CACHE = 128 << 20
"""The least that a node may keep of messages for one that comes back; 1 GiB would be MySQL's own."""
_PREFIX = "group_replication_"
_TELLING = (
    "group_replication_consistency", "group_replication_member_expel_timeout", "group_replication_poll_spin_loops",
    "group_replication_single_primary_mode", "group_replication_autorejoin_tries",
    "group_replication_exit_state_action", "group_replication_paxos_single_leader",
    "group_replication_flow_control_mode",
)  # fmt: skip
_OF_SESSIONS = ("group_replication_consistency",)
"""In force as soon as it is set. Router and dyno set it for sessions of theirs, which MySQL tells as a later source."""
_START = f"START GROUP_REPLICATION USER='{REPLICA}', PASSWORD='{REPLICA_PASSWORD}'"
_VIEW = "SELECT MEMBER_HOST, MEMBER_STATE, MEMBER_ROLE FROM performance_schema.replication_group_members"
_TRY_AGAIN_S = 0.5

ROLES: dict[str, Role] = {"PRIMARY": "primary", "SECONDARY": "secondary"}
View = dict[str, tuple[Role, str]]
"""Role and state by node."""


class GroupReplicationOptions(MysqlClusterOptions):
    """Settings of Group Replication are those of the servers: `group_replication_consistency` and others."""

    besides_pool = 256 << 20  # its cache of messages among it

    ours = MysqlClusterOptions.ours | {
        f"{_PREFIX}{name}" for name in (
            "bootstrap_group", "enforce_update_everywhere_checks", "group_name", "group_seeds", "local_address",
            "single_primary_mode", "start_on_boot",
        )
    }  # fmt: skip
    known = MysqlClusterOptions.known | frozenset(_TELLING)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        f"{_PREFIX}consistency": ("EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER", "BEFORE", "AFTER", "BEFORE_AND_AFTER"),
        f"{_PREFIX}exit_state_action": ("READ_ONLY", "ABORT_SERVER", "OFFLINE_MODE"),
        f"{_PREFIX}flow_control_mode": ("DISABLED", "QUOTA"),
        f"{_PREFIX}communication_stack": ("XCOM", "MYSQL"),
    }

    primaries: Annotated[Literal["single", "multi"], Field(description="whether one node is written to or all are")] = (
        "single"
    )


class GroupMember(MysqlMember):
    """One mysqld of a group."""

    # Else a question would wait until the node is in step, and be refused while it is none of the group.
    before_asking = ("SET SESSION group_replication_consistency = 'EVENTUAL'",)

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of the group are in force from the start of the group on: what was set later is only accepted.

        `group_replication_poll_spin_loops` is such a setting: SET GLOBAL changes what is shown, and nothing else.
        """
        asked, effective = super().read_settings(connection)
        rows = connection.rows(
            "SELECT i.VARIABLE_NAME, i.VARIABLE_SOURCE, g.VARIABLE_VALUE FROM performance_schema.variables_info i "
            "JOIN performance_schema.global_variables g USING (VARIABLE_NAME) "
            f"WHERE VARIABLE_NAME LIKE '{_PREFIX}%'"
        )
        for name, source, value in rows:
            if name in asked and source != "COMMAND_LINE" and name not in _OF_SESSIONS:
                effective[name] = f"{value}, but was set while it ran ({source})"
            elif name in _TELLING:
                effective.setdefault(name, value)
        return asked, effective


class GroupReplicationSystem(ServerCluster[GroupReplicationOptions]):
    """A group of mysqld."""

    kind = "group-replication"
    Options = GroupReplicationOptions
    forms_in_s = 18.0
    rejoins_in_s = 22.0
    by_majority = True

    _router: Router | None = None

    def member(self, place: Place) -> GroupMember:
        """A mysqld."""
        return GroupMember(self.options.of_member(), place)

    def provision(self, limit: float) -> dict[str, str]:
        """The router too."""
        begun = time.monotonic()
        router = _router_words()["mysqlrouter"]
        versions = super().provision(limit)
        left = limit - (time.monotonic() - begun)
        said = self.place.host.run([*router, "--version"], limit=left, log=self.place.logs / "router-version")
        found = re.search(r"\d+\.\d+(\.\d+)*", said)
        return {**versions, "mysqlrouter": found[0] if found else said.strip()}

    def words_alone(self) -> list[str]:
        """The plugin is there, since its settings would be unknown without it."""
        return [*ALONE, _PLUGIN, "--group-replication-start-on-boot=OFF"]

    def words(self, name: str) -> list[str]:
        """All that matters in its command, since a node that is killed forgets what was only set."""
        number = self.names.index(name)
        seeds = ",".join(f"{self.network.address(each)}:{_LOCAL_PORT}" for each in self.names)
        single = self.options.primaries == "single"
        of_group = {
            "group-name": GROUP,
            "start-on-boot": "OFF",
            "bootstrap-group": "OFF",
            "local-address": f"{self.network.address(name)}:{_LOCAL_PORT}",
            "group-seeds": seeds,
            "recovery-get-public-key": "ON",
            "single-primary-mode": "ON" if single else "OFF",
            "enforce-update-everywhere-checks": "OFF" if single else "ON",
            "member-weight": max(_FIRST_WEIGHT - _LIGHTER * number, 0),
            "message-cache-size": _MESSAGE_CACHE,
        }
        return [
            *common_words(number + 1, self.network.address(name)),
            _PLUGIN,
            *(f"--group-replication-{key}={value}" for key, value in of_group.items()),
        ]

    def form(self, deadline: float) -> None:
        """The most advanced begins the group; the others join at the same time; then Router finds them."""
        sets = {name: self._node(name).executed() for name in self.names}
        first = self._members[most_advanced(sets)]
        with told_of(first.node), first.ask(deadline - time.monotonic()) as connection:
            connection.rows("SET GLOBAL group_replication_bootstrap_group = ON")
            try:
                connection.rows(_START)
            finally:
                connection.rows("SET GLOBAL group_replication_bootstrap_group = OFF")
            if self.options.primaries == "multi":
                connection.rows(SEVERAL_PRIMARIES)
        joining = [member for member in self.members if member is not first]
        together(*(partial(self.rejoin, member, deadline) for member in joining))
        self.until(self.whole, deadline, "a group of all nodes")
        self._start_router(deadline)

    def _start_router(self, deadline: float) -> None:
        plugins = _router_plugins()
        self._router = Router(self.place.host, self.place.logs, _router_words(), plugins)
        self._router.start(
            self.network.words(CLIENT),
            self.network.address(CLIENT),
            [f"{self.network.address(name)}:3306" for name in self.names],
            several=self.options.primaries == "multi",
        )
        endpoint = self._reached()
        ways = [endpoint, endpoint.by(READ_ONLY)]

        def leads_there() -> bool:
            if self._router is not None and (said := self._router.complaint()) is not None:
                raise RunError(f"mysqlrouter ended as it started: {said}")
            try:
                for way in ways:
                    sql.connect(way, limit=1.0).close()
            except sql.SqlError:
                return False
            return True

        self.until(leads_there, deadline, "a way through Router")

    def ways(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Both ports of Router, which is where its clients are."""
        host = self.network.address(CLIENT)
        return {"host": host, "port": READ_WRITE_PORT}, {READ_ONLY: {"host": host, "port": READ_ONLY_PORT}}

    def helpers(self) -> dict[str, int]:
        """Router."""
        pid = None if self._router is None else self._router.pid
        return {} if pid is None else {"router": pid}

    def let_go(self) -> None:
        """End Router."""
        if self._router is not None:
            self._router.stop()

    def views(self) -> dict[str, View]:
        """What each node that can be asked says of all."""
        by_address = {self.network.address(name): name for name in self.names}

        def ask(member: Member[Any]) -> View:
            try:
                with member.ask() as connection:
                    rows = connection.rows(_VIEW)
            except sql.SqlError:
                return {}
            # One that is none of a group names no host.
            return {
                by_address.get(str(host), member.node): (ROLES.get(str(role), "none"), str(state))
                for host, state, role in rows
            }

        asked = [member for member in self.members if self.asks(member)]
        answers = together(*(partial(ask, member) for member in asked))
        return {member.node: view for member, view in zip(asked, answers, strict=True)}

    def view(self) -> View:
        """By the node that sees the most others in step; one that nobody else knows says itself how it is."""
        return merged(self.views(), self.names)

    def whole(self) -> bool:
        """Every node sees every node in step, and has what the most advanced has: one whose disk is full is ONLINE."""
        views = self.views()
        if len(views) < len(self.names) or any(_in_step(view) < len(self.names) for view in views.values()):
            return False
        nodes = [self._node(name) for name in self.names]
        try:
            sets = dict(zip(self.names, together(*(node.executed for node in nodes)), strict=True))
            most = sets[most_advanced(sets)]
            return all(together(*(partial(node.comes_to, most) for node in nodes)))
        except sql.SqlError:
            return False

    def _node(self, name: str) -> GroupMember:
        member = self._members[name]
        assert isinstance(member, GroupMember)
        return member

    def rejoin(self, member: Member[Any], deadline: float) -> None:
        """Until the group has it again: a node that was away may learn only later that it was put out."""
        said = ""
        while time.monotonic() < deadline:
            views = self.views()
            _, state = views.get(member.node, {}).get(member.node, ("none", "OFFLINE"))
            if state in ("OFFLINE", "ERROR"):
                try:
                    with member.ask(deadline - time.monotonic()) as connection:
                        if state == "ERROR":
                            connection.rows("STOP GROUP_REPLICATION")
                        connection.rows("SET GLOBAL offline_mode = OFF")
                        connection.rows(_START)
                except sql.SqlError as error:
                    said = str(error)  # the others may not have put out its earlier life yet
            elif is_known(member.node, views):
                return
            if member.running is None or member.running.wait(_TRY_AGAIN_S) is not None:
                raise RunError(f"{member.program} ended as it joined the group")
        raise RunError(f"it did not join the group in time: {said or 'nobody said why'}")

    def counted(self) -> dict[str, float]:
        """What the primary certified, and what it found in conflict."""
        primary = self.primary()
        if primary is None:
            return {}
        with primary.ask() as connection:
            ((conflicts, checked),) = connection.rows(
                "SELECT SUM(COUNT_CONFLICTS_DETECTED), SUM(COUNT_TRANSACTIONS_CHECKED) "
                "FROM performance_schema.replication_group_member_stats WHERE MEMBER_ID = @@server_uuid"
            )
        return {"cluster.conflicts": float(conflicts or 0), "cluster.certified": float(checked or 0)}


def _in_step(view: View) -> int:
    return sum(state == "ONLINE" for _, state in view.values())


def merged(views: dict[str, View], names: tuple[str, ...]) -> View:
    """One view of all: of the node that sees the most in step, itself among them."""
    able = {name: view for name, view in views.items() if view.get(name, ("none", ""))[1] == "ONLINE"}
    best = able[max(able, key=lambda name: _in_step(able[name]))] if able else {}
    found: View = {}
    for name in names:
        own = views.get(name, {}).get(name, ("none", "OFFLINE"))
        found[name] = best.get(name) or ("none", own[1] if own[1] != "ONLINE" else "alone")
    return found


def is_known(node: str, views: dict[str, View]) -> bool:
    """Whether a node is of the group by its own view and by that of most others, none of whom it misses."""
    own = views.get(node, {})
    if own.get(node, ("none", ""))[1] not in ("ONLINE", "RECOVERING"):
        return False
    if any(state == "UNREACHABLE" for _, state in own.values()):
        return False
    others = [view for name, view in views.items() if name != node]
    knowing = sum(view.get(node, ("none", ""))[1] in ("ONLINE", "RECOVERING") for view in others)
    return knowing * 2 >= len(others)


def _router_words() -> dict[str, list[str]]:
    """What Router's programs are started by, by name. Raises RunError where one is missing."""
    names, root = ("mysqlrouter", "mysqlrouter_keyring"), given_root()
    if root is None:
        found = refuse_missing({name: programs.find(name) for name in names})
        return {name: [str(path)] for name, path in found.items()}
    own = {path.parent for path in root.glob("usr/lib/**/libmysqlharness.so*")}
    paths = {name: root / "usr" / "bin" / name for name in names}
    found = refuse_missing({name: path if path.is_file() else None for name, path in paths.items()})
    return {name: [*loading(root, *sorted(own)), str(path)] for name, path in found.items()}


def _router_plugins() -> Path | None:
    """Where Router's plugins are in a folder that brings it."""
    root = given_root()
    if root is None:
        return None
    found = sorted(root.glob("usr/lib/**/routing.so"))
    return found[0].parent if found else None
