"""Statements for tables: what each design becomes in each store, and that no column is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno import ddl
from dyno.model.base import RunError
from dyno.model.devops import MEASUREMENTS, TAGS, TIME
from dyno.model.endpoint import Endpoint

PLAIN: dict[str, dict[str, Any]] = {
    "questdb": {"partition_by": "day", "index": [], "wal": True, "deduplicate": False},
    "cratedb": {"partition_by": "none", "index": [], "shards": 4, "replicas": 0, "deduplicate": False},
    "duckdb": {"index": [], "deduplicate": False},
    "postgresql": {"partition_by": "none", "index": [], "deduplicate": False, "hypertable": False},
}


def made(backend: str, table: str = "cpu", **design: Any) -> tuple[str, ...]:
    return ddl.statements(backend, {**PLAIN[backend], **design}, table)


@pytest.mark.parametrize("backend", PLAIN)
@pytest.mark.parametrize("table", MEASUREMENTS)
def test_every_column_of_a_measurement_is_in_its_table(backend: str, table: str) -> None:
    (statement, *_) = made(backend, table)
    assert statement.startswith(f"CREATE TABLE {table} (")
    measurement = MEASUREMENTS[table]
    for column in (*TAGS, *measurement.tags, *measurement.fields, TIME[backend]):
        assert f"{column} " in statement


@pytest.mark.parametrize(
    ("backend", "design", "part"),
    [
        ("questdb", {}, "TIMESTAMP(timestamp) PARTITION BY DAY WAL"),
        ("questdb", {"partition_by": "none", "wal": False}, "PARTITION BY NONE"),
        ("questdb", {"wal": False}, "PARTITION BY DAY BYPASS WAL"),
        ("questdb", {"deduplicate": True}, "DEDUP UPSERT KEYS(timestamp, hostname)"),
        ("questdb", {"index": ["hostname"]}, "hostname SYMBOL INDEX, region SYMBOL,"),
        ("cratedb", {"shards": 6, "replicas": 1}, "CLUSTERED INTO 6 SHARDS WITH (number_of_replicas = 1)"),
        ("cratedb", {"partition_by": "month"}, "GENERATED ALWAYS AS date_trunc('month', ts)"),
        ("cratedb", {"partition_by": "month"}, "PARTITIONED BY (part)"),
        ("cratedb", {"partition_by": "day", "deduplicate": True}, "PRIMARY KEY (ts, tags['hostname'], part)"),
        ("duckdb", {"deduplicate": True}, "PRIMARY KEY (ts, hostname)"),
        ("duckdb", {"index": ["rack"]}, "CREATE INDEX cpu_rack ON cpu (rack)"),
        ("postgresql", {"index": ["hostname"]}, "CREATE INDEX cpu_hostname ON cpu (hostname, ts)"),
        ("postgresql", {"partition_by": "month"}, "PARTITION BY RANGE (ts)"),
        ("postgresql", {"hypertable": True, "partition_by": "month"}, "INTERVAL '1 month'"),
    ],
)
def test_each_part_of_a_design_is_in_the_statements(backend: str, design: dict[str, Any], part: str) -> None:
    assert part in " ; ".join(made(backend, **design))
    assert part not in " ; ".join(made(backend)) or not design


def test_partitions_of_postgresql_are_made_for_the_days_that_are_expected() -> None:
    design = {**PLAIN["postgresql"], "partition_by": "day"}
    first, last = datetime(2016, 2, 28, 12, tzinfo=UTC), datetime(2016, 3, 2, tzinfo=UTC)
    statements = ddl.statements("postgresql", design, "cpu", first=first, last=last)
    assert [each.split()[2] for each in statements] == ["cpu", "cpu_20160228", "cpu_20160229", "cpu_20160301"]
    assert "FROM ('2016-02-29Z') TO ('2016-03-01Z')" in statements[2]


MOMENTS = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2050, 1, 1), timezones=st.just(UTC))


@given(MOMENTS, MOMENTS, st.sampled_from(["day", "month"]))
def test_partitions_follow_one_another_and_cover_all_of_the_time(a: datetime, b: datetime, by: str) -> None:
    first, last = min(a, b), min(max(a, b), min(a, b).replace(year=min(a, b).year + 1, day=1))
    found = list(ddl.partitions(by, first, last))
    if last <= first:
        assert len(found) <= 1
        return
    assert found[0][0] <= first < found[0][1]
    assert found[-1][0] < last <= found[-1][1]
    assert all(before[1] == after[0] for before, after in pairwise(found))
    spans = {(end - begin).days for begin, end in found}
    assert spans == {1} if by == "day" else spans <= {28, 29, 30, 31}


def test_a_table_that_is_not_of_devops_and_an_endpoint_without_a_design_are_refused() -> None:
    with pytest.raises(RunError, match="there is no table gpu in devops; there are cpu, diskio, "):
        made("duckdb", "gpu")
    with pytest.raises(RunError, match="sqlite does not say how its tables are laid out"):
        ddl.of(Endpoint("sqlite"), "cpu")
