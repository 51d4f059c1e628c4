"""Answers held against each other: what is the same, what is not, and that times of unlike answers are not compared."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.analysis.answers import difference, gather, read
from dyno.model.alike import compare_rows
from dyno.model.answers import ANSWER_COLUMNS
from dyno.model.rows import digests, dumped

WITHIN = (1e-9, 1e-12)


def compared(a: list[list[Any]], b: list[list[Any]], *, ordered: bool = False, keys: tuple[int, ...] = ()) -> str:
    """What is found, the same either way round."""
    found, back = (compare_rows(*sides, *WITHIN, ordered=ordered, keys=keys) for sides in ((a, b), (b, a)))
    assert found.kind == back.kind
    assert bool(found.told) == (found.kind != "equal")
    return found.kind


def test_rows_in_any_order_are_the_same_where_no_order_was_asked_for() -> None:
    a, b = [["x", 1.5], ["y", 2.5]], [["y", 2.5], ["x", 1.5]]
    assert compared(a, b) == "equal"
    assert compared(a, b, ordered=True) == "order"


def test_a_row_that_comes_twice_is_not_one_that_comes_once() -> None:
    assert compared([["x"], ["x"], ["y"]], [["x"], ["y"], ["y"]]) == "values"
    assert compared([["x"], ["x"]], [["x"]]) == "rows"


def test_the_first_row_that_differs_is_told_of_each_side() -> None:
    found = compare_rows([["x", 1], ["y", 2]], [["x", 1], ["y", 3]], *WITHIN, ordered=True)
    assert found.told == "row 2 is (y, 2) against (y, 3)"
    unordered = compare_rows([["x", 1.5], ["y", 2.5]], [["y", 2.75], ["x", 1.5]], *WITHIN, ordered=False)
    assert unordered.told == "(y, 2.5) against (y, 2.75)"
    missing = compare_rows([["x", 1]], [["x", 1], ["y", 2]], *WITHIN, ordered=True)
    assert missing.told == "1 row against 2 rows; row 2 is no row against (y, 2)"


def test_figures_next_to_each_other_are_matched_whatever_way_they_sort() -> None:
    # Sorted, the second column of one side is the other way round: only pairs within the tolerance tell.
    a = [[1.0000000000001, 5.5], [1.0, 7.5]]
    b = [[1.0, 5.5], [1.0000000000001, 7.5]]
    assert compared(a, b) == "equal"


def test_rows_alike_in_what_they_are_ordered_by_may_change_places() -> None:
    a, b = [[3, "x"], [3, "y"], [2, "z"]], [[3, "y"], [3, "x"], [2, "z"]]
    assert compared(a, b, ordered=True, keys=(0,)) == "equal"
    assert compared(a, b, ordered=True) == "order"


def test_rows_that_a_limit_cut_off_among_equals_are_named_as_ties() -> None:
    a, b = [[3, "x"], [2, "y"]], [[3, "x"], [2, "z"]]
    assert compared(a, b, ordered=True, keys=(0,)) == "ties"
    # In the middle nothing was cut off: there it is another answer.
    assert compared([[3, "x"], [2, "y"], [1, "w"]], [[3, "x"], [2, "z"], [1, "w"]], ordered=True, keys=(0,)) == "values"


def test_an_order_by_other_values_is_another_order() -> None:
    a = [[3, "x"], [2, "y"]]
    assert compared(a, [[2, "y"], [3, "x"]], ordered=True, keys=(0,)) == "order"


def test_nothing_is_the_same_as_nothing() -> None:
    assert compared([], []) == "equal"
    assert compared([], [], ordered=True) == "equal"
    assert compared([], [["x"]]) == "rows"


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(0, 3) | st.none(),
        st.sampled_from([0.5, 1.5, 1.5 + 1e-12, 2.25]),
    ).map(list),
    max_size=10,
)


@given(ROWS, st.randoms())
def test_no_order_of_unordered_rows_makes_another_answer(rows: list[list[Any]], chance: Any) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)
    assert compared(rows, mixed) == "equal"
    noisy = [[name, number, figure * (1 + 1e-11)] for name, number, figure in mixed]
    assert compared(rows, noisy) == "equal"


@given(ROWS.filter(bool), st.data())
def test_one_value_that_is_off_is_always_found(rows: list[list[Any]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    wrong = [list(row) for row in rows]
    wrong[place][2] += 0.001
    assert compared(rows, wrong) == "values"
    assert compared(rows, wrong, ordered=True) == "values"
    named = [list(row) for row in rows]
    named[place][0] = "c"
    assert compared(rows, named) == "values"


@given(ROWS.filter(bool), st.data())
def test_a_row_that_is_missing_is_always_found(rows: list[list[Any]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    fewer = rows[:place] + rows[place + 1 :]
    assert compared(rows, fewer) == "rows"
    assert compared(rows, fewer, ordered=True) == "rows"


def answer(given_rows: list[list[Any]] | None, **more: Any) -> dict[str, Any]:
    """A row of answers.parquet."""
    in_order, of_set = digests(given_rows or [])
    given: dict[str, Any] = {
        "run": 1,
        "part": "q",
        "query": "point",
        "title": "a point",
        "form": "determinate",
        "dialect": "sqlite",
        "number": 0,
        "data": "{}",
        "parameters": "{}",
        "statement": "SELECT 1",
        "ordered": False,
        "keys": [],
        "relative": 1e-9,
        "absolute": 1e-12,
        "error": None,
        "columns": ["a", "b"],
        "rows": len(given_rows or []),
        "digest": in_order,
        "digest_of_set": of_set,
        "first": dumped((given_rows or [])[:2]),
        "whole": None if given_rows is None else dumped(given_rows),
        "cold_ms": 5.0,
        "warm_ms": [1.0, 2.0, 3.0],
        "client_ms": 0.5,
        "plan": "a plan",
        "comment": None,
    }
    return {**given, **more}


def given_of(*rows: dict[str, Any]) -> list[Any]:
    frame = pl.DataFrame(list(rows), schema={"run": pl.Int64, **ANSWER_COLUMNS})
    return [each for of_run in read(frame).values() for each in of_run]


def kind(a: dict[str, Any], b: dict[str, Any]) -> str:
    one, other = given_of({**a, "run": 1}, {**b, "run": 2})
    found, back = difference(one, other), difference(other, one)
    assert found.kind == back.kind
    return found.kind


ROWS_OF_ONE = [["x", 1.5], ["y", 2.5], ["z", 3.5]]


def test_answers_too_large_to_be_kept_whole_are_the_same_by_their_digests() -> None:
    large = answer(ROWS_OF_ONE, whole=None)
    assert kind(large, large) == "equal"
    turned = answer(ROWS_OF_ONE[::-1], whole=None)
    assert kind(large, turned) == "equal"
    assert kind({**large, "ordered": True}, {**turned, "ordered": True}) == "order"
    # What one of two texts leaves open is not held against the other.
    assert kind({**large, "ordered": True}, turned) == "equal"


def test_answers_too_large_to_be_kept_whole_that_differ_are_never_called_the_same() -> None:
    large = answer(ROWS_OF_ONE, whole=None)
    last = answer([*ROWS_OF_ONE[:2], ["z", 4.5]], whole=None)
    assert kind(large, last) == "unknown"
    assert kind({**large, "ordered": True}, {**last, "ordered": True}) == "unknown"
    first = answer([["x", 9.5], *ROWS_OF_ONE[1:]], whole=None)
    assert kind({**large, "ordered": True}, {**first, "ordered": True}) == "values"
    assert kind(large, answer(ROWS_OF_ONE[:2], whole=None)) == "rows"


def test_an_error_is_no_answer() -> None:
    refused = answer(None, error="syntax error", columns=None, rows=None, digest=None, digest_of_set=None, first=None)
    assert kind(answer(ROWS_OF_ONE), refused) == "error"
    assert kind(refused, refused) == "error"


def test_another_number_of_columns_is_another_answer() -> None:
    assert kind(answer([["x", 1]]), answer([["x"]], columns=["a"])) == "columns"


def answers_of(*rows: dict[str, Any]) -> Any:
    """Answers of cells whose number is that of their run."""
    frame = pl.DataFrame(list(rows), schema={"run": pl.Int64, **ANSWER_COLUMNS})
    return gather({row["run"]: row["run"] for row in rows}, read(frame))


def test_a_query_that_is_answered_otherwise_is_compared_in_nothing() -> None:
    found = answers_of(answer([["x", 1]]), answer([["x", 2]], run=2))
    assert "answer point otherwise: (x, 1) against (x, 2)" in found.why_unlike("q.point.warm", 1, found, 2)
    assert found.why_unlike("warm", 1, found, 2)
    assert found.why_unlike("device_read_per_op", 1, found, 2)
    assert not found.why_unlike("q.point.warm", 1, found, 1)


def test_the_other_queries_of_the_same_cells_are_compared() -> None:
    rows = [answer([["x", value]], run=run) for run, value in ((1, 1), (2, 2))]
    rows += [answer([["x", 1]], run=run, query="scan") for run in (1, 2)]
    found = answers_of(*rows)
    assert not found.why_unlike("q.scan.cold", 1, found, 2)
    assert found.why_unlike("q.point.cold", 1, found, 2)
    assert found.why_unlike("cold", 1, found, 2)


def test_questions_that_were_not_asked_of_both_say_nothing() -> None:
    found = answers_of(answer([["x", 1]]), answer([["x", 1]], run=2, parameters=json.dumps({"host": "host_1"})))
    assert "no question was asked of both" in found.why_unlike("q.point.warm", 1, found, 2)
    assert answers_of().why_unlike("throughput", 1, answers_of(), 2) == ""


def test_a_cell_whose_runs_answer_one_question_in_two_ways_is_compared_with_none() -> None:
    rows = [answer([["x", 1]]), answer([["x", 2]], run=2), answer([["x", 1]], run=3)]
    frame = pl.DataFrame(rows, schema={"run": pl.Int64, **ANSWER_COLUMNS})
    found = gather({1: 0, 2: 0, 3: 1}, read(frame))
    assert "not answer the same each time: run 1 and run 2" in found.why_unlike("q.point.warm", 0, found, 1)


def test_a_cell_of_which_a_run_has_another_answer_when_it_asks_again_is_compared_with_none() -> None:
    found = answers_of(answer([["x", 1]], varies="(x, 1) against (x, 2)"), answer([["x", 1]], run=2))
    told = "not answer the same each time: run 1, asked again: (x, 1) against (x, 2)"
    assert told in found.why_unlike("q.point.warm", 1, found, 2)
    assert told in found.why_unlike("q.point.cold", 2, found, 1)


def test_answers_of_a_folder_in_which_none_were_held_against_the_first_are_read() -> None:
    frame = pl.DataFrame([answer([["x", 1]])], schema={"run": pl.Int64, **ANSWER_COLUMNS}).drop("varies")
    assert gather({1: 1}, read(frame)).varying == {}


@pytest.mark.parametrize("response", ["throughput", "q.point.warm"])
def test_stores_that_were_asked_nothing_are_compared_as_ever(response: str) -> None:
    found = answers_of()
    assert found.why_unlike(response, 1, found, 2) == ""
