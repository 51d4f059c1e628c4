"""The driver of workload queries without a store: what it makes of what it is answered, and what it keeps of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dyno import sql
from dyno.model.answers import ANSWER_COLUMNS
from dyno.workloads import asking
from dyno.workloads.asking import Asked, Held, Teller, _batch, _kept, _singly

QUESTION = {
    "part": "q",
    "query": "point",
    "statement": "SELECT",
    "kinds": ["text", "number"],
    "time_unit": "us",
    "ordered": False,
    "keys": [],
    "relative": 1e-9,
    "absolute": 1e-12,
}


class Answering:
    """A connection of which each answer is the next of some."""

    def __init__(self, *answers: Sequence[tuple[Any, ...]]) -> None:
        self._left = list(answers)

    def timed(self, _statement: str) -> sql.Timed:
        answer = sql.Answer(("a", "b"), list(self._left.pop(0)))
        return sql.Timed(lambda: answer, 0.001, 0.0005, 1000)

    def close(self) -> None:
        """Nothing is open."""


def asked_singly(*answers: Sequence[tuple[Any, ...]], **question: Any) -> dict[str, Any]:
    """What is kept of a question, by column."""
    connection: Any = Answering(*answers)
    asked = Asked({**QUESTION, **question})
    held = Held()
    _singly([asked], connection, len(answers) - 1, Teller(), held)
    held.take()
    assert asked.again is None
    assert asked.varies is None, "nothing is compared while the store is asked"
    (row,) = _kept([asked])
    return dict(zip(ANSWER_COLUMNS, row, strict=True))


class Scanned:
    """A connection that gives each time as many rows, each value an object of its own, as a store's are."""

    ROWS = 5000

    def timed(self, _statement: str) -> sql.Timed:
        rows: list[tuple[Any, ...]] = [(f"host_{number % 20}", number * 1.5) for number in range(self.ROWS)]
        return sql.Timed(lambda: sql.Answer(("a", "b"), rows), 0.001, 0.0005, 1000)

    def close(self) -> None:
        """Nothing is open."""


def test_the_answers_of_a_batch_that_is_over_take_little_room_and_are_those_that_came() -> None:
    """All answers of all batches had been held as rows until the end: 2.3 GiB of a hundred of 100,000 rows."""
    connect: Any = Scanned
    tracemalloc.start()
    try:
        whole = connect().timed("")
        of_one, _ = tracemalloc.get_traced_memory()
        asked = _batch([QUESTION] * 8, connect, 2, None, Teller(), Held(0)).asked
        of_all, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert of_all - of_one < of_one
    assert all(each.first() == whole.decode() for each in asked)
    assert [row[list(ANSWER_COLUMNS).index("rows")] for row in _kept(asked)] == [Scanned.ROWS] * 8


A, B = ("x", 1), ("y", 0.3)


def test_a_cold_answer_that_differs_from_the_warm_ones_is_seen() -> None:
    """Only the last answer had been kept, and what the first was nobody knew."""
    found = asked_singly([A], [("x", 2)], [("x", 2)])
    assert found["varies"] == "(x, 1) against (x, 2)"
    assert found["whole"] == '[["x",1]]'
    assert asked_singly([A, B], [A, B], [A])["varies"].startswith("2 rows against 1 row")


@pytest.mark.parametrize(
    ("again", "question", "varies"),
    [
        ([A, B], {}, None),
        ([B, A], {}, None),
        ([B, A], {"ordered": True}, "the same 2 rows in another order: row 1 is (x, 1) against (y, 0.3)"),
        ([A, ("y", 0.1 + 0.2)], {"ordered": True}, None),
        ([A, ("y", 0.31)], {}, "(y, 0.3) against (y, 0.31)"),
        ([A, ("y", None)], {}, "(y, 0.3) against (y, NULL)"),
    ],
)
def test_an_answer_differs_as_those_of_two_stores_do(
    again: list[tuple[Any, ...]], question: dict[str, Any], varies: str | None
) -> None:
    assert asked_singly([A, B], again, **question)["varies"] == varies


def test_rows_alike_in_what_a_query_orders_by_may_change_places() -> None:
    rows = [("x", 1), ("x", 2)]
    assert asked_singly(rows, rows[::-1], ordered=True, keys=[0])["varies"] is None
    assert asked_singly(rows, rows[::-1], ordered=True)["varies"] is not None


def test_an_answer_that_cannot_be_read_when_asked_again_is_an_error() -> None:
    times = {"kinds": ["text", "time"]}
    found = asked_singly([("x", datetime(2016, 1, 1, tzinfo=UTC))], [("x", "soon")], **times)
    assert found["error"] == "its answer cannot be read: 'soon' is no time"


@pytest.mark.parametrize(
    ("error", "lasting"), [(sql.StatementRefused("near SELEKT"), True), (sql.SqlError("timed out"), False)]
)
def test_a_statement_that_is_refused_will_be_refused_again_and_a_time_out_may_pass(
    error: sql.SqlError, lasting: bool
) -> None:
    class Refusing(Answering):
        def timed(self, _statement: str) -> sql.Timed:
            raise error

    asked = Asked(QUESTION)
    _singly([asked], cast("Any", Refusing()), 1, Teller(), Held())
    assert (asked.error, asked.lasting) == (str(error), lasting)


def test_an_answer_with_other_columns_than_the_file_says_will_have_them_again() -> None:
    asked = Asked({**QUESTION, "kinds": ["text"]})
    _singly([asked], cast("Any", Answering([("x", 1)])), 0, Teller(), held := Held())
    held.take()
    assert not asked.lasting
    _kept([asked])
    assert asked.lasting


def test_no_figure_has_the_time_in_which_answers_are_decoded_and_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding was in throughput: 400 ms of CPU of QuestDB's JSON of 100,000 rows."""
    now = [0.0]
    clock = SimpleNamespace(**dict.fromkeys(("monotonic", "perf_counter", "process_time", "time_ns"), lambda: now[0]))
    monkeypatch.setattr(asking, "time", clock)

    def lasts(seconds: float) -> None:
        now[0] += seconds

    class Slow(Answering):
        def timed(self, statement: str) -> sql.Timed:
            lasts(1.0)
            found = super().timed(statement)
            return replace(found, decode=lambda: [lasts(100.0), found.decode()][1])

    monkeypatch.setattr(Asked, "look_again", lambda _: lasts(1000.0))
    for room, decoded_s in ((10_000, 0.0), (0, 2300.0)):  # where there is no room it is done meanwhile
        now[0] = 0.0
        told = _singly([Asked(QUESTION)], cast("Any", Slow([A], [A], [A])), 2, Teller(), held := Held(room))
        assert told == {"elapsed_s": 3.0, "cpu_s": 3.0}
        assert now == [3.0 + decoded_s]
        held.take()
        assert now == [2303.0]


class Refusing(Answering):
    """A connection each of whose answers turns out to be none when it is decoded."""

    def timed(self, _statement: str) -> sql.Timed:
        def decode() -> sql.Answer:
            raise sql.SqlError("cut off (asked: SELECT)")

        return sql.Timed(decode, 0.001, 0.0005, 1000)


@pytest.mark.parametrize("room", [0, 10_000])
def test_an_answer_that_turns_out_to_be_none_has_no_time(room: int) -> None:
    asked, held = Asked(QUESTION), Held(room)
    _singly([asked], cast("Any", Refusing()), 2, Teller(), held)
    batch = _batch([QUESTION] * 3, cast("Any", Refusing), 2, None, Teller(), held)
    held.take()
    assert (asked.error, asked.cold_ms, asked.warm_ms) == ("cut off", None, [])
    told = batch.told()
    assert (told["latencies_ms"], told["services_ms"], told["errors"]) == ([], [], 3)
    assert [each.error for each in batch.asked] == ["cut off"] * 3


def test_answers_are_decoded_when_all_of_them_have_come() -> None:
    """One client at a time decodes, and what it takes is the protocol's: throughput would be of that."""
    heard: list[str] = []

    class Heard(Answering):
        def timed(self, statement: str) -> sql.Timed:
            heard.append("asked")
            found = super().timed(statement)
            return replace(found, decode=lambda: [heard.append("decoded"), found.decode()][1])

        def close(self) -> None:
            heard.append("closed")

    held = Held()
    batches = [_batch([QUESTION] * 6, lambda: cast("Any", Heard(*[[A]] * 6)), 2, None, Teller(), held) for _ in "ab"]
    held.take()
    assert heard == (["asked"] * 6 + ["closed"] * 2) * 2 + ["decoded"] * 12
    assert [len(batch.told()["latencies_ms"]) for batch in batches] == [6, 6]
    heard.clear()
    _batch([QUESTION] * 6, lambda: cast("Any", Heard(*[[A]] * 6)), 2, None, Teller(), Held(5999))
    assert heard[-6:] == ["decoded"] * 6  # there is no room for six of a thousand bytes
