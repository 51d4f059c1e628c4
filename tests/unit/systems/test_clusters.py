"""What clusters decide, without a server: which node a fault strikes, who is promoted, what balancers are told."""

from __future__ import annotations

import configparser
import random
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from dyno import sql
from dyno.model.base import RunError
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.faults import KINDS, Fault, Struck
from dyno.model.study import Machine
from dyno.systems import balancer, galera, router
from dyno.systems.base import Place
from dyno.systems.cluster import NodeState, choose
from dyno.systems.galera import GaleraOptions, GaleraSystem, Wsrep, next_writer, provider_settings
from dyno.systems.group_replication import GroupReplicationOptions, GroupReplicationSystem, View, is_known, merged
from dyno.systems.manager import Manager, Patience, held
from dyno.systems.members import together
from dyno.systems.mysql_member import MysqlClusterOptions, gtid_count, gtids, literal, most_advanced
from dyno.systems.mysql_replication import MysqlReplicationOptions, MysqlReplicationSystem
from dyno.systems.replicated_disk import ReplicatedDiskOptions, ReplicatedDiskSystem
from tests.making import until

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "4f22fa47-71ca-11e1-9e33-c80aa9429562"


# The sets are the examples of MySQL's manual, "GTID Format and Storage".
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (f"{SOURCE}:23", 1),
        (f"{SOURCE}:1-5", 5),
        (f"{SOURCE}:1-3:11:47-49", 7),
        (f"{SOURCE}:1-3,\n{OTHER}:15-21", 10),
        (f"{SOURCE}:Domain_1:1-3:11:47-52", 10),
        (f"{SOURCE}:Domain_1:1-3:15-21:Domain_2:8-52", 55),
    ],
)
def test_transactions_of_a_set_are_counted_as_mysql_writes_it(text: str, count: int) -> None:
    assert gtid_count(text) == count


def test_transactions_with_a_tag_are_those_of_another_source() -> None:
    assert gtids(f"{SOURCE}:1:Domain_1:2") == {SOURCE: [(1, 1)], f"{SOURCE}:Domain_1": [(2, 2)]}


def test_the_node_with_the_most_transactions_is_the_most_advanced_and_the_first_of_equals() -> None:
    assert most_advanced({"n2": f"{SOURCE}:1-9", "n3": f"{SOURCE}:1-10"}) == "n3"
    assert most_advanced({"n2": f"{SOURCE}:1-9", "n3": f"{SOURCE}:1-9"}) == "n2"
    assert most_advanced({"n1": "", "n2": ""}) == "n1"


def test_a_text_in_a_statement_stays_a_text() -> None:
    assert literal("it's a \\") == "'it''s a \\\\'"


NODES = (
    NodeState("n1", "10.0.0.11", 1, "primary", "ONLINE"),
    NodeState("n2", "10.0.0.12", 2, "secondary", "ONLINE"),
    NodeState("n3", "10.0.0.13", None, "secondary", "ONLINE"),
    NodeState("n4", "10.0.0.14", 4, "none", "RECOVERING"),
)


def struck(node: str) -> set[str]:
    fault = Fault.model_validate({"kind": "kill", "node": node})
    return {choose(NODES, fault, random.Random(seed)).name for seed in range(50)}


def test_a_fault_strikes_a_node_of_its_role_that_runs() -> None:
    assert struck("primary") == {"n1"}
    assert struck("secondary") == {"n2"}
    assert struck("any") == {"n1", "n2", "n4"}


def test_where_no_node_is_as_a_fault_asks_it_is_told_how_all_are() -> None:
    with pytest.raises(RunError, match=r"there is no primary to be struck: n2 is secondary \(ONLINE\), n3 is"):
        choose(NODES[1:], Fault(kind="kill"), random.Random(1))


@pytest.mark.parametrize(
    ("system", "options"),
    [
        (GroupReplicationSystem, GroupReplicationOptions),
        (GaleraSystem, GaleraOptions),
        (MysqlReplicationSystem, MysqlReplicationOptions),
    ],
    ids=lambda each: str(getattr(each, "kind", "")),
)
def test_faults_of_the_disk_need_one_of_the_nodes_own(system: Any, options: Any) -> None:
    shared, own = options.model_validate({}), options.model_validate({"node_disk": "1 GiB"})
    refused = {kind for kind in KINDS if system.why_not_struck(shared, kind)}
    assert refused == {"disk-full", "slow-disk"}
    assert "node_disk" in system.why_not_struck(shared, "disk-full")
    assert not any(system.why_not_struck(own, kind) for kind in KINDS)


@pytest.mark.parametrize(
    ("kind", "options", "told"),
    [
        (GroupReplicationOptions, {"group_replication_group_name": "x"}, "group_replication_group_name is dyno's own"),
        (GroupReplicationOptions, {"log_bin": False}, "log_bin is dyno's own"),
        (GroupReplicationOptions, {"primaries": "two"}, "'single' or 'multi'"),
        (MysqlReplicationOptions, {"rpl_semi_sync_source_enabled": True}, "is dyno's own"),
        (MysqlReplicationOptions, {"behind_by": "100 ms"}, "greater than or equal to 1"),
        (MysqlReplicationOptions, {"nodes": 1}, "greater than or equal to 2"),
        (GaleraOptions, {"wsrep_on": False}, "wsrep_on is dyno's own"),
        (GaleraOptions, {"provider": {"gmcast.listen_addr": "x"}}, "no setting of Galera's that a study may make"),
        (GaleraOptions, {"provider": {"evs": "x"}}, "such as evs.suspect_timeout"),
        (GaleraOptions, {"writer": "all"}, "unknown setting 'writer'; did you mean 'writers'?"),
        (GroupReplicationOptions, {"node_dsik": "1 GiB"}, "did you mean 'node_disk'?"),
        (GroupReplicationOptions, {"sync_binlogg": 1}, "unknown setting 'sync_binlogg'; did you mean 'sync_binlog'?"),
        (MysqlReplicationOptions, {"promotes": "behind"}, "did you mean 'promote'?"),
        (GroupReplicationOptions, {"group_replication_consistency": "BEFOR"}, "one of EVENTUAL, .*; not 'BEFOR'"),
        (GroupReplicationOptions, {"group_replication_consistency": 5}, "one of EVENTUAL, .*; not '5'"),
        (MysqlReplicationOptions, {"rpl_semi_sync_source_wait_point": "AFTER"}, "one of AFTER_SYNC, AFTER_COMMIT"),
    ],
)
def test_what_cannot_be_set_is_refused(kind: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        kind.model_validate(options)


def test_choices_are_taken_as_servers_take_them_and_unknown_settings_are_left_to_the_server() -> None:
    for value in ("before", "BEFORE_AND_AFTER", 4):
        GroupReplicationOptions.model_validate({"group_replication_consistency": value})
    # Each of these differs from one that is known by more than a slip, or is another one that there is.
    for name in ("innodb_io_capacity_max", "innodb_log_file_size", "sql_mode", "connect_timeout", "sync_frm"):
        GaleraOptions.model_validate({name: 1})


@pytest.mark.parametrize("kind", [GroupReplicationSystem, GaleraSystem])
def test_of_two_nodes_none_goes_on_alone_so_that_no_failover_can_be_seen(kind: Any) -> None:
    two, three = ({"nodes": nodes, "node_disk": "1 GiB"} for nodes in (2, 3))
    refused = {each for each in KINDS if kind.why_not_struck(kind.Options.model_validate(two), each)}
    assert refused == {"kill", "freeze", "cut", "cut-one-way"}
    assert "nodes: 3" in kind.why_not_struck(kind.Options.model_validate(two), "kill")
    assert not any(kind.why_not_struck(kind.Options.model_validate(three), each) for each in KINDS)
    pair = MysqlReplicationOptions.model_validate({"nodes": 2})
    assert MysqlReplicationSystem.why_not_struck(pair, "kill") is None


def test_settings_of_the_cluster_shape_no_data_and_go_to_every_server() -> None:
    options = MysqlClusterOptions.model_validate({"innodb_buffer_pool_size": "64M", "nodes": 5, "check": "none"})
    member = options.of_member()
    assert member.settings == {"innodb_buffer_pool_size": "64M"}
    assert member.check == "none"


# Router's file is an ini file; Python's parser reads it as Router does.
@pytest.mark.parametrize(("several", "writers"), [(False, "first-available"), (True, "round-robin")])
def test_router_is_told_where_to_look_and_whom_to_lead_where(several: bool, writers: str) -> None:
    parsed = configparser.ConfigParser()
    parsed.read_string(router.configuration(Path("/x"), "10.0.0.2", several=several, plugins=None))
    write, read = parsed["routing:rw"], parsed["routing:ro"]
    assert (write["bind_address"], write["bind_port"], write["routing_strategy"]) == ("10.0.0.2", "6446", writers)
    assert write["destinations"] == "metadata-cache://dyno/?role=PRIMARY"
    assert read["destinations"].endswith("role=PRIMARY_AND_SECONDARY" if several else "role=SECONDARY")
    assert float(parsed["metadata_cache:dyno"]["ttl"]) <= 0.5
    assert "plugin_folder" not in parsed["DEFAULT"]


def test_haproxy_begins_with_every_node_in_every_pool_and_none_of_them_in_use() -> None:
    text = balancer.configuration(Path("/x/s"), "10.0.0.2", {"write": 1, "read": 2}, {"n1": "10.0.0.11", "n2": "b"})
    assert text.count("  server n1 10.0.0.11:3306 disabled\n") == 2
    assert "listen write\n  bind 10.0.0.2:1\n" in text
    assert "stats socket /x/s mode 600 level admin" in text


@pytest.mark.parametrize(
    ("now", "serving", "next_one"),
    [
        ("n1", ["n1", "n2"], "n1"),
        ("n2", ["n1", "n2"], "n2"),  # n1 came back
        ("n1", ["n2", "n3"], "n2"),
        ("n1", [], "n1"),
        (None, ["n1"], "n1"),
    ],
)
def test_who_writes_goes_on_as_long_as_it_serves(now: str | None, serving: list[str], next_one: str) -> None:
    assert next_writer(now, serving) == next_one


@pytest.mark.parametrize("waits_s", [0.0, 1.0])
def test_a_node_counts_as_dead_once_it_was_silent_for_so_long_however_long_each_question_waits(
    monkeypatch: pytest.MonkeyPatch, waits_s: float
) -> None:
    # By the number of answers one that was cut off was borne three times as long as one that was killed.
    now = [100.0]
    monkeypatch.setattr("dyno.systems.manager.time.monotonic", lambda: now[0])
    patience = Patience(5.0)
    assert patience.told("n1", answered=True)
    alive, looks = True, 0
    while alive:
        now[0] += 0.5 + waits_s
        looks += 1
        alive = patience.told("n1", answered=False)
    assert 105.0 <= now[0] <= 105.0 + 0.5 + waits_s
    assert looks == (10 if not waits_s else 4)
    assert patience.told("n1", answered=True)
    assert patience.told("n1", answered=False)


def test_a_node_that_owes_one_answer_is_not_dead_though_nobody_asked_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("dyno.systems.manager.time.monotonic", lambda: now[0])
    patience = Patience(5.0)
    now[0] += 60
    assert [patience.told("n1", answered=False) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("options", "given", "said"),
    [
        (GroupReplicationOptions, "primary", "unknown setting 'primary'; did you mean 'primaries'?"),
        (GaleraOptions, "writer", "unknown setting 'writer'; did you mean 'writers'?"),
    ],
)
def test_what_is_like_an_option_is_no_setting_of_a_server(options: Any, given: str, said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        options.model_validate({given: "multi"})
    assert options.model_validate({"sql_mode": "ANSI", "connect_timeout": 5}).settings["connect_timeout"] == 5


def test_settings_of_galeras_library_are_read_from_its_one_text() -> None:
    text = "evs.suspect_timeout = PT5S; gcache.size = 128M; pc.wait_prim = true; gcache.recover = ; "
    assert provider_settings(text)["evs.suspect_timeout"] == "PT5S"
    assert len(provider_settings(text)) == 4


@pytest.mark.parametrize(
    ("errors", "lives", "raised"),
    [
        ([sql.ConnectionLost("let go")], True, None),
        ([sql.ConnectionLost("let go")] * 2, False, sql.ConnectionLost),
        ([sql.SqlError("no such table")], True, sql.SqlError),
    ],
)
def test_who_was_let_go_of_as_a_node_joined_comes_again_while_it_lives(
    errors: list[Exception], lives: bool, raised: type[Exception] | None
) -> None:
    """MariaDB aborts the connections of its clients when its state changes from initialized to joined."""
    left = list(errors)

    def ready(_limit: float) -> None:
        if left:
            raise left.pop()

    member: Any = SimpleNamespace(ready=ready, lives=lambda: lives)
    deadline = time.monotonic() + 60
    if raised is None:
        galera._ready_as_it_joins(member, deadline)
        assert not left
    else:
        with pytest.raises(raised):
            galera._ready_as_it_joins(member, deadline)


def test_a_galera_node_serves_in_step_and_with_a_majority_only() -> None:
    rows = [("wsrep_ready", "ON"), ("wsrep_cluster_status", "Primary"), ("wsrep_local_state_comment", "Synced")]
    assert Wsrep.of([*rows, ("wsrep_cluster_size", "3")]).serves
    for number, wrong in enumerate(("OFF", "non-Primary", "Donor/Desynced")):
        changed = [(name, wrong if number == at else value) for at, (name, value) in enumerate(rows)]
        assert not Wsrep.of(changed).serves


def saying(committed: int, size: int = 3) -> Wsrep:
    return Wsrep(ready=True, primary=True, state="Synced", size=size, committed=committed)


@pytest.mark.parametrize(
    ("told", "whole"),
    [
        ([(7, 7, 7)], True),
        ([(7, 7, 5), (8, 7, 6), (9, 8, 7)], True),  # what was committed since they were asked is not waited for
        ([(7, 7, 5)], False),
        ([(7, 7)], False),
    ],
)
def test_a_galera_cluster_is_whole_once_every_node_has_applied_what_one_had(
    told: list[tuple[int, ...]], whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node is Synced throughout, with write sets in its queue."""
    place = Place(host=SimpleNamespace(), data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = GaleraSystem(GaleraOptions(), place)
    left = list(told)

    def asked() -> dict[str, Wsrep]:
        numbers = left.pop(0) if len(left) > 1 else left[0]
        return {name: saying(number) for name, number in zip(system.names, numbers, strict=False)}

    monkeypatch.setattr(system, "_told", asked)
    assert system.whole() is whole


ALL: View = {"n1": ("primary", "ONLINE"), "n2": ("secondary", "ONLINE"), "n3": ("secondary", "ONLINE")}
WITHOUT_N1: View = {"n2": ("primary", "ONLINE"), "n3": ("secondary", "ONLINE")}
NAMES = ("n1", "n2", "n3")


def test_the_groups_view_is_that_of_its_majority() -> None:
    cut: View = {"n1": ("primary", "ONLINE"), "n2": ("secondary", "UNREACHABLE"), "n3": ("secondary", "UNREACHABLE")}
    view = merged({"n1": cut, "n2": WITHOUT_N1, "n3": WITHOUT_N1}, NAMES)
    assert view == {"n1": ("none", "alone"), **WITHOUT_N1}


def test_a_node_that_nobody_knows_says_itself_how_it_is() -> None:
    view = merged({"n1": {"n1": ("none", "ERROR")}, "n2": WITHOUT_N1, "n3": WITHOUT_N1}, NAMES)
    assert view["n1"] == ("none", "ERROR")
    assert merged({}, NAMES)["n1"] == ("none", "OFFLINE")


def test_a_node_is_back_only_when_it_and_the_others_say_so() -> None:
    unaware: View = {**ALL, "n2": ("secondary", "UNREACHABLE")}
    assert is_known("n1", {"n1": ALL, "n2": ALL, "n3": ALL})
    assert not is_known("n1", {"n1": ALL, "n2": WITHOUT_N1, "n3": WITHOUT_N1})
    assert not is_known("n1", {"n1": unaware, "n2": ALL, "n3": ALL})
    assert not is_known("n1", {"n2": ALL, "n3": ALL})


def test_what_is_done_together_is_given_in_order_and_the_first_error_is_raised() -> None:
    def fails(text: str) -> int:
        raise RunError(text)

    assert together(lambda: 1, lambda: 2) == [1, 2]
    assert together() == []
    with pytest.raises(RunError, match=r"^b$"):
        together(lambda: 1, lambda: fails("b"), lambda: fails("c"))


def test_a_manager_goes_on_after_what_it_could_not_do_and_tells_it_once() -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) < 4:
            raise RunError("nobody answers")

    manager = Manager(look, 0.001)
    manager.start()
    until(lambda: len(looks) > 6)
    manager.stop()
    manager.stop()
    assert [text for _, text in manager.events] == ["could not go on: nobody answers"]


def test_a_manager_that_meets_a_defect_looks_on_and_is_ended_with_it() -> None:
    # It died without a word: no failover came, and the run told of an outage that lasted until its end.
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 2:
            raise KeyError("n4")

    manager = Manager(look, 0.001)
    manager.start()
    until(lambda: len(looks) > 4, 5)
    with pytest.raises(KeyError, match="n4"):
        manager.stop()
    manager.stop()
    assert [text for _, text in manager.events] == ["met a defect: KeyError: 'n4'"]


def test_a_manager_that_does_not_come_back_may_be_asked_again_when_what_it_waits_for_is_gone() -> None:
    looks, waits, stopped = threading.Event(), threading.Event(), threading.Event()

    def look() -> None:
        looks.set()
        waits.wait(10)
        try:
            manager.go_on()
        except RunError:
            stopped.set()
            raise

    manager = Manager(look, 0.001)
    manager.start()
    assert looks.wait(10)
    manager.go_on()
    with pytest.raises(RunError, match=r"manager did not end within 0\.05 s"):
        manager.stop(0.05)
    waits.set()
    manager.stop(10)
    assert stopped.is_set(), "it takes no further step"
    manager.stop()


def test_who_waits_for_its_turn_does_so_for_a_time_that_is_known() -> None:
    lock, over, taken = threading.RLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with held(lock, 1.0):
            taken.set()
            over.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(10)
    with pytest.raises(RunError, match="still changing it"), held(lock, 0.05):
        pass
    with pytest.raises(RunError, match="still changing it"), held(lock, -1.0):
        pass
    over.set()
    with held(lock, 10):
        pass
    thread.join()


class Ending:
    """A server, and what it was asked."""

    def __init__(self, node: str, wrong: str = "") -> None:
        self.node, self.wrong, self.ended = node, wrong, False
        self.running = self

    def lives(self) -> bool:
        return not self.ended

    def stop(self, _limit: float) -> None:
        self.ended = True
        if self.wrong:
            raise RunError(self.wrong)


def test_all_servers_end_where_what_looks_after_them_does_not_and_that_is_told_then(tmp_path: Path) -> None:
    place = Place(host=SimpleNamespace(), data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = GaleraSystem(GaleraOptions(), place)
    members = [Ending("n1"), Ending("n2", "n2 was slow"), Ending("n3")]
    gone: list[str] = []
    system._members = {each.node: each for each in members}  # type: ignore[misc]
    system._network = SimpleNamespace(destroy=lambda: gone.append("network"))  # type: ignore[assignment]
    system._balancer = SimpleNamespace(stop=lambda: gone.append("balancer"), pid=None)  # type: ignore[assignment]
    asked: list[bool] = []

    def stop() -> None:
        asked.append(members[0].ended)
        if not members[0].ended:
            raise RunError("the manager did not end")

    system._manager = SimpleNamespace(stop=stop)  # type: ignore[assignment]
    with pytest.raises(RunError, match="the manager did not end; n2: n2 was slow"):
        system.stop(1.0)
    assert all(each.ended for each in members)
    assert asked == [False, True], "once more, when what it waits for has ended"
    assert gone == ["balancer", "balancer", "network"]
    system.stop(1.0)


def test_all_servers_end_before_a_defect_of_what_looks_after_them_is_told(tmp_path: Path) -> None:
    place = Place(host=SimpleNamespace(), data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = GaleraSystem(GaleraOptions(), place)
    members = [Ending("n1"), Ending("n2")]
    gone: list[str] = []
    system._members = {each.node: each for each in members}  # type: ignore[misc]
    system._network = SimpleNamespace(destroy=lambda: gone.append("network"))  # type: ignore[assignment]
    system._balancer = SimpleNamespace(stop=lambda: gone.append("balancer"), pid=None)  # type: ignore[assignment]
    system._lines = {"n1": SimpleNamespace(close=lambda: gone.append("line"))}  # type: ignore[dict-item]
    defects: list[Exception] = [KeyError("n4")]

    def stop() -> None:
        if defects:
            raise defects.pop()

    system._manager = SimpleNamespace(stop=stop)  # type: ignore[assignment]
    with pytest.raises(KeyError, match="n4"):
        system.stop(1.0)
    assert all(each.ended for each in members)
    assert gone == ["balancer", "line", "balancer", "network"]


def test_a_fault_that_fails_is_taken_back_when_the_cluster_ends(tmp_path: Path) -> None:
    told: list[str] = []
    place = Place(host=SimpleNamespace(), data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = GaleraSystem(GaleraOptions(), place)

    def cut_outgoing(source: str) -> None:
        told.append(source)
        raise RunError("the switch does not answer")

    network = {"cut_outgoing": cut_outgoing, "heal": lambda: told.append("healed"), "destroy": lambda: None}
    system._members = {name: Ending(name) for name in system.names}  # type: ignore[misc]
    system._network = SimpleNamespace(**network)  # type: ignore[assignment]
    system.nodes = lambda: tuple(NodeState(name, "", 1, "primary", "") for name in system.names)  # type: ignore[method-assign]
    with pytest.raises(RunError, match="does not answer"):
        system.strike(Fault(kind="cut-one-way"), random.Random(1))
    system.stop(1.0)
    assert told[1:] == ["healed"]


def test_a_node_of_a_replicated_disk_has_as_much_of_the_machine_as_the_study_says(tmp_path: Path) -> None:
    """With node_memory it ended in a traceback: a number of bytes was given for what takes a size with a unit."""
    given: list[Machine] = []
    confined = lambda name, machine, within: given.append(machine)  # noqa: E731
    place = Place(host=SimpleNamespace(confine_node=confined), data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = ReplicatedDiskSystem(
        ReplicatedDiskOptions.model_validate({"node_cpus": 0.5, "node_memory": "1 GiB"}), place
    )
    system._network = SimpleNamespace(words=lambda name: ())  # type: ignore[assignment]
    system._folder = tmp_path
    system._made("n1")
    assert [(each.cpus, each.memory) for each in given] == [(0.5, 1 << 30)]


def test_what_cannot_be_struck_is_refused_before_a_node_is_looked_for(tmp_path: Path) -> None:
    place = Place(host=SimpleNamespace(), data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = GaleraSystem(GaleraOptions(), place)
    with pytest.raises(RunError, match="slow-disk needs a disk of each node's own"):
        system.strike(Fault(kind="slow-disk"), random.Random(1))
    assert system._struck == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RunError("the manager did not end"), "n1: its disk is stuck; the manager did not end"),
        (KeyError("n4"), "n4"),
    ],
)
def test_both_nodes_of_a_disk_end_where_what_looks_after_them_does_not_or_met_a_defect(
    tmp_path: Path, error: Exception, told: str
) -> None:
    host = SimpleNamespace(remove_temporary_folder=lambda folder: gone.append(folder.name))
    place = Place(host=host, data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = ReplicatedDiskSystem(ReplicatedDiskOptions(), place)
    gone: list[str] = []

    def stop() -> None:
        gone.append("manager")
        if isinstance(error, RunError) or gone.count("manager") == 1:  # a defect is told once
            raise error

    def node(name: str, wrong: bool) -> Any:
        def close() -> None:
            gone.append(name)
            if wrong:
                raise RunError("its disk is stuck")

        side = SimpleNamespace(close=close, pids={}, node=name)
        return SimpleNamespace(side=side, server=None, mounted=None, leaving=None)

    system._nodes = {"n1": node("n1", wrong=True), "n2": node("n2", wrong=False)}
    system._network = SimpleNamespace(destroy=lambda: gone.append("network"))  # type: ignore[assignment]
    system._folder = tmp_path / "folder"
    system._manager = SimpleNamespace(stop=stop)  # type: ignore[assignment]
    with pytest.raises(type(error), match=told):
        system.stop(1.0)
    assert gone == ["manager", "n1", "n2", "manager", "network", "folder"]
    system.stop(1.0)


def test_mending_a_disk_waits_for_its_turn_no_longer_than_it_may(tmp_path: Path) -> None:
    place = Place(host=SimpleNamespace(), data=tmp_path, logs=tmp_path, core="")  # type: ignore[arg-type]
    system = ReplicatedDiskSystem(ReplicatedDiskOptions(), place)
    system._nodes = {name: SimpleNamespace() for name in ("n1", "n2")}  # type: ignore[misc]
    over, taken = threading.Event(), threading.Event()

    def take_over() -> None:
        with system._turn:
            taken.set()
            over.wait(10)

    thread = threading.Thread(target=take_over)
    thread.start()
    assert taken.wait(10)
    with pytest.raises(RunError, match="still changing it"):
        system.mend(Struck("kill", ("n1",), 0), 0.05)
    over.set()
    thread.join()


def test_another_way_in_is_the_same_system() -> None:
    endpoint = Endpoint("mysql", {"host": "a"}, {"n1": 1}, namespace="/x", others={READ_ONLY: {"host": "b"}})
    by = endpoint.by(READ_ONLY)
    assert by.settings == {"host": "b"}
    assert by.namespace == "/x"


def test_a_server_in_a_namespace_that_is_not_there_cannot_be_reached(tmp_path: Path) -> None:
    at = {"host": "127.0.0.1", "port": 1, "user": "x", "database": "x"}
    with pytest.raises(sql.SqlError, match=r"cannot connect: .*No such file"):
        sql.connect(Endpoint("mysql", at, namespace=str(tmp_path / "none")), limit=1)
    (tmp_path / "file").touch()
    with pytest.raises(sql.SqlError, match="cannot enter the network namespace"):
        sql.connect(Endpoint("mysql", at, namespace=str(tmp_path / "file")), limit=1)
