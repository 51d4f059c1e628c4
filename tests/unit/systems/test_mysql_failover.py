"""What the manager of MySQL's replication does, on servers that are made up: no real one fails midway when asked to."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dyno import sql
from dyno.model.base import RunError
from dyno.systems import mysql_replication
from dyno.systems.base import Place
from dyno.systems.manager import Manager
from dyno.systems.mysql_member import gtids
from dyno.systems.mysql_replication import _BEAT, _EXECUTED, _FOLLOWS, _RECEIVED, MysqlReplicationSystem

Gtids = set[tuple[str, int]]


def written(found: Gtids) -> str:
    return ",".join(f"{source}:{number}" for source, number in sorted(found))


def read(text: str) -> Gtids:
    return {(source, n) for source, spans in gtids(text).items() for a, b in spans for n in range(a, b + 1)}


class Node:
    """A server that keeps sets of transactions."""

    def __init__(self, name: str, others: dict[str, Node]) -> None:
        self.name, self.others = name, others
        self.up, self.closed, self.waits = True, True, False
        self.host: str | None = None
        self.io = self.applies = self.late = False
        self.executed: Gtids = set()
        self.received: Gtids = set()
        self.told: list[str] = []
        self.fails: dict[str, int] = {}
        """How a statement begins, and how often it fails from now on."""

    def follows(self, source: str) -> None:
        self.host, self.io, self.applies = source, True, True

    @property
    def source(self) -> Node | None:
        node = self.others.get(str(self.host))
        return node if node is not None and node.up and self.io and self.up else None

    def commit(self) -> bool:
        """As a client or the manager has it; in semi-sync only once a replica has it."""
        replicas = [node for node in self.others.values() if node.source is self]
        if self.closed or not self.up:
            return False
        self.executed.add((f"{self.name}000000-0000-0000-0000-000000000000", len(self.executed) + 1))
        for node in replicas:
            node.received |= self.executed
            if node.applies and not node.late:
                node.executed |= node.received
        return bool(replicas) or not self.waits

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        if not self.up:
            raise sql.SqlError(f"{self.name} does not answer")
        self.told.append(statement)
        for begins in self.fails:
            if statement.startswith(begins) and self.fails[begins] > 0:
                self.fails[begins] -= 1
                raise sql.SqlError(f"{self.name} fails: {statement}")
        return self.answer(statement)

    def answer(self, statement: str) -> list[tuple[Any, ...]]:
        match statement:
            case "SELECT 1":
                return [(1,)]
            case s if s == _BEAT:
                if not self.commit():
                    raise sql.SqlError("read-only, or it waits for a replica")
                return []
            case s if s == _FOLLOWS:
                state = None if self.host is None else "ON" if self.source else "CONNECTING" if self.io else "OFF"
                return [(int(self.closed), state, self.host)]
            case s if s == _RECEIVED:
                return [(written(self.executed | self.received),)]
            case s if s == _EXECUTED:
                had = written(self.executed)
                if self.late and self.applies:  # the moment after
                    self.executed |= self.received
                return [(had,)]
            case "STOP REPLICA IO_THREAD":
                self.io = False
            case "STOP REPLICA":
                self.io = self.applies = False
            case "START REPLICA":
                assert self.host is not None, "there is nobody to follow"
                self.io = self.applies = True
            case "RESET REPLICA ALL":
                self.host, self.received = None, set()
            case "SET GLOBAL super_read_only = ON":
                self.closed = True
            case "SET GLOBAL super_read_only = OFF":
                self.closed = False
            case "SET GLOBAL rpl_semi_sync_source_enabled = ON":
                self.waits = True
            case "SET GLOBAL rpl_semi_sync_source_enabled = OFF":
                self.waits = False
            case s if found := re.search(r"SOURCE_HOST = '(\w+)'", s):
                assert not self.io, "it has to be stopped first"
                self.host, self.received = found[1], set()
            case s if found := re.search(r"WAIT_FOR_EXECUTED_GTID_SET\('(.*)', ", s):
                if self.applies:
                    self.executed |= self.received
                return [(int(not read(found[1]) <= self.executed),)]
            case s if found := re.search(r"GTID_SUBSET\('(.*)', ", s):
                return [(int(read(found[1]) <= self.executed),)]
            case "SET GLOBAL read_only = OFF":
                pass
            case other:
                raise AssertionError(f"a server is not expected to be told {other}")
        return []


class Network:
    def __init__(self) -> None:
        self.holder: str | None = "n1"
        self.fails = 0

    def address(self, name: str) -> str:
        return name

    def path(self, name: str) -> str:
        return name

    def take(self, _address: str, node: str) -> None:
        if self.fails:
            self.fails -= 1
            raise RunError("the address cannot be taken")
        self.holder = node

    def give_up(self, _address: str, node: str) -> None:
        if self.holder == node:
            self.holder = None


class Cluster:
    """Three nodes of which n1 is the source, and the system that has them, with all that its manager is made of."""

    def __init__(self, folder: Path, **options: Any) -> None:
        kind = MysqlReplicationSystem
        place = Place(host=SimpleNamespace(), data=folder, logs=folder, core="")  # type: ignore[arg-type]
        self.system = kind(kind.Options.model_validate({"silent_for": "1 us", **options}), place)
        self.nodes: dict[str, Node] = {}
        self.nodes |= {name: Node(name, self.nodes) for name in self.system.names}
        self.network = Network()
        self.led: list[str] = []
        self.system._network = self.network  # type: ignore[assignment]
        self.system._balancer = SimpleNamespace(use=self.lead)  # type: ignore[assignment]
        self.system._manager = Manager(self.system._look, 1.0)
        self.system._line = self.line  # type: ignore[method-assign,assignment]
        self.system._lines = {name: self.line(name) for name in self.nodes}
        self.system._source, self.system._address = "n1", "10.0.0.101"
        for name in ("n2", "n3"):
            self.nodes[name].follows("n1")
            self.system._follows(name)
        self.nodes["n1"].closed = False
        self.nodes["n1"].waits = self.system.options.mode == "semi-sync"

    def line(self, name: str, _limit: float = 1.0) -> Any:
        return SimpleNamespace(rows=self.nodes[name].rows, close=lambda: None)

    def lead(self, _pool: str, nodes: frozenset[str]) -> bool:
        self.led = sorted(nodes)
        return True

    def look(self, times: int = 1) -> None:
        """As the manager does, which goes on after an error."""
        for _ in range(times):
            try:
                self.system._look()
            except RunError as error:
                self.system._tell(f"could not go on: {error}")

    def commits(self, times: int = 1) -> None:
        """By clients, where the address is."""
        for _ in range(times):
            assert self.network.holder is not None
            assert self.nodes[self.network.holder].commit()

    @property
    def said(self) -> str:
        assert self.system._manager is not None
        return "\n".join(text for _, text in self.system._manager.events)

    def is_led_by(self, name: str) -> None:
        """The address is there, it takes writes, and nobody else does that runs."""
        assert self.system._source == self.network.holder == name
        assert [node.name for node in self.nodes.values() if node.up and not node.closed] == [name]


@pytest.fixture(params=["async", "semi-sync"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path, mode=request.param)
    made.commits(3)
    made.look()
    assert made.led == ["n2", "n3"]
    return made


def test_a_source_that_does_not_answer_is_borne_for_a_while_and_then_another_is_promoted(cluster: Cluster) -> None:
    cluster.nodes["n1"].up = False
    cluster.look()
    assert cluster.network.holder == "n1"
    assert cluster.led == ["n2", "n3"], "they have what they had, and may be read"
    cluster.look()
    cluster.is_led_by("n2")
    assert cluster.nodes["n3"].host == "n2"
    assert cluster.led == ["n3"]
    cluster.commits()
    cluster.look()
    assert "n1 was silent for 0 ms; n2 was promoted" in cluster.said


def test_the_one_that_has_received_the_most_is_promoted_with_all_of_it(cluster: Cluster) -> None:
    cluster.nodes["n2"].io = False
    cluster.nodes["n3"].applies = False
    cluster.commits(2)
    cluster.nodes["n1"].up, cluster.nodes["n3"].applies = False, True
    received = set(cluster.nodes["n3"].received)
    cluster.look(2)
    cluster.is_led_by("n3")
    assert received <= cluster.nodes["n3"].executed
    cluster.commits()
    assert cluster.nodes["n2"].executed == cluster.nodes["n3"].executed


STEPS = (
    "STOP REPLICA IO_THREAD", "SELECT GTID_SUBTRACT", "SELECT WAIT_FOR", "STOP REPLICA", "RESET REPLICA ALL",
    "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF",
)  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_promotion_that_fails_midway_is_gone_on_with_at_the_next_look(cluster: Cluster, step: str) -> None:
    acknowledged = set(cluster.nodes["n1"].executed)
    cluster.nodes["n1"].up = False
    for name in ("n2", "n3"):
        cluster.nodes[name].fails[step] = 1
    cluster.look(2)
    assert cluster.network.holder in (None, "n1"), "a source that is dead may have it, and nobody else"
    cluster.look(2)
    assert cluster.network.holder in ("n2", "n3")
    cluster.is_led_by(cluster.network.holder)
    cluster.look()
    cluster.commits(2)
    other = "n3" if cluster.network.holder == "n2" else "n2"
    assert cluster.nodes[other].host == cluster.network.holder
    assert cluster.led == [other]
    assert acknowledged < cluster.nodes[other].executed == cluster.nodes[cluster.network.holder].executed


@pytest.mark.parametrize("step", STEPS)
def test_a_source_that_answers_again_before_another_was_promoted_has_its_address_back(
    cluster: Cluster, step: str
) -> None:
    cluster.nodes["n1"].up = False
    for name in ("n2", "n3"):
        cluster.nodes[name].fails[step] = 100
    cluster.look(3)
    cluster.nodes["n1"].up = True
    for name in ("n2", "n3"):
        cluster.nodes[name].fails.clear()
    cluster.look(2)
    cluster.is_led_by("n1")
    cluster.commits(2)
    cluster.look()
    assert cluster.led == ["n2", "n3"]
    assert cluster.nodes["n2"].executed == cluster.nodes["n3"].executed == cluster.nodes["n1"].executed


def test_replicas_go_on_receiving_after_a_promotion_that_failed_since_the_source_may_wait_for_them(
    cluster: Cluster,
) -> None:
    cluster.nodes["n1"].up = False
    cluster.nodes["n2"].fails["RESET REPLICA ALL"] = 100
    cluster.look(2)
    assert cluster.network.holder is None
    assert [cluster.nodes[name].io for name in ("n2", "n3")] == [True, True]
    assert "could not go on: n2 fails" in cluster.said


def test_an_address_that_could_not_be_taken_is_taken_at_the_next_look(cluster: Cluster) -> None:
    cluster.nodes["n1"].up = False
    cluster.network.fails = 1
    cluster.look(2)
    assert cluster.network.holder is None
    cluster.look(2)
    cluster.is_led_by("n2")
    cluster.commits()
    assert cluster.nodes["n3"].host == "n2"


def test_one_that_cannot_be_told_of_the_new_source_is_told_later(cluster: Cluster) -> None:
    cluster.nodes["n1"].up = False
    cluster.nodes["n3"].fails["CHANGE REPLICATION SOURCE"] = 1
    cluster.look(2)
    assert cluster.system._source == cluster.network.holder == "n2"
    assert cluster.led == ["n2"], "there is nobody else"
    assert cluster.nodes["n3"].host == "n1"
    cluster.look(1)
    assert cluster.nodes["n3"].host == "n2"
    cluster.look()
    assert cluster.led == ["n3"]


def test_where_no_replica_answers_the_source_has_its_address(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        node.up = False
    cluster.look(3)
    assert cluster.system._source == cluster.network.holder == "n1"
    assert "n1 does not answer, nor does any replica of it" in cluster.said
    cluster.nodes["n2"].up = cluster.nodes["n3"].up = True
    cluster.look()
    cluster.is_led_by("n2")


def deposed(cluster: Cluster) -> None:
    """n1 was stopped with commits that nobody received, n2 promoted, and n1 goes on."""
    cluster.nodes["n2"].io = cluster.nodes["n3"].io = False
    for _ in range(20):
        cluster.nodes["n1"].commit()
    cluster.nodes["n2"].io = cluster.nodes["n3"].io = True
    cluster.nodes["n1"].up = False
    cluster.look(2)
    cluster.nodes["n1"].told.clear()
    cluster.nodes["n1"].up = True


def test_a_deposed_source_takes_no_writes_from_the_first_look_on_and_is_not_read_from(cluster: Cluster) -> None:
    deposed(cluster)
    assert not cluster.nodes["n1"].closed
    cluster.look()
    cluster.is_led_by("n2")
    told = [each for each in cluster.nodes["n1"].told if not each.startswith("SELECT")]
    assert told[-1] == "SET GLOBAL super_read_only = ON"
    assert told[:-1] in ([], ["SET GLOBAL rpl_semi_sync_source_enabled = OFF"])
    cluster.look(2)
    assert cluster.led == ["n3"]
    assert "n1 took writes and is not the source: it is read-only now" in cluster.said
    assert cluster.said.count("read-only now") == 1


def test_a_stray_is_never_promoted_however_much_it_has(cluster: Cluster) -> None:
    deposed(cluster)
    cluster.look()
    cluster.commits(2)
    acknowledged = set(cluster.nodes["n2"].executed)
    assert len(cluster.nodes["n1"].executed) > len(acknowledged)
    cluster.nodes["n2"].up = False
    cluster.look(2)
    cluster.is_led_by("n3")
    assert acknowledged <= cluster.nodes["n3"].executed
    cluster.nodes["n3"].up = False
    cluster.look(4)
    assert cluster.system._source == "n3", "n1 lacks what was acknowledged since"
    assert cluster.nodes["n1"].closed


def test_one_that_has_what_the_new_source_has_not_follows_nobody(cluster: Cluster) -> None:
    cluster.nodes["n3"].executed.add(("e0000000-0000-0000-0000-000000000000", 1))
    cluster.nodes["n2"].executed |= {("n1000000-0000-0000-0000-000000000000", number) for number in (50, 51)}
    cluster.nodes["n1"].up = False
    cluster.look(3)
    assert cluster.nodes["n3"].host == "n1"
    assert "n3 has what n2 has not, and follows nobody" in cluster.said
    assert cluster.led == ["n2"]


def test_only_those_that_receive_from_the_source_are_read_from(cluster: Cluster) -> None:
    cluster.nodes["n3"].io = False
    cluster.look()
    assert cluster.led == ["n2"]
    cluster.nodes["n2"].host, cluster.nodes["n3"].io = "n3", True
    cluster.look()
    assert cluster.led == ["n3"]
    cluster.nodes["n2"].host = "n1"
    cluster.look()
    assert cluster.led == ["n2", "n3"]
    if cluster.system.options.mode == "async":
        cluster.nodes["n2"].io = cluster.nodes["n3"].io = False
        cluster.look()
        assert cluster.led == ["n1"]


def test_a_reader_that_owes_an_answer_is_read_from_until_it_counts_as_dead(cluster: Cluster) -> None:
    cluster.nodes["n3"].up = False
    cluster.look()
    assert cluster.led == ["n2", "n3"]
    cluster.look()
    assert cluster.led == ["n2"]


def test_the_planted_fault_promotes_the_last_and_throws_away_what_it_has_not_applied(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, promote="behind")
    cluster.nodes["n3"].applies = False
    cluster.commits(5)
    cluster.nodes["n1"].up = False
    cluster.look(2)
    assert cluster.system._source == cluster.network.holder == "n3"
    assert cluster.nodes["n3"].executed == set()
    assert "n2 has what n3 has not" in cluster.said


def test_a_manager_that_is_to_end_promotes_nobody_any_more(cluster: Cluster) -> None:
    cluster.nodes["n1"].up = False
    cluster.look()
    assert cluster.system._manager is not None
    cluster.system._manager.stop()
    cluster.look()
    assert cluster.system._source == "n1"
    assert "the cluster is ended" in cluster.said


def test_in_semi_sync_one_that_does_not_tell_what_it_has_is_waited_for_as_it_alone_may_have_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, mode="semi-sync")
    source, holder, other = (cluster.nodes[name] for name in ("n1", "n2", "n3"))
    cluster.look()
    other.io = False
    assert source.commit()
    (row,) = holder.received - other.received - other.executed
    other.io, source.up = True, False
    holder.fails = {"SELECT 1": 1}  # slow, once
    cluster.look(4)
    cluster.is_led_by("n2")
    assert row in holder.executed
    assert "n2 may have what no other replica has, and does not answer yet" in cluster.said


def test_in_semi_sync_one_that_never_tells_is_given_up_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path, mode="semi-sync")
    cluster.look()
    cluster.nodes["n1"].up = cluster.nodes["n2"].up = False
    cluster.look(6)
    assert cluster.system._source == "n1"
    monkeypatch.setattr(mysql_replication, "_TELLS_WITHIN_S", 0.0)
    cluster.look()
    cluster.is_led_by("n3")
    assert "n2 did not tell within 0 s what it has: what it alone has is lost" in cluster.said
    cluster.nodes["n2"].up = True
    cluster.look(2)
    assert "n2 follows n3" in cluster.said


def test_one_that_applies_still_what_the_new_source_lacks_is_stopped_before_it_is_asked(tmp_path: Path) -> None:
    # Between the question and its stop it had one more transaction, and followed a source that lacks it.
    cluster = Cluster(tmp_path, mode="async")
    cluster.look()
    cluster.nodes["n3"].late, cluster.nodes["n2"].io = True, False
    cluster.commits()
    cluster.nodes["n1"].up = False
    cluster.nodes["n3"].fails = {"SELECT 1": 1}  # slow, once
    cluster.look(3)
    cluster.is_led_by("n2")
    assert cluster.nodes["n3"].host == "n2"
    assert cluster.nodes["n3"].executed <= cluster.nodes["n2"].executed
