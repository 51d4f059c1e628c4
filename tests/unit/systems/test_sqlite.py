"""What SQLite can be asked for, and what refutes that it did so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.systems.base import Place
from dyno.systems.sqlite import SqliteOptions, SqliteSystem


def system(host: LocalHost, folder: Path, **options: object) -> SqliteSystem:
    place = Place(host=host, data=folder / "data", logs=folder / "logs", core="dyno-core")
    return SqliteSystem(SqliteOptions.model_validate(options), place)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"in_memory": True, "journal_mode": "wal"}, "journal_mode wal is of a file, and in_memory has none"),
        ({"in_memory": True, "mmap_size": "1 MiB"}, "mmap_size is of a file, and in_memory has none"),
        ({"threading_mode": "none"}, "single-thread"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        SqliteOptions.model_validate(options)


def test_one_client_alone_is_let_in_where_nothing_keeps_two_apart() -> None:
    def most(**options: object) -> int | None:
        return SqliteSystem.most_clients(SqliteOptions.model_validate(options))

    assert [most(), most(threading_mode="multi-thread"), most(threading_mode="serialized")] == [None] * 3
    assert [most(threading_mode="single-thread"), most(in_memory=True), most(locking_mode="exclusive")] == [1] * 3


def test_a_switch_is_asked_of_the_driver_only_where_it_is_given(host: LocalHost, tmp_path: Path) -> None:
    assert system(host, tmp_path).asked() == {"busy_timeout_ms": 10_000}
    asked = system(host, tmp_path, resident=True, memory_statistics=False, secure_delete=False).asked()
    assert asked == {"busy_timeout_ms": 10_000, "memory_statistics": False, "secure_delete": False, "preload": True}


def test_a_page_that_was_read_is_told_where_none_may(host: LocalHost, tmp_path: Path) -> None:
    read = {"sqlite.pages_read_bytes": 4096.0}
    assert system(host, tmp_path).refutes(read) is None
    resident = system(host, tmp_path, resident=True)
    assert resident.refutes(read) == "bytes of pages read while it was driven: is 4,096, and resident: true allows none"
    assert resident.refutes({"sqlite.pages_read_bytes": 0.0}) is None
    assert "is not known" in (resident.refutes({}) or "")
