"""What the database observer makes of readings, every figure of which is known."""

from __future__ import annotations

import pytest

from dyno.model.counters import LOOKS, Counters, is_gauge, is_wait
from dyno.observers.database import Reading, samples, traces
from dyno.systems.innodb import wait_class

S = 10**9


def told(readings: list[tuple[float, Counters]], left: dict[str, float] | None = None) -> dict[str, list[float]]:
    """Metric -> values in order of time."""
    given = [Reading(round(at * S), counters) for at, counters in readings]
    found: dict[str, list[tuple[int, float]]] = {}
    for time_ns, host, source, subject, metric, value in samples(given, left or {}, "here"):
        assert (host, source, subject) == ("here", "database", "server")
        found.setdefault(metric, []).append((time_ns, value))
    return {metric: [value for _, value in sorted(values)] for metric, values in found.items()}


def test_counters_become_rates_over_the_time_between_two_readings() -> None:
    found = told([(0, Counters({"reads": 5})), (2, Counters({"reads": 25})), (3, Counters({"reads": 26}))])
    assert found["reads"] == [10, 1]
    assert found[LOOKS] == [0, 0.5, 1], "a late look shows, and the first reading is there"


def test_what_does_not_move_is_left_out_but_for_resources_and_waits() -> None:
    still = Counters({"idle": 7, "server.syncs": 3, "wait/lock/row": 1}, {"size": 4, "wait/io": 0})
    found = told([(0, still), (1, still)])
    assert found == {LOOKS: [0, 1], "server.syncs": [0], "wait/lock/row": [0], "wait/io": [0]}


def test_what_only_some_readings_have_was_nothing_in_the_others() -> None:
    found = told([(0, Counters({})), (1, Counters({"late": 4}, {"wait/io": 2})), (2, Counters({"late": 4}))])
    assert found["late"] == [4, 0]
    assert found["wait/io"] == [2, 0]


def test_what_falls_is_no_counter() -> None:
    found = told([(0, Counters({"cached": 5})), (1, Counters({"cached": 9})), (2, Counters({"cached": 8}))])
    assert "cached" not in found


def test_what_counts_together_and_is_fewer_now_has_no_rate_across_that() -> None:
    nodes = [
        Counters({"jobs": of, "errors": 3}, {"heap": at}, by)
        for at, (of, by) in enumerate(
            [(50, "n1 n2"), (70, "n1 n2"), (40, "n2"), (44, "n2"), (90, "n1 n2"), (91, "n1 n2")]
        )
    ]
    found = told([(float(at), counters) for at, counters in enumerate(nodes)])
    assert found["jobs"] == [20, 4, 1]
    assert found["now/heap"] == [1, 2, 3, 4, 5]
    assert found[LOOKS] == [0, 1, 0, 1, 0, 1], "it begins anew there"
    assert "errors" not in found


def test_figures_that_go_up_and_down_are_told_as_they_were() -> None:
    found = told(
        [(0, Counters({}, {"threads": 9})), (1, Counters({}, {"threads": 4})), (2, Counters({}, {"threads": 6}))]
    )
    assert found["now/threads"] == [4, 6]


def test_what_is_known_to_go_up_and_down_keeps_its_name() -> None:
    found = told([(0, Counters({}, {"threads_running": 9})), (1, Counters({}, {"threads_running": 4}))])
    assert found["threads_running"] == [4]


def test_what_each_look_leaves_behind_is_taken_off() -> None:
    readings = [(at, Counters({"questions": 3 * at + 10 * (at > 1), "com_show": float(at)})) for at in range(4)]
    found = told([(float(at), counters) for at, counters in readings], {"questions": 3, "com_show": 1})
    assert found["questions"] == [0, 10, 0]
    assert "com_show" not in found


def test_a_trace_is_the_least_that_looks_in_a_row_added() -> None:
    looks = [Counters({"questions": each, "purged": other}) for each, other in ((1, 0), (2, 0), (9, 5), (10, 5))]
    assert traces(looks) == {"questions": 1}


def test_a_single_reading_tells_of_no_time() -> None:
    assert told([(0, Counters({"reads": 1}))]) == {}


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ("wait/io/file/innodb/innodb_log_file", "wait/io/file/innodb_log_file"),
        ("wait/synch/mutex/innodb/trx_mutex", "wait/synch/mutex"),
        ("wait/lock/metadata/sql/mdl", "wait/lock/metadata"),
        ("wait/io/table/sql/handler", None),
        ("wait/io/socket/sql/client_connection", None),
        ("idle", None),
        ("wait/x", None),
    ],
)
def test_events_are_grouped_by_what_is_waited_for(event: str, found: str | None) -> None:
    assert wait_class(event) == found
    assert found is None or is_wait(found)


@pytest.mark.parametrize("name", ["threads_running", "innodb_row_lock_current_waits", "database.numbackends"])
def test_gauges_are_known_by_name(name: str) -> None:
    assert is_gauge(name)


@pytest.mark.parametrize(
    "name", ["innodb_data_fsyncs", "handler_commit", "innodb_buffer_pool_read_requests", "wal.wal_sync"]
)
def test_counters_are_not_taken_for_gauges(name: str) -> None:
    assert not is_gauge(name)
