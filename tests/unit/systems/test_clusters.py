"""What clusters decide, without a server: which node a fault strikes, who is promoted, what balancers are told."""

from __future__ import annotations

import configparser
import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dyno import sql
from dyno.model.base import RunError
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.faults import KINDS, Fault
from dyno.systems import balancer, router
from dyno.systems.cluster import NodeState, choose
from dyno.systems.galera import GaleraOptions, GaleraSystem, Wsrep, next_writer, provider_settings
from dyno.systems.group_replication import GroupReplicationOptions, GroupReplicationSystem, View, is_known, merged
from dyno.systems.manager import Manager, Patience
from dyno.systems.members import together
from dyno.systems.mysql_member import MysqlClusterOptions, gtid_count, gtids, literal, most_advanced
from dyno.systems.mysql_replication import MysqlReplicationOptions, MysqlReplicationSystem
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
    ],
)
def test_what_is_dynos_own_to_set_is_refused(kind: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        kind.model_validate(options)


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


def test_a_node_counts_as_dead_after_so_many_answers_in_a_row_that_it_owes() -> None:
    patience = Patience(3)
    assert [patience.told("n1", answered=False) for _ in range(3)] == [True, True, False]
    assert patience.told("n1", answered=True)
    assert patience.told("n1", answered=False)
    assert patience.told("n2", answered=False)


def test_settings_of_galeras_library_are_read_from_its_one_text() -> None:
    text = "evs.suspect_timeout = PT5S; gcache.size = 128M; pc.wait_prim = true; gcache.recover = ; "
    assert provider_settings(text)["evs.suspect_timeout"] == "PT5S"
    assert len(provider_settings(text)) == 4


def test_a_galera_node_serves_in_step_and_with_a_majority_only() -> None:
    rows = [("wsrep_ready", "ON"), ("wsrep_cluster_status", "Primary"), ("wsrep_local_state_comment", "Synced")]
    assert Wsrep.of([*rows, ("wsrep_cluster_size", "3")]).serves
    for number, wrong in enumerate(("OFF", "non-Primary", "Donor/Desynced")):
        changed = [(name, wrong if number == at else value) for at, (name, value) in enumerate(rows)]
        assert not Wsrep.of(changed).serves


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
