"""MySQL's own replication, asynchronous or semi-synchronous: one source, a manager that promotes, a virtual address.

The manager has a place of its own in the network, as somebody who watches from a third machine: it writes to the source
again and again, and where that does not succeed it takes the virtual address away (so that nobody is told of a commit
any more), promotes the replica that has received the most, and has the others follow it. What of this fails it goes on
with at its next look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dyno import sql
from dyno.hosts.networks import CLIENT
from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.units import Duration, PositiveDuration, format_duration
from dyno.systems.balancer import Balancer
from dyno.systems.base import Place
from dyno.systems.cluster import Role, told_of
from dyno.systems.managed import ManagedCluster
from dyno.systems.manager import Line, Manager, Patience, held
from dyno.systems.members import ADMIN, ADMIN_PASSWORD, CATCHES_UP_S, PORT, Member, as_admin, together
from dyno.systems.mysql_member import (
    ALONE,
    HEARTBEAT,
    REPLICA,
    REPLICA_PASSWORD,
    MysqlClusterOptions,
    MysqlMember,
    common_words,
    literal,
    most_advanced,
)

MANAGER = "manager"
READ_ONLY_PORT = 6447
_READ = "read"
_ANSWERS_WITHIN_S = 1.0  # to its manager
_STEP_S = 5.0  # of what the manager does; what takes longer is gone on with at its next look
_TELLS_WITHIN_S = 20.0
"""What it has received, by a replica that answers: one that is passed over may have what nobody else has."""
_JOINS_WITHIN_S = 60.0
_LATE_BESIDES_S = 3.0  # SOURCE_DELAY goes by whole seconds, and what is applied late takes its time too
_NEVER_ASYNCHRONOUS_MS = 3_600_000
"""How long a source waits for a replica before it goes on without: MySQL's own 10 s would give up what semi-sync
promises just when it matters. A study may set `rpl_semi_sync_source_timeout`."""
_SEMI_SYNC = (
    "--plugin-load-add=semisync_source.so",
    "--plugin-load-add=semisync_replica.so",
    f"--rpl-semi-sync-source-timeout={_NEVER_ASYNCHRONOUS_MS}",
    "--rpl-semi-sync-replica-enabled=ON",
)
_BEAT = f"REPLACE INTO {HEARTBEAT} VALUES (1, NOW(6))"
_EXECUTED = "SELECT @@GLOBAL.gtid_executed"
_RECEIVED = (
    "SELECT GTID_SUBTRACT(CONCAT_WS(',', NULLIF((SELECT RECEIVED_TRANSACTION_SET "
    "FROM performance_schema.replication_connection_status), ''), @@GLOBAL.gtid_executed), '')"
)
"""All that a replica has, applied or not; subtracting nothing is how MySQL joins two sets."""
_FOLLOWS = (
    "SELECT @@GLOBAL.super_read_only, "
    "(SELECT SERVICE_STATE FROM performance_schema.replication_connection_status), "
    "(SELECT HOST FROM performance_schema.replication_connection_configuration)"
)
_THREADS = (
    "SELECT c.SERVICE_STATE, a.SERVICE_STATE FROM performance_schema.replication_connection_status c "
    "JOIN performance_schema.replication_applier_status a USING (CHANNEL_NAME)"
)


class MysqlReplicationOptions(MysqlClusterOptions):
    """How commits come to the replicas, and when and which of them is promoted."""

    ours: ClassVar[frozenset[str]] = MysqlClusterOptions.ours | {
        "rpl_semi_sync_replica_enabled", "rpl_semi_sync_source_enabled",
    }  # fmt: skip
    known = MysqlClusterOptions.known | {"rpl_semi_sync_source_timeout", "rpl_semi_sync_source_wait_point"}
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rpl_semi_sync_source_wait_point": ("AFTER_SYNC", "AFTER_COMMIT")
    }

    mode: Annotated[
        Literal["async", "semi-sync"],
        Field(description="whether a commit waits until a replica has it in its relay log"),
    ] = "async"
    check_every: Annotated[PositiveDuration, Field(description="how often the manager writes to the source")] = 0.5
    silent_for: Annotated[
        PositiveDuration, Field(description="how long a source has to answer no write before another is promoted")
    ] = 3.0
    promote: Annotated[
        Literal["most-advanced", "behind"],
        Field(
            description="which replica the manager promotes; behind plants a fault: the last one applies late "
            "(behind_by), is the one promoted, and what it has not applied by then is thrown away"
        ),
    ] = "most-advanced"
    behind_by: Annotated[Duration, Field(ge=1, description="of promote: behind, in whole seconds")] = 5.0


@dataclass(frozen=True)
class Seen:
    """What the manager sees of a node at one look."""

    answered: bool
    alive: bool
    """It answered, or did so not long ago."""
    is_open: bool = False
    """Whether it is known to take writes."""
    receives: bool = False
    """Whether it receives what the source commits, as far as it knows."""


class MysqlReplicationSystem(ManagedCluster[MysqlReplicationOptions]):
    """One mysqld that is written to, others that follow."""

    kind = "mysql-replication"
    Options = MysqlReplicationOptions
    forms_in_s = 10.0
    rejoins_in_s = 26.0
    besides = (MANAGER,)

    _source: str = ""
    _read: frozenset[str] = frozenset()
    _address: str = ""

    def __init__(self, options: MysqlReplicationOptions, place: Place) -> None:
        super().__init__(options, place, options.silent_for)
        self._changing = threading.RLock()
        """Held by whoever changes who follows whom: the manager, and whoever mends."""
        self._followers: set[str] = set()
        """Those that were made to follow the source that there is now: they alone may be read from, and be promoted."""
        self._halted: set[str] = set()
        """Those whose replication the manager stopped, and has not had go on yet."""
        self._given_up_at: float | None = None
        """Since when nobody has the address (time.monotonic): the source was given up, and none was promoted yet."""

    def member(self, place: Place) -> MysqlMember:
        """A mysqld."""
        return MysqlMember(self.options.of_member(), place)

    def _plugins(self) -> tuple[str, ...]:
        return _SEMI_SYNC if self.options.mode == "semi-sync" else ()

    def words_alone(self) -> list[str]:
        """The plugins are there, since their settings would be unknown without them."""
        return [*ALONE, *self._plugins()]

    def words(self, name: str) -> list[str]:
        """All come up read-only: which of them is written to is decided then, also after a kill."""
        number = self.names.index(name)
        common = common_words(number + 1, self.network.address(name))
        return [*common, *self._plugins(), "--super-read-only=ON"]

    # Forming it

    def form(self, deadline: float) -> None:
        """The most advanced is the source; the others follow; then the manager begins."""
        self._followers, self._halted, self._given_up_at = set(), set(), None
        self._patience = Patience(self.options.silent_for)
        sets = dict(zip(self.names, together(*(self._replica(name).executed for name in self.names)), strict=True))
        self._source = most_advanced(sets)
        self._address = self.network.virtual(0)
        self._write_to(self._replica(self._source), deadline)
        followers = [name for name in self.names if name != self._source]
        together(*(partial(self._follow, name) for name in followers))
        self.network.take(self._address, self._source)
        self._balancer = Balancer(self.place.host, self.place.logs)
        addresses = {name: self.network.address(name) for name in self.names}
        self._balancer.start(
            self.network.words(CLIENT), self.network.address(CLIENT), {_READ: READ_ONLY_PORT}, addresses
        )
        self._read_from(set(followers))
        self.until(self.whole, deadline, "a source with its replicas")
        self._attest_mode(deadline)
        self._lines = {name: self._line(name, _ANSWERS_WITHIN_S) for name in self.names}
        self._manager = Manager(self._look, self.options.check_every)
        self._manager.start()

    def _replica(self, name: str) -> MysqlMember:
        member = self._members[name]
        assert isinstance(member, MysqlMember)
        return member

    def _write_to(self, member: Member[Any], deadline: float) -> None:
        with told_of(member.node), member.ask(deadline - time.monotonic()) as connection:
            for statement in self._opening():
                connection.rows(statement)

    def _opening(self) -> Iterator[str]:
        """What makes a source of a server that follows nobody."""
        if self.options.mode == "semi-sync":
            yield "SET GLOBAL rpl_semi_sync_source_enabled = ON"
        yield "SET GLOBAL super_read_only = OFF"
        yield "SET GLOBAL read_only = OFF"

    def _refusing_writes(self) -> Iterator[str]:
        """What makes a source that still runs one no more; commits that wait for replicas would keep it from that."""
        if self.options.mode == "semi-sync":
            yield "SET GLOBAL rpl_semi_sync_source_enabled = OFF"
        yield "SET GLOBAL super_read_only = ON"

    def _closing(self) -> Iterator[str]:
        """What a node begins with that is to follow another."""
        yield from self._refusing_writes()
        yield "STOP REPLICA"

    def _follow(self, name: str) -> None:
        """Have a node follow the source from where it is."""
        member = self._members[name]
        with told_of(member.node), member.ask(_JOINS_WITHIN_S) as connection:
            self._make_replica(connection, late=self._late(name))
        self._follows(name)

    def _follows(self, name: str) -> None:
        self._followers.add(name)
        self._halted.discard(name)

    def _late(self, name: str) -> int:
        """Seconds by which a replica applies late: the planted fault is there from the beginning."""
        planted = self.options.promote == "behind" and name == self.names[-1] and self._source == self.names[0]
        return round(self.options.behind_by) if planted else 0

    def _make_replica(self, connection: sql.Connection | Line, *, late: int) -> None:
        for statement in self._closing():
            connection.rows(statement)
        source = {
            "SOURCE_HOST": literal(self.network.address(self._source)),
            "SOURCE_PORT": PORT,
            "SOURCE_USER": literal(REPLICA),
            "SOURCE_PASSWORD": literal(REPLICA_PASSWORD),
            "SOURCE_AUTO_POSITION": 1,
            "GET_SOURCE_PUBLIC_KEY": 1,
            "SOURCE_CONNECT_RETRY": 1,
            "SOURCE_HEARTBEAT_PERIOD": 1,
            "SOURCE_DELAY": late,
        }
        words = ", ".join(f"{key} = {value}" for key, value in source.items())
        connection.rows(f"CHANGE REPLICATION SOURCE TO {words}")
        connection.rows("START REPLICA")

    def _attest_mode(self, deadline: float) -> None:
        """That commits do wait for replicas is told by the source's status, not by its settings."""
        if self.options.mode != "semi-sync":
            return
        told: dict[str, str] = {}

        def waits() -> bool:
            with self._members[self._source].ask() as connection:
                told.update(connection.rows("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_%'"))
            followers = int(told["Rpl_semi_sync_source_clients"])
            return told["Rpl_semi_sync_source_status"] == "ON" and followers == len(self.names) - 1

        try:
            self.until(waits, deadline, "semi-sync with every replica")
        except RunError as error:
            raise InvalidRun(f"mode semi-sync is not effective: {told}") from error

    def ways(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """The virtual address, wherever it is; haproxy in front of the replicas."""
        read = {"host": self.network.address(CLIENT), "port": READ_ONLY_PORT}
        return {"host": self._address, "port": PORT}, {READ_ONLY: read}

    # The manager

    def _line(self, name: str, limit: float) -> Line:
        at = Endpoint(self.backend, self.address(name), namespace=str(self.network.path(MANAGER)))
        return Line(as_admin(at), limit)

    def _look(self) -> None:
        with self._changing:
            answers = together(*(partial(self._ask_how_it_is, name) for name in self.names))
            seen = dict(zip(self.names, answers, strict=True))
            for name in self.names:
                if name != self._source and seen[name].is_open:
                    self._close(name)
            if self._given_up_at is not None and seen[self._source].answered:
                self._give_back("answers again")
            if self._given_up_at is not None or not seen[self._source].alive:
                self._fail_over()
                return
            for name in sorted(self._halted):
                if seen[name].answered:
                    self._have_follow(name)
            if seen[self._source].answered:
                # Else all of them may have lost it, and have what they had.
                self._read_from({name for name in self._followers if seen[name].receives})

    def _ask_how_it_is(self, name: str) -> Seen:
        """Of the source whether it can be written to: one whose disk is full answers all else."""
        is_source = name == self._source
        try:
            rows = self._lines[name].rows(_BEAT if is_source else _FOLLOWS)
        except sql.SqlError:
            alive = self._patience.told(name, answered=False)
            return Seen(answered=False, alive=alive, receives=alive and name in self._read)
        self._patience.told(name, answered=True)
        if is_source:
            return Seen(answered=True, alive=True)
        closed, receives, host = rows[0]
        of_source = str(host) == self.network.address(self._source)
        return Seen(answered=True, alive=True, is_open=not int(closed), receives=of_source and str(receives) == "ON")

    def _read_from(self, names: set[str]) -> None:
        """Have readers led to these, and to the source where there is none."""
        assert self._balancer is not None
        self._read = frozenset(names or {self._source})
        self._balancer.use(_READ, self._read)

    def _close(self, name: str) -> None:
        """Have one that was a source take no writes, as soon as it can be reached: it knows of no other."""
        with suppress(sql.SqlError), closing(self._line(name, _STEP_S)) as line:
            for statement in self._refusing_writes():
                line.rows(statement)
            self._tell(f"{name} took writes and is not the source: it is read-only now")

    def _tell(self, text: str) -> None:
        if self._manager is not None:
            self._manager.tell(text)

    def _fail_over(self) -> None:
        """In this order: what nobody is told any more cannot be lost, and what a replica has received is kept.

        What fails is tried again at the next look, and until then replicas go on receiving: in semi-sync the source, if
        it is there again, would else wait for them for ever.
        """
        old = self._source
        if self._given_up_at is None:
            self.network.give_up(self._address, old)
            self._given_up_at = time.monotonic()
        try:
            with self._replicas_to_choose_from() as (lines, received):
                if not lines:
                    self._give_back("does not answer, nor does any replica of it")
                    return
                self._wait_for_all_to_tell(self._followers - lines.keys())
                new = self._choice(received)
                self._promote(lines[new], received[new])
        except RunError:
            self._have_all_follow()
            raise
        took = time.monotonic() - self._given_up_at
        self._source = new
        self._followers.clear()
        self._halted.discard(new)
        self.network.take(self._address, new)
        self._given_up_at = None
        self._patience = Patience(self.options.silent_for)
        self._tell(
            f"{old} was silent for {format_duration(self.options.silent_for)}; {new} was promoted within {took:.3f} s"
        )
        self._have_all_follow()
        self._read_from(set(self._followers))

    def _give_back(self, why: str) -> None:
        """The source has its address again."""
        self.network.take(self._address, self._source)
        self._given_up_at = None
        self._tell(f"{self._source} {why}: it has its address, and stays the source")
        self._have_all_follow()

    @contextmanager
    def _replicas_to_choose_from(self) -> Iterator[tuple[dict[str, Line], dict[str, str]]]:
        """Of those that followed the source those that answer, each with what it has received: no more comes to them.

        One that did not follow may have what nobody was told of, and lacks what was acknowledged since.
        """
        lines = {name: self._line(name, _TELLS_WITHIN_S) for name in sorted(self._followers)}
        received: dict[str, str] = {}

        def ask(name: str) -> None:
            with suppress(sql.SqlError):
                self._halted.add(name)  # whether it was or not: it follows a source that is given up
                self._lines[name].rows("SELECT 1")  # one that does not answer is not waited for
                lines[name].rows("STOP REPLICA IO_THREAD")
                received[name] = str(lines[name].rows(_RECEIVED)[0][0])

        together(*(partial(ask, name) for name in lines))
        try:
            yield {name: line for name, line in lines.items() if name in received}, received
        finally:
            for line in lines.values():
                line.close()

    def _wait_for_all_to_tell(self, silent: Set[str]) -> None:
        """Replicas that do not tell what they have. Raises RunError where they may yet.

        In semi-sync a commit waits for one replica, whichever, and that may be the silent one.
        """
        if not silent or self.options.mode != "semi-sync":
            return
        assert self._given_up_at is not None
        names = " and ".join(sorted(silent))
        if time.monotonic() - self._given_up_at < _TELLS_WITHIN_S:
            raise RunError(f"{names} may have what no other replica has, and does not answer yet")
        self._tell(f"{names} did not tell within {_TELLS_WITHIN_S:g} s what it has: what it alone has is lost")

    def _choice(self, received: dict[str, str]) -> str:
        last = self.names[-1]
        return last if self.options.promote == "behind" and last in received else most_advanced(received)

    def _promote(self, line: Line, received: str) -> None:
        assert self._manager is not None
        if self.options.promote != "behind":
            waited = line.rows(f"SELECT WAIT_FOR_EXECUTED_GTID_SET({literal(received)}, {_STEP_S - 1})")
            if waited[0][0] != 0:
                raise RunError("the replica to be promoted is not at the end of what it has received yet")
        for statement in ("STOP REPLICA", "RESET REPLICA ALL", *self._opening()):
            self._manager.go_on()
            line.rows(statement)

    def _have_all_follow(self) -> None:
        for name in sorted(self._halted):
            self._have_follow(name)

    def _have_follow(self, name: str) -> None:
        """Have one that was halted go on, after the source that there is now; one that cannot be told is told later.

        Where it has what that source has not, it follows nobody until it is mended.
        """
        with suppress(sql.SqlError), closing(self._line(name, _STEP_S)) as line:
            ((_, _, host),) = line.rows(_FOLLOWS)
            if name not in self._followers:
                line.rows("STOP REPLICA")  # before it is asked what it has, which would else become more
            if name not in self._followers and not self._source_has_all_of(line):
                self._halted.discard(name)
                self._tell(f"{name} has what {self._source} has not, and follows nobody")
                return
            if str(host) == self.network.address(self._source):
                line.rows("START REPLICA")  # to tell it once more whom to follow would have it forget what it received
            else:
                self._make_replica(line, late=self._late(name))
                # In semi-sync nothing is committed before: it tells what an outage waited for.
                self._tell(f"{name} follows {self._source}")
            self._follows(name)

    def _source_has_all_of(self, replica: Line) -> bool:
        """Whether the source has whatever a replica has; else that one has to be made anew."""
        (executed,) = replica.rows(_EXECUTED)[0]
        with closing(self._line(self._source, _STEP_S)) as source:
            return bool(source.rows(f"SELECT GTID_SUBSET({literal(executed)}, @@GLOBAL.gtid_executed)")[0][0])

    # Mending

    def rejoin(self, member: Member[Any], deadline: float) -> None:
        """As the source that it still is, or as a replica; one that has what the source has not is made anew."""
        with held(self._changing, deadline - time.monotonic()):
            if member.node == self._source:
                self._write_to(member, deadline)
                self.network.take(self._address, self._source)
                self._given_up_at = None
            else:
                self._be_replica(member, deadline)
            strayed = [name for name in self.names if name not in (self._source, member.node)]
            for name in strayed:
                other = self._members[name]
                if self.asks(other) and self._is_led_astray(other):
                    self._be_replica(other, deadline)
            self._patience.told(member.node, answered=True)

    def _is_led_astray(self, member: Member[Any]) -> bool:
        """Whether a replica follows nobody, since it was left behind when another was promoted."""
        with member.ask() as connection:
            rows = connection.rows("SELECT HOST FROM performance_schema.replication_connection_configuration")
        return [str(row[0]) for row in rows] != [self.network.address(self._source)]

    def _be_replica(self, member: Member[Any], deadline: float) -> None:
        # Closing waits for commits that go on, and one whose disk was full looks once a minute whether it is.
        with member.ask(deadline - time.monotonic()) as connection:
            for statement in self._closing():
                connection.rows(statement)
            executed = str(connection.value(_EXECUTED))
        with self._members[self._source].ask() as source:
            has_all = source.value("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", executed)
        if not has_all:
            with self._not_waiting_for_nobody():
                self._make_anew(member, deadline)
        self._follow(member.node)

    @contextmanager
    def _not_waiting_for_nobody(self) -> Iterator[None]:
        """Within, a source without a replica commits alone: a clone waits for its commits, and these for a replica."""
        source = self._members[self._source]
        alone = self.options.mode == "semi-sync" and self._acknowledging(source) == 0
        if alone:
            with source.ask() as connection:
                connection.rows("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
            self._tell(f"{source.node} commits without a replica, since there is none, until there is a clone")
        try:
            yield
        finally:
            if alone:
                with source.ask() as connection:
                    connection.rows("SET GLOBAL rpl_semi_sync_source_enabled = ON")

    def _acknowledging(self, source: Member[Any]) -> int:
        with source.ask() as connection:
            told = connection.rows("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'")
        return int(told[0][1])

    def _make_anew(self, member: Member[Any], deadline: float) -> None:
        """A clone of the source: its own data have what nobody else has."""
        donor = f"{self.network.address(self._source)}:{PORT}"
        with member.ask(deadline - time.monotonic()) as connection:
            connection.rows("RESET REPLICA ALL")
            connection.rows("SET GLOBAL super_read_only = OFF")
            connection.rows(f"SET GLOBAL clone_valid_donor_list = {literal(donor)}")
            # It cannot start itself again, and says so; what it says if it cannot clone is another thing.
            try:
                connection.rows(
                    f"CLONE INSTANCE FROM {ADMIN}@{literal(self.network.address(self._source))}:{PORT} "
                    f"IDENTIFIED BY {literal(ADMIN_PASSWORD)}"
                )
            except sql.SqlError as error:
                if member.running is None or member.running.wait(_JOINS_WITHIN_S) is None:
                    raise RunError(f"it cannot be made anew from {self._source}: {error}") from error
        member.end_process(0.0)
        member.start_again(max(deadline - time.monotonic(), 0.1))
        member.ready(deadline - time.monotonic())
        self._tell(f"{member.node} had what {self._source} has not, and was made anew as a clone of it")

    # Its own view

    def view(self) -> dict[str, tuple[Role, str]]:
        """Who is written to is as the manager has it; the others say how they follow."""

        def ask(member: Member[Any]) -> tuple[Role, str]:
            try:
                with member.ask() as connection:
                    if member.node == self._source:
                        closed = int(connection.value("SELECT @@GLOBAL.super_read_only"))
                        return ("none", "read-only") if closed else ("primary", "read-write")
                    rows = connection.rows(_THREADS)
            except sql.SqlError:
                return "none", "does not answer"
            if not rows:
                return "none", "follows nobody"
            receives, applies = map(str, rows[0])
            return "secondary" if applies == "ON" else "none", f"receives {receives}, applies {applies}"

        asked = [member for member in self.members if self.asks(member)]
        answers = dict(zip((m.node for m in asked), together(*(partial(ask, m) for m in asked)), strict=True))
        return {name: answers.get(name, ("none", "does not answer")) for name in self.names}

    def whole(self) -> bool:
        """Every other node follows the source, and has applied what the source had when it was asked."""
        view = self.view()
        if view[self._source][0] != "primary":
            return False
        others = [name for name in self.names if name != self._source]
        if any(view[name][1] != "receives ON, applies ON" for name in others):
            return False
        try:
            executed = self._replica(self._source).executed()
            return all(together(*(partial(self._has, name, executed) for name in others)))
        except sql.SqlError:
            return False

    def _has(self, name: str, executed: str) -> bool:
        late = self._late(name)
        return self._replica(name).comes_to(executed, late + _LATE_BESIDES_S if late else CATCHES_UP_S)

    def counted(self) -> dict[str, float]:
        """Of the source: commits that no replica had when they were answered."""
        if self.options.mode != "semi-sync" or (primary := self.primary()) is None:
            return {}
        with primary.ask() as connection:
            told: dict[str, str] = dict(connection.rows("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_%'"))
        return {
            "cluster.unprotected": float(told["Rpl_semi_sync_source_no_tx"]),
            "cluster.certified": float(told["Rpl_semi_sync_source_yes_tx"]),
        }
