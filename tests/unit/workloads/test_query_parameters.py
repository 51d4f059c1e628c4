"""Parameters: the same for every store, within what the data hold, and written as each dialect takes them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dyno.workloads.devops_data import DataOptions
from dyno.workloads.query_parameters import CannotDraw, Moment, Parameter, draw, iso, plain, written

ADAPTER: TypeAdapter[Any] = TypeAdapter(Parameter)
SPAN = DataOptions().span()
DAY_NS = 86400 * 10**9


def of(**given: Any) -> dict[str, Any]:
    return {"it": ADAPTER.validate_python(given)}


def drawn(parameter: dict[str, Any], number: int = 0, seed: int = 1, **data: Any) -> Any:
    return draw(parameter, DataOptions(**data).span(), seed=seed, query="point", number=number)["it"]


@given(st.integers(0, 2**40), st.integers(0, 1000))
def test_a_window_lies_within_the_data_and_is_as_long_as_asked(seed: int, number: int) -> None:
    start, end = drawn(of(kind="window", length="12 h"), number, seed)
    assert SPAN.start_ns <= start.ns < end.ns <= SPAN.end_ns
    assert end.ns - start.ns == DAY_NS // 2
    assert start.ns % 10**9 == 0


@given(st.integers(0, 2**40))
def test_a_moment_is_one_that_has_rows(seed: int) -> None:
    moment = drawn(of(kind="moment"), seed=seed)
    assert SPAN.start_ns <= moment.ns < SPAN.end_ns
    assert (moment.ns - SPAN.start_ns) % SPAN.step_ns == 0


def test_a_month_is_one_of_the_calendar_and_across_is_from_middle_to_middle() -> None:
    within = {plain({"it": drawn(of(kind="window", month="within"), seed=seed)})["it"][0] for seed in range(40)}
    assert within == {"2016-01-01T00:00:00.000000Z", "2016-02-01T00:00:00.000000Z"}
    across = {tuple(plain({"it": drawn(of(kind="window", month="across"), seed=seed)})["it"]) for seed in range(40)}
    assert across == {("2016-01-16T00:00:00.000000Z", "2016-02-16T00:00:00.000000Z")}


def test_what_the_data_do_not_have_cannot_be_drawn() -> None:
    with pytest.raises(CannotDraw, match="it asks for 3 hosts, and the data have 2"):
        drawn(of(kind="host", count=3))
    with pytest.raises(CannotDraw, match="it asks for 12 h, and the data are of 1 h"):
        drawn(of(kind="window", length="12 h"), end="2016-01-01T01:00:00Z")
    with pytest.raises(CannotDraw, match="month"):
        drawn(of(kind="window", month="within"), end="2016-01-06T00:00:00Z")


def test_a_value_hangs_on_seed_query_number_and_name_alone() -> None:
    several = {"a": of(kind="host")["it"], "b": of(kind="moment")["it"]}
    alone = draw({"b": several["b"]}, SPAN, seed=3, query="q", number=7)
    assert draw(several, SPAN, seed=3, query="q", number=7)["b"] == alone["b"]
    others = {draw(several, SPAN, seed=3, query="q", number=number)["b"] for number in range(20)}
    assert len(others) > 15
    random.seed(5)
    assert draw(several, SPAN, seed=3, query="q", number=7)["b"] == alone["b"]


def test_hosts_are_different_ones() -> None:
    for seed in range(20):
        names = drawn(of(kind="host", count=8), seed=seed, hosts=9)
        assert len(set(names)) == 8


def test_values_are_written_as_each_dialect_takes_them() -> None:
    moment = Moment(1_451_606_400 * 10**9)
    assert written(moment, "", "questdb") == "'2016-01-01T00:00:00.000000Z'"
    assert written(moment, "", "sqlite") == "1451606400000000000"
    assert written((moment, Moment(moment.ns + DAY_NS)), "to", "duckdb") == "'2016-01-02T00:00:00.000000Z'"
    assert written(("host_0", "host_1"), "", "cratedb") == "'host_0', 'host_1'"
    assert written("o'clock", "", "postgresql") == "'o''clock'"
    assert written(True, "", "sqlite") == "1"
    assert written(True, "", "duckdb") == "true"
    assert written(0.5, "", "duckdb") == "0.5"


@given(st.integers(0, 4_000_000_000_000_000))
def test_a_time_is_written_in_whole_microseconds(microseconds: int) -> None:
    text = iso(microseconds * 1000)
    assert text.endswith("Z")
    assert len(text) == 27


@given(st.integers(-1000, 1000), st.integers(0, 1000), st.integers(0, 99))
def test_an_integer_is_between_its_ends(least: int, width: int, seed: int) -> None:
    value = drawn(of(kind="integer", least=least, most=least + width), seed=seed)
    assert isinstance(value, int)
    assert least <= value <= least + width
