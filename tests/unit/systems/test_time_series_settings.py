"""What time-series stores say of themselves, read: settings in the same terms, metrics, values in statements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dyno.sql.base import alike
from dyno.sql.metrics import counters_in
from dyno.sql.over_http import literal
from dyno.systems import cratedb, duckdb, postgresql, questdb
from dyno.systems.server import ServerOptions


@pytest.mark.parametrize(
    ("wish", "value", "same"),
    [
        ("16M", "16777216", True),
        (1000, "1000", True),
        (True, "true", True),
        ("on", "false", False),
        ("SYNC", "sync", True),
        ("sync", "nosync", False),
        (0.5, "0.5", True),
        ("16M", "33554432", False),
    ],
)
def test_a_setting_of_questdb_is_compared_in_its_own_terms(wish: Any, value: str, same: bool) -> None:
    asked, effective = questdb.canonical(wish, value)
    assert (asked == effective) == same


@pytest.mark.parametrize(
    ("wish", "value", "same"),
    [
        ("1GB", "953.6 MiB", True),
        ("1GB", "1.0 GiB", False),
        ("64 MiB", "64.0 MiB", True),
        (4, "4", True),
        (4, "2", False),
        (False, "false", True),
        ("nulls_last", "NULLS_LAST", True),
    ],
)
def test_a_setting_of_duckdb_is_compared_in_its_own_terms(wish: Any, value: str, same: bool) -> None:
    asked, effective = duckdb.canonical(wish, value)
    assert (asked == effective) == same


@pytest.mark.parametrize(
    ("spans", "by"), [([], "none"), ([1, 1, 1], "day"), ([31, 29, 31], "month"), ([1, 31], "1 to 31 days")]
)
def test_partitions_of_postgresql_are_told_by_what_they_span(spans: list[float], by: str) -> None:
    assert postgresql.partitioned_by(spans) == by


def test_keys_of_server_conf_may_be_nested_and_those_of_dynos_own_are_refused() -> None:
    options = questdb.QuestdbOptions.model_validate({"cairo": {"commit": {"mode": "sync"}}, "pg.worker.count": 2})
    assert options.settings == {"cairo.commit.mode": "sync", "pg.worker.count": 2}
    with pytest.raises(ValidationError, match=r"line\.default\.partition\.by is dyno's own to set"):
        questdb.QuestdbOptions.model_validate({"line.default.partition.by": "MONTH"})
    with pytest.raises(ValidationError, match=r"is no key of server\.conf"):
        questdb.QuestdbOptions.model_validate({"Cairo Commit": "sync"})


PAGE = """\
# TYPE questdb_commits_total counter
questdb_commits_total 5

# TYPE questdb_memory_rss gauge
questdb_memory_rss 486000

# TYPE questdb_jvm_gc counter
questdb_jvm_gc{name="young"} 3
questdb_odd NaN
"""


def test_metrics_are_told_apart_by_whether_they_only_grow() -> None:
    found = counters_in(PAGE, "questdb_")
    assert found.grown == {"commits_total": 5.0}
    assert found.now == {"memory_rss": 486000.0}


@given(st.text(max_size=300))
def test_any_text_is_read_as_metrics_or_as_none(text: str) -> None:
    found = counters_in(text, "x_")
    assert all(isinstance(value, float) for value in {**found.grown, **found.now}.values())


def unquoted(text: str) -> str:
    assert text[0] == text[-1] == "'"
    inner = text[1:-1]
    assert "'" not in inner.replace("''", "")
    return inner.replace("''", "'")


@given(st.text())
def test_a_text_in_a_statement_cannot_end_its_literal(text: str) -> None:
    assert unquoted(literal(text)) == text


def test_values_are_the_same_from_every_store() -> None:
    noon = datetime(2016, 1, 1, 12, tzinfo=UTC)
    assert alike(datetime(2016, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))) == noon
    assert alike(datetime(2016, 1, 1, 12)) == noon
    assert (alike(Decimal("3")), alike(Decimal("3.5")), alike(None)) == (3, 3.5, None)
    assert literal(noon) == "'2016-01-01T12:00:00.000000Z'"
    assert [literal(each) for each in (None, True, 3, 2.5)] == ["null", "true", "3", "2.5"]


@pytest.mark.parametrize("mode", ["synk", "SYNC", True, 1])
def test_a_commit_mode_that_there_is_not_is_refused(mode: Any) -> None:
    """QuestDB takes any word for it, shows that as effective, and does not sync."""
    with pytest.raises(ValidationError, match=r"should be nosync, async or sync"):
        questdb.QuestdbOptions.model_validate({"cairo": {"commit": {"mode": mode}}})
    assert questdb.QuestdbOptions.model_validate({"cairo.commit.mode": "sync"}).settings == {
        "cairo.commit.mode": "sync"
    }


@pytest.mark.parametrize("options", [duckdb.DuckdbOptions, postgresql.PostgresqlOptions])
def test_a_setting_has_no_keys_below_it_where_its_name_has_no_dots(options: type[ServerOptions]) -> None:
    given = {"cairo": {"commit": {"mode": "sync"}}}
    with pytest.raises(
        ValidationError, match=r"have no keys below them; .* \(factors\.<factor>\.<level>\.system\.config"
    ):
        options.model_validate(given)
    assert questdb.QuestdbOptions.model_validate(given).settings == {"cairo.commit.mode": "sync"}
    in_parts = {"indices": {"breaker": {"query": {"limit": "50%"}}}}
    assert cratedb.CratedbOptions.model_validate(in_parts).settings == {"indices.breaker.query.limit": "50%"}


@pytest.mark.parametrize("options", [questdb.QuestdbOptions, cratedb.CratedbOptions])
def test_a_list_is_taken_where_names_of_settings_have_dots(options: type[ServerOptions]) -> None:
    """It was refused as `should be a list, not a list`."""
    assert options.model_validate({"after_load": ["SELECT 1"]}).after_load == ("SELECT 1",)
